/**
 * The seam of what remembers the tokens of parts of prompts, so that equal parts are tokenized once
 * on a host.
 */
package io.kvasir.prompt.memo;

/**
 * The preconditions of routing by KV events, tested against running engines: by the product's own
 * tokenizer, subscription, hashes and index. Knows no command.
 */
package io.kvasir.cli.doctor;

/**
 * The part of Jinja that chat templates use; {@link io.kvasir.prompt.jinja.ChatTemplate} is the
 * entry. Knows the JDK only.
 */
package io.kvasir.prompt.jinja;

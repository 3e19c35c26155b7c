/**
 * The part of Jinja that chat templates use; {@link io.kvasir.gateway.template.ChatTemplate} is the
 * entry. Knows the JDK only.
 */
package io.kvasir.gateway.template;

/**
 * Chat requests as token ids, rendered the way vLLM renders them. {@link
 * io.kvasir.prompt.chat.ChatModel} is the entry.
 */
package io.kvasir.prompt.chat;

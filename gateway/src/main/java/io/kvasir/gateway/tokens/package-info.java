/**
 * Prompts as token ids: own byte-level BPE with the Hugging Face library behind it, and chat
 * requests rendered the way vLLM renders them. {@link io.kvasir.gateway.tokens.ChatModel} is the
 * entry.
 */
package io.kvasir.gateway.tokens;

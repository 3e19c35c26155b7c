/**
 * Text as token ids: own byte-level BPE with the Hugging Face library behind it. {@link
 * io.kvasir.prompt.tokenizer.Tokenizers} is the entry.
 */
package io.kvasir.prompt.tokenizer;

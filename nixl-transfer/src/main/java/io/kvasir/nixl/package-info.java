/**
 * What a prefill engine hands to a decode engine, carried without understanding it.
 *
 * <p>Engines change the fields of these objects from release to release, so they are kept as the
 * bytes they came in ({@link io.kvasir.nixl.VerbatimJson}) and spliced into the next body as they
 * are. The typed methods only look: {@link io.kvasir.nixl.KvTransferParams} for vLLM, {@link
 * io.kvasir.nixl.DisaggregatedParams} for TensorRT-LLM, {@link io.kvasir.nixl.Bootstrap} for
 * SGLang.
 *
 * <p>Knows panama-bindings.
 */
package io.kvasir.nixl;

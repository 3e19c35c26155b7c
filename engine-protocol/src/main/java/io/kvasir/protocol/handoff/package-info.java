/**
 * What a prefill engine hands to a decode engine, carried without understanding it.
 *
 * <p>Engines change the fields of these objects from release to release, so they are kept as the
 * bytes they came in ({@link io.kvasir.protocol.handoff.VerbatimJson}) and spliced into the next
 * body as they are. The typed methods only look: {@link
 * io.kvasir.protocol.handoff.KvTransferParams} for vLLM, {@link
 * io.kvasir.protocol.handoff.DisaggregatedParams} for TensorRT-LLM, {@link
 * io.kvasir.protocol.handoff.Bootstrap} for SGLang.
 *
 * <p>Knows Jackson; needs neither HTTP nor NIXL.
 */
package io.kvasir.protocol.handoff;

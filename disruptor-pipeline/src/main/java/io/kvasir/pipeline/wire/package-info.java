/** Reads what engines publish: msgpack, event batches in every known form, replay framing. */
package io.kvasir.pipeline.wire;

package io.kvasir.bench.generate;

/**
 * One request of a trace in Mooncake's format.
 *
 * @param timestamp arrival in the trace's unit, see {@link GeneratorOptions#timestampUs}
 * @param inputLength prompt tokens
 * @param outputLength tokens to generate
 * @param hashIds one id per {@link GeneratorOptions#traceBlock} tokens, at least one; equal ids at
 *     equal places mean equal prefixes; not copied
 */
@SuppressWarnings("ArrayRecordComponent") // never compared
public record TraceRequest(double timestamp, int inputLength, int outputLength, long[] hashIds) {}

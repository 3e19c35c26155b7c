package io.kvasir.opstreams.generate;

/**
 * One request of a trace in Mooncake's format.
 *
 * @param timestamp arrival in the trace's unit, see {@link GeneratorOptions#timestampUs}
 * @param inputLength prompt tokens
 * @param outputLength tokens to generate
 * @param hashIds one id per {@link GeneratorOptions#traceBlock} tokens, at least one; equal ids at
 *     equal positions mean equal prefixes; not copied
 * @param outputIds one id per block of the answer, which later prompts may go on with; null =
 *     blocks that no other request has; not copied
 */
@SuppressWarnings("ArrayRecordComponent") // never compared
public record TraceRequest(
        double timestamp, int inputLength, int outputLength, long[] hashIds, long[] outputIds) {
    /** A request whose answer no other request continues with. */
    public TraceRequest(double timestamp, int inputLength, int outputLength, long[] hashIds) {
        this(timestamp, inputLength, outputLength, hashIds, null);
    }
}

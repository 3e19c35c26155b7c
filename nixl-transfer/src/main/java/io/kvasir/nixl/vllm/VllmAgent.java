package io.kvasir.nixl.vllm;

/**
 * One rank of a vLLM engine, as its handshake introduced it. Immutable.
 *
 * <p>The clocks: vLLM stamps deadlines with a clock of its own process. The offset is taken at the
 * middle of the fastest round trip, so it is wrong by at most half of that trip.
 *
 * @param compatibilityHash digest over versions, model and cache form; equal where two engines can
 *     exchange blocks
 * @param pipelineRank pipeline parallel rank asked for
 * @param tensorRank tensor parallel rank asked for
 * @param metadata what the rank published
 * @param clockOffsetNs nanoseconds that its clock is ahead of {@link System#nanoTime}
 * @param roundTripNs the fastest round trip of the handshake
 * @param unknownKeys keys of its answer that are not known here; above 0 with a newer engine
 */
public record VllmAgent(
        String compatibilityHash,
        int pipelineRank,
        int tensorRank,
        VllmAgentMetadata metadata,
        long clockOffsetNs,
        long roundTripNs,
        int unknownKeys) {
    /**
     * The engine's identifier.
     *
     * @return new with every start of the engine
     */
    public String engineId() {
        return metadata.engineId();
    }
}

package io.kvasir.nixl.vllm;

import java.util.List;

/**
 * A vLLM engine, as its side channel introduced it: those of its tensor parallel ranks that concern
 * a rank here. Immutable.
 *
 * @param engineId the engine's identifier, new with every start
 * @param tensorSize tensor parallel ranks that it has
 * @param ranks those that were asked, in ascending order; at least one
 */
public record VllmEngine(String engineId, int tensorSize, List<VllmAgent> ranks) {
    /**
     * Copies the list.
     *
     * @throws VllmPeerException of kind {@code OTHER_ENGINE} if a rank belongs to another engine,
     *     {@code UNKNOWN_RANK} if there is none, or one is twice or beyond the size
     */
    public VllmEngine {
        ranks = List.copyOf(ranks);
        int last = -1;
        for (VllmAgent rank : ranks) {
            if (!rank.engineId().equals(engineId)) {
                throw new VllmPeerException(
                        VllmPeerException.Kind.OTHER_ENGINE,
                        "a rank of engine " + rank.engineId() + " is none of engine " + engineId);
            }
            if (rank.tensorRank() <= last || rank.tensorRank() >= tensorSize) {
                throw new VllmPeerException(
                        VllmPeerException.Kind.UNKNOWN_RANK,
                        "engine "
                                + engineId
                                + " has ranks 0.."
                                + (tensorSize - 1)
                                + " in ascending order, not "
                                + rank.tensorRank()
                                + " after "
                                + last);
            }
            last = rank.tensorRank();
        }
        if (ranks.isEmpty()) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.UNKNOWN_RANK, "no rank of engine " + engineId);
        }
    }

    /**
     * An engine of one rank.
     *
     * @param agent its only rank
     * @return the engine
     */
    public static VllmEngine of(VllmAgent agent) {
        return new VllmEngine(agent.engineId(), 1, List.of(agent));
    }

    /** A rank that was asked. */
    VllmAgent rank(int tensorRank) {
        return ranks.stream()
                .filter(agent -> agent.tensorRank() == tensorRank)
                .findFirst()
                .orElseThrow(
                        () ->
                                new VllmPeerException(
                                        VllmPeerException.Kind.UNKNOWN_RANK,
                                        "rank "
                                                + tensorRank
                                                + " of engine "
                                                + engineId
                                                + " was not asked: shake hands for the rank here"
                                                + " that will pull from it, or for all"));
    }
}

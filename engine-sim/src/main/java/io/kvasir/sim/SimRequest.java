package io.kvasir.sim;

/**
 * One sequence on its way through an engine: the script is fixed, the progress belongs to the step
 * loop, and the last group is published to the thread that answers the client.
 */
final class SimRequest {
    /** Where a request is. */
    enum Phase {
        WAITING,
        ADMITTED,
        FINISHED,
        /** The engine was restarted under it. */
        BROKEN
    }

    final Completion script;
    final long[] names;
    final Labels labels;
    final boolean announceHits;
    final long life;
    final Gate gate;

    // step loop only
    long arrivalNs;
    long lastTokenNs;
    int[] blocks;
    int blockCount;
    int cachedBlocks;
    int computed;
    int scheduled;
    int produced;
    boolean counted;

    // written before the phase or the count that tells of them
    int cachedTokens;
    long eventSequence;
    volatile int generated;
    volatile Phase phase = Phase.WAITING;

    /**
     * Names the blocks of a script.
     *
     * @param announceHits whether the blocks that are hit are announced once more
     */
    SimRequest(
            Completion script, BlockNamer namer, Labels labels, boolean announceHits, Gate gate) {
        this.script = script;
        // the last token's keys and values are never computed, so it fills no block
        this.names =
                namer.names(
                        script.tokens(),
                        script.tokens().length - 1,
                        labels.loraName(),
                        labels.salt());
        this.life = namer.life();
        this.labels = labels;
        this.announceHits = announceHits;
        this.gate = gate;
    }

    /** Tokens that exist so far: the prompt and what was generated. */
    int known() {
        return script.promptTokens() + produced;
    }
}

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
        BROKEN,
        /** It ended without an answer. */
        FAILED
    }

    final Labels labels;
    final boolean announceHits;
    final long life;
    final Gate gate;
    private final BlockNamer namer;

    // set before the request is submitted, or never
    int rank;
    KvHold hold;
    KvPull pull;

    // changed at most once, before the first token
    Completion script;
    long[] names;

    // step loop only
    long arrivalNs;
    long readyNs;
    long lastTokenNs;
    int[] blocks;
    int blockCount;
    int cachedBlocks;
    int computed;
    int scheduled;
    int produced;
    boolean counted;
    private long[] states;

    // written before the phase or the count that tells of them
    int cachedTokens;
    long eventSequence;
    String failure;
    volatile int generated;
    volatile Phase phase = Phase.WAITING;

    /**
     * Names the blocks of a script.
     *
     * @param announceHits whether the blocks that are hit are announced once more
     */
    SimRequest(
            Completion script, BlockNamer namer, Labels labels, boolean announceHits, Gate gate) {
        this.namer = namer;
        this.life = namer.life();
        this.labels = labels;
        script(script);
        this.announceHits = announceHits;
        this.gate = gate;
    }

    private void script(Completion text) {
        script = text;
        states = null;
        // the last token's keys and values are never computed, so it fills no block
        names =
                namer.names(
                        text.tokens(), text.tokens().length - 1, labels.loraName(), labels.salt());
    }

    /** What another text than that of the prompt is generated from: blocks that are not its own. */
    void spoil() {
        script(pull.otherText.get());
    }

    /** Whether blocks must still come from another engine. */
    boolean awaitsPull() {
        return pull != null && !pull.ended();
    }

    /** {@link KvPrint} up to and with each token; first asked for on the step loop. */
    long[] states() {
        if (states == null) {
            states = KvPrint.each(script.tokens(), labels.loraName());
        }
        return states;
    }

    /** Fingerprint of the prompt. */
    long print() {
        return KvPrint.of(script.tokens(), script.promptTokens(), labels.loraName());
    }

    /** Tokens that exist so far: the prompt and what was generated. */
    int known() {
        return script.promptTokens() + produced;
    }
}

package io.kvasir.sim.batch;

import io.kvasir.sim.cache.BlockNamer;
import io.kvasir.sim.events.Labels;

/**
 * One sequence on its way through an engine: the script is fixed, the progress belongs to the step
 * loop, and the last group is published to the thread that answers the client.
 */
public final class SimRequest {
    /** Where a request is. */
    public enum Phase {
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
    public SimRequest(
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

    /** The rank it runs on. */
    public int rank() {
        return rank;
    }

    /** What is held after it; null for nothing. */
    public KvHold hold() {
        return hold;
    }

    /** What it says. */
    public Completion script() {
        return script;
    }

    /** Whether it was admitted, and its hits counted. */
    public boolean counted() {
        return counted;
    }

    /** Tokens of the prompt that were hit. */
    public int cachedTokens() {
        return cachedTokens;
    }

    /** Number of the event message of its blocks. */
    public long eventSequence() {
        return eventSequence;
    }

    /** Why it failed; null if it did not. */
    public String failure() {
        return failure;
    }

    /** Where its thread waits. */
    public Gate gate() {
        return gate;
    }

    /** Tokens that its thread may read. */
    public int generated() {
        return generated;
    }

    /** Where it is. */
    public Phase phase() {
        return phase;
    }

    /** Has its blocks held after its end; before it is submitted. */
    public void hold(KvHold wanted) {
        hold = wanted;
    }

    /** Has blocks pulled before it is computed; before it is submitted. */
    public void pull(KvPull wanted) {
        pull = wanted;
    }

    /** Sets when it came; before it is submitted. */
    public void arrivalNs(long timeNs) {
        arrivalNs = timeNs;
    }
}

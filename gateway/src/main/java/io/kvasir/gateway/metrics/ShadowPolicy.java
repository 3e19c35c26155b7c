package io.kvasir.gateway.metrics;

import io.kvasir.router.journal.DecisionJournal;
import io.kvasir.router.journal.JournalRecord;
import io.kvasir.router.journal.WhatIf;

/**
 * A policy that decides nothing: what it would have chosen is judged by the decisions that a
 * router's journal keeps, whenever the page of metrics is asked for. No request waits for it. Any
 * thread.
 */
final class ShadowPolicy {
    private final DecisionJournal journal;
    private final double weight;
    private final JournalRecord record;
    private final WhatIf recorded;
    private final WhatIf shadow;
    private long next;
    private long missed;

    /**
     * @param weight what a block to prefill counts for it
     */
    ShadowPolicy(DecisionJournal journal, double weight) {
        this.journal = journal;
        this.weight = weight;
        record = journal.newRecord();
        recorded = new WhatIf(WhatIf.recorded(), journal.blockSize());
        shadow = new WhatIf(WhatIf.linear(weight), journal.blockSize());
        next = journal.end();
    }

    /** What a block to prefill counts for it. */
    double weight() {
        return weight;
    }

    /** Takes the decisions since the last call into account. */
    synchronized void update() {
        final long end = journal.end();
        final long oldest = Math.max(next, end - journal.records());
        missed += Math.max(0, oldest - next);
        for (long number = oldest; number < end; number++) {
            if (journal.read(number, record)) {
                recorded.add(record);
                shadow.add(record);
            } else {
                missed++;
            }
        }
        next = Math.max(next, end);
    }

    /** Decisions that were judged. */
    synchronized long decisions() {
        return shadow.decisions();
    }

    /** Decisions that were overwritten before they could be judged. */
    synchronized long missed() {
        return missed;
    }

    /** Decisions in which it would have chosen another worker. */
    synchronized long otherChoices() {
        return shadow.changed();
    }

    /** Prompt tokens that the chosen workers held, and those that it would have chosen. */
    synchronized double cachedTokens(boolean ofShadow) {
        return (ofShadow ? shadow : recorded).cachedTokens();
    }

    /** Blocks to prefill until the prompts were computed, likewise. */
    synchronized double prefillBlocks(boolean ofShadow) {
        return (ofShadow ? shadow : recorded).prefillBlocks();
    }
}

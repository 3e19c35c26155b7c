package io.kvasir.gateway.trace;

import java.util.concurrent.atomic.LongAdder;

/** Counts sampled spans: those that ended, and what became of them. Thread-safe. */
public final class TraceCounts {
    private final LongAdder ended = new LongAdder();
    private final LongAdder exported = new LongAdder();
    private final LongAdder failed = new LongAdder();

    TraceCounts() {}

    /** Spans that ended; those that were neither exported nor failed wait, or were dropped. */
    public long ended() {
        return ended.sum();
    }

    /** Spans that the collector has taken. */
    public long exported() {
        return exported.sum();
    }

    /** Spans that the collector did not take. */
    public long failed() {
        return failed.sum();
    }

    void hasEnded() {
        ended.increment();
    }

    void exported(int spans) {
        exported.add(spans);
    }

    void failed(int spans) {
        failed.add(spans);
    }
}

package io.kvasir.router.disagg;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/** Records what a flow does, each call as its name and number, and lets a test react. */
final class RecordedLegs implements SplitLegs {
    /** What was called, in order. */
    final List<String> calls = new ArrayList<>();

    /** Each failure and what followed. */
    final List<String> failures = new ArrayList<>();

    /** Runs inside each call, with its name and number. */
    Consumer<String> reaction = _ -> {};

    /** Whether a worker can do all of it. */
    boolean alone = true;

    private int attempt;
    private int decode;
    private final AtomicBoolean inside = new AtomicBoolean();

    @Override
    public void choosePrefill(int attempt) {
        this.attempt = attempt;
        called("choosePrefill " + attempt);
    }

    @Override
    public void sendPrefill(int attempt) {
        called("sendPrefill " + attempt);
    }

    @Override
    public void handOver(int attempt) {
        called("handOver " + attempt);
    }

    @Override
    public void answer(int attempt) {
        called("answer " + attempt);
    }

    @Override
    public void chooseDecode(int number, boolean split) {
        decode = number;
        called("chooseDecode " + decode + (split ? "" : " alone"));
    }

    @Override
    public void sendDecode() {
        called("sendDecode " + decode);
    }

    @Override
    public void blocksFetched() {
        called("blocksFetched " + attempt);
    }

    @Override
    public boolean canAnswerAlone() {
        return alone;
    }

    @Override
    public void abortDecode() {
        called("abortDecode " + decode);
    }

    @Override
    public void freePrefill(int attempt) {
        called("freePrefill " + attempt);
    }

    @Override
    public void failed(LegFailure failure, SplitEvent next) {
        failures.add(failure + " -> " + next);
    }

    @Override
    public void report(LegFailure failure) {
        called("report " + failure);
    }

    void clear() {
        calls.clear();
    }

    private void called(String call) {
        if (!inside.compareAndSet(false, true)) {
            throw new AssertionError(call + " within another call");
        }
        calls.add(call);
        try {
            reaction.accept(call);
        } finally {
            inside.set(false);
        }
    }
}

package io.kvasir.router;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.memory.ClosedException;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.pipeline.booking.BookingPipeline;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.disagg.LearnedLine;

import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;

/**
 * Finds out when prompts are computed of requests whose first output token nobody sees: answers
 * that are not streamed. A worker whose events are followed announces the last full block; of
 * another one the time is expected that prompts took there whose first token was seen.
 *
 * <p>Any thread adds and learns. A thread of its own looks every {@value #PERIOD_MS} ms while there
 * is something to watch; where the embedder ticks, each tick looks. A look matches at most {@value
 * #MATCHES} prompts with the index, in turn, whatever the number of those that are watched.
 */
final class PromptWatch implements AutoCloseable {
    static final String THREAD_NAME = "kvasir-router-prompts";

    private static final int PERIOD_MS = 5;
    private static final int MATCHES = 64;

    private final BookingPipeline bookings;
    private final PrefixIndex index;
    private final LongSupplier clock;
    private final OverlapScores scores;
    private final LearnedLine anyWorker = new LearnedLine();
    private final Queue<WatchedPrompt> added = new ConcurrentLinkedQueue<>();
    private final Queue<WatchedPrompt> watched = new ArrayDeque<>(); // guarded by this
    private volatile boolean needed;
    private volatile boolean idle;
    private volatile boolean closed;
    private volatile Thread threadOrNull;

    PromptWatch(BookingPipeline bookings, PrefixIndex index, int slots, LongSupplier clock) {
        this.bookings = bookings;
        this.index = index;
        this.clock = clock;
        this.scores = new OverlapScores(slots);
    }

    /** Has a thread of its own look from now on. */
    void start() {
        final Thread thread =
                Thread.ofPlatform().daemon().name(THREAD_NAME).unstarted(this::keepLooking);
        threadOrNull = thread;
        thread.start();
    }

    /** Whether a prompt was watched ever: only then it is worth learning. */
    boolean isNeeded() {
        return needed;
    }

    long nowNs() {
        return clock.getAsLong();
    }

    void add(WatchedPrompt prompt) {
        needed = true;
        added.add(prompt);
        if (idle) { // set before the queue was read: one of the two sees the other
            LockSupport.unpark(threadOrNull);
        }
    }

    /** A first token was seen of a prompt, so long after its booking. */
    void learn(Worker worker, double tokens, long ns) {
        final double seconds = ns / 1e9;
        worker.promptTimes().learn(tokens, seconds);
        anyWorker.learn(tokens, seconds);
    }

    /** Ends the prompts that are computed; returns how many are watched still. */
    synchronized int look(long nowNs) {
        for (WatchedPrompt prompt = added.poll(); prompt != null; prompt = added.poll()) {
            watched.add(prompt);
        }
        int matches = 0;
        for (int left = watched.size(); left > 0 && matches < MATCHES; left--) {
            final WatchedPrompt prompt = watched.poll();
            if (!bookings.isOpen(prompt.number)) {
                continue;
            }
            final boolean announced = isAnnounced(prompt);
            matches += announced ? 1 : 0;
            if (announced ? !isStored(prompt) : !isExpected(prompt, nowNs)) {
                watched.add(prompt); // behind those that this look does not come to
            } else if (bookings.prefillComplete(prompt.number)) {
                prompt.end(announced ? PromptEnd.STORED : PromptEnd.EXPECTED, nowNs);
            }
        }
        return watched.size();
    }

    /** Whether events of the worker will tell. */
    private static boolean isAnnounced(WatchedPrompt prompt) {
        final IndexState state = prompt.worker.state();
        return prompt.hashes.length > 0
                && (state == IndexState.EXACT || state == IndexState.RESYNC);
    }

    private boolean isStored(WatchedPrompt prompt) {
        return holds(prompt.worker, prompt.hashes)
                || (prompt.eagleHashes.length > 0 && holds(prompt.worker, prompt.eagleHashes));
    }

    private boolean holds(Worker worker, long[] hashes) {
        index.match(hashes, hashes.length, scores);
        return scores.depth(worker.slot()) == hashes.length;
    }

    private boolean isExpected(WatchedPrompt prompt, long nowNs) {
        final LearnedLine own = prompt.worker.promptTimes();
        final double seconds = (own.isKnown() ? own : anyWorker).seconds(prompt.tokens);
        return nowNs - prompt.bookedNs >= seconds * 1e9; // false while nothing is known
    }

    private void keepLooking() {
        try {
            while (!closed) {
                if (look(nowNs()) > 0) {
                    LockSupport.parkNanos(this, TimeUnit.MILLISECONDS.toNanos(PERIOD_MS));
                } else {
                    idle = true;
                    if (added.isEmpty() && !closed) {
                        LockSupport.park(this);
                    }
                    idle = false;
                }
            }
        } catch (ClosedException e) {
            closed = true; // the index has gone first
        }
    }

    /** Ends the thread; does not wait for it. */
    @Override
    public void close() {
        closed = true;
        LockSupport.unpark(threadOrNull);
    }
}

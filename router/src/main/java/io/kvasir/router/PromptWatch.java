package io.kvasir.router;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.memory.ClosedException;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.pipeline.booking.BookingPipeline;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.disagg.LearnedLine;

import org.agrona.ErrorHandler;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import java.util.function.ObjLongConsumer;

/**
 * Finds out when prompts are computed of requests whose first output token cannot be seen: their
 * answers are not streamed. A worker whose events are followed announces the last full block; of
 * another one the time is expected that prompts took there whose first token was seen.
 *
 * <p>Any thread adds and learns. A thread of its own checks every {@value #PERIOD_MS} ms while
 * there is something to watch; where the embedder ticks, each tick checks. A check matches at most
 * {@value #MATCHES} prompts with the index, in turn, whatever the number of those that are watched.
 */
final class PromptWatch implements AutoCloseable {
    private static final int PERIOD_MS = 5;
    private static final int MATCHES = 64;

    private final BookingPipeline bookings;
    private final PrefixIndex index;
    private final LongSupplier clock;
    private final ObjLongConsumer<Worker> found;
    private final Consumer<Throwable> matchFailed;
    private final OverlapScores scores;
    private final LearnedLine anyWorker = new LearnedLine();
    private final Queue<WatchedPrompt> added = new ConcurrentLinkedQueue<>();
    private final Queue<WatchedPrompt> watched = new ArrayDeque<>(); // guarded by this
    private volatile boolean needed;
    private volatile RouterTicker tickerOrNull;

    /**
     * @param found takes the worker of each prompt that is found to be computed, and when
     * @param matchFailed takes what a match throws where the index is damaged
     */
    PromptWatch(
            BookingPipeline bookings,
            PrefixIndex index,
            int slots,
            LongSupplier clock,
            ObjLongConsumer<Worker> found,
            Consumer<Throwable> matchFailed) {
        this.bookings = bookings;
        this.index = index;
        this.clock = clock;
        this.found = found;
        this.matchFailed = matchFailed;
        this.scores = new OverlapScores(slots);
    }

    /** Has a thread of its own look from now on. */
    void start(ErrorHandler errors) {
        final RouterTicker ticker =
                new RouterTicker(
                        "kvasir-router-prompts",
                        Duration.ofMillis(PERIOD_MS),
                        clock,
                        nowNs -> look(nowNs) > 0,
                        errors);
        tickerOrNull = ticker;
        ticker.start();
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
        final RouterTicker ticker = tickerOrNull;
        if (ticker != null) {
            ticker.wake();
        }
    }

    /** A first token was seen of a prompt, so long after its booking. */
    void learn(Worker worker, double tokens, long ns) {
        final double seconds = ns / 1e9;
        worker.promptTimes().learn(tokens, seconds);
        anyWorker.learn(tokens, seconds);
    }

    /**
     * Ends the prompts that are computed.
     *
     * @return how many are watched still; 0 once the router is closed
     */
    int look(long nowNs) {
        try {
            return lookOnce(nowNs);
        } catch (ClosedException e) {
            return 0;
        }
    }

    private synchronized int lookOnce(long nowNs) {
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
                watched.add(prompt); // after those that this pass does not come to
            } else if (bookings.prefillComplete(prompt.number)) {
                prompt.end(announced ? PromptEnd.STORED : PromptEnd.EXPECTED, nowNs);
                found.accept(prompt.worker, nowNs);
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
        try {
            index.match(hashes, hashes.length, scores);
            return scores.depth(worker.slot()) == hashes.length;
        } catch (IndexOutOfBoundsException | InternalError e) { // as of PromptMatcher
            matchFailed.accept(e);
            return false;
        }
    }

    private boolean isExpected(WatchedPrompt prompt, long nowNs) {
        final double seconds = prompt.worker.promptTimes().orElse(anyWorker).seconds(prompt.tokens);
        return nowNs - prompt.bookedNs >= seconds * 1e9; // false while nothing is known
    }

    /** Ends the thread; does not wait for it. */
    @Override
    public void close() {
        final RouterTicker ticker = tickerOrNull;
        if (ticker != null) {
            ticker.close();
        }
    }
}

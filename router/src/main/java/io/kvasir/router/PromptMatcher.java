package io.kvasir.router;

import io.kvasir.core.radix.OverlapScores;
import io.kvasir.pipeline.source.IndexState;

import java.util.function.LongSupplier;
import java.util.function.Supplier;

/**
 * Finds what every worker has to do with a prompt at one moment: what it holds by its events or by
 * prediction, what running requests use there, and how loaded it is. Any thread, each with its own
 * request and selection; takes no lock.
 *
 * <p>The set of workers is read before the loads, and again after them: if it has changed, a slot
 * may be open for another worker than the one in the set, and the match is repeated. While the set
 * changes all the time, the last match counts, without the workers that have been removed since.
 */
final class PromptMatcher {
    /** Matches of one selection at most, while workers come and go. */
    static final int MAX_TRIES = 4;

    private final RouterParts parts;
    private final LongSupplier clock;
    private final Supplier<WorkerSet> workers;

    PromptMatcher(RouterParts parts, LongSupplier clock, Supplier<WorkerSet> workers) {
        this.parts = parts;
        this.clock = clock;
        this.workers = workers;
    }

    /**
     * Records what is known of every worker.
     *
     * @throws io.kvasir.core.memory.ClosedException if the router is closed
     */
    void match(RouteRequest request, Selection out) {
        final int lane = parts.gate.enterOrThrow();
        try {
            boolean stable = false;
            for (int tries = 0; tries < MAX_TRIES && !stable; tries++) {
                // before the match: a slot's next tenant cannot be in it yet
                final WorkerSet seen = workers.get();
                out.begin(seen, parts.index);
                out.marks(request, parts.workerMarks);
                matchInside(request, seen);
                out.fill(
                        request,
                        request.cached,
                        request.active,
                        request.readsNoCache() ? null : request.tiers,
                        parts.board);
                takeOutFull(out);
                stable = seen == workers.get(); // else a slot may be open for its next tenant
            }
            if (!stable) {
                out.candidates().dropRemoved();
            }
        } finally {
            parts.gate.exit(lane);
        }
        parts.checkOpen(); // the workers may have been taken out meanwhile
    }

    /**
     * Records every worker with overlaps that the caller has looked up.
     *
     * @param cached leading blocks that each worker slot holds
     * @param active leading blocks that running requests of each worker slot use
     * @throws io.kvasir.core.memory.ClosedException if the router is closed
     */
    void take(RouteRequest request, OverlapScores cached, OverlapScores active, Selection out) {
        parts.checkOpen();
        boolean stable = false;
        for (int tries = 0; tries < MAX_TRIES && !stable; tries++) {
            final WorkerSet seen = workers.get();
            out.begin(seen);
            out.marks(request, parts.workerMarks);
            out.fill(request, cached, active, null, parts.board);
            takeOutFull(out);
            stable = seen == workers.get();
        }
        if (!stable) {
            out.candidates().dropRemoved();
        }
        parts.checkOpen();
    }

    /** The clock is not asked while no worker is full. */
    private void takeOutFull(Selection out) {
        out.candidates().takeOutFull(parts.marks, parts.marks.any() ? clock.getAsLong() : 0);
    }

    private void matchInside(RouteRequest request, WorkerSet seen) {
        // matching no block clears what the last prompt had
        if (request.readsNoCache()) {
            matchIndex(request.localHashes, 0, request.cached);
        } else {
            matchCached(request, seen);
        }
        parts.active.matchActiveInside(
                request.localHashes, request.reuses() ? request.blockCount : 0, request.active);
        request.assume(seen);
    }

    private void matchCached(RouteRequest request, WorkerSet seen) {
        matchIndex(request.localHashes, request.blockCount, request.cached);
        if (parts.indexPipeline.hasEagleBlocks()) {
            matchEagle(request);
        }
        if (parts.predictedOrNull != null) {
            predict(request, seen);
        }
        parts.workerMarks.takeLastBlocks(request.cached, request.reusableBlocks());
        if (request.tiers != null) {
            matchTiers(request);
        }
    }

    /** Where the index is damaged nothing is found: a request is not refused for a flipped bit. */
    private void matchIndex(long[] hashes, int count, OverlapScores out) {
        try {
            parts.index.matchInside(hashes, count, out);
        } catch (IndexOutOfBoundsException | InternalError e) { // the latter of a file's pages
            out.clear();
            parts.matchFailed(e);
        }
    }

    /** Adds what the workers hold that draft with EAGLE: their blocks have other hashes. */
    private void matchEagle(RouteRequest request) {
        request.hashEagle();
        final OverlapScores found = request.eagle;
        matchIndex(request.eagleHashes, request.eagleBlockCount, found);
        if (request.cached.matchedSlots() == 0) {
            request.takeEagle();
            return;
        }
        for (int i = 0; i < found.matchedSlots(); i++) {
            addOnce(request.cached, found, found.slotAt(i));
        }
    }

    /** Finds how far the workers' prefixes go on below their devices. */
    private void matchTiers(RouteRequest request) {
        final boolean eagle = parts.indexPipeline.hasEagleBlocks();
        if (eagle) {
            request.hashEagle();
        }
        request.tiers.match(parts.lowerOrNull, request, eagle);
    }

    /** Adds what the workers without events are taken to hold. */
    private void predict(RouteRequest request, WorkerSet seen) {
        final OverlapScores found = request.predicted;
        parts.predictedOrNull.matchInside(request.localHashes, request.blockCount, found);
        for (int i = 0; i < found.matchedSlots(); i++) {
            final Worker worker = seen.at(found.slotAt(i));
            if (worker != null && worker.state() == IndexState.PREDICTED) {
                addOnce(request.cached, found, worker.slot());
            }
        }
    }

    /** Adds a slot that is not found yet: a stream just opened may have stored something. */
    private static void addOnce(OverlapScores scores, OverlapScores found, int slot) {
        if (scores.depth(slot) == 0) {
            scores.add(slot, found.depth(slot));
        }
    }
}

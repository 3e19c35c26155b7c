package io.kvasir.router;

import io.kvasir.core.closing.Closing;
import io.kvasir.core.counters.CountersFile;
import io.kvasir.core.index.IndexMemory;
import io.kvasir.core.index.LowerTiers;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.StorageTier;
import io.kvasir.core.load.ActiveRequests;
import io.kvasir.core.load.LoadBoard;
import io.kvasir.core.load.PredictedPrefixes;
import io.kvasir.core.load.PredictedPrefixesConfig;
import io.kvasir.core.memory.ClosedException;
import io.kvasir.core.memory.MemoryGate;
import io.kvasir.pipeline.booking.BookingPipeline;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.source.EventPlaneStatus;
import io.kvasir.router.journal.DecisionJournal;
import io.kvasir.router.load.BusyMarks;
import io.kvasir.router.load.EngineLoads;
import io.kvasir.router.policy.PolicyFailures;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.replica.ReplicaStatus;
import io.kvasir.router.settings.RouterSettings;

import org.agrona.ErrorHandler;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Memory and writer threads of one router: made together, or not at all, and given back together.
 * One gate guards all memory.
 */
final class RouterParts implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(RouterParts.class);
    static final String NAME = "the router";

    final CountersFile countersOrNull; // null where none is kept
    final ErrorHandler errors; // what goes wrong on the router's threads
    final RandomSource random;
    private final AtomicLong randomFailures = new AtomicLong();
    private final AtomicLong matchFailures = new AtomicLong();
    final MemoryGate gate = new MemoryGate(NAME);
    final WorkerMarks workerMarks = new WorkerMarks();
    final LoadBoard board;
    final BusyMarks marks;
    final EngineLoads engineLoads;
    final PrefixIndex index;
    final LowerTiers lowerOrNull; // null where no tier below the device is followed
    final ActiveRequests active;
    final PredictedPrefixes predictedOrNull; // null when nothing is predicted
    final DecisionJournal journalOrNull; // null where no decisions are kept
    final IndexPipeline indexPipeline;
    final BookingPipeline bookingPipeline;

    /**
     * @param memoryOrNull of the index, closed with this, or at once if this fails; null for memory
     *     of the process
     * @throws OutOfMemoryError if the operating system or the JVM refuses the memory or a thread
     */
    RouterParts(RouterConfig config, PartMaker maker, IndexMemory memoryOrNull) {
        countersOrNull = counters(config, maker, memoryOrNull);
        errors =
                countersOrNull == null
                        ? _ -> {}
                        : error ->
                                countersOrNull.errors().record(error, Clock.systemUTC().millis());
        random = config.random(this::randomFailed);
        IndexPipeline started = null;
        DecisionJournal journal = null;
        try {
            journal = maker.journal(config);
            journalOrNull = journal;
            index = maker.index(config, gate, memoryOrNull);
            board = new LoadBoard(index.config().maxWorkerSlots(), this::listenerFailed);
            marks = new BusyMarks(board.slots(), config.get(RouterSettings.BUSY_LEASE).toNanos());
            engineLoads = new EngineLoads(config.settings(), board, marks, config.clock());
            active = maker.activeRequests(config, board, gate);
            final PredictedPrefixesConfig predicted = config.predictedOrNull();
            predictedOrNull = predicted == null ? null : maker.predicted(predicted, gate);
            lowerOrNull = maker.lowerTiers(config, index, gate);
            started = maker.indexPipeline(config, index, lowerOrNull, errors);
            bookingPipeline = maker.bookingPipeline(config, active, predictedOrNull, errors);
            indexPipeline = started;
        } catch (Throwable t) {
            Closing.after(t, gate, started, journal, countersOrNull);
            throw t;
        }
    }

    /** Logs the first one only: the others come as often as the load changes. */
    private void listenerFailed(Throwable error) {
        if (board.listenerFailures() == 1) {
            LOG.error("a room listener failed; RouterStatus.failures counts further ones", error);
        }
        errors.onError(error);
    }

    /** Logs the first one only: the others come as often as workers are chosen. */
    private void randomFailed(Throwable error) {
        if (randomFailures.incrementAndGet() == 1) {
            LOG.error("the random source failed; RouterStatus.failures counts further ones", error);
        }
        errors.onError(error);
    }

    /** Logs the first one only: the others come as often as its prompts do. */
    void matchFailed(Throwable error) {
        if (matchFailures.incrementAndGet() == 1) {
            LOG.error(
                    "the index is damaged: a match failed, and its request gets no credit for what"
                        + " workers hold; workers are DEGRADED until they are loaded again, a"
                        + " restart begins with an empty index, and RouterStatus.failures counts"
                        + " further ones",
                    error);
        }
        indexPipeline.damaged();
        errors.onError(error);
    }

    /** The first step: from here on the gate has the memory of the index. */
    private CountersFile counters(RouterConfig config, PartMaker maker, IndexMemory memoryOrNull) {
        if (memoryOrNull != null) {
            gate.own(memoryOrNull);
        }
        try {
            return maker.counters(config);
        } catch (Throwable t) {
            gate.close();
            throw t;
        }
    }

    /**
     * Throws {@link ClosedException} once the gate is closed, which a close with time does first.
     */
    void checkOpen() {
        if (gate.isClosed()) {
            throw new ClosedException(NAME);
        }
    }

    /** Reads what is used and what was refused. */
    RouterStatus status(
            long forgottenLeases,
            ReplicaStatus replicaOrNull,
            EventPlaneStatus planeOrNull,
            PolicyFailures policyFailures,
            RouterStatus.Snapshots snapshots) {
        return new RouterStatus(
                usages(),
                new RouterStatus.Refusals(
                        index.capacityRefusals(),
                        index.missingParents(),
                        index.evictedBlocks(),
                        index.unknownParents(),
                        index.invalidStores(),
                        index.conflictingStores(),
                        index.unknownRemovals(),
                        indexPipeline.refused(),
                        bookingPipeline.refused(),
                        active.refusals()),
                active.pathlessBookings(),
                active.expiredLeases(),
                forgottenLeases,
                active.corrections(),
                indexPipeline.failures()
                        + bookingPipeline.failures()
                        + board.listenerFailures()
                        + randomFailures.get()
                        + matchFailures.get(),
                replicaOrNull,
                planeOrNull,
                snapshots,
                policyFailures,
                TierStatus.of(lowerOrNull));
    }

    private List<RouterStatus.Usage> usages() {
        final List<RouterStatus.Usage> usages = new ArrayList<>();
        addUsages("", index, usages);
        for (StorageTier tier : StorageTier.values()) {
            if (lowerOrNull != null && lowerOrNull.isIndexed(tier)) {
                addUsages(
                        tier.name().toLowerCase(Locale.ROOT) + "-",
                        lowerOrNull.indexOrNull(tier),
                        usages);
            }
        }
        usages.add(
                new RouterStatus.Usage(
                        "event-ring",
                        RouterSettings.EVENT_RING_SIZE,
                        indexPipeline.backlog(),
                        indexPipeline.ringSize()));
        usages.add(
                new RouterStatus.Usage(
                        "booking-ring",
                        RouterSettings.MAX_ACTIVE_REQUESTS,
                        bookingPipeline.backlog(),
                        bookingPipeline.ringSize()));
        usages.add(
                new RouterStatus.Usage(
                        "active-requests",
                        RouterSettings.MAX_ACTIVE_REQUESTS,
                        bookingPipeline.openBookings(),
                        bookingPipeline.maxRequests()));
        return usages;
    }

    /** The limits of an index; each tier's is as large as the device's. */
    private static void addUsages(String tier, PrefixIndex of, List<RouterStatus.Usage> usages) {
        usages.add(
                new RouterStatus.Usage(
                        tier + "index-blocks",
                        RouterSettings.MAX_BLOCKS,
                        of.blocks(),
                        of.config().maxBlocks()));
        usages.add(
                new RouterStatus.Usage(
                        tier + "index-held-blocks",
                        RouterSettings.MAX_HELD_BLOCKS,
                        of.heldBlocks(),
                        of.config().maxHeldBlocks()));
        usages.add(
                new RouterStatus.Usage(
                        tier + "index-bytes",
                        RouterSettings.INDEX_BYTES,
                        of.usedBytes(),
                        of.config().budgetBytes()));
    }

    /** Stops the writers, and gives the memory back once no caller is inside. */
    @Override
    public void close() {
        Closing.all(gate, indexPipeline, bookingPipeline, journalOrNull);
    }
}

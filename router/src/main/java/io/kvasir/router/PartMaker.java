package io.kvasir.router;

import io.kvasir.core.counters.CountersFile;
import io.kvasir.core.hash.TokenHasher;
import io.kvasir.core.index.IndexMemory;
import io.kvasir.core.index.LowerTiers;
import io.kvasir.core.index.LowerTiersConfig;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.load.ActiveRequests;
import io.kvasir.core.load.ActiveRequestsConfig;
import io.kvasir.core.load.LoadBoard;
import io.kvasir.core.load.PredictedPrefixes;
import io.kvasir.core.load.PredictedPrefixesConfig;
import io.kvasir.core.memory.MemoryGate;
import io.kvasir.pipeline.booking.BookingPipeline;
import io.kvasir.pipeline.booking.BookingPipelineConfig;
import io.kvasir.pipeline.booking.ReplicaPort;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.source.EventPlane;
import io.kvasir.router.journal.DecisionJournal;
import io.kvasir.router.journal.JournalFile;
import io.kvasir.router.replica.ReplicaConfig;
import io.kvasir.router.replica.ReplicaFleet;
import io.kvasir.router.replica.ReplicaOrigin;
import io.kvasir.router.replica.ReplicaSync;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.spi.StateStore;
import io.kvasir.router.state.FileStateStore;

import org.agrona.ErrorHandler;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/** Makes each part of a router: one method for each step that can fail. Stateless. */
class PartMaker {
    private static final Logger LOG = LoggerFactory.getLogger(PartMaker.class);

    static final String TICKER_THREAD = "kvasir-router-ticker";

    private static final Duration TICK_PERIOD = Duration.ofMillis(200);

    /** The file of counters; null where none is set. */
    CountersFile counters(RouterConfig config) {
        final Path folder = config.get(RouterSettings.COUNTERS_DIR);
        if (folder == null) {
            return null;
        }
        try {
            return RouterCounters.file(config);
        } catch (UncheckedIOException e) {
            throw StorageFailure.of(RouterSettings.COUNTERS_DIR + "=" + folder, e.getCause());
        }
    }

    /** Where decisions are kept; null where none are. */
    DecisionJournal journal(RouterConfig config) {
        final int records = config.get(RouterSettings.DECISION_JOURNAL);
        if (records == 0) {
            return null;
        }
        final int candidates = config.get(RouterSettings.DECISION_JOURNAL_CANDIDATES);
        final int blockSize = config.get(RouterSettings.BLOCK_SIZE);
        final Path folder = config.get(RouterSettings.DECISION_JOURNAL_DIR);
        if (folder == null) {
            return DecisionJournal.inMemory(records, candidates, blockSize);
        }
        try {
            return JournalFile.create(
                    folder, records, candidates, blockSize, Clock.systemUTC().millis());
        } catch (IOException e) {
            throw StorageFailure.of(RouterSettings.DECISION_JOURNAL_DIR + "=" + folder, e);
        }
    }

    /** What was saved of the index; null where nothing is to be. */
    SavedPrefixes savedPrefixes(RouterConfig config) {
        final Path folder = config.get(RouterSettings.STATE_DIR);
        final StateStore given = config.stateStoreOrNull();
        if ((folder == null && given == null) || !config.isIndexed()) {
            return null;
        }
        try {
            return new SavedPrefixes(
                    given == null ? new FileStateStore(folder) : given,
                    config.get(RouterSettings.BLOCK_SIZE),
                    config.get(RouterSettings.MAX_WORKERS),
                    config.neededHashSeed(),
                    config.hashSeed());
        } catch (IOException e) {
            throw StorageFailure.of(
                    given == null
                            ? RouterSettings.STATE_DIR + "=" + folder
                            : SavedPrefixes.nameOf(given),
                    e);
        }
    }

    /** Starts the thread that saves the index. */
    StateKeeper stateKeeper(
            RouterConfig config,
            SavedPrefixes saved,
            Supplier<WorkerSet> workers,
            IndexPipeline pipeline,
            EventPlane planeOrNull,
            ErrorHandler errors) {
        final StateKeeper keeper =
                new StateKeeper(
                        saved,
                        workers,
                        pipeline,
                        planeOrNull,
                        config.get(RouterSettings.SNAPSHOT_INTERVAL),
                        config.get(RouterSettings.SNAPSHOT_CLOSE_TIMEOUT),
                        errors);
        keeper.start();
        return keeper;
    }

    /**
     * The file that has the index; null where it ends with the process.
     *
     * @param seedOrNull seed that its hashes must have; null where any will do
     * @param savedMs until when snapshots follow workers; 0 where there are none
     */
    IndexMemory indexMemory(RouterConfig config, Long seedOrNull, long savedMs) {
        final Path folder = config.get(RouterSettings.STATE_MAPPED_DIR);
        if (folder == null || !config.isIndexed()) {
            return null;
        }
        try {
            return KeptPrefixes.open(
                    folder,
                    RouterConfig.index(config.settings()),
                    config.get(RouterSettings.BLOCK_SIZE),
                    seedOrNull,
                    config.hashSeed(),
                    savedMs);
        } catch (IOException e) {
            throw StorageFailure.of(RouterSettings.STATE_MAPPED_DIR + "=" + folder, e);
        }
    }

    /**
     * @param memoryOrNull the index's from here on, closed with the gate
     */
    PrefixIndex index(RouterConfig config, MemoryGate gate, IndexMemory memoryOrNull) {
        return new PrefixIndex(config.index(), gate, memoryOrNull);
    }

    /** The indexes of the tiers below the device; null where none is followed. */
    LowerTiers lowerTiers(RouterConfig config, PrefixIndex index, MemoryGate gate) {
        final LowerTiersConfig tiers = config.lowerTiersOrNull();
        if (tiers == null) {
            return null;
        }
        if (config.get(RouterSettings.STATE_DIR) != null
                || config.get(RouterSettings.STATE_MAPPED_DIR) != null
                || config.stateStoreOrNull() != null) {
            LOG.info(
                    "blocks in {} are not among what is saved: they count again as their events"
                            + " come",
                    tiers.tiers());
        }
        return new LowerTiers(index, tiers, gate);
    }

    ActiveRequests activeRequests(RouterConfig config, LoadBoard board, MemoryGate gate) {
        return new ActiveRequests(
                new ActiveRequestsConfig(
                        board.slots(),
                        bookings(config).tableEntries(),
                        RouterConfig.index(config.settings()).maxBlocks(),
                        config.get(RouterSettings.MAX_BLOCKS_PER_REQUEST)),
                board,
                gate);
    }

    PredictedPrefixes predicted(PredictedPrefixesConfig config, MemoryGate gate) {
        return new PredictedPrefixes(config, gate);
    }

    IndexPipeline indexPipeline(
            RouterConfig config, PrefixIndex index, LowerTiers lowerOrNull, ErrorHandler errors) {
        final IndexPipeline pipeline =
                new IndexPipeline(config.indexPipeline(), index, lowerOrNull, errors);
        if (config.get(RouterSettings.EAGLE_BLOCKS)) {
            pipeline.expectEagleBlocks();
        }
        return pipeline;
    }

    BookingPipeline bookingPipeline(
            RouterConfig config,
            ActiveRequests active,
            PredictedPrefixes predictedOrNull,
            ErrorHandler errors) {
        return new BookingPipeline(bookings(config), active, predictedOrNull, errors);
    }

    private static BookingPipelineConfig bookings(RouterConfig config) {
        return BookingPipelineConfig.of(config.get(RouterSettings.MAX_ACTIVE_REQUESTS))
                .withWaitMode(config.get(RouterSettings.BOOKING_WAIT))
                .withCountsBlocks(config.get(RouterSettings.TRACK_ACTIVE_BLOCKS))
                .withReplicaRequests(
                        config.replicaLinkOrNull() == null
                                ? 0
                                : config.get(RouterSettings.REPLICA_MAX_BOOKINGS));
    }

    /** Begins to share bookings with the router's replicas. */
    ReplicaSync replicaSync(
            RouterConfig config,
            LongSupplier bookingTimeoutNs,
            ReplicaPort port,
            ReplicaFleet fleet) {
        return new ReplicaSync(
                replicas(config, bookingTimeoutNs), config.replicaLinkOrNull(), port, fleet);
    }

    private static ReplicaConfig replicas(RouterConfig config, LongSupplier bookingTimeoutNs) {
        final int blockSize = config.get(RouterSettings.BLOCK_SIZE);
        final long[] check = new long[1];
        new TokenHasher()
                .localHashes(new int[blockSize], 0, blockSize, blockSize, config.hashSeed(), check);
        return new ReplicaConfig(
                ReplicaOrigin.ofNewRun(
                        config.get(RouterSettings.ROUTER_ID), Clock.systemUTC().instant()),
                check[0],
                config.get(RouterSettings.REPLICA_DIGEST).toNanos(),
                config.get(RouterSettings.REPLICA_LEASE).toNanos(),
                bookingTimeoutNs);
    }

    /** Begins to keep the router's counters in their file. */
    RouterCounters routerCounters(
            CountersFile file, Supplier<RouterStatus> status, Supplier<List<Worker>> workers) {
        return new RouterCounters(file, status, workers, Clock.systemUTC()::millis);
    }

    /** Starts the thread that finds out when prompts are computed. */
    AutoCloseable promptWatch(PromptWatch watch, ErrorHandler errors) {
        watch.start(errors);
        return watch;
    }

    /** Starts the thread that ticks. */
    AutoCloseable ticker(KvRouter router, RouterConfig config, ErrorHandler errors) {
        final RouterTicker ticker =
                new RouterTicker(
                        TICKER_THREAD,
                        TICK_PERIOD,
                        config.clock(),
                        nowNs -> {
                            router.tick(nowNs);
                            return true;
                        },
                        errors);
        ticker.start();
        return ticker;
    }
}

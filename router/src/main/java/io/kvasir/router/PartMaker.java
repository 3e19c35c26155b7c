package io.kvasir.router;

import io.kvasir.core.counters.CountersFile;
import io.kvasir.core.hash.TokenHasher;
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
import io.kvasir.router.replica.ReplicaConfig;
import io.kvasir.router.replica.ReplicaFleet;
import io.kvasir.router.replica.ReplicaOrigin;
import io.kvasir.router.replica.ReplicaSync;
import io.kvasir.router.state.FileStateStore;

import org.agrona.ErrorHandler;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.function.Supplier;

/** Makes each part of a router: one method for each step that can fail. Stateless. */
class PartMaker {
    static final String TICKER_THREAD = "kvasir-router-ticker";

    /** Random numbers of routers, exact as a double, too. */
    private static final long ROUTER_IDS = (1L << 53) - 2;

    private static final Duration TICK_PERIOD = Duration.ofMillis(200);

    /** The file of counters; null where none is set. */
    CountersFile counters(RouterConfig config) {
        return config.get(RouterSettings.COUNTERS_DIR) == null ? null : RouterCounters.file(config);
    }

    /** What was saved of the index; null where nothing is to be. */
    SavedPrefixes savedPrefixes(RouterConfig config) {
        final Path folder = config.get(RouterSettings.STATE_DIR);
        if (folder == null) {
            return null;
        }
        try {
            return new SavedPrefixes(
                    new FileStateStore(folder),
                    config.get(RouterSettings.BLOCK_SIZE),
                    config.neededHashSeed(),
                    config.hashSeed());
        } catch (IOException e) {
            throw new UncheckedIOException("state-dir=" + folder + " cannot be used", e);
        }
    }

    /** Starts the thread that saves the index. */
    AutoCloseable stateKeeper(
            RouterConfig config,
            SavedPrefixes saved,
            Supplier<WorkerSet> workers,
            IndexPipeline pipeline,
            ErrorHandler errors) {
        final StateKeeper keeper =
                new StateKeeper(
                        saved,
                        workers,
                        pipeline,
                        config.get(RouterSettings.SNAPSHOT_INTERVAL),
                        config.get(RouterSettings.SNAPSHOT_CLOSE_TIMEOUT),
                        errors);
        keeper.start();
        return keeper;
    }

    PrefixIndex index(RouterConfig config, MemoryGate gate) {
        return new PrefixIndex(RouterConfig.index(config.settings()), gate);
    }

    ActiveRequests activeRequests(
            RouterConfig config, PrefixIndex index, LoadBoard board, MemoryGate gate) {
        return new ActiveRequests(
                new ActiveRequestsConfig(
                        board.slots(),
                        bookings(config).tableEntries(),
                        index.config().maxBlocks(),
                        config.get(RouterSettings.MAX_BLOCKS_PER_REQUEST)),
                board,
                gate);
    }

    PredictedPrefixes predicted(PredictedPrefixesConfig config, MemoryGate gate) {
        return new PredictedPrefixes(config, gate);
    }

    IndexPipeline indexPipeline(RouterConfig config, PrefixIndex index, ErrorHandler errors) {
        return new IndexPipeline(RouterConfig.indexPipeline(config.settings()), index, errors);
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
    ReplicaSync replicaSync(RouterConfig config, ReplicaPort port, ReplicaFleet fleet) {
        return new ReplicaSync(replicas(config), config.replicaLinkOrNull(), port, fleet);
    }

    private static ReplicaConfig replicas(RouterConfig config) {
        final Long set = config.get(RouterSettings.ROUTER_ID);
        final long id = set == null ? 1 + (new SecureRandom().nextLong() & ROUTER_IDS) : set;
        final Instant now = Clock.systemUTC().instant();
        final int blockSize = config.get(RouterSettings.BLOCK_SIZE);
        final long[] check = new long[1];
        new TokenHasher()
                .localHashes(new int[blockSize], 0, blockSize, blockSize, config.hashSeed(), check);
        return new ReplicaConfig(
                new ReplicaOrigin(id, ChronoUnit.MICROS.between(Instant.EPOCH, now)),
                check[0],
                config.get(RouterSettings.REPLICA_DIGEST).toNanos(),
                config.get(RouterSettings.REPLICA_LEASE).toNanos(),
                config.get(RouterSettings.BOOKING_TIMEOUT).toNanos());
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

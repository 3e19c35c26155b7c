package io.kvasir.gateway.upstream;

import io.kvasir.core.memory.ClosedException;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.router.KvRouter;
import io.kvasir.router.RouterConfig;
import io.kvasir.router.RouterSettings;
import io.kvasir.router.Settings;
import io.kvasir.router.replica.ReplicaLink;

import org.agrona.CloseHelper;

import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.function.BiFunction;

/**
 * The routers of a gateway's pools. That of the prefill workers is made when the first of them is
 * registered and stays from then on, so that it costs nothing where there is none. Any thread.
 */
public final class PoolRouters implements AutoCloseable {
    private static final String PREFILL_COUNTERS = "prefill";
    private static final String PREFILL_STATE = "prefill";

    private final GatewayConfig config;
    private final BiFunction<Settings, ReplicaLink, KvRouter> maker;
    private final KvRouter main;
    private volatile KvRouter prefillOrNull; // written under this
    private boolean closed; // guarded by this

    /**
     * Makes the router of the main pool.
     *
     * @throws GatewayException if there is no memory for it, or its counters cannot be kept; the
     *     message names the knob to turn
     */
    public PoolRouters(GatewayConfig config) {
        this(config, PoolRouters::router);
    }

    /**
     * @param maker makes a router of its settings and its link to replicas, which may be null
     */
    PoolRouters(GatewayConfig config, BiFunction<Settings, ReplicaLink, KvRouter> maker) {
        this.config = config;
        this.maker = maker;
        main = make(config.settings(), WorkerPool.MAIN);
    }

    private static KvRouter router(Settings settings, ReplicaLink linkOrNull) {
        final RouterConfig.Builder builder = KvRouter.builder().settings(settings);
        return linkOrNull == null ? builder.build() : builder.replicaLink(linkOrNull).build();
    }

    private KvRouter make(Settings settings, WorkerPool pool) {
        final ReplicaLink link = ReplicaLinks.openOrNull(config, pool);
        try {
            return make(settings, link);
        } catch (RuntimeException e) {
            CloseHelper.close(link);
            throw e;
        }
    }

    private KvRouter make(Settings settings, ReplicaLink linkOrNull) {
        try {
            return maker.apply(settings, linkOrNull);
        } catch (OutOfMemoryError e) {
            throw new GatewayException(
                    "no memory for the index and the bookings: max-blocks="
                            + config.get(RouterSettings.MAX_BLOCKS)
                            + ", index-bytes="
                            + config.get(RouterSettings.INDEX_BYTES)
                            + ", max-tree-size="
                            + config.get(RouterSettings.MAX_TREE_SIZE)
                            + ", max-active-requests="
                            + config.get(RouterSettings.MAX_ACTIVE_REQUESTS)
                            + "; lower them: "
                            + e.getMessage(),
                    e);
        } catch (UncheckedIOException e) {
            throw new GatewayException(e.getMessage() + ": " + e.getCause(), e);
        } catch (IllegalStateException e) {
            throw new GatewayException(e.getMessage(), e);
        }
    }

    /** The router of the main pool. */
    public KvRouter main() {
        return main;
    }

    /** The router of a pool; null as long as it has never had a worker. */
    public KvRouter of(WorkerPool pool) {
        return pool == WorkerPool.MAIN ? main : prefillOrNull;
    }

    /**
     * The router of a pool, made if there is none.
     *
     * @throws GatewayException if it cannot be made; the message names the pool and the knob
     * @throws ClosedException if they are closed
     */
    synchronized KvRouter ready(WorkerPool pool) {
        if (closed) {
            throw new ClosedException("the gateway");
        }
        if (of(pool) == null) {
            try {
                prefillOrNull = make(prefillSettings(), WorkerPool.PREFILL);
            } catch (GatewayException e) {
                throw new GatewayException("the prefill pool: " + e.getMessage(), e);
            }
        }
        return of(pool);
    }

    private Settings prefillSettings() {
        final Settings.Builder settings =
                config.settings().toBuilder()
                        .set(RouterSettings.MODE, config.get(GatewaySettings.PREFILL_MODE))
                        .set(
                                RouterSettings.OVERLAP_WEIGHT,
                                config.get(GatewaySettings.PREFILL_OVERLAP_WEIGHT))
                        .set(RouterSettings.TRACK_ACTIVE_BLOCKS, false);
        final Path counters = config.get(RouterSettings.COUNTERS_DIR);
        if (counters != null) {
            settings.set(RouterSettings.COUNTERS_DIR, counters.resolve(PREFILL_COUNTERS));
        }
        final Path state = config.get(RouterSettings.STATE_DIR);
        if (state != null) {
            settings.set(RouterSettings.STATE_DIR, state.resolve(PREFILL_STATE));
        }
        return settings.build();
    }

    /** Bookings of all pools that are not released yet. */
    public int activeLeases() {
        final KvRouter prefill = prefillOrNull;
        return main.activeLeases() + (prefill == null ? 0 : prefill.activeLeases());
    }

    /** Closes the routers, also one that is being made at this moment: waits for it. */
    @Override
    public synchronized void close() {
        closed = true;
        CloseHelper.closeAll(prefillOrNull, main);
    }
}

package io.kvasir.gateway.upstream;

import io.kvasir.core.closing.Closing;
import io.kvasir.core.memory.ClosedException;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.PrefillSettings;
import io.kvasir.gateway.log.LogText;
import io.kvasir.nats.events.PlaneSnapshots;
import io.kvasir.pipeline.source.EventPlane;
import io.kvasir.pipeline.source.LoadPlane;
import io.kvasir.registry.FailureText;
import io.kvasir.router.KvRouter;
import io.kvasir.router.RouterConfig;
import io.kvasir.router.queue.RouterQueue;
import io.kvasir.router.replica.ReplicaLink;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Settings;
import io.kvasir.router.spi.StateStore;
import io.kvasir.router.spi.StateStoreProvider;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/**
 * The routers of a model's pools. That of the prefill workers is made when the first of them is
 * registered and stays from then on, so that it costs nothing where there is none. Any thread.
 */
public final class PoolRouters implements AutoCloseable {
    private final GatewayConfig config;
    private final Function<RouterConfig.Builder, KvRouter> maker;
    private final KvRouter main;
    private volatile RouterQueue mainQueueOrNull; // null where no request has waited yet
    private volatile KvRouter prefillOrNull; // written under this
    private volatile RouterQueue prefillQueueOrNull; // likewise, written before the router
    private boolean closed; // guarded by this
    private boolean queuesClosed; // guarded by this; no further one is made then
    private long version = 1; // guarded by this; of the settings

    /**
     * Makes the router of the main pool.
     *
     * @throws GatewayException if there is no memory for it, or its counters cannot be kept; the
     *     message names the knob to turn
     */
    public PoolRouters(GatewayConfig config) {
        this(config, RouterConfig.Builder::build);
    }

    /**
     * @param maker makes a router of what it is made by
     */
    PoolRouters(GatewayConfig config, Function<RouterConfig.Builder, KvRouter> maker) {
        this.config = config;
        this.maker = maker;
        main = make(config.settings(), WorkerPool.MAIN);
        try {
            mainQueueOrNull = queueOrNull(main);
        } catch (Throwable t) {
            Closing.after(t, main);
            throw t;
        }
    }

    /** A store of snapshots that shows other processes what it has; null for the usual one. */
    private static StateStore storeOrNull(Settings settings) {
        if (!sharesState(settings)) {
            return null;
        }
        try {
            return StateStoreProvider.openFirst(
                    settings.get(RouterSettings.STATE_DIR),
                    settings.get(GatewaySettings.SHARED_MEMORY_DIR));
        } catch (IOException e) {
            throw unusableState(settings, e);
        }
    }

    /** Whether a router's store of snapshots shows other processes what it has. */
    public static boolean sharesState(Settings settings) {
        return RouterConfig.keepsIndex(settings)
                && settings.get(RouterSettings.STATE_DIR) != null
                && settings.get(GatewaySettings.SHARED_MEMORY_DIR) != null;
    }

    /** Says that such a store cannot be used. */
    public static GatewayException unusableState(Settings settings, IOException cause) {
        return new GatewayException(
                "state-dir="
                        + settings.get(RouterSettings.STATE_DIR)
                        + " with shared-memory-dir="
                        + settings.get(GatewaySettings.SHARED_MEMORY_DIR)
                        + " cannot be used: "
                        + FailureText.withFile(cause),
                cause);
    }

    /**
     * Makes those of several models, or of none.
     *
     * @param models what holds for each
     * @throws GatewayException if those of one cannot be made; the message names it
     */
    public static List<PoolRouters> open(List<GatewayConfig> models) {
        final List<PoolRouters> all = new ArrayList<>();
        try {
            for (GatewayConfig model : models) {
                all.add(open(model, models.size() > 1));
            }
            return all;
        } catch (Throwable t) {
            Closing.after(t, all.toArray(PoolRouters[]::new));
            throw t;
        }
    }

    private static PoolRouters open(GatewayConfig model, boolean named) {
        try {
            return new PoolRouters(model);
        } catch (GatewayException e) {
            throw named ? new GatewayException(ofModel(model, e.getMessage()), e) : e;
        }
    }

    /** A problem of one model of several. */
    public static String ofModel(GatewayConfig model, String problem) {
        return "model " + LogText.of(model.get(GatewaySettings.MODEL)) + ": " + problem;
    }

    private KvRouter make(Settings settings, WorkerPool pool) {
        final RouterConfig.Builder builder = KvRouter.builder().settings(settings);
        final boolean indexed = RouterConfig.keepsIndex(settings); // else nothing feeds or keeps it
        final PlaneSnapshots snapshots = indexed ? SharedSnapshots.openOrNull(config, pool) : null;
        StateStore store = null;
        ReplicaLink link = null;
        try {
            if (snapshots != null) {
                builder.planeState(snapshots);
            }
            final Function<EventPlane, AutoCloseable> events =
                    indexed ? EventPlanes.sourceOrNull(config, pool, snapshots) : null;
            if (events != null) {
                builder.eventPlane(events);
            }
            final Function<LoadPlane, AutoCloseable> loads = EventPlanes.loadsOrNull(config, pool);
            if (loads != null && settings.get(RouterSettings.ENGINE_LOAD)) {
                builder.loadPlane(loads);
            }
            store = storeOrNull(settings);
            if (store != null) {
                builder.stateStore(store);
            }
            link = ReplicaLinks.openOrNull(config, pool);
            if (link != null) {
                builder.replicaLink(link);
            }
            return make(builder);
        } catch (Throwable t) {
            Closing.after(t, link, store, snapshots);
            throw t;
        }
    }

    private KvRouter make(RouterConfig.Builder builder) {
        try {
            return maker.apply(builder);
        } catch (OutOfMemoryError | UncheckedIOException | IllegalStateException e) {
            throw new GatewayException(e.getMessage(), e);
        }
    }

    private RouterQueue queueOrNull(KvRouter router) {
        return !queuesClosed && RouterQueue.isNeeded(router.settings())
                ? RouterQueue.start(router)
                : null;
    }

    /**
     * Where requests wait for workers of a pool; null where they have never been to, or it has
     * none.
     */
    public RouterQueue queueOrNull(WorkerPool pool) {
        return pool == WorkerPool.MAIN ? mainQueueOrNull : prefillQueueOrNull;
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
                final Settings settings = PrefillSettings.of(config);
                final KvRouter made = make(settings, WorkerPool.PREFILL);
                try {
                    made.change(settings, version);
                    prefillQueueOrNull = queueOrNull(made);
                } catch (Throwable t) {
                    Closing.after(t, made);
                    throw t;
                }
                prefillOrNull = made;
            } catch (GatewayException e) {
                throw new GatewayException("the prefill pool: " + e.getMessage(), e);
            }
        }
        return of(pool);
    }

    /**
     * Checks that the routers would take the settings of another configuration. That one can be
     * made of them which is not yet, {@link GatewayConfig} has checked.
     *
     * @throws IllegalArgumentException if one would not
     */
    public void checkChange(GatewayConfig wanted) {
        main.checkChange(wanted.settings());
        final KvRouter prefill = prefillOrNull;
        if (prefill != null) {
            try {
                prefill.checkChange(PrefillSettings.of(wanted));
            } catch (IllegalArgumentException e) {
                throw new IllegalArgumentException("the prefill pool: " + e.getMessage(), e);
            }
        }
    }

    /**
     * Has the routers take the settings that the configuration has now.
     *
     * @param now by which decisions name them, also those of routers that are made later
     * @throws IllegalArgumentException as of {@link #checkChange}
     */
    public synchronized void settingsChanged(long now) {
        version = now;
        main.change(config.settings(), now);
        if (mainQueueOrNull == null) {
            mainQueueOrNull = queueOrNull(main); // it stays: what waits in it is to be served
        }
        if (prefillOrNull != null) {
            prefillOrNull.change(PrefillSettings.of(config), now);
            if (prefillQueueOrNull == null) {
                prefillQueueOrNull = queueOrNull(prefillOrNull);
            }
        }
    }

    /** Bookings of all pools that are not released yet. */
    public int activeLeases() {
        final KvRouter prefill = prefillOrNull;
        return main.activeLeases() + (prefill == null ? 0 : prefill.activeLeases());
    }

    /** Refuses what waits for workers, from now on; what is booked continues. */
    public void closeQueues() {
        synchronized (this) {
            queuesClosed = true;
        }
        Closing.all(prefillQueueOrNull, mainQueueOrNull);
    }

    /**
     * Closes the routers and what waits for them, also one that is being made at this moment: waits
     * for it.
     */
    @Override
    public synchronized void close() {
        closed = true;
        queuesClosed = true;
        Closing.all(prefillQueueOrNull, mainQueueOrNull, prefillOrNull, main);
    }
}

package io.kvasir.cli.demo;

import io.kvasir.cli.console.CommandFailure;
import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.RouterSettings;
import io.kvasir.router.RoutingMode;
import io.kvasir.router.Worker;
import io.kvasir.sim.SimClock;
import io.kvasir.sim.SimConfig;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.SimState;

import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/**
 * A gateway and simulated engines in this process, talking over real sockets. Starts with empty
 * caches and an empty index. Owned by one thread; closing ends everything and may be done from
 * another.
 */
public final class Cluster implements AutoCloseable {
    private static final Duration READY_TIMEOUT = Duration.ofSeconds(15);
    private static final long POLL_MS = 10;

    private final List<SimEngine> engines = new ArrayList<>();
    private final SimClock clock;
    private GatewayServer gateway;

    private Cluster(SimClock clock) {
        this.clock = clock;
    }

    /**
     * What to start.
     *
     * @param host address that the gateway listens on
     * @param port of the gateway; 0 = any free one
     * @param engines number of engines
     * @param engine settings of each; the seed must differ between engines, so it is made per
     *     engine
     * @param gateway settings of the gateway but for address, mode, model, block size and workers
     */
    public record Plan(
            String host,
            int port,
            int engines,
            Supplier<SimConfig> engine,
            Supplier<GatewayConfig.Builder> gateway) {}

    /**
     * Starts engines and gateway and waits until the gateway follows every engine's events.
     *
     * @throws CommandFailure when the gateway does not come up in time
     */
    public static Cluster start(Plan plan, RoutingMode mode) throws InterruptedException {
        return start(plan, mode, SimClock.system());
    }

    /**
     * The same with engines that compute in the time of a clock.
     *
     * @throws CommandFailure when the gateway does not come up in time
     */
    static Cluster start(Plan plan, RoutingMode mode, SimClock clock) throws InterruptedException {
        final Cluster cluster = new Cluster(clock);
        try {
            cluster.begin(plan, mode);
            cluster.awaitReady();
            return cluster;
        } catch (RuntimeException | InterruptedException e) {
            cluster.close();
            throw e;
        }
    }

    private void begin(Plan plan, RoutingMode mode) {
        final List<WorkerConfig> workers = new ArrayList<>();
        SimConfig engineConfig = null;
        for (int i = 0; i < plan.engines(); i++) {
            engineConfig = plan.engine().get();
            final SimEngine engine = SimEngine.start(engineConfig, clock);
            engines.add(engine);
            // simulated engines announce every copy of a block; nothing is to be guessed
            workers.add(
                    WorkerConfig.parse(
                            engine.url()
                                    + ",name=sim-"
                                    + i
                                    + ",events="
                                    + engine.eventsEndpoint(0)
                                    + ",replay="
                                    + engine.replayEndpoint(0)
                                    + ",removals=physical"));
        }
        gateway =
                GatewayServer.start(
                        plan.gateway()
                                .get()
                                .set(GatewaySettings.HOST, plan.host())
                                .set(GatewaySettings.PORT, plan.port())
                                .set(GatewaySettings.ADMIN_PORT, 0L)
                                .set(GatewaySettings.TRUSTED_NETWORKS, List.of("127.0.0.1"))
                                .set(GatewaySettings.MODEL, engineConfig.model())
                                .set(RouterSettings.BLOCK_SIZE, engineConfig.blockSize())
                                .set(RouterSettings.MODE, mode)
                                .set(GatewaySettings.WORKERS, workers)
                                .build());
    }

    private void awaitReady() throws InterruptedException {
        final long endNs = System.nanoTime() + READY_TIMEOUT.toNanos();
        while (!ready()) {
            if (System.nanoTime() > endNs) {
                throw new CommandFailure(
                        "the gateway does not follow its simulated engines' events after "
                                + READY_TIMEOUT.toSeconds()
                                + " s: "
                                + gateway.router().workers());
            }
            Thread.sleep(POLL_MS);
        }
    }

    private boolean ready() {
        for (Worker worker : gateway.router().workers()) {
            if (worker.state() != IndexState.EXACT) {
                return false;
            }
        }
        return true;
    }

    /** Base URL of the gateway. */
    public URI url() {
        return URI.create("http://127.0.0.1:" + gateway.port());
    }

    /** Base URL of the gateway's admin port. */
    public URI adminUrl() {
        return URI.create("http://127.0.0.1:" + gateway.adminPort());
    }

    int engineCount() {
        return engines.size();
    }

    /** Requests that have reached an engine. */
    long arrivals() {
        return engines.stream()
                .map(engine -> engine.state(0))
                .mapToLong(state -> state.admitted() + state.waiting())
                .sum();
    }

    /**
     * Whether the gateway knows all that its engines have done: every event is applied, and the
     * bookings of requests that have ended are released.
     */
    boolean isSettled() {
        final List<Worker> workers = gateway.router().workers();
        for (int i = 0; i < engines.size(); i++) {
            final SimState engine = engines.get(i).state(0);
            final Worker worker = workers.get(i);
            if (worker.eventSequence() != engine.lastSequence()
                    || worker.activeRequests() != engine.running() + engine.waiting()) {
                return false;
            }
        }
        return true;
    }

    @Override
    public void close() {
        if (gateway != null) {
            gateway.close();
        }
        engines.forEach(SimEngine::close);
    }
}

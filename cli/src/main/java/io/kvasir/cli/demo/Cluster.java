package io.kvasir.cli.demo;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.console.CommandFailure;
import io.kvasir.cli.console.Json;
import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimClock;
import io.kvasir.sim.config.SimConfig;

import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * A gateway and simulated engines in this process, talking over real sockets. Starts with empty
 * caches and an empty index. Owned by one thread; closing ends everything and may be done from
 * another.
 */
public final class Cluster implements AutoCloseable {
    private static final Duration READY_TIMEOUT = Duration.ofMinutes(1);
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
     * @param engines settings of each engine, with seeds that differ; all of one model
     * @param gateway settings of the gateway but for address, mode, model, block size and workers
     */
    public record Plan(
            String host,
            int port,
            List<SimConfig> engines,
            Supplier<GatewayConfig.Builder> gateway) {

        /** Engines whose seeds alone differ, as random ones do. */
        public static List<SimConfig> same(int count, Supplier<SimConfig> engine) {
            return Stream.generate(engine).limit(count).toList();
        }
    }

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
        for (SimConfig config : plan.engines()) {
            final SimEngine engine = SimEngine.start(config, clock);
            // simulated engines announce every copy of a block; nothing is to be guessed
            final String rest = ",removals=physical,name=sim-" + engines.size();
            engines.add(engine);
            workers.add(WorkerConfig.parse(WorkerFlag.of(engine) + rest));
        }
        final SimConfig first = plan.engines().getFirst();
        gateway =
                GatewayServer.start(
                        plan.gateway()
                                .get()
                                .set(GatewaySettings.HOST, plan.host())
                                .set(GatewaySettings.PORT, plan.port())
                                .set(GatewaySettings.ADMIN_PORT, 0L)
                                .set(GatewaySettings.TRUSTED_NETWORKS, List.of("127.0.0.1"))
                                .set(GatewaySettings.MODEL, first.model())
                                .set(RouterSettings.BLOCK_SIZE, first.blockSize())
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
                                + gateway.workersPage());
            }
            Thread.sleep(POLL_MS);
        }
    }

    /** Whether it follows them all, prefill workers too. */
    private boolean ready() {
        for (JsonNode worker : workers()) {
            if (!worker.path("index_state").asText().equals("exact")) {
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

    /** The engines, in the order of their workers. */
    List<SimEngine> engines() {
        return List.copyOf(engines);
    }

    /** What the gateway says of its workers. */
    JsonNode workers() {
        return Json.parse(gateway.workersPage()).path("workers");
    }

    @Override
    public void close() {
        if (gateway != null) {
            gateway.close();
        }
        engines.forEach(SimEngine::close);
    }

    /** Closes without waiting for requests that run: they are cut. */
    void cut() {
        if (gateway != null) {
            gateway.cut();
        }
        engines.forEach(SimEngine::close);
    }
}

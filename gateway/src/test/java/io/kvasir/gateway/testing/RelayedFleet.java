package io.kvasir.gateway.testing;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.pipeline.publish.ZmqKvEventPublisher;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.router.Worker;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.testsupport.Eventually;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;

/**
 * Simulated engines, the relays of their events, and a gateway, which knows engine {@code n} as
 * worker {@code wn}. Used by one thread; all of it ends with {@link #close}.
 */
public final class RelayedFleet implements AutoCloseable {
    private final Random random;
    private final List<SimEngine> engines = new ArrayList<>();
    private final List<ZmqKvEventPublisher> relays = new ArrayList<>();
    private GatewayServer gateway; // null before the start

    /**
     * A fleet without engines.
     *
     * @param seed of the prompts
     */
    public RelayedFleet(long seed) {
        random = new Random(seed);
    }

    /** Starts a further engine. */
    public SimEngine add() {
        final SimEngine engine =
                SimEngine.start(
                        SimConfig.builder()
                                .model("m")
                                .blocks(300) // so few that some are evicted
                                .prefillTokensPerSecond(1_000_000)
                                .interTokenMillis(0.1)
                                .build());
        engines.add(engine);
        return engine;
    }

    /** An engine by its number, from 0. */
    public SimEngine engine(int number) {
        return engines.get(number);
    }

    /** Where a relay gets the events of an engine. */
    public SourceConfig events(int number) {
        return SourceConfig.of("e", 0, 16, engine(number).eventsEndpoint(0))
                .withReplayEndpoint(engine(number).replayEndpoint(0));
    }

    /** Closes a relay with the fleet. */
    public void relay(ZmqKvEventPublisher relay) {
        relays.add(relay);
    }

    /** A relay by its number, from 0. */
    public ZmqKvEventPublisher relay(int number) {
        return relays.get(number);
    }

    /** Starts a gateway, the former one having been closed. */
    public void start(GatewayConfig.Builder config) throws InterruptedException {
        gateway = Gateways.started(config);
    }

    /** The gateway; null before its start. */
    public GatewayServer gateway() {
        return gateway;
    }

    /** Sends prompts of 1..12 whole blocks and a part, of which four share their first blocks. */
    public void serve(int prompts) throws Exception {
        for (int i = 0; i < prompts; i++) {
            final int[] prompt = new int[16 * (1 + random.nextInt(12)) + 3];
            final int shared = random.nextInt(4);
            for (int t = 0; t < prompt.length; t++) {
                prompt[t] = t < 64 ? 1_000 + shared : 1_000 + random.nextInt(50_000);
            }
            final String body =
                    "{\"model\":\"m\",\"max_tokens\":4,\"ignore_eos\":true,\"prompt\":"
                            + Arrays.toString(prompt)
                            + "}";
            assertEquals(200, Gateways.post(gateway, "/v1/completions", body).statusCode());
        }
    }

    /** Waits until the index has exactly what the engines hold. */
    public void awaitTruth() throws InterruptedException {
        Eventually.holds(
                "the index holds what the engines hold, and every worker's state is EXACT",
                () -> IndexedBlocks.of(gateway.router()).equals(truth()) && isExact());
    }

    private boolean isExact() {
        return gateway.router().workers().stream()
                .allMatch(worker -> worker.state() == IndexState.EXACT);
    }

    private Map<String, Set<Long>> truth() {
        final Map<String, Set<Long>> truth = new HashMap<>();
        for (Worker worker : gateway.router().workers()) {
            final int engine = worker.name().charAt(1) - '0';
            truth.put(worker.name(), new TreeSet<>(engine(engine).heldBlocks(0).keySet()));
        }
        return truth;
    }

    /** Waits until some worker's index has a state. */
    public void awaitAny(String what, IndexState state) throws InterruptedException {
        Eventually.holds(
                what,
                () ->
                        gateway.router().workers().stream()
                                .anyMatch(worker -> worker.state() == state));
    }

    @Override
    public void close() {
        if (gateway != null) {
            gateway.close();
        }
        relays.forEach(ZmqKvEventPublisher::close);
        engines.forEach(SimEngine::close);
    }
}

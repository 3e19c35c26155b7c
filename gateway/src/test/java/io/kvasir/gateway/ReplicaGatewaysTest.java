package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.ModelConfig;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Worker;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.NatsServer;
import io.kvasir.testsupport.RunningNats;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.net.URI;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;

/** Two gateways over the same simulated engines, with a real NATS server between them. */
@Tag("integration")
class ReplicaGatewaysTest {
    private static final int ENGINES = 4;
    private static final int ROUNDS = 8;
    private static final String BODY =
            "{\"model\":\"m\",\"max_tokens\":600,\"ignore_eos\":true,\"prompt\":"
                    + Arrays.toString(new int[40])
                    + "}";

    @TempDir Path folder;

    private final List<SimEngine> engines = new ArrayList<>();
    private final List<GatewayServer> gateways = new ArrayList<>();
    private NatsServer nats;

    @AfterEach
    void stop() throws InterruptedException {
        gateways.forEach(GatewayServer::close);
        engines.forEach(SimEngine::close);
        if (nats != null) {
            nats.stop();
        }
    }

    /** Engines that compute a prompt for longer than a test lasts, so that it stays load. */
    private void start(boolean sync) throws Exception {
        startNats();
        final WorkerConfig[] workers = new WorkerConfig[ENGINES];
        for (int i = 0; i < ENGINES; i++) {
            engines.add(
                    SimEngine.start(
                            SimConfig.builder()
                                    .model("m")
                                    .blocks(512)
                                    .prefillTokensPerSecond(0.1)
                                    .build()));
            workers[i] = WorkerConfig.parse(engines.get(i).url() + ",name=w" + i);
        }
        for (int i = 0; i < 2; i++) {
            final GatewayConfig.Builder config = Gateways.config(workers);
            config.set(GatewaySettings.REPLICA_SYNC, sync);
            config.set(GatewaySettings.NATS_URL, nats.url());
            gateways.add(GatewayServer.start(config.build()));
            Gateways.awaitContact(gateways.get(i));
        }
        if (sync) {
            for (GatewayServer gateway : gateways) {
                Eventually.holds(
                        "each sees the other",
                        () -> gateway.router().status().replicaOrNull().peers() == 1);
            }
        }
    }

    private void startNats() throws InterruptedException {
        nats = RunningNats.started(folder);
    }

    /** An engine of each model that computes as long as a test lasts, under several names. */
    private GatewayServer startWithModels(String... namesAndModels) throws Exception {
        if (engines.isEmpty()) {
            for (String model : List.of("m", "n")) {
                engines.add(
                        SimEngine.start(
                                SimConfig.builder()
                                        .model(model)
                                        .blocks(512)
                                        .prefillTokensPerSecond(0.1)
                                        .build()));
            }
        }
        final WorkerConfig[] workers =
                Arrays.stream(namesAndModels)
                        .map(keys -> WorkerConfig.parse(url(keys) + "," + keys))
                        .toArray(WorkerConfig[]::new);
        final GatewayServer gateway =
                Gateways.started(
                        Gateways.config(workers)
                                .set(GatewaySettings.MODELS, List.of(ModelConfig.parse("name=n")))
                                .set(GatewaySettings.REPLICA_SYNC, true)
                                .set(GatewaySettings.NATS_URL, nats.url()));
        gateways.add(gateway);
        return gateway;
    }

    private URI url(String keys) {
        return engines.get(keys.endsWith("model=n") ? 1 : 0).url();
    }

    private static long booked(GatewayServer gateway, String model, String worker) {
        return gateway.router(model).workers().stream()
                .filter(w -> w.name().equals(worker))
                .mapToLong(Worker::activeRequests)
                .sum();
    }

    @Test
    void bookingsOfOneModelAreNotTakenForAnothers() throws Exception {
        startNats();
        final GatewayServer here =
                startWithModels("name=w0", "name=w1,model=n", "name=m2", "name=n2,model=n");
        final GatewayServer there = // two names are of the other model here
                startWithModels("name=w0,model=n", "name=w1", "name=m2", "name=n2,model=n");
        for (GatewayServer gateway : gateways) {
            for (String model : List.of("m", "n")) {
                Eventually.holds(
                        model + " sees the other gateway",
                        () -> gateway.router(model).status().replicaOrNull().peers() == 1);
            }
        }
        final List<CompletableFuture<?>> requests = new ArrayList<>();
        for (String worker : List.of("m/w0", "n/w1", "m/m2", "n/n2")) {
            final String model = worker.substring(0, 1);
            requests.add(
                    Gateways.postAsync(
                            here,
                            "/v1/completions",
                            BODY.replace("\"m\"", "\"" + model + "\""),
                            "x-kvasir-worker",
                            worker.substring(2)));
            Eventually.holds(
                    worker + " is booked", () -> booked(here, model, worker.substring(2)) == 1);
        }
        Eventually.holds("its bookings are known", () -> booked(there, "m", "m2") == 1);
        Eventually.holds("those of the other, too", () -> booked(there, "n", "n2") == 1);
        assertEquals(0, booked(there, "n", "w0"), "this name is another worker's there");
        assertEquals(0, booked(there, "m", "w1"));
        requests.forEach(request -> request.cancel(true));
        Eventually.holds("they have ended", () -> booked(there, "n", "n2") == 0);
    }

    private CompletableFuture<?> send(int number) {
        return Gateways.postAsync(gateways.get(number % 2), "/v1/completions", BODY);
    }

    private static long requests(KvRouter router) {
        return router.workers().stream().mapToLong(Worker::activeRequests).sum();
    }

    private static Map<String, List<Long>> loads(KvRouter router) {
        final Map<String, List<Long>> loads = new TreeMap<>();
        for (Worker w : router.workers()) {
            loads.put(w.name(), List.of(w.activeRequests(), w.prefillTokens(), w.activeBlocks()));
        }
        return loads;
    }

    /** What is booked through each gateway itself, by worker. */
    private long most() {
        final long[] byEngine = new long[ENGINES];
        for (GatewayServer gateway : gateways) {
            for (Worker w : gateway.router().workers()) {
                byEngine[w.name().charAt(1) - '0'] += w.activeRequests();
            }
        }
        return Arrays.stream(byEngine).max().orElseThrow();
    }

    private void endAll(List<CompletableFuture<?>> requests) throws InterruptedException {
        requests.forEach(request -> request.cancel(true));
        for (GatewayServer gateway : gateways) {
            Eventually.holds(
                    "nothing is booked any more",
                    () ->
                            loads(gateway.router()).values().stream()
                                    .allMatch(List.of(0L, 0L, 0L)::equals));
        }
    }

    @Test
    void identicalRequestsThroughTwoGatewaysSpreadAsThroughOne() throws Exception {
        start(true);
        for (int round = 0; round < ROUNDS; round++) {
            final List<CompletableFuture<?>> requests = new ArrayList<>();
            for (int i = 0; i < ENGINES; i++) {
                requests.add(send(round + i));
                final int sent = i + 1;
                for (GatewayServer gateway : gateways) {
                    Eventually.holds("both know of all", () -> requests(gateway.router()) == sent);
                }
            }
            Eventually.holds(
                    "both see the same",
                    () -> loads(gateways.get(0).router()).equals(loads(gateways.get(1).router())));
            for (GatewayServer gateway : gateways) {
                for (Worker w : gateway.router().workers()) {
                    assertEquals(1, w.activeRequests(), "each has one of them: " + w);
                }
            }
            assertEquals(loads(gateways.get(0).router()), loads(gateways.get(1).router()));
            endAll(requests);
        }
        final JsonNode page = GatewayHttpTest.json(Gateways.get(gateways.get(0), "/debug/workers"));
        assertEquals(1, page.at("/replicas/heard_of").intValue(), page.toPrettyString());
        assertEquals(0, page.at("/replicas/lost").intValue(), page.toPrettyString());
        assertTrue(page.at("/replicas/applied").intValue() > 0, page.toPrettyString());
        final String metrics = Gateways.get(gateways.get(0), "/metrics").body();
        assertTrue(metrics.contains("kvasir_replicas 1.0"), metrics);
    }

    @Test
    void withoutSyncTheyHerd() throws Exception {
        start(false);
        int herded = 0;
        for (int round = 0; round < ROUNDS; round++) {
            final List<CompletableFuture<?>> requests = new ArrayList<>();
            for (int i = 0; i < ENGINES; i++) {
                requests.add(send(i));
                final int sent = i + 1;
                Eventually.holds(
                        "it is booked",
                        () ->
                                requests(gateways.get(0).router())
                                                + requests(gateways.get(1).router())
                                        == sent);
            }
            herded += most() > 1 ? 1 : 0;
            endAll(requests);
        }
        assertTrue(herded > 0, "the two choose the same worker now and then");
    }

    @Test
    void loadsAreEqualAfterABurstAndNothingAtItsEnd() throws Exception {
        start(true);
        final List<CompletableFuture<?>> requests = new ArrayList<>();
        for (int i = 0; i < 24; i++) {
            requests.add(send(i));
        }
        for (GatewayServer gateway : gateways) {
            Eventually.holds("all are known", () -> requests(gateway.router()) == 24);
        }
        Eventually.holds(
                "both see the same",
                () -> loads(gateways.get(0).router()).equals(loads(gateways.get(1).router())));
        endAll(requests);
    }

    @Test
    void bookingsThatNatsDidNotCarryAreRepairedWhenItIsBack() throws Exception {
        start(true);
        nats.stop();
        final List<CompletableFuture<?>> requests = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            requests.add(send(i));
        }
        for (GatewayServer gateway : gateways) {
            Eventually.holds("each serves its own", () -> requests(gateway.router()) >= 3);
        }
        nats.start();
        for (GatewayServer gateway : gateways) {
            Eventually.holds("each knows of all", () -> requests(gateway.router()) == 6);
        }
        endAll(requests);
    }
}

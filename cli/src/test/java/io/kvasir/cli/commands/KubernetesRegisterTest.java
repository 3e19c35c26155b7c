package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.CommandRun;
import io.kvasir.cli.KvasirProcess;
import io.kvasir.cli.console.Json;
import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.router.Worker;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.KubernetesServer;
import io.kvasir.testsupport.RunningKubernetes;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * {@code kvasir register --kubernetes} with adapters and taints against a real API server, by the
 * schema of this version, by one that is stricter, and by the one of versions before.
 */
@Tag("integration") // starts servers
class KubernetesRegisterTest {
    private static final AtomicInteger TESTS = new AtomicInteger();
    private static final String MANIFEST = "kvasirworker-crd.yaml";
    private static final int CREATED = 201;
    private static final int REFUSED = 422;

    /** The last rows of the schema, which are of this version. */
    private static final String NEW_ROWS = "(?s)\n {14}lora:\n.*$";

    @TempDir static Path folder;

    private static RunningKubernetes kubernetes;

    private final String namespace = "r" + TESTS.incrementAndGet();

    @BeforeAll
    static void startIt() throws InterruptedException {
        try {
            kubernetes = RunningKubernetes.in(folder, Map.of());
        } catch (IOException e) {
            abort("skipped: no Kubernetes: " + e.getMessage());
        }
    }

    @AfterAll
    static void stopIt() {
        if (kubernetes != null) {
            kubernetes.close();
        }
    }

    @BeforeEach
    void makeTheNamespace() throws Exception {
        kubernetes.makeNamespace(namespace);
        define(RunningKubernetes.manifest(MANIFEST), "taints: ['a b']", REFUSED);
        define(RunningKubernetes.manifest(MANIFEST), "taints: [a, b]", CREATED);
    }

    private String workers(String query) {
        return "/apis/kvasir.io/v1alpha1/namespaces/" + namespace + "/kvasirworkers" + query;
    }

    private static String object(String name, String more) {
        return """
        kind: KvasirWorker
        apiVersion: kvasir.io/v1alpha1
        metadata: {name: dynamo.backend.generate.%s}
        spec: {version: 1, namespace: dynamo, component: backend, endpoint: generate, instance: %s,
          generation: 1, state: ready, input: text, dp_ranks: 1, model_name: kvasir-sim,
          types: [chat], url: 'http://127.0.0.1:1', %s}
        """
                .formatted(name, name, more);
    }

    /** Changes the schema, and waits until it judges so. */
    private void define(String yaml, String probe, int expected) throws Exception {
        kubernetes.define(yaml);
        final String object = object("probe", probe);
        Eventually.until(
                "the schema judges with " + expected,
                () ->
                        kubernetes.server().send("POST", workers("?dryRun=All"), object).status()
                                == expected);
    }

    private KvasirProcess register(URI url, String... more) throws IOException {
        final List<String> words =
                new ArrayList<>(
                        List.of(
                                "register",
                                "--url=" + url,
                                "--model=kvasir-sim",
                                "--name=w",
                                "--drain-ms=100",
                                "--kubernetes=" + namespace,
                                "--kubernetes-server=" + kubernetes.server().uri(),
                                "--kubernetes-account=" + account()));
        words.addAll(List.of(more));
        return new KvasirProcess(words.toArray(String[]::new));
    }

    private static Path account() throws IOException {
        return kubernetes.server().account(KubernetesServer.ADMIN, folder.resolve("account"));
    }

    private JsonNode spec() throws Exception {
        final String path = workers("/dynamo.backend.generate.w");
        return Json.parse(kubernetes.server().send("GET", path, null).body()).path("spec");
    }

    private String discovery() throws IOException {
        return "model: kvasir-sim\nblock-size: 16\n"
                + "discovery-kubernetes-resources: true\ndiscovery-kubernetes-namespace: "
                + namespace
                + "\ndiscovery-kubernetes-server: "
                + kubernetes.server().uri()
                + "\ndiscovery-kubernetes-account: "
                + account()
                + "\n";
    }

    private GatewayServer gateway() throws IOException {
        return GatewayServer.start(
                GatewayConfig.builder()
                        .file(Files.writeString(folder.resolve(namespace + ".yaml"), discovery()))
                        .set(GatewaySettings.PORT, 0)
                        .set(GatewaySettings.ADMIN_PORT, 0L)
                        .set(RouterSettings.BLOCK_SIZE, 16)
                        .build());
    }

    private static Worker onlyWorker(GatewayServer gateway) {
        Eventually.holds("a worker", () -> !gateway.router().workers().isEmpty());
        return gateway.router().workers().getFirst();
    }

    private CommandRun doctor() throws IOException {
        final Path file = Files.writeString(folder.resolve("doctor.yaml"), discovery());
        return CommandRun.of("doctor", file.toString(), "--json", "--timeout-s=60");
    }

    @Test
    void adaptersAndTaintsAreStoredAndReachTheRouter() throws Exception {
        try (SimEngine engine = SimEngine.start(SimConfig.builder().eventsPort(-1).build());
                KvasirProcess register =
                        register(
                                engine.url(),
                                "--lora=sql",
                                "--lora=org/fr v2",
                                "--lora-id=sql=7",
                                "--taint=spot",
                                "--taint=gpu/a100")) {
            register.await(line -> line.startsWith("registered dynamo/backend/generate/w"));
            assertEquals("[\"sql\",\"org/fr v2\"]", spec().path("lora").toString());
            assertEquals("{\"sql\":7}", spec().path("lora_ids").toString());
            assertEquals("[\"spot\",\"gpu/a100\"]", spec().path("taints").toString());
            try (GatewayServer gateway = gateway()) {
                final Worker worker = onlyWorker(gateway);
                assertEquals(Set.of("sql", "org/fr v2"), worker.adapters());
                assertEquals(Set.of("spot", "gpu/a100"), worker.namedTaints());
            }
            final CommandRun well = doctor();
            assertEquals(0, well.exitCode(), well.out());
            assertTrue(well.out().contains("1: w"), well.out());
            assertEquals(143, register.terminate());
            final CommandRun empty = doctor();
            assertEquals(1, empty.exitCode(), empty.out());
            assertEquals("none", Json.parse(empty.out()).at("/stores/0/checks/1/seen").asText());
        }
    }

    @Test
    void whatTheSchemaRefusesIsSaidWithTheRowAndTheLimit() throws Exception {
        define(
                RunningKubernetes.manifest(MANIFEST).replace("maxItems: 16", "maxItems: 1"),
                "taints: [a, b]",
                REFUSED);
        try (SimEngine engine = SimEngine.start(SimConfig.builder().eventsPort(-1).build());
                KvasirProcess register = register(engine.url(), "--taint=a", "--taint=b")) {
            final String said = register.await(line -> line.startsWith("not registered yet: "));
            assertTrue(said.contains(" answers 422 "), said);
            assertTrue(said.contains("spec.taints: Too many: 2: must have at most 1 item"), said);
            assertFalse(said.contains("{\"kind\""), said);
            define(RunningKubernetes.manifest(MANIFEST), "taints: [a, b]", CREATED);
            register.await(line -> line.startsWith("registered dynamo/backend/generate/w"));
            assertEquals(2, spec().path("taints").size());
        }
    }

    @Test
    void theSchemaBeforeKeepsTheNewRowsUncheckedAndReadersCheckThem() throws Exception {
        final String before = RunningKubernetes.manifest(MANIFEST).replaceFirst(NEW_ROWS, "\n");
        assertFalse(before.contains("lora") || before.contains("taints"), before);
        define(before, "taints: ['a b']", CREATED);
        assertEquals(
                CREATED,
                kubernetes
                        .server()
                        .create(namespace, object("bad", "lora: [sql], lora_ids: {sql: 0}"))
                        .status());
        try (SimEngine engine = SimEngine.start(SimConfig.builder().eventsPort(-1).build());
                KvasirProcess register =
                        register(engine.url(), "--lora=sql", "--lora-id=fr=2", "--taint=spot")) {
            register.await(line -> line.startsWith("registered dynamo/backend/generate/w"));
            assertEquals("[\"sql\"]", spec().path("lora").toString());
            try (GatewayServer gateway = gateway()) {
                final Worker worker = onlyWorker(gateway);
                assertEquals(Set.of("sql"), worker.adapters());
                assertEquals(Set.of("spot"), worker.namedTaints());
            }
            final CommandRun found = doctor();
            assertEquals(1, found.exitCode(), found.out());
            final String refused = Json.parse(found.out()).at("/stores/0/checks/1/seen").asText();
            assertTrue(refused.contains("dynamo/backend/generate/bad"), found.out());
            assertTrue(refused.contains("lora_ids"), found.out());
            assertTrue(found.out().contains("1: w"), found.out());
            assertEquals(143, register.terminate());
        }
    }
}

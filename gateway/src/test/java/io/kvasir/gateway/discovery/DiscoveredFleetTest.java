package io.kvasir.gateway.discovery;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.abort;

import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.NatsStore;
import io.kvasir.registry.InstanceId;
import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.ModelRegistration;
import io.kvasir.registry.Registrar;
import io.kvasir.registry.Registration;
import io.kvasir.registry.etcd.EtcdOptions;
import io.kvasir.registry.etcd.EtcdStore;
import io.kvasir.router.settings.LoraMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.EtcdServer;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.NatsServer;
import io.kvasir.testsupport.RunningNats;
import io.kvasir.testsupport.ServerProcess;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/** A gateway whose only workers are those that register themselves, with real stores. */
@Tag("integration")
class DiscoveredFleetTest {
    private static final Duration TTL = Duration.ofSeconds(3);
    private static final String BODY =
            "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}";

    private static final List<String> LOCAL = List.of("127.0.0.1");

    @TempDir private Path folder;

    @Test
    void workersOfNatsComeDrainAndGo() throws Exception {
        try (NatsServer nats = RunningNats.started(folder)) {
            run(
                    nats,
                    Gateways.config()
                            .set(GatewaySettings.NATS_URL, nats.url())
                            .set(GatewaySettings.DISCOVERY_NATS_BUCKET, NatsStore.BUCKET)
                            .set(GatewaySettings.DISCOVERY_TTL, TTL),
                    () -> new NatsStore(NatsAccess.of(nats.url()), NatsStore.BUCKET, TTL));
        }
    }

    @Test
    void workersOfEtcdComeDrainAndGo() throws Exception {
        final EtcdServer etcd;
        try {
            etcd = EtcdServer.in(EtcdServer.program(), folder);
            etcd.start();
        } catch (IOException e) {
            abort("skipped: no etcd: " + e.getMessage());
            return;
        }
        try (etcd) {
            run(
                    etcd,
                    Gateways.config()
                            .set(GatewaySettings.DISCOVERY_ETCD_ENDPOINTS, List.of(etcd.uri()))
                            .set(GatewaySettings.DISCOVERY_TTL, TTL),
                    () ->
                            new EtcdStore(
                                    EtcdOptions.of(
                                            List.of(etcd.uri()), TTL, Duration.ofSeconds(10)),
                                    EtcdStore.PREFIX));
        }
    }

    @Test
    void aRegisteredWorkerServesWhatItsAdaptersLabelsAndTaintsAllow() throws Exception {
        try (NatsServer nats = RunningNats.started(folder);
                FakeEngine plain = new FakeEngine(call -> call.json(200, "{\"id\":\"p\"}"));
                FakeEngine marked = new FakeEngine(call -> call.json(200, "{\"id\":\"m\"}"));
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config()
                                        .set(GatewaySettings.NATS_URL, nats.url())
                                        .set(
                                                GatewaySettings.DISCOVERY_NATS_BUCKET,
                                                NatsStore.BUCKET)
                                        .set(GatewaySettings.DISCOVERY_TTL, TTL)
                                        .set(GatewaySettings.TRUSTED_NETWORKS, LOCAL)
                                        .set(RouterSettings.LORA_MODE, LoraMode.REQUIRED)
                                        .build());
                Registrar registrar =
                        new Registrar(
                                new NatsStore(NatsAccess.of(nats.url()), NatsStore.BUCKET, TTL))) {
            registrar.registerModel(instance("p", plain), Duration.ZERO);
            registrar.registerModel(
                    described("m", marked)
                            .labels(Map.of("zone", "x"))
                            .adapters(new Registration.Adapters(Set.of("sql"), Map.of("sql", 7L)))
                            .taints(Set.of("spot"))
                            .build(),
                    Duration.ZERO);
            Eventually.holds("plain", () -> server(gateway, "m", "x", "y").equals("p"));
            Eventually.holds(
                    "marked",
                    () -> server(gateway, "sql", "x-kvasir-tolerate", "spot").equals("m"));
            for (int i = 0; i < 10; i++) {
                assertEquals("p", server(gateway, "m", "x-kvasir-prefer", "zone=x"));
                assertEquals("m", server(gateway, "m", "x-kvasir-require", "zone=x, spot"));
                assertEquals("m", server(gateway, "sql", "x-kvasir-tolerate", "spot"));
            }
            assertEquals("503", server(gateway, "sql", "x", "y"), "nothing tolerates the taint");
            assertEquals("503", server(gateway, "m", "x-kvasir-require", "zone=y"));
        }
    }

    /** Name of the worker that served a request, else the status. */
    private static String server(GatewayServer gateway, String model, String... headers) {
        try {
            final HttpResponse<String> answer =
                    Gateways.post(
                            gateway,
                            "/v1/completions",
                            "{\"model\":\"" + model + "\",\"prompt\":[1,2,3]}",
                            headers);
            return answer.headers()
                    .firstValue("x-kvasir-worker")
                    .orElse(Integer.toString(answer.statusCode()));
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    private static void run(
            ServerProcess server, GatewayConfig.Builder config, Supplier<LeasedStore> stores)
            throws Exception {
        try (FakeEngine a = new FakeEngine(call -> call.json(200, "{\"id\":\"a\"}"));
                FakeEngine b = new FakeEngine(call -> call.json(200, "{\"id\":\"b\"}"));
                GatewayServer gateway = GatewayServer.start(config.build());
                Registrar registrar = new Registrar(stores.get())) {
            assertEquals(503, ask(gateway));
            final ModelRegistration first =
                    registrar.registerModel(instance("a", a), Duration.ofMinutes(10));
            Eventually.holds("the first is used", answers(gateway, 200));
            first.drain();
            Eventually.holds("nothing is sent to it", answers(gateway, 503));
            final ModelRegistration second =
                    registrar.registerModel(instance("b", b), Duration.ZERO);
            Eventually.holds("the second is used", answers(gateway, 200));
            server.stop();
            Eventually.holds(
                    "told",
                    () ->
                            page(gateway, "/metrics")
                                    .matches(
                                            "(?s).*discovery_failures_total"
                                                    + "\\{source=\"(nats|etcd)\"} 1.0\\n.*"));
            assertEquals(200, ask(gateway));
            server.start();
            second.close();
            Eventually.holds("nobody is left", answers(gateway, 503));
        }
    }

    private static Registration instance(String name, FakeEngine engine) {
        return described(name, engine).build();
    }

    private static Registration.Builder described(String name, FakeEngine engine) {
        return Registration.builder(
                new InstanceId(InstanceId.DEFAULT_NAMESPACE, "engines", "generate", name),
                "m",
                URI.create(engine.url()));
    }

    private static BooleanSupplier answers(GatewayServer gateway, int status) {
        return () -> ask(gateway) == status;
    }

    private static int ask(GatewayServer gateway) {
        try {
            return Gateways.post(gateway, "/v1/chat/completions", BODY).statusCode();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    private static String page(GatewayServer gateway, String path) {
        try {
            return Gateways.get(gateway, path).body();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }
}

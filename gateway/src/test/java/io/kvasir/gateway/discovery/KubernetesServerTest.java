package io.kvasir.gateway.discovery;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.WorkerAdapters;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.upstream.Discovery;
import io.kvasir.gateway.upstream.DiscoveryContract;
import io.kvasir.registry.InstanceId;
import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.ModelRegistration;
import io.kvasir.registry.Registrar;
import io.kvasir.registry.Registration;
import io.kvasir.registry.kubernetes.KubernetesAccess;
import io.kvasir.registry.kubernetes.KubernetesStore;
import io.kvasir.registry.kubernetes.OwnerPod;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.KubernetesServer;
import io.kvasir.testsupport.RunningKubernetes;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;

/** Slices and registrations of a real API server. */
@Tag("integration")
class KubernetesServerTest {
    private static final AtomicInteger TESTS = new AtomicInteger();
    private static final String ALLOWED = "gateway-token";
    private static final String OTHER = "other-token";
    private static final Duration LONG = Duration.ofMinutes(10);
    private static final String FIRST_UID = "00000000-0000-4000-8000-000000000001";
    private static final String SECOND_UID = "70000000-0000-4000-8000-000000000002";
    private static final String ENDING = "ready: false, serving: true, terminating: true";
    private static final String ENDED = "ready: false, serving: false, terminating: true";
    private static final String READY = "ready: true, serving: true, terminating: false";

    @TempDir static Path folder;

    private static RunningKubernetes kubernetes;

    private final String namespace = "g" + TESTS.incrementAndGet();
    private final DiscoveryContract.Known known = new DiscoveryContract.Known();
    private final List<AutoCloseable> opened = new ArrayList<>();

    @BeforeAll
    static void startIt() throws InterruptedException {
        try {
            final Map<String, String> accounts =
                    Map.of("rights:kvasir-gateway", ALLOWED, "rights:other", OTHER);
            kubernetes = RunningKubernetes.in(folder, accounts);
            kubernetes.makeNamespace("rights");
            kubernetes.server().apply("rights", RunningKubernetes.manifest("rbac.yaml"));
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
        kubernetes.awaitTheResource(); // after a restart
        kubernetes.makeNamespace(namespace);
    }

    @AfterEach
    void closeAll() throws Exception {
        for (AutoCloseable each : opened.reversed()) {
            each.close();
        }
    }

    private KubernetesAccess access(String token, String in) {
        try {
            return new KubernetesAccess(
                    kubernetes.server().uri(),
                    kubernetes.server().account(token, folder.resolve(token)),
                    in);
        } catch (IOException e) {
            throw new AssertionError("the account cannot be written", e);
        }
    }

    private static KubernetesDiscovery.Endpoints endpoints() {
        return new KubernetesDiscovery.Endpoints(
                "app=vllm",
                new EndpointSlices(
                        new EndpointSlices.Ports(
                                DiscoveryContract.MODEL, "http", null, null, Map.of())));
    }

    private KubernetesDiscovery.Registered registered(KubernetesAccess access, Duration ttl) {
        return new KubernetesDiscovery.Registered(
                new KubernetesStore(access, ttl, null),
                "prod",
                Set.of(DiscoveryContract.MODEL),
                false);
    }

    private Discovery start(KubernetesDiscovery discovery) {
        opened.add(discovery);
        discovery.start(known);
        return discovery;
    }

    private void startWithSlices() {
        start(
                new KubernetesDiscovery(
                        access(KubernetesServer.ADMIN, namespace), endpoints(), null));
    }

    private void startWithBoth(Duration ttl) {
        final KubernetesAccess access = access(KubernetesServer.ADMIN, namespace);
        start(new KubernetesDiscovery(access, endpoints(), registered(access, ttl)));
    }

    private Registrar registrar(Duration ttl, OwnerPod pod) {
        final Registrar registrar = new Registrar(store(ttl, pod));
        opened.add(registrar);
        return registrar;
    }

    private KubernetesStore store(Duration ttl, OwnerPod pod) {
        return new KubernetesStore(access(KubernetesServer.ADMIN, namespace), ttl, pod);
    }

    private static Registration instance(String name) {
        return builder(name).build();
    }

    private static Registration.Builder builder(String name) {
        return Registration.builder(
                new InstanceId("prod", "decode", "generate", name),
                DiscoveryContract.MODEL,
                URI.create("http://10.0.0.9:8000"));
    }

    private static String slice(String pod, String uid, String conditions) {
        return """
        kind: EndpointSlice
        apiVersion: discovery.k8s.io/v1
        metadata: {name: vllm-1, labels: {app: vllm, kvasir.io/role: decode}}
        addressType: IPv4
        ports: [{name: http, port: 8000, protocol: TCP}]
        endpoints:
        - addresses: [10.0.0.1]
          conditions: {%s}
          targetRef: {kind: Pod, name: %s, uid: %s}
        """
                .formatted(conditions, pod, uid);
    }

    private void write(String method, String slice) throws Exception {
        final String path = "/apis/discovery.k8s.io/v1/namespaces/" + namespace + "/endpointslices";
        final KubernetesServer.Answer answer =
                kubernetes
                        .server()
                        .send(method, method.equals("POST") ? path : path + "/vllm-1", slice);
        assertEquals(2, answer.status() / 100, answer.body());
    }

    private Set<String> names() {
        return Set.copyOf(known.all().stream().map(DiscoveredWorker::name).toList());
    }

    @Test
    void aPodComesDrainsAndGoes() throws Exception {
        startWithSlices();
        write("POST", slice("a", FIRST_UID, READY));
        Eventually.holds("comes", () -> names().equals(Set.of("a")));
        assertEquals("10.0.0.1", known.all().getFirst().worker().url().getHost());
        write("PUT", slice("a", FIRST_UID, ENDING));
        Eventually.holds("drains", () -> known.draining().equals(Set.of("a")));
        write("PUT", slice("a", FIRST_UID, ENDED));
        Eventually.holds("is gone", () -> names().isEmpty());
        write("PUT", slice("a", SECOND_UID, READY));
        Eventually.holds("comes again", () -> names().equals(Set.of("a")));
        write("DELETE", null);
        Eventually.holds("is deleted", () -> names().isEmpty());
        assertEquals(List.of(), known.failures);
    }

    @Test
    void aPodThatStartsAgainUnderItsNameIsAnotherWorker() throws Exception {
        write("POST", slice("a", FIRST_UID, READY));
        startWithSlices();
        final long before = known.all().getFirst().generation();
        write("PUT", slice("a", SECOND_UID, READY));
        Eventually.holds("another", () -> known.all().getFirst().generation() != before);
    }

    @Test
    void anAccountWithoutRightsIsSaidOnceAndOneWithThemSeesAll() throws Exception {
        final KubernetesAccess denied = access(OTHER, "rights");
        start(new KubernetesDiscovery(denied, endpoints(), registered(denied, LONG)));
        Eventually.holds("both are said", () -> known.failureCount() == 2);
        for (String resource : List.of("endpointslices", "kvasirworkers")) {
            assertEquals(
                    1,
                    known.failures.stream()
                            .filter(f -> f.contains("403") && f.contains(resource + " of "))
                            .count(),
                    known.failures::toString);
        }
        final DiscoveryContract.Known other = new DiscoveryContract.Known();
        final KubernetesAccess allowed = access(ALLOWED, "rights");
        final KubernetesDiscovery discovery =
                new KubernetesDiscovery(allowed, endpoints(), registered(allowed, LONG));
        opened.add(discovery);
        discovery.start(other);
        assertEquals(List.of(), other.failures);
        assertEquals(2, known.failureCount(), known.failures::toString);
    }

    @Test
    void aKilledServerLeavesTheLastViewAndItsReturnReadsAllAnew() throws Exception {
        write("POST", slice("pod", FIRST_UID, READY));
        final Registrar registrar =
                registrar(Duration.ofSeconds(3), new OwnerPod("pod", FIRST_UID));
        registrar.registerModel(instance("a"), Duration.ZERO);
        startWithBoth(Duration.ofSeconds(3));
        Eventually.holds("there", () -> names().equals(Set.of("a")));
        kubernetes.server().stop();
        Eventually.holds("said", () -> known.failureCount() == 2);
        Eventually.holds("and renewals fail", () -> registrar.unreachable() > 20);
        assertEquals(Set.of("a"), names());
        assertEquals(Set.of(), known.draining());
        kubernetes.server().start();
        write("PUT", slice("pod", FIRST_UID, ENDING));
        Eventually.holds("drains", () -> known.draining().equals(Set.of("a")));
        assertEquals(2, known.failureCount(), known.failures::toString);
    }

    @Test
    void aRegistrationSaysWhatAPodIsAndItsSliceWhetherItIsReady() throws Exception {
        startWithBoth(LONG);
        final ModelRegistration a =
                registrar(LONG, new OwnerPod("pod", FIRST_UID))
                        .registerModel(instance("a"), Duration.ZERO);
        Eventually.holds("in no slice yet", () -> names().equals(Set.of("a")));
        write("POST", slice("pod", FIRST_UID, "ready: false"));
        Eventually.holds("is not ready", () -> known.draining().equals(Set.of("a")));
        write("PUT", slice("pod", FIRST_UID, READY));
        Eventually.holds("is ready", () -> known.draining().isEmpty());
        assertEquals(Set.of("a"), names());
        assertEquals("10.0.0.9", known.all().getFirst().worker().url().getHost());
        a.drain();
        Eventually.holds("drains by its own word", () -> known.draining().equals(Set.of("a")));
        write("PUT", slice("pod", FIRST_UID, ENDED));
        Eventually.holds("has ended", () -> names().isEmpty());
        write("PUT", slice("pod", SECOND_UID, READY));
        final ModelRegistration next =
                registrar(LONG, new OwnerPod("pod", SECOND_UID))
                        .registerModel(instance("a"), Duration.ZERO);
        assertTrue(next.registration().generation() > a.registration().generation());
        Eventually.holds(
                "the next run",
                () ->
                        names().equals(Set.of("a"))
                                && known.all().getFirst().generation()
                                        == next.registration().generation());
        a.close(); // late
        assertEquals(Set.of("a"), names());
        next.close();
        Eventually.holds("is gone, and its slice alone is no worker", () -> names().isEmpty());
        assertEquals(List.of(), known.failures);
    }

    @Test
    void adaptersAndTaintsOfARegistrationAreThoseOfTheWorker() throws Exception {
        startWithBoth(LONG);
        final Registration.Adapters adapters =
                new Registration.Adapters(Set.of("sql", "org/fr v2"), Map.of("sql", 7L));
        registrar(LONG, null)
                .registerModel(
                        builder("a").adapters(adapters).taints(Set.of("spot")).build(),
                        Duration.ZERO);
        Eventually.holds("comes", () -> names().equals(Set.of("a")));
        final WorkerConfig worker = known.all().getFirst().worker();
        assertEquals(
                new WorkerAdapters(Set.of("sql", "org/fr v2"), Map.of(7L, "sql")),
                worker.adapters());
        assertEquals(Set.of("spot"), worker.taints());
        assertEquals(List.of(), known.failures);
    }

    @Test
    void aSilentRegistrationEndsWithItsLease() throws Exception {
        final Registration silent = instance("silent").withGeneration(1);
        try (KubernetesStore store = store(Duration.ofSeconds(2), null)) {
            store.put(silent.id().key(), silent.encode(), LeasedStore.ABSENT);
        }
        registrar(LONG, null).registerModel(instance("renewed"), Duration.ZERO);
        startWithBoth(LONG);
        Eventually.holds("the other stays", () -> names().equals(Set.of("renewed")));
        assertEquals(List.of(), known.failures);
    }

    @Test
    void aThousandRegistrationsAreAView() throws Exception {
        startWithBoth(LONG);
        final Registrar registrar = registrar(LONG, null);
        for (int i = 0; i < 1_000; i++) {
            registrar.registerModel(instance("w" + i), Duration.ZERO);
        }
        Eventually.holds("all", () -> names().size() == 1_000);
        registrar.close();
        Eventually.holds("none", () -> names().isEmpty());
        assertEquals(List.of(), known.failures);
    }
}

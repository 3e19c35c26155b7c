package io.kvasir.registry.kubernetes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;

import com.fasterxml.jackson.databind.json.JsonMapper;

import io.kvasir.registry.InstanceId;
import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.LeasedStoreContract;
import io.kvasir.registry.Registration;
import io.kvasir.registry.RegistryException;
import io.kvasir.registry.RegistryException.Kind;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.KubernetesServer;
import io.kvasir.testsupport.RunningKubernetes;
import io.kvasir.testsupport.ServerProcess;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;

@Tag("integration")
class KubernetesStoreTest extends LeasedStoreContract {
    private static final AtomicInteger TESTS = new AtomicInteger();
    private static final String NAMESPACE_OF_RIGHTS = "rights";
    private static final Duration LONG = Duration.ofMinutes(10);
    private static final String RESOURCES = "/apis/kvasir.io/v1alpha1/namespaces/%s/kvasirworkers";

    @TempDir static Path folder;

    private static RunningKubernetes kubernetes;

    private final String namespace = "t" + TESTS.incrementAndGet();

    @BeforeAll
    static void startIt() throws InterruptedException {
        try {
            kubernetes =
                    RunningKubernetes.in(
                            folder,
                            Map.of(
                                    NAMESPACE_OF_RIGHTS + ":kvasir-worker",
                                    "worker-token",
                                    NAMESPACE_OF_RIGHTS + ":kvasir-gateway",
                                    "gateway-token"));
            kubernetes.makeNamespace(NAMESPACE_OF_RIGHTS);
            kubernetes.server().apply(NAMESPACE_OF_RIGHTS, RunningKubernetes.manifest("rbac.yaml"));
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

    @Override
    protected LeasedStore open(Duration ttl) {
        return store(KubernetesServer.ADMIN, namespace, ttl, null);
    }

    private KubernetesStore store(String token, String in, Duration ttl, OwnerPod pod) {
        return closing(new KubernetesStore(access(token, in), ttl, pod));
    }

    private static KubernetesAccess access(String token, String in) {
        try {
            return new KubernetesAccess(
                    kubernetes.server().uri(),
                    kubernetes.server().account(token, folder.resolve(token)),
                    in);
        } catch (IOException e) {
            throw new AssertionError("the account cannot be written", e);
        }
    }

    @Override
    protected ServerProcess server() {
        return kubernetes.server();
    }

    @Override
    protected int many() {
        return 1_000;
    }

    @Override
    protected boolean fencesGenerations() {
        return true;
    }

    private static Registration.Builder instance(String name) {
        return Registration.builder(
                        new InstanceId("ns", "c", "e", name), "m", URI.create("http://h:1"))
                .generation(1);
    }

    private String worker(String name, String spec) {
        return """
        kind: KvasirWorker
        apiVersion: kvasir.io/v1alpha1
        metadata: {name: %s}
        spec: {version: 1, namespace: ns, component: c, endpoint: e, instance: a, generation: 1,
          state: ready, input: text, dp_ranks: 1, %s}
        """
                .formatted(name, spec);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "types: [chat], url: 'http://h:1'", // no model
                "model_name: m, types: [], url: 'http://h:1'",
                "model_name: m, types: [sing], url: 'http://h:1'",
                "model_name: m, types: [chat], role: prefill, url: 'http://h:1'",
                "model_name: m, types: [prefill], role: decode, url: 'http://h:1'",
                "model_name: m, types: [chat], url: 'tcp://h:1'",
                "model_name: m, types: [chat], url: 'http://user:secret@h:1'",
                "model_name: m, types: [chat], url: 'http://h:1', block_size: 0",
                "model_name: m, types: [chat], url: 'http://h:1', events: {replay: x}",
                "model_name: m, types: [chat], url: 'http://h:1', labels: {a: 1}",
                "model_name: m, types: [chat], url: 'http://h:1', lora: sql",
                "model_name: m, types: [chat], url: 'http://h:1', lora: ['a;b']",
                "model_name: m, types: [chat], url: 'http://h:1', lora: ['']",
                "model_name: m, types: [chat], url: 'http://h:1', lora: [sql, sql]",
                "model_name: m, types: [chat], url: 'http://h:1', lora: [7]",
                "model_name: m, types: [chat], url: 'http://h:1', lora_ids: {a: 0}",
                "model_name: m, types: [chat], url: 'http://h:1', lora_ids: {a: '1'}",
                "model_name: m, types: [chat], url: 'http://h:1', lora_ids: {a: 1.5}",
                "model_name: m, types: [chat], url: 'http://h:1', lora_ids: [a]",
                "model_name: m, types: [chat], url: 'http://h:1', taints: ['a b']",
                "model_name: m, types: [chat], url: 'http://h:1', taints: [a, a]",
                "model_name: m, types: [chat], url: 'http://h:1', taints:"
                        + " [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q]"
            })
    void whatIsNoRegistrationIsRefusedByTheSchema(String spec) throws Exception {
        assertEquals(422, kubernetes.server().create(namespace, worker("ns.c.e.a", spec)).status());
        assertEquals(
                201,
                kubernetes
                        .server()
                        .create(
                                namespace,
                                worker(
                                        "ns.c.e.a",
                                        "model_name: m, types: [chat], url: 'http://h:1'"))
                        .status());
    }

    /** What a registration may say at most, the schema takes. */
    @Test
    void adaptersAndTaintsAtTheirLimitsAreKeptAsTheyAre() {
        final Set<String> names = new LinkedHashSet<>();
        final Map<String, Long> numbers = new LinkedHashMap<>();
        for (int i = 0; i < Registration.Adapters.MOST; i++) {
            names.add("l" + i);
        }
        numbers.put("x".repeat(Registration.Adapters.MOST_NAME_LENGTH), Long.MAX_VALUE);
        numbers.put("org/名 v=2,\uD83D\uDE42", 1L);
        final Set<String> taints = new LinkedHashSet<>();
        for (int i = 0; i < Registration.MOST_TAINTS; i++) {
            taints.add("t/._-" + i + "x".repeat(56));
        }
        final Registration full =
                instance("a")
                        .adapters(new Registration.Adapters(names, numbers))
                        .taints(taints)
                        .build();
        final LeasedStore store = open(LONG);
        assertTrue(store.put(full.id().key(), full.encode(), LeasedStore.ABSENT) > 0);
        final Registration read = Registration.decode(store.get(full.id().key()).value());
        assertEquals(full.adapters(), read.adapters());
        assertEquals(full.taints(), read.taints());
    }

    /** Of names of numbers the schema says nothing: keys of an object have no pattern there. */
    @Test
    void aNameOfANumberThatIsNoneIsRefusedByReaders() throws Exception {
        final String spec = "model_name: m, types: [chat], url: 'http://h:1', lora_ids: {'a;b': 1}";
        assertEquals(201, kubernetes.server().create(namespace, worker("ns.c.e.a", spec)).status());
        final Seen seen = new Seen();
        open().watch("ns/", seen.view);
        Eventually.holds("said", () -> seen.refusals.size() == 1);
        assertTrue(seen.names().isEmpty());
    }

    @Test
    void aResourceWithoutALeaseHoldsWhileItIsThere() throws Exception {
        kubernetes
                .server()
                .create(
                        namespace,
                        worker(
                                "ns.c.e.a",
                                "model_name: m, types: [chat], url: 'http://h:1', more: 1"));
        final Seen seen = new Seen();
        open().watch("ns/", seen.view);
        Eventually.holds("is there", () -> seen.names().equals(Set.of("a")));
        kubernetes.server().send("DELETE", RESOURCES.formatted(namespace) + "/ns.c.e.a", null);
        Eventually.holds("is gone", () -> seen.names().isEmpty());
        assertEquals(0, seen.refusals.size());
    }

    @Test
    void aResourceUnderAnotherNameIsRefusedOnce() throws Exception {
        kubernetes
                .server()
                .create(
                        namespace,
                        worker("other", "model_name: m, types: [chat], url: 'http://h:1'"));
        final Seen seen = new Seen();
        open().watch("ns/", seen.view);
        Eventually.holds("said", () -> seen.refusals.size() == 1);
        assertTrue(seen.names().isEmpty());
    }

    @Test
    void whatALeaseHasLeftIsTakenOverByAnyGeneration() throws Exception {
        final LeasedStore brief = open(Duration.ofSeconds(1));
        final Registration old = instance("a").generation(1000).build();
        brief.put(old.id().key(), old.encode(), LeasedStore.ABSENT);
        final LeasedStore next = open();
        Eventually.holds("ends", () -> next.get(old.id().key()) == null);
        assertTrue(
                next.put(old.id().key(), old.withGeneration(2).encode(), LeasedStore.ABSENT) > 0);
        assertEquals(2, Registration.decode(next.get(old.id().key()).value()).generation());
    }

    @Test
    void thePodOwnsWhatItHasRegistered() throws Exception {
        final OwnerPod pod = new OwnerPod("p-0", "00000000-0000-4000-8000-000000000001");
        final KubernetesStore store = store(KubernetesServer.ADMIN, namespace, TTL, pod);
        final Registration a = instance("a").build();
        assertEquals("", store.podUid(a.id().key()));
        store.put(a.id().key(), a.encode(), LeasedStore.ABSENT);
        final Seen seen = new Seen();
        store.watch("ns/", seen.view);
        Eventually.holds("known", () -> store.podUid(a.id().key()).equals(pod.uid()));
        final String owners =
                new JsonMapper()
                        .readTree(
                                kubernetes
                                        .server()
                                        .send(
                                                "GET",
                                                RESOURCES.formatted(namespace) + "/ns.c.e.a",
                                                null)
                                        .body())
                        .path("metadata")
                        .path("ownerReferences")
                        .toString();
        assertTrue(owners.contains("p-0") && owners.contains(pod.uid()), owners);
    }

    @Test
    void rightsAreThoseOfTheManifest() throws Exception {
        final Registration a = instance("a").build();
        final String key = a.id().key();
        final KubernetesStore worker = store("worker-token", NAMESPACE_OF_RIGHTS, LONG, null);
        final long first = worker.put(key, a.encode(), LeasedStore.ABSENT);
        final long second = worker.renew(key, a.encode(), first);
        assertTrue(second > first);
        final KubernetesStore gateway = store("gateway-token", NAMESPACE_OF_RIGHTS, LONG, null);
        final Seen seen = new Seen();
        gateway.watch("ns/", seen.view);
        Eventually.holds("seen", () -> seen.names().contains("a"));
        final RegistryException denied =
                assertThrows(RegistryException.class, () -> gateway.put(key, a.encode(), second));
        assertEquals(Kind.DENIED, denied.kind(), denied.getMessage());
        assertTrue(denied.getMessage().contains("create, update and delete"), denied.getMessage());
        final Seen blind = new Seen();
        worker.watch("ns/", blind.view);
        Eventually.holds("refused", () -> blind.losses.size() == 1);
        assertTrue(worker.delete(key, worker.get(key).revision()));
    }

    @Test
    void aNamespaceThatIsNotThereAndAServerThatIsNotAreSaid() {
        final Registration a = instance("a").build();
        final RegistryException missing =
                assertThrows(
                        RegistryException.class,
                        () ->
                                store(KubernetesServer.ADMIN, "nowhere", TTL, null)
                                        .put(a.id().key(), a.encode(), LeasedStore.ABSENT));
        assertEquals(Kind.UNAVAILABLE, missing.kind());
        assertTrue(missing.getMessage().contains("definition"), missing.getMessage());
        assertNull(store(KubernetesServer.ADMIN, "nowhere", TTL, null).get(a.id().key()));
    }

    @Test
    void valuesOfOtherKindsAreRefused() {
        final Registration a = instance("a").build();
        assertThrows(
                IllegalArgumentException.class,
                () -> open().put("ns/c/e/b", a.encode(), LeasedStore.ABSENT));
        assertThrows(
                RegistryException.class,
                () -> open().put("locks/a", new byte[] {1}, LeasedStore.ABSENT));
    }

    @Test
    void aServerThatHangsIsLostAndEndsNoLease() throws Exception {
        final Registration a = instance("a").build();
        open(SHORT_TTL).put(a.id().key(), a.encode(), LeasedStore.ABSENT);
        final Seen seen = new Seen();
        open(SHORT_TTL).watch("ns/", seen.view);
        Eventually.holds("there", () -> seen.found > 0);
        server().hang();
        try {
            Eventually.holds("said", () -> !seen.losses.isEmpty());
        } finally {
            server().goOn();
        }
        final int before = seen.found;
        Eventually.holds("found", () -> seen.found > before);
        Eventually.holds("ends when the server answers", () -> seen.names().isEmpty());
        assertEquals(1, seen.losses.size(), seen.losses::toString);
    }

    private static void compact(long revision) throws Exception {
        final HttpRequest request =
                HttpRequest.newBuilder(kubernetes.etcd().uri().resolve("/v3/kv/compaction"))
                        .POST(
                                HttpRequest.BodyPublishers.ofString(
                                        "{\"revision\":\"" + revision + "\"}"))
                        .build();
        try (HttpClient http = HttpClient.newHttpClient()) {
            assertEquals(200, http.send(request, BodyHandlers.ofString()).statusCode());
        }
    }

    @Test
    void aVersionThatWasCompactedIsGone() throws Exception {
        try (KubernetesClient client =
                new KubernetesClient(access(KubernetesServer.ADMIN, namespace))) {
            final KubernetesResources resources =
                    new KubernetesResources("kvasir.io", "v1alpha1", "kvasirworkers", "");
            final String version = client.list(resources, object -> {});
            final Registration a = instance("a").build();
            long revision = open(LONG).put(a.id().key(), a.encode(), LeasedStore.ABSENT);
            for (int i = 2; i < 10; i++) {
                revision = open(LONG).put(a.id().key(), a.withGeneration(i).encode(), revision);
            }
            compact(revision);
            kubernetes.server().stop(); // what it has in memory, too
            kubernetes.server().start();
            kubernetes.awaitTheResource();
            KubernetesException gone;
            do { // its watches begin some time after its lists
                gone =
                        assertThrows(
                                KubernetesException.class,
                                () -> client.watch(resources, version, event -> {}));
            } while (gone.getMessage().contains(" answers 429 "));
            assertTrue(gone.isGone(), gone.getMessage());
        }
    }
}

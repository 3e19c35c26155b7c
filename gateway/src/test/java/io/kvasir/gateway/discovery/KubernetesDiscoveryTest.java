package io.kvasir.gateway.discovery;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.config.WorkerRole;
import io.kvasir.gateway.upstream.Discovery;
import io.kvasir.gateway.upstream.DiscoveryContract;
import io.kvasir.registry.kubernetes.KubernetesAccess;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;

@Order(0) // takes longest: begins before all others
class KubernetesDiscoveryTest extends DiscoveryContract {
    private static final String NOT_READY = "\"ready\":false";
    private static final String ENDING = "\"ready\":false,\"serving\":true,\"terminating\":true";
    private static final String GONE = "\"ready\":false,\"serving\":false,\"terminating\":true";

    @TempDir private Path account;

    private ScriptedApiServer server;
    private Discovery discovery;

    @BeforeEach
    void startServer() throws IOException {
        server = new ScriptedApiServer();
        Files.writeString(account.resolve("token"), "first\n");
    }

    @AfterEach
    void stop() {
        if (discovery != null) {
            discovery.close();
        }
        server.close();
    }

    @Override
    protected Discovery started(Discovery.Listener listener, List<DiscoveredWorker> workers) {
        for (DiscoveredWorker worker : workers) {
            server.put(slice(worker.worker()));
        }
        return start(listener, Map.of());
    }

    private static Slice slice(WorkerConfig w) {
        final Slice slice = new Slice(w.name()).port("http", w.url().getPort());
        if (w.events() != null) {
            slice.port("kv", URI.create(w.events()).getPort());
            slice.port("kv-replay", URI.create(w.replay()).getPort());
            slice.annotation("dp=" + w.dataParallelSize() + ",topic=" + w.topic());
        }
        return slice.endpoint(w.name(), w.url().getHost(), Slice.READY);
    }

    private static Slice slice(String pod, String conditions) {
        return new Slice("vllm-1").port("http", 8000).endpoint(pod, "10.0.0.1", conditions);
    }

    private Discovery start(Discovery.Listener listener, Map<String, String> texts) {
        discovery =
                new KubernetesDiscovery(
                        new KubernetesAccess(server.uri(), account, "serving"),
                        new KubernetesDiscovery.Endpoints(
                                "app=vllm",
                                new EndpointSlices(
                                        new EndpointSlices.Ports(
                                                MODEL, "http", "kv", "kv-replay", texts))),
                        null);
        discovery.start(listener);
        return discovery;
    }

    private List<String> names() {
        return known.all().stream().map(DiscoveredWorker::name).toList();
    }

    @Test
    void podsThatComeAndGoAreSeen() throws Exception {
        start(known, Map.of());
        server.put(slice("a", Slice.READY));
        Eventually.holds("comes", () -> names().equals(List.of("a")));
        server.put(slice("a", Slice.READY).endpoint("b", "fd00::2", Slice.READY));
        Eventually.holds("another", () -> names().equals(List.of("a", "b")));
        assertEquals(URI.create("http://[fd00::2]:8000"), known.all().getLast().worker().url());
        server.delete("vllm-1");
        Eventually.holds("gone", () -> names().isEmpty());
        assertEquals(List.of(), known.failures);
    }

    @Test
    void aSliceSaysWhichModelItsPodsHave() throws Exception {
        start(known, Map.of("model", "org/n"));
        server.put(slice("a", Slice.READY));
        Eventually.holds("comes", () -> names().equals(List.of("a")));
        assertEquals("org/n", known.all().getFirst().model());
        server.put(slice("a", Slice.READY).annotation("model=o"));
        Eventually.holds("moves", () -> known.all().getFirst().model().equals("o"));
        assertEquals(List.of(), known.failures);
    }

    @Test
    void aPodThatEndsDrainsWhileItServesAndIsGoneAfterThat() throws Exception {
        start(known, Map.of());
        server.put(slice("a", Slice.READY));
        Eventually.holds("comes", () -> names().equals(List.of("a")));
        server.put(slice("a", ENDING));
        Eventually.holds("drains", () -> known.draining().equals(Set.of("a")));
        assertEquals(List.of("a"), names());
        server.put(slice("a", GONE));
        Eventually.holds("is gone", () -> names().isEmpty());
    }

    @Test
    void aPodThatIsNotReadyGetsNothingNewUntilItIs() throws Exception {
        server.put(slice("a", NOT_READY));
        start(known, Map.of());
        assertEquals(List.of(), names());
        server.put(slice("a", Slice.READY));
        Eventually.holds("is used", () -> names().equals(List.of("a")));
        server.put(slice("a", "\"ready\":false,\"serving\":false,\"terminating\":false"));
        Eventually.holds("drains", () -> known.draining().equals(Set.of("a")));
        server.put(slice("a", "\"ready\":null"));
        Eventually.holds("is used again", () -> known.draining().isEmpty());
    }

    @Test
    void aPodOfTheSameNameWithAnotherUidIsAnotherWorker() throws Exception {
        start(known, Map.of());
        server.put(slice("a", Slice.READY));
        Eventually.holds("comes", () -> names().equals(List.of("a")));
        final long before = known.all().getFirst().generation();
        server.put(
                new Slice("vllm-1")
                        .port("http", 8000)
                        .uid("ffffffff-0000-4000-8000-000000000000")
                        .endpoint("a", "10.0.0.1", Slice.READY));
        Eventually.holds("another", () -> known.all().getFirst().generation() != before);
    }

    @Test
    void anEndpointInTwoSlicesCountsWhereItIsReady() {
        server.put(slice("a", "\"ready\":false,\"terminating\":true,\"serving\":true"));
        server.put(new Slice("vllm-0").port("http", 8000).endpoint("a", "10.0.0.9", Slice.READY));
        start(known, Map.of());
        assertEquals(List.of("a"), names());
        assertEquals("10.0.0.9", known.all().getFirst().worker().url().getHost());
    }

    private static Slice v4(String conditions) {
        return new Slice("vllm-b").port("http", 8000).endpoint("a", "10.0.0.1", conditions);
    }

    private static Slice v6(String conditions) {
        return new Slice("vllm-a").port("http", 8000).endpoint("a", "fd00::1", conditions);
    }

    /** Returns once all that was put before has been published. */
    private void settled(String pod) throws InterruptedException {
        server.put(new Slice("more").port("http", 8000).endpoint(pod, "10.0.0.2", Slice.READY));
        Eventually.holds("settles", () -> names().contains(pod));
    }

    private DiscoveredWorker a() {
        return known.all().getFirst();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aPodInASliceOfEachFamilyIsOneWorkerThatKeepsItsAddress(boolean isFourFirst)
            throws Exception {
        start(known, Map.of());
        server.put(isFourFirst ? v4(Slice.READY) : v6(Slice.READY));
        Eventually.holds("comes", () -> names().equals(List.of("a")));
        final DiscoveredWorker first = a();
        server.put(isFourFirst ? v6(Slice.READY) : v4(Slice.READY));
        settled("b");
        assertEquals(first, a());
        server.put(v4(NOT_READY));
        settled("c");
        assertEquals(first, a());
        assertEquals(Set.of(), known.draining());
        server.put(v6(NOT_READY));
        Eventually.holds("drains", () -> known.draining().equals(Set.of("a")));
        assertEquals(first, a());
        server.put(v6(Slice.READY));
        Eventually.holds("is used again", () -> known.draining().isEmpty());
        server.put(v4(Slice.READY));
        settled("d");
        assertEquals(first, a());
        server.put(isFourFirst ? v4(GONE) : v6(GONE));
        server.put(isFourFirst ? v6(ENDING) : v4(ENDING));
        Eventually.holds("drains at its end", () -> known.draining().equals(Set.of("a")));
        assertEquals(first, a());
        server.put(isFourFirst ? v6(GONE) : v4(GONE));
        Eventually.holds("is gone", () -> names().equals(List.of("d")));
    }

    @Test
    void aPodThatIsNotReadyInSlicesOfBothFamiliesDrains() throws Exception {
        server.put(v4(Slice.READY));
        server.put(v6(Slice.READY));
        start(known, Map.of());
        final DiscoveredWorker first = a();
        server.missed(v4(NOT_READY));
        server.missed(v6(NOT_READY));
        server.gone(true);
        Eventually.holds("drains", () -> known.draining().equals(Set.of("a")));
        assertEquals(List.of(first), known.all());
    }

    @Test
    void manyPagesAreOneView() {
        server.pageSize(3);
        for (int i = 0; i < 10; i++) {
            server.put(
                    new Slice("s" + i)
                            .port("http", 8000)
                            .endpoint("p" + i, "10.0.0." + i, Slice.READY));
        }
        start(known, Map.of());
        assertEquals(10, names().size());
    }

    @Test
    void whatIsTooOldIsListedAnewAndIsNoFailure() throws Exception {
        start(known, Map.of());
        server.put(slice("a", Slice.READY));
        Eventually.holds("comes", () -> names().equals(List.of("a")));
        for (boolean inTheWatch : new boolean[] {true, false}) {
            final int lists = server.lists();
            server.missed(slice(inTheWatch ? "b" : "c", Slice.READY));
            server.gone(inTheWatch);
            Eventually.holds("read anew", () -> names().equals(List.of(inTheWatch ? "b" : "c")));
            assertTrue(server.lists() > lists);
        }
        assertEquals(List.of(), known.failures);
    }

    @Test
    void aWatchThatEndsGoesOnFromTheLastBookmark() throws Exception {
        start(known, Map.of());
        Eventually.holds("watches", () -> server.watches() == 1);
        server.bookmark("4711");
        server.endWatch();
        Eventually.holds("watches again", () -> server.watches() == 2);
        assertEquals("4711", server.lastVersion());
        assertEquals(1, server.lists());
    }

    @Test
    void aServerThatRefusesIsSaidOnceAndTheLastViewHolds() throws Exception {
        start(known, Map.of());
        server.put(slice("a", Slice.READY));
        Eventually.holds("comes", () -> names().equals(List.of("a")));
        server.refuse(403);
        server.endWatch();
        Eventually.holds("refused often", () -> server.refusals() > 2);
        assertEquals(1, known.failureCount(), known.failures::toString);
        assertTrue(known.failures.getFirst().contains("403"), known.failures::toString);
        assertTrue(known.failures.getFirst().contains("endpointslices"));
        assertEquals(List.of("a"), names());
        server.missed(slice("b", Slice.READY));
        server.refuse(0);
        Eventually.holds("read anew", () -> names().equals(List.of("b")));
        assertEquals(1, known.failureCount());
    }

    @Test
    void aWatchThatIsRefusedIsSaidOnceUntilOneHasToldSomething() throws Exception {
        server.refuseWatches(403);
        start(known, Map.of());
        server.missed(slice("a", Slice.READY));
        Eventually.holds("refused often", () -> server.refusals() > 3);
        assertEquals(1, known.failureCount(), known.failures::toString);
        Eventually.holds("listed", () -> names().equals(List.of("a")));
        server.refuseWatches(0);
        final int watches = server.watches();
        Eventually.holds("watches", () -> server.watches() > watches);
        server.put(slice("b", Slice.READY));
        Eventually.holds("applied", () -> names().equals(List.of("b")));
        server.refuseWatches(403);
        server.endWatch();
        Eventually.holds("said again", () -> known.failureCount() == 2);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "{}",
                "null",
                "{\"kind\":\"Status\",\"metadata\":{},\"status\":\"Failure\"}",
                "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":\"none\"}"
            })
    void anAnswerThatIsNoListIsAFailureAndTheLastViewHolds(String body) throws Exception {
        start(known, Map.of());
        server.put(slice("a", Slice.READY));
        Eventually.holds("comes", () -> names().equals(List.of("a")));
        server.answerLists(body);
        final int lists = server.lists();
        server.gone(true);
        Eventually.holds("said, or believed", () -> known.failureCount() > 0 || names().isEmpty());
        assertEquals(List.of("a"), names());
        Eventually.holds("listed often", () -> server.lists() > lists + 2);
        assertEquals(List.of("a"), names());
        assertEquals(1, known.failureCount(), known.failures::toString);
        assertTrue(known.failures.getFirst().contains("no list"), known.failures::toString);
        server.missed(slice("b", Slice.READY));
        server.answerLists(null);
        Eventually.holds("read anew", () -> names().equals(List.of("b")));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":null}",
                "{\"kind\":\"EndpointSliceList\",\"metadata\":{\"resourceVersion\":\"7\"}}"
            })
    void anEmptyListMayHaveNoItems(String body) throws Exception {
        start(known, Map.of());
        server.put(slice("a", Slice.READY));
        Eventually.holds("comes", () -> names().equals(List.of("a")));
        server.answerLists(body);
        server.gone(true);
        Eventually.holds("none", () -> names().isEmpty());
        assertEquals(List.of(), known.failures);
    }

    @Test
    void aTokenThatIsReplacedIsReadAnew() throws Exception {
        start(known, Map.of());
        Eventually.holds("watches", () -> server.watches() == 1);
        assertEquals("Bearer first", server.lastAuthorization());
        Files.writeString(account.resolve("token"), "second\n");
        server.endWatch();
        Eventually.holds("used", () -> server.lastAuthorization().equals("Bearer second"));
        assertTrue(server.lastQuery().contains("labelSelector=app%3Dvllm"), server::lastQuery);
    }

    @Test
    void theRoleIsTheSlicesLabelOrTheSettings() {
        server.put(slice("a", Slice.READY).label("kvasir.io/role", "decode"));
        server.put(new Slice("vllm-2").port("http", 8000).endpoint("b", "10.0.0.2", Slice.READY));
        start(known, Map.of("role", "prefill", "handoff", "trtllm"));
        assertEquals(WorkerRole.DECODE, known.all().getFirst().role());
        assertEquals(WorkerRole.PREFILL, known.all().getLast().role());
        assertEquals("b", known.all().getLast().name());
    }

    @Test
    void whatCannotBeUsedIsSaidOnceAndOthersStay() throws Exception {
        server.put(new Slice("bad").port("web", 1).endpoint("x", "10.0.0.9", Slice.READY));
        server.put(slice("a", Slice.READY).endpoint("no,name", "10.0.0.3", Slice.READY));
        start(known, Map.of());
        Eventually.holds("said", () -> known.failureCount() == 2);
        server.put(new Slice("vllm-2").port("http", 8000).endpoint("b", "10.0.0.2", Slice.READY));
        Eventually.holds("others", () -> names().equals(List.of("a", "b")));
        assertEquals(2, known.failureCount(), known.failures::toString);
    }

    private static List<Slice> unusable() {
        return List.of(
                new Slice("vllm-1").port("http", 8000).annotation("role=decod"),
                new Slice("vllm-1").port("http", 8000).annotation("labels"),
                new Slice("vllm-1").port("web", 8000));
    }

    @Test
    void aWorkerStaysAsItWasWhileItsEndpointCannotBeUsed() throws Exception {
        start(known, Map.of());
        server.put(slice("a", Slice.READY));
        Eventually.holds("comes", () -> names().equals(List.of("a")));
        final DiscoveredWorker first = a();
        for (Slice slice : unusable()) {
            known.failures.clear();
            server.put(slice.endpoint("a", "10.0.0.1", Slice.READY));
            Eventually.holds("said", () -> known.failureCount() == 1);
            settled("b");
            assertEquals(List.of("a", "b"), names());
            server.delete("more");
            Eventually.holds("another change", () -> !names().contains("b"));
            assertEquals(List.of(first), known.all());
            assertEquals(1, known.failureCount(), known.failures::toString);
            assertTrue(
                    known.failures.getFirst().contains("vllm-1/a stays as it was: "),
                    known.failures::toString);
        }
        server.put(slice("a", Slice.READY).annotation("dp=2"));
        Eventually.holds("is described anew", () -> a().worker().dataParallelSize() == 2);
    }

    @Test
    void aWorkerThatStaysAsItWasDrainsAndGoesWithItsEndpoint() throws Exception {
        start(known, Map.of());
        server.put(slice("a", Slice.READY));
        Eventually.holds("comes", () -> names().equals(List.of("a")));
        server.put(slice("a", NOT_READY).annotation("role=decod"));
        Eventually.holds("drains", () -> known.draining().equals(Set.of("a")));
        assertEquals(List.of("a"), names());
        server.put(slice("a", Slice.READY).annotation("role=decod"));
        Eventually.holds("is used again", () -> known.draining().isEmpty());
        server.put(slice("a", GONE).annotation("role=decod"));
        Eventually.holds("is gone", () -> names().isEmpty());
    }

    @ParameterizedTest
    @CsvSource({"ffffffff-0000-4000-8000-000000000000, 10.0.0.1", ", 10.0.0.2"})
    void anotherPodOrAddressThatCannotBeUsedHasNothingOfTheFormer(String uid, String address)
            throws Exception {
        start(known, Map.of());
        server.put(slice("a", Slice.READY));
        Eventually.holds("comes", () -> names().equals(List.of("a")));
        server.put(
                new Slice("vllm-1")
                        .port("http", 8000)
                        .annotation("role=decod")
                        .uid(uid)
                        .endpoint("a", address, Slice.READY));
        Eventually.holds("is gone", () -> names().isEmpty());
        assertTrue(
                known.failures.getFirst().contains("vllm-1/a is left out: "),
                known.failures::toString);
    }

    @Test
    void aServerThatIsNotThereIsNoReasonNotToStart() {
        server.close();
        start(known, Map.of());
        assertEquals(List.of(), names());
        assertEquals(1, known.failureCount());
    }

    @Test
    void tenThousandPodsAreAView() {
        for (int s = 0; s < 100; s++) {
            final Slice slice = new Slice("s" + s).port("http", 8000);
            for (int p = 0; p < 100; p++) {
                slice.endpoint("p" + s + "-" + p, "10.0." + s + "." + p, Slice.READY);
            }
            server.put(slice);
        }
        start(known, Map.of());
        assertEquals(10_000, names().size());
    }
}

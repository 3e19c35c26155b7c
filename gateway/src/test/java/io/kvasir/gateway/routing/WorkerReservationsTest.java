package io.kvasir.gateway.routing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.HandoffProtocol;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.config.WorkerRole;
import io.kvasir.gateway.metrics.GatewayMetrics;
import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.openai.InferenceRequest;
import io.kvasir.gateway.openai.RequestParser;
import io.kvasir.gateway.openai.TokenForm;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.upstream.Discovery;
import io.kvasir.gateway.upstream.Fleet;
import io.kvasir.gateway.upstream.PoolRouters;
import io.kvasir.gateway.upstream.Upstream;
import io.kvasir.gateway.upstream.UpstreamRegistry;
import io.kvasir.gateway.upstream.WorkerPool;
import io.kvasir.router.Worker;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.queue.QueueRank;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.eclipse.jetty.http.HttpFields;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/** Which workers the parts of a request go to. */
class WorkerReservationsTest {
    private static final int[] PROMPT = new int[64];

    private final GatewayConfig config =
            Gateways.config().set(RouterSettings.QUEUE_PREFILL_TOKENS, 1_000_000L).build();
    private final PoolRouters routers = new PoolRouters(config);
    private final UpstreamRegistry registry = new UpstreamRegistry(config, routers);
    private final Fleet fleet = new Fleet(List.of(registry));
    private final Discovery.Listener source = fleet.listener("test");
    private final DecisionLog log = new DecisionLog(16);
    private final WorkerReservations reservations =
            new WorkerReservations(registry, log, new GatewayMetrics(), Clock.systemUTC());

    @AfterEach
    void close() {
        fleet.close();
        routers.close();
    }

    private void add(String name, String keys) {
        source.added(
                DiscoveredWorker.of(
                        "m", WorkerConfig.parse("http://h:1,name=" + name + "," + keys)));
    }

    private RoutingHeaders headers(String... namesAndValues) throws ApiException {
        final HttpFields.Mutable fields = HttpFields.build();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            fields.put(namesAndValues[i], namesAndValues[i + 1]);
        }
        final InferenceRequest request =
                RequestParser.parse(
                        InferenceRequest.Route.COMPLETIONS,
                        "{\"prompt\":\"p\"}".getBytes(StandardCharsets.UTF_8));
        return RoutingHeaders.parse(fields, request, registry);
    }

    private static RoutedPrompt prompt(RoutingHeaders headers) {
        return new RoutedPrompt(PROMPT, false, 0, false, 1, false, null, null, headers, null);
    }

    private WorkerReservations.Booking reserve(RequestPart part, RoutingHeaders headers)
            throws ApiException {
        return reservations.reserve(part, prompt(headers), List.of(), "r", "c", 1);
    }

    /** The workers that a part may go to. */
    private Set<String> workersOf(RequestPart part) throws ApiException {
        return workersOf(part, null);
    }

    private Set<String> workersOf(RequestPart part, TokenForm form) throws ApiException {
        final Set<String> names = new HashSet<>();
        final List<Worker> excluded = new ArrayList<>();
        while (true) {
            final RoutedPrompt prompt =
                    new RoutedPrompt(
                            PROMPT,
                            false,
                            0,
                            false,
                            1,
                            false,
                            null,
                            null,
                            RoutingHeaders.NONE,
                            form);
            try {
                final WorkerReservations.Booking booking =
                        reservations.reserve(part, prompt, excluded, "r", "c", 1);
                booking.lease().close();
                excluded.add(booking.lease().worker());
                names.add(booking.upstream().name());
            } catch (ApiException e) {
                assertEquals(503, e.status());
                return names;
            }
        }
    }

    @Test
    void aRequestWithoutAFormInIdsGoesToWorkersThatTakeText() throws ApiException {
        add("text", "role=both");
        assertEquals(Set.of("text"), workersOf(RequestPart.WHOLE));
        add("ids", "input=tokens");
        assertEquals(Set.of("text"), workersOf(RequestPart.WHOLE));
        final TokenForm form =
                TokenForm.of(
                        RequestParser.parse(
                                InferenceRequest.Route.COMPLETIONS,
                                "{\"prompt\":[1]}".getBytes(StandardCharsets.UTF_8)),
                        List.of());
        assertEquals(Set.of("text", "ids"), workersOf(RequestPart.WHOLE, form));
        source.removed("text");
        assertEquals(Set.of("ids"), workersOf(RequestPart.WHOLE, form));
        assertEquals(Set.of(), workersOf(RequestPart.WHOLE));
        assertTrue(registry.hasTokensWorkers());
        source.removed("ids");
        assertFalse(registry.hasTokensWorkers());
    }

    @Test
    void everyPartGoesToTheWorkersThatAreForIt() throws ApiException {
        add("both", "role=both");
        add("vp", "role=prefill");
        add("vd", "role=decode");
        add("sd", "role=decode,handoff=sglang");
        add("td", "role=decode,handoff=trtllm");
        add("tp", "role=prefill,handoff=trtllm");
        assertEquals(Set.of("both", "vd"), workersOf(RequestPart.WHOLE));
        assertEquals(Set.of("vp", "tp"), workersOf(RequestPart.PREFILL));
        assertEquals(Set.of("vd"), workersOf(RequestPart.decodeAfter(HandoffProtocol.VLLM)));
        assertEquals(Set.of("sd"), workersOf(RequestPart.decodeAfter(HandoffProtocol.SGLANG)));
        assertEquals(Set.of("td"), workersOf(RequestPart.decodeAfter(HandoffProtocol.TRTLLM)));
        source.removed("td");
        assertEquals(Set.of("vp"), workersOf(RequestPart.PREFILL), "nothing takes over from tp");
        assertEquals(Set.of(), workersOf(RequestPart.decodeAfter(HandoffProtocol.TRTLLM)));
    }

    @Test
    void whereThereIsNoPrefillPoolNoneIsBooked() throws ApiException {
        add("both", "role=both");
        assertEquals(Set.of(), workersOf(RequestPart.PREFILL));
        assertEquals(Set.of("both"), workersOf(RequestPart.WHOLE));
    }

    @Test
    void loadsAreOfTheLegsOwnKind() throws Exception {
        add("p", "role=prefill");
        add("d", "role=decode");
        final WorkerReservations.Booking prefill =
                reserve(RequestPart.PREFILL, RoutingHeaders.NONE);
        final WorkerReservations.Booking decode =
                reserve(RequestPart.decodeAfter(HandoffProtocol.VLLM), RoutingHeaders.NONE);
        final Worker prefiller = prefill.lease().worker();
        final Worker decoder = decode.lease().worker();
        Eventually.holds("blocks in use", () -> decoder.activeBlocks() == 4);
        assertEquals(0, decoder.prefillTokens());
        assertEquals(64, prefiller.prefillTokens());
        assertEquals(0, prefiller.activeBlocks());
        assertEquals(2, routers.activeLeases());
        prefill.lease().close();
        decode.lease().close();
        assertEquals(0, routers.activeLeases());
    }

    @Test
    void aBookingThatCannotBeRecordedLeavesNoLoadAndItsRequestHearsOfIt() {
        add("w", "role=both");
        final WorkerReservations broken =
                new WorkerReservations(
                        registry,
                        log,
                        new GatewayMetrics(),
                        () -> {
                            throw new IllegalStateException("scripted");
                        });
        final RoutedPrompt prompt = prompt(RoutingHeaders.NONE);
        assertThrows(
                IllegalStateException.class,
                () -> broken.reserve(RequestPart.WHOLE, prompt, List.of(), "r", "c", 1));
        assertEquals(0, routers.activeLeases());

        final List<ApiException> refused = new ArrayList<>();
        broken.admit(
                RequestPart.WHOLE,
                prompt,
                "r",
                "c",
                QueueRank.USUAL,
                new WorkerReservations.Waiter() {
                    @Override
                    public void booked(WorkerReservations.Booking booking, long waitedNs) {
                        throw new AssertionError("booked");
                    }

                    @Override
                    public void refused(ApiException why) {
                        refused.add(why);
                    }
                });
        assertEquals(List.of(500), refused.stream().map(ApiException::status).toList());
        assertEquals(0, routers.activeLeases());
    }

    @Test
    void aBookingThatItsRequestCannotTakeEndsWithItsDecision() throws ApiException {
        add("w", "role=both");
        final List<ApiException> refused = new ArrayList<>();
        reservations.admit(
                RequestPart.WHOLE,
                prompt(RoutingHeaders.NONE),
                "r",
                "c",
                QueueRank.USUAL,
                new WorkerReservations.Waiter() {
                    @Override
                    public void booked(WorkerReservations.Booking booking, long waitedNs) {
                        throw new RejectedExecutionException("the executor has ended");
                    }

                    @Override
                    public void refused(ApiException why) {
                        refused.add(why);
                    }
                });
        assertEquals(List.of(), refused);
        assertEquals(0, routers.activeLeases());
        assertEquals("abandoned", log.newest(1).getFirst().json().path("outcome").asText());
    }

    @Test
    void decisionsSayWhichLegTheyAreOf() throws ApiException {
        add("p", "role=prefill");
        add("d", "role=decode");
        reserve(RequestPart.WHOLE, RoutingHeaders.NONE).lease().close();
        reserve(RequestPart.PREFILL, RoutingHeaders.NONE).lease().close();
        reserve(RequestPart.decodeAfter(HandoffProtocol.VLLM), RoutingHeaders.NONE).lease().close();
        assertEquals(
                List.of("decode", "prefill", "null"),
                log.newest(9).stream().map(d -> d.json().path("leg").asText()).toList());
    }

    @Test
    void eachHeaderPinsAWorkerOfItsPool() throws ApiException {
        for (int i = 0; i < 3; i++) {
            add("p" + i, "role=prefill");
            add("d" + i, "role=decode");
        }
        final RoutingHeaders pins =
                headers("x-kvasir-worker", "d1", "x-kvasir-prefill-worker", "p2/0");
        for (int i = 0; i < 20; i++) {
            final WorkerReservations.Booking prefill = reserve(RequestPart.PREFILL, pins);
            assertEquals("p2", prefill.upstream().name());
            final WorkerReservations.Booking decode =
                    reserve(RequestPart.decodeAfter(HandoffProtocol.VLLM), pins);
            assertEquals("d1", decode.upstream().name());
            assertEquals("d1", reserve(RequestPart.WHOLE, pins).upstream().name());
        }
    }

    @Test
    void aPinToNoWorkerOfThePoolIsRefusedAndNamed() {
        add("p", "role=prefill");
        add("d", "role=decode");
        for (String[] pin :
                List.of(
                        new String[] {"x-kvasir-worker", "p"},
                        new String[] {"x-kvasir-worker", "none"},
                        new String[] {"x-kvasir-prefill-worker", "d"},
                        new String[] {"x-kvasir-prefill-worker", "none"},
                        new String[] {"x-kvasir-prefill-worker", "p/1"})) {
            final ApiException refused = assertThrows(ApiException.class, () -> headers(pin));
            assertEquals(400, refused.status());
            assertTrue(refused.getMessage().contains(pin[0]), refused.getMessage());
            assertTrue(refused.getMessage().contains("'" + pin[1] + "'"), refused.getMessage());
        }
    }

    @Test
    void aPinToAWorkerThatIsRemovedFailsClosed() throws ApiException {
        add("p", "role=prefill");
        add("q", "role=prefill");
        add("d", "role=decode");
        add("e", "role=decode");
        final RoutingHeaders pins = headers("x-kvasir-worker", "d", "x-kvasir-prefill-worker", "p");
        source.removed("p");
        source.removed("d");
        for (RequestPart part :
                List.of(
                        RequestPart.PREFILL,
                        RequestPart.WHOLE,
                        RequestPart.decodeAfter(HandoffProtocol.VLLM))) {
            assertEquals(503, assertThrows(ApiException.class, () -> reserve(part, pins)).status());
        }
    }

    @Test
    void aPinToAWorkerThatThePartIsNotForFailsClosed() throws ApiException {
        add("both", "role=both");
        add("p", "role=prefill,handoff=sglang");
        add("s", "role=decode,handoff=sglang");
        final RoutingHeaders toBoth = headers("x-kvasir-worker", "both");
        final RequestPart decode = RequestPart.decodeAfter(HandoffProtocol.SGLANG);
        assertEquals("both", reserve(RequestPart.WHOLE, toBoth).upstream().name());
        assertThrows(ApiException.class, () -> reserve(decode, toBoth));
        final RoutingHeaders toDecode = headers("x-kvasir-worker", "s");
        assertThrows(ApiException.class, () -> reserve(RequestPart.WHOLE, toDecode));
        assertEquals("s", reserve(decode, toDecode).upstream().name());
    }

    @Test
    void directModeNamesTheWorkerThatAnswersAlone() throws ApiException {
        add("p", "role=prefill");
        add("d", "role=decode");
        final RoutingHeaders direct = headers("x-kvasir-mode", "direct", "x-kvasir-worker", "d");
        assertEquals("p", reserve(RequestPart.PREFILL, direct).upstream().name());
        final WorkerReservations.Booking decode =
                reserve(RequestPart.decodeAfter(HandoffProtocol.VLLM), direct);
        assertEquals(RoutingMode.DIRECT, decode.decision().mode());
    }

    @Test
    void workersChangeTheirRolesWhileRequestsAreBooked() throws Exception {
        add("stays", "role=both");
        final AtomicBoolean ends = new AtomicBoolean();
        final AtomicInteger booked = new AtomicInteger();
        try (ExecutorService threads = Executors.newFixedThreadPool(4)) {
            final List<Future<?>> callers = new ArrayList<>();
            for (RequestPart part :
                    List.of(
                            RequestPart.WHOLE,
                            RequestPart.PREFILL,
                            RequestPart.decodeAfter(HandoffProtocol.VLLM))) {
                callers.add(
                        threads.submit(
                                () -> {
                                    while (!ends.get()) {
                                        booked.addAndGet(book(part) ? 1 : 0);
                                    }
                                }));
            }
            final String[] roles = {"both", "prefill", "decode"};
            for (int i = 0; i < 600; i++) {
                add("w" + i % 3, "role=" + roles[i % 7 % 3] + ",topic=t" + i);
            }
            ends.set(true);
            for (Future<?> caller : callers) {
                caller.get(60, TimeUnit.SECONDS);
            }
        }
        assertNotEquals(0, booked.get());
        assertEquals(0, routers.activeLeases());
        for (WorkerPool pool : WorkerPool.values()) {
            for (Worker worker : registry.workers(pool)) {
                Eventually.holds("no load on " + worker, () -> worker.activeRequests() == 0);
                assertEquals(0, worker.prefillTokens());
                assertEquals(0, worker.activeBlocks());
            }
        }
    }

    /** Books once, if there is a worker; it must be one that the part is for. */
    private boolean book(RequestPart part) {
        final WorkerReservations.Booking booking;
        try {
            booking = reserve(part, RoutingHeaders.NONE);
        } catch (ApiException e) {
            assertEquals(503, e.status());
            assertFalse(part == RequestPart.WHOLE, "one that does both is always there");
            return false;
        }
        final Upstream upstream = booking.upstream();
        booking.lease().close();
        if (part == RequestPart.WHOLE) {
            assertNotEquals(WorkerRole.PREFILL, upstream.role());
        } else {
            assertEquals(
                    part == RequestPart.PREFILL ? WorkerRole.PREFILL : WorkerRole.DECODE,
                    upstream.role());
        }
        return true;
    }
}

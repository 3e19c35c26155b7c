package io.kvasir.gateway.proxy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.disagg.BlockRelease;
import io.kvasir.gateway.log.RequestRecord;
import io.kvasir.gateway.metrics.GatewayMetrics;
import io.kvasir.gateway.openai.Endpoint;
import io.kvasir.gateway.openai.InferenceRequest;
import io.kvasir.gateway.openai.RequestParser;
import io.kvasir.gateway.openai.UsageReader;
import io.kvasir.gateway.routing.DecisionLog;
import io.kvasir.gateway.routing.PromptReader;
import io.kvasir.gateway.routing.RoutingHeaders;
import io.kvasir.gateway.routing.WorkerReservations;
import io.kvasir.gateway.server.AnswerMemory;
import io.kvasir.gateway.server.ResponseCoding;
import io.kvasir.gateway.server.TrustedCallers;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.gateway.upstream.Discovery;
import io.kvasir.gateway.upstream.Fleet;
import io.kvasir.gateway.upstream.PoolRouters;
import io.kvasir.gateway.upstream.StaleConnectionDetector;
import io.kvasir.gateway.upstream.UpstreamRegistry;
import io.kvasir.gateway.upstream.WorkerKey;
import io.kvasir.prompt.chat.PromptRules;
import io.kvasir.router.disagg.Deadlines;
import io.kvasir.router.queue.QueueRank;
import io.kvasir.testsupport.Eventually;

import org.eclipse.jetty.client.HttpClient;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.BufferUtil;
import org.eclipse.jetty.util.Callback;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.nio.ByteBuffer;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** Which deadlines run while workers meet: none longer than what it limits. */
class SplitDeadlinesTest {
    private static final String ASK = "{\"model\":\"m\",\"prompt\":[1,2,3],\"stream\":true}";

    /** Deadlines that fire by hand alone. */
    private static final class Kept implements Deadlines {
        private final AtomicInteger begun = new AtomicInteger();
        private final AtomicLong longestNs = new AtomicLong();
        private final Map<Integer, Runnable> running = new ConcurrentHashMap<>();

        @Override
        public Runnable after(long delayNs, Runnable action) {
            final Integer number = begun.incrementAndGet();
            longestNs.accumulateAndGet(delayNs, Math::max);
            running.put(number, action);
            return () -> running.remove(number);
        }
    }

    private final CountDownLatch prefilled = new CountDownLatch(1);
    private final CountDownLatch decoded = new CountDownLatch(1);
    private final FakeEngine prefill =
            new FakeEngine(
                    call -> {
                        prefilled.await();
                        call.json(200, "{}");
                    });
    private final FakeEngine decode =
            new FakeEngine(
                    call -> {
                        call.beginEvents();
                        call.chunk("data: {\"choices\":[{\"index\":0,\"text\":\"t\"}]}\n\n");
                        decoded.await();
                        call.chunk("data: [DONE]\n\n");
                        call.endChunks();
                    });
    private final GatewayConfig config =
            Gateways.config()
                    .set(GatewaySettings.PREFILL_TIMEOUT, Duration.ofMillis(1_500))
                    .build();
    private final PoolRouters routers = new PoolRouters(config);
    private final UpstreamRegistry registry = new UpstreamRegistry(config, routers);
    private final Fleet fleet = new Fleet(List.of(registry));
    private final Discovery.Listener workers = fleet.listener("test");
    private final GatewayMetrics metrics = new GatewayMetrics();
    private final BlockRelease release = BlockRelease.open(config);
    private final Kept deadlines = new Kept();
    private final HttpClient client = new HttpClient();
    private final Server server = new Server();
    private final ServerConnector connector = new ServerConnector(server);

    @BeforeEach
    void start() throws Exception {
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
        server.addBean(client);
        final ProxyContext context = context();
        server.setHandler(
                new Handler.Abstract() {
                    @Override
                    public boolean handle(Request request, Response response, Callback callback)
                            throws Exception {
                        new ProxyExchange(context, proxied(request), request, response, callback)
                                .start();
                        return true;
                    }
                });
        server.start();
    }

    @AfterEach
    void stop() throws Exception {
        assertEquals(
                config.get(GatewaySettings.PREFILL_TIMEOUT).toNanos(), deadlines.longestNs.get());
        server.stop();
        prefill.close();
        decode.close();
        fleet.close();
        routers.close();
        release.close();
    }

    private void add(FakeEngine engine, String keys) {
        workers.added(DiscoveredWorker.of("m", WorkerConfig.parse(engine.url() + "," + keys)));
    }

    private ProxyContext context() {
        final SplitContext made = SplitContext.of(config, client, release);
        return new ProxyContext(
                config,
                client,
                new StaleConnectionDetector(),
                new WorkerReservations(registry, new DecisionLog(16), metrics, Clock.systemUTC()),
                registry,
                metrics,
                new PredictionFeedback(metrics),
                new TrustedCallers(config),
                new WorkerKey(config),
                new ResponseCoding(config),
                new AnswerMemory(() -> Long.MAX_VALUE),
                new SplitContext(config, made.policy(), made.transfers(), deadlines, release),
                ConcurrentHashMap.newKeySet());
    }

    private ProxyRequest proxied(Request request) throws Exception {
        final byte[] body = BufferUtil.toArray(Content.Source.asByteBuffer(request));
        final InferenceRequest inference =
                RequestParser.parse(InferenceRequest.Route.COMPLETIONS, body);
        final PromptReader reader =
                new PromptReader(
                        config,
                        null,
                        () -> UsageReader.UNKNOWN,
                        () -> false,
                        () -> PromptRules.VLLM,
                        _ -> false);
        return new ProxyRequest(
                inference,
                reader.read(inference, RoutingHeaders.NONE, "r"),
                ByteBuffer.wrap(body),
                false,
                QueueRank.USUAL,
                false,
                new RequestRecord("r", Endpoint.COMPLETIONS));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void thatOfAPrefillEndsWithItsAnswer(boolean beforeTheDecodeEnds) throws Exception {
        add(prefill, "name=p,role=prefill,bootstrap=10.0.0.9:8998");
        add(decode, "name=d,role=decode,handoff=sglang");
        try (RawClient asking = new RawClient(connector.getLocalPort())) {
            asking.post("/v1/completions", ASK).readUntil("\"t\"");
            Eventually.holds(
                    "the flow's is replaced by that of the rest",
                    () -> deadlines.running.keySet().equals(Set.of(2)));
            if (beforeTheDecodeEnds) {
                prefilled.countDown();
                Eventually.holds("none runs", deadlines.running::isEmpty);
            }
            decoded.countDown();
            assertTrue(asking.drainUntil("[DONE]"));
        }
        prefilled.countDown();
        Eventually.holds("none runs", deadlines.running::isEmpty);
        assertEquals(2, deadlines.begun.get());
    }

    @Test
    void aPrefillThatDoesNotEndAfterItsClientIsLeftToItsEngine() throws Exception {
        prefill.script =
                call -> {
                    call.raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{");
                    call.awaitClientGone(60);
                };
        add(prefill, "name=p,role=prefill");
        add(decode, "name=d,role=decode");
        try (RawClient asking = new RawClient(connector.getLocalPort())) {
            asking.post("/v1/completions", ASK);
            Eventually.holds("the prefill runs", () -> prefill.inFlight.get() == 1);
        }
        Eventually.holds(
                "the flow's is replaced by that of the rest",
                () -> deadlines.running.keySet().equals(Set.of(2)));
        deadlines.running.get(2).run();
        assertTrue(prefill.calls.getFirst().awaitClientGone(60));
        Eventually.holds("none runs", deadlines.running::isEmpty);
        final String page = metrics.page(null).text();
        assertTrue(page.contains("kvasir_prefills_stranded_total{handoff=\"vllm\"} 1"), page);
    }
}

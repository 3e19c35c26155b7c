package io.kvasir.gateway;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.openai.Json;
import io.kvasir.prompt.chat.ChatModel;
import io.kvasir.registry.FailureText;
import io.kvasir.router.settings.RouterSettings;

import org.eclipse.jetty.client.HttpClient;
import org.eclipse.jetty.client.Result;
import org.eclipse.jetty.client.StringRequestContent;
import org.eclipse.jetty.http.HttpStatus;
import org.eclipse.jetty.util.component.LifeCycle;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Requests before the first client's: they go through a gateway of their own, with the real
 * tokenizer and a worker without a model, so that the machine code of the whole way is there when
 * the real one begins to listen. What it cannot warm, it leaves: a failure is logged, not thrown.
 */
final class WarmUp {
    private static final Logger LOG = LoggerFactory.getLogger(WarmUp.class);
    private static final int AT_ONCE = 16;
    private static final int MOST_REQUESTS = 20_000;
    private static final int WORDS = 40;
    private static final int STREAMED_OF_FOUR = 3;
    private static final long SMALL = 1 << 16;
    private static final long NS_PER_MS = 1_000_000;
    private static final long PATIENCE_S = 5;

    private final SplittableRandom random = new SplittableRandom(1);
    private final AtomicInteger sent = new AtomicInteger();
    private final AtomicInteger failed = new AtomicInteger();
    private final HttpClient client;
    private final String url;
    private final String model;
    private final ChatModel encoder;
    private final boolean chat;

    private WarmUp(HttpClient client, String url, String model, ChatModel encoder) {
        this.client = client;
        this.url = url;
        this.model = model;
        this.encoder = encoder;
        this.chat = encoder != null && encoder.hasChatTemplate();
    }

    /**
     * Sends requests for each model in turn until the time that the configuration gives to it is
     * over.
     *
     * @param config of the real gateway
     * @param encoders of its models; stay open
     * @return requests that were answered
     */
    static int run(GatewayConfig config, Encoders encoders) {
        final List<GatewayConfig> models = config.models();
        final long limitNs = config.get(GatewaySettings.WARM_UP).toNanos() / models.size();
        int answered = 0;
        for (int i = 0; i < models.size() && limitNs > 0; i++) {
            answered += run(models.get(i), encoders.get(i), limitNs);
        }
        return answered;
    }

    private static int run(GatewayConfig config, ChatModel encoder, long limitNs) {
        final long startNs = System.nanoTime();
        try (StubWorker worker = StubWorker.start();
                GatewayServer gateway =
                        GatewayServer.startWith(config(config, worker), Encoders.of(encoder));
                Sender sender = Sender.start()) { // ends first: gateways wait for connections
            final WarmUp warmUp =
                    new WarmUp(
                            sender.client,
                            "http://127.0.0.1:" + gateway.port(),
                            config.get(GatewaySettings.MODEL),
                            encoder);
            warmUp.send(startNs + limitNs);
            LOG.info(
                    "warmed up by {} requests of its own in {} ms, {} of them failed",
                    warmUp.sent,
                    (System.nanoTime() - startNs) / NS_PER_MS,
                    warmUp.failed);
            return warmUp.sent.get() - warmUp.failed.get();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (Exception e) {
            LOG.warn("not warmed up, so the first requests take longer: {}", FailureText.of(e));
        }
        return 0;
    }

    /** A running client; its own {@code close} may be interrupted. */
    private record Sender(HttpClient client) implements AutoCloseable {
        static Sender start() throws Exception {
            final HttpClient client = new HttpClient();
            client.setMaxConnectionsPerDestination(AT_ONCE);
            client.start();
            return new Sender(client);
        }

        @Override
        public void close() {
            LifeCycle.stop(client);
        }
    }

    private static GatewayConfig config(GatewayConfig real, StubWorker worker) {
        return GatewayConfig.builder()
                .set(GatewaySettings.MODEL, real.get(GatewaySettings.MODEL))
                .set(GatewaySettings.HOST, "127.0.0.1")
                .set(GatewaySettings.PORT, 0)
                .set(GatewaySettings.ADMIN_HOST, "127.0.0.1")
                .set(GatewaySettings.ADMIN_PORT, 0L)
                .set(RouterSettings.BLOCK_SIZE, real.get(RouterSettings.BLOCK_SIZE))
                .set(RouterSettings.MODE, real.get(RouterSettings.MODE))
                .set(RouterSettings.APPROXIMATE, true)
                .set(RouterSettings.MAX_WORKERS, 2)
                .set(RouterSettings.MAX_BLOCKS, SMALL)
                .worker(WorkerConfig.parse(worker.url() + ",name=warm-up"))
                .build();
    }

    private void send(long endNs) throws Exception {
        final Semaphore free = new Semaphore(AT_ONCE);
        for (int i = 0; i < MOST_REQUESTS && System.nanoTime() - endNs < 0; i++) {
            free.acquire();
            client.POST(url + (chat ? "/v1/chat/completions" : "/v1/completions"))
                    .body(new StringRequestContent("application/json", body(i)))
                    .timeout(PATIENCE_S, TimeUnit.SECONDS)
                    .send(result -> ended(result, free));
        }
        free.acquire(AT_ONCE);
    }

    private void ended(Result result, Semaphore free) {
        sent.incrementAndGet();
        if (result.isFailed() || result.getResponse().getStatus() != HttpStatus.OK_200) {
            failed.incrementAndGet();
        }
        free.release();
    }

    private String body(int i) {
        final ObjectNode body = Json.MAPPER.createObjectNode();
        body.put("model", model).put("stream", i % 4 < STREAMED_OF_FOUR).put("max_tokens", 16);
        if (chat) {
            final ArrayNode messages = body.putArray("messages");
            messages.addObject().put("role", "system").put("content", "Answer in one word.");
            messages.addObject().put("role", "user").put("content", text());
        } else if (encoder == null) {
            final ArrayNode ids = body.putArray("prompt");
            for (int id = 0; id < WORDS; id++) {
                ids.add(random.nextInt(100));
            }
        } else {
            body.put("prompt", text());
        }
        return body.toString();
    }

    private String text() {
        final StringBuilder text = new StringBuilder();
        for (int word = 0; word < WORDS; word++) {
            text.append(Integer.toString(random.nextInt(1, 1 << 24), 36)).append(' ');
        }
        return text.toString();
    }
}

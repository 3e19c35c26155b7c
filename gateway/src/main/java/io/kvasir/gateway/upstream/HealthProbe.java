package io.kvasir.gateway.upstream;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.log.LogText;
import io.kvasir.gateway.openai.HealthAnswer;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.openai.UsageReader;
import io.kvasir.prompt.chat.ChatModel;
import io.kvasir.prompt.chat.PromptRules;
import io.kvasir.registry.FailureText;
import io.kvasir.router.settings.RouterSettings;

import org.eclipse.jetty.client.Connection;
import org.eclipse.jetty.client.ContentResponse;
import org.eclipse.jetty.client.HttpClient;
import org.eclipse.jetty.client.Request;
import org.eclipse.jetty.client.StringRequestContent;
import org.eclipse.jetty.http.HttpHeader;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.net.ConnectException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;

/**
 * Asks each server now and then whether it is there and, on first contact, whether it is what the
 * configuration says: same block size, same tokens. One virtual thread per server.
 */
public final class HealthProbe {
    /** Owner of SGLang's models, which are computed whatever name a completion or a chat has. */
    private static final String SGLANG = "sglang";

    /** Names that are said of a long list. */
    private static final int MOST_NAMES = 3;

    private static final Logger LOG = LoggerFactory.getLogger(HealthProbe.class);
    private static final long LOOK_NS = TimeUnit.SECONDS.toNanos(2); // at a changed interval

    private static final String SAMPLE =
            "Kvasir asks: naïve café, 42 times?\n\n\tYes - it's 3.14 (北京) 🙂";

    private final HttpClient client;
    private final StaleConnectionDetector staleConnections;
    private final WorkerKey key;
    private final GatewayConfig config;
    private final ChatModel encoder;

    /**
     * @param encoder null when the gateway has no tokenizer
     */
    public HealthProbe(
            HttpClient client,
            StaleConnectionDetector staleConnections,
            WorkerKey key,
            GatewayConfig config,
            ChatModel encoder) {
        this.client = client;
        this.staleConnections = staleConnections;
        this.key = key;
        this.config = config;
        this.encoder = encoder;
    }

    /**
     * Begins to ask a server.
     *
     * @return what ends it; does not wait for a probe under way
     */
    public Runnable watch(Upstream upstream) {
        final Thread thread =
                Thread.ofVirtual()
                        .name("kvasir-probe-" + upstream.name())
                        .unstarted(() -> keepAsking(upstream));
        thread.start();
        return thread::interrupt;
    }

    private void keepAsking(Upstream upstream) {
        final AdapterProbe adapters = new AdapterProbe(upstream, config);
        String failure = ""; // of the last probe
        try {
            while (!Thread.currentThread().isInterrupted()) {
                try {
                    probe(upstream, adapters);
                    failure = "";
                } catch (RuntimeException | Error e) { // an Error too is of this probe
                    failure = said(upstream, FailureText.of(e), failure, e);
                }
                pause(System.nanoTime());
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // it is removed, or the gateway closes
        }
    }

    /** Logs why a probe failed, unless the one before it failed so. */
    private static String said(Upstream upstream, String failure, String before, Throwable e) {
        if (!failure.equals(before)) {
            LOG.error("probe of worker {} failed", upstream.name(), LogText.of(e));
        }
        return failure;
    }

    /** Waits for the next probe, which a changed interval may have come sooner. */
    private void pause(long startNs) throws InterruptedException {
        for (long leftNs = leftNs(startNs); leftNs > 0; leftNs = leftNs(startNs)) {
            TimeUnit.NANOSECONDS.sleep(Math.min(leftNs, LOOK_NS));
        }
    }

    private long leftNs(long startNs) {
        return config.get(GatewaySettings.HEALTH_INTERVAL).toNanos()
                - (System.nanoTime() - startNs);
    }

    private void probe(Upstream upstream, AdapterProbe adapters) throws InterruptedException {
        try {
            final String fault = HealthAnswer.faultOrNull(get(upstream, "/health").getStatus());
            if (fault != null) {
                upstream.probeFailed(UpstreamFault.STATUS, false, "GET /health " + fault);
                return;
            }
        } catch (ProbeException e) {
            final Throwable cause = e.getCause();
            final UpstreamFault fault = e.fault;
            if (fault == UpstreamFault.DESCRIPTORS) {
                Descriptors.reportLack();
            }
            upstream.probeFailed(
                    fault,
                    cause instanceof ConnectException,
                    "GET /health: " + UpstreamFault.describe(cause));
            if (e.connection != null && upstream.health().isSilent()) {
                // one of HTTP/2 is still there, and may be what is dead
                e.connection.close();
            }
            return;
        }
        final boolean anew = upstream.probed();
        if (anew) {
            learnCache(upstream);
        }
        if (adapters.isDue(anew)) {
            learnAdapters(upstream, adapters);
        }
        if (anew) {
            compareTokens(upstream);
            learnModels(upstream);
        }
    }

    private void learnAdapters(Upstream upstream, AdapterProbe adapters)
            throws InterruptedException {
        try {
            final ContentResponse answer = get(upstream, AdapterProbe.PATH);
            adapters.answered(answer.getStatus(), answer.getContent());
        } catch (ProbeException e) {
            adapters.failed(e.getMessage());
        }
    }

    private void learnCache(Upstream upstream) throws InterruptedException {
        try {
            final StatedCache cache =
                    StatedCache.of(get(upstream, "/metrics").getContentAsString());
            final int blockSize = cache.blockSize();
            upstream.cache(blockSize, cache.blocks());
            if (blockSize == UsageReader.UNKNOWN) {
                LOG.info("worker {} does not state its block size in /metrics", upstream.name());
            } else if (blockSize != config.get(RouterSettings.BLOCK_SIZE)) {
                LOG.error(
                        "worker {} uses blocks of {} tokens, the gateway is configured for {}: its"
                                + " events cannot be used and it is routed by load alone; set"
                                + " block-size to {}",
                        upstream.name(),
                        blockSize,
                        config.get(RouterSettings.BLOCK_SIZE),
                        blockSize);
            }
        } catch (ProbeException e) {
            LOG.info(
                    "worker {}: cannot read /metrics: {}",
                    upstream.name(),
                    LogText.of(e.getMessage()));
        }
    }

    /**
     * Whose engine it is, and whether it serves the model by the name that requests have, as far as
     * that can be known.
     */
    private void learnModels(Upstream upstream) throws InterruptedException {
        final String model = config.get(GatewaySettings.MODEL);
        String others = null;
        PromptRules rules = null;
        try {
            final ContentResponse answer = get(upstream, AdapterProbe.PATH);
            if (answer.getStatus() == 200) {
                final JsonNode page = Json.MAPPER.readTree(answer.getContent());
                final String owner = page.path("data").path(0).path("owned_by").asText();
                rules = owner.equals(SGLANG) ? PromptRules.SGLANG : PromptRules.VLLM;
                if (upstream.tokenizer() == Upstream.TokenizerCheck.UNKNOWN) { // else it took it
                    others = othersOrNull(page, model);
                }
            }
        } catch (ProbeException | IOException | RuntimeException e) {
            LOG.debug("worker {}: its models cannot be read", upstream.name(), LogText.of(e));
        }
        upstream.promptRules(rules);
        upstream.otherModels(others);
        if (others != null) {
            LOG.warn(
                    "worker {} lists no model {} but {}: it may answer 404 to every request; set"
                            + " model to a name that it serves, or start it with"
                            + " --served-model-name of this one",
                    upstream.name(),
                    LogText.of(model),
                    LogText.of(others));
        }
    }

    /** The first models of a list that has some, and not this one; else null. */
    private static String othersOrNull(JsonNode page, String model) {
        final List<String> names = new ArrayList<>();
        for (JsonNode each : page.path("data")) {
            final String name = each.path("id").asText("");
            if (name.equals(model) || SGLANG.equals(each.path("owned_by").asText())) {
                return null;
            }
            if (!name.isEmpty() && !each.path("parent").isTextual() && names.size() < MOST_NAMES) {
                names.add(name);
            }
        }
        return names.isEmpty() ? null : String.join(", ", names);
    }

    private void compareTokens(Upstream upstream) throws InterruptedException {
        if (encoder == null) {
            upstream.tokenizer(
                    Upstream.TokenizerCheck.UNKNOWN,
                    "the gateway has no tokenizer; set tokenizer"
                            + (upstream.takesTokens()
                                    ? "; only prompts that are token ids are sent to this worker"
                                    : ""));
            return;
        }
        final ObjectNode text = Json.MAPPER.createObjectNode();
        text.put("model", config.get(GatewaySettings.MODEL)).put("prompt", SAMPLE);
        final ObjectNode chat = Json.MAPPER.createObjectNode();
        chat.put("model", config.get(GatewaySettings.MODEL));
        chat.putArray("messages").addObject().put("role", "user").put("content", SAMPLE);
        try {
            String difference =
                    difference(upstream, "text", text, encoder.completionTokens(SAMPLE));
            if (difference == null && encoder.hasChatTemplate()) {
                difference = difference(upstream, "chat", chat, encoder.chatTokens(chat));
            }
            if (difference == null) {
                upstream.tokenizer(
                        Upstream.TokenizerCheck.AGREES,
                        encoder.hasChatTemplate()
                                ? "text and chat samples agree"
                                : "the text sample agrees; there is no chat template");
                LOG.info("worker {}: same tokens as the gateway", upstream.name());
            } else {
                upstream.tokenizer(Upstream.TokenizerCheck.DIFFERS, difference);
                LOG.error(
                        "worker {} computes other tokens than the gateway, so its cache cannot be"
                                + " predicted; is tokenizer the model's own? {}",
                        upstream.name(),
                        LogText.of(difference));
            }
        } catch (ProbeException | IOException | RuntimeException e) {
            upstream.tokenizer(Upstream.TokenizerCheck.UNKNOWN, FailureText.of(e));
            LOG.info(
                    "worker {}: cannot compare tokens: {}",
                    upstream.name(),
                    LogText.of(FailureText.of(e)));
        }
    }

    /** Null if the engine's tokens are the expected ones. */
    private String difference(Upstream upstream, String what, ObjectNode body, int[] expected)
            throws InterruptedException, ProbeException, IOException {
        final ContentResponse answer =
                send(
                        () ->
                                request(upstream, "/tokenize")
                                        .method("POST")
                                        .body(
                                                new StringRequestContent(
                                                        "application/json", body.toString())));
        if (answer.getStatus() != 200) {
            throw new IOException("POST /tokenize answered " + answer.getStatus());
        }
        final JsonNode json = Json.MAPPER.readTree(answer.getContent());
        if (!json.path("tokens").isArray()) {
            throw new IOException("POST /tokenize answered without tokens");
        }
        if (json.path("max_model_len").canConvertToInt()) {
            upstream.maxModelLength(json.path("max_model_len").intValue());
        }
        final int[] actual = Json.MAPPER.convertValue(json.path("tokens"), int[].class);
        final int at = Arrays.mismatch(expected, actual);
        return at < 0
                ? null
                : what
                        + " sample differs from token "
                        + at
                        + " on: engine "
                        + Arrays.toString(actual)
                        + ", gateway "
                        + Arrays.toString(expected);
    }

    private ContentResponse get(Upstream upstream, String path)
            throws InterruptedException, ProbeException {
        return send(() -> request(upstream, path));
    }

    private Request request(Upstream upstream, String path) {
        final Request request =
                UpstreamTransport.applyTo(
                                client.newRequest(upstream.url()),
                                config.get(GatewaySettings.UPSTREAM_HTTP2))
                        .path(upstream.path(path));
        final String authorization = key.of(upstream);
        return authorization == null
                ? request
                : request.headers(all -> all.put(HttpHeader.AUTHORIZATION, authorization));
    }

    /** Asks, and asks again where the worker had closed the connection; within one timeout. */
    private ContentResponse send(Supplier<Request> question)
            throws InterruptedException, ProbeException {
        final long deadline =
                System.nanoTime() + config.get(GatewaySettings.HEALTH_TIMEOUT).toNanos();
        final AtomicBoolean written = new AtomicBoolean();
        final AtomicBoolean begun = new AtomicBoolean();
        for (int staleRetries = 0; ; staleRetries++) {
            final AtomicReference<StaleConnectionDetector.Sent> over = new AtomicReference<>();
            final Request asked =
                    question.get()
                            .timeout(millisUntil(deadline), TimeUnit.MILLISECONDS)
                            .idleTimeout(0, TimeUnit.MILLISECONDS) // it has a limit already
                            .onRequestBegin(request -> over.set(staleConnections.sent(request)))
                            .onRequestCommit(_ -> written.set(true))
                            .onResponseBegin(
                                    _ -> {
                                        begun.set(true);
                                        over.get().received();
                                    });
            try {
                return asked.send();
            } catch (ExecutionException e) {
                if (begun.get()
                        || staleRetries == StaleConnectionDetector.STALE_RETRIES
                        || !wasNotProcessed(e.getCause(), over.get())) {
                    throw new ProbeException(
                            written.get()
                                    ? UpstreamFault.of(e.getCause())
                                    : UpstreamFault.ofUnwritten(e.getCause()),
                            e.getCause(),
                            asked.getConnection());
                }
            } catch (TimeoutException e) {
                throw new ProbeException(UpstreamFault.TIMEOUT, e, asked.getConnection());
            }
        }
    }

    private static boolean wasNotProcessed(
            Throwable failure, StaleConnectionDetector.Sent overOrNull) {
        final UpstreamFault fault = UpstreamFault.of(failure);
        return fault == UpstreamFault.REFUSED
                || (overOrNull != null && !StreamReset.is(failure) && overOrNull.wasStale(fault));
    }

    /** There is no answer. */
    private static final class ProbeException extends Exception {
        private static final long serialVersionUID = 1L;

        private final UpstreamFault fault;
        private final transient Connection connection; // null if there was none

        ProbeException(UpstreamFault fault, Throwable cause, Connection connection) {
            super(UpstreamFault.describe(cause), cause, false, false);
            this.fault = fault;
            this.connection = connection;
        }
    }

    /** At least 1, as 0 means that there is no timeout. */
    private static long millisUntil(long deadlineNs) {
        return Math.max(1, TimeUnit.NANOSECONDS.toMillis(deadlineNs - System.nanoTime()));
    }
}

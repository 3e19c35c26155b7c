package io.kvasir.sim.http;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import io.kvasir.registry.FailureText;
import io.kvasir.sim.batch.InjectedFaults;
import io.kvasir.sim.batch.MetricsPage;
import io.kvasir.sim.batch.RankScheduler;
import io.kvasir.sim.batch.StepLoop;
import io.kvasir.sim.config.HandoffFault;
import io.kvasir.sim.config.PullStage;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.faults.SimFaults;

import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.VirtualThreads;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

import java.io.CharConversionException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;

/** The HTTP side of an engine: a Jetty server on virtual threads and its routes. */
public final class SimServer {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long IDLE_MILLIS = Duration.ofHours(1).toMillis();
    // these accept and select; requests run on virtual threads
    private static final int MOST_THREADS = 16;
    private static final int FEWEST_THREADS = 4;

    private final SimConfig config;
    private final StepLoop loop;
    private final SimFaults faults;
    private final Models models;
    private final CompletionEndpoint completions;
    private final Server server;
    private final ServerConnector connector;
    private final long startedAt = Instant.now().getEpochSecond();

    /** Makes the server of an engine; {@link #start} must follow. */
    public SimServer(
            SimConfig config,
            StepLoop loop,
            SimFaults faults,
            InjectedFaults injected,
            Handoff handoff) {
        this.config = config;
        this.loop = loop;
        this.faults = faults;
        this.models = new Models(config);
        this.completions = new CompletionEndpoint(config, loop, faults, injected, models, handoff);
        final QueuedThreadPool threads = new QueuedThreadPool(MOST_THREADS, FEWEST_THREADS);
        threads.setName("sim-http");
        threads.setDaemon(true);
        threads.setVirtualThreadsExecutor(VirtualThreads.getDefaultVirtualThreadsExecutor());
        this.server = new Server(threads);
        this.connector = new ServerConnector(server, 1, 1);
        connector.setHost(config.host());
        connector.setPort(config.port());
        connector.setIdleTimeout(IDLE_MILLIS); // a request may wait long for its slot
        connector
                .getConnectionFactory(HttpConnectionFactory.class)
                .getHttpConfiguration()
                .setSendServerVersion(false);
        server.addConnector(connector);
        server.setStopTimeout(0);
        server.setHandler(new Routes());
    }

    /** Binds the port and serves. */
    public void start() throws Exception {
        server.start();
    }

    /** The port that is bound. */
    public int port() {
        return connector.getLocalPort();
    }

    /** Ends the server. */
    public void stop() throws Exception {
        server.stop();
    }

    /** One method and path to one method here. */
    private final class Routes extends Handler.Abstract {
        @Override
        public boolean handle(Request request, Response response, Callback callback)
                throws Exception {
            try {
                route(request, response, callback);
            } catch (ApiException e) {
                send(response, callback, e.status(), error(e));
            }
            return true;
        }
    }

    private void route(Request request, Response response, Callback callback) throws Exception {
        switch (request.getMethod() + " " + Request.getPathInContext(request)) {
            case "POST /v1/completions" ->
                    completions.handle(
                            CompletionEndpoint.Api.COMPLETIONS, request, response, callback);
            case "POST /v1/chat/completions" ->
                    completions.handle(CompletionEndpoint.Api.CHAT, request, response, callback);
            case "POST /v1/messages" ->
                    completions.handle(
                            CompletionEndpoint.Api.MESSAGES, request, response, callback);
            case "POST /v1/responses" ->
                    completions.handle(
                            CompletionEndpoint.Api.RESPONSES, request, response, callback);
            case "GET /v1/models" -> send(response, callback, 200, models.list(startedAt));
            case "GET /health", "GET /ping" -> send(response, callback, 200, "");
            case "GET /version" -> send(response, callback, 200, "{\"version\":\"0.32.0\"}");
            case "GET /metrics" -> metrics(response, callback);
            case "POST /tokenize" -> send(response, callback, 200, tokenize(body(request)));
            case "POST /detokenize" -> send(response, callback, 200, detokenize(body(request)));
            case "POST /reset_prefix_cache" -> {
                final boolean success = reset(request);
                send(response, callback, 200, "{\"success\":" + success + "}");
            }
            case "POST /sim/faults" -> send(response, callback, 200, inject(request));
            case "GET /sim/state" -> send(response, callback, 200, state(request));
            default -> send(response, callback, 404, "{\"detail\":\"Not Found\"}");
        }
    }

    private static ApiRequest body(Request request) throws IOException {
        try (InputStream body = Content.Source.asInputStream(request)) {
            return ApiRequest.read(body);
        }
    }

    private void metrics(Response response, Callback callback) {
        final String page =
                loop.ask(
                        () -> {
                            final RankScheduler[] ranks = new RankScheduler[loop.ranks()];
                            for (int r = 0; r < ranks.length; r++) {
                                ranks[r] = loop.rank(r);
                            }
                            return new MetricsPage(config, ranks).write();
                        });
        response.getHeaders().put(HttpHeader.CONTENT_TYPE, "text/plain; version=0.0.4");
        response.write(true, StandardCharsets.UTF_8.encode(page), callback);
    }

    private String tokenize(ApiRequest api) {
        models.adapter(api.model);
        final int[] tokens;
        if (api.messages != null) {
            tokens =
                    SimTokenizer.encode(
                            SimTokenizer.chat(api.messages, api.addGenerationPrompt), false);
        } else if (api.prompts.size() == 1 && api.prompts.getFirst() instanceof String text) {
            tokens = SimTokenizer.encode(text, api.addSpecialTokens);
        } else {
            throw ApiException.badRequest("`prompt` must be a string.", "prompt");
        }
        final StringBuilder out = new StringBuilder("{\"count\":").append(tokens.length);
        out.append(",\"max_model_len\":").append(config.maxModelLength()).append(",\"tokens\":");
        Json.array(out, tokens).append(",\"token_strs\":");
        if (api.returnTokenStrings) {
            out.append('[');
            for (int i = 0; i < tokens.length; i++) {
                Json.string(out.append(i == 0 ? "" : ","), SimTokenizer.name(tokens[i]));
            }
            out.append(']');
        } else {
            out.append("null");
        }
        return out.append('}').toString();
    }

    private static String detokenize(ApiRequest api) {
        if (api.tokens == null) {
            throw ApiException.badRequest("`tokens` is missing.", "tokens");
        }
        final StringBuilder out = new StringBuilder("{\"prompt\":");
        Json.string(out, SimTokenizer.decode(api.tokens, 0, api.tokens.length));
        return out.append('}').toString();
    }

    private boolean reset(Request request) {
        final boolean preempt =
                Boolean.parseBoolean(
                        Request.extractQueryParameters(request).getValue("reset_running_requests"));
        return loop.ask(
                () -> {
                    boolean success = true;
                    for (int r = 0; r < loop.ranks(); r++) {
                        success &= loop.rank(r).resetCache(preempt);
                    }
                    return success;
                });
    }

    private String inject(Request request) throws IOException {
        final JsonNode wanted;
        try (InputStream body = Content.Source.asInputStream(request)) {
            wanted = JSON.readTree(body);
        } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
            throw ApiException.badRequest("Invalid JSON: " + FailureText.of(e), null);
        } catch (CharConversionException e) { // it begins as UTF-32, and is none
            throw ApiException.badRequest("Invalid JSON: " + FailureText.of(e), null);
        }
        int injected = 0;
        if (wanted.path("drop_events").isInt()) {
            faults.dropEvents(wanted.path("drop_events").intValue());
            injected++;
        }
        if (wanted.path("stall_ms").isNumber()) {
            faults.stall(Duration.ofMillis(wanted.path("stall_ms").longValue()));
            injected++;
        }
        if (wanted.path("status").isInt()) {
            final int status = wanted.path("status").intValue();
            if (status < 400 || status > 599) {
                throw ApiException.badRequest("status must be 400..599", "status");
            }
            faults.failRequests(status, wanted.path("count").asInt(1));
            injected++;
        }
        if (wanted.path("disconnect_mid_stream").isInt()) {
            faults.disconnectMidStream(wanted.path("disconnect_mid_stream").intValue());
            injected++;
        }
        if (wanted.path("restart").asBoolean(false)) {
            faults.restart();
            injected++;
        }
        injected += injectHandoffs(wanted);
        if (injected == 0) {
            throw ApiException.badRequest(
                    "No fault named; known: drop_events, restart, stall_ms, status (with count),"
                            + " disconnect_mid_stream, handoff (with count), pull_stall (with ms"
                            + " and count), side_port (open or closed).",
                    null);
        }
        return "{\"injected\":" + injected + "}";
    }

    private int injectHandoffs(JsonNode wanted) {
        int injected = 0;
        if (wanted.path("handoff").isTextual()) {
            faults.handoffs(
                    named(HandoffFault.class, wanted, "handoff"), wanted.path("count").asInt(1));
            injected++;
        }
        if (wanted.path("pull_stall").isTextual()) {
            faults.stallPulls(
                    named(PullStage.class, wanted, "pull_stall"),
                    Duration.ofMillis(wanted.path("ms").asLong(Long.MAX_VALUE / 1_000_000_000)),
                    wanted.path("count").asInt(1));
            injected++;
        }
        if (wanted.path("side_port").isTextual()) {
            try {
                faults.sidePort(wanted.path("side_port").textValue().equals("open"));
            } catch (IllegalStateException e) {
                throw ApiException.badRequest(e.getMessage(), "side_port");
            }
            injected++;
        }
        return injected;
    }

    private static <E extends Enum<E>> E named(Class<E> type, JsonNode wanted, String field) {
        final String name = wanted.path(field).textValue();
        try {
            return Enum.valueOf(type, name.toUpperCase(Locale.ROOT));
        } catch (IllegalArgumentException e) {
            throw ApiException.badRequest(
                    field
                            + " "
                            + name
                            + " is unknown; known: "
                            + Arrays.toString(type.getEnumConstants()).toLowerCase(Locale.ROOT),
                    field);
        }
    }

    private String state(Request request) {
        final boolean blocks =
                Boolean.parseBoolean(Request.extractQueryParameters(request).getValue("blocks"));
        return loop.ask(
                () -> {
                    final StringBuilder out = new StringBuilder("{\"ranks\":[");
                    for (int r = 0; r < loop.ranks(); r++) {
                        out.append(r == 0 ? "" : ",");
                        state(out, loop.rank(r), blocks);
                    }
                    return out.append("]}").toString();
                });
    }

    private static void state(StringBuilder out, RankScheduler rank, boolean blocks) {
        try {
            final String fields = JSON.writeValueAsString(rank.state());
            out.append(fields, 0, fields.length() - 1);
            out.append(",\"handoffs\":").append(JSON.writeValueAsString(rank.handoffs()));
        } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
            throw new AssertionError("a record of numbers is JSON", e);
        }
        if (blocks) {
            out.append(",\"held\":{");
            String separator = "";
            for (Map.Entry<Long, Integer> held : rank.heldBlocks().entrySet()) {
                out.append(separator).append('"');
                out.append(Long.toUnsignedString(held.getKey())).append("\":");
                out.append(held.getValue());
                separator = ",";
            }
            out.append('}');
        }
        out.append('}');
    }

    private static String error(ApiException e) {
        final StringBuilder out = new StringBuilder("{\"error\":{\"message\":");
        Json.string(out, e.getMessage()).append(",\"type\":");
        Json.string(out, e.type()).append(",\"param\":");
        Json.string(out, e.parameter());
        return out.append(",\"code\":").append(e.status()).append("}}").toString();
    }

    private static void send(Response response, Callback callback, int status, String body) {
        response.setStatus(status);
        if (!body.isEmpty()) {
            response.getHeaders().put(HttpHeader.CONTENT_TYPE, "application/json");
        }
        response.write(true, ByteBuffer.wrap(body.getBytes(StandardCharsets.UTF_8)), callback);
    }
}

package io.kvasir.host;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.eclipse.jetty.http.HttpField;
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
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.function.LongSupplier;

/** The HTTP side of a host: its routes, on virtual threads. */
final class HostServer {
    private static final Logger LOG = LoggerFactory.getLogger(HostServer.class);
    private static final ObjectMapper JSON = new ObjectMapper();
    // these accept and select; requests run on virtual threads
    private static final int MOST_THREADS = 16;
    private static final int FEWEST_THREADS = 4;
    private static final String RANK = "X-data-parallel-rank";

    private final HostConfig config;
    private final LongSupplier registryFailures;
    private final EngineFailures failures = new EngineFailures();
    private final Semaphore free;
    private final ExecutorService choices =
            Executors.newThreadPerTaskExecutor(
                    Thread.ofVirtual().name("kvasir-host-choice-", 0).factory());
    private final Server server;
    private final ServerConnector connector;
    private final long startedAt = Instant.now().getEpochSecond();

    /**
     * @param registryFailures renewals of the registration that failed, for metrics
     */
    HostServer(HostConfig config, LongSupplier registryFailures) {
        this.config = config;
        this.registryFailures = registryFailures;
        this.free = new Semaphore(config.maxConcurrent());
        final QueuedThreadPool threads = new QueuedThreadPool(MOST_THREADS, FEWEST_THREADS);
        threads.setName("kvasir-host");
        threads.setDaemon(true);
        threads.setVirtualThreadsExecutor(VirtualThreads.getDefaultVirtualThreadsExecutor());
        server = new Server(threads);
        connector = new ServerConnector(server, 1, 1);
        connector.setHost(config.host());
        connector.setPort(config.port());
        connector.setIdleTimeout(0); // an answer may be silent for as long as its engine works
        connector
                .getConnectionFactory(HttpConnectionFactory.class)
                .getHttpConfiguration()
                .setSendServerVersion(false);
        server.addConnector(connector);
        server.setStopTimeout(0);
        server.setHandler(new Routes());
    }

    void start() throws Exception {
        server.start();
    }

    int port() {
        return connector.getLocalPort();
    }

    /** Requests that run. */
    int running() {
        return config.maxConcurrent() - free.availablePermits();
    }

    void stop() throws Exception {
        try {
            server.stop();
        } finally {
            choices.shutdownNow();
        }
    }

    private final class Routes extends Handler.Abstract {
        @Override
        public boolean handle(Request request, Response response, Callback callback)
                throws Exception {
            try {
                route(request, response, callback);
            } catch (RefusedException e) {
                send(response, callback, e.status(), error(e.status(), e.type(), e.getMessage()));
            }
            return true;
        }
    }

    private void route(Request request, Response response, Callback callback) throws Exception {
        switch (request.getMethod() + " " + Request.getPathInContext(request)) {
            case "POST /v1/completions" -> generate(false, request, response, callback);
            case "POST /v1/chat/completions" -> generate(true, request, response, callback);
            case "POST /tokenize" -> send(response, callback, 200, tokens(request));
            case "GET /v1/models" -> send(response, callback, 200, models());
            case "GET /health" -> send(response, callback, 200, JSON.createObjectNode());
            case "GET /metrics" -> {
                response.getHeaders().put(HttpHeader.CONTENT_TYPE, "text/plain; version=0.0.4");
                response.write(true, StandardCharsets.UTF_8.encode(metrics()), callback);
            }
            default -> throw new RefusedException(404, "NotFoundError", "Not Found");
        }
    }

    private void generate(boolean chat, Request request, Response response, Callback callback)
            throws Exception {
        final HostRequest asked = HostRequest.read(chat, body(request), config.names());
        final int rank = rank(request);
        if (!free.tryAcquire()) {
            throw new RefusedException(
                    429,
                    "too_many_requests",
                    config.maxConcurrent() + " requests run (maxConcurrent); try again later");
        }
        try {
            final ClientWatch client = new ClientWatch(request);
            final String id = (chat ? "chatcmpl-" : "cmpl-") + UUID.randomUUID();
            if (asked.stream()) {
                stream(asked, asked.parts(id, rank), client, response);
            } else {
                whole(asked, asked.parts(id, rank), client, response);
            }
            callback.succeeded();
        } catch (IOException e) { // the client has left
            callback.failed(e);
        } finally {
            free.release();
        }
    }

    /**
     * To its end, wherever its object ends: a body that is closed before is a failure of its
     * connection. Of one that is too long no more is read than shows it.
     */
    private byte[] body(Request request) throws IOException, RefusedException {
        final int most = config.maxBodyBytes();
        if (request.getLength() <= most) {
            try (InputStream in = Content.Source.asInputStream(request)) {
                final byte[] body = in.readNBytes(most);
                if (in.read() < 0) {
                    return body;
                }
            }
        }
        throw new RefusedException(
                413,
                "request_too_large",
                "request body of more than " + most + " bytes (maxBodyBytes); shorten it");
    }

    private int rank(Request request) throws RefusedException {
        final HttpField field = request.getHeaders().getField(RANK);
        if (field == null) {
            return 0;
        }
        try {
            final int rank = Integer.parseInt(field.getValue().strip());
            if (rank >= 0 && rank < config.dpRanks()) {
                return rank;
            }
        } catch (NumberFormatException e) {
            LOG.debug("rank", e); // answered below
        }
        throw RefusedException.invalid(
                RANK + " " + field.getValue() + " is not in 0.." + (config.dpRanks() - 1));
    }

    private void whole(
            HostRequest asked, List<GenerateRequest> parts, ClientWatch client, Response response)
            throws Exception {
        final Answer answer = answer(asked, parts, null, client);
        run(answer, parts);
        write(response, 200, answer.whole());
    }

    private static Answer answer(
            HostRequest asked,
            List<GenerateRequest> parts,
            OutputStream streamOrNull,
            ClientWatch client) {
        return new Answer(
                asked,
                parts.getFirst().id(),
                Instant.now().getEpochSecond(),
                streamOrNull,
                client::disconnected);
    }

    private void stream(
            HostRequest asked, List<GenerateRequest> parts, ClientWatch client, Response response)
            throws Exception {
        // the head goes out with the first event, so that a refusal before it has its own status
        final EventStream events = new EventStream(response);
        final Answer answer = answer(asked, parts, events, client);
        try {
            run(answer, parts);
            answer.done();
        } catch (ClientLeftException e) {
            throw e;
        } catch (RefusedException e) {
            if (!events.hasBegun()) {
                throw e;
            }
            answer.error(error(e.status(), e.type(), e.getMessage()));
        }
        events.close();
    }

    /** Makes all choices, each on a thread of its own where there are several. */
    private void run(Answer answer, List<GenerateRequest> parts) throws Exception {
        if (parts.size() == 1) {
            runOne(answer, answer.choice(parts.getFirst()), parts.getFirst());
            return;
        }
        final List<Future<?>> running = new ArrayList<>(parts.size());
        final List<Output> outputs = new ArrayList<>(parts.size());
        for (GenerateRequest part : parts) {
            outputs.add(answer.choice(part));
        }
        for (int i = 0; i < parts.size(); i++) {
            final int number = i;
            running.add(
                    choices.submit(
                            () -> {
                                runOne(answer, outputs.get(number), parts.get(number));
                                return null;
                            }));
        }
        Exception failure = null;
        for (Future<?> each : running) {
            try {
                each.get();
            } catch (ExecutionException e) {
                failure = first(failure, (Exception) e.getCause()); // runOne throws no Error
            } catch (CancellationException e) {
                failure = first(failure, e);
            }
        }
        if (failure != null) {
            throw failure;
        }
    }

    /**
     * What the client is informed of: the choices after the first failure only say that they end.
     */
    private static Exception first(Exception known, Exception next) {
        return known == null || known instanceof ClientLeftException ? next : known;
    }

    private void runOne(Answer answer, Output output, GenerateRequest part) throws Exception {
        try {
            config.generator().generate(part, output);
            answer.complete(output);
        } catch (ClientLeftException | RefusedException e) {
            answer.breakOff();
            throw e;
        } catch (Throwable t) { // an Error, too: it is this answer's failure, not the host's
            answer.breakOff();
            failures.add(part.id(), t, System.nanoTime());
            throw new RefusedException(500, "InternalServerError", "the engine failed");
        }
    }

    private ObjectNode tokens(Request request) throws Exception {
        if (config.tokenizer() == null) {
            throw new RefusedException(501, "NotImplementedError", "the engine has no tokenizer");
        }
        final int[] ids = config.tokenizer().tokens(HostRequest.object(body(request)));
        final ObjectNode answer = JSON.createObjectNode().put("count", ids.length);
        final ArrayNode all = answer.putArray("tokens");
        for (int id : ids) {
            all.add(id);
        }
        if (config.maxModelLength() > 0) {
            answer.put("max_model_len", config.maxModelLength());
        }
        return answer;
    }

    private ObjectNode models() {
        final ObjectNode answer = JSON.createObjectNode().put("object", "list");
        final ArrayNode all = answer.putArray("data");
        final List<String> names = new ArrayList<>();
        names.add(config.names().model());
        names.addAll(config.names().adapters());
        for (String name : names) {
            final ObjectNode model = all.addObject().put("id", name).put("object", "model");
            model.put("created", startedAt).put("owned_by", "kvasir");
            if (!name.equals(config.names().model())) {
                model.put("parent", config.names().model());
            }
            if (config.maxModelLength() > 0) {
                model.put("max_model_len", config.maxModelLength());
            }
        }
        return answer;
    }

    /**
     * What routers read of an engine's page: how its cache is cut, and what runs. And how often its
     * registration was not renewed, for those who run it.
     */
    private String metrics() {
        final StringBuilder page = new StringBuilder(256);
        if (config.blockSize() > 0) {
            page.append("# TYPE vllm:cache_config_info gauge\n")
                    .append("vllm:cache_config_info{block_size=\"")
                    .append(config.blockSize())
                    .append("\",num_gpu_blocks=\"")
                    .append(config.kvBlocks())
                    .append("\"} 1.0\n");
        }
        if (config.registeringOrNull() != null) {
            page.append("# TYPE kvasir_host_registry_failures_total counter\n")
                    .append("kvasir_host_registry_failures_total ")
                    .append(registryFailures.getAsLong())
                    .append(".0\n");
        }
        return page.append("# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running ")
                .append(running())
                .append(".0\n")
                .toString();
    }

    private static ObjectNode error(int status, String type, String message) {
        final ObjectNode answer = JSON.createObjectNode();
        answer.putObject("error").put("message", message).put("type", type).put("code", status);
        return answer;
    }

    private static void send(Response response, Callback callback, int status, ObjectNode body)
            throws IOException {
        write(response, status, JSON.writeValueAsBytes(body));
        callback.succeeded();
    }

    private static void write(Response response, int status, byte[] body) throws IOException {
        response.setStatus(status);
        response.getHeaders().put(HttpHeader.CONTENT_TYPE, "application/json");
        Content.Sink.write(response, true, ByteBuffer.wrap(body));
    }
}

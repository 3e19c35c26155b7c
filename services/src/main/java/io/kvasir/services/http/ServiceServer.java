package io.kvasir.services.http;

import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.core.memory.ClosedException;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.server.BodyReader;
import io.kvasir.gateway.server.ClosableConnector;
import io.kvasir.gateway.server.ConnectionCap;
import io.kvasir.gateway.server.Connectors;
import io.kvasir.gateway.server.FailureWords;
import io.kvasir.gateway.server.ServerAnswers;

import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.HttpStatus;
import org.eclipse.jetty.http.UriCompliance;
import org.eclipse.jetty.http.UriCompliance.Violation;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.thread.QueuedThreadPool;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Executors;

/**
 * A port that answers JSON over HTTP, with the limits of the gateway's ports: time of heads and
 * bodies, connections, bytes of bodies. Each request has a virtual thread, so an endpoint may
 * block.
 *
 * <p>Requests of web pages (with {@code Origin}) are refused, and bodies that do not say that they
 * are JSON: without both, a page of any site could change what the service knows.
 */
public final class ServiceServer implements AutoCloseable {
    private static final String MORE_MEMORY =
            "; give the process more, or set --max-models or --max-workers lower";
    private static final Logger LOG = LoggerFactory.getLogger(ServiceServer.class);
    private static final int MAX_IO_THREADS = 16;
    private static final int MIN_IO_THREADS = 4;
    private static final int MAX_CONNECTIONS = 512;
    private static final int BODY_HEAP_SHARE = 4;
    private static final int OUTPUT_BYTES = 64 << 10;
    private static final String OTHER_PATH = "other";
    private static final String OTHER_METHOD = "OTHER";
    private static final Set<String> WITH_BODY = Set.of("POST", "PATCH");

    /** A part of a path may be any text, as {@link Routes} takes none of it for more. */
    private static final UriCompliance PATHS =
            UriCompliance.DEFAULT.with(
                    "services",
                    Violation.AMBIGUOUS_PATH_SEGMENT,
                    Violation.AMBIGUOUS_PATH_SEPARATOR,
                    Violation.AMBIGUOUS_PATH_ENCODING,
                    Violation.SUSPICIOUS_PATH_CHARACTERS);

    private final String name;
    private final int mostBodyBytes;
    private final Routes routes;
    private final RequestObserver observer;
    private final BodyReader bodies;
    private final BodyBudget budget =
            new BodyBudget(Runtime.getRuntime().maxMemory() / BODY_HEAP_SHARE);
    private final Server server;
    private final ClosableConnector connector;
    private final ConnectionCap cap;
    private volatile boolean ending; // what is under way may fail

    /**
     * Makes a port that is not open yet.
     *
     * @param name of the service, in logs
     * @param host address to listen on
     * @param port to listen on; 0 = any free one
     * @param mostBodyBytes longest body
     * @param endpoints by path, in which <code>{}</code> stands for any part, then by method; POST
     *     and PATCH have a body
     * @param observer sees what was answered
     */
    public ServiceServer(
            String name,
            String host,
            int port,
            int mostBodyBytes,
            Map<String, Map<String, Endpoint>> endpoints,
            RequestObserver observer) {
        // only what it says of ports is used
        final GatewayConfig limits =
                GatewayConfig.builder().set(GatewaySettings.MODEL, name).build();
        this.name = name;
        this.mostBodyBytes = mostBodyBytes;
        this.routes = new Routes(endpoints);
        this.observer = observer;
        this.bodies = new BodyReader(limits);
        final QueuedThreadPool threads = new QueuedThreadPool(MAX_IO_THREADS, MIN_IO_THREADS);
        threads.setName("kvasir-" + name);
        threads.setVirtualThreadsExecutor(
                Executors.newThreadPerTaskExecutor(
                        Thread.ofVirtual().name("kvasir-" + name + "-request-", 0).factory()));
        server = new Server(threads);
        connector = Connectors.add(server, host, port, limits);
        connector
                .getConnectionFactory(HttpConfiguration.ConnectionFactory.class)
                .getHttpConfiguration()
                .setUriCompliance(PATHS);
        cap = new ConnectionCap(connector, MAX_CONNECTIONS, "the " + name + " has no more");
        server.addBean(cap);
        server.setErrorHandler(this::serverError);
        server.setHandler(
                new Handler.Abstract() {
                    @Override
                    public boolean handle(Request request, Response response, Callback callback) {
                        ServiceServer.this.handle(request, response, callback);
                        return true;
                    }
                });
    }

    /**
     * Opens the port.
     *
     * @throws IOException if it cannot be listened on; the message names the address
     */
    public void start() throws IOException {
        try {
            server.start();
        } catch (Exception e) {
            close();
            throw new IOException(
                    "cannot listen on " + connector.address() + ": " + FailureWords.of(e), e);
        }
    }

    /** Port that is listened on. */
    public int port() {
        return connector.getLocalPort();
    }

    private void handle(Request request, Response response, Callback callback) {
        final long startNs = System.nanoTime();
        final Routes.Route route = routes.find(request.getHttpURI().getPath());
        final String method = request.getMethod();
        final BodyReader.Budget share = budget.share();
        int status = 500;
        try {
            final Reply reply = answer(route, method, request, response, share);
            status = reply.status();
            send(reply, response, callback);
        } catch (ServiceException e) {
            status = e.status();
            sendError(status, e.getMessage(), response, callback);
        } catch (OutOfMemoryError e) {
            LOG.error("{}: there is no memory for a request", name, e);
            status = 503;
            sendError(status, "out of memory: " + e.getMessage() + MORE_MEMORY, response, callback);
        } catch (IOException | RuntimeException e) {
            if (ending || e instanceof ClosedException) {
                status = 503;
                sendError(status, ends(), response, callback);
            } else if (e instanceof IOException) {
                callback.failed(e); // the client has left in the middle of its answer
            } else {
                LOG.error("{}: a request failed", name, e);
                sendError(status, "internal error; see the log", response, callback);
            }
        } finally {
            share.giveBack();
            observer.answered(
                    route == null ? OTHER_PATH : route.path(),
                    route != null && route.methods().containsKey(method) ? method : OTHER_METHOD,
                    status,
                    System.nanoTime() - startNs);
        }
    }

    private Reply answer(
            Routes.Route routeOrNull,
            String method,
            Request request,
            Response response,
            BodyReader.Budget share)
            throws ServiceException {
        if (request.getHeaders().contains(HttpHeader.ORIGIN)) {
            throw new ServiceException(403, "requests of web pages are refused");
        }
        if (routeOrNull == null) {
            throw new ServiceException(404, "route not found");
        }
        final Map<String, Endpoint> methods = routeOrNull.methods();
        final Endpoint endpoint = methods.get(method.equals("HEAD") ? "GET" : method);
        if (endpoint == null) {
            response.getHeaders()
                    .put(HttpHeader.ALLOW, String.join(",", new TreeMap<>(methods).keySet()));
            throw new ServiceException(405, "method not allowed");
        }
        return endpoint.answer(
                new Call(
                        request,
                        WITH_BODY.contains(method) ? body(request, share) : new byte[0],
                        routeOrNull.parameter()));
    }

    private byte[] body(Request request, BodyReader.Budget share) throws ServiceException {
        try {
            final byte[] body = bodies.read(request, mostBodyBytes, share);
            if (body.length > 0 && !isJson(request.getHeaders().get(HttpHeader.CONTENT_TYPE))) {
                throw new ServiceException(
                        415, "Expected request with `Content-Type: application/json`");
            }
            return body;
        } catch (ApiException e) {
            final boolean tooLong = e.status() == HttpStatus.PAYLOAD_TOO_LARGE_413;
            if (ending && !tooLong) { // the end of the connection is not its client's fault
                throw new ServiceException(HttpStatus.SERVICE_UNAVAILABLE_503, ends());
            }
            throw new ServiceException(
                    e.status(),
                    tooLong
                            ? "the request body is longer than " + mostBodyBytes + " bytes"
                            : e.getMessage());
        }
    }

    private static boolean isJson(String type) {
        if (type == null) {
            return false;
        }
        final String media = type.split(";", 2)[0].strip().toLowerCase(Locale.ROOT);
        return media.equals(Reply.JSON)
                || (media.startsWith("application/") && media.endsWith("+json"));
    }

    private static void send(Reply reply, Response response, Callback callback) throws IOException {
        response.setStatus(reply.status());
        if (reply.type() != null) {
            response.getHeaders().put(HttpHeader.CONTENT_TYPE, reply.type());
        }
        final OutputStream out =
                new BufferedOutputStream(Content.Sink.asOutputStream(response), OUTPUT_BYTES);
        reply.body().writeTo(out);
        out.close(); // not after a failure: an answer that is cut must not end as a whole one does
        callback.succeeded();
    }

    /** An answer that has begun is broken off: what has arrived of it must not seem whole. */
    private static void sendError(
            int status, String message, Response response, Callback callback) {
        if (response.isCommitted()) {
            callback.failed(new IOException(message));
            return;
        }
        if (status == HttpStatus.SERVICE_UNAVAILABLE_503
                || status == HttpStatus.TOO_MANY_REQUESTS_429) {
            response.getHeaders().put(HttpHeader.RETRY_AFTER, "1");
        }
        response.setStatus(status);
        response.getHeaders().put(HttpHeader.CONTENT_TYPE, Reply.JSON);
        final byte[] body = error(message).toString().getBytes(StandardCharsets.UTF_8);
        response.getHeaders().put(HttpHeader.CONTENT_LENGTH, body.length);
        response.write(true, ByteBuffer.wrap(body), callback);
    }

    private String ends() {
        return "the " + name + " ends";
    }

    private static ObjectNode error(String message) {
        return ServiceJson.object().put("error", message);
    }

    /** What the server itself answers, as for bad HTTP, or where its stop fails a request. */
    private boolean serverError(Request request, Response response, Callback callback) {
        final int code = ServerAnswers.lastOfConnection(request, response);
        if (ending && HttpStatus.isServerError(code)) {
            sendError(HttpStatus.SERVICE_UNAVAILABLE_503, ends(), response, callback);
        } else {
            sendError(code, HttpStatus.getMessage(code), response, callback);
        }
        return true;
    }

    /** Closes the port and breaks off what is being answered. */
    @Override
    public void close() {
        ending = true;
        // before the stop, which would lose a connection between its acceptance and its selector:
        // its client would wait for an answer
        cap.end();
        connector.close(Duration.ZERO);
        try {
            server.stop();
        } catch (Exception e) {
            LOG.warn("{}: the port did not close cleanly: {}", name, FailureWords.of(e));
        }
    }
}

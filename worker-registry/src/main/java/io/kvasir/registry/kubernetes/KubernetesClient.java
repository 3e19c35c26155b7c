package io.kvasir.registry.kubernetes;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.MappingIterator;
import com.fasterxml.jackson.databind.json.JsonMapper;

import io.kvasir.registry.Authorities;
import io.kvasir.registry.ConfiguredFile;
import io.kvasir.registry.FailureText;
import io.kvasir.registry.StreamLimit;

import java.io.IOException;
import java.io.InputStream;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandler;
import java.net.http.HttpResponse.BodyHandlers;
import java.net.http.HttpTimeoutException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;

/**
 * What is needed of a Kubernetes API server: objects of a namespace, listed and watched, read,
 * written and deleted. The service account's token and authorities are read again for each request.
 * Any thread may call, and waits for the answer; one thread at a time watches.
 *
 * @see <a href="https://kubernetes.io/docs/reference/using-api/api-concepts/">list and watch</a>
 */
public final class KubernetesClient implements AutoCloseable {
    private static final JsonMapper JSON = new JsonMapper();
    private static final int FIRST_FAILURE = 300;
    private static final int PAGE = 500;
    private static final int WATCH_SECS = 240;
    private static final int MAX_ERROR_BYTES = 4096;
    private static final Duration TIMEOUT = Duration.ofSeconds(10);

    /** A watch that the server should have ended by itself is cut. */
    private static final Duration CUT = Duration.ofSeconds(WATCH_SECS + 30);

    /** API servers send a bookmark a minute, some of them none. */
    private static final Duration SILENCE = Duration.ofMinutes(2);

    private final KubernetesAccess access;
    private final Duration timeout;
    private final Duration silence;
    private byte[] authorities; // what the client below trusts; guarded by this
    private HttpClient client; // null: to be made; guarded by this
    private InputStream watching; // null: no watch runs; guarded by this
    private boolean closed; // guarded by this

    /** Connects with the first request. */
    public KubernetesClient(KubernetesAccess access) {
        this(access, TIMEOUT, SILENCE);
    }

    /**
     * With other limits.
     *
     * @param timeout of each connection and answer but that of a watch
     * @param silence after which a watch is ended: its connection may be dead
     */
    public KubernetesClient(KubernetesAccess access, Duration timeout, Duration silence) {
        this.access = access;
        this.timeout = timeout;
        this.silence = silence;
    }

    // -- many objects

    /**
     * Lists all objects.
     *
     * @param each gets each of them
     * @return the resource version to watch from
     */
    public String list(KubernetesResources resources, Consumer<JsonNode> each)
            throws KubernetesException {
        final String path = resources.listPath(access.namespace()) + "&limit=" + PAGE;
        String from = "";
        while (true) {
            final JsonNode page =
                    page(
                            resources,
                            path
                                    + (from.isEmpty()
                                            ? ""
                                            : "&continue=" + KubernetesResources.encoded(from)));
            page.path("items").forEach(each);
            from = page.path("metadata").path("continue").asText();
            if (from.isEmpty()) {
                return page.path("metadata").path("resourceVersion").asText();
            }
        }
    }

    /** Asks for one object, to see whether the server answers. */
    void check(KubernetesResources resources) throws KubernetesException {
        page(resources, resources.listPath(access.namespace()) + "&limit=1");
    }

    private JsonNode page(KubernetesResources resources, String path) throws KubernetesException {
        final JsonNode page = answered(resources, "GET", path, null);
        if (!isList(page)) { // whatever answers, it does not say that there are none
            throw new KubernetesException(
                    0,
                    access.server()
                            + " answers no list of "
                            + resources
                            + ": '"
                            + beginning(page.toString())
                            + "'",
                    null);
        }
        return page;
    }

    /** Some servers leave out the items of an empty list, or say null. */
    private static boolean isList(JsonNode page) {
        final JsonNode items = page.path("items");
        return (page.path("kind").asText().endsWith("List")
                        || page.path("metadata").hasNonNull("resourceVersion"))
                && (items.isArray() || items.isNull() || items.isMissingNode());
    }

    /**
     * Reports changes, until the server ends the watch, as it does every few minutes. Blocks.
     *
     * @param version to go on from
     * @param each gets each event, bookmarks too
     * @return the version to go on from after that; null where nothing has come for long, so that
     *     nothing is known of what has changed
     */
    public String watch(KubernetesResources resources, String version, Consumer<JsonNode> each)
            throws KubernetesException {
        final String path =
                resources.listPath(access.namespace())
                        + "&watch=1&allowWatchBookmarks=true&timeoutSeconds="
                        + WATCH_SECS
                        + "&resourceVersion="
                        + KubernetesResources.encoded(version);
        final HttpResponse<InputStream> response =
                sent("GET", path, null, BodyHandlers.ofInputStream());
        final boolean isRefused = response.statusCode() >= FIRST_FAILURE;
        try (InputStream in = response.body();
                StreamLimit _ = new StreamLimit(in, isRefused ? timeout : CUT)) {
            if (isRefused) {
                throw refusal(
                        resources, "GET", response.statusCode(), in.readNBytes(MAX_ERROR_BYTES));
            }
            return begun(in) ? followed(in, version, each) : version;
        } catch (IOException e) {
            throw new KubernetesException(
                    0, "the watch of " + access.server() + " broke: " + FailureText.of(e), e);
        } finally {
            ended();
        }
    }

    /** The version to go on from; null where nothing came for long. */
    private String followed(InputStream in, String version, Consumer<JsonNode> each)
            throws IOException, KubernetesException {
        String reached = version;
        try (StreamLimit silent = new StreamLimit(in, silence)) {
            try {
                final MappingIterator<JsonNode> events =
                        JSON.readerFor(JsonNode.class).readValues(in);
                while (events.hasNextValue()) {
                    silent.received();
                    reached = tell(events.nextValue(), each, reached);
                }
            } catch (IOException e) {
                if (!silent.hasCut()) {
                    throw e;
                }
            }
            return silent.hasCut() ? null : reached;
        }
    }

    private synchronized boolean begun(InputStream in) {
        watching = in;
        return !closed;
    }

    private synchronized void ended() {
        watching = null;
    }

    private String tell(JsonNode event, Consumer<JsonNode> each, String reached)
            throws KubernetesException {
        final String type = event.path("type").asText();
        if (type.equals("ERROR")) {
            final JsonNode status = event.path("object");
            throw new KubernetesException(
                    status.path("code").asInt(),
                    access.server() + " ends the watch: " + status.path("message").asText(),
                    null);
        }
        each.accept(event);
        final String version =
                event.path("object").path("metadata").path("resourceVersion").asText();
        return version.isEmpty() ? reached : version;
    }

    /** Ends the watch that runs, if one does. */
    public void endWatch() {
        final InputStream in;
        synchronized (this) {
            in = watching;
        }
        if (in != null) {
            StreamLimit.end(in);
        }
    }

    // -- one object

    /** Reads an object; null if it is not there. */
    JsonNode get(KubernetesResources resources, String name) throws KubernetesException {
        try {
            return answered(resources, "GET", resources.path(access.namespace(), name), null);
        } catch (KubernetesException e) {
            if (e.isNotFound()) {
                return null;
            }
            throw e;
        }
    }

    /**
     * Makes an object.
     *
     * @return it as it is stored
     */
    JsonNode create(KubernetesResources resources, JsonNode object) throws KubernetesException {
        return answered(resources, "POST", resources.path(access.namespace()), object);
    }

    /**
     * Writes an object in place of what is there, on condition of the version that it names.
     *
     * @return it as it is stored
     */
    JsonNode replace(KubernetesResources resources, String name, JsonNode object)
            throws KubernetesException {
        return answered(resources, "PUT", resources.path(access.namespace(), name), object);
    }

    /**
     * Deletes an object.
     *
     * @param version at which it must be
     */
    void delete(KubernetesResources resources, String name, String version)
            throws KubernetesException {
        final JsonNode options =
                JSON.createObjectNode()
                        .put("apiVersion", "v1")
                        .put("kind", "DeleteOptions")
                        .set(
                                "preconditions",
                                JSON.createObjectNode().put("resourceVersion", version));
        answered(resources, "DELETE", resources.path(access.namespace(), name), options);
    }

    private JsonNode answered(
            KubernetesResources resources, String method, String path, JsonNode body)
            throws KubernetesException {
        final HttpResponse<byte[]> response = sent(method, path, body, BodyHandlers.ofByteArray());
        if (response.statusCode() >= FIRST_FAILURE) {
            throw refusal(resources, method, response.statusCode(), response.body());
        }
        try {
            return JSON.readTree(response.body());
        } catch (IOException e) {
            throw new KubernetesException(
                    0, access.server() + " answers no JSON: " + FailureText.of(e), e);
        }
    }

    private KubernetesException refusal(
            KubernetesResources resources, String method, int status, byte[] body) {
        return new KubernetesException(
                status,
                access.server()
                        + " answers "
                        + status
                        + " to "
                        + method
                        + " of "
                        + resources
                        + ": "
                        + said(body)
                        + hint(method, status),
                null);
    }

    /** The message of a Status, or what else is said; the beginning of it. */
    private static String said(byte[] body) {
        String said = new String(body, StandardCharsets.UTF_8);
        try {
            final String message = JSON.readTree(body).path("message").asText();
            said = message.isBlank() ? said : message;
        } catch (IOException e) {
            said = said.strip(); // a proxy's page
        }
        return beginning(said);
    }

    private static String beginning(String said) {
        return said.substring(0, Math.min(said.length(), MAX_ERROR_BYTES));
    }

    private static String hint(String method, int status) {
        return switch (status) {
            case KubernetesException.UNAUTHORIZED, KubernetesException.FORBIDDEN ->
                    "; the service account must be allowed to "
                            + (method.equals("GET")
                                    ? "get, list and watch them"
                                    : "get, create, update and delete them");
            case KubernetesException.NOT_FOUND ->
                    "; is their definition installed, and is there the namespace?";
            default -> "";
        };
    }

    // -- HTTP

    private <T> HttpResponse<T> sent(
            String method, String path, JsonNode body, BodyHandler<T> handler)
            throws KubernetesException {
        CompletableFuture<HttpResponse<T>> answer = new CompletableFuture<>();
        try {
            final HttpRequest.Builder request =
                    HttpRequest.newBuilder(access.server().resolve(path))
                            .timeout(timeout)
                            .method(method, published(body));
            if (body != null) {
                request.header("Content-Type", "application/json");
            }
            final Path token = access.account().resolve("token");
            if (Files.exists(token)) {
                request.header("Authorization", "Bearer " + text(token));
            }
            answer = client().sendAsync(request.build(), handler);
            return answer.get(timeout.toMillis(), TimeUnit.MILLISECONDS);
        } catch (IOException | IllegalArgumentException | ExecutionException | TimeoutException e) {
            answer.cancel(true);
            throw new KubernetesException(0, access.server() + " does not answer: " + reason(e), e);
        } catch (InterruptedException e) {
            answer.cancel(true);
            Thread.currentThread().interrupt();
            throw new KubernetesException(0, "interrupted", e);
        }
    }

    private static String text(Path file) throws IOException {
        return new String(ConfiguredFile.read(file), StandardCharsets.UTF_8).strip();
    }

    private String reason(Exception e) {
        return e instanceof TimeoutException || e.getCause() instanceof HttpTimeoutException
                ? "no answer in " + timeout.toMillis() + " ms"
                : FailureText.of(e);
    }

    private static BodyPublisher published(JsonNode body) throws JsonProcessingException {
        return body == null
                ? BodyPublishers.noBody()
                : BodyPublishers.ofByteArray(JSON.writeValueAsBytes(body));
    }

    private synchronized HttpClient client() throws IOException {
        if (closed) {
            throw new IOException("the client is closed");
        }
        final Path ca = access.account().resolve("ca.crt");
        final byte[] now =
                Files.exists(ca)
                        ? ConfiguredFile.read(ca, ConfiguredFile.MAX_SECRET_BYTES)
                        : new byte[0];
        if (client == null || !Arrays.equals(now, authorities)) {
            final HttpClient.Builder builder =
                    HttpClient.newBuilder()
                            .version(HttpClient.Version.HTTP_1_1)
                            .connectTimeout(timeout);
            if (now.length > 0) {
                builder.sslContext(Authorities.tlsOrNull("service account", ca));
            }
            closeClient();
            client = builder.build();
            authorities = now;
        }
        return client;
    }

    private void closeClient() {
        if (client != null) {
            client.shutdownNow();
        }
    }

    /** Ends a watch that runs, and gives back connections. */
    @Override
    public void close() {
        synchronized (this) {
            closed = true;
        }
        endWatch();
        synchronized (this) {
            closeClient();
        }
    }
}

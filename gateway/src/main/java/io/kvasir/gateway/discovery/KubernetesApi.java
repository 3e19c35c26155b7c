package io.kvasir.gateway.discovery;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.MappingIterator;

import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.upstream.Authorities;

import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * What is needed of a Kubernetes API server: EndpointSlices of a namespace, listed and watched. The
 * service account's token and authorities are read again for each request. One thread asks; {@link
 * #close} may be called by another.
 *
 * @see <a href="https://kubernetes.io/docs/reference/using-api/api-concepts/">list and watch</a>
 */
final class KubernetesApi implements AutoCloseable {
    private static final int OK = 200;
    private static final int PAGE = 500;
    private static final int WATCH_SECS = 240;
    private static final int MAX_ERROR_BYTES = 4096;
    private static final Duration TIMEOUT = Duration.ofSeconds(10);

    /** A watch that the server should have ended by itself is cut. */
    private static final int CUT_SECS = WATCH_SECS + 30;

    private final URI server;
    private final Path account;
    private final String slices;
    private byte[] authorities; // what the client below trusts
    private HttpClient client;
    private volatile InputStream watching;
    private volatile boolean closed;

    /**
     * Connects with the first request.
     *
     * @param account folder with {@code token} and {@code ca.crt}; what is not there is not used
     */
    KubernetesApi(URI server, Path account, String namespace, String selector) {
        this.server = server;
        this.account = account;
        slices =
                "/apis/discovery.k8s.io/v1/namespaces/"
                        + encoded(namespace)
                        + "/endpointslices?labelSelector="
                        + encoded(selector);
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    /**
     * Lists all slices.
     *
     * @param each gets each of them
     * @return the resource version to watch from
     */
    String list(Consumer<JsonNode> each) throws KubernetesException {
        String from = "";
        while (true) {
            final JsonNode page =
                    tree(
                            slices
                                    + "&limit="
                                    + PAGE
                                    + (from.isEmpty() ? "" : "&continue=" + encoded(from)));
            page.path("items").forEach(each);
            from = page.path("metadata").path("continue").asText();
            if (from.isEmpty()) {
                return page.path("metadata").path("resourceVersion").asText();
            }
        }
    }

    private JsonNode tree(String path) throws KubernetesException {
        try (InputStream in = get(path)) {
            return Json.MAPPER.readTree(in);
        } catch (IOException e) {
            throw new KubernetesException(0, server + " fails: " + e, e);
        }
    }

    /**
     * Tells of changes, until the server ends the watch, as it does every few minutes. Blocks.
     *
     * @param version to go on from
     * @param each gets each event of a slice
     * @return the version to go on from after that
     */
    String watch(String version, Consumer<JsonNode> each) throws KubernetesException {
        String reached = version;
        try (InputStream in =
                get(
                        slices
                                + "&watch=1&allowWatchBookmarks=true&timeoutSeconds="
                                + WATCH_SECS
                                + "&resourceVersion="
                                + encoded(version))) {
            watching = in;
            if (closed) {
                return reached;
            }
            final CompletableFuture<Void> cut =
                    CompletableFuture.runAsync(
                            () -> end(in),
                            CompletableFuture.delayedExecutor(CUT_SECS, TimeUnit.SECONDS));
            try {
                final MappingIterator<JsonNode> events =
                        Json.MAPPER.readerFor(JsonNode.class).readValues(in);
                while (events.hasNextValue()) {
                    reached = tell(events.nextValue(), each, reached);
                }
            } finally {
                cut.cancel(false);
            }
        } catch (IOException e) {
            throw new KubernetesException(0, "the watch of " + server + " broke: " + e, e);
        } finally {
            watching = null;
        }
        return reached;
    }

    private String tell(JsonNode event, Consumer<JsonNode> each, String reached)
            throws KubernetesException {
        final String type = event.path("type").asText();
        if (type.equals("ERROR")) {
            final JsonNode status = event.path("object");
            throw new KubernetesException(
                    status.path("code").asInt(),
                    server + " ends the watch: " + status.path("message").asText(),
                    null);
        }
        if (!type.equals("BOOKMARK")) {
            each.accept(event);
        }
        final String version =
                event.path("object").path("metadata").path("resourceVersion").asText();
        return version.isEmpty() ? reached : version;
    }

    private InputStream get(String path) throws KubernetesException {
        try {
            final HttpRequest.Builder request =
                    HttpRequest.newBuilder(server.resolve(path)).timeout(TIMEOUT);
            final Path token = account.resolve("token");
            if (Files.exists(token)) {
                request.header("Authorization", "Bearer " + Files.readString(token).strip());
            }
            final HttpResponse<InputStream> response =
                    client().send(request.build(), BodyHandlers.ofInputStream());
            if (response.statusCode() == OK) {
                return response.body();
            }
            try (InputStream in = response.body()) {
                throw refusal(response.statusCode(), in.readNBytes(MAX_ERROR_BYTES));
            }
        } catch (IOException | IllegalArgumentException e) {
            throw new KubernetesException(0, server + " does not answer: " + e, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new KubernetesException(0, "interrupted", e);
        }
    }

    private KubernetesException refusal(int status, byte[] body) {
        return new KubernetesException(
                status,
                server
                        + " answers "
                        + status
                        + ": "
                        + new String(body, StandardCharsets.UTF_8)
                        + "; the service account must be allowed to list and watch endpointslices"
                        + " of discovery.k8s.io",
                null);
    }

    private HttpClient client() throws IOException {
        final Path ca = account.resolve("ca.crt");
        final byte[] now = Files.exists(ca) ? Files.readAllBytes(ca) : new byte[0];
        if (client == null || !Arrays.equals(now, authorities)) {
            final HttpClient.Builder builder =
                    HttpClient.newBuilder()
                            .version(HttpClient.Version.HTTP_1_1)
                            .connectTimeout(TIMEOUT);
            if (now.length > 0) {
                builder.sslContext(Authorities.tlsOrNull(ca));
            }
            closeClient();
            client = builder.build();
            authorities = now;
        }
        return client;
    }

    private synchronized void closeClient() {
        if (client != null) {
            client.shutdownNow();
        }
    }

    /** Ends a watch that runs. */
    @Override
    public void close() {
        closed = true;
        final InputStream in = watching;
        if (in != null) {
            end(in);
        }
    }

    private static void end(InputStream in) {
        try {
            in.close();
        } catch (IOException e) {
            Thread.onSpinWait(); // it has ended by itself
        }
    }
}

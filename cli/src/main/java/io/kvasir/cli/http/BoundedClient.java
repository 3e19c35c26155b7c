package io.kvasir.cli.http;

import io.kvasir.cli.console.Terminal;
import io.kvasir.registry.FailureText;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Asks one server over HTTP/1.1. The server may be slow, silent or hostile: an exchange ends after
 * a time, its body included, and with a length; redirects are not followed. Any thread.
 */
public final class BoundedClient implements AutoCloseable {
    private static final int MOST_WORDS = 200;

    private final HttpClient http;
    private final URI base;
    private final String authorizationOrNull;
    private final Duration limit;
    private final long mostBytes;

    /**
     * A client of a server.
     *
     * @param base its URL, with or without a slash at the end
     * @param authorizationOrNull value of {@code Authorization}
     * @param limit longest time of an exchange, connecting included
     * @param mostBytes longest body of an answer
     */
    public BoundedClient(URI base, String authorizationOrNull, Duration limit, long mostBytes) {
        this.base = withoutSlash(base);
        this.authorizationOrNull = authorizationOrNull;
        this.limit = limit;
        this.mostBytes = mostBytes;
        this.http =
                HttpClient.newBuilder()
                        .version(HttpClient.Version.HTTP_1_1)
                        .followRedirects(HttpClient.Redirect.NEVER)
                        .connectTimeout(limit)
                        .build();
    }

    /** A URL as paths are put behind it. */
    public static URI withoutSlash(URI base) {
        return URI.create(base.toString().replaceAll("/+$", ""));
    }

    /**
     * Asks for a page.
     *
     * @param path after the base, with its query
     * @return the answer, of any status
     * @throws IOException if there is none within the limits; the message says why in one line
     */
    public HttpResponse<byte[]> get(String path) throws IOException, InterruptedException {
        return send(request(path).GET().build());
    }

    /**
     * Posts JSON.
     *
     * @param path after the base
     * @param json the body; not copied
     * @param headers sent beside the usual ones
     * @return the answer, of any status
     * @throws IOException if there is none within the limits; the message says why in one line
     */
    public HttpResponse<byte[]> post(String path, byte[] json, Map<String, String> headers)
            throws IOException, InterruptedException {
        final HttpRequest.Builder request =
                request(path)
                        .header("content-type", "application/json")
                        .POST(HttpRequest.BodyPublishers.ofByteArray(json));
        headers.forEach(request::header);
        return send(request.build());
    }

    /**
     * Changes something by JSON.
     *
     * @param path after the base
     * @param json the body; not copied
     * @return the answer, of any status
     * @throws IOException if there is none within the limits; the message says why in one line
     */
    public HttpResponse<byte[]> patch(String path, byte[] json)
            throws IOException, InterruptedException {
        return send(
                request(path)
                        .header("content-type", "application/json")
                        .method("PATCH", HttpRequest.BodyPublishers.ofByteArray(json))
                        .build());
    }

    private HttpRequest.Builder request(String path) {
        final HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(base + path));
        return authorizationOrNull == null
                ? request
                : request.header("authorization", authorizationOrNull);
    }

    private HttpResponse<byte[]> send(HttpRequest request)
            throws IOException, InterruptedException {
        final CompletableFuture<HttpResponse<byte[]>> answer =
                http.sendAsync(
                        request, BodyHandlers.limiting(BodyHandlers.ofByteArray(), mostBytes));
        try {
            return answer.get(limit.toMillis(), TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            throw new IOException(
                    request.uri() + " has not answered in " + limit.toMillis() + " ms", e);
        } catch (ExecutionException e) {
            throw new IOException(
                    request.uri()
                            + ": "
                            + Terminal.printable(FailureText.of(e), MOST_WORDS)
                            + limits(e.getCause()),
                    e);
        } finally {
            answer.cancel(false);
        }
    }

    private String limits(Throwable cause) {
        return String.valueOf(cause.getMessage()).contains("capacity")
                ? " (an answer may have " + mostBytes + " bytes)"
                : "";
    }

    @Override
    public void close() {
        http.shutdownNow();
    }
}

package io.kvasir.cli.load;

import io.kvasir.registry.FailureText;
import io.kvasir.sim.config.SimClock;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodySubscriber;
import java.net.http.HttpResponse.BodySubscribers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.LongConsumer;

/**
 * Sends streaming completion requests to one gateway over HTTP/1.1 and reads the answers. Any
 * thread; every request runs on its own virtual threads and never blocks the sender. A request that
 * fails gives an {@link Outcome} with an error, never an exception.
 */
public final class LoadClient implements AutoCloseable {
    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(10);
    private static final int MAX_ERROR_LENGTH = 300;
    private static final int OK = 200;
    private static final HttpHeaders NO_HEADERS = HttpHeaders.of(Map.of(), (name, value) -> true);

    private final ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
    private final HttpClient http =
            HttpClient.newBuilder()
                    .version(HttpClient.Version.HTTP_1_1)
                    .connectTimeout(CONNECT_TIMEOUT)
                    .executor(threads)
                    .build();
    private final URI base;
    private final Duration timeout;
    private final Map<String, String> headers;
    private final SimClock clock;
    private final LongConsumer gaps; // or null

    /**
     * A client of one gateway.
     *
     * @param base such as {@code http://127.0.0.1:8000}
     * @param timeout longest time from sending a request to the end of its answer
     * @param headers sent with every request
     */
    public LoadClient(URI base, Duration timeout, Map<String, String> headers) {
        this(base, timeout, headers, SimClock.system());
    }

    /**
     * A client of a gateway whose engines live in the time of a clock.
     *
     * @param timeout in the machine's time
     * @param clock of all times in outcomes, and of drivers
     */
    public LoadClient(URI base, Duration timeout, Map<String, String> headers, SimClock clock) {
        this(base, timeout, headers, clock, null);
    }

    /**
     * A client that tells the time between the tokens of each answer.
     *
     * @param timeout longest time from sending a request to the end of its answer
     * @param gaps takes the ns between two events with text of one answer, on any thread
     */
    public LoadClient(URI base, Duration timeout, LongConsumer gaps) {
        this(base, timeout, Map.of(), SimClock.system(), gaps);
    }

    private LoadClient(
            URI base,
            Duration timeout,
            Map<String, String> headers,
            SimClock clock,
            LongConsumer gaps) {
        this.base = base;
        this.timeout = timeout;
        this.headers = Map.copyOf(headers);
        this.clock = clock;
        this.gaps = gaps;
    }

    /** The clock of its times. */
    SimClock clock() {
        return clock;
    }

    /**
     * Sends one streaming request.
     *
     * @param path such as {@code /v1/completions}
     * @param body JSON; asks for a stream with usage; not copied
     * @param scheduledNs when it was due, for {@link Outcome#scheduledNs()}
     * @param keepText whether the generated text is wanted
     */
    public CompletableFuture<Outcome> send(
            String path, byte[] body, long scheduledNs, boolean keepText) {
        final long sentNs = clock.nanoTime();
        final HttpRequest.Builder request =
                HttpRequest.newBuilder(base.resolve(path))
                        .header("content-type", "application/json")
                        .POST(HttpRequest.BodyPublishers.ofByteArray(body));
        headers.forEach(request::header);
        return http.sendAsync(request.build(), info -> reader(info, scheduledNs, sentNs, keepText))
                .orTimeout(timeout.toMillis(), TimeUnit.MILLISECONDS)
                .handle(
                        (response, thrown) ->
                                thrown == null
                                        ? response.body()
                                        : failed(
                                                NO_HEADERS,
                                                scheduledNs,
                                                sentNs,
                                                FailureText.of(thrown)));
    }

    private BodySubscriber<Outcome> reader(
            HttpResponse.ResponseInfo info, long scheduledNs, long sentNs, boolean keepText) {
        if (info.statusCode() == OK) {
            return new StreamReader(info.headers(), clock, scheduledNs, sentNs, keepText, gaps);
        }
        return BodySubscribers.mapping(
                BodySubscribers.ofString(StandardCharsets.UTF_8),
                body ->
                        failed(
                                info.headers(),
                                scheduledNs,
                                sentNs,
                                "status " + info.statusCode() + ": " + shortened(body)));
    }

    private Outcome failed(HttpHeaders headers, long scheduledNs, long sentNs, String error) {
        final long nowNs = clock.nanoTime();
        final String worker = headers.firstValue("x-kvasir-worker").orElse("");
        final long none = Outcome.UNSTATED;
        return new Outcome(
                error,
                worker,
                worker,
                scheduledNs,
                sentNs,
                nowNs,
                nowNs,
                0,
                0,
                0,
                -1,
                none,
                none,
                "");
    }

    private static String shortened(String body) {
        final String line = body.strip().replace('\n', ' ');
        return line.length() <= MAX_ERROR_LENGTH ? line : line.substring(0, MAX_ERROR_LENGTH);
    }

    @Override
    public void close() {
        http.shutdownNow();
        threads.shutdownNow();
    }
}

package io.kvasir.cli.cluster;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Clients of several gateways. Each request must end, by its deadline, with an answer or with an
 * error that has a name; a connection that ends is such an error only where its gateway was killed.
 */
final class Load implements AutoCloseable {
    private static final int CLIENTS = 6;
    private static final Duration DEADLINE = Duration.ofMinutes(1);
    private static final int FAMILIES = 6;
    private static final int MOST_BLOCKS = 20;
    private static final int HELD_TOKENS = 4_000;

    private final int[] ports;
    private final long seed;
    private final HttpClient http =
            HttpClient.newBuilder()
                    .version(HttpClient.Version.HTTP_1_1)
                    .connectTimeout(DEADLINE)
                    .build();
    private final AtomicIntegerArray deaths;
    private final Map<String, AtomicLong> outcomes = new ConcurrentSkipListMap<>();
    private final List<String> failures = Collections.synchronizedList(new ArrayList<>());
    private final List<Thread> clients = new ArrayList<>();
    private final List<CompletableFuture<?>> held = new ArrayList<>();
    private int begun;
    private int asked;
    private volatile boolean running;

    Load(int[] ports, long seed) {
        this.ports = ports;
        this.seed = seed;
        this.deaths = new AtomicIntegerArray(ports.length);
    }

    /** Begins to send requests. */
    void begin() {
        running = true;
        begun++;
        for (int i = 0; i < CLIENTS; i++) {
            final Random random = new Random(seed + 1_000L * begun + i);
            clients.add(Thread.ofVirtual().start(() -> send(random)));
        }
    }

    /** Sends no more, and waits for those that run. */
    void end() throws InterruptedException {
        running = false;
        for (Thread client : clients) {
            client.join();
        }
        clients.clear();
    }

    /** A gateway is about to be killed; −1 for something else. */
    void dies(int gateway) {
        if (gateway >= 0) {
            deaths.incrementAndGet(gateway);
        }
    }

    /** It serves again. */
    void lives(int gateway) {
        if (gateway >= 0) {
            deaths.incrementAndGet(gateway); // requests that began meanwhile may still fail
        }
    }

    private void send(Random random) {
        while (running) {
            final int gateway = random.nextInt(ports.length);
            final int deathsBefore = deaths.get(gateway);
            final boolean stream = random.nextBoolean();
            String outcome;
            try {
                outcome = outcome(http.send(request(gateway, body(random, stream)), text()));
            } catch (HttpTimeoutException e) {
                outcome = "hung";
                failures.add("a request through gateway " + gateway + " did not end");
            } catch (IOException e) {
                outcome = "connection ended";
                final int deathsAfter = deaths.get(gateway);
                if (deathsAfter == deathsBefore && deathsAfter % 2 == 0) {
                    failures.add("gateway " + gateway + " lives, and ends a request: " + e);
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return;
            }
            outcomes.computeIfAbsent(outcome, _ -> new AtomicLong()).incrementAndGet();
        }
    }

    private static HttpResponse.BodyHandler<String> text() {
        return HttpResponse.BodyHandlers.ofString();
    }

    /** What an answer is, and a failure if it is neither one nor an error with a name. */
    private String outcome(HttpResponse<String> response) {
        final String body = response.body();
        final boolean error = body.contains("\"error\"");
        final boolean whole =
                body.contains("[DONE]") || body.contains("\"finish_reason\":\"length\"");
        if (response.statusCode() == 200 && whole && !error) {
            return "answered";
        }
        if (error && body.contains("\"code\"")) {
            return "error " + response.statusCode();
        }
        failures.add("neither an answer nor an error: " + response.statusCode() + " " + body);
        return "nothing";
    }

    /** Has an engine itself serve a prompt that it has not had, so that it announces something. */
    void ask(int enginePort) throws IOException, InterruptedException {
        final int[] prompt = new int[EngineProcess.BLOCK + 1];
        Arrays.fill(prompt, 80_000 + asked++);
        final String body =
                "{\"model\":\"m\",\"max_tokens\":1,\"prompt\":" + Arrays.toString(prompt) + "}";
        final HttpResponse<String> response = http.send(requestTo(enginePort, body), text());
        if (response.statusCode() != 200) {
            failures.add("an engine does not serve: " + response.body());
        }
    }

    private HttpRequest request(int gateway, String body) {
        return requestTo(ports[gateway], body);
    }

    private static HttpRequest requestTo(int port, String body) {
        return HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/v1/completions"))
                .timeout(DEADLINE)
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(body))
                .build();
    }

    /** Prompts of some families, whose beginnings are the same. */
    private static String body(Random random, boolean stream) {
        final int family = random.nextInt(FAMILIES);
        final int[] prompt = new int[EngineProcess.BLOCK * (1 + random.nextInt(MOST_BLOCKS)) + 1];
        for (int t = 0; t < prompt.length; t++) {
            prompt[t] = 1_000 + (t < prompt.length / 2 ? family : random.nextInt(50_000));
        }
        return "{\"model\":\"m\",\"ignore_eos\":true,\"max_tokens\":"
                + (1 + random.nextInt(8))
                + ",\"stream\":"
                + stream
                + ",\"prompt\":"
                + Arrays.toString(prompt)
                + "}";
    }

    /** Begins requests that run until they are released, through each gateway in turn. */
    void hold(int count) {
        final int[] prompt = new int[2 * EngineProcess.BLOCK];
        for (int i = 0; i < count; i++) {
            Arrays.fill(prompt, 70_000 + i);
            final String body =
                    "{\"model\":\"m\",\"ignore_eos\":true,\"stream\":true,\"max_tokens\":"
                            + HELD_TOKENS
                            + ",\"prompt\":"
                            + Arrays.toString(prompt)
                            + "}";
            held.add(http.sendAsync(request(i % ports.length, body), text()));
        }
    }

    /** Ends these requests. */
    void release() {
        held.forEach(request -> request.cancel(true));
        held.clear();
    }

    /** How requests have ended. */
    Map<String, AtomicLong> outcomes() {
        return outcomes;
    }

    /** What must not have happened. */
    List<String> failures() {
        return List.copyOf(failures);
    }

    @Override
    public void close() {
        running = false;
        release();
        http.shutdownNow();
    }
}

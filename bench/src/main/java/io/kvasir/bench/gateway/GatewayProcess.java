package io.kvasir.bench.gateway;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

/** A gateway in a process of its own. */
final class GatewayProcess implements AutoCloseable {
    private static final Duration START_UP = Duration.ofMinutes(2);

    private final int port = ThreadLocalRandom.current().nextInt(20_000, 28_000);
    private final Process process;

    /**
     * Starts one and waits until it is ready.
     *
     * @param kvasir words that start the command line
     * @param workers their flags
     */
    GatewayProcess(List<String> kvasir, List<String> workers)
            throws IOException, InterruptedException {
        final List<String> command = new ArrayList<>(kvasir);
        command.addAll(
                List.of(
                        "serve",
                        "--host",
                        "127.0.0.1",
                        "--port",
                        Integer.toString(port),
                        "--model",
                        "m",
                        "--nixl-library",
                        "off"));
        for (String worker : workers) {
            command.add("--worker");
            command.add(worker);
        }
        process =
                new ProcessBuilder(command)
                        .redirectErrorStream(true)
                        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                        .start();
        try (HttpClient http = HttpClient.newHttpClient()) {
            final long startNs = System.nanoTime();
            while (!isReady(http)) {
                if (!process.isAlive() || System.nanoTime() - startNs > START_UP.toNanos()) {
                    close();
                    throw new IllegalStateException("not ready: " + String.join(" ", command));
                }
                Thread.sleep(100);
            }
        }
    }

    private boolean isReady(HttpClient http) throws InterruptedException {
        try {
            return http.send(
                                    HttpRequest.newBuilder(
                                                    URI.create(
                                                            "http://127.0.0.1:" + port + "/ready"))
                                            .build(),
                                    HttpResponse.BodyHandlers.discarding())
                            .statusCode()
                    == 200;
        } catch (IOException e) {
            return false; // not listening yet
        }
    }

    int port() {
        return port;
    }

    /** CPU time so far, of all of its threads. */
    Duration cpu() {
        return process.info().totalCpuDuration().orElseThrow();
    }

    @Override
    public void close() {
        process.destroyForcibly().onExit().join();
    }
}

package io.kvasir.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;

import io.kvasir.cli.load.LoadClient;
import io.kvasir.cli.load.Outcome;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.FreePorts;
import io.kvasir.testsupport.HaproxyServer;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Two gateways, each a process, are replaced one after the other while clients send streaming
 * requests at a fixed rate over connections that they keep: none may fail.
 */
@Tag("integration")
class RollingUpgradeTest {
    private static final Path PAGE =
            Path.of(System.getProperty("kvasir.root"), "docs/operations/upgrade.md");
    private static final Pattern CONFIGURATION =
            Pattern.compile("```haproxy\n(.*?)```", Pattern.DOTALL);
    private static final long PERIOD_MS = 20;
    private static final int SHORT_TOKENS = 4;
    private static final int LONG_TOKENS = 150;
    private static final int LONG_EVERY = 10;
    private static final Duration PATIENCE = Duration.ofMinutes(3);

    @TempDir private Path folder;

    private final SimEngine[] engines = {engine(), engine()};
    private final Gateway[] gateways = new Gateway[2];
    private final List<AutoCloseable> opened = new ArrayList<>();
    private final HttpClient http = HttpClient.newHttpClient();

    private static SimEngine engine() {
        return SimEngine.start(
                SimConfig.builder().prefillTokensPerSecond(1_000_000).interTokenMillis(10).build());
    }

    /** A gateway that comes back on the same ports. */
    private final class Gateway {
        private final int port = FreePorts.run(2);
        private final int adminPort = port + 1;
        private final int lameDuckMs;
        private KvasirProcess process;

        Gateway(int lameDuckMs) throws Exception {
            this.lameDuckMs = lameDuckMs;
            start();
        }

        void start() throws IOException {
            final List<String> command =
                    new ArrayList<>(
                            List.of(
                                    "serve",
                                    "--host=127.0.0.1",
                                    "--port=" + port,
                                    "--admin-port=" + adminPort,
                                    "--model=kvasir-sim",
                                    "--lame-duck-ms=" + lameDuckMs,
                                    "--drain-timeout-ms=30000"));
            for (SimEngine engine : engines) {
                command.add(
                        "--worker="
                                + engine.url()
                                + ",events="
                                + engine.eventsEndpoint(0)
                                + ",replay="
                                + engine.replayEndpoint(0));
            }
            process = new KvasirProcess(command.toArray(String[]::new));
            opened.add(process);
        }

        /** Waits until clients have been served by it. */
        void awaitTraffic() throws InterruptedException {
            Eventually.holds(
                    "requests at port " + port,
                    () ->
                            get(adminPort, "/metrics")
                                    .lines()
                                    .anyMatch(
                                            line ->
                                                    line.startsWith("kvasir_requests_total")
                                                            && line.contains(
                                                                    "route=\"completions\"")
                                                            && line.contains("status=\"200\"")));
        }

        void awaitReady() throws InterruptedException {
            Eventually.holds(
                    "ready at port " + port, () -> get(port, "/ready").contains("\"ready\""));
        }

        void replace() throws Exception {
            assertEquals(0, process.terminate());
            start();
            awaitReady();
            awaitTraffic();
        }

        URI uri() {
            return URI.create("http://127.0.0.1:" + port);
        }
    }

    private String get(int port, String path) {
        try {
            return http.send(
                            HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
                                    .build(),
                            HttpResponse.BodyHandlers.ofString())
                    .body();
        } catch (IOException e) {
            return ""; // not there yet
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    @AfterEach
    void stop() throws Exception {
        for (AutoCloseable each : opened.reversed()) {
            each.close();
        }
        http.close();
        for (SimEngine engine : engines) {
            engine.close();
        }
    }

    @Test
    void noRequestFailsBehindHaproxyAsTheUpgradePageConfiguresIt() throws Exception {
        final Path program = haproxy();
        startGateways(2_000);
        final int port = FreePorts.run(1);
        final HaproxyServer haproxy = HaproxyServer.in(program, folder, configuration(port), port);
        opened.add(haproxy);
        haproxy.start();
        final LoadClient client = client(URI.create("http://127.0.0.1:" + port));
        upgradeUnderLoad(number -> send(client, number));
    }

    private static Path haproxy() {
        try {
            return HaproxyServer.program();
        } catch (IOException e) {
            return abort("skipped: no HAProxy: " + e.getMessage());
        }
    }

    /** The page's own, with the addresses of this test. */
    private String configuration(int port) throws IOException {
        final Matcher shown = CONFIGURATION.matcher(Files.readString(PAGE));
        assertTrue(shown.find(), PAGE + " shows no configuration of HAProxy");
        return (shown.group(1).stripTrailing() + "\n")
                .replace("bind :80\n", "bind 127.0.0.1:" + port + "\n")
                .replace("10.0.0.1:8000", "127.0.0.1:" + gateways[0].port)
                .replace("10.0.0.2:8000", "127.0.0.1:" + gateways[1].port);
    }

    @Test
    void noRequestFailsWhereClientsGoToTheOtherGatewayWhenOneRefusesToConnect() throws Exception {
        startGateways(1_000);
        final LoadClient[] clients = {client(gateways[0].uri()), client(gateways[1].uri())};
        upgradeUnderLoad(
                number -> {
                    final LoadClient first = clients[number % 2];
                    final LoadClient second = clients[1 - number % 2];
                    return send(first, number)
                            .thenCompose(
                                    outcome ->
                                            refused(outcome)
                                                    ? send(second, number)
                                                    : CompletableFuture.completedFuture(outcome));
                });
    }

    private static boolean refused(Outcome outcome) {
        return outcome.failed() && outcome.error().equals("the connection was refused");
    }

    private void startGateways(int lameDuckMs) throws Exception {
        gateways[0] = new Gateway(lameDuckMs);
        gateways[1] = new Gateway(lameDuckMs);
        for (Gateway gateway : gateways) {
            gateway.awaitReady();
        }
    }

    private LoadClient client(URI base) {
        final LoadClient client = new LoadClient(base, PATIENCE, Map.of());
        opened.add(client);
        return client;
    }

    /** Every tenth request has a long answer. */
    private static CompletableFuture<Outcome> send(LoadClient client, int number) {
        final String body =
                "{\"model\":\"kvasir-sim\",\"prompt\":[1,2,3,"
                        + number
                        + "],\"ignore_eos\":true,\"stream\":true,\"stream_options\":{\"include_usage\":true},"
                        + "\"max_tokens\":"
                        + (number % LONG_EVERY == 0 ? LONG_TOKENS : SHORT_TOKENS)
                        + "}";
        return client.send(
                "/v1/completions", body.getBytes(StandardCharsets.UTF_8), System.nanoTime(), false);
    }

    /** Open loop: a request is sent when it is due, whatever became of those before. */
    private void upgradeUnderLoad(Function<Integer, CompletableFuture<Outcome>> sender)
            throws Exception {
        final List<CompletableFuture<Outcome>> sent = new ArrayList<>();
        final ScheduledExecutorService clock = Executors.newSingleThreadScheduledExecutor();
        try {
            var _ =
                    clock.scheduleAtFixedRate(
                            () -> sent.add(sender.apply(sent.size())),
                            0,
                            PERIOD_MS,
                            TimeUnit.MILLISECONDS);
            for (Gateway gateway : gateways) {
                gateway.awaitTraffic();
            }
            for (Gateway gateway : gateways) {
                gateway.replace();
            }
        } finally {
            clock.close();
        }
        final List<String> failures = new ArrayList<>();
        long tokens = 0;
        for (int i = 0; i < sent.size(); i++) {
            final Outcome outcome = sent.get(i).get();
            if (outcome.failed()) {
                failures.add("request " + i + ": " + outcome.error());
            } else {
                tokens += outcome.outputTokens();
            }
        }
        assertEquals(List.of(), failures, "of " + sent.size() + " requests");
        final int longOnes = (sent.size() + LONG_EVERY - 1) / LONG_EVERY;
        assertEquals(
                (long) longOnes * LONG_TOKENS + (long) (sent.size() - longOnes) * SHORT_TOKENS,
                tokens);
    }
}

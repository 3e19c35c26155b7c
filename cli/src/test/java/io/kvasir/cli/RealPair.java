package io.kvasir.cli;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.router.RouterSettings;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Consumer;

/** A real prefill and a real decode server with a gateway in front of them. */
final class RealPair implements AutoCloseable {
    static final HttpClient HTTP =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    final VllmServer prefillServer;
    final PrefillServer prefill;
    final VllmServer decode;
    private GatewayServer gateway;

    private RealPair(Path folder, Path logs) {
        prefillServer = new VllmServer(folder, logs.resolve("prefill.log")).transferring();
        prefill = new PrefillServer(prefillServer);
        decode = new VllmServer(folder, logs.resolve("decode.log")).transferring();
    }

    /**
     * Starts all three; ends the test as skipped where there is no vLLM.
     *
     * @param logs folder of the servers' logs
     * @param more further settings of the gateway
     */
    static RealPair start(Path logs, Consumer<GatewayConfig.Builder> more) throws Exception {
        final Path folder = VllmServer.installed();
        final RealPair pair = new RealPair(folder, logs);
        try {
            pair.begin(folder, more);
            return pair;
        } catch (Throwable e) {
            pair.close();
            throw e;
        }
    }

    private void begin(Path folder, Consumer<GatewayConfig.Builder> more) throws Exception {
        prefill.start();
        decode.start();
        prefill.awaitHealthy();
        decode.awaitHealthy();
        final GatewayConfig.Builder config =
                GatewayConfig.builder()
                        .set(GatewaySettings.PORT, 0)
                        .set(GatewaySettings.ADMIN_PORT, 0L)
                        .set(GatewaySettings.TRUSTED_NETWORKS, List.of("127.0.0.1"))
                        .set(GatewaySettings.MODEL, VllmServer.MODEL)
                        .set(GatewaySettings.TOKENIZER, folder.resolve("model"))
                        .set(RouterSettings.BLOCK_SIZE, VllmServer.BLOCK_SIZE)
                        .worker(WorkerConfig.parse(prefillServer.flag("p") + ",role=prefill"))
                        .worker(WorkerConfig.parse(decode.flag("d") + ",role=decode"));
        more.accept(config);
        gateway = GatewayServer.start(config.build());
        awaitUp();
    }

    /** Waits until the gateway uses both servers. */
    void awaitUp() throws Exception {
        final long startNs = System.nanoTime();
        while (!isUp()) {
            assertTrue(System.nanoTime() - startNs < 60_000_000_000L, page("/health"));
            Thread.sleep(20);
        }
    }

    private boolean isUp() throws Exception {
        final String workers = page("/health");
        return !workers.contains("\"available\":false")
                && workers.contains("\"up\"")
                && !workers.contains("\"unknown\"");
    }

    URI url() {
        return URI.create(gateway.url());
    }

    private String page(String path) throws Exception {
        return HTTP.send(
                        HttpRequest.newBuilder(URI.create(gateway.adminUrl() + path)).build(),
                        HttpResponse.BodyHandlers.ofString())
                .body();
    }

    /** Sum of the series that begin so. */
    double metric(String prefix) throws Exception {
        return page("/metrics")
                .lines()
                .filter(line -> line.startsWith(prefix))
                .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1)))
                .sum();
    }

    @Override
    public void close() {
        if (gateway != null) {
            gateway.close();
        }
        prefill.close();
        decode.close();
    }
}

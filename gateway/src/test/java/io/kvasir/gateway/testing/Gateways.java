package io.kvasir.gateway.testing;

import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.NamedValues;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** Gateways for tests, and requests to them. */
public final class Gateways {
    public static final HttpClient HTTP =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    private Gateways() {}

    /**
     * Model {@code m}, blocks of 16, every caller on this machine trusted, probes every 50 ms that
     * wait as long as tests do, nothing drained. No NIXL library, which a process loads once: tests
     * of its own use another.
     */
    public static GatewayConfig.Builder config(WorkerConfig... workers) {
        final GatewayConfig.Builder builder =
                GatewayConfig.builder()
                        .set(GatewaySettings.HOST, "127.0.0.1")
                        .set(GatewaySettings.PORT, 0)
                        .set(GatewaySettings.ADMIN_PORT, 0L)
                        .set(GatewaySettings.TRUSTED_NETWORKS, List.of("127.0.0.1"))
                        .set(GatewaySettings.MODEL, "m")
                        .set(GatewaySettings.NIXL_LIBRARY, GatewaySettings.NIXL_OFF)
                        .set(RouterSettings.MAX_BLOCKS, 4096L)
                        .set(RouterSettings.MAX_HELD_BLOCKS, 8192L)
                        .set(RouterSettings.MAX_ACTIVE_REQUESTS, 1024)
                        .set(RouterSettings.MAX_WORKERS, 8)
                        .set(GatewaySettings.CONNECT_TIMEOUT, Duration.ofMinutes(1))
                        .set(GatewaySettings.HEALTH_INTERVAL, Duration.ofMillis(50))
                        .set(GatewaySettings.HEALTH_TIMEOUT, Duration.ofMinutes(1))
                        .set(GatewaySettings.DRAIN_TIMEOUT, Duration.ofMillis(0));
        for (WorkerConfig worker : workers) {
            builder.worker(worker);
        }
        return builder;
    }

    public static HttpResponse<String> post(
            GatewayServer gateway, String path, String body, String... headers) throws Exception {
        return HTTP.send(
                postRequest(gateway, path, body, headers), HttpResponse.BodyHandlers.ofString());
    }

    /** The same without waiting; cancelled, it is a client that leaves. */
    public static CompletableFuture<HttpResponse<String>> postAsync(
            GatewayServer gateway, String path, String body, String... headers) {
        return HTTP.sendAsync(
                postRequest(gateway, path, body, headers), HttpResponse.BodyHandlers.ofString());
    }

    private static HttpRequest postRequest(
            GatewayServer gateway, String path, String body, String... headers) {
        final HttpRequest.Builder request =
                HttpRequest.newBuilder(uri(gateway, path))
                        .timeout(Duration.ofMinutes(1))
                        .header("Content-Type", "application/json")
                        .POST(HttpRequest.BodyPublishers.ofString(body));
        if (headers.length > 0) {
            request.headers(headers);
        }
        return request.build();
    }

    /** Metrics and debug pages are asked for at the admin port, all else at the serving one. */
    public static HttpResponse<String> get(GatewayServer gateway, String path) throws Exception {
        return path.startsWith("/metrics") || path.startsWith("/debug")
                ? admin(gateway, path)
                : send(HttpRequest.newBuilder(uri(gateway, path)));
    }

    public static HttpResponse<String> admin(GatewayServer gateway, String path, String... headers)
            throws Exception {
        return send(adminRequest(gateway, path, headers));
    }

    public static HttpRequest.Builder adminRequest(
            GatewayServer gateway, String path, String... headers) {
        final HttpRequest.Builder request =
                HttpRequest.newBuilder(
                        URI.create("http://127.0.0.1:" + gateway.adminPort() + path));
        return headers.length > 0 ? request.headers(headers) : request;
    }

    public static HttpResponse<String> send(HttpRequest.Builder request) throws Exception {
        return HTTP.send(
                request.timeout(Duration.ofMinutes(1)).build(),
                HttpResponse.BodyHandlers.ofString());
    }

    /** One that has had its first contact with every worker. */
    public static GatewayServer started(GatewayConfig.Builder config) throws InterruptedException {
        final GatewayServer gateway = GatewayServer.start(config.build());
        try {
            awaitContact(gateway);
        } catch (InterruptedException | RuntimeException | Error e) {
            gateway.close();
            throw e;
        }
        return gateway;
    }

    /** Asks the admin port about workers, or for a change of them. */
    public static HttpResponse<String> workers(
            GatewayServer gateway, String method, String path, String body) throws Exception {
        return send(
                adminRequest(gateway, "/admin/workers" + path)
                        .method(method, HttpRequest.BodyPublishers.ofString(body)));
    }

    /** Waits for the first contact with every worker. */
    public static void awaitContact(GatewayServer gateway) throws InterruptedException {
        awaitContactWith(gateway);
    }

    /** The same of a gateway whose admin port asks for headers. */
    public static void awaitContactWith(GatewayServer gateway, String... headers)
            throws InterruptedException {
        Eventually.holds(
                "contact with every worker",
                () -> {
                    try {
                        return !admin(gateway, "/health", headers)
                                .body()
                                .contains("\"unknown\",\"last_error");
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                });
    }

    public static URI uri(GatewayServer gateway, String path) {
        return URI.create("http://127.0.0.1:" + gateway.port() + path);
    }

    /** Sets values by name: {@code name=value}, with a space between two. */
    public static void set(GatewayConfig.Builder builder, String settings) {
        NamedValues.each(
                settings, (name, value) -> set(builder, GatewaySettings.TABLE.named(name), value));
    }

    private static <T> void set(GatewayConfig.Builder builder, Setting<T> setting, String value) {
        builder.set(setting, setting.parse(value));
    }
}

package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.Secret;
import io.kvasir.gateway.config.UpstreamHttp2;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.server.Responses;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Keytool;

import org.eclipse.jetty.alpn.server.ALPNServerConnectionFactory;
import org.eclipse.jetty.http.HttpVersion;
import org.eclipse.jetty.http2.server.HTTP2ServerConnectionFactory;
import org.eclipse.jetty.io.EndPoint;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.SslConnectionFactory;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.ssl.SslContextFactory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Workers behind TLS, with a certificate that no public authority has signed. */
@Order(1) // takes long: begins first, beside the others
class HttpsWorkerTest {

    /** Has signed no worker's certificate; made by OpenSSL, as {@code CN=caec}. */
    private static final String OTHER_AUTHORITY =
            """
            -----BEGIN CERTIFICATE-----
            MIIBczCCARmgAwIBAgIUJnn5c33Rdp7Q0KvEGKH3rsTbaNMwCgYIKoZIzj0EAwIw
            DzENMAsGA1UEAwwEY2FlYzAeFw0yNjExMjkwNTIzMjJaFw0zNjExMjYwNTIzMjJa
            MA8xDTALBgNVBAMMBGNhZWMwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQg2Gcd
            u7dAy1MpIN1UvTjKWCoXmq5LhXeoOTrW37mIrod0RR8J3HxJHQVog+iB2A4GexU/
            RCTWMrjwDgR1MuMJo1MwUTAdBgNVHQ4EFgQUe2+lEal4fCvH82I3S8Rd5xbzR1Aw
            HwYDVR0jBBgwFoAUe2+lEal4fCvH82I3S8Rd5xbzR1AwDwYDVR0TAQH/BAUwAwEB
            /zAKBggqhkjOPQQDAgNIADBFAiEAg4yJc9wbqO8zjawi0OKxglYIXT80pO6729Tk
            5xMPGuUCIApBoh+iSlKwYGY5ODYU9SXXUNTBQekY5L9K3jXXeJjj
            -----END CERTIFICATE-----
            """;

    /** Keys and certificates are made once: each takes a process. */
    @TempDir private static Path dir;

    private static Path pem;
    private static Path trusted;

    private final Server worker = new Server();
    private final ServerConnector connector = tls();
    private final ServerConnector negotiating = alpn();
    private final Set<HttpVersion> spoken = ConcurrentHashMap.newKeySet();
    private GatewayServer gateway;

    private ServerConnector tls() {
        return new ServerConnector(
                worker,
                new SslConnectionFactory(new SslContextFactory.Server(), "http/1.1"),
                new HttpConnectionFactory(new HttpConfiguration()));
    }

    private ServerConnector alpn() {
        final HttpConfiguration http = new HttpConfiguration();
        return new ServerConnector(
                worker,
                new SslConnectionFactory(new SslContextFactory.Server(), "alpn"),
                new ALPNServerConnectionFactory(),
                new HTTP2ServerConnectionFactory(http),
                new HttpConnectionFactory(http));
    }

    @BeforeAll
    static void makeKeys() throws Exception {
        final String certificate = Keytool.certificate(store(), "worker", "dns:localhost");
        pem = Files.writeString(dir.resolve("ca.pem"), certificate);
        trusted = dir.resolve("trust.p12");
        Keytool.trust(store(), trusted);
    }

    @BeforeEach
    void start() throws Exception {
        for (ServerConnector port : List.of(connector, negotiating)) {
            final SslContextFactory.Server keys =
                    port.getConnectionFactory(SslConnectionFactory.class).getSslContextFactory();
            keys.setKeyStorePath(store().toUri().toString());
            keys.setKeyStorePassword(Keytool.PASSWORD);
            worker.addConnector(port);
        }
        worker.setHandler(
                new Handler.Abstract.NonBlocking() {
                    @Override
                    public boolean handle(Request request, Response response, Callback callback) {
                        spoken.add(request.getConnectionMetaData().getHttpVersion());
                        Responses.write(
                                response,
                                callback,
                                200,
                                "application/json",
                                "{\"choices\":[]}".getBytes(StandardCharsets.UTF_8));
                        return true;
                    }
                });
        worker.start();
    }

    @AfterEach
    void stop() throws Exception {
        if (gateway != null) {
            gateway.close();
        }
        worker.stop();
    }

    private static Path store() {
        return dir.resolve("keys.p12");
    }

    private GatewayConfig.Builder of(String host) {
        return of(host, connector);
    }

    private static GatewayConfig.Builder of(String host, ServerConnector port) {
        return Gateways.config(
                WorkerConfig.parse("https://" + host + ":" + port.getLocalPort() + ",name=one"));
    }

    private void assertSpoken(
            HttpVersion version, ServerConnector port, UpstreamHttp2 http2, Path pem)
            throws Exception {
        spoken.clear();
        gateway =
                GatewayServer.start(
                        of("localhost", port)
                                .set(GatewaySettings.WORKER_TRUST_STORE, pem)
                                .set(GatewaySettings.UPSTREAM_HTTP2, http2)
                                .build());
        assertEquals(200, complete().statusCode());
        gateway.close();
        assertEquals(Set.of(version), spoken);
    }

    @Test
    void speaksHttp2WhereItOffersIt() throws Exception {
        assertSpoken(HttpVersion.HTTP_2, negotiating, UpstreamHttp2.AUTO, pem);
        assertSpoken(HttpVersion.HTTP_1_1, negotiating, UpstreamHttp2.OFF, pem);
        assertSpoken(HttpVersion.HTTP_1_1, connector, UpstreamHttp2.AUTO, pem);
        assertSpoken(HttpVersion.HTTP_1_1, connector, UpstreamHttp2.PRIOR_KNOWLEDGE, pem);
    }

    private HttpResponse<String> complete() throws Exception {
        Gateways.awaitContact(gateway);
        return Gateways.post(gateway, "/v1/completions", "{\"prompt\":[1]}");
    }

    @Test
    void isReachedWithItsAuthorityAsPem() throws Exception {
        gateway =
                GatewayServer.start(
                        of("localhost").set(GatewaySettings.WORKER_TRUST_STORE, pem).build());
        assertEquals(200, complete().statusCode());
    }

    @Test
    void isReachedWithItsAuthorityAsPkcs12() throws Exception {
        gateway =
                GatewayServer.start(
                        of("localhost")
                                .set(GatewaySettings.WORKER_TRUST_STORE, trusted)
                                .set(
                                        GatewaySettings.WORKER_TRUST_STORE_PASSWORD,
                                        new Secret(Keytool.PASSWORD))
                                .build());
        assertEquals(200, complete().statusCode());
    }

    @Test
    void isReachedWhenItsAuthorityIsReadAgainAndStaysSoWithAFileThatIsNone() throws Exception {
        final Path live = Files.writeString(dir.resolve("live.pem"), OTHER_AUTHORITY);
        gateway =
                GatewayServer.start(
                        of("localhost").set(GatewaySettings.WORKER_TRUST_STORE, live).build());
        assertTrue(complete().statusCode() >= 500);
        Files.copy(pem, live, StandardCopyOption.REPLACE_EXISTING);
        gateway.reload();
        Eventually.holds("its authority is known", () -> health().contains("\"available\":true"));
        assertEquals(200, complete().statusCode());
        Files.writeString(live, "x");
        gateway.reload();
        endConnections();
        Eventually.holds("the former authority stays", this::answers);
        Files.writeString(live, OTHER_AUTHORITY);
        gateway.reload();
        Eventually.holds(
                "it is unknown",
                () -> {
                    endConnections(); // also one that a probe has opened meanwhile
                    return health().contains("PKIX");
                });
    }

    /** The next request or probe opens one, and sees the certificate. */
    private void endConnections() {
        connector.getConnectedEndPoints().forEach(EndPoint::close);
    }

    private boolean answers() {
        try {
            return complete().statusCode() == 200;
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void isNotUsedWithAnUnknownAuthorityAndTheClientReadsNoName() throws Exception {
        gateway = GatewayServer.start(of("localhost").build());
        final HttpResponse<String> answer = complete();
        assertTrue(answer.statusCode() >= 500, answer.body());
        assertFalse(answer.body().contains("localhost"), answer.body());
        assertFalse(answer.body().contains("PKIX"), answer.body());
    }

    @Test
    void isNotReachedWhereItAsksForACertificateAndItsProbeSaysSo() throws Exception {
        for (ServerConnector port : List.of(connector, negotiating)) {
            port.getConnectionFactory(SslConnectionFactory.class)
                    .getSslContextFactory()
                    .setNeedClientAuth(true);
            gateway =
                    GatewayServer.start(
                            of("localhost", port)
                                    .set(GatewaySettings.WORKER_TRUST_STORE, pem)
                                    .build());
            // a reset may come before what TLS says: of some probe it is read
            Eventually.holds("certificate_required", () -> health().contains("certificate_req"));
            gateway.close();
        }
    }

    private String health() {
        try {
            return Gateways.admin(gateway, "/health").body();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void isNotUsedUnderAnotherNameThanItsCertificates() throws Exception {
        gateway =
                GatewayServer.start(
                        of("127.0.0.1").set(GatewaySettings.WORKER_TRUST_STORE, pem).build());
        assertTrue(complete().statusCode() >= 500);
    }

    @Test
    void aStoreThatIsNoneIsRefusedAtTheStart() throws Exception {
        assertRefused(Files.writeString(dir.resolve("none"), "x"), "no certificate");
        assertRefused(Files.writeString(dir.resolve("none"), ""), "it is empty");
        assertRefused(dir.resolve("missing"), "there is no such file");
        final String cut = Files.readString(pem) + Files.readString(pem).substring(0, 300);
        assertRefused(Files.writeString(dir.resolve("cut"), cut), "certificate 2 has no end");
        assertRefused(trusted, "give worker-trust-store-password");
        assertRefused(store(), "give worker-trust-store-password");
    }

    private void assertRefused(Path file, String why) {
        final GatewayException refused =
                assertThrows(
                        GatewayException.class,
                        () ->
                                gateway =
                                        GatewayServer.start(
                                                of("localhost")
                                                        .set(
                                                                GatewaySettings.WORKER_TRUST_STORE,
                                                                file)
                                                        .build()));
        assertTrue(
                refused.getMessage().startsWith("worker-trust-store " + file + ": "),
                refused.getMessage());
        assertTrue(refused.getMessage().contains(why), refused.getMessage());
    }
}

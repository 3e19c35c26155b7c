package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.net.InetAddress;
import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;

/** Addresses of IPv6 wherever there may be one. */
class Ipv6Test {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";

    private final FakeEngine engine;
    private GatewayServer gateway;

    Ipv6Test() {
        engine = new FakeEngine(call -> call.json(200, ANSWER), InetAddress.ofLiteral("::1"), 0);
    }

    private GatewayServer start(String host, String adminHost, String trusted) {
        gateway =
                GatewayServer.start(
                        Gateways.config(WorkerConfig.parse("http://[::1]:" + engine.port()))
                                .set(GatewaySettings.HOST, host)
                                .set(GatewaySettings.ADMIN_HOST, adminHost)
                                .set(GatewaySettings.TRUSTED_NETWORKS, List.of(trusted))
                                .build());
        return gateway;
    }

    @AfterEach
    void stop() {
        gateway.close();
        engine.close();
    }

    private HttpResponse<String> complete(String host) throws Exception {
        return Gateways.send(
                HttpRequest.newBuilder(
                                URI.create(
                                        "http://"
                                                + host
                                                + ":"
                                                + gateway.port()
                                                + "/v1/completions"))
                        .POST(HttpRequest.BodyPublishers.ofString("{\"prompt\":[1]}")));
    }

    @ParameterizedTest
    @ValueSource(strings = {"::", "[::]"})
    void bothFamiliesAreServedAndToldApart(String any) throws Exception {
        start(any, "::1", "::1");
        assertEquals("http://[::]:" + gateway.port(), gateway.url());
        assertEquals("http://[::1]:" + gateway.adminPort(), gateway.adminUrl());
        final HttpResponse<String> trusted = complete("[::1]");
        assertEquals(200, trusted.statusCode(), trusted.body());
        assertEquals(
                "[::1]:" + engine.port(),
                trusted.headers().firstValue("x-kvasir-worker").orElseThrow());
        final HttpResponse<String> other = complete("127.0.0.1");
        assertEquals(200, other.statusCode(), other.body());
        assertTrue(other.headers().firstValue("x-kvasir-worker").isEmpty());
        final HttpResponse<String> admin =
                Gateways.send(
                        HttpRequest.newBuilder(URI.create(gateway.adminUrl() + "/debug/workers")));
        assertEquals(200, admin.statusCode(), admin.body());
        assertTrue(admin.body().contains("http://[::1]:" + engine.port()), admin.body());
    }

    @Test
    void aClientOfIpv4IsThatOnADualStackPort() throws Exception {
        start("::", "127.0.0.1", "::ffff:127.0.0.1");
        assertTrue(complete("127.0.0.1").headers().firstValue("x-kvasir-worker").isPresent());
        assertTrue(complete("[::1]").headers().firstValue("x-kvasir-worker").isEmpty());
    }
}

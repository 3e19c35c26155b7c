package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.Secret;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.FakeCollector;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Keytool;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** A collector whose authority is a private one, and that asks for a certificate and a key. */
@Order(1) // takes long: begins first, beside the others
class SecuredCollectorTest {
    private static final String ASK = "{\"model\":\"m\",\"prompt\":[1,2,3]}";
    private static final String ANSWER = "{\"choices\":[{\"text\":\"ab\"}]}";

    /** Keys and certificates are made once: each takes a process. */
    @TempDir private static Path keys;

    private static Path authority;
    private static Path certificate;
    private static Path key;
    private static SSLContext tls; // of the collector

    @TempDir private Path dir;
    private final FakeEngine engine = new FakeEngine(call -> call.json(200, ANSWER));
    private FakeCollector collector;
    private Path headers;

    @BeforeAll
    static void makeKeys() throws Exception {
        authority = certificate("collector");
        certificate = certificate("gateway");
        key = key("gateway");
        final TrustManagerFactory trusted =
                TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trusted.init(Keytool.trusting(store("gateway")));
        tls = SSLContext.getInstance("TLS");
        tls.init(Keytool.keys(store("collector")), trusted.getTrustManagers(), null);
    }

    /** Makes a key and its certificate; the file of the certificate. */
    private static Path certificate(String name) throws Exception {
        return Files.writeString(
                keys.resolve(name + ".pem"),
                Keytool.certificate(store(name), name, "ip:127.0.0.1"));
    }

    /** The file of the key that was made with a certificate. */
    private static Path key(String name) throws Exception {
        return Files.writeString(keys.resolve(name + "-key.pem"), Keytool.key(store(name)));
    }

    private static Path store(String name) {
        return keys.resolve(name + ".p12");
    }

    @BeforeEach
    void start() throws Exception {
        headers = Files.writeString(dir.resolve("headers"), "# of the test\nx-api-key = a=1\n");
        collector = new FakeCollector(tls);
    }

    @AfterEach
    void stop() {
        collector.close();
        engine.close();
    }

    private GatewayConfig.Builder config() {
        return Gateways.config()
                .set(
                        GatewaySettings.OTLP_ENDPOINT,
                        URI.create("https://127.0.0.1:" + collector.port() + "/v1/traces"))
                .set(GatewaySettings.OTLP_TRUST_STORE, authority)
                .set(GatewaySettings.OTLP_CLIENT_CERTIFICATE, certificate)
                .set(GatewaySettings.OTLP_CLIENT_KEY, key)
                .set(GatewaySettings.OTLP_HEADERS_FILE, headers)
                .worker(WorkerConfig.parse("url=" + engine.url()));
    }

    @Test
    void itGetsTracesWithTheHeadersThatTheFileHasNow() throws Exception {
        try (GatewayServer gateway = Gateways.started(config())) {
            assertEquals(200, Gateways.post(gateway, "/v1/completions", ASK).statusCode());
            collector.await(1);
            assertEquals("a=1", collector.keys.getFirst());
            Files.writeString(headers, "x-api-key=b\n");
            assertEquals(200, Gateways.post(gateway, "/v1/completions", ASK).statusCode());
            Eventually.holds("the new key", () -> collector.keys.getLast().equals("b"));
            Files.writeString(headers, "nothing\n");
            final int before = collector.keys.size();
            assertEquals(200, Gateways.post(gateway, "/v1/completions", ASK).statusCode());
            Eventually.holds("sent", () -> collector.keys.size() > before);
            assertEquals("b", collector.keys.getLast(), "what was read before stays");
        }
    }

    @Test
    void statedHeadersAreSentUnlessTheFileHasThem() throws Exception {
        final Secret stated = new Secret("X-Api-Key=c%2Cd+%3D, other=1,");
        try (GatewayServer gateway =
                Gateways.started(
                        config().set(GatewaySettings.OTLP_HEADERS, stated)
                                .set(
                                        GatewaySettings.OTLP_HEADERS_FILE,
                                        Files.writeString(headers, "third=3\n")))) {
            assertEquals(200, Gateways.post(gateway, "/v1/completions", ASK).statusCode());
            collector.await(1);
            assertEquals("c,d+=", collector.keys.getFirst());
            Files.writeString(headers, "x-api-key=b\n");
            assertEquals(200, Gateways.post(gateway, "/v1/completions", ASK).statusCode());
            Eventually.holds("the file's key", () -> collector.keys.getLast().equals("b"));
        }
    }

    @Test
    void headersThatCannotBeReadAreRefusedWithoutTheirValues() {
        for (String wrong : new String[] {"a=1,secret", "a=1,b=secret%2", "a=1,b c=secret"}) {
            final List<String> problems =
                    StartFiles.problems(
                            config().set(GatewaySettings.OTLP_HEADERS, new Secret(wrong)).build());
            assertEquals(1, problems.size(), problems.toString());
            assertTrue(problems.getFirst().contains("otlp-headers, header 2"), problems.toString());
            assertFalse(problems.getFirst().contains("secret"), problems.toString());
        }
    }

    @Test
    void whatCannotBeUsedIsNamedBeforeTheStart() throws Exception {
        assertEquals(List.of(), StartFiles.problems(config().build()));
        final Path missing = dir.resolve("missing");
        assertProblem("otlp-trust-store", config().set(GatewaySettings.OTLP_TRUST_STORE, missing));
        assertProblem(
                "otlp-client-certificate",
                config().set(GatewaySettings.OTLP_CLIENT_CERTIFICATE, missing));
        assertProblem("otlp-client-key", config().set(GatewaySettings.OTLP_CLIENT_KEY, missing));
        assertProblem("otlp-client-key", config().set(GatewaySettings.OTLP_CLIENT_KEY, headers));
        assertProblem(
                "it must have the key of otlp-client-certificate",
                config().set(GatewaySettings.OTLP_CLIENT_KEY, key("collector")));
        assertProblem(
                "go together",
                Gateways.config()
                        .set(GatewaySettings.OTLP_ENDPOINT, URI.create("https://h:1/v1/traces"))
                        .set(GatewaySettings.OTLP_CLIENT_KEY, key));
        assertProblem(
                "otlp-headers-file", config().set(GatewaySettings.OTLP_HEADERS_FILE, missing));
        assertProblem("line 1", config().set(GatewaySettings.OTLP_HEADERS_FILE, certificate));
    }

    private static void assertProblem(String named, GatewayConfig.Builder config) {
        final List<String> problems = StartFiles.problems(config.build());
        assertEquals(1, problems.size(), problems.toString());
        assertTrue(problems.getFirst().contains(named), problems.toString());
    }
}

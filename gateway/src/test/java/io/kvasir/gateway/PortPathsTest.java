package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import io.kvasir.gateway.openai.Endpoint;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.net.http.HttpResponse;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/** What a port says that it has is what it answers. */
class PortPathsTest {
    private static final String LIST = "no endpoint /none; there are: ";

    private final FakeEngine engine = new FakeEngine(FakeEngine.chatStream(1, 1));
    private final GatewayServer gateway =
            GatewayServer.start(Gateways.config(engine.worker("w")).build());

    @AfterEach
    void stop() {
        gateway.close();
        engine.close();
    }

    private static List<String> listed(HttpResponse<String> answer) throws Exception {
        assertEquals(404, answer.statusCode());
        final String message = GatewayHttpTest.json(answer).at("/error/message").textValue();
        assertEquals(LIST, message.substring(0, LIST.length()));
        return List.of(message.substring(LIST.length()).split(", ", -1));
    }

    @Test
    void theServingPortListsEachEndpoint() throws Exception {
        final List<String> paths =
                Stream.concat(
                                Arrays.stream(Endpoint.values())
                                        .filter(endpoint -> endpoint != Endpoint.UNKNOWN)
                                        .map(endpoint -> endpoint.path),
                                Stream.of("/v1/models/{model}"))
                        .sorted()
                        .toList();
        assertEquals(paths, listed(serving("/none")));
        for (String path : paths) {
            assertNotEquals(404, serving(path.replace("{model}", "m")).statusCode(), path);
        }
    }

    /** Without a body: a connection whose body was not read is not used again. */
    private HttpResponse<String> serving(String path) throws Exception {
        return Gateways.get(gateway, path);
    }

    @Test
    void theAdminPortListsEachThatItAnswers() throws Exception {
        final List<String> paths = listed(Gateways.admin(gateway, "/none"));
        assertEquals(
                List.of(
                        "/admin/workers",
                        "/debug/decisions",
                        "/debug/workers",
                        "/health",
                        "/live",
                        "/metrics",
                        "/ready",
                        "/settings"),
                paths);
        for (String path : paths) {
            assertNotEquals(404, Gateways.admin(gateway, path).statusCode(), path);
        }
    }
}

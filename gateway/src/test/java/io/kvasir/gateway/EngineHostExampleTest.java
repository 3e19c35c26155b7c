package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.testing.Gateways;
import io.kvasir.host.EngineHost;
import io.kvasir.host.GenerateRequest;
import io.kvasir.host.Generator;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.NatsStore;
import io.kvasir.pipeline.publish.EngineEventPublisher;
import io.kvasir.registry.InstanceId;
import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.MemoryStore;

import org.junit.jupiter.api.Test;

import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;

/** The examples of docs/operations/engine-host.md, where a test compares them. */
class EngineHostExampleTest {
    private static List<String> answer(GenerateRequest request) {
        return List.of("Hello", " ", "you", String.valueOf(request.promptTokens().length));
    }

    private static void serve(EngineHost host) throws Exception {
        final HttpResponse<String> answer =
                Gateways.send(
                        HttpRequest.newBuilder(
                                        URI.create(
                                                "http://127.0.0.1:"
                                                        + host.port()
                                                        + "/v1/completions"))
                                .POST(HttpRequest.BodyPublishers.ofString("{\"prompt\":[1,2,3]}")));
        assertEquals(200, answer.statusCode());
        assertTrue(answer.body().contains("Hello you3"), answer.body());
    }

    @Test
    void anEngineIsServedAndRegistered() throws Exception {
        final int port = 0;
        final int cachedTokens = 0;
        final String eventsAddress = "tcp://127.0.0.1:0";
        final String replayAddress = "tcp://127.0.0.1:0";
        final MemoryStore store = new MemoryStore(Duration.ofSeconds(10));
        // example
        Generator generator =
                (request, out) -> {
                    out.prompt(request.promptTokens().length, cachedTokens);
                    for (String word : answer(request)) {
                        out.text(word, 1); // throws where the client has left: stop there
                    }
                    out.finish("stop");
                };
        try (EngineEventPublisher events =
                        new EngineEventPublisher(eventsAddress, replayAddress, "", 0, 16);
                EngineHost host =
                        EngineHost.of("my-model", generator)
                                .port(port)
                                .advertised(URI.create("http://10.0.0.7:8000"))
                                .cache(16, 10_000)
                                .register(
                                        store,
                                        new InstanceId("prod", "backend", "generate", "w1"),
                                        r -> r.events("tcp://10.0.0.7:5557", "tcp://10.0.0.7:5558"))
                                .start()) {
            events.publishAllCleared(); // and each change of the cache from here on
            serve(host);
        }
        // example ends
    }

    @Test
    void theStoreIsNats() {
        // example
        LeasedStore store =
                new NatsStore(
                        NatsAccess.of("nats://nats:4222"),
                        NatsStore.BUCKET,
                        Duration.ofSeconds(10));
        // example ends
        assertEquals("nats", store.kind());
        store.close();
    }
}

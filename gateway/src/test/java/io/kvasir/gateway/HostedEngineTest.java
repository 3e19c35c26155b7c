package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.host.EngineHost;
import io.kvasir.host.GenerateRequest;
import io.kvasir.host.Output;
import io.kvasir.pipeline.publish.EngineEventPublisher;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.stream.IntStream;

/** The gateway in front of engines that authors have written in Java. */
class HostedEngineTest {
    private static final int BLOCK = 16;

    /** Remembers each prompt's blocks and publishes them; answers with its own name. */
    private static final class Author implements AutoCloseable {
        private final String name;
        private final EngineEventPublisher events;
        private final EngineHost host;
        private final Set<Long> held = new HashSet<>(); // guarded by this

        private final int rank; // in its events

        Author(String name, int rank) throws IOException {
            this.name = name;
            this.rank = rank;
            events =
                    new EngineEventPublisher(
                            "tcp://127.0.0.1:0", "tcp://127.0.0.1:0", "", rank, BLOCK);
            host =
                    EngineHost.of("m", this::generate)
                            .host("127.0.0.1")
                            .port(0)
                            .cache(BLOCK, 1000)
                            .start();
        }

        private synchronized void generate(GenerateRequest request, Output output)
                throws IOException {
            final int[] prompt = request.promptTokens();
            int cached = 0;
            Long parent = null;
            for (int end = BLOCK; end <= prompt.length; end += BLOCK) {
                final long hash = Arrays.hashCode(Arrays.copyOf(prompt, end));
                if (held.add(hash)) {
                    events.publishStored(
                            Arrays.copyOfRange(prompt, end - BLOCK, end),
                            new long[] {hash},
                            parent,
                            null);
                } else {
                    cached += BLOCK;
                }
                parent = hash;
            }
            output.prompt(prompt.length, cached);
            output.text(name, 1);
        }

        WorkerConfig worker() {
            return WorkerConfig.parse(
                    "http://127.0.0.1:"
                            + host.port()
                            + ",name="
                            + name
                            + ",events="
                            + events.endpoint()
                            + ",replay="
                            + events.replayEndpoint()
                            + ",event-rank="
                            + rank);
        }

        @Override
        public void close() {
            host.close();
            events.close();
        }
    }

    private static String body(int first, int tokens, boolean stream) {
        return "{\"prompt\":"
                + Arrays.toString(IntStream.range(first, first + tokens).toArray())
                + ",\"stream\":"
                + stream
                + "}";
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 3}) // a server of one rank of several has that rank in its events
    void aPromptIsSentToTheEngineThatHoldsItsPrefixAndThePredictionIsItsOwnCount(int rank)
            throws Exception {
        try (Author one = new Author("one", 0);
                Author two = new Author("two", rank);
                GatewayServer gateway =
                        GatewayServer.start(Gateways.config(one.worker(), two.worker()).build())) {
            Gateways.awaitContact(gateway);
            for (int prompt = 0; prompt < 8; prompt++) {
                final int first = 1000 * prompt;
                final HttpResponse<String> cold =
                        Gateways.post(gateway, "/v1/completions", body(first, 64, false));
                assertEquals(200, cold.statusCode(), cold.body());
                final long blocks = 4L * (prompt + 1);
                Eventually.holds(
                        "the events are in the index",
                        () -> gateway.router().index().blocks() == blocks);
                Eventually.holds( // else its load may outweigh what it holds
                        "the first one's booking is released",
                        () -> gateway.router().activeLeases() == 0);
                Eventually.holds(
                        "and taken off", () -> gateway.router().bookingPipeline().backlog() == 0);
                final HttpResponse<String> warm =
                        Gateways.post(gateway, "/v1/completions", body(first, 70, true));
                assertEquals(
                        GatewayHttpTest.header(cold, "x-kvasir-worker"),
                        GatewayHttpTest.header(warm, "x-kvasir-worker"));
                assertTrue(warm.body().endsWith("data: [DONE]\n\n"), warm.body());
                final JsonNode decision =
                        GatewayHttpTest.json(Gateways.get(gateway, "/debug/decisions?limit=1"))
                                .at("/decisions/0");
                assertEquals(64, decision.get("predicted_cached_tokens").intValue());
            }
        }
    }
}

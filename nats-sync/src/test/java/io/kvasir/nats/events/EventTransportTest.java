package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.abort;

import io.kvasir.nats.NatsAccess;
import io.kvasir.pipeline.publish.EngineEventPublisher;
import io.kvasir.pipeline.publish.KvEventPublisher;
import io.kvasir.pipeline.publish.ZmqKvEventPublisher;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.pipeline.source.ZmqConfig;
import io.kvasir.testsupport.NatsServer;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

@Tag("integration") // starts a server
class EventTransportTest {
    @TempDir static Path folder;

    private static NatsServer server;

    private final ObservedPlane observed = new ObservedPlane();
    private final EventSubjects names =
            EventSubjects.kvEvents("ns" + System.nanoTime(), "backend", "generate");

    @BeforeAll
    static void startServer() throws InterruptedException {
        try {
            server = NatsServer.in(NatsServer.program(), folder);
            server.start();
        } catch (IOException e) {
            abort("skipped: no NATS: " + e.getMessage());
        }
    }

    @AfterAll
    static void stopServer() throws InterruptedException {
        if (server != null) {
            server.stop();
        }
    }

    @AfterEach
    void closePlane() {
        observed.close();
    }

    private NatsAccess access() {
        return NatsAccess.of(server.url());
    }

    private KvEventPublisher stream(boolean oldSubject) throws IOException {
        return new KvEventPublisher(
                ObservedPlane.WORKER,
                0,
                4,
                new JetStreamEventTransport(access(), names, oldSubject));
    }

    private static int[] tokens(int blocks) {
        return new int[4 * blocks];
    }

    @Test
    void whatIsPublishedOverCoreNatsIsRead() throws Exception {
        final NatsEventSource source = new NatsEventSource(access(), names, observed.plane);
        observed.await(() -> observed.plane.status().unconnected().isEmpty(), "connection");
        try (KvEventPublisher publisher =
                new KvEventPublisher(
                        ObservedPlane.WORKER, 0, 4, new NatsEventTransport(access(), names))) {
            publisher.publishStored(tokens(3), new long[] {1, 2, 3}, null);
            publisher.publishRemoved(3);
            observed.await(() -> observed.stream.status().lastSequence() == 2, "both");
            assertEquals(List.of(1L, 2L), observed.held());
            observed.await(IndexState.EXACT);
        }
        source.close();
    }

    @Test
    void whatIsPublishedToTheStreamIsReadUnderBothSubjects() throws Exception {
        for (boolean old : new boolean[] {true, false}) {
            try (ObservedPlane reader = new ObservedPlane();
                    KvEventPublisher publisher = stream(old)) {
                publisher.publishAllCleared(); // also ends what the round before has left
                publisher.publishStored(tokens(2), new long[] {old ? 1 : 11, old ? 2 : 12}, null);
                final JetStreamEventSource source =
                        new JetStreamEventSource(access(), names, null, reader.plane);
                final List<Long> expected = old ? List.of(1L, 2L) : List.of(11L, 12L);
                reader.await(() -> reader.held().equals(expected), "its blocks");
                source.close();
            }
        }
    }

    @Test
    void aServerThatIsAwayRefusesWhatIsPublished() throws Exception {
        try (KvEventPublisher core =
                        new KvEventPublisher(8, 0, 4, new NatsEventTransport(access(), names));
                KvEventPublisher kept = stream(false)) {
            kept.publishAllCleared();
            server.stop();
            observed.await(
                    () -> {
                        try {
                            core.publishRemoved(1);
                            return false; // the client has not noticed yet
                        } catch (IOException e) {
                            return true;
                        }
                    },
                    "a refusal");
            assertThrows(IOException.class, () -> kept.publishRemoved(1));
            server.start();
            observed.await(
                    () -> {
                        try {
                            kept.publishRemoved(1);
                            return true;
                        } catch (IOException e) {
                            return false;
                        }
                    },
                    "the server again");
        }
    }

    @Test
    void aRelayCarriesAnEnginesEventsToTheIndexOfARouter() throws Exception {
        final JetStreamEventSource source =
                new JetStreamEventSource(access(), names, null, observed.plane);
        try (EngineEventPublisher engine =
                        new EngineEventPublisher(
                                "tcp://127.0.0.1:0", "tcp://127.0.0.1:0", "", 0, 4);
                ZmqKvEventPublisher relay =
                        new ZmqKvEventPublisher(
                                SourceConfig.of("e", 0, 4, engine.endpoint())
                                        .withReplayEndpoint(engine.replayEndpoint()),
                                ZmqConfig.defaults(),
                                ObservedPlane.WORKER,
                                new JetStreamEventTransport(access(), names, false))) {
            engine.publishStored(tokens(2), new long[] {1, 2}, null, null);
            engine.publishStored(tokens(1), new long[] {3}, 2L, null);
            engine.publishRemoved(3);
            observed.await(() -> observed.held().equals(List.of(1L, 2L)), "the engine's blocks");
            observed.await(IndexState.EXACT);
            observed.await(() -> relay.status().state() == IndexState.EXACT, "the relay");
            assertEquals(3, relay.publishedEvents());
        } finally {
            source.close();
        }
    }
}

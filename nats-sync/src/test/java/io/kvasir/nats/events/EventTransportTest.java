package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.core.index.CopyRule;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.Patient;
import io.kvasir.pipeline.publish.EngineEventPublisher;
import io.kvasir.pipeline.publish.KvEventPublisher;
import io.kvasir.pipeline.publish.ZmqKvEventPublisher;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.pipeline.source.ZmqConfig;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.testsupport.RunningNats;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import java.io.IOException;
import java.util.List;

@Tag("integration") // starts a server
class EventTransportTest {
    @RegisterExtension static final RunningNats NATS = new RunningNats();

    private final ObservedPlane observed = new ObservedPlane();
    private final EventSubjects names =
            EventSubjects.kvEvents("ns" + System.nanoTime(), "backend", "generate");

    @AfterEach
    void closePlane() {
        observed.close();
    }

    private NatsAccess access() {
        return Patient.access(NATS.url());
    }

    private KvEventPublisher stream(StreamForm form) throws IOException {
        return stream(access(), form);
    }

    private KvEventPublisher stream(NatsAccess access, StreamForm form) throws IOException {
        return new KvEventPublisher(
                ObservedPlane.WORKER, 0, 4, new JetStreamEventTransport(access, names, form));
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
    void whatIsPublishedToTheStreamIsReadInEveryForm() throws Exception {
        long name = 0;
        for (StreamForm form : StreamForm.values()) {
            try (ObservedPlane reader = new ObservedPlane();
                    KvEventPublisher publisher = stream(form)) {
                name += 10;
                publisher.publishAllCleared(); // also ends what the round before has left
                publisher.publishStored(tokens(2), new long[] {name + 1, name + 2}, null);
                final JetStreamEventSource source =
                        new JetStreamEventSource(access(), names, null, reader.plane);
                final List<Long> expected = List.of(name + 1, name + 2);
                reader.await(() -> reader.held().equals(expected), "its blocks");
                source.close();
            }
        }
    }

    @Test
    void whatIsPublishedTogetherIsOneMessageInAnEnvelopeAndKnownWhenItComesAgain()
            throws Exception {
        final KvBatch batch = new KvBatch();
        batch.reset(0, 0, CopyRule.LAST_COPY, false, ApplyListener.NONE);
        for (long name = 1; name <= 100; name++) {
            batch.addStored(true, 0, new long[] {name}, new long[] {1_000 + name}, 1);
        }
        try (JetStreamEventTransport transport =
                new JetStreamEventTransport(access(), names, StreamForm.ENVELOPES)) {
            transport.publish(ObservedPlane.WORKER, 0, 1, batch);
            transport.publish(ObservedPlane.WORKER, 0, 1, batch); // the answer was lost
        }
        final JetStreamEventSource source =
                new JetStreamEventSource(access(), names, null, observed.plane);
        observed.await(() -> observed.held().size() == 100, "all of them");
        observed.await(IndexState.EXACT);
        assertEquals(2, observed.plane.status().messages());
        assertEquals(100, observed.stream.status().duplicates());
        assertEquals(0, observed.stream.status().restarts());
        source.close();
    }

    @Test
    void aServerThatIsAwayRefusesWhatIsPublished() throws Exception {
        try (KvEventPublisher core =
                        new KvEventPublisher(8, 0, 4, new NatsEventTransport(access(), names));
                KvEventPublisher kept = hasty()) {
            observed.await(() -> isTaken(kept), "the first event");
            NATS.server().stop();
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
            NATS.server().start();
            observed.await(() -> isTaken(kept), "the server again");
        }
    }

    private static boolean isTaken(KvEventPublisher publisher) {
        try {
            publisher.publishRemoved(1);
            return true;
        } catch (IOException e) {
            return false;
        }
    }

    /** One that does not wait long for a server that is away. */
    private KvEventPublisher hasty() {
        final KvEventPublisher[] made = new KvEventPublisher[1];
        observed.await(
                () -> {
                    try {
                        made[0] = stream(NatsAccess.of(NATS.url()), StreamForm.EVENTS);
                        return true;
                    } catch (IOException e) {
                        return false; // a slow machine
                    }
                },
                "connection");
        return made[0];
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
                                new JetStreamEventTransport(access(), names, StreamForm.EVENTS))) {
            engine.publishStored(tokens(2), new long[] {1, 2}, null, null);
            engine.publishStored(tokens(1), new long[] {3}, 2L, null);
            engine.publishRemoved(3);
            observed.await(() -> observed.held().equals(List.of(1L, 2L)), "the engine's blocks");
            observed.await(IndexState.EXACT);
            observed.await(() -> relay.status().state() == IndexState.EXACT, "the relay");
            assertEquals(4, relay.publishedEvents(), "a clear before them");
        } finally {
            source.close();
        }
    }
}

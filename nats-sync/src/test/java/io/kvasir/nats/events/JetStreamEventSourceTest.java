package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.abort;

import io.kvasir.nats.NatsAccess;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.testsupport.NatsServer;
import io.nats.client.Connection;
import io.nats.client.JetStream;
import io.nats.client.JetStreamApiException;
import io.nats.client.JetStreamManagement;
import io.nats.client.Nats;
import io.nats.client.api.ConsumerInfo;
import io.nats.client.api.StreamConfiguration;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;

@Tag("integration") // starts a server
class JetStreamEventSourceTest {
    @TempDir static Path folder;

    private static NatsServer server;

    private final ObservedPlane observed = new ObservedPlane();
    private final List<JetStreamEventSource> opened = new ArrayList<>();
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
        opened.forEach(JetStreamEventSource::close);
        observed.close();
    }

    private JetStreamEventSource closing(JetStreamEventSource source) {
        opened.add(source);
        return source;
    }

    private Connection connection;
    private JetStream stream;
    private JetStreamManagement management;

    @BeforeEach
    void connect() throws Exception {
        connection = Nats.connect(server.url());
        stream = connection.jetStream();
        management = connection.jetStreamManagement();
    }

    @AfterEach
    void disconnect() throws InterruptedException {
        connection.close();
    }

    private JetStreamEventSource source(String durable, ObservedPlane into) {
        final JetStreamEventSource source =
                closing(
                        new JetStreamEventSource(
                                NatsAccess.of(server.url()), names, durable, into.plane));
        into.await(() -> into.plane.status().unconnected().isEmpty(), "stream");
        return source;
    }

    private void publish(long id) throws Exception {
        stream.publish(names.streamSubject(), Events.json(id, Events.store(id)));
    }

    /** Whether the server has taken an event; once more is no harm: its number is known then. */
    private boolean isPublished(long id) {
        try {
            stream.publish(names.streamSubject(), Events.json(id, Events.store(id)));
            return true;
        } catch (IOException | JetStreamApiException e) {
            return false;
        }
    }

    private long acknowledged(String durable) {
        try {
            final ConsumerInfo info = management.getConsumerInfo(names.stream(), durable);
            return info.getAckFloor().getStreamSequence();
        } catch (IOException | JetStreamApiException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void theStreamIsMadeAsOldRoutersMakeItAndBothSubjectsAreRead() throws Exception {
        source(null, observed);
        final StreamConfiguration made =
                management.getStreamInfo(names.stream()).getConfiguration();
        assertEquals(Duration.ofHours(1), made.getMaxAge());
        assertEquals(List.of(names.streamSubjects()), made.getSubjects());
        stream.publish(names.oldStreamSubject(), Events.json(1, Events.store(1)));
        stream.publish(names.streamSubject(), Events.json(2, Events.store(2)));
        observed.await(() -> observed.held().equals(List.of(1L, 2L)), "both");
        observed.await(IndexState.EXACT);
    }

    @Test
    void whatWasPublishedBeforeIsReadFromTheBeginning() throws Exception {
        EventStreams.open(management, names);
        for (int i = 1; i <= 500; i++) {
            publish(i);
        }
        source(null, observed);
        observed.await(IndexState.EXACT);
        assertEquals(500, observed.held().size());
    }

    @Test
    void aMessageIsAcknowledgedAfterItIsInTheIndexAndNotBefore() throws Exception {
        source("replica-1", observed);
        observed.hold();
        publish(1);
        observed.await(() -> observed.waiting() == 1, "the event before the index");
        for (int i = 0; i < 200; i++) { // each a request: an early acknowledgement would be there
            assertEquals(0, acknowledged("replica-1"));
        }
        observed.release();
        observed.await(() -> acknowledged("replica-1") == 1, "the acknowledgement");
    }

    @Test
    void aConsumerOfTheSameNameGoesOnBehindWhatTheIndexHad() throws Exception {
        final JetStreamEventSource first = source("replica-2", observed);
        publish(1);
        publish(2);
        observed.await(() -> acknowledged("replica-2") == 2, "acknowledgements");
        observed.hold();
        publish(3);
        observed.await(() -> observed.waiting() == 1, "an event that is not applied");
        first.close();
        publish(4);
        final ObservedPlane next = new ObservedPlane();
        source("replica-2", next);
        next.await(() -> next.held().equals(List.of(3L, 4L)), "what was not applied");
        assertEquals(IndexState.DEGRADED, next.stream.state(), "this index is new");
        opened.forEach(JetStreamEventSource::close);
        next.close();
    }

    @Test
    void aNewConsumerGoesWithItsSource() throws Exception {
        final String durable;
        final JetStreamEventSource source = source(null, observed);
        durable = source.durable();
        publish(1);
        observed.await(IndexState.EXACT);
        source.close();
        assertThrows(
                JetStreamApiException.class,
                () -> management.getConsumerInfo(names.stream(), durable));
    }

    @Test
    void nothingIsMissedWhileTheServerIsAway() throws Exception {
        source("replica-3", observed);
        publish(1);
        observed.await(() -> observed.held().equals(List.of(1L)), "block 1");
        server.stop();
        observed.await(IndexState.STALE);
        server.start();
        observed.await(() -> isPublished(2), "the stream's server");
        observed.await(() -> observed.held().equals(List.of(1L, 2L)), "block 2");
        observed.await(IndexState.EXACT);
        assertEquals(0, observed.stream.status().restarts());
    }

    @Test
    void aConsumerThatIsDeletedIsMadeAgainWhereItWas() throws Exception {
        source("replica-4", observed);
        for (int i = 1; i <= 300; i++) {
            publish(i);
        }
        observed.await(() -> observed.held().size() == 300, "all");
        management.deleteConsumer(names.stream(), "replica-4");
        publish(301);
        observed.await(() -> observed.held().size() == 301, "what came after");
        assertEquals(300 + 1, observed.stream.status().messages());
        assertEquals(0, observed.stream.status().restarts());
    }

    @Test
    void aStreamThatIsMadeAnewIsReadFromItsBeginning() throws Exception {
        source("replica-5", observed);
        publish(1);
        observed.await(IndexState.EXACT);
        management.deleteStream(names.stream());
        observed.await(() -> isPublished(2), "the stream again");
        observed.await(() -> observed.held().equals(List.of(1L, 2L)), "block 2");
        observed.await(IndexState.EXACT);
    }

    @Test
    void manyEventsArriveAndAllAreAcknowledged() throws Exception {
        final int events = 5_000;
        source("replica-6", observed);
        for (int i = 1; i <= events; i++) {
            connection.publish(names.streamSubject(), Events.json(i, Events.store(i)));
        }
        observed.await(() -> acknowledged("replica-6") == events, "acknowledgements");
        assertEquals(LongStream.rangeClosed(1, events).boxed().toList(), observed.held());
        observed.await(IndexState.EXACT);
    }
}

package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nats.ConnectPause;
import io.kvasir.nats.Patient;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.RunningNats;
import io.nats.client.Connection;
import io.nats.client.FetchConsumeOptions;
import io.nats.client.FetchConsumer;
import io.nats.client.JetStream;
import io.nats.client.JetStreamApiException;
import io.nats.client.JetStreamManagement;
import io.nats.client.PurgeOptions;
import io.nats.client.api.AckPolicy;
import io.nats.client.api.ConsumerConfiguration;
import io.nats.client.api.ConsumerInfo;
import io.nats.client.api.DiscardPolicy;
import io.nats.client.api.Mirror;
import io.nats.client.api.RetentionPolicy;
import io.nats.client.api.StreamConfiguration;
import io.nats.client.api.StreamInfo;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;

@Tag("integration") // starts a server
class JetStreamEventSourceTest {
    private static final long AGAIN_NS = TimeUnit.SECONDS.toNanos(2);

    @RegisterExtension static final RunningNats NATS = new RunningNats();

    private final ObservedPlane observed = new ObservedPlane();
    private final List<JetStreamEventSource> opened = new ArrayList<>();
    private final EventSubjects names =
            EventSubjects.kvEvents("ns" + System.nanoTime(), "backend", "generate");

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
        connection = Patient.connect(NATS.url());
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
                                Patient.access(NATS.url()), names, durable, into.plane));
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
    void pausesBeginAnewOnceAllHasBeenRead() throws Exception {
        final BlockingQueue<Long> pauses = new LinkedBlockingQueue<>();
        final JetStreamEventSource source =
                closing(
                        new JetStreamEventSource(
                                Patient.access(NATS.url()),
                                names,
                                1,
                                null,
                                observed.plane,
                                null,
                                new ConnectPause(pauses::add)));
        for (int i = 0; i < 4; i++) {
            observed.await(() -> observed.plane.status().unconnected().isEmpty(), "stream");
            management.deleteConsumer(names.stream(), source.durable());
            assertTrue(pauses.take() <= 250_000_000L);
        }
    }

    @Test
    void aConsumerOrAStreamThatIsDeletedIsSaidInWords() {
        source("mine", observed);
        for (String deleted : List.of("consumer", "stream")) {
            final List<String> said = new ArrayList<>();
            final long[] deletedNs = {System.nanoTime() - AGAIN_NS};
            observed.await(
                    () -> {
                        final String now = observed.plane.status().unconnected();
                        if (!now.isEmpty()) {
                            said.add(now);
                        } else if (System.nanoTime() - deletedNs[0] >= AGAIN_NS) {
                            delete(deleted); // again where it was not seen
                            deletedNs[0] = System.nanoTime();
                        }
                        return now.contains("deleted") || now.contains("Deleted");
                    },
                    "the words");
            final String text = said.getLast();
            assertTrue(text.contains("consumer mine of stream " + names.stream()), text);
            assertTrue(said.stream().noneMatch(t -> t.contains("Exception")), said::toString);
            observed.await(() -> observed.plane.status().unconnected().isEmpty(), "again");
        }
    }

    private void delete(String what) {
        try {
            if (what.equals("stream")) {
                management.deleteStream(names.stream());
            } else {
                management.deleteConsumer(names.stream(), "mine");
            }
        } catch (IOException | JetStreamApiException e) {
            assertFalse(String.valueOf(e.getMessage()).isEmpty(), "not there at this moment");
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "subjects | does not take",
                "mirror | a mirror of src",
                "work-queue | retention is work-queue",
                "interest | retention is interest",
                "one-each | 1 message of a subject"
            })
    void aStreamThatOthersMadeForSomethingElseIsAProblem(String what, String why) throws Exception {
        management.addStream(StreamConfiguration.builder().name("src").subjects("src.>").build());
        management.addStream(unfit(what));
        closing(new JetStreamEventSource(Patient.access(NATS.url()), names, null, observed.plane));
        observed.await(() -> observed.plane.status().problem().contains(why), why);
        final String problem = observed.plane.status().problem();
        assertTrue(problem.contains("stream " + names.stream()), problem);
        try (JetStreamEventTransport transport =
                new JetStreamEventTransport(Patient.access(NATS.url()), names, StreamForm.EVENTS)) {
            assertEquals(problem, transport.problem());
        }
        management.deleteStream(names.stream());
        observed.await(() -> observed.plane.status().problem().isEmpty(), "a right one");
    }

    /** An idle gateway would believe for ever that it has all. */
    @ParameterizedTest
    @ValueSource(strings = {"subjects", "max_bytes", "max_msgs"})
    void aStreamThatNoLongerTakesEventsUnderARunningGatewayIsSaid(String what) throws Exception {
        source(null, observed);
        publish(1);
        publish(2);
        observed.await(IndexState.EXACT);
        final StreamInfo before = management.getStreamInfo(names.stream());
        final StreamConfiguration.Builder edited =
                StreamConfiguration.builder(before.getConfiguration());
        switch (what) {
            case "subjects" -> edited.subjects("other." + names.stream());
            case "max_bytes" ->
                    edited.discardPolicy(DiscardPolicy.New)
                            .maxBytes(before.getStreamState().getByteCount() + 1);
            default -> edited.discardPolicy(DiscardPolicy.New).maxMessages(2);
        }
        management.updateStream(edited.build());
        observed.await(
                () -> observed.plane.status().problem().contains("stream " + names.stream()),
                "the problem");
        observed.await(IndexState.STALE);
        assertFalse(isPublished(3));
        management.updateStream(before.getConfiguration());
        observed.await(() -> observed.plane.status().problem().isEmpty(), "its end");
        assertEquals(IndexState.STALE, observed.stream.state());
        publish(3);
        observed.await(IndexState.EXACT);
    }

    private StreamConfiguration unfit(String what) {
        final StreamConfiguration.Builder made = StreamConfiguration.builder().name(names.stream());
        return switch (what) {
            case "subjects" -> made.subjects("other.>").build();
            case "mirror" -> made.mirror(Mirror.builder().sourceName("src").build()).build();
            case "work-queue" ->
                    made.subjects(names.streamSubjects())
                            .retentionPolicy(RetentionPolicy.WorkQueue)
                            .build();
            case "interest" ->
                    made.subjects(names.streamSubjects())
                            .retentionPolicy(RetentionPolicy.Interest)
                            .build();
            default -> made.subjects(names.streamSubjects()).maxMessagesPerSubject(1).build();
        };
    }

    @ParameterizedTest
    @ValueSource(strings = {">", "S.*", "S.>", "*.kv-events", "S.kv-events"})
    void aStreamThatTakesTheEventsIsNone(String subject) {
        final String subjects = subject.replace("S", names.stream());
        assertEquals(
                "",
                StreamFitness.problem(
                        StreamConfiguration.builder()
                                .name(names.stream())
                                .subjects("a.b", subjects)
                                .maxMessagesPerSubject(100_000)
                                .build(),
                        names,
                        List.of(names.streamSubject())));
    }

    /** Publishers up to 0.7 have a subject of their own; a reader cannot know which there are. */
    @ParameterizedTest
    @CsvSource({"queue, OLD_EVENTS, EVENTS", "kv-events, EVENTS, OLD_EVENTS"})
    void aStreamOfOneOfBothSubjectsIsNoneButToPublishersOfTheOther(
            String subject, StreamForm fit, StreamForm unfit) throws Exception {
        management.addStream(
                StreamConfiguration.builder()
                        .name(names.stream())
                        .subjects(names.stream() + "." + subject)
                        .build());
        try (JetStreamEventTransport taken = transport(fit);
                JetStreamEventTransport refused = transport(unfit)) {
            assertEquals("", taken.problem());
            assertTrue(refused.problem().contains("does not take"), refused.problem());
        }
        stream.publish(names.stream() + "." + subject, Events.json(1, Events.store(1)));
        source(null, observed);
        observed.await(() -> observed.held().equals(List.of(1L)), "the event");
        assertEquals("", observed.plane.status().problem());
    }

    private JetStreamEventTransport transport(StreamForm form) throws IOException {
        return new JetStreamEventTransport(Patient.access(NATS.url()), names, form);
    }

    @Test
    void whatWasPublishedBeforeIsReadFromTheBeginning() throws Exception {
        EventStreams.open(management, names, 1);
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
        NATS.server().stop();
        observed.await(IndexState.STALE);
        NATS.server().start();
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
    void firstDeliveriesThatNeverArriveAreReadAgain() throws Exception {
        EventStreams.open(management, names, EventStreams.ONE_SERVER);
        management.addOrUpdateConsumer(
                names.stream(),
                ConsumerConfiguration.builder()
                        .durable("replica-7")
                        .ackPolicy(AckPolicy.Explicit)
                        .build());
        final FetchConsumer lost =
                connection
                        .getStreamContext(names.stream())
                        .getConsumerContext("replica-7")
                        .fetch(FetchConsumeOptions.builder().maxMessages(1).build());
        connection.flush(Duration.ofSeconds(10)); // it has asked first
        source("replica-7", observed);
        publish(1);
        publish(2);
        assertEquals(1, lost.nextMessage().metaData().consumerSequence());
        observed.await(() -> observed.held().equals(List.of(1L, 2L)), "both");
        observed.await(IndexState.EXACT);
    }

    @Test
    void whatAStreamThatIsMadeAnewMayLackIsMissedUntilTheNextNumber() throws Exception {
        source("replica-8", observed);
        publish(1);
        observed.await(IndexState.EXACT);
        management.deleteStream(names.stream());
        observed.await(
                () -> observed.stream.status().problem().contains("was made anew"), "the cause");
        observed.await(() -> observed.plane.status().isConnected(), "all is read");
        assertEquals(IndexState.STALE, observed.stream.state());
        publish(3);
        observed.await(IndexState.DEGRADED);
    }

    @Test
    void whatIsDroppedBeforeItWasReadIsMissedUntilTheNextNumber() throws Exception {
        final int atOnce = 100; // more than the client asks for
        observed.registerOther();
        source(null, observed);
        publish(1);
        publishOther(1);
        observed.await(() -> observed.other.state() == IndexState.EXACT, "the other worker");
        synchronized (observed) { // its index takes nothing
            for (int id = 2; id < 2 + atOnce; id++) {
                publish(id);
            }
            publishOther(2);
            final long last =
                    management.getStreamInfo(names.stream()).getStreamState().getLastSequence();
            management.purgeStream(
                    names.stream(), PurgeOptions.builder().sequence(last + 1).build());
            publish(2 + atOnce);
        }
        observed.await(
                () -> observed.stream.status().lastSequence() == 2 + atOnce, "what is there still");
        observed.await(() -> observed.other.state() == IndexState.STALE, "the other one's doubt");
        publishOther(3);
        observed.await(() -> observed.other.state() == IndexState.DEGRADED, "what its number says");
    }

    @Test
    void aMessageThatComesAgainIsNoGapForTheNextOne() throws Exception {
        final int before = 20;
        observed.registerOther();
        final JetStreamEventSource source = source("slow", observed);
        publishOther(1);
        publish(1);
        observed.await(() -> observed.other.state() == IndexState.EXACT, "the other worker");
        observed.await(IndexState.EXACT);
        synchronized (observed) { // its index takes nothing, so nothing is acknowledged
            for (int id = 2; id < before; id++) {
                publish(id);
            }
            Eventually.holds("delivered", () -> delivered(source) == before);
            connection.publish( // as after the time that an acknowledgement may take
                    String.format("$JS.ACK.%s.%s.1.3.3.0.0", names.stream(), source.durable()),
                    "-NAK".getBytes(StandardCharsets.US_ASCII));
            Eventually.holds("delivered again", () -> delivered(source) == before + 1);
        }
        publish(before);
        observed.await(() -> observed.stream.status().lastSequence() == before, "the next one");
        assertEquals(IndexState.EXACT, observed.other.state());
        assertEquals(IndexState.EXACT, observed.stream.state());
    }

    private long delivered(JetStreamEventSource source) {
        try {
            return management
                    .getConsumerInfo(names.stream(), source.durable())
                    .getDelivered()
                    .getConsumerSequence();
        } catch (IOException | JetStreamApiException e) {
            throw new AssertionError(e);
        }
    }

    private void publishOther(long id) throws Exception {
        stream.publish(
                names.streamSubject(),
                Events.json(Events.OTHER_WORKER, id, Events.store(1_000 + id)));
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
    void aWorkerThatIsRegisteredAfterItHasSpokenGetsAllThatItSaid() throws Exception {
        final JetStreamEventSource source = source(null, observed);
        for (int i = 1; i <= 300; i++) {
            publish(i);
            stream.publish(
                    names.streamSubject(), Events.json(Events.OTHER_WORKER, i, Events.store(i)));
        }
        observed.await(() -> observed.plane.status().unknownEvents() == 300, "the unknown one's");
        observed.registerOther();
        observed.await(() -> observed.other.state() == IndexState.EXACT, "the other worker");
        observed.await(() -> observed.held().size() == 600, "the blocks of both");
        observed.await(() -> observed.plane.status().redelivered() == 600, "all of it again");
        assertEquals(300, observed.stream.status().messages(), "the first one has got it once");
        assertEquals(300, observed.plane.status().unknownEvents());
        observed.await(() -> acknowledged(source.durable()) == 600, "acknowledgements");
        publish(301);
        observed.await(() -> observed.held().size() == 601, "what follows");
        observed.await(IndexState.EXACT); // it was stale if reading all again took long
    }

    @Test
    void whileMuchIsReadAgainTheOtherWorkersAreStale() throws Exception {
        source(null, observed);
        publish(1);
        stream.publish(names.streamSubject(), Events.json(Events.OTHER_WORKER, 1, Events.store(1)));
        observed.await(() -> observed.plane.status().unknownEvents() == 1, "the unknown one's");
        observed.await(IndexState.EXACT);
        observed.hold(); // reading takes as long as the index does
        observed.registerOther();
        observed.await(() -> observed.waiting() == 1, "the other worker's event");
        observed.await(IndexState.STALE);
        observed.release();
        observed.await(IndexState.EXACT);
        observed.await(() -> observed.other.state() == IndexState.EXACT, "the other worker");
    }

    @Test
    void aWorkerThatBeginsAnewWithTheSameEventsIsKnownByItsPublisher() throws Exception {
        source(null, observed);
        final EventSubjects same = names;
        for (int life = 0; life < 2; life++) {
            try (JetStreamEventTransport transport =
                    new JetStreamEventTransport(
                            Patient.access(NATS.url()), same, StreamForm.EVENTS)) {
                transport.publish(ObservedPlane.WORKER, 0, 1, Events.store(1)); // a system prompt
                transport.publish(ObservedPlane.WORKER, 0, 2, Events.store(10 + life));
            }
        }
        observed.await(() -> observed.held().equals(List.of(1L, 11L)), "the second life alone");
        assertEquals(1, observed.stream.status().restarts());
        assertEquals(1, observed.plane.status().publisherChanges());
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

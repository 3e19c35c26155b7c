package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.nats.Patient;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.testsupport.RunningNats;
import io.nats.client.Connection;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;

@Tag("integration") // starts a server
class NatsEventSourceTest {
    @RegisterExtension static final RunningNats NATS = new RunningNats();

    private final ObservedPlane observed = new ObservedPlane();
    private final List<NatsEventSource> opened = new ArrayList<>();
    private final EventSubjects names =
            EventSubjects.kvEvents("ns" + System.nanoTime(), "backend", "generate");

    @AfterEach
    void closePlane() {
        opened.forEach(NatsEventSource::close);
        observed.close();
    }

    private NatsEventSource closing(NatsEventSource source) {
        opened.add(source);
        return source;
    }

    private NatsEventSource source() {
        final NatsEventSource source =
                closing(new NatsEventSource(Patient.access(NATS.url()), names, observed.plane));
        observed.await(() -> observed.plane.status().unconnected().isEmpty(), "connection");
        return source;
    }

    private void publish(String subject, byte[] body) throws Exception {
        final Connection connection = Patient.connect(NATS.url());
        try {
            connection.publish(subject, body);
            connection.flush(Duration.ofSeconds(60)); // closing drops what waits
        } finally {
            connection.close();
        }
    }

    @Test
    void envelopesOfAnEndpointAndEventsOfItsComponentReachTheIndex() throws Exception {
        source();
        publish(names.subject(), Events.envelope(5, 0, Events.store(1)));
        observed.await(() -> observed.held().equals(List.of(1L)), "block 1");
        publish(names.componentSubject(), Events.json(2, Events.store(2)));
        observed.await(() -> observed.held().equals(List.of(1L, 2L)), "block 2");
        observed.await(IndexState.EXACT);
    }

    @Test
    void aServerThatIsNotThereYetIsWaitedFor() throws Exception {
        NATS.server().stop();
        closing(new NatsEventSource(Patient.access(NATS.url()), names, observed.plane));
        observed.await(
                () -> observed.plane.status().unconnected().contains("127.0.0.1"), "refusal");
        assertEquals(IndexState.STALE, observed.stream.state());
        NATS.server().start();
        observed.await(() -> observed.plane.status().unconnected().isEmpty(), "connection");
        publish(names.subject(), Events.envelope(5, 0, Events.store(1)));
        observed.await(IndexState.EXACT);
    }

    @Test
    void aServerThatIsAwayMakesStaleUntilTheNextEventSaysWhatIsMissing() throws Exception {
        source();
        publish(names.subject(), Events.envelope(5, 0, Events.store(1)));
        observed.await(IndexState.EXACT);
        NATS.server().stop();
        observed.await(IndexState.STALE);
        NATS.server().start();
        observed.await(() -> observed.plane.status().unconnected().isEmpty(), "connection");
        observed.await(IndexState.STALE); // once nothing has answered for the worker
        publish(names.subject(), Events.envelope(5, 1, Events.store(2)));
        observed.await(IndexState.EXACT);

        NATS.server().stop();
        observed.await(IndexState.STALE);
        NATS.server().start();
        observed.await(() -> observed.plane.status().unconnected().isEmpty(), "connection");
        publish(names.subject(), Events.envelope(5, 9, Events.store(3)));
        observed.await(IndexState.DEGRADED);
        assertEquals(7, observed.stream.status().lostMessages());
        assertEquals(List.of(1L, 2L, 3L), observed.held());
    }

    @Test
    void manyEventsArriveInOrderAndNoneIsLost() throws Exception {
        final int events = 10_000;
        source();
        final Connection connection = Patient.connect(NATS.url());
        for (int i = 0; i < events; i++) {
            connection.publish(names.subject(), Events.envelope(5, i, Events.store(i)));
        }
        observed.await(() -> observed.stream.status().lastSequence() == events, "all events");
        assertEquals(LongStream.range(0, events).boxed().toList(), observed.held());
        observed.await(IndexState.EXACT);
        assertEquals(0, observed.stream.status().gaps());
    }
}

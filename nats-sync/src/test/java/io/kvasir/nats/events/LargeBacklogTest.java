package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.core.index.CopyRule;
import io.kvasir.nats.Patient;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.RunningNats;
import io.nats.client.Connection;
import io.nats.client.JetStreamApiException;
import io.nats.client.JetStreamManagement;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import java.io.IOException;
import java.util.Random;

/** A stream that keeps more than a client lets wait, in large messages, and an index that waits. */
@Tag("integration") // starts a server
class LargeBacklogTest {
    private static final int MESSAGES = 80; // more than 64 MiB together
    private static final int BLOCKS = 14_000;
    private static final int QUIET_CHECKS = 15;

    @RegisterExtension static final RunningNats NATS = new RunningNats();

    private final EventSubjects names = EventSubjects.kvEvents("ns", "backend", "generate");
    private long delivered;
    private int quietChecks;

    @Test
    void isReadOnceAndWhole() throws Exception {
        final Connection connection = Patient.connect(NATS.url());
        try (ObservedPlane observed = new ObservedPlane()) {
            final JetStreamManagement management = connection.jetStreamManagement();
            EventStreams.open(management, names, EventStreams.ONE_SERVER);
            final KvBatch large = large();
            for (int id = 1; id <= MESSAGES; id++) {
                connection.jetStream().publish(names.streamSubject(), Events.json(id, large));
            }
            final JetStreamEventSource source;
            synchronized (observed) { // its index takes nothing
                source =
                        new JetStreamEventSource(
                                Patient.access(NATS.url()), names, "d", observed.plane);
                Eventually.until("what is asked for arrives", () -> isQuiet(management));
            }
            observed.await(() -> observed.stream.status().lastSequence() == MESSAGES, "all");
            observed.await(IndexState.EXACT);
            assertEquals(
                    MESSAGES,
                    management
                            .getConsumerInfo(names.stream(), "d")
                            .getDelivered()
                            .getConsumerSequence(),
                    "deliveries of one consumer, which was not made again");
            assertEquals(BLOCKS, observed.held().size());
            source.close();
        } finally {
            connection.close();
        }
    }

    /** Whether the server delivers no more than it has. */
    private boolean isQuiet(JetStreamManagement management) throws IOException {
        long now;
        try {
            now =
                    management
                            .getConsumerInfo(names.stream(), "d")
                            .getDelivered()
                            .getStreamSequence();
        } catch (JetStreamApiException e) {
            now = 0; // not yet made
        }
        quietChecks = now > 0 && now == delivered ? quietChecks + 1 : 0;
        delivered = now;
        return quietChecks == QUIET_CHECKS;
    }

    private static KvBatch large() {
        final KvBatch batch = new KvBatch();
        batch.reset(0, 0, CopyRule.LAST_COPY, false, ApplyListener.NONE);
        final long[] blocks = new Random(1).longs(BLOCKS, 1, Long.MAX_VALUE).toArray();
        batch.addStored(true, 0, blocks, blocks, BLOCKS);
        return batch;
    }
}

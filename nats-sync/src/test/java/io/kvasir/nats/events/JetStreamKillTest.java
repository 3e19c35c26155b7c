package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.nats.Patient;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.EventPlane;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.RunningNats;
import io.kvasir.testsupport.Seeds;
import io.nats.client.Connection;
import io.nats.client.JetStream;
import io.nats.client.JetStreamApiException;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.LongStream;

/**
 * A reader with a durable consumer whose index outlives it, as one in a mapped file does: at each
 * kill the events that the index had are there, and those before it are not.
 */
@Tag("integration") // starts a server
class JetStreamKillTest {
    private static final int LIVES = 12;
    private static final int MOST_EVENTS = 300;
    private static final int SLOT = 1;
    private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(60);

    @RegisterExtension final RunningNats nats = new RunningNats();

    private final Random random = new Random(Seeds.next("JetStreamKillTest"));
    private final PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(4, 1 << 16, 1 << 16));
    private final IndexApplier applier = new IndexApplier(index);
    private final EventSubjects names = EventSubjects.kvEvents("ns", "backend", null);
    private Connection connection;
    private long published;

    @BeforeEach
    void connect() throws IOException, InterruptedException, JetStreamApiException {
        connection = Patient.connect(nats.url());
        EventStreams.open(connection.jetStreamManagement(), names, 1);
    }

    @AfterEach
    void disconnect() throws InterruptedException {
        if (connection != null) {
            connection.close();
        }
        index.close();
    }

    /** One life of the reader, until it is killed. */
    private final class Life {
        private final boolean early;
        private final Queue<KvBatch> ring = new ArrayDeque<>(); // guarded by this
        private final EventPlane plane = new EventPlane(EventPlane.KNOWN_ONLY);
        private final EngineStream stream =
                new EngineStream(SourceConfig.ofRouterEvents("w", SLOT, 4), this::offer);
        private final JetStreamEventSource source;
        private boolean killed; // guarded by this

        /**
         * @param early whether an event counts as applied when it is taken, so that it is
         *     acknowledged before the index has it
         */
        Life(boolean early) {
            this.early = early;
            plane.register(ObservedPlane.WORKER, 0, stream);
            source = new JetStreamEventSource(Patient.access(nats.url()), names, "reader", plane);
        }

        private synchronized boolean offer(KvBatch batch) {
            final KvBatch copy = new KvBatch();
            copy.copyFrom(batch);
            if (early) {
                batch.listener().applied(batch.operations());
            }
            return ring.add(copy);
        }

        /** Applies some of what waits, or all. */
        synchronized void apply(int most) {
            for (int i = 0; i < most && !ring.isEmpty() && !killed; i++) {
                if (early) {
                    store(ring.poll());
                } else {
                    assertTrue(applier.offer(ring.poll()));
                }
            }
        }

        /** Without word to the batch's stream, which has had it. */
        private void store(KvBatch batch) {
            for (int at = batch.first(); at >= 0; at = batch.next(at)) {
                final long[] engine = new long[batch.count(at)];
                final long[] local = new long[batch.count(at)];
                batch.engineHashes(at, engine);
                batch.localHashes(at, local);
                index.store(SLOT, true, 0, engine, local, engine.length, false);
            }
        }

        /** What is not applied now never is. */
        void kill() {
            synchronized (this) {
                killed = true;
                ring.clear();
            }
            source.close();
            stream.close();
        }
    }

    private void publish(int count) throws Exception {
        final JetStream stream = connection.jetStream();
        for (int i = 0; i < count; i++) {
            published++;
            stream.publish(names.streamSubject(), Events.json(published, Events.store(published)));
        }
    }

    /** Engine hashes that the index holds. */
    private List<Long> held() {
        final List<Long> held = new ArrayList<>();
        index.forEach((slot, engine, sequence, copies) -> held.add(engine));
        held.sort(null);
        return held;
    }

    private void liveAndDie(boolean early) throws Exception {
        for (int i = 0; i < LIVES; i++) {
            final Life life = new Life(early);
            for (int part = random.nextInt(4); part >= 0; part--) {
                publish(random.nextInt(MOST_EVENTS));
                Thread.sleep(random.nextInt(20)); // any moment will do
                life.apply(random.nextInt(2 * MOST_EVENTS));
            }
            if (early) {
                awaitAcknowledgedAndNotApplied(life);
            }
            life.kill();
        }
    }

    /** Whatever the moments were: an event is acknowledged, and will not be applied. */
    private void awaitAcknowledgedAndNotApplied(Life life) throws Exception {
        life.apply(Integer.MAX_VALUE);
        publish(1);
        Eventually.until("an acknowledgement", () -> isAcknowledged(published));
    }

    private boolean isAcknowledged(long message) throws IOException {
        try {
            return connection
                            .jetStreamManagement()
                            .getConsumerInfo(names.stream(), "reader")
                            .getAckFloor()
                            .getStreamSequence()
                    >= message;
        } catch (JetStreamApiException e) {
            return false; // the consumer is being made anew
        }
    }

    private List<Long> all() {
        return LongStream.rangeClosed(1, published).boxed().toList();
    }

    private boolean isReachedBy(Life life, BooleanSupplier condition) {
        final long since = System.nanoTime();
        while (!condition.getAsBoolean()) {
            life.apply(Integer.MAX_VALUE);
            if (System.nanoTime() - since > PATIENCE_NS) {
                return false;
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(5));
        }
        return true;
    }

    @Test
    void nothingIsLostHoweverOftenTheReaderIsKilled() throws Exception {
        liveAndDie(false);
        final Life last = new Life(false);
        final boolean whole = isReachedBy(last, () -> held().size() == published);
        last.kill();
        assertTrue(whole, () -> held().size() + " of " + published);
        assertEquals(all(), held());
    }

    @Test
    void acknowledgedBeforeItIsAppliedAnEventIsLost() throws Exception {
        liveAndDie(true);
        publish(1);
        final Life last = new Life(false);
        assertTrue(isReachedBy(last, () -> held().contains(published)), "the newest event");
        last.kill();
        assertTrue(held().size() < published, "the check is none: nothing was lost");
    }
}

package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.Patient;
import io.kvasir.pipeline.publish.KvEventPublisher;
import io.kvasir.pipeline.publish.LocalIndexer;
import io.kvasir.pipeline.publish.RouterEventTransport;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.testsupport.RunningNats;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.TcpProxy;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import java.io.IOException;
import java.net.URI;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Random;
import java.util.TreeSet;

/** Routers over a real server whose events are lost, and a publisher that remembers them. */
@Tag("integration") // starts a server
class RecoveryTest {
    private static final int BLOCK = 4;

    @RegisterExtension static final RunningNats NATS = new RunningNats();

    private final Deque<AutoCloseable> opened = new ArrayDeque<>();
    private final EventSubjects names =
            EventSubjects.kvEvents("ns" + System.nanoTime(), "backend", "generate");
    private final TreeSet<Long> truth = new TreeSet<>();
    private final Random random = new Random(Seeds.next("RecoveryTest"));
    private KvEventPublisher publisher;
    private LocalIndexer indexer;

    @AfterEach
    void closeAll() throws Exception {
        while (!opened.isEmpty()) {
            opened.pop().close();
        }
    }

    private <T extends AutoCloseable> T closing(T part) {
        opened.push(part);
        return part;
    }

    /** Loses some of what is published. */
    private final class LossyTransport implements RouterEventTransport {
        private final RouterEventTransport transport;
        private final int lossPercent;

        private LossyTransport(RouterEventTransport transport, int lossPercent) {
            this.transport = transport;
            this.lossPercent = lossPercent;
        }

        @Override
        public void publish(long worker, int rank, long first, KvBatch events) throws IOException {
            if (random.nextInt(100) >= lossPercent) {
                transport.publish(worker, rank, first, events);
            }
        }

        @Override
        public long publisherId() {
            return transport.publisherId();
        }

        @Override
        public void close() {
            transport.close();
        }
    }

    /** A life of the worker. */
    private AutoCloseable begin(int lossPercent, boolean answers) throws IOException {
        truth.clear();
        final NatsAccess access = Patient.access(NATS.url());
        final RouterEventTransport transport =
                new LossyTransport(new NatsEventTransport(access, names), lossPercent);
        indexer = new LocalIndexer(ObservedPlane.WORKER, 0, transport.publisherId());
        publisher = new KvEventPublisher(BLOCK, transport, indexer);
        final LocalIndexerService service =
                answers ? new LocalIndexerService(access, names, indexer) : null;
        return () -> {
            publisher.close();
            if (service != null) {
                service.close();
            }
        };
    }

    private ObservedPlane router(String url, boolean recovers) {
        final ObservedPlane observed = closing(new ObservedPlane());
        closing(new NatsEventSource(Patient.access(url), names, observed.plane, recovers));
        observed.await(() -> observed.plane.status().isConnected(), "connection");
        return observed;
    }

    private void work(int events) throws IOException {
        for (int i = 0; i < events; i++) {
            if (truth.size() > 500 && random.nextBoolean()) {
                final long name = truth.ceiling((long) random.nextInt(truth.last().intValue()));
                publisher.publishRemoved(name);
                truth.remove(name);
            } else {
                final long name = truth.isEmpty() ? 1 : truth.last() + 1;
                publisher.publishStored(new int[] {(int) name, 1, 2, 3}, new long[] {name}, null);
                truth.add(name);
            }
        }
    }

    private void awaitTruth(ObservedPlane observed) {
        observed.await(
                () ->
                        observed.held().equals(List.copyOf(truth))
                                && observed.stream.state() == IndexState.EXACT,
                "truth of " + truth.size() + " blocks");
    }

    private static String through(TcpProxy proxy) {
        return "nats://127.0.0.1:" + proxy.port();
    }

    @Test
    void aRouterThatLosesEventsAndOneThatJoinsLateBothKnowWhatIsTrue() throws Exception {
        try (TcpProxy proxy = new TcpProxy(URI.create(NATS.url()).getPort())) {
            closing(begin(3, true));
            final ObservedPlane first = router(through(proxy), true);
            work(3_000);
            awaitTruth(first);
            proxy.cut();
            first.await(IndexState.STALE);
            work(3_000); // more than are remembered
            proxy.heal();
            awaitTruth(first);
            final ObservedPlane late = router(NATS.url(), true);
            awaitTruth(late);
            work(500);
            awaitTruth(first);
            awaitTruth(late);
            assertEquals(first.held(), late.held());
            assertNotEquals(0, first.plane.status().recoveredRanges());
            assertNotEquals(0, first.plane.status().recoveredDumps());
            assertEquals(0, first.stream.status().lostMessages());
            assertEquals(0, late.stream.status().lostMessages());
        }
    }

    @Test
    void aRestartThatNobodyHearsOfEndsTheFormerLife() throws Exception {
        try (TcpProxy proxy = new TcpProxy(URI.create(NATS.url()).getPort())) {
            final AutoCloseable life = begin(0, true);
            final ObservedPlane observed = router(through(proxy), true);
            work(100);
            awaitTruth(observed);
            proxy.cut();
            observed.await(IndexState.STALE);
            life.close();
            closing(begin(0, true));
            work(120);
            proxy.heal();
            awaitTruth(observed);
            work(5);
            awaitTruth(observed);
            assertEquals(1, observed.plane.status().publisherChanges());
        }
    }

    /** The check is checked: the same without queries is not exact. */
    @Test
    void withoutQueriesTheSameLossesStay() throws Exception {
        closing(begin(3, true));
        final List<ObservedPlane> routers = new ArrayList<>();
        routers.add(router(NATS.url(), false));
        work(2_000);
        routers.add(router(NATS.url(), false));
        while (routers.getLast().stream.state() != IndexState.DEGRADED
                || routers.getFirst().stream.state() != IndexState.DEGRADED) {
            work(1);
            Thread.sleep(1);
        }
        for (ObservedPlane observed : routers) {
            assertNotEquals(List.copyOf(truth), observed.held());
        }
    }

    @Test
    void aPublisherWithoutALocalIndexerIsSaidToHaveNone() throws Exception {
        closing(begin(0, false));
        work(3);
        final ObservedPlane late = router(NATS.url(), true);
        late.await(() -> late.stream.status().replayFailures() > 0, "refusal");
        work(1);
        late.await(IndexState.DEGRADED);
        assertTrue(
                late.stream.status().problem().contains("nothing answers for the worker"),
                late.stream.status().problem());
    }

    /** A cache whose events are not remembered any more. */
    private void beginWithLargeCache() throws Exception {
        closing(begin(0, true));
        final int blocks = 20_000;
        final long[] of = new long[blocks];
        for (int i = 0; i < blocks; i++) {
            of[i] = 1L + i;
            truth.add(of[i]);
        }
        publisher.publishStored(new int[blocks * BLOCK], of, null);
        for (int i = 0; i < LocalIndexer.EVENTS; i++) {
            publisher.publishRemoved(-1L - i);
        }
    }

    @Test
    void aLargeCacheComesInManyMessages() throws Exception {
        beginWithLargeCache();
        final ObservedPlane late = router(NATS.url(), true);
        awaitTruth(late);
        late.await(
                () -> late.plane.status().recoveredDumps() == 1, "count of what is in the index");
    }

    @Test
    void routersThatAskAtOnceAllGetTheOneDump() throws Exception {
        beginWithLargeCache();
        final List<ObservedPlane> routers = new ArrayList<>();
        for (int i = 0; i < 12; i++) {
            final ObservedPlane observed = closing(new ObservedPlane());
            closing(new NatsEventSource(Patient.access(NATS.url()), names, observed.plane, true));
            routers.add(observed);
        }
        routers.forEach(this::awaitTruth);
        assertEquals(1, indexer.counts().dumpsMade());
        assertEquals(routers.size(), indexer.counts().dumpAnswers());
    }
}

package io.kvasir.pipeline.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.pipeline.publish.KvEventPublisher;
import io.kvasir.pipeline.publish.LocalIndexer;
import io.kvasir.pipeline.publish.ZmqEventPlaneTransport;
import io.kvasir.pipeline.wire.QueryTopic;
import io.kvasir.pipeline.wire.RecoveryQuery;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.FreePorts;
import io.kvasir.testsupport.Latches;
import io.kvasir.testsupport.TcpProxy;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZMQ;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.function.BooleanSupplier;

/** Publishers and brokers over ZMQ: what is missed is asked for over the connections of events. */
@Order(1) // takes long: begins first, beside the others
class ZmqRecoveryTest {
    private static final int BLOCK_SIZE = 4;
    private static final String SUBJECT = "namespace.ns.component.backend.endpoint.gen.kv-events";
    private static final PlaneTopics TOPICS =
            new PlaneTopics("kv-events", "namespace.ns.component.backend.");

    private final PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(4, 1 << 18, 1 << 18));
    private final IndexApplier applier = new IndexApplier(index);
    private final EventPlane plane = new EventPlane(EventPlane.KNOWN_ONLY);
    private final List<AutoCloseable> closing = new ArrayList<>();

    @AfterEach
    void close() throws Exception {
        for (AutoCloseable one : closing.reversed()) {
            one.close();
        }
        index.close();
    }

    private <T extends AutoCloseable> T closing(T one) {
        closing.add(one);
        return one;
    }

    private EngineStream follow(long worker) {
        final EngineStream stream =
                new EngineStream(
                        SourceConfig.ofRouterEvents("w" + worker, (int) worker, BLOCK_SIZE),
                        applier);
        plane.register(worker, 0, stream);
        return stream;
    }

    private ZmqEventPlaneSource source(String... addresses) {
        return closing(
                new ZmqEventPlaneSource(
                        List.of(addresses), TOPICS, ZmqConfig.defaults(), plane, true));
    }

    private void await(BooleanSupplier condition, EngineStream... streams) {
        Eventually.holds(
                () ->
                        plane.status()
                                + " "
                                + Arrays.stream(streams).map(EngineStream::status).toList(),
                condition);
    }

    private void awaitExact(EngineStream stream, Publisher publisher) {
        await(
                () ->
                        stream.state() == IndexState.EXACT
                                && stream.lastNumber() == publisher.events.lastEventId()
                                && index.heldBlocks(stream.config().slot())
                                        == publisher.held.size(),
                stream);
    }

    /** A worker that publishes stores and removals of single blocks. */
    private final class Publisher {
        private final ZmqEventPlaneTransport transport;
        private final KvEventPublisher events;
        private final Set<Long> held = new TreeSet<>();
        private long name;

        private Publisher(long worker, ZmqEventPlaneTransport transport) {
            this.transport = closing(transport);
            final LocalIndexer indexer = new LocalIndexer(worker, 0, transport.publisherId());
            transport.answerBy(indexer);
            this.events = new KvEventPublisher(BLOCK_SIZE, transport, indexer);
        }

        private void publish(int count) throws IOException {
            for (int i = 0; i < count; i++) {
                name++;
                events.publishStored(new int[] {(int) name, 1, 2, 3}, new long[] {name}, null);
                held.add(name);
                if (name % 3 == 0) {
                    events.publishRemoved(name);
                    held.remove(name);
                }
            }
        }
    }

    private Publisher publisher(long worker) throws IOException {
        return new Publisher(worker, new ZmqEventPlaneTransport("tcp://127.0.0.1:0", "kv-events"));
    }

    @Test
    void aRouterThatComesLateGetsAllThatThereIs() throws Exception {
        final Publisher publisher = publisher(1);
        publisher.publish(50);
        final EngineStream stream = follow(1);
        source(publisher.transport.endpoint());
        awaitExact(stream, publisher);
        publisher.publish(10);
        awaitExact(stream, publisher);
        assertEquals(0, plane.status().failedRecoveries());
    }

    @Test
    void whatWasPublishedWhileTheConnectionWasLostIsAskedFor() throws Exception {
        final Publisher publisher = publisher(1);
        final EngineStream stream = follow(1);
        final String endpoint = publisher.transport.endpoint();
        final TcpProxy proxy =
                closing(
                        new TcpProxy(
                                Integer.parseInt(
                                        endpoint.substring(endpoint.lastIndexOf(':') + 1))));
        source("tcp://127.0.0.1:" + proxy.port());
        publisher.publish(20);
        awaitExact(stream, publisher);
        for (int i = 0; i < 3; i++) {
            proxy.sever();
            publisher.publish(i == 2 ? 2_000 : 20); // more than are remembered the last time
            await(() -> stream.state() == IndexState.STALE, stream);
            assertFalse(plane.status().isConnected());
            proxy.heal();
            awaitExact(stream, publisher);
        }
        // what was recovered is in the index before it is counted
        await(() -> plane.status().recoveredDumps() > 0, stream);
        await(() -> plane.status().recoveredRanges() > 0, stream);
    }

    @Test
    void ofSeveralPublishersOneThatEndsLeavesTheOthersAlone() throws Exception {
        final Publisher first = publisher(1);
        final Publisher second = publisher(2);
        first.publish(5);
        second.publish(7);
        final EngineStream one = follow(1);
        final EngineStream two = follow(2);
        source(first.transport.endpoint(), second.transport.endpoint());
        awaitExact(one, first);
        awaitExact(two, second);
        first.transport.close();
        await(() -> one.state() == IndexState.STALE, one);
        assertEquals(IndexState.EXACT, two.state());
        assertTrue(plane.status().isConnected());
        second.publish(3);
        awaitExact(two, second);
        // its next life: the same address, other numbers, other blocks
        final Publisher next =
                new Publisher(
                        1, new ZmqEventPlaneTransport(first.transport.endpoint(), "kv-events"));
        next.publish(2);
        awaitExact(one, next);
        awaitExact(two, second);
    }

    @Test
    void aLargeCacheComesInManyMessages() throws Exception {
        final Publisher publisher = publisher(1);
        for (int i = 0; i < 1_200; i++) { // more events than are remembered
            final long[] names = new long[85];
            for (int n = 0; n < names.length; n++) {
                names[n] = ++publisher.name;
                publisher.held.add(names[n]);
            }
            publisher.events.publishStored(new int[names.length * BLOCK_SIZE], names, null);
        }
        final EngineStream stream = follow(1);
        source(publisher.transport.endpoint());
        awaitExact(stream, publisher);
        publisher.publish(1);
        awaitExact(stream, publisher);
        await(() -> plane.status().recoveredDumps() > 0, stream); // counted when it is in the index
    }

    @Test
    void aPublisherWithoutALocalIndexerIsSaidToHaveNone() throws Exception {
        final ZmqEventPlaneTransport transport =
                closing(new ZmqEventPlaneTransport("tcp://127.0.0.1:0", "kv-events"));
        final KvEventPublisher events = new KvEventPublisher(1, 0, BLOCK_SIZE, transport);
        events.publishStored(new int[4], new long[] {1}, null);
        final EngineStream stream = follow(1);
        source(transport.endpoint());
        await(() -> plane.status().isConnected(), stream);
        await(() -> plane.status().failedRecoveries() > 0, stream);
        events.publishStored(new int[] {5, 6, 7, 8}, new long[] {2}, null);
        await(() -> stream.state() == IndexState.DEGRADED, stream);
        await(() -> stream.status().problem().contains("nothing answers"), stream);
        assertEquals(1, index.heldBlocks(1));
        events.publishAllCleared();
        await(() -> stream.state() == IndexState.EXACT, stream);
    }

    /** A broker as other routers use it: publishers and subscribers connect to it. */
    private static final class Broker implements AutoCloseable {
        private static final String CONTROL = "inproc://control";

        private final ZContext context = new ZContext(1);
        private final ZMQ.Socket control = context.createSocket(SocketType.PAIR);
        private final int port = FreePorts.run(2);
        private final CountDownLatch ended = new CountDownLatch(1);

        private Broker() {
            final ZMQ.Socket publishers = context.createSocket(SocketType.XSUB);
            final ZMQ.Socket subscribers = context.createSocket(SocketType.XPUB);
            final ZMQ.Socket controlled = context.createSocket(SocketType.PAIR);
            publishers.bind(publishers());
            subscribers.bind(subscribers());
            control.bind(CONTROL);
            controlled.connect(CONTROL);
            Thread.ofPlatform()
                    .daemon()
                    .start(
                            () -> {
                                try {
                                    ZMQ.proxy(publishers, subscribers, null, controlled);
                                } finally {
                                    ended.countDown();
                                }
                            });
        }

        private String publishers() {
            return "tcp://127.0.0.1:" + port;
        }

        private String subscribers() {
            return "tcp://127.0.0.1:" + (port + 1);
        }

        @Override
        public void close() {
            control.send(ZMQ.PROXY_TERMINATE);
            Latches.await(ended); // no socket may be closed while the thread uses it
            context.close();
        }
    }

    @Test
    void whatSeveralBrokersCarryIsTakenOnceAndOneOfThemMayEnd() throws Exception {
        final Broker first = new Broker();
        final Broker second = closing(new Broker());
        final Publisher publisher =
                new Publisher(
                        1,
                        ZmqEventPlaneTransport.toBrokers(
                                List.of(first.publishers(), second.publishers()),
                                SUBJECT,
                                "kv-events"));
        publisher.publish(30);
        final EngineStream stream = follow(1);
        final ZmqEventPlaneSource source = source(first.subscribers(), second.subscribers());
        awaitExact(stream, publisher);
        await(
                () -> { // until both have the subscription, and the publisher
                    publish(publisher, 1);
                    return source.doubles() > 0;
                },
                stream);
        awaitExact(stream, publisher);
        publisher.publish(300);
        awaitExact(stream, publisher);
        final long gaps = stream.status().gaps();
        first.close();
        publisher.publish(50);
        awaitExact(stream, publisher);
        assertTrue(plane.status().isConnected());
        assertEquals(gaps, stream.status().gaps());
        assertEquals(0, plane.status().unreadable());
        assertEquals(0, plane.status().publisherChanges());
    }

    private static void publish(Publisher publisher, int count) {
        try {
            publisher.publish(count);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void messagesOfOtherSubjectsDoNotCount() throws Exception {
        final Broker broker = closing(new Broker());
        final Publisher publisher =
                new Publisher(
                        1,
                        ZmqEventPlaneTransport.toBrokers(
                                List.of(broker.publishers()), SUBJECT, "kv-events"));
        final ZmqEventPlaneTransport other =
                closing(
                        ZmqEventPlaneTransport.toBrokers(
                                List.of(broker.publishers()),
                                SUBJECT.replace("kv-events", "kv-state"),
                                "kv-state"));
        final KvEventPublisher others = new KvEventPublisher(2, 0, BLOCK_SIZE, other);
        final EngineStream stream = follow(1);
        source(broker.subscribers());
        await(
                () -> {
                    publish(publisher, 1);
                    return plane.status().events() > 0;
                },
                stream);
        for (int i = 0; i < 20; i++) {
            others.publishAllCleared();
        }
        publisher.publish(20);
        awaitExact(stream, publisher);
        assertEquals(0, plane.status().unknownEvents());
        assertEquals(0, plane.status().unreadable());
    }

    @Test
    void aSubscriberWithTenThousandQueriesHoldsUpNobody() throws Exception {
        final Publisher publisher = publisher(1);
        publisher.publish(2_000);
        try (ZContext context = new ZContext(1)) {
            final ZMQ.Socket hostile = context.createSocket(SocketType.SUB);
            hostile.setRcvHWM(1);
            hostile.connect(publisher.transport.endpoint());
            for (int i = 0; i < 10_000; i++) {
                hostile.subscribe(
                        new QueryTopic(
                                        9,
                                        i,
                                        new RecoveryQuery(1 + i % 2, 0, 0, RecoveryQuery.NO_END))
                                .toBytes());
            }
            hostile.subscribe(
                    ByteBuffer.allocate(300)
                            .put("kv-query".getBytes(StandardCharsets.UTF_8))
                            .array());
            final EngineStream stream = follow(1);
            source(publisher.transport.endpoint());
            awaitExact(stream, publisher);
            publisher.publish(10);
            awaitExact(stream, publisher);
        }
    }
}

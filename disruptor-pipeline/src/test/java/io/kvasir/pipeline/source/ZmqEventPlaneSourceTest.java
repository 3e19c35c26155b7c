package io.kvasir.pipeline.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.capture.ZcapRecord;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.pipeline.publish.KvEventPublisher;
import io.kvasir.pipeline.publish.ZmqEventPlaneTransport;
import io.kvasir.pipeline.wire.PlaneLoad;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZMQ;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

@Order(0) // takes longest: begins before all others
class ZmqEventPlaneSourceTest {
    private static final int SLOT = 1;

    private final PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(4, 4_096, 4_096));
    private final IndexApplier applier = new IndexApplier(index);
    private final EngineStream stream =
            new EngineStream(SourceConfig.ofRouterEvents("w", SLOT, 4), applier);
    private final EventPlane plane = new EventPlane((worker, rank) -> stream);
    private ZmqEventPlaneSource source;
    private ZmqLoadPlaneSource reports;

    @AfterEach
    void close() {
        if (source != null) {
            source.close();
        }
        if (reports != null) {
            reports.close();
        }
        index.close();
    }

    private void open(String address) {
        source =
                new ZmqEventPlaneSource(
                        List.of(address),
                        new PlaneTopics("kv-events"),
                        ZmqConfig.defaults(),
                        plane,
                        false);
    }

    private void await(BooleanSupplier condition) {
        Eventually.holds(() -> plane.status() + " " + stream.status(), condition);
    }

    private void awaitConnection() {
        await(() -> plane.status().unconnected().isEmpty());
    }

    @Test
    void whatIsPublishedIsRead() throws IOException {
        try (ZmqEventPlaneTransport transport =
                new ZmqEventPlaneTransport("tcp://127.0.0.1:0", "kv-events")) {
            open(transport.endpoint());
            awaitConnection();
            final KvEventPublisher publisher = new KvEventPublisher(7, 0, 4, transport);
            await(
                    () -> { // until the subscription is there
                        publishClear(publisher);
                        return plane.status().events() > 0;
                    });
            publisher.publishStored(new int[8], new long[] {1, 2}, null);
            publisher.publishRemoved(2);
            await(() -> stream.status().lastSequence() == publisher.lastEventId());
            await(() -> stream.state() == IndexState.EXACT);
            assertEquals(1, index.heldBlocks(SLOT));
            assertEquals(0, plane.status().gaps());
        }
        await(() -> stream.state() == IndexState.STALE);
    }

    @Test
    void whatWasPublishedBeforeTheEndIsRead() throws IOException {
        final ZmqEventPlaneTransport transport =
                new ZmqEventPlaneTransport("tcp://127.0.0.1:0", "kv-events");
        final KvEventPublisher publisher = new KvEventPublisher(7, 0, 4, transport);
        try (publisher) {
            open(transport.endpoint());
            awaitConnection();
            await(
                    () -> { // until the subscription is there
                        publishClear(publisher);
                        return plane.status().events() > 0;
                    });
            for (int i = 0; i < 1_000; i++) {
                publisher.publishAllCleared();
            }
        }
        await(() -> stream.status().lastSequence() == publisher.lastEventId());
        assertEquals(0, stream.status().gaps());
    }

    @Test
    void aReaderThatDoesNotReadDoesNotKeepTheTransportFromItsEnd() throws IOException {
        final ZmqEventPlaneTransport transport =
                new ZmqEventPlaneTransport("tcp://127.0.0.1:0", "kv-events");
        final KvEventPublisher publisher = new KvEventPublisher(7, 0, 4, transport);
        try (SocketChannel reader = subscriber(transport.endpoint())) {
            final byte[] bytes = new byte[1 << 16];
            final ByteBuffer read = ByteBuffer.wrap(bytes);
            await(
                    () -> { // until the subscription is there
                        publishClear(publisher);
                        return !isEnded(reader, read)
                                && new String(bytes, StandardCharsets.ISO_8859_1)
                                        .contains("kv-events");
                    });
            final long[] blocks = LongStream.range(1L << 40, (1L << 40) + 10_000).toArray();
            for (int i = 0; i < 200; i++) { // 18 MB: more than a socket takes
                publisher.publishRemoved(blocks);
            }
            publisher.close();
            await(() -> isEnded(reader, read.clear()));
        }
    }

    /** A connection that has subscribed to everything. */
    private static SocketChannel subscriber(String endpoint) throws IOException {
        final int port = Integer.parseInt(endpoint.substring(endpoint.lastIndexOf(':') + 1));
        final SocketChannel connection = SocketChannel.open();
        connection.setOption(StandardSocketOptions.SO_RCVBUF, 1 << 16);
        connection.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
        RawPublisher.write(connection, RawPublisher.hello("SUB"));
        RawPublisher.write(connection, new byte[] {0, 1, 1});
        connection.configureBlocking(false);
        return connection;
    }

    private static boolean isEnded(SocketChannel connection, ByteBuffer read) {
        try {
            return connection.read(read) < 0;
        } catch (IOException e) {
            return true;
        }
    }

    private static void publishClear(KvEventPublisher publisher) {
        try {
            publisher.publishAllCleared();
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void aRecordedPlaneOfAnotherRouterIsReadFromAnotherZmq() {
        try (ZContext context = new ZContext(1)) {
            final ZMQ.Socket socket = context.createSocket(SocketType.XPUB);
            final int port = socket.bindToRandomPort("tcp://127.0.0.1");
            open("tcp://127.0.0.1:" + port);
            socket.recv(); // the subscription
            int messages = 0;
            for (ZcapRecord record : Captures.read("dyn-1.6.1-eventplane-zmq-kv-events.zcap")) {
                final List<byte[]> frames = record.frames();
                if (frames.size() == 4) {
                    messages++;
                    for (int i = 0; i < 4; i++) {
                        socket.send(frames.get(i), i < 3 ? ZMQ.SNDMORE : 0);
                    }
                }
            }
            final long sent = messages;
            await(() -> plane.status().messages() == sent);
            await(() -> stream.state() == IndexState.EXACT);
            assertEquals(plane.status().events(), stream.status().lastSequence());
            assertEquals(0, stream.status().gaps());
            assertEquals(0, plane.status().unreadable());

            socket.send("kv-events");
            socket.sendMore("kv-events");
            socket.sendMore(new byte[8]);
            socket.sendMore(new byte[8]);
            socket.send(new byte[] {2, 0, 0, 0, 0});
            await(() -> plane.status().unreadable() == 2);
        }
    }

    @Test
    void recordedLoadReportsAreReadAndWhatIsNoneIsCounted() {
        final List<Long> orders = new CopyOnWriteArrayList<>();
        final AtomicInteger unreadable = new AtomicInteger();
        final LoadPlane loads =
                new LoadPlane(
                        new LoadPlane.Listener() {
                            @Override
                            public void reported(long order, PlaneLoad load) {
                                orders.add(order);
                            }

                            @Override
                            public void unreadable() {
                                unreadable.incrementAndGet();
                            }
                        });
        try (ZContext context = new ZContext(1)) {
            final ZMQ.Socket socket = context.createSocket(SocketType.XPUB);
            final int port = socket.bindToRandomPort("tcp://127.0.0.1");
            reports =
                    new ZmqLoadPlaneSource(
                            List.of("tcp://127.0.0.1:" + port),
                            new PlaneTopics("kv_metrics"),
                            ZmqConfig.defaults(),
                            loads);
            socket.recv(); // the subscription
            socket.sendMore("kv_metrics");
            socket.send("no frames of a plane");
            final List<ZcapRecord> records =
                    Captures.read("dyn-1.6.1-eventplane-zmq-kv_metrics.zcap");
            for (ZcapRecord record : records) {
                for (int i = 0; i < 4; i++) {
                    socket.send(record.frames().get(i), i < 3 ? ZMQ.SNDMORE : 0);
                }
            }
            await(() -> orders.size() == records.size());
            assertEquals(orders.stream().sorted().toList(), orders);
            assertEquals(1, unreadable.get());
        }
    }

    @Test
    void anAddressThatCannotBeConnectedToIsRefused() {
        assertThrows(IllegalArgumentException.class, () -> open("tcp://*:1"));
        assertThrows(IllegalArgumentException.class, () -> open("nowhere"));
        for (List<String> addresses :
                List.of(
                        List.<String>of(),
                        List.of("tcp://h:1", "tcp://h:1"),
                        IntStream.rangeClosed(1, 1_025).mapToObj(i -> "tcp://h:" + i).toList())) {
            assertThrows(
                    IllegalArgumentException.class, () -> ZmqEventPlaneSource.endpoints(addresses));
        }
    }
}

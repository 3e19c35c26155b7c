package io.kvasir.pipeline.source;

import static io.kvasir.pipeline.source.Messages.pack;
import static io.kvasir.pipeline.source.Messages.range;
import static io.kvasir.pipeline.source.Messages.stored;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.events.IndexPipelineConfig;
import io.kvasir.testsupport.ConnectingContext;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.zeromq.SocketType;
import org.zeromq.ZMQ;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Several workers behind one address. */
class SharedEndpointTest {
    private static final int BLOCK = 4;

    private final PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(8, 4_096, 4_096));
    private final IndexPipeline pipeline = new IndexPipeline(IndexPipelineConfig.defaults(), index);
    private final ConnectingContext context = new ConnectingContext();
    private final List<SocketChannel> connections = new ArrayList<>();

    @AfterEach
    void close() throws IOException {
        for (SocketChannel connection : connections) {
            connection.close();
        }
        context.close();
        pipeline.close();
        index.close();
    }

    private static byte[] store(int hash, int rank) {
        final Object event = stored(List.of(hash), null, range(hash * 10, hash * 10 + 3), BLOCK);
        return pack(Arrays.asList(1.5, List.of(event), rank));
    }

    private static void await(BooleanSupplier condition, Runnable again, EventSource... shown) {
        final long deadline = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
        while (!condition.getAsBoolean()) {
            assertTrue(
                    System.nanoTime() < deadline,
                    () -> "gave up: " + Arrays.stream(shown).map(EventSource::status).toList());
            again.run();
            LockSupport.parkNanos(20_000_000);
        }
    }

    private ZMQ.Socket publisher(String endpoint) {
        final ZMQ.Socket socket = context.socket(SocketType.PUB);
        socket.setLinger(0);
        socket.connect(endpoint);
        return socket;
    }

    private static void send(ZMQ.Socket socket, String topic, long sequence, byte[] payload) {
        socket.send(topic.getBytes(StandardCharsets.US_ASCII), ZMQ.SNDMORE);
        socket.send(Publisher.number(sequence), ZMQ.SNDMORE);
        socket.send(payload, 0);
    }

    private EventSource bound(String name, int slot, String endpoint, String topic, int rank) {
        return pipeline.openZmq(
                SourceConfig.of(name, slot, BLOCK, endpoint)
                        .withBind(true)
                        .withTopic(topic)
                        .withDpRank(rank));
    }

    @Test
    void workersThatConnectToOneBoundAddressAreToldApartByTopic() {
        final EventSource one = bound("pod-1", 1, "tcp://127.0.0.1:*", "kv@10.0.0.1@m", 0);
        final String endpoint = one.status().endpoint();
        final EventSource two = bound("pod-2", 2, endpoint, "kv@10.0.0.2@m", 0);
        final EventSource rest = bound("rest", 3, endpoint, "kv@", 0);
        assertEquals(endpoint, two.status().endpoint());
        final ZMQ.Socket first = publisher(endpoint);
        final ZMQ.Socket second = publisher(endpoint);
        final ZMQ.Socket third = publisher(endpoint);
        await(
                () -> one.state() == IndexState.EXACT && two.state() == IndexState.EXACT,
                () -> {
                    send(first, "kv@10.0.0.1@m", 1, store(1, 0));
                    send(second, "kv@10.0.0.2@m", 1, store(2, 0));
                },
                one,
                two);
        await(
                () -> rest.status().lastSequence() == 1,
                () -> send(third, "kv@10.0.0.3@m", 1, store(3, 0)),
                rest);
        await(() -> index.heldBlocks(3) == 1, () -> {}, rest);
        assertEquals(1, index.heldBlocks(1));
        assertEquals(1, index.heldBlocks(2));

        one.close();
        final EventSource again = bound("pod-1", 4, endpoint, "kv@10.0.0.1@m", 0);
        await(
                () -> again.state() == IndexState.EXACT,
                () -> send(first, "kv@10.0.0.1@m", 1, store(4, 0)),
                again);
        second.close();
        await(() -> two.status().disconnects() == 1, () -> {}, two);
        assertEquals(0, rest.status().disconnects());
        assertEquals(0, again.status().disconnects());
    }

    /** A connection that sends whatever is written, subscribed to or not. */
    private SocketChannel connection(String endpoint) throws IOException {
        final int port = Integer.parseInt(endpoint.substring(endpoint.lastIndexOf(':') + 1));
        final SocketChannel connection = SocketChannel.open();
        connections.add(connection);
        connection.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
        connection.socket().setSoTimeout((int) TimeUnit.MINUTES.toMillis(1));
        RawPublisher.write(connection, RawPublisher.hello("PUB"));
        return connection;
    }

    /** Reads up to a subscription (1) or its end (0). */
    private static void awaitSubscription(SocketChannel connection, int kind, String topic)
            throws IOException {
        final String wanted = (char) (1 + topic.length()) + "" + (char) kind + topic;
        final StringBuilder read = new StringBuilder();
        while (read.indexOf(wanted) < 0) {
            final int next = connection.socket().getInputStream().read();
            assertTrue(next >= 0, "the connection was closed");
            read.append((char) next);
        }
    }

    /** Ends a connection; returns when the other side has taken all of it. */
    private static void end(SocketChannel connection) throws IOException {
        connection.shutdownOutput();
        connection.socket().getInputStream().readAllBytes();
    }

    @Test
    void aLateMessageOfARemovedWorkerIsNotItsNeighbours() throws IOException {
        final EventSource one = bound("a", 1, "tcp://127.0.0.1:*", "kv@a", 0);
        final String endpoint = one.status().endpoint();
        final EventSource two = bound("b", 2, endpoint, "kv@b", 0);
        final SocketChannel first = connection(endpoint);
        final SocketChannel second = connection(endpoint);
        RawPublisher.write(first, RawPublisher.message("kv@a", 1, store(1, 0)));
        RawPublisher.write(second, RawPublisher.message("kv@b", 1, store(2, 0)));
        await(
                () -> one.state() == IndexState.EXACT && two.state() == IndexState.EXACT,
                () -> {},
                one,
                two);
        one.close();
        awaitSubscription(first, 0, "kv@a");
        RawPublisher.write(first, RawPublisher.message("kv@a", 3, store(3, 0)));
        end(first);
        assertEquals(0, two.status().restarts());
        assertEquals(0, two.status().reconnects());
        assertEquals(1, two.status().messages());
        assertEquals(IndexState.EXACT, two.state());
        assertEquals(1, index.heldBlocks(2));
    }

    @Test
    void thePublisherOfAWorkerThatIsNotRegisteredCountsForNobody() throws IOException {
        final EventSource one = bound("a", 1, "tcp://127.0.0.1:*", "kv@a", 0);
        final String endpoint = one.status().endpoint();
        final SocketChannel own = connection(endpoint);
        RawPublisher.write(own, RawPublisher.message("kv@a", 1, store(1, 0)));
        await(() -> one.state() == IndexState.EXACT, () -> {}, one);
        final SocketChannel other = connection(endpoint);
        awaitSubscription(other, 1, "kv@a");
        RawPublisher.write(other, RawPublisher.message("kv@b", 1, store(2, 0)));
        RawPublisher.write(own, RawPublisher.message("kv@a", 2, store(3, 0)));
        await(() -> one.status().lastSequence() == 2, () -> {}, one);
        await(() -> one.state() != IndexState.RESYNC, () -> {}, one); // until it is applied
        assertEquals(IndexState.EXACT, one.state());
        assertEquals(2, index.heldBlocks(1));
        assertEquals(0, one.status().reconnects());
        end(own);
        await(() -> one.status().disconnects() == 1, () -> {}, one);
        assertEquals(IndexState.STALE, one.state());
    }

    @Test
    void aLoadReportIsThatOfTheRanksWhosePublisherSendsIt() throws IOException {
        final EventSource one = bound("w", 1, "tcp://127.0.0.1:*", "", 0);
        final String endpoint = one.status().endpoint();
        final EventSource two = bound("w", 2, endpoint, "", 1);
        final List<Long> ofOne = new CopyOnWriteArrayList<>();
        final List<Long> ofTwo = new CopyOnWriteArrayList<>();
        one.onLoad((number, load) -> ofOne.add(load.running()));
        two.onLoad((number, load) -> ofTwo.add(load.running()));
        final SocketChannel first = connection(endpoint);
        final SocketChannel second = connection(endpoint);
        RawPublisher.write(first, RawPublisher.message("load", 0, load(3, 1)));
        RawPublisher.write(first, RawPublisher.message("kv", 1, store(1, 0)));
        RawPublisher.write(second, RawPublisher.message("kv", 1, store(2, 1)));
        RawPublisher.write(first, RawPublisher.message("load", 2, load(4, 1)));
        RawPublisher.write(first, RawPublisher.message("kv", 2, store(3, 0)));
        await(
                () -> one.status().lastSequence() == 2 && two.status().lastSequence() == 1,
                () -> {},
                one,
                two);
        assertEquals(List.of(4L), ofOne);
        assertEquals(List.of(), ofTwo);
        assertEquals(Map.of("ignored_message", 1L), one.status().drops());

        end(second);
        await(() -> two.status().disconnects() == 1, () -> {}, one, two);
        assertEquals(0, one.status().disconnects());
    }

    /** As SGLang sends it among its events: running and waiting requests, tokens in use and all. */
    private static byte[] load(int running, int waiting) {
        return pack(List.of("LoadStat", running, waiting, 900, 1_000));
    }

    @Test
    void anAddressCanBeBoundAgainAtOnceAfterItsLastSource() {
        final EventSource one = bound("w", 1, "tcp://127.0.0.1:*", "", 0);
        final String endpoint = one.status().endpoint();
        for (int i = 0; i < 20; i++) {
            bound("w", 1, endpoint, "", 0).close();
        }
        one.close();
        for (int i = 0; i < 20; i++) {
            bound("w", 1, endpoint, "", 0).close();
        }
        final EventSource last = bound("w", 1, endpoint, "", 0);
        assertEquals(endpoint, last.status().endpoint());
    }

    @Test
    void ranksOnOneSocketAreToldApartByTheBatch() {
        try (Publisher publisher = new Publisher()) {
            final SourceConfig config = SourceConfig.of("w", 1, BLOCK, publisher.endpoint());
            final EventSource rank0 = pipeline.openZmq(config);
            final EventSource rank1 = pipeline.openZmq(config.withSlot(2).withDpRank(1));
            publisher.awaitSubscriber();
            for (int i = 0; i < 5; i++) {
                publisher.send(Publisher.number(i), store(10 + i, 0));
                publisher.send(Publisher.number(i), store(20 + i, 1));
                publisher.send(Publisher.number(i), store(30 + i, 7));
            }
            await(
                    () -> rank0.status().lastSequence() == 4 && rank1.status().lastSequence() == 4,
                    () -> {},
                    rank0,
                    rank1);
            await(
                    () -> rank0.state() == IndexState.EXACT && rank1.state() == IndexState.EXACT,
                    () -> {},
                    rank0,
                    rank1);
            assertEquals(5, index.heldBlocks(1));
            assertEquals(5, index.heldBlocks(2));
            await(
                    () -> rank0.status().drops().equals(Map.of("unregistered_rank", 5L)),
                    () -> {},
                    rank0);
            assertTrue(
                    rank0.status().problem().contains("a batch of rank 7"),
                    rank0.status().problem());
        }
    }

    @Tag("integration") // waits the four seconds that a publisher has
    @Test
    void aBoundAddressWithoutPublisherSaysSo() {
        final EventSource source = bound("w", 1, "tcp://127.0.0.1:*", "", 0);
        await(
                () -> source.status().problem().contains("no publisher has connected"),
                () -> {},
                source);
        final ZMQ.Socket publisher = publisher(source.status().endpoint());
        await(
                () -> source.state() == IndexState.EXACT,
                () -> send(publisher, "kv", 1, store(1, 0)),
                source);
        assertEquals("", source.status().problem());
    }
}

package io.kvasir.pipeline.source;

import static io.kvasir.pipeline.source.Messages.batch;
import static io.kvasir.pipeline.source.Messages.range;
import static io.kvasir.pipeline.source.Messages.stored;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.events.IndexPipelineConfig;
import io.kvasir.testsupport.Cores;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.FreePorts;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZMQ;

import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Publishers that are wrong, slow, hostile or away: each is named, and none is given up. */
class ZmqFaultsTest {
    private static final int SLOT = 1;
    private static final int BLOCK = 4;
    private static final int MAX_BYTES = 100_000;

    private final PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(8, 4_096, 4_096));
    private IndexPipeline pipeline = pipeline(20_000); // a slow machine is no silent publisher

    @AfterEach
    void close() {
        pipeline.close();
        index.close();
    }

    private IndexPipeline pipeline(int handshakeMs) {
        return pipeline(handshakeMs, index);
    }

    private static IndexPipeline pipeline(int handshakeMs, PrefixIndex index) {
        return new IndexPipeline(
                IndexPipelineConfig.defaults()
                        .withZmq(
                                ZmqConfig.defaults()
                                        .withConnects(handshakeMs, 20, 100)
                                        .withLimits(MAX_BYTES, 1_000, 1 << 20, 1 << 24)),
                index);
    }

    private static byte[] store(int hash) {
        return batch(stored(List.of(hash), null, range(hash * 10, hash * 10 + 3), BLOCK));
    }

    private EventSource open(String endpoint) {
        return pipeline.openZmq(SourceConfig.of("w", SLOT, BLOCK, endpoint));
    }

    private static void await(EventSource source, BooleanSupplier condition) {
        Eventually.holds(() -> source.status().toString(), condition);
    }

    private static void awaitProblem(EventSource source, String words) {
        await(source, () -> source.status().problem().contains(words));
    }

    /** A good publisher takes the place of whatever was on the port. */
    private void healsOn(int port, EventSource source) {
        try (RawPublisher good =
                new RawPublisher(port, c -> RawPublisher.write(c, RawPublisher.hello("PUB")))) {
            await(source, () -> good.connections() == 1);
            await(source, () -> !source.status().problem().contains("no connection"));
            good.send(RawPublisher.message("kv", 0, store(1)));
            await(source, () -> source.state() == IndexState.EXACT);
        }
    }

    @Test
    void aPortWhereNothingListensIsNamedAndTriedAgain() {
        final int port;
        try (RawPublisher early = new RawPublisher()) {
            port = early.port();
        }
        final EventSource source = open("tcp://127.0.0.1:" + port);
        awaitProblem(source, "127.0.0.1:" + port + ": Connection refused");
        assertTrue(source.status().connectFailures() > 0);
        assertEquals(IndexState.STALE, source.state());
        healsOn(port, source);
    }

    @Test
    void aNameThatCannotBeResolvedIsNoErrorOfTheCaller() {
        final EventSource source = open("tcp://no.such.host.invalid:5557");
        awaitProblem(source, "no.such.host.invalid:5557: the host name cannot be resolved");
        source.close();
        assertEquals(IndexState.GONE, source.state());
    }

    @ParameterizedTest
    @ValueSource(strings = {"HTTP/1.1 400 Bad Request\r\n", "\u0001\u0000\u0000", "SSH-2.0-x\r\n"})
    void whatSpeaksNoZmtpIsNamed(String words) {
        final byte[] bytes = words.getBytes(StandardCharsets.ISO_8859_1);
        final EventSource source;
        final int port;
        try (RawPublisher wrong = new RawPublisher(0, c -> RawPublisher.write(c, bytes))) {
            port = wrong.port();
            source = open(wrong.endpoint(0).replace("127.0.1.1", "127.0.0.1"));
            awaitProblem(source, "speaks no ZMTP: its first bytes are ");
            await(source, () -> wrong.accepted() > 2);
        }
        healsOn(port, source);
    }

    @Test
    void anAddressThatIsLetGoOfCanBeBoundByAnotherPipelineAtOnce() {
        try (PrefixIndex otherIndex = new PrefixIndex(new PrefixIndexConfig(8, 4_096, 4_096));
                IndexPipeline other = pipeline(20_000, otherIndex)) {
            final SourceConfig bound =
                    SourceConfig.of("w", SLOT, BLOCK, "tcp://127.0.0.1:" + FreePorts.run(1))
                            .withBind(true);
            for (int i = 0; i < 200; i++) {
                pipeline.openZmq(bound).close();
                other.openZmq(bound).close();
            }
        }
    }

    @Test
    void aPortThatAcceptsAndSaysNothingIsNamed() {
        pipeline.close();
        pipeline = pipeline(1_500);
        final EventSource source;
        final int port;
        try (RawPublisher silent = new RawPublisher(0, c -> {})) {
            port = silent.port();
            source = open("tcp://127.0.0.1:" + port);
            awaitProblem(source, "does not greet as ZMTP within 1500 ms; check the port");
        }
        healsOn(port, source);
    }

    @Test
    void aSocketOfAnotherTypeIsNamed() {
        final EventSource source;
        final int port;
        try (ZContext context = new ZContext(1);
                ZMQ.Socket router = context.createSocket(SocketType.ROUTER)) {
            router.setLinger(0);
            port = router.bindToRandomPort("tcp://127.0.0.1");
            source = open("tcp://127.0.0.1:" + port);
            awaitProblem(source, "is a ZMQ socket of type 'ROUTER', not PUB or XPUB");
        }
        healsOn(port, source);
    }

    @Test
    void securityAndOldRevisionsAreNamed() {
        final byte[] curve = RawPublisher.hello("PUB");
        System.arraycopy("CURVE".getBytes(StandardCharsets.US_ASCII), 0, curve, 12, 5);
        final byte[] old = RawPublisher.hello("PUB");
        old[10] = 1;
        final AtomicReference<byte[]> hello = new AtomicReference<>(curve);
        try (RawPublisher publisher =
                new RawPublisher(0, c -> RawPublisher.write(c, hello.get()))) {
            final EventSource source = open(publisher.endpoint(0));
            awaitProblem(source, "wants the security mechanism CURVE; only NULL is supported");
            hello.set(old);
            awaitProblem(source, "speaks an old ZMTP, of revision 1");
        }
    }

    @Test
    void aSlowHandshakeSucceeds() {
        try (RawPublisher slow =
                new RawPublisher(
                        0,
                        connection -> {
                            for (byte b : RawPublisher.hello("PUB")) {
                                RawPublisher.write(connection, new byte[] {b});
                                LockSupport.parkNanos(200_000);
                            }
                        })) {
            final EventSource source = open(slow.endpoint(0));
            await(
                    source,
                    () -> {
                        slow.send(RawPublisher.message("kv", 0, store(1)));
                        LockSupport.parkNanos(20_000_000);
                        return source.state() == IndexState.EXACT;
                    });
        }
    }

    @Test
    void aMessageThatEndsInTheMiddleIsNone() {
        try (RawPublisher publisher = new RawPublisher()) {
            final EventSource source = open(publisher.endpoint(0));
            await(source, () -> publisher.connections() == 1);
            publisher.send(RawPublisher.message("kv", 0, store(1)));
            final byte[] second = RawPublisher.message("kv", 1, store(2));
            publisher.send(Arrays.copyOf(second, second.length - 3));
            await(source, () -> source.status().lastSequence() == 0);
            publisher.drop();
            await(source, () -> source.status().disconnects() == 1 && publisher.connections() == 1);
            awaitProblem(source, "");
            publisher.send(second);
            await(source, () -> source.status().lastSequence() == 1);
            assertEquals(2, source.status().messages());
            assertEquals(Map.of(), source.status().drops());
        }
    }

    @Test
    void aLostConnectionIsNamed() {
        final RawPublisher publisher = new RawPublisher();
        final EventSource source = open(publisher.endpoint(0));
        await(source, () -> publisher.connections() == 1);
        publisher.send(RawPublisher.message("kv", 0, store(1)));
        await(source, () -> source.status().lastSequence() == 0);
        publisher.close();
        awaitProblem(source, "no connection for events: tcp://127.0.1.1:");
        assertEquals(1, source.status().disconnects());
    }

    @Test
    void oversizedAndMalformedFramesEndTheConnectionOnly() {
        final byte[] oversized =
                ByteBuffer.allocate(9).put((byte) 2).putLong(MAX_BYTES + 1).array();
        final byte[] negative = ByteBuffer.allocate(9).put((byte) 2).putLong(-1).array();
        final byte[] flags = {(byte) 0x80, 0};
        final byte[] endless = new byte[4_096];
        for (int i = 0; i < endless.length; i += 2) {
            endless[i] = 1; // one more empty frame of the same message
        }
        try (RawPublisher publisher = new RawPublisher()) {
            final EventSource source = open(publisher.endpoint(0));
            int lost = 0;
            for (byte[] bad : List.of(oversized, negative, flags, endless)) {
                await(source, () -> publisher.connections() == 1);
                await(source, () -> !source.status().problem().contains("no connection"));
                publisher.send(bad);
                lost++;
                final int expected = lost;
                await(source, () -> source.status().disconnects() == expected);
                await(source, () -> publisher.accepted() == expected + 1);
                await(source, () -> !source.status().problem().contains("no connection"));
                publisher.drop(); // its own ends of the old connection, and perhaps the new one
                await(source, () -> publisher.connections() == 1);
                lost = (int) source.status().disconnects();
            }
            await(
                    source,
                    () -> {
                        publisher.send(RawPublisher.message("kv", 0, store(1)));
                        LockSupport.parkNanos(20_000_000);
                        return source.state() == IndexState.EXACT;
                    });
        }
    }

    @Test
    void messagesInAnyCutArrive() {
        try (RawPublisher publisher = new RawPublisher()) {
            final EventSource source = open(publisher.endpoint(0));
            await(source, () -> publisher.connections() == 1);
            for (int i = 0; i < 30; i++) {
                final byte[] message = RawPublisher.message("kv", i, store(i + 1));
                final int cut = i * message.length / 30;
                publisher.send(Arrays.copyOf(message, cut));
                LockSupport.parkNanos(1_000_000);
                publisher.send(Arrays.copyOfRange(message, cut, message.length));
            }
            await(source, () -> source.status().lastSequence() == 29);
            await(source, () -> source.state() == IndexState.EXACT);
            assertEquals(30, index.heldBlocks(SLOT));
        }
    }

    @Test
    void aPingIsAnswered() throws Exception {
        try (RawPublisher publisher =
                new RawPublisher(
                        0,
                        connection -> {
                            RawPublisher.write(connection, RawPublisher.hello("PUB"));
                            RawPublisher.write(
                                    connection,
                                    new byte[] {4, 9, 4, 'P', 'I', 'N', 'G', 0, 9, 'a', 'b'});
                            final String seen = read(connection, 64 + 27 + 3 + 9);
                            if (seen.endsWith("\u0004\u0007\u0004PONGab")) {
                                RawPublisher.write(
                                        connection, RawPublisher.message("kv", 0, store(1)));
                            }
                        })) {
            final EventSource source = open(publisher.endpoint(0));
            await(source, () -> source.state() == IndexState.EXACT);
        }
    }

    private static String read(SocketChannel connection, int bytes) throws java.io.IOException {
        final ByteBuffer in = ByteBuffer.allocate(bytes);
        while (in.hasRemaining() && connection.read(in) >= 0) {
            Cores.giveWay();
        }
        return new String(in.array(), StandardCharsets.ISO_8859_1);
    }

    @Test
    void otherTransportsAreRefusedByName() {
        for (String address :
                List.of("inproc://x", "udp://1.2.3.4:5", "pgm://x", "tcp://:1", "tcp://h:99999")) {
            final IllegalArgumentException error =
                    assertThrows(IllegalArgumentException.class, () -> open(address));
            assertTrue(error.getMessage().contains(address), error.getMessage());
        }
    }
}

package io.kvasir.nixl.vllm;

import static io.kvasir.nixl.vllm.Refusals.refused;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.memory.BlockSlice;
import io.kvasir.protocol.handoff.KvTransferParams;
import io.kvasir.protocol.handoff.VerbatimJson;
import io.kvasir.testsupport.ConnectingContext;

import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZMQ;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

@Order(0) // takes longest: begins before all others
class VllmHandshakeTest {
    private static final String HOST = "127.0.0.1";
    private static final String HASH = "c0ffee";
    private static final VllmHandshake.Patience SHORT =
            new VllmHandshake.Patience(Duration.ofMillis(300), 2, Duration.ofMillis(10));
    private static final VllmAgentMetadata RANK_0 =
            Golden.metadata("engine", Golden.region("r", 0, 4_096, 8));
    private static final VllmAgentMetadata RANK_1 =
            Golden.metadata("engine", Golden.region("r", 0, 1 << 20, 8));

    /** A server that answers every question with the same frames; without frames it is silent. */
    private static final class Scripted implements AutoCloseable {
        private final ZContext context = new ZContext(1);
        private final ZMQ.Socket router = context.createSocket(SocketType.ROUTER);
        private final int port = router.bindToRandomPort("tcp://" + HOST);
        private final Thread thread;
        private volatile boolean closed;

        private Scripted(byte[]... frames) {
            thread = Thread.ofPlatform().daemon().start(() -> serve(frames));
        }

        private void serve(byte[][] frames) {
            router.setReceiveTimeOut(20);
            while (!closed) {
                final byte[] client = router.recv();
                if (client == null) {
                    continue;
                }
                router.recv();
                router.recv();
                for (int i = 0; i < frames.length; i++) {
                    if (i == 0) {
                        router.send(client, ZMQ.SNDMORE);
                        router.send(new byte[0], ZMQ.SNDMORE);
                    }
                    router.send(frames[i], i + 1 < frames.length ? ZMQ.SNDMORE : 0);
                }
            }
        }

        @Override
        public void close() {
            closed = true;
            try {
                thread.join();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            context.close();
        }
    }

    private static VllmSideChannel channel(LongSupplier clockNs) {
        return new VllmSideChannel(HOST, 0, HASH, List.of(RANK_0, RANK_1), clockNs);
    }

    private static VllmHandshake handshake(VllmHandshake.Patience patience) {
        return new VllmHandshake(patience, Optional.of(HASH));
    }

    private static VllmAgent ask(int port) {
        return handshake(VllmHandshake.Patience.DEFAULT).ask(HOST, port, 0, 0);
    }

    private static VllmAgent askBriefly(int port) {
        return handshake(SHORT).ask(HOST, port, 0, 0);
    }

    @Test
    void theQuestionIsTheRecordedOne() {
        assertArrayEquals(
                Golden.bytes("request.bin"),
                HandshakeCodec.question(new HandshakeCodec.Question(0, 0)));
        assertEquals(
                new HandshakeCodec.Question(0, 0),
                HandshakeCodec.parseQuestion(Golden.bytes("request.bin")));
    }

    @Test
    void theAnswerIsTheRecordedOne() {
        final HandshakeCodec.Answer answer = Golden.answer();
        assertEquals(
                "c1084e0e587798d8981daedfb6af1b0eece0f21dc22dc38b1e9bf2b1ccf59fbc",
                answer.compatibilityHash());
        assertArrayEquals(
                Golden.bytes("payload.bin"),
                HandshakeCodec.answer(answer.compatibilityHash(), answer.metadata().toArray()));
        final long clockNs = HandshakeCodec.parseClock(Golden.bytes("clock.bin"), "recorded");
        assertEquals(36_826L, TimeUnit.NANOSECONDS.toSeconds(clockNs));
        assertArrayEquals(Golden.bytes("clock.bin"), HandshakeCodec.clock(clockNs));
    }

    @Test
    void aSideChannelIntroducesItsRanks() {
        final long ahead = TimeUnit.HOURS.toNanos(3);
        try (VllmSideChannel channel = channel(() -> System.nanoTime() + ahead)) {
            final VllmHandshake handshake = handshake(VllmHandshake.Patience.DEFAULT);
            final VllmAgent first = handshake.ask(HOST, channel.port(), 0, 0);
            final VllmAgent second = handshake.ask(HOST, channel.port(), 0, 1);
            assertEquals(RANK_0, first.metadata());
            assertEquals(RANK_1, second.metadata());
            assertEquals(HASH, first.compatibilityHash());
            assertEquals("engine", first.engineId());
            assertEquals(1, second.tensorRank());
            assertEquals(0, first.unknownKeys());
            final long errorNs = Math.abs(first.clockOffsetNs() - ahead);
            assertTrue(
                    errorNs <= first.roundTripNs() / 2 + 1_000,
                    errorNs + " of " + first.roundTripNs());
            assertEquals(6, channel.answered());
            assertEquals(0, channel.refused());
        }
    }

    @Test
    void thePrefillAnswerSaysWhomToAsk() {
        try (VllmSideChannel channel = channel(System::nanoTime)) {
            final VllmHandshake handshake = handshake(VllmHandshake.Patience.DEFAULT);
            final VllmEngine one = handshake.ask(params("engine", channel.port(), 1));
            assertEquals(RANK_0, one.ranks().getFirst().metadata());
            refused(
                    VllmPeerException.Kind.OTHER_ENGINE,
                    () -> handshake.ask(params("old", channel.port(), 1)),
                    "engine engine, not old");
            refused(
                    VllmPeerException.Kind.MALFORMED,
                    () -> handshake.ask(params("engine", channel.port(), 0)),
                    "tp_size=0");
            final VllmEngine all = handshake.ask(params("engine", channel.port(), 2));
            assertEquals(
                    List.of(RANK_0, RANK_1),
                    all.ranks().stream().map(VllmAgent::metadata).toList());
            final VllmEngine second =
                    handshake.ask(params("engine", channel.port(), 2), new TensorRank(1, 2, 8));
            assertEquals(
                    List.of(RANK_1), second.ranks().stream().map(VllmAgent::metadata).toList());
            refused(
                    VllmPeerException.Kind.UNSUPPORTED,
                    () ->
                            handshake.ask(
                                    params("engine", channel.port(), 2), new TensorRank(1, 3, 3)),
                    "sizes 3 here and 2 at the engine");
            refused(
                    VllmPeerException.Kind.MALFORMED,
                    () -> handshake.ask(KvTransferParams.prefillRequest()),
                    "remote_engine_id");
        }
    }

    private static KvTransferParams params(String engineId, int port, int tensorRanks) {
        return new KvTransferParams(
                VerbatimJson.parse(
                        """
                        {"remote_engine_id":"%s","remote_host":"%s","remote_port":%d,"tp_size":%d}\
                        """
                                .formatted(engineId, HOST, port, tensorRanks)));
    }

    @Test
    void anUnknownRankIsRefusedAndTheChannelLivesOn() {
        try (VllmSideChannel channel = channel(System::nanoTime)) {
            for (int rank : new int[] {2, 7, Integer.MAX_VALUE}) {
                refused(
                        VllmPeerException.Kind.UNKNOWN_RANK,
                        () ->
                                handshake(VllmHandshake.Patience.DEFAULT)
                                        .ask(HOST, channel.port(), 0, rank),
                        "tensor rank " + rank + " of 1 and 2");
            }
            refused(
                    VllmPeerException.Kind.UNKNOWN_RANK,
                    () -> handshake(VllmHandshake.Patience.DEFAULT).ask(HOST, channel.port(), 1, 0),
                    "pipeline rank 1");
            refused(
                    VllmPeerException.Kind.UNKNOWN_RANK,
                    () ->
                            handshake(VllmHandshake.Patience.DEFAULT)
                                    .ask(HOST, channel.port(), 0, -1),
                    "0/-1");
            assertEquals(4, channel.refused());
            assertEquals(RANK_0, ask(channel.port()).metadata());
        }
    }

    /** One of thirty is lost as it is made; made anew it would be when all of the time is over. */
    @Test
    void aLostConnectionIsTakenUpAgain() {
        final VllmHandshake.Patience minutes =
                new VllmHandshake.Patience(Duration.ofMinutes(2), 1, Duration.ZERO);
        final int never = (int) TimeUnit.HOURS.toMillis(1);
        try (VllmSideChannel channel = channel(System::nanoTime)) {
            final VllmHandshake handshake = new VllmHandshake(minutes, Optional.of(HASH), never);
            for (int i = 0; i < 100; i++) {
                assertEquals(RANK_0, handshake.ask(HOST, channel.port(), 0, 0).metadata());
            }
        }
    }

    @Test
    void aPatienceOutsideItsLimitsIsNamedAndTheLongestPauseIsTaken() {
        final Duration second = Duration.ofSeconds(1);
        final Duration longest = Duration.ofSeconds(Long.MAX_VALUE);
        for (Duration timeout : List.of(Duration.ofNanos(999_999), longest)) {
            impatient(
                    "timeout=" + timeout + ", limits are 1 ms..2147483647 ms", timeout, 1, second);
        }
        impatient("attempts=0, at least 1", second, 0, second);
        impatient("backoff=PT-1S, at least 0", second, 1, second.negated());
        final VllmHandshake.Patience patience = new VllmHandshake.Patience(second, 1, longest);
        refused(
                VllmPeerException.Kind.UNREACHABLE,
                () -> handshake(patience).ask(HOST, 1, 0, 0),
                "no side channel at " + HOST + ":1");
    }

    private static void impatient(String why, Duration timeout, int attempts, Duration backoff) {
        assertEquals(
                why,
                assertThrows(
                                IllegalArgumentException.class,
                                () -> new VllmHandshake.Patience(timeout, attempts, backoff))
                        .getMessage());
    }

    @Test
    void addressesOfIpv6AreServedAndAsked() {
        try (VllmSideChannel channel =
                new VllmSideChannel("::1", 0, HASH, List.of(RANK_0), System::nanoTime)) {
            assertEquals(RANK_0, new VllmHandshake().ask("::1", channel.port(), 0, 0).metadata());
        }
        refused(
                VllmPeerException.Kind.UNREACHABLE,
                () -> handshake(SHORT).ask("::1", 1, 0, 0),
                "no side channel at [::1]:1 (Connection refused)");
    }

    @Test
    void garbageIsRefusedAndTheChannelLivesOn() {
        try (VllmSideChannel channel = channel(System::nanoTime);
                ConnectingContext context = new ConnectingContext()) {
            final ZMQ.Socket socket = context.socket(SocketType.REQ);
            socket.setReceiveTimeOut(60_000);
            socket.connect("tcp://" + HOST + ":" + channel.port());
            for (String garbage : List.of("", "x", "GET / HTTP/1.1", "\u0000\u0001")) {
                socket.send(garbage.getBytes(StandardCharsets.UTF_8), 0);
                final byte[] answer = socket.recv();
                refused(
                        VllmPeerException.Kind.MALFORMED,
                        () -> HandshakeCodec.parseAnswer(answer, "channel"),
                        "bad_question");
                assertTrue(socket.hasReceiveMore());
                socket.recv();
            }
            final ZMQ.Socket dealer = context.socket(SocketType.DEALER);
            dealer.connect("tcp://" + HOST + ":" + channel.port());
            dealer.send("no delimiter");
            assertEquals(RANK_0, ask(channel.port()).metadata());
        }
    }

    @Test
    void anotherHashIsRefusedWithBothPrinted() {
        try (VllmSideChannel channel = channel(System::nanoTime)) {
            final VllmPeerException e =
                    refused(
                            VllmPeerException.Kind.INCOMPATIBLE,
                            () ->
                                    new VllmHandshake(
                                                    VllmHandshake.Patience.DEFAULT,
                                                    Optional.of("decaf"))
                                            .ask(HOST, channel.port(), 0, 0),
                            HASH,
                            "decaf");
            assertFalse(e.retryable());
            assertEquals(RANK_0, new VllmHandshake().ask(HOST, channel.port(), 0, 0).metadata());
        }
    }

    @Test
    void metadataIsNotLookedAtBeforeTheHash() {
        final byte[] answer = HandshakeCodec.answer("decaf", new byte[] {1});
        try (Scripted server = new Scripted(answer, HandshakeCodec.clock(0))) {
            refused(VllmPeerException.Kind.INCOMPATIBLE, () -> ask(server.port), "decaf", HASH);
        }
    }

    @Test
    void nobodyThereIsUnreachable() {
        final int port = 1; // of a service that nothing offers, and that no other test can be given
        final VllmPeerException e =
                refused(
                        VllmPeerException.Kind.UNREACHABLE,
                        () -> ask(port),
                        HOST + ":" + port,
                        "VLLM_NIXL_SIDE_CHANNEL_HOST");
        assertTrue(e.retryable());
        refused(VllmPeerException.Kind.MALFORMED, () -> ask(0), "ports are 1 to 65535");
    }

    @Test
    void silenceIsATimeout() throws IOException {
        try (Scripted silent = new Scripted()) {
            refused(
                    VllmPeerException.Kind.TIMEOUT,
                    () -> askBriefly(silent.port),
                    HOST + ":" + silent.port,
                    "300 ms");
        }
        try (ServerSocket other = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
            refused(
                    VllmPeerException.Kind.TIMEOUT,
                    () -> askBriefly(other.getLocalPort()),
                    "300 ms");
        }
    }

    @Test
    void anotherNumberOfFramesIsMalformed() {
        final byte[] answer = HandshakeCodec.answer(HASH, RANK_0.encode());
        final byte[] clock = HandshakeCodec.clock(0);
        try (Scripted one = new Scripted(answer);
                Scripted three = new Scripted(answer, clock, clock)) {
            refused(VllmPeerException.Kind.MALFORMED, () -> ask(one.port), "1 frames");
            refused(VllmPeerException.Kind.MALFORMED, () -> ask(three.port), "3 frames");
        }
    }

    @Test
    void garbageInTheFramesIsMalformed() {
        final byte[] answer = HandshakeCodec.answer(HASH, RANK_0.encode());
        final byte[] clock = HandshakeCodec.clock(0);
        try (Scripted noMap = new Scripted(new byte[] {5}, clock);
                Scripted noClock = new Scripted(answer, new byte[] {(byte) 0xc0});
                Scripted noMetadata =
                        new Scripted(HandshakeCodec.answer(HASH, new byte[] {1}), clock)) {
            refused(VllmPeerException.Kind.MALFORMED, () -> ask(noMap.port), "handshake answer");
            refused(VllmPeerException.Kind.MALFORMED, () -> ask(noClock.port), "clock");
            refused(VllmPeerException.Kind.MALFORMED, () -> ask(noMetadata.port), "metadata");
        }
    }

    @Test
    void aTakenPortAndNoRanksAreRefused() {
        try (VllmSideChannel channel = channel(System::nanoTime)) {
            assertThrows(
                    IllegalStateException.class,
                    () ->
                            new VllmSideChannel(
                                    HOST, channel.port(), HASH, List.of(RANK_0), System::nanoTime));
        }
        assertThrows(
                IllegalArgumentException.class,
                () -> new VllmSideChannel(HOST, 0, HASH, List.of(), System::nanoTime));
    }

    /** Against a running server: {@code -Dvllm.sideChannel=127.0.0.1:5600}. */
    @Test
    void aRunningServerIntroducesItself() {
        final String address = System.getProperty("vllm.sideChannel", "");
        Assumptions.assumeFalse(address.isEmpty(), "skipped: -Dvllm.sideChannel=host:port not set");
        final int colon = address.lastIndexOf(':');
        final VllmAgent agent =
                new VllmHandshake()
                        .ask(
                                address.substring(0, colon),
                                Integer.parseInt(address.substring(colon + 1)),
                                0,
                                0);
        assertEquals(0, agent.unknownKeys());
        assertFalse(agent.metadata().regions().isEmpty());
        assertTrue(VllmBlocks.of(agent).descriptors(BlockSlice.WHOLE).count() > 0);
        // on one machine both clocks are the same monotonic one
        assertTrue(Math.abs(agent.clockOffsetNs()) <= agent.roundTripNs(), agent.toString());
    }
}

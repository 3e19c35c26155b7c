package io.kvasir.nixl.vllm;

import io.kvasir.nixl.exchange.zmq.FrameLimit;
import io.kvasir.protocol.handoff.KvTransferParams;
import io.kvasir.registry.FailureText;
import io.kvasir.registry.HostPort;

import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZMQ;
import org.zeromq.ZMQException;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;

/**
 * Asks a vLLM engine's side channel for its identity: the first contact with an engine, once in its
 * life. Blocks for a round trip, at worst for all attempts: not for event loops, and not for the
 * thread that owns a transport.
 *
 * <p>A vLLM server's listener ends, for good, at a question that it cannot decode or about a rank
 * that it does not have; after that no handshake with it succeeds. So ranks are checked against
 * what the engine says of itself before it is asked.
 *
 * <p>Immutable; safe for any thread. Each call has a socket of its own.
 */
public final class VllmHandshake {
    private static final int CLOCK_SAMPLES = 3;
    private static final int MAX_FRAMES = 8;
    private static final int MAX_MESSAGE_BYTES = 64 << 20;

    /** A connection whose own handshake takes longer is made anew. */
    static final int CONNECTION_HANDSHAKE_MS = 1_000;

    /** An answer that takes longer may be one to a question that was never sent; doubles. */
    private static final long LOST_AFTER_NS = TimeUnit.MILLISECONDS.toNanos(20);

    /**
     * How patient a handshake is.
     *
     * @param timeout longest wait for a connection and for each answer, 1 ms to 24 days
     * @param attempts questions asked of a peer that is unreachable or silent, at least 1
     * @param backoff pause after the first failed attempt; doubles with each
     */
    public record Patience(Duration timeout, int attempts, Duration backoff) {
        private static final Duration LEAST_TIMEOUT = Duration.ofMillis(1);
        private static final Duration LONGEST_TIMEOUT = Duration.ofMillis(Integer.MAX_VALUE);

        /** vLLM's own timeout of 5 s; three attempts. */
        public static final Patience DEFAULT =
                new Patience(Duration.ofSeconds(5), 3, Duration.ofMillis(200));

        /**
         * Checks the values.
         *
         * @throws IllegalArgumentException naming the value that cannot be
         */
        public Patience {
            if (timeout.compareTo(LEAST_TIMEOUT) < 0 || timeout.compareTo(LONGEST_TIMEOUT) > 0) {
                throw new IllegalArgumentException(
                        "timeout="
                                + timeout
                                + ", limits are 1 ms.."
                                + LONGEST_TIMEOUT.toMillis()
                                + " ms");
            }
            if (attempts < 1) {
                throw new IllegalArgumentException("attempts=" + attempts + ", at least 1");
            }
            if (backoff.isNegative()) {
                throw new IllegalArgumentException("backoff=" + backoff + ", at least 0");
            }
        }

        private int timeoutMs() {
            return Math.toIntExact(timeout.toMillis());
        }
    }

    private final Patience patience;
    private final Optional<String> expectedHash;
    private final int connectionHandshakeMs;

    /**
     * Makes one.
     *
     * @param patience timeouts and retries
     * @param expectedHash the only compatibility hash that is accepted; empty accepts all
     */
    public VllmHandshake(Patience patience, Optional<String> expectedHash) {
        this(patience, expectedHash, CONNECTION_HANDSHAKE_MS);
    }

    VllmHandshake(Patience patience, Optional<String> expectedHash, int connectionHandshakeMs) {
        this.patience = patience;
        this.expectedHash = expectedHash;
        this.connectionHandshakeMs = connectionHandshakeMs;
    }

    /** Makes one with vLLM's timeout that accepts every compatibility hash. */
    public VllmHandshake() {
        this(Patience.DEFAULT, Optional.empty());
    }

    /**
     * Asks all ranks of the engine that holds the blocks of a prefill answer.
     *
     * @param params the answer
     * @return the engine
     * @throws VllmPeerException as {@link #ask(KvTransferParams, TensorRank)}
     */
    public VllmEngine ask(KvTransferParams params) {
        return ask(params, IntStream.range(0, HandoffFields.tensorSize(params)));
    }

    /**
     * Asks those ranks of the engine that holds the blocks of a prefill answer, that a rank here
     * will pull from or must tell of it.
     *
     * @param params the answer
     * @param local the rank here
     * @return the engine
     * @throws VllmPeerException of kind {@code MALFORMED} if the answer does not say where to ask,
     *     {@code UNSUPPORTED} if the engine is pipelined or its ranks cannot be dealt out, {@code
     *     OTHER_ENGINE} if another engine answers, or as {@link #ask(String, int, int, int)}
     */
    public VllmEngine ask(KvTransferParams params, TensorRank local) {
        final TensorSplit split = TensorSplit.of(local, HandoffFields.tensorSize(params));
        return ask(params, split.ranks().stream().mapToInt(rank -> rank));
    }

    private VllmEngine ask(KvTransferParams params, IntStream ranks) {
        final String engineId = HandoffFields.engineId(params);
        HandoffFields.requirePlainPull(params);
        final String host = HandoffFields.host(params);
        final int port = HandoffFields.port(params);
        return new VllmEngine(
                engineId,
                HandoffFields.tensorSize(params),
                ranks.mapToObj(
                                rank ->
                                        requireEngine(
                                                ask(host, port, 0, rank), engineId, host, port))
                        .toList());
    }

    private static VllmAgent requireEngine(
            VllmAgent agent, String engineId, String host, int port) {
        if (!agent.engineId().equals(engineId)) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.OTHER_ENGINE,
                    HostPort.of(host, port)
                            + " is engine "
                            + agent.engineId()
                            + ", not "
                            + engineId
                            + ": the one that prefilled has ended and its blocks with it");
        }
        return agent;
    }

    /**
     * Asks one rank of an engine.
     *
     * @param host of its side channel
     * @param port of its side channel
     * @param pipelineRank a pipeline parallel rank that the engine is known to have
     * @param tensorRank a tensor parallel rank that the engine is known to have
     * @return the rank
     * @throws VllmPeerException of kind {@code UNREACHABLE} or {@code TIMEOUT} after all attempts,
     *     at once of kind {@code MALFORMED}, {@code INCOMPATIBLE} or {@code UNKNOWN_RANK}
     */
    public VllmAgent ask(String host, int port, int pipelineRank, int tensorRank) {
        if (port < 1 || port > 65_535) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.MALFORMED,
                    "side channel " + HostPort.of(host, port) + ": ports are 1 to 65535");
        }
        if (pipelineRank < 0 || tensorRank < 0) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.UNKNOWN_RANK,
                    "ranks are at least 0, not " + pipelineRank + "/" + tensorRank);
        }
        final HandshakeCodec.Question question =
                new HandshakeCodec.Question(pipelineRank, tensorRank);
        long backoffNs = TimeUnit.NANOSECONDS.convert(patience.backoff()); // the longest for longer
        for (int attempt = 1; ; attempt++) {
            try {
                return attempt(host, port, question);
            } catch (VllmPeerException e) {
                if (!e.retryable() || attempt == patience.attempts()) {
                    throw e;
                }
            }
            LockSupport.parkNanos(backoffNs);
            backoffNs = 2 * Math.min(backoffNs, Long.MAX_VALUE / 2);
        }
    }

    private VllmAgent attempt(String host, int port, HandshakeCodec.Question question) {
        final String peer = HostPort.of(host, port);
        requireListener(host, port);
        try (ZContext context = new ZContext(1)) {
            context.setLinger(0);
            final ZMQ.Socket socket = context.createSocket(SocketType.REQ);
            socket.setSendTimeOut(patience.timeoutMs());
            socket.setHandshakeIvl(connectionHandshakeMs);
            FrameLimit.set(socket, MAX_MESSAGE_BYTES);
            socket.setIPv6(HostPort.isV6(host));
            socket.connect("tcp://" + peer);
            return converse(context, socket, peer, question);
        } catch (ZMQException e) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.UNREACHABLE, peer + ": " + e.getMessage(), e);
        }
    }

    /**
     * ZMQ connects for ever without a word; a plain connection fails at once where nothing listens.
     */
    private void requireListener(String host, int port) {
        try (Socket probe = new Socket()) {
            probe.connect(new InetSocketAddress(host, port), patience.timeoutMs());
        } catch (IOException e) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.UNREACHABLE,
                    "no side channel at "
                            + HostPort.of(host, port)
                            + " ("
                            + FailureText.of(e)
                            + "); check that the prefill server runs and that its"
                            + " VLLM_NIXL_SIDE_CHANNEL_HOST and VLLM_NIXL_SIDE_CHANNEL_PORT can be"
                            + " reached from here",
                    e);
        }
    }

    /**
     * Asks a few times: the first round trip contains the connection's own handshake, later ones
     * tell the clock better.
     */
    private VllmAgent converse(
            ZContext context, ZMQ.Socket socket, String peer, HandshakeCodec.Question question) {
        HandshakeCodec.Answer answer = null;
        long roundTripNs = Long.MAX_VALUE;
        long offsetNs = 0;
        for (int sample = 0; sample < CLOCK_SAMPLES; sample++) {
            final long sentNs = System.nanoTime();
            socket.send(HandshakeCodec.question(question), 0);
            final List<byte[]> frames = receive(context, socket, peer);
            final long tripNs = System.nanoTime() - sentNs;
            answer = HandshakeCodec.parseAnswer(frames.getFirst(), peer);
            final long clockNs = HandshakeCodec.parseClock(frames.get(1), peer);
            if (tripNs < roundTripNs) {
                roundTripNs = tripNs;
                offsetNs = clockNs - (sentNs + tripNs / 2);
            }
        }
        requireCompatible(peer, answer.compatibilityHash(), expectedHash);
        final AgentMetadataCodec.Decoded decoded =
                AgentMetadataCodec.decode(answer.metadata().toArray());
        return new VllmAgent(
                answer.compatibilityHash(),
                question.pipelineRank(),
                question.tensorRank(),
                decoded.metadata(),
                offsetNs,
                roundTripNs,
                answer.unknownKeys() + decoded.unknownKeys());
    }

    /** The first frame of an answer; null where none comes in time. */
    private byte[] firstFrame(ZContext context, ZMQ.Socket socket) {
        final long endNs = System.nanoTime() + patience.timeout().toNanos();
        long waitNs = LOST_AFTER_NS;
        for (long leftNs = endNs - System.nanoTime();
                leftNs > 0;
                leftNs = endNs - System.nanoTime()) {
            socket.setReceiveTimeOut(ceilMs(Math.min(waitNs, leftNs)));
            final byte[] frame = socket.recv();
            if (frame != null) {
                return frame;
            }
            registerAnother(context);
            waitNs *= 2;
        }
        return null;
    }

    private static int ceilMs(long ns) {
        return Math.toIntExact(Math.ceilDiv(ns, TimeUnit.MILLISECONDS.toNanos(1)));
    }

    /**
     * JeroMQ 0.6 loses some connections as they are made (one of thirty on a loopback): its
     * selector drops them together with the attempt that made them, and takes them up again when
     * the context registers another channel.
     */
    private static void registerAnother(ZContext context) {
        try (ZMQ.Socket other = context.createSocket(SocketType.PULL)) {
            other.bind("tcp://127.0.0.1:*");
        } catch (ZMQException e) {
            // no port: the time for the connection's own handshake ends the wait
        }
    }

    private List<byte[]> receive(ZContext context, ZMQ.Socket socket, String peer) {
        final List<byte[]> frames = new ArrayList<>(2);
        byte[] frame = firstFrame(context, socket);
        if (frame == null) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.TIMEOUT,
                    peer
                            + " accepted a connection but sent no answer within "
                            + patience.timeoutMs()
                            + " ms; it may be no side channel, or its listener has ended (a"
                            + " question about a rank that it does not have does that)");
        }
        frames.add(frame);
        while (socket.hasReceiveMore()) {
            frame = socket.recv();
            if (frames.size() < MAX_FRAMES) {
                frames.add(frame);
            }
        }
        if (frames.size() != 2) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.MALFORMED,
                    "handshake answer of "
                            + peer
                            + " has "
                            + frames.size()
                            + " frames instead of 2: metadata and clock");
        }
        return frames;
    }

    /** Refuses another hash than the expected one. */
    static void requireCompatible(String peer, String hash, Optional<String> expected) {
        if (expected.isPresent() && !expected.get().equals(hash)) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.INCOMPATIBLE,
                    "compatibility hash of "
                            + peer
                            + " is "
                            + hash
                            + ", expected is "
                            + expected.get()
                            + ": versions, model, cache type or attention backend differ");
        }
    }
}

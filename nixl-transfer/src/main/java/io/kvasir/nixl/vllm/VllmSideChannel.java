package io.kvasir.nixl.vllm;

import io.kvasir.nixl.exchange.zmq.BoundPort;
import io.kvasir.nixl.exchange.zmq.FrameLimit;

import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZMQ;

import java.net.BindException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/**
 * The answering end of vLLM's handshake: lets a process here be the prefill engine of a peer. One
 * thread of its own answers; unlike vLLM's listener it outlives questions that it does not
 * understand, and answers them by a refusal.
 */
public final class VllmSideChannel implements AutoCloseable {
    private static final int POLL_MS = 50;
    private static final int MAX_QUESTION_BYTES = 1 << 16;
    private static final int MAX_FRAMES = 3;
    private static final byte[] EMPTY = new byte[0];

    private final ZContext context = new ZContext(1);
    private final ZMQ.Socket router;
    private final int port;
    private final List<byte[]> answers;
    private final LongSupplier clockNs;
    private final AtomicLong answered = new AtomicLong();
    private final AtomicLong refused = new AtomicLong();
    private final Thread thread;
    private volatile boolean closed;

    /**
     * Binds and answers from now on.
     *
     * @param host address to bind
     * @param port port to bind; 0 takes a free one
     * @param compatibilityHash what peers compare with their own
     * @param ranks metadata of each tensor parallel rank, of the only pipeline parallel rank
     * @param clockNs the clock that deadlines in {@code kv_transfer_params} are stamped with,
     *     usually {@link System#nanoTime}; called by the answering thread
     * @throws IllegalArgumentException if there is no rank
     * @throws IllegalStateException if the port is taken
     */
    public VllmSideChannel(
            String host,
            int port,
            String compatibilityHash,
            List<VllmAgentMetadata> ranks,
            LongSupplier clockNs) {
        if (ranks.isEmpty()) {
            throw new IllegalArgumentException("a side channel answers for at least one rank");
        }
        this.answers =
                ranks.stream()
                        .map(rank -> HandshakeCodec.answer(compatibilityHash, rank.encode()))
                        .toList();
        this.clockNs = clockNs;
        context.setLinger(0);
        this.router = context.createSocket(SocketType.ROUTER);
        FrameLimit.set(router, MAX_QUESTION_BYTES);
        router.setHandshakeIvl(VllmHandshake.CONNECTION_HANDSHAKE_MS);
        try {
            this.port = BoundPort.bind(router, host, port);
        } catch (BindException e) {
            context.close();
            throw new IllegalStateException(e.getMessage(), e);
        }
        this.thread =
                Thread.ofPlatform()
                        .daemon()
                        .name("vllm-side-channel-" + this.port)
                        .start(this::serve);
    }

    /**
     * Where it listens.
     *
     * @return the bound port
     */
    public int port() {
        return port;
    }

    /**
     * Questions answered with metadata.
     *
     * @return count since the start
     */
    public long answered() {
        return answered.get();
    }

    /**
     * Questions that were refused: other ranks, or not understood.
     *
     * @return count since the start
     */
    public long refused() {
        return refused.get();
    }

    private void serve() {
        final ZMQ.Poller poller = context.createPoller(1);
        poller.register(router, ZMQ.Poller.POLLIN);
        while (!closed) {
            if (poller.poll(POLL_MS) > 0) {
                answerOne();
            }
        }
        poller.close();
    }

    private void answerOne() {
        final List<byte[]> frames = new ArrayList<>(MAX_FRAMES);
        boolean more = true;
        int count = 0;
        while (more) {
            final byte[] frame = router.recv(count == 0 ? ZMQ.DONTWAIT : 0);
            if (frame == null) {
                return;
            }
            if (count++ < MAX_FRAMES) {
                frames.add(frame);
            }
            more = router.hasReceiveMore();
        }
        if (count != MAX_FRAMES || frames.get(1).length != 0) {
            refused.incrementAndGet(); // no request socket asks like that, so none waits
            return;
        }
        router.send(frames.getFirst(), ZMQ.SNDMORE);
        router.send(EMPTY, ZMQ.SNDMORE);
        router.send(answerTo(frames.get(2)), ZMQ.SNDMORE);
        router.send(HandshakeCodec.clock(clockNs.getAsLong()), 0);
    }

    private byte[] answerTo(byte[] message) {
        final HandshakeCodec.Question question;
        try {
            question = HandshakeCodec.parseQuestion(message);
        } catch (VllmPeerException e) {
            refused.incrementAndGet();
            return HandshakeCodec.refusal(HandshakeCodec.BAD_QUESTION, e.getMessage());
        }
        if (question.pipelineRank() != 0
                || question.tensorRank() < 0
                || question.tensorRank() >= answers.size()) {
            refused.incrementAndGet();
            return HandshakeCodec.refusal(
                    HandshakeCodec.UNKNOWN_RANK,
                    "pipeline rank "
                            + question.pipelineRank()
                            + ", tensor rank "
                            + question.tensorRank()
                            + " of 1 and "
                            + answers.size());
        }
        answered.incrementAndGet();
        return answers.get(question.tensorRank());
    }

    /** Ends it. Idempotent; waits for the answering thread. */
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

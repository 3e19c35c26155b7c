package io.kvasir.pipeline.publish;

import io.kvasir.pipeline.wire.EngineBatchWriter;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.InstantSource;
import java.util.Objects;

/**
 * Publishes the events of an engine's cache over ZMQ in the form of vLLM, with a socket that sends
 * old messages again: for authors of engines. Whatever reads the events of vLLM reads these.
 *
 * <pre>
 * message:  topic | number, 8 bytes big-endian, from 0 | [timestamp, [event, ...], rank]
 * </pre>
 *
 * <p>Publishing never waits: a subscriber that is too slow misses messages, and asks for them again
 * if it notices. What one connection asks for is answered request by request, and the connection
 * closed if none of an answer is read for five minutes.
 *
 * <p>Any thread may call any method; a lock orders them. One publisher for each rank.
 */
public final class EngineEventPublisher implements AutoCloseable {
    /** Messages that are kept for replays, as many as vLLM keeps. */
    public static final int REPLAY_MESSAGES = 10_000;

    /** Bytes of these messages at most. */
    public static final long REPLAY_BYTES = 256L << 20;

    private static final double MS_PER_SECOND = 1e3;

    private final byte[] topic;
    private final int dpRank;
    private final int blockSize;
    private final InstantSource clock;
    private final ReplayBuffer buffer = new ReplayBuffer(REPLAY_MESSAGES, REPLAY_BYTES);
    private final ZmqPublisher sockets;
    private boolean closed; // guarded by this

    /**
     * Binds the sockets.
     *
     * @param endpoint address of the publisher, such as {@code tcp://*:5557}; port 0 is any
     * @param replayEndpoint address of the replay socket; null for none
     * @param topic first frame of each message; may be empty
     * @param dpRank data-parallel rank
     * @param blockSize tokens per block
     * @throws IOException if an address cannot be bound
     */
    public EngineEventPublisher(
            String endpoint, String replayEndpoint, String topic, int dpRank, int blockSize)
            throws IOException {
        this(endpoint, replayEndpoint, topic, dpRank, blockSize, InstantSource.system());
    }

    EngineEventPublisher(
            String endpoint,
            String replayEndpoint,
            String topic,
            int dpRank,
            int blockSize,
            InstantSource clock)
            throws IOException {
        if (dpRank < 0 || blockSize <= 0) {
            throw new IllegalArgumentException(
                    "dpRank="
                            + dpRank
                            + " must not be negative, blockSize="
                            + blockSize
                            + " must be positive");
        }
        this.topic = topic.getBytes(StandardCharsets.UTF_8);
        this.dpRank = dpRank;
        this.blockSize = blockSize;
        this.clock = Objects.requireNonNull(clock);
        this.sockets = new ZmqPublisher(endpoint, replayEndpoint, this.topic, buffer);
    }

    /** The bound address, with the real port. */
    public String endpoint() {
        return sockets.endpoint();
    }

    /** The bound address for replays, with the real port; null if there is none. */
    public String replayEndpoint() {
        return sockets.replayEndpoint();
    }

    /** Messages that a subscriber was too slow for. */
    public long unsentMessages() {
        return sockets.unsentMessages();
    }

    /**
     * Publishes that consecutive blocks were stored.
     *
     * @param tokenIds tokens of all blocks
     * @param blockHashes the engine's own hash of each block
     * @param parentHash hash of the block before the first one; null at the start of a prompt
     * @param loraName name of the adapter; null for none
     * @return number of the message
     * @throws IllegalArgumentException if the tokens are not just these blocks
     * @throws IllegalStateException if the publisher is closed: nothing is published then, and no
     *     number used
     */
    public synchronized long publishStored(
            int[] tokenIds, long[] blockHashes, Long parentHash, String loraName) {
        if (tokenIds.length != (long) blockHashes.length * blockSize) {
            throw new IllegalArgumentException(
                    tokenIds.length
                            + " tokens are not "
                            + blockHashes.length
                            + " blocks of "
                            + blockSize);
        }
        return publish(
                EngineBatchWriter.stored(
                        now(), dpRank, tokenIds, blockHashes, parentHash, loraName));
    }

    /**
     * Publishes that one copy of each of these blocks was removed.
     *
     * @param blockHashes their hashes
     * @return number of the message
     * @throws IllegalStateException if the publisher is closed: nothing is published then, and no
     *     number used
     */
    public synchronized long publishRemoved(long... blockHashes) {
        return publish(EngineBatchWriter.removed(now(), dpRank, blockHashes));
    }

    /**
     * Publishes that no block is held any more.
     *
     * @return number of the message
     * @throws IllegalStateException if the publisher is closed: nothing is published then, and no
     *     number used
     */
    public synchronized long publishAllCleared() {
        return publish(EngineBatchWriter.cleared(now(), dpRank));
    }

    private double now() {
        return clock.millis() / MS_PER_SECOND;
    }

    private long publish(byte[] batch) {
        if (closed) {
            throw new IllegalStateException("the publisher is closed");
        }
        final long number = buffer.add(batch);
        sockets.send(topic, ZmqPublisher.number(number), batch);
        return number;
    }

    /** Ends the sockets; what was published is sent if that takes no long time. Idempotent. */
    @Override
    public void close() {
        synchronized (this) {
            closed = true; // what comes later would be behind the end of the sockets
        }
        sockets.close();
    }
}

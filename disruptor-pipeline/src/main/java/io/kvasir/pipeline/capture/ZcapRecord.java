package io.kvasir.pipeline.capture;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * One record of a capture: the frames of a ZMQ message exactly as they were received, or a mark.
 *
 * @param timeNs wall-clock time of receipt, ns since 1970
 * @param source where the message came from
 * @param frames the message parts, in order; not copied
 */
public record ZcapRecord(long timeNs, Source source, List<byte[]> frames) {
    /** Where a record came from. */
    public enum Source {
        /** Received from the publisher. */
        SUBSCRIPTION,
        /** Received as part of the answer to a replay request. */
        REPLAY_REPLY,
        /** Sent by the recorder as a replay request. */
        REPLAY_REQUEST,
        /** No message: a line of text that says what the driver did next. */
        MARK,
        /** Written by a newer recorder. */
        UNKNOWN
    }

    /** Keeps the list as it is, unmodifiable. */
    public ZcapRecord {
        frames = List.copyOf(frames);
    }

    /** Whether this is a message that carries an event batch: number and payload. */
    public boolean isEventMessage() {
        return (source == Source.SUBSCRIPTION || source == Source.REPLAY_REPLY)
                && frames.size() >= 2
                && frames.get(frames.size() - 2).length == Long.BYTES
                && sequence() >= 0;
    }

    /**
     * Number of the message: the frame before the last, big-endian; −1 ends a replay.
     *
     * @throws IndexOutOfBoundsException if there are fewer than two frames
     * @throws java.nio.BufferUnderflowException if that frame is shorter than 8 bytes
     */
    public long sequence() {
        return ByteBuffer.wrap(frames.get(frames.size() - 2)).getLong();
    }

    /** The last frame. */
    public byte[] payload() {
        return frames.getLast();
    }

    /** Text of a mark: its first frame as UTF-8. */
    public String text() {
        return new String(frames.getFirst(), StandardCharsets.UTF_8);
    }
}

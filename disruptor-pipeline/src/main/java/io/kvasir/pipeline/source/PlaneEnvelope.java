package io.kvasir.pipeline.source;

import io.kvasir.pipeline.zmtp.ZmtpMessage;

import java.nio.ByteBuffer;

/** Where the envelope lies in a message of an event plane over ZMQ, in the last of its frames. */
final class PlaneEnvelope {
    /** Frames of a message: topic, publisher, number, envelope. */
    static final int FRAMES = 4;

    /** First byte of the last frame; four bytes with the envelope's length follow. */
    static final byte VERSION = 1;

    private static final int FRAME = FRAMES - 1;
    private static final int HEAD_LENGTH = 1 + Integer.BYTES;

    private PlaneEnvelope() {}

    /**
     * Length of the envelope; negative where the frame is not of this version.
     *
     * @param message of {@link #FRAMES} frames
     */
    static int length(ZmtpMessage message) {
        final int offset = message.offset(FRAME);
        final int length = message.length(FRAME) - HEAD_LENGTH;
        final boolean isEnvelope =
                length >= 0
                        && message.bytes()[offset] == VERSION
                        && ByteBuffer.wrap(message.bytes()).getInt(offset + 1) == length;
        return isEnvelope ? length : -1;
    }

    /** Where it begins in the message's bytes. */
    static int offset(ZmtpMessage message) {
        return message.offset(FRAME) + HEAD_LENGTH;
    }
}

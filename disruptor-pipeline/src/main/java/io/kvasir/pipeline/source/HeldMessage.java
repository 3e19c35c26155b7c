package io.kvasir.pipeline.source;

/** Keeps one message for later. Not thread-safe. */
final class HeldMessage {
    private static final int RETAINED_BYTES = 1 << 16;
    private static final byte[] NOTHING = {};
    private static final long NONE = -1;

    private byte[] bytes = NOTHING;
    private int length;
    private long number = NONE;

    boolean isEmpty() {
        return number == NONE;
    }

    /** Number of the message, −1 if none is held. */
    long number() {
        return number;
    }

    byte[] bytes() {
        return bytes;
    }

    int length() {
        return length;
    }

    /** Copies a message, in exchange for one that is held. */
    void hold(long sequence, byte[] payload, int offset, int count) {
        if (bytes.length < count || (bytes.length > RETAINED_BYTES && count <= RETAINED_BYTES)) {
            bytes = new byte[count];
        }
        System.arraycopy(payload, offset, bytes, 0, count);
        length = count;
        number = sequence;
    }

    void drop() {
        number = NONE;
    }

    /** Hands the bytes over to the caller: what is held next takes others. */
    byte[] take() {
        final byte[] taken = bytes;
        bytes = NOTHING;
        number = NONE;
        return taken;
    }
}

package io.kvasir.pipeline.zmtp;

import java.util.Arrays;

/**
 * Cuts what one connection receives into commands and messages.
 *
 * <pre>
 *   frame:  | flags:1 | size:1, or 8 big-endian if LONG | body |      flags: MORE=1, LONG=2, COMMAND=4
 *   kept:   | complete frames of the message begun | incomplete frame |
 *           0                                      scanned            keptLength
 * </pre>
 *
 * Keeps only what has arrived of an incomplete message, never what a header announces.
 */
final class FrameReader {
    /** Takes what was read. */
    interface Receiver {
        /** Takes a message; false = not now: the same comes again after {@link #resume}. */
        boolean message(ZmtpMessage message) throws ZmtpException;

        /** Takes the body of a command. */
        void command(byte[] bytes, int offset, int length) throws ZmtpException;
    }

    private static final int MORE = 1;
    private static final int LONG = 2;
    private static final int COMMAND = 4;
    private static final int MAX_FRAMES = 1_024;
    private static final int MAX_COMMAND_BYTES = 1 << 16;
    private static final int RETAINED_BYTES = 2_048;
    private static final byte[] NOTHING = {};

    private final ByteBudget budget;
    private final int maxMessageBytes;
    private final ZmtpMessage message = new ZmtpMessage();
    private byte[] kept = NOTHING;
    private int keptLength;
    private int scanned;
    private int messageBytes;
    private boolean released;

    FrameReader(long maxMessageBytes, ByteBudget budget) {
        this.maxMessageBytes = (int) Math.min(maxMessageBytes, Integer.MAX_VALUE >> 1);
        this.budget = budget;
    }

    /** Takes bytes from {@code from} to {@code to}; false if the receiver has refused a message. */
    boolean read(byte[] data, int from, int to, Receiver receiver) throws ZmtpException {
        if (keptLength > 0) {
            keep(data, from, to);
            return resume(receiver);
        }
        final int used = cut(data, from, to, receiver);
        final boolean taken = used >= 0;
        keep(data, taken ? used : ~used, to);
        return taken;
    }

    /** Goes on with what is kept; false if the receiver has refused a message again. */
    boolean resume(Receiver receiver) throws ZmtpException {
        final int used = cut(kept, 0, keptLength, receiver);
        final boolean taken = used >= 0;
        discard(taken ? used : ~used);
        return taken;
    }

    /** Returns the start of the first message not taken, its complement if it was refused. */
    private int cut(byte[] data, int start, int end, Receiver receiver) throws ZmtpException {
        int begin = start;
        int at = start + scanned;
        while (end - at >= 2) {
            final int flags = data[at];
            if ((flags & ~(MORE | LONG | COMMAND)) != 0) {
                throw new ZmtpException("sent a frame with flags " + (flags & 0xff));
            }
            final int header = (flags & LONG) == 0 ? 2 : 9;
            if (end - at < header) {
                break;
            }
            final long size = header == 2 ? data[at + 1] & 0xff : longSize(data, at + 1);
            check(flags, size);
            if (end - at - header < size) {
                break;
            }
            final int body = at + header;
            at = body + (int) size;
            if ((flags & COMMAND) != 0) {
                receiver.command(data, body, (int) size);
                if (message.frames() == 0) {
                    begin = at;
                }
                continue;
            }
            message.add(body - begin, (int) size);
            messageBytes += (int) size;
            if ((flags & MORE) == 0) {
                final boolean taken = receiver.message(message.in(data, begin));
                message.clear();
                messageBytes = 0;
                if (!taken) {
                    scanned = 0;
                    return ~begin;
                }
                begin = at;
            }
        }
        scanned = at - begin;
        return begin;
    }

    private static long longSize(byte[] data, int at) {
        long size = 0;
        for (int i = 0; i < Long.BYTES; i++) {
            size = size << 8 | (data[at + i] & 0xff);
        }
        return size;
    }

    private void check(int flags, long size) throws ZmtpException {
        final boolean command = (flags & COMMAND) != 0;
        final long most = command ? MAX_COMMAND_BYTES : maxMessageBytes - messageBytes;
        if (size < 0 || size > most) {
            throw new ZmtpException(
                    "announced "
                            + Long.toUnsignedString(size)
                            + " bytes where at most "
                            + most
                            + " are accepted; raise max-event-bytes if it is right");
        }
        if (message.frames() >= MAX_FRAMES) {
            throw new ZmtpException("sent a message of more than " + MAX_FRAMES + " frames");
        }
    }

    private void keep(byte[] data, int from, int to) throws ZmtpException {
        final int length = to - from;
        if (length == 0 || released) {
            return;
        }
        final int needed = keptLength + length;
        if (needed > kept.length) {
            grow(needed);
        }
        System.arraycopy(data, from, kept, keptLength, length);
        keptLength = needed;
    }

    private void grow(int needed) throws ZmtpException {
        final int capacity = Math.max(needed, Math.min(2 * needed, maxMessageBytes));
        if (!budget.take(capacity - kept.length)) {
            throw new ZmtpException(
                    "sent the start of a message, and there is no memory for "
                            + needed
                            + " bytes of it: all incomplete and waiting messages together may"
                            + " have "
                            + budget.limit()
                            + "; raise event-receive-bytes");
        }
        kept = Arrays.copyOf(kept, capacity);
    }

    private void discard(int used) {
        if (released) {
            return; // the receiver has closed the connection
        }
        keptLength -= used;
        if (keptLength > 0) {
            System.arraycopy(kept, used, kept, 0, keptLength);
        } else if (kept.length > RETAINED_BYTES) {
            giveBack();
        }
    }

    private void giveBack() {
        budget.give(kept.length);
        kept = NOTHING;
        keptLength = 0;
    }

    /** Gives its memory back, for good; may be called by the receiver. */
    void release() {
        released = true;
        giveBack();
    }
}

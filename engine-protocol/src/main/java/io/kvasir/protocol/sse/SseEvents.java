package io.kvasir.protocol.sse;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Cuts a stream of server-sent events into whole events, wherever the network cut its bytes, and
 * keeps their bytes to be handed on. An event is whole when its blank line has arrived; lines end
 * in LF or CR LF. Bytes are copied once, into the buffer that they are handed out from; nothing is
 * allocated for an event once the buffer has grown to what comes at a time. One thread at a time.
 */
public final class SseEvents {
    /** An event longer than this is handed out in parts, and the listener does not see it. */
    public static final int MAX_EVENT_BYTES = 1 << 20;

    private static final byte[] DATA = "data:".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] NOTHING = new byte[0];
    private static final int FIRST_LENGTH = 4096;

    /** Sees each event that has one data line; comments and others are kept unseen. */
    @FunctionalInterface
    public interface Listener {
        /**
         * Takes the value of an event's data line, without blanks around it.
         *
         * @param bytes may be changed in the value's range, not in length; valid during the call
         * @param from index of the value's first byte
         * @param to index after its last byte
         * @return whether the event is kept to be handed out; false drops its bytes
         */
        boolean onData(byte[] bytes, int from, int to);
    }

    private final Listener listener;
    private byte[] buffer = new byte[FIRST_LENGTH];
    private int length; // bytes in the buffer
    private int taken; // bytes that were handed out
    private int ready; // bytes of whole events that may go, those handed out included
    private int whole; // bytes of whole events; those from ready on are of the one held back
    private int heldAt; // where a member can be added to that one
    private boolean holds; // the listener holds back the event that it sees
    private byte[] addition = NOTHING; // to the one held back
    private int scanned; // where to look for the end of the open event
    private int lineStart;
    private boolean inOversized;

    /**
     * @param listener called by {@link #accept}, in the order of the stream
     */
    public SseEvents(Listener listener) {
        this.listener = listener;
    }

    /**
     * Takes the next bytes of the stream.
     *
     * @param chunk consumed
     */
    public void accept(ByteBuffer chunk) {
        compact();
        append(chunk);
        for (int i = scanned; i < length; i++) {
            if (buffer[i] != '\n') {
                continue;
            }
            final boolean blank =
                    i == lineStart || (i == lineStart + 1 && i > 0 && buffer[i - 1] == '\r');
            lineStart = i + 1;
            if (!blank) {
                continue;
            }
            if (inOversized) {
                inOversized = false;
                whole = i + 1;
                ready = whole;
            } else if (isKept(whole, i + 1)) {
                ready = holds ? whole : i + 1;
                whole = i + 1;
            } else {
                extendHeld(i + 1);
                System.arraycopy(buffer, i + 1, buffer, whole, length - i - 1);
                length -= i + 1 - whole;
                i = whole - 1;
                lineStart = whole;
                ready = whole;
            }
        }
        if (inOversized || length - whole > MAX_EVENT_BYTES) {
            inOversized = true;
            whole = endsInBareCr() ? length - 1 : length;
            ready = whole;
        }
        scanned = length;
    }

    /**
     * Has the event that the listener sees, and keeps, wait until the next one was seen.
     *
     * @param at where bytes can be added to it, in the listener's bytes
     */
    public void holdBack(int at) {
        holds = true;
        heldAt = at;
    }

    /**
     * Adds bytes to the event that is held back, in the room of the one that the listener sees and
     * drops; does nothing without one, or without enough room.
     */
    public void addToHeld(byte[] bytes) {
        addition = bytes;
    }

    private void extendHeld(int droppedEnd) {
        final int added = addition.length;
        if (ready < whole && added <= droppedEnd - whole) {
            System.arraycopy(buffer, heldAt, buffer, heldAt + added, whole - heldAt);
            System.arraycopy(addition, 0, buffer, heldAt, added);
            whole += added;
        }
    }

    /** No event follows the one that is held back. */
    public void letGo() {
        ready = whole;
    }

    /** Whether the open line is a CR so far: it may be a blank one's, which is seen whole only. */
    private boolean endsInBareCr() {
        return lineStart >= 0 && lineStart == length - 1 && buffer[lineStart] == '\r';
    }

    /** Bytes of whole events that wait to be handed out. */
    public int readyBytes() {
        return ready - taken;
    }

    /**
     * Hands out the whole events that have come since the last time, in the same bytes.
     *
     * @return may be empty; valid until the next call
     */
    public ByteBuffer takeReady() {
        final ByteBuffer events = ByteBuffer.wrap(buffer, taken, ready - taken);
        taken = ready;
        return events;
    }

    /** Hands out everything: whole events, and bytes of an event whose end never came. */
    public ByteBuffer takeAll() {
        whole = length;
        ready = length;
        return takeReady();
    }

    private void compact() {
        if (taken == 0) {
            return;
        }
        System.arraycopy(buffer, taken, buffer, 0, length - taken);
        length -= taken;
        scanned -= taken;
        lineStart -= taken;
        ready -= taken;
        whole -= taken;
        heldAt -= taken;
        taken = 0;
    }

    private void append(ByteBuffer chunk) {
        final int added = chunk.remaining();
        if (buffer.length - length < added) {
            buffer = Arrays.copyOf(buffer, Math.max(2 * buffer.length, length + added));
        }
        chunk.get(buffer, length, added);
        length += added;
    }

    private boolean isKept(int from, int to) {
        holds = false;
        addition = NOTHING;
        int dataLines = 0;
        int dataFrom = 0;
        int dataTo = 0;
        for (int line = from; line < to; ) {
            int end = line;
            while (buffer[end] != '\n') {
                end++;
            }
            if (isData(line, end)) {
                dataLines++;
                dataFrom = line + DATA.length;
                dataTo = end;
            }
            line = end + 1;
        }
        if (dataLines != 1) {
            return true; // a comment, or a form that no engine uses
        }
        while (dataFrom < dataTo && buffer[dataFrom] == ' ') {
            dataFrom++;
        }
        while (dataTo > dataFrom && (buffer[dataTo - 1] == '\r' || buffer[dataTo - 1] == ' ')) {
            dataTo--;
        }
        return listener.onData(buffer, dataFrom, dataTo);
    }

    private boolean isData(int from, int to) {
        return to - from >= DATA.length
                && Arrays.equals(buffer, from, from + DATA.length, DATA, 0, DATA.length);
    }
}

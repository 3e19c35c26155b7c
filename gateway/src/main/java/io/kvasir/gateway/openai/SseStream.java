package io.kvasir.gateway.openai;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.function.IntSupplier;

/**
 * Passes a stream of server-sent events through in whole events and reads from each: the first
 * output token, the usage and the end mark. An event is held back until its blank line has arrived,
 * so that a stream that breaks off can still be ended by an error event. Lines end in LF or CR LF.
 *
 * <p>Bytes of events are not changed but for the number of cached tokens, where another one is
 * given; the one event that may be left out is the usage that the gateway itself asked for. One
 * thread at a time.
 */
public final class SseStream {
    /** An event longer than this is passed on in parts and not read. */
    static final int MAX_EVENT_BYTES = 1 << 20;

    private static final byte[] DATA = "data:".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] DONE = "[DONE]".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] USAGE = "\"usage\"".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] ERROR = "{\"error\"".getBytes(StandardCharsets.US_ASCII);

    private final UsageReader reader = new UsageReader();
    private final boolean dropUsage;
    private final IntSupplier cachedTokens;
    private byte[] buffer = new byte[4096];
    private int length; // bytes in the buffer
    private int taken; // bytes that were handed out
    private int ready; // bytes of whole events, those handed out included
    private int scanned; // where to look for the end of the open event
    private int lineStart;
    private boolean inOversized;
    private boolean firstToken;
    private boolean done;
    private int errorStatus; // 0 without an error event
    private int outputEvents;

    /**
     * @param dropUsage leave out the event that carries usage and no choice
     * @param cachedTokens what usage is to state of cached tokens, asked when it passes; {@link
     *     UsageReader#UNKNOWN} leaves what it states
     */
    public SseStream(boolean dropUsage, IntSupplier cachedTokens) {
        this.dropUsage = dropUsage;
        this.cachedTokens = cachedTokens;
    }

    /**
     * Takes the next bytes of the stream.
     *
     * @param chunk consumed
     */
    public void accept(ByteBuffer chunk) {
        compact();
        append(chunk);
        int eventStart = ready;
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
                eventStart = i + 1;
            } else if (inspect(eventStart, i + 1)) {
                eventStart = i + 1;
            } else {
                System.arraycopy(buffer, i + 1, buffer, eventStart, length - i - 1);
                length -= i + 1 - eventStart;
                i = eventStart - 1;
                lineStart = eventStart;
            }
        }
        if (inOversized || length - eventStart > MAX_EVENT_BYTES) {
            inOversized = true;
            eventStart = length;
        }
        scanned = length;
        ready = eventStart;
    }

    /** Bytes of whole events that wait to be sent on. */
    public int readyBytes() {
        return ready - taken;
    }

    /**
     * Hands out the whole events that have come since the last time, in the same bytes.
     *
     * @return may be empty; valid until the next call
     */
    public ByteBuffer takeReady() {
        final ByteBuffer whole = ByteBuffer.wrap(buffer, taken, ready - taken);
        taken = ready;
        return whole;
    }

    /** Hands out everything: whole events, and bytes of an event whose end never came. */
    public ByteBuffer takeAll() {
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

    /**
     * Reads the event.
     *
     * @return whether it is to be passed on
     */
    private boolean inspect(int from, int to) {
        int dataLines = 0;
        int dataFrom = 0;
        int dataTo = 0;
        for (int line = from; line < to; ) {
            int end = line;
            while (buffer[end] != '\n') {
                end++;
            }
            if (startsWith(DATA, line, end)) {
                dataLines++;
                dataFrom = line + DATA.length;
                dataTo = end;
            }
            line = end + 1;
        }
        if (dataLines != 1) {
            return true; // a comment, or a form that no engine uses: not ours to read
        }
        while (dataFrom < dataTo && buffer[dataFrom] == ' ') {
            dataFrom++;
        }
        while (dataTo > dataFrom && (buffer[dataTo - 1] == '\r' || buffer[dataTo - 1] == ' ')) {
            dataTo--;
        }
        return inspectData(dataFrom, dataTo);
    }

    private boolean inspectData(int from, int to) {
        if (startsWith(DONE, from, to)) {
            done = true;
            return true;
        }
        if (startsWith(ERROR, from, to)) {
            errorStatus = ErrorEvent.status(buffer, from, to - from);
            return true;
        }
        final boolean mayHaveUsage = contains(USAGE, from, to);
        if (firstToken && !mayHaveUsage) {
            outputEvents++; // after the first token every event carries one
            return true;
        }
        if (reader.read(buffer, from, to - from) && mayHaveUsage) {
            reader.restate(buffer, cachedTokens.getAsInt());
        }
        if (reader.hasOutputToken()) {
            firstToken = true;
        }
        if (reader.hasChoice() && firstToken) {
            outputEvents++;
        }
        return !(dropUsage && reader.isUsageOnly());
    }

    private boolean startsWith(byte[] prefix, int from, int to) {
        return to - from >= prefix.length
                && Arrays.equals(buffer, from, from + prefix.length, prefix, 0, prefix.length);
    }

    private boolean contains(byte[] part, int from, int to) {
        for (int i = from; i <= to - part.length; i++) {
            if (buffer[i] == part[0] && startsWith(part, i, to)) {
                return true;
            }
        }
        return false;
    }

    /** An output token has passed. */
    public boolean sawFirstToken() {
        return firstToken;
    }

    /** The end mark has passed. */
    public boolean sawDone() {
        return done;
    }

    /** The engine sent an error event. */
    public boolean sawError() {
        return errorStatus != 0;
    }

    /** The HTTP status that its error event stands for, 500 where that says none; else 0. */
    public int errorStatus() {
        return errorStatus;
    }

    /** Output tokens so far: exact once the usage has passed, before that one for each event. */
    public int outputTokens() {
        return reader.completionTokens() >= 0 ? reader.completionTokens() : outputEvents;
    }

    /** The usage that has passed. */
    public UsageReader usage() {
        return reader;
    }
}

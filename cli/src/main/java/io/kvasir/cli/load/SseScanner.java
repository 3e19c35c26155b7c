package io.kvasir.cli.load;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * Cuts a stream of server-sent events into the values of its {@code data} lines, wherever the
 * network cut the bytes. Other fields and comments are skipped. One thread at a time; no copy per
 * line once the line buffer has grown to the longest line.
 */
final class SseScanner {
    private static final byte[] FIELD = {'d', 'a', 't', 'a', ':'};
    private static final int FIRST_LINE_LENGTH = 1024;

    private final DataListener listener;
    private byte[] line = new byte[FIRST_LINE_LENGTH];
    private int length;

    /** Receives the value of one data line. */
    interface DataListener {
        /** The value lies in {@code bytes[from, to)}, valid during the call only. */
        void onData(byte[] bytes, int from, int to);
    }

    SseScanner(DataListener listener) {
        this.listener = listener;
    }

    /** Takes all remaining bytes of the buffer. */
    void feed(ByteBuffer buffer) {
        while (buffer.hasRemaining()) {
            final byte b = buffer.get();
            if (b == '\n') {
                endLine();
            } else {
                if (length == line.length) {
                    line = Arrays.copyOf(line, 2 * length);
                }
                line[length++] = b;
            }
        }
    }

    private void endLine() {
        final int end = length > 0 && line[length - 1] == '\r' ? length - 1 : length;
        length = 0;
        if (end >= FIELD.length && Arrays.equals(line, 0, FIELD.length, FIELD, 0, FIELD.length)) {
            final int from =
                    end > FIELD.length && line[FIELD.length] == ' '
                            ? FIELD.length + 1
                            : FIELD.length;
            listener.onData(line, from, end);
        }
    }
}

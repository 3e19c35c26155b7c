package io.kvasir.pipeline.wire;

import java.util.Arrays;
import java.util.Objects;

/**
 * Reads JSON from a byte range without allocating and without throwing on bad input. Integers are
 * read as 64 bits, unsigned up to 2<sup>64</sup>−1 and signed down to −2<sup>63</sup>, and never go
 * through a floating point number. Strings are compared as they are written: one with an escape
 * equals no name.
 *
 * <p>Nesting beyond {@value #MAX_DEPTH} fails the reader.
 */
final class JsonReader implements DocumentReader {
    static final int MAX_DEPTH = 64;

    private static final byte[] NOTHING = {};
    private static final byte[] NULL = EventFields.ascii("null");
    private static final byte[] TRUE = EventFields.ascii("true");
    private static final byte[] FALSE = EventFields.ascii("false");

    private byte[] buffer = NOTHING;
    private int position;
    private int limit;
    private int dataOffset;
    private int dataLength;
    private boolean escaped;
    private boolean failed;

    /**
     * Points the reader at a byte range and forgets an earlier failure.
     *
     * @param bytes the bytes; kept until the next call, not copied
     * @param offset first byte of the range
     * @param length bytes in the range
     * @return this
     * @throws IndexOutOfBoundsException if the range does not lie in {@code bytes}
     */
    JsonReader wrap(byte[] bytes, int offset, int length) {
        Objects.checkFromIndexSize(offset, length, bytes.length);
        buffer = bytes;
        position = offset;
        limit = offset + length;
        dataOffset = offset;
        dataLength = 0;
        escaped = false;
        failed = false;
        return this;
    }

    @Override
    public boolean ok() {
        return !failed;
    }

    @Override
    public int position() {
        return position;
    }

    @Override
    public void position(int newPosition) {
        position = Objects.checkIndex(newPosition, limit + 1);
        failed = false;
    }

    @Override
    public MsgpackReader.Kind peek() {
        return switch (next()) {
            case -1 -> MsgpackReader.Kind.END;
            case '{' -> MsgpackReader.Kind.MAP;
            case '[' -> MsgpackReader.Kind.ARRAY;
            case '"' -> MsgpackReader.Kind.STRING;
            case 'n' -> MsgpackReader.Kind.NIL;
            case 't', 'f' -> MsgpackReader.Kind.BOOLEAN;
            case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9' ->
                    isInteger() ? MsgpackReader.Kind.INTEGER : MsgpackReader.Kind.FLOAT;
            default -> MsgpackReader.Kind.RESERVED;
        };
    }

    /** The next byte that is no white space, -1 at the end or after a failure. */
    private int next() {
        while (!failed && position < limit) {
            final byte b = buffer[position];
            if (b != ' ' && b != '\t' && b != '\n' && b != '\r') {
                return b & 0xff;
            }
            position++;
        }
        return -1;
    }

    private boolean isInteger() {
        for (int at = position + 1; at < limit; at++) {
            final byte b = buffer[at];
            if (b == '.' || b == 'e' || b == 'E') {
                return false;
            }
            if (b < '0' || b > '9') {
                return true;
            }
        }
        return true;
    }

    @Override
    public long readLong() {
        final boolean negative = next() == '-';
        int at = negative ? position + 1 : position;
        final int first = at;
        long value = 0;
        for (; at < limit && buffer[at] >= '0' && buffer[at] <= '9'; at++) {
            final int digit = buffer[at] - '0';
            final long tenfold = value * 10;
            if (Long.compareUnsigned(value, Long.divideUnsigned(-1L, 10)) > 0
                    || Long.compareUnsigned(tenfold + digit, tenfold) < 0) {
                return fail(); // beyond 64 bits
            }
            value = tenfold + digit;
        }
        final boolean leadingZero = at - first > 1 && buffer[first] == '0';
        final boolean fraction =
                at < limit && (buffer[at] == '.' || buffer[at] == 'e' || buffer[at] == 'E');
        // of negative ones the magnitude is at most 2^63
        if (failed || at == first || leadingZero || fraction || (negative && -value > 0)) {
            return fail();
        }
        position = at;
        return negative ? -value : value;
    }

    @Override
    public boolean readData() {
        if (next() != '"') {
            fail();
            return false;
        }
        final int first = position + 1;
        boolean escapes = false;
        for (int at = first; at < limit; at++) {
            if (buffer[at] == '\\') {
                escapes = true;
                at++;
            } else if (buffer[at] == '"') {
                dataOffset = first;
                dataLength = at - first;
                escaped = escapes;
                position = at + 1;
                return true;
            }
        }
        fail();
        return false;
    }

    @Override
    public boolean dataEquals(byte[] expected) {
        return !escaped
                && dataLength == expected.length
                && Arrays.equals(
                        buffer, dataOffset, dataOffset + dataLength, expected, 0, dataLength);
    }

    @Override
    public boolean skip() {
        long maps = 0; // bit of a depth: whether that is a map
        int depth = 0;
        do {
            final int head = next();
            switch (head) {
                case '{', '[' -> {
                    if (depth == MAX_DEPTH) {
                        return failAndFalse();
                    }
                    maps = (maps << 1) | (head == '{' ? 1 : 0);
                    depth++;
                    position++;
                }
                case '}', ']' -> {
                    if (depth == 0 || ((maps & 1) != 0) != (head == '}')) {
                        return failAndFalse();
                    }
                    maps >>>= 1;
                    depth--;
                    position++;
                }
                case ',', ':' -> {
                    if (depth == 0) {
                        return failAndFalse();
                    }
                    position++;
                }
                case '"' -> readData();
                case 'n' -> word(NULL);
                case 't' -> word(TRUE);
                case 'f' -> word(FALSE);
                default -> number(head);
            }
        } while (!failed && depth > 0);
        return !failed;
    }

    private void word(byte[] word) {
        final int end = position + word.length;
        if (end > limit || !Arrays.equals(buffer, position, end, word, 0, word.length)) {
            fail();
        } else {
            position = end;
        }
    }

    private void number(int head) {
        if (head != '-' && (head < '0' || head > '9')) {
            fail();
            return;
        }
        position++;
        while (position < limit && isOfNumber(buffer[position])) {
            position++;
        }
    }

    private static boolean isOfNumber(byte b) {
        return (b >= '0' && b <= '9') || b == '.' || b == 'e' || b == 'E' || b == '+' || b == '-';
    }

    @Override
    public long openMap() {
        return open('{');
    }

    @Override
    public long openArray() {
        return open('[');
    }

    private long open(int head) {
        if (next() != head) {
            fail();
            return 0;
        }
        position++;
        return UNSIZED;
    }

    @Override
    public boolean hasMore(long left) {
        final int head = next();
        if (head == '}' || head == ']') {
            position++;
            return false;
        }
        if (left != UNSIZED) { // not the first one
            if (head != ',') {
                return failAndFalse();
            }
            position++;
        }
        return next() >= 0 || failAndFalse();
    }

    @Override
    public boolean readKey() {
        if (!readData()) {
            return false;
        }
        if (next() != ':') {
            return failAndFalse();
        }
        position++;
        return true;
    }

    private long fail() {
        failed = true;
        return 0;
    }

    private boolean failAndFalse() {
        failed = true;
        return false;
    }
}

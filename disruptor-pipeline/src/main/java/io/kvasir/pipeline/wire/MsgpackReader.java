package io.kvasir.pipeline.wire;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Objects;

/**
 * Reads msgpack from a byte range without allocating and without throwing on bad input.
 *
 * <p>The first value that does not fit (truncated, of another kind, a reserved byte) makes the
 * reader <em>failed</em>: from then on every read answers 0 or {@code false} and the position
 * stays. A caller checks {@link #ok()} once per value that matters instead of after every byte.
 * Bytes outside the wrapped range are never touched. One instance per thread.
 */
final class MsgpackReader implements DocumentReader {
    /** What the next value is; {@code END} stands for the end of the range. */
    public enum Kind {
        /** nil. */
        NIL,
        /** true or false. */
        BOOLEAN,
        /** any integer, signed or unsigned, of any width. */
        INTEGER,
        /** a 32- or 64-bit floating point number. */
        FLOAT,
        /** a text string. */
        STRING,
        /** a byte string. */
        BINARY,
        /** an array. */
        ARRAY,
        /** a map. */
        MAP,
        /** an application-defined extension. */
        EXTENSION,
        /** the byte 0xc1, which msgpack never uses. */
        RESERVED,
        /** nothing left, or the reader has failed. */
        END
    }

    private static final VarHandle SHORT =
            MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.BIG_ENDIAN);
    private static final VarHandle INT =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);
    private static final VarHandle LONG =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);
    private static final byte[] NOTHING = {};
    private static final Kind[] KINDS = kinds();

    private byte[] buffer = NOTHING;
    private int position;
    private int limit;
    private int dataOffset;
    private int dataLength;
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
    public MsgpackReader wrap(byte[] bytes, int offset, int length) {
        Objects.checkFromIndexSize(offset, length, bytes.length);
        buffer = bytes;
        position = offset;
        limit = offset + length;
        dataOffset = offset;
        dataLength = 0;
        failed = false;
        return this;
    }

    /** Whether everything read since {@link #wrap} was there and of the kind asked for. */
    @Override
    public boolean ok() {
        return !failed;
    }

    /** Index in the wrapped array of the next byte to be read. */
    @Override
    public int position() {
        return position;
    }

    /**
     * Goes to a position that an earlier {@link #position()} gave; an earlier failure is forgotten.
     *
     * @param newPosition index in the wrapped array
     * @throws IndexOutOfBoundsException if it lies beyond the wrapped range
     */
    @Override
    public void position(int newPosition) {
        position = Objects.checkIndex(newPosition, limit + 1);
        failed = false;
    }

    /** Kind of the next value; the position does not move. */
    @Override
    public Kind peek() {
        return failed || position >= limit ? Kind.END : KINDS[buffer[position] & 0xff];
    }

    /**
     * Reads an integer of any width.
     *
     * @return its value; an unsigned number above 2<sup>63</sup>−1 comes as the same 64 bits,
     *     negative. 0 and a failed reader if the next value is no integer
     */
    @Override
    public long readLong() {
        if (failed || position >= limit) {
            return fail();
        }
        final int head = buffer[position];
        if (head >= -32) { // fixint, both signs
            position++;
            return head;
        }
        final int at = position + 1;
        return switch (head & 0xff) {
            case 0xcc -> take(1) ? buffer[at] & 0xffL : 0;
            case 0xcd -> take(2) ? (short) SHORT.get(buffer, at) & 0xffffL : 0;
            case 0xce -> take(4) ? (int) INT.get(buffer, at) & 0xffff_ffffL : 0;
            case 0xcf, 0xd3 -> take(8) ? (long) LONG.get(buffer, at) : 0;
            case 0xd0 -> take(1) ? buffer[at] : 0;
            case 0xd1 -> take(2) ? (short) SHORT.get(buffer, at) : 0;
            case 0xd2 -> take(4) ? (int) INT.get(buffer, at) : 0;
            default -> fail();
        };
    }

    /**
     * Reads the head of an array; its elements follow.
     *
     * @return number of elements the head claims, 0..2<sup>32</sup>−1; as many need not be there.
     *     −1 and a failed reader if the next value is no array
     */
    public long readArrayHeader() {
        return readHeader(0x90, 0xdc, Kind.ARRAY);
    }

    /**
     * Reads the head of a map; its keys and values follow in turn.
     *
     * @return number of pairs the head claims, 0..2<sup>32</sup>−1; as many need not be there. −1
     *     and a failed reader if the next value is no map
     */
    public long readMapHeader() {
        return readHeader(0x80, 0xde, Kind.MAP);
    }

    @Override
    public long openMap() {
        return readMapHeader();
    }

    @Override
    public long openArray() {
        return readArrayHeader();
    }

    @Override
    public boolean hasMore(long left) {
        return !failed && left > 0;
    }

    @Override
    public boolean readKey() {
        if (peek() == Kind.STRING) {
            return readData();
        }
        skip();
        return false;
    }

    private long readHeader(int fix, int wide16, Kind kind) {
        if (peek() != kind) {
            fail();
            return -1;
        }
        final int head = buffer[position] & 0xff;
        final int at = position + 1;
        if ((head & 0xf0) == fix) {
            position++;
            return head & 0x0f;
        }
        if (head == wide16) {
            return take(2) ? (short) SHORT.get(buffer, at) & 0xffffL : -1;
        }
        return take(4) ? (int) INT.get(buffer, at) & 0xffff_ffffL : -1;
    }

    /**
     * Reads a string or byte string; {@link #dataOffset()} and {@link #dataLength()} then tell
     * where its bytes lie in the wrapped array.
     *
     * @return false and a failed reader if the next value is neither, or is cut off
     */
    @Override
    public boolean readData() {
        final Kind kind = peek();
        if (kind != Kind.STRING && kind != Kind.BINARY) {
            fail();
            return false;
        }
        final int head = buffer[position] & 0xff;
        final int at = position + 1;
        final int start = position;
        final long length;
        if (head < 0xc0) { // fixstr
            position++;
            length = head & 0x1f;
        } else if (head == 0xc4 || head == 0xd9) {
            length = take(1) ? buffer[at] & 0xffL : -1;
        } else if (head == 0xc5 || head == 0xda) {
            length = take(2) ? (short) SHORT.get(buffer, at) & 0xffffL : -1;
        } else {
            length = take(4) ? (int) INT.get(buffer, at) & 0xffff_ffffL : -1;
        }
        if (length < 0 || length > limit - position) {
            position = start;
            fail();
            return false;
        }
        dataOffset = position;
        dataLength = (int) length;
        position += (int) length;
        return true;
    }

    /** Where the bytes of the last {@link #readData()} start in the wrapped array. */
    public int dataOffset() {
        return dataOffset;
    }

    /** How many bytes the last {@link #readData()} found. */
    public int dataLength() {
        return dataLength;
    }

    /**
     * Whether the bytes of the last {@link #readData()} are these.
     *
     * @param expected bytes to compare with
     */
    @Override
    public boolean dataEquals(byte[] expected) {
        return dataLength == expected.length
                && Arrays.equals(
                        buffer, dataOffset, dataOffset + dataLength, expected, 0, dataLength);
    }

    /**
     * The bytes of the last {@link #readData()} as text; malformed UTF-8 is replaced. Allocates.
     */
    public String dataText() {
        return new String(buffer, dataOffset, dataLength, StandardCharsets.UTF_8);
    }

    /**
     * A byte of the last {@link #readData()}.
     *
     * @param index position within the data, 0..{@link #dataLength()}−1
     */
    public byte dataByte(int index) {
        return buffer[dataOffset + Objects.checkIndex(index, dataLength)];
    }

    /**
     * Skips one whole value, however deeply nested; works without recursion.
     *
     * @return false and a failed reader if the value is cut off or holds a reserved byte
     */
    @Override
    public boolean skip() {
        if (failed) {
            return false;
        }
        final int start = position;
        long pending = 1;
        while (pending > 0) {
            if (position >= limit) {
                return failAt(start);
            }
            final int head = buffer[position] & 0xff;
            pending--;
            if (head <= 0x7f || head >= 0xe0 || head == 0xc0 || head == 0xc2 || head == 0xc3) {
                position++;
                continue;
            }
            final int at = position + 1;
            final boolean complete;
            if (head <= 0x8f) {
                position++;
                pending += 2L * (head & 0x0f);
                complete = true;
            } else if (head <= 0x9f) {
                position++;
                pending += head & 0x0f;
                complete = true;
            } else if (head <= 0xbf) {
                complete = take(head & 0x1f);
            } else {
                switch (head) {
                    case 0xc4, 0xd9 -> complete = take(1) && skipBytes(buffer[at] & 0xffL);
                    case 0xc5, 0xda ->
                            complete =
                                    take(2) && skipBytes((short) SHORT.get(buffer, at) & 0xffffL);
                    case 0xc6, 0xdb ->
                            complete =
                                    take(4) && skipBytes((int) INT.get(buffer, at) & 0xffff_ffffL);
                    case 0xc7 -> complete = take(1) && skipBytes(1 + (buffer[at] & 0xffL));
                    case 0xc8 ->
                            complete =
                                    take(2)
                                            && skipBytes(
                                                    1 + ((short) SHORT.get(buffer, at) & 0xffffL));
                    case 0xc9 ->
                            complete =
                                    take(4)
                                            && skipBytes(
                                                    1 + ((int) INT.get(buffer, at) & 0xffff_ffffL));
                    case 0xcc, 0xd0 -> complete = take(1);
                    case 0xcd, 0xd1, 0xd4 -> complete = take(2);
                    case 0xd5 -> complete = take(3);
                    case 0xca, 0xce, 0xd2 -> complete = take(4);
                    case 0xd6 -> complete = take(5);
                    case 0xcb, 0xcf, 0xd3 -> complete = take(8);
                    case 0xd7 -> complete = take(9);
                    case 0xd8 -> complete = take(17);
                    case 0xdc, 0xdd, 0xde, 0xdf -> {
                        complete = take((head & 1) == 0 ? 2 : 4);
                        if (complete) {
                            final long count =
                                    (head & 1) == 0
                                            ? (short) SHORT.get(buffer, at) & 0xffffL
                                            : (int) INT.get(buffer, at) & 0xffff_ffffL;
                            pending += head >= 0xde ? 2 * count : count;
                        }
                    }
                    default -> complete = false; // 0xc1
                }
            }
            if (!complete) {
                return failAt(start);
            }
        }
        return true;
    }

    /** Moves over a head byte and {@code length} bytes after it, if they are there. */
    private boolean take(int length) {
        if (length >= limit - position) {
            failed = true;
            return false;
        }
        position += 1 + length;
        return true;
    }

    private boolean skipBytes(long length) {
        if (length > limit - position) {
            return false;
        }
        position += (int) length;
        return true;
    }

    private long fail() {
        failed = true;
        return 0;
    }

    private boolean failAt(int start) {
        position = start;
        failed = true;
        return false;
    }

    private static Kind[] kinds() {
        final Kind[] kinds = new Kind[256];
        for (int head = 0; head < 256; head++) {
            kinds[head] = kindOf(head);
        }
        return kinds;
    }

    private static Kind kindOf(int head) {
        if (head <= 0x7f || head >= 0xe0) {
            return Kind.INTEGER;
        }
        if (head <= 0x8f) {
            return Kind.MAP;
        }
        if (head <= 0x9f) {
            return Kind.ARRAY;
        }
        if (head <= 0xbf) {
            return Kind.STRING;
        }
        return switch (head) {
            case 0xc0 -> Kind.NIL;
            case 0xc1 -> Kind.RESERVED;
            case 0xc2, 0xc3 -> Kind.BOOLEAN;
            case 0xc4, 0xc5, 0xc6 -> Kind.BINARY;
            case 0xc7, 0xc8, 0xc9, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8 -> Kind.EXTENSION;
            case 0xca, 0xcb -> Kind.FLOAT;
            case 0xd9, 0xda, 0xdb -> Kind.STRING;
            case 0xdc, 0xdd -> Kind.ARRAY;
            case 0xde, 0xdf -> Kind.MAP;
            default -> Kind.INTEGER;
        };
    }
}

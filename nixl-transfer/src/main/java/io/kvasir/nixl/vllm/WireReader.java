package io.kvasir.nixl.vllm;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/**
 * Reads one msgpack message of a peer that is not trusted: announced sizes are checked against the
 * bytes there are before anything is allocated, nesting is skipped without recursion, and every
 * misfit is a {@link VllmPeerException} of kind {@code MALFORMED}.
 *
 * @see <a href="https://github.com/msgpack/msgpack/blob/master/spec.md">msgpack's format</a>
 */
final class WireReader {
    private static final int FIXMAP = 0x80;
    private static final int FIXARRAY = 0x90;
    private static final int FIXSTR = 0xa0;
    private static final int FIXSTR_END = 0xc0;
    private static final int NIL = 0xc0;
    private static final int FLOAT32 = 0xca;
    private static final int FLOAT64 = 0xcb;
    private static final int NEGATIVE_FIXINT = 0xe0;

    private final byte[] message;
    private final ByteBuffer in;
    private final String what;

    /**
     * Starts at the first byte.
     *
     * @param message not copied
     * @param what the message's name, for errors
     */
    WireReader(byte[] message, String what) {
        this.message = message;
        this.in = ByteBuffer.wrap(message);
        this.what = what;
    }

    VllmPeerException malformed(String problem, Throwable cause) {
        return new VllmPeerException(
                VllmPeerException.Kind.MALFORMED, what + " is malformed: " + problem, cause);
    }

    private VllmPeerException isNo(String name, String type) {
        return malformed(name + " is no " + type + ", before byte " + in.position(), null);
    }

    private void require(String name, int bytes) {
        if (in.remaining() < bytes) {
            throw malformed(
                    name
                            + " takes "
                            + bytes
                            + " bytes at byte "
                            + in.position()
                            + " of "
                            + message.length,
                    null);
        }
    }

    private int unsignedByte(String name) {
        require(name, Byte.BYTES);
        return Byte.toUnsignedInt(in.get());
    }

    private int unsignedShort(String name) {
        require(name, Short.BYTES);
        return Short.toUnsignedInt(in.getShort());
    }

    private long unsignedInt(String name) {
        require(name, Integer.BYTES);
        return Integer.toUnsignedLong(in.getInt());
    }

    private long signedLong(String name) {
        require(name, Long.BYTES);
        return in.getLong();
    }

    /** A count or a length: no element takes less than a byte. */
    private int size(String name, long size) {
        if (size > in.remaining()) {
            throw malformed(
                    name + " announces " + size + " elements in " + in.remaining() + " bytes",
                    null);
        }
        return (int) size;
    }

    int mapHeader(String name) {
        final int type = unsignedByte(name);
        return switch (type) {
            case 0xde -> size(name, unsignedShort(name));
            case 0xdf -> size(name, unsignedInt(name));
            default -> {
                if (type < FIXMAP || type >= FIXARRAY) {
                    throw isNo(name, "map");
                }
                yield size(name, type - FIXMAP);
            }
        };
    }

    int arrayHeader(String name) {
        final int type = unsignedByte(name);
        return switch (type) {
            case 0xdc -> size(name, unsignedShort(name));
            case 0xdd -> size(name, unsignedInt(name));
            default -> {
                if (type < FIXARRAY || type >= FIXSTR) {
                    throw isNo(name, "array");
                }
                yield size(name, type - FIXARRAY);
            }
        };
    }

    boolean isArrayNext(String name) {
        require(name, Byte.BYTES);
        final int type = Byte.toUnsignedInt(in.get(in.position()));
        return (type >= FIXARRAY && type < FIXSTR) || type == 0xdc || type == 0xdd;
    }

    String string(String name) {
        final int type = unsignedByte(name);
        final int length =
                switch (type) {
                    case 0xd9 -> size(name, unsignedByte(name));
                    case 0xda -> size(name, unsignedShort(name));
                    case 0xdb -> size(name, unsignedInt(name));
                    default -> {
                        if (type < FIXSTR || type >= FIXSTR_END) {
                            throw isNo(name, "string");
                        }
                        yield size(name, type - FIXSTR);
                    }
                };
        final ByteBuffer text = in.slice(in.position(), length);
        in.position(in.position() + length);
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(text).toString();
        } catch (CharacterCodingException e) {
            throw malformed(name + " is no UTF-8, before byte " + in.position(), e);
        }
    }

    OpaqueBytes binary(String name) {
        final int length =
                switch (unsignedByte(name)) {
                    case 0xc4 -> size(name, unsignedByte(name));
                    case 0xc5 -> size(name, unsignedShort(name));
                    case 0xc6 -> size(name, unsignedInt(name));
                    default -> throw isNo(name, "binary");
                };
        final int from = in.position();
        in.position(from + length);
        return OpaqueBytes.of(message, from, from + length);
    }

    long longInteger(String name) {
        return longInteger(name, unsignedByte(name));
    }

    private long longInteger(String name, int type) {
        return switch (type) {
            case 0xcc -> unsignedByte(name);
            case 0xcd -> unsignedShort(name);
            case 0xce -> unsignedInt(name);
            case 0xcf -> {
                final long value = signedLong(name);
                if (value < 0) {
                    throw malformed(name + " is " + Long.toUnsignedString(value), null);
                }
                yield value;
            }
            case 0xd0 -> (byte) unsignedByte(name);
            case 0xd1 -> (short) unsignedShort(name);
            case 0xd2 -> (int) unsignedInt(name);
            case 0xd3 -> signedLong(name);
            default -> {
                if (type >= FIXMAP && type < NEGATIVE_FIXINT) {
                    throw isNo(name, "integer");
                }
                yield (byte) type;
            }
        };
    }

    int integer(String name) {
        final long value = longInteger(name);
        if (value != (int) value) {
            throw malformed(name + " is " + value + ", beyond 32 bits", null);
        }
        return (int) value;
    }

    /** Reads a float or an integer. */
    double number(String name) {
        final int type = unsignedByte(name);
        return switch (type) {
            case FLOAT32 -> Float.intBitsToFloat((int) unsignedInt(name));
            case FLOAT64 -> Double.longBitsToDouble(signedLong(name));
            default -> longInteger(name, type);
        };
    }

    /** Takes a null if there is one. */
    boolean tryNil(String name) {
        require(name, Byte.BYTES);
        if (Byte.toUnsignedInt(in.get(in.position())) != NIL) {
            return false;
        }
        in.get();
        return true;
    }

    <T> List<T> list(String name, Supplier<T> element) {
        final int count = arrayHeader(name);
        final List<T> all = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            all.add(element.get());
        }
        return all;
    }

    /** Skips a value and returns its encoding. */
    OpaqueBytes raw(String name) {
        final int from = in.position();
        skip(name);
        return OpaqueBytes.of(message, from, in.position());
    }

    void skip(String name) {
        long values = 1; // cannot overflow: each byte adds less than 2^33
        while (values > 0) {
            values += skipOne(name) - 1;
        }
    }

    /** Skips a value without its elements; returns how many follow. */
    private long skipOne(String name) {
        final int type = unsignedByte(name);
        if (type < FIXMAP || type >= NEGATIVE_FIXINT) {
            return 0;
        }
        if (type < FIXARRAY) {
            return 2L * (type - FIXMAP);
        }
        if (type < FIXSTR) {
            return (long) type - FIXARRAY;
        }
        if (type < FIXSTR_END) {
            return pass(name, type - FIXSTR);
        }
        return switch (type) {
            case NIL, 0xc2, 0xc3 -> 0;
            case 0xc4, 0xd9 -> pass(name, unsignedByte(name));
            case 0xc5, 0xda -> pass(name, unsignedShort(name));
            case 0xc6, 0xdb -> pass(name, unsignedInt(name));
            case 0xc7 -> pass(name, unsignedByte(name) + 1L); // extensions have a byte of type
            case 0xc8 -> pass(name, unsignedShort(name) + 1L);
            case 0xc9 -> pass(name, unsignedInt(name) + 1L);
            case 0xcc, 0xd0 -> pass(name, 1);
            case 0xcd, 0xd1, 0xd4 -> pass(name, 2);
            case 0xd5 -> pass(name, 3);
            case FLOAT32, 0xce, 0xd2 -> pass(name, 4);
            case 0xd6 -> pass(name, 5);
            case FLOAT64, 0xcf, 0xd3 -> pass(name, 8);
            case 0xd7 -> pass(name, 9);
            case 0xd8 -> pass(name, 17);
            case 0xdc -> unsignedShort(name);
            case 0xdd -> unsignedInt(name);
            case 0xde -> 2L * unsignedShort(name);
            case 0xdf -> 2 * unsignedInt(name);
            default -> throw isNo(name, "msgpack value"); // 0xc1, the only byte never used
        };
    }

    private long pass(String name, long bytes) {
        in.position(in.position() + size(name, bytes));
        return 0;
    }

    /** Fails unless all bytes have been read. */
    void end() {
        if (in.hasRemaining()) {
            throw malformed(in.remaining() + " bytes are left over", null);
        }
    }
}

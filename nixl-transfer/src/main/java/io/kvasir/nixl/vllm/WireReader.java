package io.kvasir.nixl.vllm;

import org.msgpack.core.MessageFormat;
import org.msgpack.core.MessagePack;
import org.msgpack.core.MessagePackException;
import org.msgpack.core.MessageUnpacker;
import org.msgpack.value.ValueType;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * Reads one msgpack message of a peer that is not trusted: announced sizes are checked against the
 * bytes there are before anything is allocated, nesting is skipped without recursion, and every
 * misfit is a {@link VllmPeerException} of kind {@code MALFORMED}.
 */
final class WireReader {
    /** Reads one value from where the reader stands. */
    @FunctionalInterface
    interface Element<T> {
        T read() throws IOException;
    }

    private final byte[] message;
    private final String what;
    private final MessageUnpacker unpacker;

    /**
     * Starts at the first byte.
     *
     * @param message not copied
     * @param what the message's name, for errors
     */
    WireReader(byte[] message, String what) {
        this.message = message;
        this.what = what;
        this.unpacker =
                new MessagePack.UnpackerConfig()
                        .withStringSizeLimit(message.length)
                        .newUnpacker(message);
    }

    /** Reads, naming every failure. */
    <T> T read(String name, Element<T> element) {
        try {
            return element.read();
        } catch (IOException | MessagePackException e) {
            throw malformed(
                    name + " at byte " + unpacker.getTotalReadBytes() + ": " + e.getMessage(), e);
        }
    }

    VllmPeerException malformed(String problem, Throwable cause) {
        return new VllmPeerException(
                VllmPeerException.Kind.MALFORMED, what + " is malformed: " + problem, cause);
    }

    int mapHeader(String name) {
        return size(name, read(name, unpacker::unpackMapHeader));
    }

    int arrayHeader(String name) {
        return size(name, read(name, unpacker::unpackArrayHeader));
    }

    String string(String name) {
        return read(name, unpacker::unpackString);
    }

    int integer(String name) {
        return read(name, unpacker::unpackInt);
    }

    long longInteger(String name) {
        return read(name, unpacker::unpackLong);
    }

    double number(String name) {
        return read(
                name,
                () ->
                        nextType() == ValueType.FLOAT
                                ? unpacker.unpackDouble()
                                : (double) unpacker.unpackLong());
    }

    boolean isArrayNext(String name) {
        return read(name, () -> nextType() == ValueType.ARRAY);
    }

    boolean isStringNext(String name) {
        return read(name, () -> nextType() == ValueType.STRING);
    }

    private ValueType nextType() throws IOException {
        final MessageFormat format = unpacker.getNextFormat();
        return format.getValueType();
    }

    OpaqueBytes binary(String name) {
        final int length = size(name, read(name, unpacker::unpackBinaryHeader));
        return OpaqueBytes.of(read(name, () -> unpacker.readPayload(length)));
    }

    /** Takes a null if there is one. */
    boolean tryNil(String name) {
        return read(name, unpacker::tryUnpackNil);
    }

    /** Skips a value and returns its encoding. */
    OpaqueBytes raw(String name) {
        final int from = Math.toIntExact(unpacker.getTotalReadBytes());
        skip(name);
        return OpaqueBytes.of(message, from, Math.toIntExact(unpacker.getTotalReadBytes()));
    }

    void skip(String name) {
        read(
                name,
                () -> {
                    unpacker.skipValue();
                    return null;
                });
    }

    <T> List<T> list(String name, Element<T> element) {
        final int count = arrayHeader(name);
        final List<T> all = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            all.add(read(name, element));
        }
        return all;
    }

    /** Fails unless all bytes have been read. */
    void end() {
        if (unpacker.getTotalReadBytes() != message.length) {
            throw malformed(
                    (message.length - unpacker.getTotalReadBytes()) + " bytes are left over", null);
        }
    }

    private int size(String name, int size) {
        if (size > message.length) {
            throw malformed(
                    name + " announces " + size + " elements in " + message.length + " bytes",
                    null);
        }
        return size;
    }
}

package io.kvasir.pipeline.zmtp;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;

/**
 * Bytes of ZMTP 3.0 with the NULL mechanism.
 *
 * <pre>
 *   0           8  9   10      11      12        32         33      64
 *   +-----------+--+---+-------+-------+---------+----------+-------+
 *   | FF 0000.. |01|7F | major | minor | "NULL"  | asServer | zeros |
 *   +-----------+--+---+-------+-------+---------+----------+-------+
 *   READY: | 5 "READY" | { length:1 name, length:4 value }* |
 * </pre>
 *
 * @see <a href="https://rfc.zeromq.org/spec/23/">ZMTP 3.0</a>
 */
final class ZmtpCodec {
    static final int GREETING_LENGTH = 64;
    private static final int SIGNATURE_END = 9;
    private static final int MAJOR_OFFSET = 10;
    private static final int MECHANISM_OFFSET = 12;
    private static final int MECHANISM_LENGTH = 20;
    private static final int MAJOR = 3;
    private static final int SHORT_FRAME = 255;
    private static final int MORE = 1;
    private static final int LONG = 2;
    private static final int COMMAND = 4;
    private static final byte[] NULL_MECHANISM = ascii("NULL");
    private static final byte[] SOCKET_TYPE = ascii("Socket-Type");
    private static final byte[] IDENTITY = ascii("Identity");
    private static final byte[] READY = command("READY");
    private static final byte[] ERROR = command("ERROR");
    private static final byte[] PING = command("PING");
    private static final byte[] PONG = command("PONG");
    private static final int PING_TTL_LENGTH = 2;
    private static final int SHOWN_BYTES = 8;

    private ZmtpCodec() {}

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    private static byte[] command(String name) {
        return ByteBuffer.allocate(1 + name.length())
                .put((byte) name.length())
                .put(ascii(name))
                .array();
    }

    static ByteBuffer greeting() {
        final byte[] bytes = new byte[GREETING_LENGTH];
        bytes[0] = (byte) 0xff;
        bytes[8] = 1;
        bytes[SIGNATURE_END] = 0x7f;
        bytes[MAJOR_OFFSET] = MAJOR;
        System.arraycopy(NULL_MECHANISM, 0, bytes, MECHANISM_OFFSET, NULL_MECHANISM.length);
        return ByteBuffer.wrap(bytes);
    }

    /** Checks as much of a peer's greeting as has arrived. */
    static void checkGreeting(byte[] bytes, int length) throws ZmtpException {
        final boolean badStart = length > 0 && (bytes[0] & 0xff) != 0xff;
        if (badStart || (length > SIGNATURE_END && bytes[SIGNATURE_END] != 0x7f)) {
            throw new ZmtpException("speaks no ZMTP: its first bytes are " + shown(bytes, length));
        }
        if (length > MAJOR_OFFSET && (bytes[MAJOR_OFFSET] & 0xff) < MAJOR) {
            throw new ZmtpException(
                    "speaks an old ZMTP, of revision "
                            + bytes[MAJOR_OFFSET]
                            + "; 3 or newer is needed (libzmq 4)");
        }
        if (length == GREETING_LENGTH) {
            final byte[] mechanism =
                    Arrays.copyOfRange(
                            bytes, MECHANISM_OFFSET, MECHANISM_OFFSET + MECHANISM_LENGTH);
            if (!Arrays.equals(mechanism, Arrays.copyOf(NULL_MECHANISM, MECHANISM_LENGTH))) {
                throw new ZmtpException(
                        "wants the security mechanism "
                                + printable(mechanism, 0, MECHANISM_LENGTH)
                                + "; only NULL is supported");
            }
        }
    }

    private static String shown(byte[] bytes, int length) {
        final int count = Math.min(length, SHOWN_BYTES);
        return HexFormat.ofDelimiter(" ").formatHex(bytes, 0, count)
                + " '"
                + printable(bytes, 0, count)
                + "'";
    }

    /** Text of unknown bytes, safe to be shown. */
    static String printable(byte[] bytes, int offset, int length) {
        final StringBuilder text = new StringBuilder(length);
        for (int i = offset; i < offset + length && bytes[i] != 0; i++) {
            text.append(bytes[i] >= ' ' && bytes[i] < 0x7f ? (char) bytes[i] : '.');
        }
        return text.toString();
    }

    static ByteBuffer ready(SocketType type) {
        final ByteBuffer body = ByteBuffer.allocate(SHORT_FRAME).put(READY);
        property(body, SOCKET_TYPE, ascii(type.name()));
        if (type == SocketType.DEALER) {
            property(body, IDENTITY, new byte[0]);
        }
        return command(body.flip());
    }

    private static void property(ByteBuffer body, byte[] name, byte[] value) {
        body.put((byte) name.length).put(name).putInt(value.length).put(value);
    }

    /** A command frame around a short body. */
    private static ByteBuffer command(ByteBuffer body) {
        return ByteBuffer.allocate(2 + body.remaining())
                .put((byte) COMMAND)
                .put((byte) body.remaining())
                .put(body)
                .flip();
    }

    /** The answer to a PING, null if the body is no PING or one of an unusable length. */
    static ByteBuffer pong(byte[] bytes, int offset, int length) {
        if (!isCommand(PING, bytes, offset, length)) {
            return null;
        }
        final int context = length - PING.length - PING_TTL_LENGTH;
        if (context < 0 || context + PONG.length > SHORT_FRAME) {
            return null;
        }
        final ByteBuffer body = ByteBuffer.allocate(PONG.length + context).put(PONG);
        body.put(bytes, offset + PING.length + PING_TTL_LENGTH, context);
        return command(body.flip());
    }

    static boolean isReady(byte[] bytes, int offset, int length) {
        return isCommand(READY, bytes, offset, length);
    }

    /** What an ERROR command says, null if the body is none. */
    static String error(byte[] bytes, int offset, int length) {
        return isCommand(ERROR, bytes, offset, length)
                ? printable(
                        bytes,
                        offset + Math.min(length, ERROR.length + 1),
                        Math.max(0, length - ERROR.length - 1))
                : null;
    }

    private static boolean isCommand(byte[] name, byte[] bytes, int offset, int length) {
        return length >= name.length
                && Arrays.equals(name, 0, name.length, bytes, offset, offset + name.length);
    }

    /** The socket type in a READY command, empty if it has none. */
    static String socketType(byte[] bytes, int offset, int length) throws ZmtpException {
        final ByteBuffer in = ByteBuffer.wrap(bytes, offset, length);
        in.position(offset + READY.length);
        while (in.hasRemaining()) {
            final int nameLength = in.get() & 0xff;
            final int name = in.position();
            if (nameLength + Integer.BYTES > in.remaining()) {
                throw new ZmtpException("sent a malformed READY command");
            }
            in.position(name + nameLength);
            final int valueLength = in.getInt();
            if (valueLength < 0 || valueLength > in.remaining()) {
                throw new ZmtpException("sent a malformed READY command");
            }
            if (printable(bytes, name, nameLength).equalsIgnoreCase("Socket-Type")) {
                return printable(bytes, in.position(), valueLength);
            }
            in.position(in.position() + valueLength);
        }
        return "";
    }

    /** A message of these frames. */
    static ByteBuffer message(byte[]... frames) {
        int size = 0;
        for (byte[] frame : frames) {
            size += frame.length + (frame.length > SHORT_FRAME ? 9 : 2);
        }
        final ByteBuffer out = ByteBuffer.allocate(size);
        for (int i = 0; i < frames.length; i++) {
            final int more = i + 1 < frames.length ? MORE : 0;
            if (frames[i].length > SHORT_FRAME) {
                out.put((byte) (more | LONG)).putLong(frames[i].length);
            } else {
                out.put((byte) more).put((byte) frames[i].length);
            }
            out.put(frames[i]);
        }
        return out.flip();
    }
}

package io.kvasir.gateway.testing;

import org.eclipse.jetty.http2.frames.FrameType;

import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

/** Frames of HTTP/2 as bytes, for clients that do what no library would. */
public final class RawFrames {
    private static final byte DATA = 0;
    private static final byte HEADERS = 1;
    private static final byte RST_STREAM = 3;
    private static final byte SETTINGS = 4;
    private static final byte WINDOW_UPDATE = 8;
    private static final int END_STREAM = 1;
    private static final int END_HEADERS = 4;
    private static final short INITIAL_WINDOW_SIZE = 4;
    private static final int CANCEL = 8;

    private RawFrames() {}

    /** One that has come. */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    public record Frame(FrameType type, int flags, int stream, byte[] payload) {
        /** Whether its stream ends with it. */
        public boolean isLast() {
            return (flags & END_STREAM) != 0;
        }

        @Override
        public String toString() {
            return type + " of stream " + stream + ": " + HexFormat.of().formatHex(payload);
        }
    }

    /**
     * Reads the next one.
     *
     * @throws EOFException at the end of the connection
     */
    public static Frame read(DataInputStream in) throws IOException {
        final int length = in.readUnsignedByte() << 16 | in.readUnsignedShort();
        final FrameType type = FrameType.from(in.readUnsignedByte());
        final int flags = in.readUnsignedByte();
        final int stream = in.readInt();
        return new Frame(type, flags, stream, in.readNBytes(length));
    }

    public static byte[] frame(int type, int flags, int stream, byte[] payload) {
        return ByteBuffer.allocate(9 + payload.length)
                .put((byte) (payload.length >> 16))
                .putShort((short) payload.length)
                .put((byte) type)
                .put((byte) flags)
                .putInt(stream)
                .put(payload)
                .array();
    }

    /** What a client begins with; the windows of its streams are as large as they can be. */
    public static byte[] preface() {
        final byte[] settings =
                ByteBuffer.allocate(6)
                        .putShort(INITIAL_WINDOW_SIZE)
                        .putInt(Integer.MAX_VALUE)
                        .array();
        return joined(
                "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".getBytes(StandardCharsets.US_ASCII),
                frame(SETTINGS, 0, 0, settings));
    }

    /** Ends a stream: its client does not want it any more. */
    public static byte[] reset(int stream) {
        return frame(RST_STREAM, 0, stream, ByteBuffer.allocate(4).putInt(CANCEL).array());
    }

    /** Opens the window of the connection. */
    public static byte[] openWindow(int bytes) {
        return frame(WINDOW_UPDATE, 0, 0, ByteBuffer.allocate(4).putInt(bytes).array());
    }

    public static byte[] post(int stream, String path, String body) {
        final byte[] to = path.getBytes(StandardCharsets.US_ASCII);
        final byte[] head =
                ByteBuffer.allocate(6 + to.length)
                        .put((byte) 0x83) // :method POST
                        .put((byte) 0x86) // :scheme http
                        .put((byte) 0x04) // :path, not indexed
                        .put((byte) to.length)
                        .put(to)
                        .put((byte) 0x01) // :authority, not indexed
                        .put((byte) 0)
                        .array();
        return joined(
                frame(HEADERS, END_HEADERS, stream, head),
                frame(DATA, END_STREAM, stream, body.getBytes(StandardCharsets.UTF_8)));
    }

    private static byte[] joined(byte[] a, byte[] b) {
        return ByteBuffer.allocate(a.length + b.length).put(a).put(b).array();
    }
}

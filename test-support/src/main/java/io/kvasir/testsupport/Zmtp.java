package io.kvasir.testsupport;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** What a peer of ZMTP 3.0 sends first, for tests that send something hostile after it. */
public final class Zmtp {
    private static final int GREETING_BYTES = 64;
    private static final int MECHANISM_AT = 9;

    private Zmtp() {}

    /** The greeting of a peer that wants no security. */
    public static byte[] greeting() {
        return ByteBuffer.allocate(GREETING_BYTES)
                .put((byte) 0xFF)
                .position(MECHANISM_AT)
                .put((byte) 0x7F)
                .put((byte) 3)
                .put((byte) 0)
                .put("NULL".getBytes(StandardCharsets.US_ASCII))
                .array();
    }

    /**
     * The command that ends the handshake.
     *
     * @param type of the socket, such as {@code DEALER}
     */
    public static byte[] ready(String type) {
        final byte[] body =
                ("\5READY\13Socket-Type\0\0\0" + (char) type.length() + type)
                        .getBytes(StandardCharsets.US_ASCII);
        return ByteBuffer.allocate(2 + body.length)
                .put((byte) 4)
                .put((byte) body.length)
                .put(body)
                .array();
    }
}

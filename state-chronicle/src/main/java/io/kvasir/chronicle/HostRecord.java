package io.kvasir.chronicle;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.zip.CRC32C;

/** A value of a {@link HostState}, with a checksum in front: 4 bytes CRC-32C, then the fields. */
final class HostRecord {
    /** Writes fields. */
    interface Writer {
        void to(DataOutputStream out) throws IOException;
    }

    /** Reads fields. */
    interface Reader<T> {
        T from(DataInputStream in) throws IOException;
    }

    private HostRecord() {}

    static byte[] write(Writer fields) {
        final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            out.writeInt(0);
            fields.to(out);
        } catch (IOException e) {
            throw new UncheckedIOException("an array can always be written", e);
        }
        final byte[] value = bytes.toByteArray();
        ByteBuffer.wrap(value).putInt(0, crc(value));
        return value;
    }

    /** The fields; null if they are damaged. */
    static <T> T readOrNull(byte[] value, Reader<T> fields) {
        if (value.length < Integer.BYTES || ByteBuffer.wrap(value).getInt(0) != crc(value)) {
            return null;
        }
        try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(value))) {
            in.readInt();
            return fields.from(in);
        } catch (IOException e) {
            return null;
        }
    }

    private static int crc(byte[] value) {
        final CRC32C crc = new CRC32C();
        crc.update(value, Integer.BYTES, value.length - Integer.BYTES);
        return (int) crc.getValue();
    }

    static void writeText(DataOutputStream out, String text) throws IOException {
        final byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        out.writeInt(bytes.length);
        out.write(bytes);
    }

    static String readText(DataInputStream in) throws IOException {
        final int length = in.readInt();
        if (length < 0 || length > in.available()) {
            throw new IOException("a text of " + length + " bytes");
        }
        return new String(in.readNBytes(length), StandardCharsets.UTF_8);
    }
}

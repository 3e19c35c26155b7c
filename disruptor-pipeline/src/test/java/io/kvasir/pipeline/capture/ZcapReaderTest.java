package io.kvasir.pipeline.capture;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.source.Captures;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

class ZcapReaderTest {
    private static byte[] recording() throws IOException {
        final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        final DataOutputStream out = new DataOutputStream(bytes);
        out.writeBytes("ZCAP0001");
        record(out, 1_795_253_529_650_788_000L, 255, "REQ 1".getBytes(StandardCharsets.UTF_8));
        record(out, 5, 0, new byte[] {'t'}, new byte[] {0, 0, 0, 0, 0, 0, 0, 7}, new byte[] {1});
        record(
                out,
                6,
                1,
                new byte[0],
                new byte[0],
                new byte[] {-1, -1, -1, -1, -1, -1, -1, -1},
                new byte[0]);
        return bytes.toByteArray();
    }

    private static void record(DataOutputStream out, long timeNs, int source, byte[]... frames)
            throws IOException {
        out.writeLong(timeNs);
        out.writeByte(source);
        out.writeByte(frames.length);
        for (byte[] frame : frames) {
            out.writeInt(frame.length);
            out.write(frame);
        }
    }

    @Test
    void recordsAreReadAsTheyWereWritten(@TempDir Path dir) throws IOException {
        final Path file = dir.resolve("x.zcap");
        Files.write(file, recording());
        final List<ZcapRecord> records = ZcapReader.readAll(file);

        assertEquals(3, records.size());
        assertEquals(ZcapRecord.Source.MARK, records.get(0).source());
        assertEquals("REQ 1", records.get(0).text());
        assertEquals(1_795_253_529_650_788_000L, records.get(0).timeNs());
        assertFalse(records.get(0).isEventMessage());
        assertEquals(7, records.get(1).sequence());
        assertArrayEquals(new byte[] {1}, records.get(1).payload());
        assertTrue(records.get(1).isEventMessage());
        assertEquals(-1, records.get(2).sequence());
        assertFalse(records.get(2).isEventMessage());
    }

    @Test
    void aRecordingThatWasCutOffEndsBeforeTheCut() throws IOException {
        final byte[] whole = recording();
        for (int length = 8; length < whole.length; length++) {
            try (ZcapReader reader =
                    ZcapReader.of(new ByteArrayInputStream(Arrays.copyOf(whole, length)), "cut")) {
                int records = 0;
                while (reader.next() != null) {
                    records++;
                }
                assertTrue(records < 3);
                final boolean betweenRecords = length == 8 || length == 27 || length == 59;
                assertEquals(!betweenRecords, reader.isTruncated(), "length " + length);
                assertNull(reader.next());
            }
        }
    }

    @Test
    void whatIsNoRecordingIsRefused() {
        final IOException error =
                assertThrows(
                        IOException.class,
                        () -> ZcapReader.of(new ByteArrayInputStream(new byte[4]), "some.file"));
        assertTrue(error.getMessage().contains("some.file"), error.getMessage());
    }

    @Test
    void aLengthThatCannotBeIsNotAllocated() throws IOException {
        final byte[] bytes = recording();
        bytes[8 + 10] = (byte) 0xff; // the length of the first frame
        try (ZcapReader reader = ZcapReader.of(new ByteArrayInputStream(bytes), "damaged")) {
            final IOException error = assertThrows(IOException.class, reader::next);
            assertTrue(error.getMessage().contains("damaged"), error.getMessage());
        }
    }

    @Test
    void realRecordingsAreReadToTheEnd() {
        assertEquals(26, Captures.read("llmdsim-array.zcap").size());
    }
}

package io.kvasir.opstreams.kvops;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;

/** Reader and writer against bytes put together here, offset by offset. */
class KvopsFileTest {
    private static final int LENGTH = 128 + (32 + 4 * 8) + (32 + 3 * 8) + (32 + 2 * 8) + 32;

    @TempDir private Path dir;

    /** Store of two blocks behind a parent, query of three, removal of two, clear. */
    private static byte[] stream() {
        final ByteBuffer bytes = ByteBuffer.allocate(LENGTH).order(ByteOrder.LITTLE_ENDIAN);
        bytes.put("KVOPS001".getBytes(StandardCharsets.US_ASCII)).putInt(1).putInt(128);
        bytes.putInt(16).putInt(5).putLong(1000);
        bytes.putLong(4).putLong(1).putLong(1).putLong(1);
        bytes.putLong(3).putLong(2).putLong(2).putLong(0);
        bytes.putLong(77).putLong(1 | 8).putInt(3).putInt(2).putLong(0);
        head(bytes, 2, 1, 2, 4, 9, 55, 10);
        bytes.putLong(101).putLong(201).putLong(102).putLong(202);
        head(bytes, 1, 0, 3, 0, 8, -1L, 10);
        bytes.putLong(201).putLong(202).putLong(203);
        head(bytes, 3, 0, 2, 4, -1, 0, 20);
        bytes.putLong(102).putLong(101);
        head(bytes, 4, 0, 0, 4, 0, 0, 30);
        assertFalse(bytes.hasRemaining());
        return bytes.array();
    }

    private static void head(
            ByteBuffer bytes, int op, int flags, int n, int worker, int request, long a, long t) {
        bytes.put((byte) op).put((byte) flags).putShort((short) 0).putInt(n);
        bytes.putInt(worker).putInt(request).putLong(a).putLong(t);
    }

    private Path file(byte[] bytes) throws IOException {
        return Files.write(dir.resolve("hand.kvops"), bytes);
    }

    @Test
    void showsHeaderAndRecordsAsTheyStandInTheFile() throws IOException {
        try (KvopsFile file = KvopsFile.open(file(stream()))) {
            assertEquals(
                    new KvopsHeader(16, 5, 1000, 4, 1, 1, 1, 3, 2, 2, 0, 77, 9, 3, 2),
                    file.header());
            assertTrue(file.header().has(KvopsHeader.CHECKSUMS));
            assertTrue(file.header().has(KvopsHeader.COUNTED_COPIES));
            assertFalse(file.header().has(KvopsHeader.SALTED_NAMES));
            assertEquals(4, file.header().eventBlocks());

            final KvopsCursor cursor = file.cursor();
            assertTrue(cursor.next());
            assertEquals(KvopsDescriptor.STORED, cursor.op());
            assertTrue(cursor.hasParent());
            assertEquals(4, cursor.worker());
            assertEquals(9, cursor.request());
            assertEquals(55, cursor.a());
            assertEquals(10, cursor.timeUs());
            assertArrayEquals(new long[] {101, 102}, cursor.names());
            assertArrayEquals(new long[] {201, 202}, cursor.localHashes());

            assertTrue(cursor.next());
            assertEquals(KvopsDescriptor.QUERY, cursor.op());
            assertEquals(-1, cursor.a());
            assertArrayEquals(new long[] {201, 202, 203}, cursor.localHashes());

            assertTrue(cursor.next());
            assertEquals(KvopsDescriptor.REMOVED, cursor.op());
            assertEquals(-1, cursor.request());
            assertArrayEquals(new long[] {102, 101}, cursor.names());

            assertTrue(cursor.next());
            assertEquals(KvopsDescriptor.CLEARED, cursor.op());
            assertEquals(0, cursor.count());
            assertFalse(cursor.next());
        }
    }

    @Test
    void theWriterPutsTheSameBytes() throws IOException {
        final Path path = dir.resolve("written.kvops");
        try (KvopsWriter writer = new KvopsWriter(path, 16, 5, 1000, 77, 9)) {
            writer.stored(4, 9, 10, 55, new long[] {101, 102}, new long[] {201, 202}, 2);
            writer.query(8, 10, -1, new long[] {201, 202, 203, 0}, 3);
            writer.removed(4, 20, new long[] {102, 101}, 2);
            writer.cleared(4, 30);
        }
        assertArrayEquals(stream(), Files.readAllBytes(path));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                // what is overwritten: offset, byte | the offset and the words of the error
                "0   | 75  | -1  |", // unchanged
                "1   | 0   | 0   | magic",
                "8   | 2   | 8   | version is 2",
                "12  | 64  | 12  | header length is 64",
                "16  | 0   | 16  | tokens per block is 0",
                "20  | 0   | 20  | workers is 0",
                "22  | 1   | 20  | workers is 65541, more than 65536",
                "20  | 4   | 136 | worker 4 is not below the header's 4",
                "128 | 9   | 128 | op 9 is unknown, record=0",
                "128 | 0   | 128 | op 0 is unknown",
                "192 | 255 | 192 | op 255 is unknown, record=1",
                "252 | 3   | 252 | blocks=3, bytes left=16", // of the removal, clear behind it
                "255 | 128 | 252 | blocks=2147483650",
                "272 | 9   | 272 | time goes back: 9 us after 10 us",
                "32  | 5   | 328 | ends inside the head of record 4 of 5",
                "32  | 3   | 296 | 32 bytes after the last record",
                "40  | 2   | 40  | the header says 2 QUERY records, there are 1",
                "72  | 7   | 72  | the header says 7 STORED blocks, there are 2",
                "88  | 1   | 88  | the header says 1 ROUTED records, there are 0",
                "112 | 2   | 112 | the header says 2 blocks of the longest QUERY, there are 3",
                "115 | 128 | 112 | the header says 2147483651 blocks of the longest QUERY",
                "116 | 9   | 116 | the header says 9 blocks of the longest STORED or REMOVED"
            })
    void aBadFileIsRefusedWithTheOffset(int at, int value, int offset, String words)
            throws IOException {
        final byte[] bytes = stream();
        bytes[at] = (byte) value;
        final Path path = file(at == 252 ? Arrays.copyOf(bytes, LENGTH - 32) : bytes);
        if (offset < 0) {
            assertEquals(4, KvopsStream.read(path).size());
            return;
        }
        final KvopsFormatException refused =
                assertThrows(KvopsFormatException.class, () -> KvopsStream.read(path));
        assertTrue(
                refused.getMessage().startsWith(path + ": no KVOPS v1 stream: offset " + offset),
                refused.getMessage());
        assertTrue(refused.getMessage().contains(words), refused.getMessage());
    }

    @ParameterizedTest
    @CsvSource({"0, 0, header", "127, 127, header", "130, 128, head of record 0"})
    void aFileThatEndsTooSoonIsRefused(int length, int offset, String words) throws IOException {
        final Path path = file(Arrays.copyOf(stream(), length));
        final KvopsFormatException refused =
                assertThrows(KvopsFormatException.class, () -> KvopsStream.read(path));
        assertTrue(refused.getMessage().contains("offset " + offset + ":"), refused.getMessage());
        assertTrue(refused.getMessage().contains(words), refused.getMessage());
    }

    @Test
    void aMissingFileIsNamed() {
        final Path missing = dir.resolve("missing.kvops");
        assertEquals(
                missing.toString(),
                assertThrows(NoSuchFileException.class, () -> KvopsFile.open(missing)).getFile());
    }

    @Test
    void aStreamHoldsTheIndexOperationsOfItsStart() throws IOException {
        final Path path = file(stream());
        final KvopsStream whole = KvopsStream.read(path);
        assertEquals(4, whole.size());
        assertEquals(1, whole.queries());
        assertEquals(3, whole.events());
        assertEquals(4, whole.eventBlocks());
        assertTrue(whole.isQuery(1));
        assertEquals(-1, whole.expectedChecksum(1));
        assertEquals(30, whole.timeUs(3));
        assertEquals(2, KvopsStream.read(path, 2).size());
    }
}

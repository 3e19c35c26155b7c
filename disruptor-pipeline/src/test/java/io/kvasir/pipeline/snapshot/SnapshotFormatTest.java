package io.kvasir.pipeline.snapshot;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.SlotPath;
import io.kvasir.pipeline.source.RemovalRule;
import io.kvasir.pipeline.source.StreamMemory;
import io.kvasir.pipeline.wire.DecoderMemory;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.zip.CRC32C;

/** The bytes of snapshots: as they are written, and whatever becomes of them. */
class SnapshotFormatTest {
    private static final int BLOCK_SIZE = 16;
    private static final long SEED = 0x1122334455667788L;
    private static final StreamMemory MEMORY =
            new StreamMemory(
                    RemovalRule.LAST_COPY, new DecoderMemory(2, true, new long[] {7, 8, 9, 10}));

    /** Two workers, with a path of each kind, holes, copies and several chunks. */
    private static byte[] snapshot() throws IOException {
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        final SnapshotWriter writer = new SnapshotWriter(out, BLOCK_SIZE, SEED, 1_700_000_000_000L);
        writer.beginWorker("w-0", 0, new SlotMark(41, 0x4142, true, 3, 0, 0));
        writer.records(records(false));
        writer.endWorker(new StreamMemory(RemovalRule.PHYSICAL, DecoderMemory.NONE));
        writer.beginWorker("wörker-1", 3, new SlotMark(42, -5, false, 4, 2, 6));
        writer.records(records(true));
        writer.records(records(false));
        writer.endWorker(MEMORY);
        writer.end();
        assertEquals(out.size(), writer.bytes());
        return out.toByteArray();
    }

    private static byte[] records(boolean holes) {
        final List<byte[]> chunks = new ArrayList<>();
        final SlotRecords records = new SlotRecords(chunks::add);
        final SlotPath path = new SlotPath();
        path.begin(SlotPath.Parent.ROOT, 0);
        path.addBlock(11, 101);
        if (holes) {
            path.addHole(12);
        }
        path.addBlock(13, 103);
        records.path(path);
        path.begin(holes ? SlotPath.Parent.HOLE : SlotPath.Parent.BLOCK, holes ? 0 : 103);
        path.addBlock(14, 104);
        records.path(path);
        records.copies(104, 3);
        records.finish();
        return chunks.getFirst();
    }

    private static SnapshotReader.Contents scan(byte[] bytes) throws IOException {
        return SnapshotReader.scan(new ByteArrayInputStream(bytes));
    }

    private static List<String> labels(SnapshotReader.Contents contents) {
        return contents.workers().stream().map(WorkerSection::label).toList();
    }

    @Test
    void theBytesAreThoseOfTheGoldenFile() throws IOException {
        final byte[] written = snapshot();
        if (Boolean.getBoolean("kvasir.golden.write")) {
            Files.write(Path.of("src/test/resources/snapshot/version-1.snapshot"), written);
        }
        try (InputStream golden =
                SnapshotFormatTest.class.getResourceAsStream("/snapshot/version-1.snapshot")) {
            assertNotNull(golden);
            assertArrayEquals(golden.readAllBytes(), written);
        }
    }

    @Test
    void whatWasWrittenIsRead() throws Exception {
        final byte[] bytes = snapshot();
        final SnapshotReader.Contents contents = scan(bytes);
        assertEquals(List.of(), contents.problems());
        assertEquals(List.of("w-0/0", "wörker-1/3"), labels(contents));
        final WorkerSection second = contents.workers().get(1);
        assertEquals(new SlotMark(42, -5, false, 4, 2, 6), second.mark());
        assertEquals(MEMORY, second.memory());
        assertEquals(BLOCK_SIZE, second.blockSize());
        assertEquals(SEED, second.hashSeed());
        final List<byte[]> chunks = new ArrayList<>();
        final int from = (int) second.offset();
        assertTrue(
                SnapshotReader.read(
                        new ByteArrayInputStream(bytes, from, bytes.length - from),
                        second,
                        chunks::add));
        assertEquals(2, chunks.size());
        assertArrayEquals(records(true), chunks.get(0));
        assertArrayEquals(records(false), chunks.get(1));
    }

    @Test
    void recordsAreReadAsTheyWereWritten() {
        final List<String> read = new ArrayList<>();
        final int count =
                SlotRecords.read(
                        records(true),
                        new SlotPath(),
                        new SlotRecords.Reader() {
                            @Override
                            public boolean path(SlotPath path) {
                                final StringBuilder text = new StringBuilder();
                                text.append(path.parentKind()).append(path.parent());
                                for (int i = 0; i < path.count(); i++) {
                                    text.append(' ').append(path.localHash(i));
                                    text.append(path.isHeld(i) ? "=" + path.engineHash(i) : "");
                                }
                                return read.add(text.toString());
                            }

                            @Override
                            public void copies(long engineHash, int copies) {
                                read.add(engineHash + "x" + copies);
                            }
                        });
        assertEquals(3, count);
        assertEquals(List.of("ROOT0 11=101 12 13=103", "HOLE0 14=104", "104x3"), read);
    }

    @Test
    void whereverTheBytesEndTheWorkersBeforeAreRead() throws IOException {
        final byte[] bytes = snapshot();
        final long firstEnds = scan(bytes).workers().get(1).offset();
        for (int length = 0; length < bytes.length; length++) {
            final SnapshotReader.Contents contents = scan(Arrays.copyOf(bytes, length));
            assertTrue(
                    contents.problems().stream()
                            .anyMatch(p -> p.kind() == SnapshotProblem.Kind.TRUNCATED),
                    "nothing is said of an end at " + length);
            assertEquals(length >= firstEnds, labels(contents).contains("w-0/0"), () -> "first");
        }
    }

    @Test
    void aByteThatIsAnotherCostsItsWorkerAndNoOther() throws IOException {
        final byte[] bytes = snapshot();
        final int first = (int) scan(bytes).workers().get(0).offset();
        final int second = (int) scan(bytes).workers().get(1).offset();
        final int end = bytes.length - ChunkDescriptor.HEADER_LENGTH - Integer.BYTES;
        for (int at = first; at < end; at++) {
            final byte[] changed = bytes.clone();
            changed[at] ^= 0x20;
            final SnapshotReader.Contents contents = scan(changed);
            final String other = at < second ? "wörker-1/3" : "w-0/0";
            assertEquals(List.of(other), labels(contents), "changed byte " + at);
            assertTrue(
                    contents.problems().stream()
                            .anyMatch(p -> p.kind() == SnapshotProblem.Kind.CORRUPTED),
                    "nothing is said of byte " + at);
        }
    }

    @Test
    void whateverTheBytesAreNothingIsThrown() throws IOException {
        final Random random = new Random(Seeds.next("SnapshotFormatTest"));
        final byte[] bytes = snapshot();
        for (int i = 0; i < 5_000; i++) {
            final byte[] changed = bytes.clone();
            for (int n = random.nextInt(8); n >= 0; n--) {
                changed[random.nextInt(changed.length)] = (byte) random.nextInt();
            }
            final int from = random.nextInt(40);
            scan(Arrays.copyOfRange(changed, from, from + random.nextInt(changed.length)));
        }
        for (int i = 0; i < 5_000; i++) {
            final byte[] changed = records(true);
            changed[random.nextInt(changed.length)] = (byte) random.nextInt();
            SlotRecords.read(
                    changed,
                    new SlotPath(),
                    new SlotRecords.Reader() {
                        @Override
                        public boolean path(SlotPath path) {
                            return true;
                        }

                        @Override
                        public void copies(long engineHash, int copies) {}
                    });
        }
    }

    @Test
    void aLaterVersionIsRefusedByName() throws IOException {
        final byte[] bytes = snapshot();
        bytes[ChunkDescriptor.VERSION_OFFSET] = ChunkDescriptor.VERSION + 1;
        final CRC32C crc = new CRC32C();
        crc.update(bytes, 0, ChunkDescriptor.HEADER_CRC_OFFSET);
        ByteBuffer.wrap(bytes)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putInt(ChunkDescriptor.HEADER_CRC_OFFSET, (int) crc.getValue());
        final SnapshotReader.Contents contents = scan(bytes);
        assertEquals(List.of(), contents.workers());
        assertEquals(SnapshotProblem.Kind.FUTURE_VERSION, contents.problems().get(0).kind());
    }

    /** A snapshot of a later version of the same number: it has a chunk more behind each. */
    private static byte[] withUnknownChunks(byte[] snapshot) {
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        final ByteBuffer in = ByteBuffer.wrap(snapshot).order(ByteOrder.LITTLE_ENDIAN);
        int at = 0;
        while (at < snapshot.length) {
            final int length =
                    ChunkDescriptor.HEADER_LENGTH + in.getInt(at + ChunkDescriptor.LENGTH_OFFSET);
            out.write(snapshot, at, length);
            final byte[] more = Arrays.copyOfRange(snapshot, at, at + length);
            more[ChunkDescriptor.TYPE_OFFSET] = ChunkDescriptor.LAST_TYPE + 1;
            final CRC32C crc = new CRC32C();
            crc.update(more, 0, ChunkDescriptor.HEADER_CRC_OFFSET);
            ByteBuffer.wrap(more)
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .putInt(ChunkDescriptor.HEADER_CRC_OFFSET, (int) crc.getValue());
            out.write(more, 0, length);
            at += length;
        }
        return out.toByteArray();
    }

    @Test
    void whatALaterVersionOfTheSameNumberHasAddedIsPassedOver() throws Exception {
        for (byte[] known : List.of(snapshot(), snapshotWithPosition())) {
            final byte[] bytes = withUnknownChunks(known);
            final SnapshotReader.Contents contents = scan(bytes);
            assertEquals(List.of(), contents.problems());
            assertEquals(labels(scan(known)), labels(contents));
            for (WorkerSection worker : contents.workers()) {
                final List<byte[]> chunks = new ArrayList<>();
                final int from = (int) worker.offset();
                assertTrue(
                        SnapshotReader.read(
                                new ByteArrayInputStream(bytes, from, bytes.length - from),
                                worker,
                                chunks::add));
                assertEquals(worker.chunks(), chunks.size());
            }
        }
    }

    @Test
    void anotherBlockSizeAndAnotherSeedAreRefusedByName() throws IOException {
        final SnapshotReader.Contents contents = scan(snapshot());
        assertEquals(contents, contents.fitting(BLOCK_SIZE, SEED));
        final SnapshotReader.Contents size = contents.fitting(32, SEED);
        assertEquals(List.of(), size.workers());
        assertEquals(
                "wrong block size: w-0/0 has blocks of 16 tokens, block-size is 32",
                size.problems().get(0).toString());
        final SnapshotReader.Contents seed = contents.fitting(BLOCK_SIZE, SEED + 1);
        assertEquals(List.of(), seed.workers());
        assertEquals(SnapshotProblem.Kind.WRONG_SEED, seed.problems().get(0).kind());
    }

    @Test
    void recordsThatChangeBetweenScanAndReadAreNotTaken() throws Exception {
        final byte[] bytes = snapshot();
        final WorkerSection second = scan(bytes).workers().get(1);
        final int from = (int) second.offset();
        bytes[from + 120] ^= 1;
        assertThrows(
                EOFException.class,
                () ->
                        SnapshotReader.read(
                                new ByteArrayInputStream(bytes, from, bytes.length - from),
                                second,
                                _ -> true));
    }

    @Test
    void aWorkerThatWasNotEndedIsNotInTheSnapshot() throws IOException {
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        final SnapshotWriter writer = new SnapshotWriter(out, BLOCK_SIZE, SEED, 0);
        writer.beginWorker("given-up", 0, new SlotMark(1, 1, true, 3, 0, 0));
        writer.records(records(false));
        writer.beginWorker("whole", 0, new SlotMark(1, 1, true, 3, 0, 0));
        writer.records(records(false));
        writer.endWorker(MEMORY);
        writer.end();
        assertEquals(1, writer.workers());
        assertEquals(List.of("whole/0"), labels(scan(out.toByteArray())));
    }

    @Test
    void allSeedsThatADecoderMayKnowAreInOneChunk() throws IOException {
        final long[] seeds = new long[2 * DecoderMemory.MOST_CHAIN_SEEDS];
        Arrays.setAll(seeds, i -> i);
        final StreamMemory most =
                new StreamMemory(RemovalRule.PHYSICAL, new DecoderMemory(2, true, seeds));
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        final SnapshotWriter writer = new SnapshotWriter(out, BLOCK_SIZE, SEED, 0);
        writer.beginWorker("salted", 0, new SlotMark(1, 1, true, 3, 0, 0));
        writer.records(records(false));
        writer.endWorker(most);
        writer.end();
        assertEquals(most, scan(out.toByteArray()).workers().get(0).memory());
    }

    /** A worker of a stream that many share. */
    private static byte[] snapshotWithPosition() throws IOException {
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        final SnapshotWriter writer = new SnapshotWriter(out, BLOCK_SIZE, SEED, 1_700_000_000_000L);
        writer.beginWorker("7", 0, new SlotMark(41, 0x4142, true, 3, 0, 0, 0x1234567890L));
        writer.records(records(false));
        writer.endWorker(MEMORY, 1_700_000_000_001L);
        writer.end();
        return out.toByteArray();
    }

    @Test
    void aPositionInASharedStreamIsReadAsItWasWritten() throws IOException {
        final byte[] written = snapshotWithPosition();
        if (Boolean.getBoolean("kvasir.golden.write")) {
            Files.write(Path.of("src/test/resources/snapshot/position.snapshot"), written);
        }
        try (InputStream golden =
                SnapshotFormatTest.class.getResourceAsStream("/snapshot/position.snapshot")) {
            assertNotNull(golden);
            assertArrayEquals(golden.readAllBytes(), written);
        }
        final SnapshotReader.Contents contents = scan(written);
        assertEquals(List.of(), contents.problems());
        assertEquals(1_700_000_000_000L, contents.takenMs());
        final WorkerSection worker = contents.workers().get(0);
        assertEquals(new SlotMark(41, 0x4142, true, 3, 0, 0, 0x1234567890L), worker.mark());
        assertEquals(1_700_000_000_001L, worker.followedMs());
    }

    @Test
    void aWorkerWhosePositionIsDamagedIsNotWhole() throws IOException {
        final byte[] bytes = snapshotWithPosition();
        final int from = (int) scan(bytes).workers().get(0).offset();
        final int end = bytes.length - ChunkDescriptor.HEADER_LENGTH - Integer.BYTES;
        for (int at = from; at < end; at++) {
            final byte[] changed = bytes.clone();
            changed[at] ^= 0x20;
            assertEquals(List.of(), labels(scan(changed)), "changed byte " + at);
        }
    }
}

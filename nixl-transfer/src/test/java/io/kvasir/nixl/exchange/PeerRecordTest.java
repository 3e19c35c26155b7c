package io.kvasir.nixl.exchange;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.exchange.ExchangeException.Kind;
import io.kvasir.nixl.memory.KvLayout;
import io.kvasir.nixl.memory.KvLayout.Group;
import io.kvasir.nixl.memory.KvLayout.Order;
import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.panama.nixl.NixlMemory;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.zip.CRC32C;

class PeerRecordTest {
    private static final byte[] METADATA = {1, 2, 3};

    private static PeerRecord record(PeerMemory memory) {
        return new PeerRecord("prefill-ä", 17, 3, METADATA, memory, "model-x");
    }

    private static byte[] sealed(byte[] record) {
        final CRC32C crc = new CRC32C();
        crc.update(record, 12, record.length - 12);
        ByteBuffer.wrap(record).order(ByteOrder.LITTLE_ENDIAN).putInt(8, (int) crc.getValue());
        return record;
    }

    private static String malformed(byte[] record) {
        final ExchangeException refusal =
                assertThrows(ExchangeException.class, () -> PeerRecord.decode(record));
        assertEquals(Kind.MALFORMED, refusal.kind());
        return refusal.getMessage();
    }

    @Test
    void aPoolComesBackWithItsLayoutAndItsPlaces() {
        final KvLayout layout =
                KvLayout.of(
                        List.of(
                                new Group(Order.KEYS_AND_VALUES_APART, 16, 4, 1024),
                                new Group(Order.BLOCK_MAJOR, 8, 2, 4096)));
        final PeerRecord read =
                PeerRecord.decode(record(new PeerMemory.Pool(layout, 8192)).encode());

        assertEquals("prefill-ä", read.name());
        assertEquals(17, read.incarnation());
        assertEquals(3, read.generation());
        assertArrayEquals(METADATA, read.metadata());
        assertEquals("model-x", read.digest());
        final PeerMemory.Pool pool = (PeerMemory.Pool) read.memory();
        assertEquals(layout.groups(), pool.layout().groups());
        assertEquals(layout.regions(8192), read.memory().regions());
        assertEquals(read, record(new PeerMemory.Pool(layout, 8192)));
    }

    @Test
    void aPoolOnAGpuComesBackWhereItLies() {
        final KvLayout.Site site = new KvLayout.Site(NixlMemory.VRAM, 5, 1L << 40);
        final PeerRecord read =
                PeerRecord.decode(record(new PeerMemory.Pool(Records.LAYOUT, site)).encode());
        assertEquals(Records.LAYOUT.regions(site), read.memory().regions());
        assertEquals(NixlMemory.VRAM, read.memory().descriptors().memory());
    }

    @Test
    void regionsComeBackOneByOne() {
        final List<KvRegion> regions =
                List.of(
                        new KvRegion("layer 0", 0, NixlMemory.VRAM, 1, 4096, 100, 128, 7),
                        new KvRegion("layer 1", 2, NixlMemory.VRAM, 0, 1L << 40, 200, 200, 9));
        final PeerRecord read = PeerRecord.decode(record(new PeerMemory.Regions(regions)).encode());
        assertEquals(regions, read.memory().regions());
        assertEquals(16, read.memory().descriptors().count());
    }

    @Test
    void fieldsOfLaterWritersAreSkipped() {
        final byte[] known = Records.record("a", 1, 1).encode();
        final byte[] later = Arrays.copyOf(known, known.length + 9);
        ByteBuffer.wrap(later)
                .order(ByteOrder.LITTLE_ENDIAN)
                .position(known.length)
                .putShort((short) 999)
                .putInt(3);
        assertEquals(Records.record("a", 1, 1), PeerRecord.decode(sealed(later)));
    }

    @Test
    void aLaterVersionIsNamed() {
        final byte[] record = Records.record("a", 1, 1).encode();
        record[4] = 2;
        assertTrue(malformed(record).contains("version 2, known is 1"));
    }

    @Test
    void brokenRecordsAreRefusedWhateverIsBrokenInThem() {
        final Random random = new Random(Seeds.next("brokenCards"));
        final byte[] whole = Records.record("a", 1, 1).encode();
        for (int length = 0; length < whole.length; length++) {
            malformed(Arrays.copyOf(whole, length));
        }
        int refused = 0;
        for (int i = 0; i < 5_000; i++) {
            final byte[] broken = whole.clone();
            broken[12 + random.nextInt(broken.length - 12)] = (byte) random.nextInt();
            try {
                PeerRecord.decode(sealed(broken)); // another name or number is no damage
            } catch (ExchangeException e) {
                assertEquals(Kind.MALFORMED, e.kind());
                refused++;
            }
        }
        assertTrue(refused > 250, refused + " refused");
    }

    @Test
    void whatIsReadOfDamagedBytesIsWrittenAndReadAsTheSame() {
        final Random random = new Random(Seeds.next("whatIsReadOfDamagedBytes"));
        final byte[] edges = {0, 1, 2, 4, 5, 0x7F, (byte) 0x80, (byte) 0xC3, (byte) 0xFF};
        final List<KvRegion> regions =
                List.of(
                        new KvRegion("läyer 0", 0, NixlMemory.DRAM, 0, 4096, 100, 128, 7),
                        new KvRegion("layer 1", 2, NixlMemory.DRAM, 0, 1L << 40, 200, 200, 9));
        final List<byte[]> wholes =
                List.of(
                        record(new PeerMemory.Regions(regions)).encode(),
                        record(new PeerMemory.Pool(Records.LAYOUT, 4096)).encode());
        int read = 0;
        for (int i = 0; i < 2_000; i++) {
            final byte[] broken = wholes.get(i % 2).clone();
            for (int n = random.nextInt(4); n >= 0; n--) {
                broken[12 + random.nextInt(broken.length - 12)] =
                        random.nextBoolean()
                                ? edges[random.nextInt(edges.length)]
                                : (byte) random.nextInt();
            }
            final PeerRecord record;
            try {
                record = PeerRecord.decode(sealed(broken));
            } catch (ExchangeException e) {
                assertEquals(Kind.MALFORMED, e.kind());
                continue;
            }
            read++;
            assertEquals(record, PeerRecord.decode(record.encode()));
            final long blocks =
                    record.memory().regions().stream().mapToLong(KvRegion::blocks).sum();
            assertTrue(blocks > 0 && blocks <= 1 << 24, blocks + " descriptors");
        }
        assertTrue(read > 100, read + " read");
    }

    @Test
    void recordsAreOrderedByIncarnationThenGeneration() {
        assertTrue(Records.record("a", 2, 0).isNewerThan(Records.record("a", 1, 9)));
        assertTrue(Records.record("a", 2, 1).isNewerThan(Records.record("a", 2, 0)));
        assertFalse(Records.record("a", 2, 1).isNewerThan(Records.record("a", 2, 1)));
        assertFalse(Records.record("a", 1, 9).isNewerThan(Records.record("a", 2, 0)));
    }

    @Test
    void whatIsTooLargeIsRefusedWithItsLimit() {
        final PeerMemory memory = new PeerMemory.Pool(Records.LAYOUT, 4096);
        assertRefused("524288", () -> new PeerRecord("a", 1, 1, new byte[600_000], memory, ""));
        assertRefused("1..200", () -> new PeerRecord("", 1, 1, METADATA, memory, ""));
        assertRefused("1..200", () -> new PeerRecord("n".repeat(201), 1, 1, METADATA, memory, ""));
        final KvLayout vast = KvLayout.of(Order.LAYER_MAJOR, 1, 70_000, 16);
        assertRefused("65536", () -> record(new PeerMemory.Pool(vast, 4096)));
        assertRefused("is no address", () -> new PeerMemory.Pool(Records.LAYOUT, 100));
    }

    private static void assertRefused(String part, Runnable call) {
        final IllegalArgumentException refusal =
                assertThrows(IllegalArgumentException.class, call::run);
        assertTrue(refusal.getMessage().contains(part), refusal.getMessage());
    }

    @Test
    void aPeerOfAnotherModelIsRefusedByName() {
        final PeerRecord record = record(new PeerMemory.Pool(Records.LAYOUT, 4096));
        record.requireCompatible("");
        record.requireCompatible("model-x");
        final ExchangeException refusal =
                assertThrows(ExchangeException.class, () -> record.requireCompatible("model-y"));
        assertEquals(Kind.INCOMPATIBLE, refusal.kind());
        assertTrue(refusal.getMessage().contains("prefill-ä"), refusal.getMessage());
    }
}

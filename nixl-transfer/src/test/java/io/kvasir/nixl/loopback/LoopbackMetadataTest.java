package io.kvasir.nixl.loopback;

import static io.kvasir.nixl.loopback.Loopbacks.refused;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import io.kvasir.nixl.memory.KvLayout;
import io.kvasir.nixl.memory.KvLayout.Order;
import io.kvasir.nixl.memory.KvPool;
import io.kvasir.nixl.transport.KvTransport.Operation;
import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.nixl.transport.KvTransportException.Kind;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

class LoopbackMetadataTest {
    private static final KvLayout LAYOUT = KvLayout.of(Order.LAYER_MAJOR, 8, 3, 4096);
    private static final int MUTATIONS = 4_000;
    private static final int CHECKSUM_OFFSET = 12;

    private final long seed = Long.getLong("seed", System.nanoTime());
    private Path folder;
    private LoopbackTransport peer;
    private LoopbackTransport own;
    private KvPool shared;
    private KvPool unshared;

    @BeforeEach
    void open() throws IOException {
        folder = Loopbacks.folder();
        peer = new LoopbackTransport("peer", Loopbacks.config(folder));
        own = new LoopbackTransport("own", Loopbacks.config(folder));
        shared = peer.pool(LAYOUT);
        unshared = KvPool.allocate(LAYOUT);
        peer.register(shared.regions());
        peer.register(unshared.regions());
    }

    @AfterEach
    void close() throws IOException {
        peer.close();
        own.close();
        shared.close();
        unshared.close();
        Loopbacks.deleteEmpty(folder);
    }

    private static byte[] signed(byte[] metadata) {
        ByteBuffer.wrap(metadata)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putInt(CHECKSUM_OFFSET, LoopbackMetadata.checksum(metadata));
        return metadata;
    }

    private LoopbackMetadata decoded() {
        return LoopbackMetadata.decode(peer.metadata(), 100);
    }

    @Test
    void whatIsWrittenIsRead() {
        final LoopbackMetadata metadata = decoded();

        assertEquals("peer", metadata.id().name());
        assertEquals(ProcessHandle.current().pid(), metadata.id().pid());
        assertEquals(6, metadata.regions().size());
        assertEquals(
                metadata, LoopbackMetadata.decode(metadata.encode(), metadata.regions().size()));
    }

    @Test
    void everyTruncationIsRefused() {
        final byte[] metadata = peer.metadata();
        for (int length = 0; length < metadata.length; length++) {
            final byte[] cut = Arrays.copyOf(metadata, length);
            refused(Kind.BAD_METADATA, "metadata of a peer", () -> own.connect(cut));
            if (length >= 16) {
                refused(Kind.BAD_METADATA, "metadata of a peer", () -> own.connect(signed(cut)));
            }
        }
        final byte[] longer = signed(Arrays.copyOf(metadata, metadata.length + 1));
        refused(Kind.BAD_METADATA, "1 bytes too many", () -> own.connect(longer));
    }

    @Test
    void everyChangedByteIsRefused() {
        final byte[] metadata = peer.metadata();
        for (int i = 0; i < metadata.length; i++) {
            final byte[] changed = metadata.clone();
            changed[i] ^= 0x10;
            refused(Kind.BAD_METADATA, "metadata of a peer", () -> own.connect(changed));
        }
        assertEquals("peer", own.connect(metadata));
    }

    /** Hostile: the checksum is right. What is accepted can be used without an access outside. */
    @Test
    void changesWithARightChecksumAreRefusedOrHarmless() {
        System.out.println("seed: " + seed);
        final Random random = new Random(seed);
        final byte[] metadata = peer.metadata();
        final Map<Kind, Integer> kinds = new EnumMap<>(Kind.class);
        int accepted = 0;
        for (int i = 0; i < MUTATIONS; i++) {
            final byte[] changed = mutated(metadata, random);
            try {
                final String name = own.connect(changed);
                accepted++;
                use(name);
                own.disconnect(name);
                peer.notifications((sender, message) -> {});
            } catch (KvTransportException e) {
                kinds.merge(e.kind(), 1, Integer::sum);
            } catch (RuntimeException e) {
                fail("seed " + seed + ", mutation " + i, e);
            }
        }
        System.out.println("accepted: " + accepted + ", refused: " + kinds);
        assertNotEquals(0, kinds.getOrDefault(Kind.BAD_METADATA, 0));
        assertEquals("peer", own.connect(metadata));
    }

    private static byte[] mutated(byte[] metadata, Random random) {
        final byte[] changed =
                random.nextInt(8) == 0
                        ? Arrays.copyOf(metadata, 16 + random.nextInt(2 * metadata.length))
                        : metadata.clone();
        final int changes = 1 + random.nextInt(4);
        for (int i = 0; i < changes; i++) {
            final int at = 16 + random.nextInt(changed.length - 15) - 1;
            switch (random.nextInt(4)) {
                case 0 -> changed[at] = (byte) random.nextInt();
                case 1 -> changed[at] ^= (byte) (1 << random.nextInt(8));
                case 2 -> changed[at] = random.nextBoolean() ? (byte) 0xFF : 0;
                default -> {
                    final int length = Math.min(8, changed.length - at);
                    Arrays.fill(changed, at, at + length, (byte) random.nextInt());
                }
            }
        }
        return signed(changed);
    }

    /** Reads from whatever the peer is believed to have. */
    private void use(String name) {
        try (KvPool pool = KvPool.allocate(LAYOUT)) {
            own.register(pool.regions());
            final List<Long> lists = new ArrayList<>();
            try {
                final long local = own.prepare(null, pool.descriptors());
                lists.add(local);
                for (KvPool theirs : List.of(shared, unshared)) {
                    final long remote = own.prepare(name, theirs.descriptors());
                    lists.add(remote);
                    final int[] indices = LAYOUT.indices(0, new int[] {0, 7}, 0, 3);
                    final long request =
                            own.request(Operation.READ, local, indices, remote, indices, 6, null);
                    Loopbacks.end(own, request);
                    own.release(request);
                }
            } finally {
                lists.forEach(own::releaseList);
                own.deregister(pool.regions());
                own.disconnect(name);
            }
        }
    }

    @ParameterizedTest
    @CsvSource({
        "0, 0, 32769, 0, ends beyond",
        "0, 0, 32768, 1, ends beyond",
        "0, 0, 32768, 9223372036854775807, cannot be understood",
        "0, 9223372036854775807, 4096, 0, cannot be understood",
        "0, 0, 0, 0, cannot be understood",
        "-2, 0, 4096, 0, cannot be understood",
        "-1, 8, 4096, 0, has not registered",
        "-1, 0, 4096, 0, has not registered"
    })
    void regionsThatCannotBeAreNamed(int file, long base, long length, long offset, String named) {
        final KvLayout little = KvLayout.of(Order.LAYER_MAJOR, 8, 1, 4096);
        try (KvPool pool = peer.pool(little)) {
            final int number = file == 0 ? numberOf(pool) : file;
            final long at = base > 1 << 20 ? base : unshared.base() + base;
            final LoopbackMetadata bad =
                    new LoopbackMetadata(
                            decoded().id(),
                            decoded().folder(),
                            List.of(
                                    new LoopbackMetadata.Region(
                                            "bad", at, length, number, offset)));

            refused(Kind.BAD_METADATA, named, () -> own.connect(bad.encode()));
        }
    }

    private int numberOf(KvPool pool) {
        peer.register(pool.regions());
        final int number = decoded().regions().stream().mapToInt(r -> r.file()).max().orElse(-1);
        peer.deregister(pool.regions());
        return number;
    }

    @Test
    void anotherInstanceIsNotBelieved() {
        final LoopbackId id = decoded().id();
        final LoopbackMetadata other =
                new LoopbackMetadata(
                        new LoopbackId("peer", id.pid(), id.startMs(), id.instance() + 1),
                        decoded().folder(),
                        List.of());
        refused(Kind.PEER_LOST, "there is no file", () -> own.connect(other.encode()));
        final LoopbackMetadata dead =
                new LoopbackMetadata(
                        new LoopbackId("peer", 999_999_999, 1, id.instance()),
                        decoded().folder(),
                        List.of());
        refused(Kind.PEER_LOST, "no such process", () -> own.connect(dead.encode()));
    }

    @Test
    void filesThatAreNotThePeersAreRefused() throws IOException {
        final LoopbackId id = decoded().id();
        final Path inbox = folder.resolve(id.inboxFile());
        final byte[] good = Files.readAllBytes(inbox);
        for (int offset : new int[] {0, 8, 16, 24, 32}) {
            overwrite(inbox, offset, ByteBuffer.wrap(good).getLong(offset) + 1);
            refused(Kind.BAD_METADATA, "is not the inbox", () -> own.connect(peer.metadata()));
            overwrite(inbox, offset, ByteBuffer.wrap(good).getLong(offset));
        }
        final Path memory = folder.resolve(id.memoryFile(0));
        final byte[] header = Arrays.copyOf(Files.readAllBytes(memory), 32);
        for (int offset : new int[] {0, 8, 16, 24}) {
            overwrite(memory, offset, ByteBuffer.wrap(header).getLong(offset) + 1);
            refused(Kind.BAD_METADATA, "is not memory", () -> own.connect(peer.metadata()));
            overwrite(memory, offset, ByteBuffer.wrap(header).getLong(offset));
        }
        assertEquals("peer", own.connect(peer.metadata()));
    }

    private static void overwrite(Path file, int offset, long value) throws IOException {
        try (RandomAccessFile out = new RandomAccessFile(file.toFile(), "rw")) {
            out.seek(offset);
            out.writeLong(value);
        }
    }

    /** A sender that writes what is no message loses its lane; the others are read on. */
    @Test
    void whatIsNoMessageShutsItsSenderOnly() throws IOException {
        own.connect(peer.metadata());
        try (LoopbackTransport third = new LoopbackTransport("third", Loopbacks.config(folder))) {
            third.connect(peer.metadata());
            own.send("peer", new byte[24]);
            third.send("peer", new byte[8]);
            final Path inbox = folder.resolve(decoded().id().inboxFile());
            overwrite(inbox, SharedFolder.PAGE + InboxDescriptor.DATA_OFFSET, 0x007FF000_00000000L);

            final List<String> senders = new ArrayList<>();
            refused(
                    Kind.FAILED,
                    "peer own",
                    () -> peer.notifications((sender, message) -> senders.add(sender)));
            peer.notifications((sender, message) -> senders.add(sender));

            assertEquals(List.of("third"), senders);
            refused(Kind.PEER_LOST, "refuses messages", () -> own.send("peer", new byte[1]));
            third.send("peer", new byte[8]);
            assertEquals(1, peer.notifications((sender, message) -> {}));
        }
        assertTrue(Files.exists(folder));
    }
}

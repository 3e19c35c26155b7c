package io.kvasir.cli.engines;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.vllm.PrefillLease;
import io.kvasir.nixl.vllm.TensorRank;
import io.kvasir.nixl.vllm.VllmEngine;
import io.kvasir.nixl.vllm.VllmHandshake;
import io.kvasir.nixl.vllm.VllmPeerException;
import io.kvasir.panama.nixl.NixlLibrary;
import io.kvasir.protocol.handoff.KvTransferParams;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/** This JVM as a peer of real vLLM prefill servers: it reads their blocks and gives them back. */
@Tag("real-engine")
class RealPrefillPeerTest {
    private static final int PROMPT = 7 * VllmServer.BLOCK_SIZE + 1;
    private static final int FULL_BLOCKS = PROMPT / VllmServer.BLOCK_SIZE;
    private static final int KV_HEADS = 2; // of the tiny model

    @TempDir(cleanup = CleanupMode.ON_SUCCESS)
    static Path logs;

    private static final List<VllmServer> SERVERS = new ArrayList<>();
    private static VllmServer first;
    private static VllmServer second;
    private static VllmServer ofTwoRanks;
    private static NixlLibrary library;
    private static PullingRank rank;

    @BeforeAll
    static void start() throws Exception {
        final Path folder = VllmServer.installed();
        library = VllmServer.nixl(folder).library();
        first = started(new VllmServer(folder, logs.resolve("first.log")));
        second = started(new VllmServer(folder, logs.resolve("second.log")));
        ofTwoRanks =
                started(new VllmServer(folder, logs.resolve("of-two-ranks.log")).tensorParallel(2));
        for (VllmServer server : SERVERS) {
            server.awaitHealthy();
        }
        rank = new PullingRank(library, TensorRank.only(KV_HEADS), FULL_BLOCKS + 1);
    }

    private static VllmServer started(VllmServer server) throws Exception {
        SERVERS.add(server.transferring());
        server.start();
        return server;
    }

    @AfterAll
    static void stop() {
        if (rank != null) {
            rank.close();
        }
        SERVERS.forEach(VllmServer::close);
    }

    /** Pulls the blocks of a prefill, sees them freed, and returns the full ones layer by layer. */
    private static List<byte[]> pull(VllmServer server, int from) throws Exception {
        final PrefillLease lease = rank.hold(server.prefill(from, PROMPT));
        server.awaitUsage(true);
        rank.pull(lease);
        server.awaitUsage(false); // at once, long before the lease of 30 s ends
        return fullBlocks(rank, 0, KV_HEADS);
    }

    private static List<byte[]> fullBlocks(PullingRank of, int fromHead, int toHead) {
        final List<byte[]> layers = new ArrayList<>();
        for (int layer = 0; layer < of.layers(); layer++) {
            layers.add(of.heads(layer, FULL_BLOCKS, fromHead, toHead));
        }
        return layers;
    }

    @Test
    void blocksOfTwoServersAreEqualForOnePromptAndDifferForAnother() throws Exception {
        final List<byte[]> fromFirst = pull(first, 0);
        final List<byte[]> fromSecond = pull(second, 0);
        final List<byte[]> another = pull(first, 300);
        for (int layer = 0; layer < fromFirst.size(); layer++) {
            assertArrayEquals(fromFirst.get(layer), fromSecond.get(layer));
            assertFalse(Arrays.equals(fromFirst.get(layer), another.get(layer)), "another prompt");
            int zeros = 0;
            for (byte b : fromFirst.get(layer)) {
                zeros += b == 0 ? 1 : 0;
            }
            assertTrue(zeros < fromFirst.get(layer).length / 4, zeros + " zeros");
        }
    }

    /**
     * An engine that shares the model between two ranks sums in another order, so its later layers
     * differ in their last bits; in the first layer, which nothing was summed up for, they do not.
     */
    @Test
    void headsOfTwoRanksMakeUpTheBlocksOfOne() throws Exception {
        final List<byte[]> fromOne = pull(first, 0);
        final List<byte[]> fromTwo = pull(ofTwoRanks, 0);
        final List<byte[]> another = pull(ofTwoRanks, 300);
        assertArrayEquals(fromOne.getFirst(), fromTwo.getFirst());
        for (int layer = 0; layer < fromOne.size(); layer++) {
            final double apart = apart(fromOne.get(layer), fromTwo.get(layer));
            final double otherPrompt = apart(fromOne.get(layer), another.get(layer));
            System.out.printf(
                    "layer %d: %.5f of its size apart, another prompt %.3f%n",
                    layer, apart, otherPrompt);
            assertTrue(apart < 0.01, layer + ": " + apart);
            assertTrue(otherPrompt > 0.5, layer + ": " + otherPrompt);
        }
    }

    /** Mean difference of two arrays of bfloat16, as a share of the first one's mean size. */
    private static double apart(byte[] a, byte[] b) {
        double difference = 0;
        double size = 0;
        for (int i = 0; i < a.length; i += Short.BYTES) {
            difference += Math.abs(bfloat16(a, i) - bfloat16(b, i));
            size += Math.abs(bfloat16(a, i));
        }
        return difference / size;
    }

    private static float bfloat16(byte[] bytes, int at) {
        return Float.intBitsToFloat((bytes[at + 1] & 0xFF) << 24 | (bytes[at] & 0xFF) << 16);
    }

    @Test
    void eachOfTwoRanksHereReadsItsHeadsAndBothFreeTheBlocks() throws Exception {
        final List<byte[]> whole = pull(first, 0);
        final KvTransferParams params = first.prefill(0, PROMPT);
        for (int i = 0; i < KV_HEADS; i++) {
            try (PullingRank half =
                    new PullingRank(library, new TensorRank(i, 2, KV_HEADS), FULL_BLOCKS + 1)) {
                final PrefillLease lease = half.hold(params);
                assertTrue(first.isHolding());
                half.pull(lease);
                assertEquals(0, half.peer().leases());
                final List<byte[]> heads = fullBlocks(half, i, i + 1);
                for (int layer = 0; layer < whole.size(); layer++) {
                    assertArrayEquals(head(whole.get(layer), i), heads.get(layer));
                }
            }
        }
        first.awaitUsage(false);
    }

    /** One head of whole blocks. */
    private static byte[] head(byte[] blocks, int head) {
        final int block = blocks.length / FULL_BLOCKS;
        final int length = block / KV_HEADS;
        final byte[] heads = new byte[FULL_BLOCKS * length];
        for (int b = 0; b < FULL_BLOCKS; b++) {
            System.arraycopy(blocks, b * block + head * length, heads, b * length, length);
        }
        return heads;
    }

    @Test
    void aPrefillWhoseDecodeNeverComesIsFreedByOneMessageToEachRank() throws Exception {
        for (VllmServer server : List.of(first, ofTwoRanks)) {
            final PrefillLease lease = rank.hold(server.prefill(100, PROMPT));
            server.awaitUsage(true);
            assertTrue(rank.peer().release(lease.requestId(), System.nanoTime()));
            server.awaitUsage(false);
            final VllmPeerException e =
                    assertThrows(
                            VllmPeerException.class,
                            () ->
                                    rank.peer()
                                            .pull(
                                                    lease.requestId(),
                                                    new int[0],
                                                    System.nanoTime()));
            assertEquals(VllmPeerException.Kind.UNKNOWN_REQUEST, e.kind());
        }
    }

    @Test
    void refusalsHaveNames() throws Exception {
        final KvTransferParams params = first.prefill(200, PROMPT);
        final VllmEngine engine = rank.meet(params);
        final VllmHandshake picky =
                new VllmHandshake(VllmHandshake.Patience.DEFAULT, Optional.of("another hash"));
        final VllmPeerException incompatible =
                assertThrows(VllmPeerException.class, () -> picky.ask(params));
        assertEquals(VllmPeerException.Kind.INCOMPATIBLE, incompatible.kind());
        assertTrue(
                incompatible.getMessage().contains(engine.ranks().getFirst().compatibilityHash()),
                incompatible.getMessage());
        final VllmPeerException unknown =
                assertThrows(
                        VllmPeerException.class,
                        () -> rank.peer().release("never-was", System.nanoTime()));
        assertEquals(VllmPeerException.Kind.UNKNOWN_REQUEST, unknown.kind());
        final PrefillLease lease = rank.hold(params);
        final long later = System.nanoTime() + TimeUnit.SECONDS.toNanos(31);
        final VllmPeerException expired =
                assertThrows(
                        VllmPeerException.class,
                        () -> rank.peer().pull(lease.requestId(), rank.places(lease), later));
        assertEquals(VllmPeerException.Kind.EXPIRED, expired.kind());
        assertFalse(rank.peer().release(lease.requestId(), System.nanoTime()), "expired for good");
        rank.hold(params); // for the server it is still early
        assertTrue(rank.peer().release(lease.requestId(), System.nanoTime()));
        first.awaitUsage(false);
    }
}

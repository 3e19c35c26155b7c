package io.kvasir.opstreams.alternatives.flat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

class ChainedHashEntriesTest {
    private static final int ENTRY_LENGTH = 16;

    @Test
    void everyEntryIsHandedOutOnceAndTheLastFreedFirst() {
        try (ChainedHashEntries chains = new ChainedHashEntries("entries", 3, ENTRY_LENGTH)) {
            assertEquals(1, chains.acquire());
            assertEquals(2, chains.acquire());
            assertEquals(3, chains.acquire());
            assertEquals(ChainedHashEntries.NONE, chains.acquire());
            chains.release(2);
            chains.release(1);
            assertEquals(1, chains.used());
            assertEquals(2, chains.free());
            assertEquals(1, chains.acquire());
            assertEquals(2, chains.acquire());
            assertEquals(ChainedHashEntries.NONE, chains.acquire());
        }
    }

    @Test
    void randomLinksAndUnlinksKeepEveryChainWhole() {
        final Random random = new Random(Seeds.next("ChainedHashEntriesTest"));
        final Map<Integer, Deque<Integer>> expected = new HashMap<>();
        final Map<Integer, Integer> bucketOf = new HashMap<>();
        try (ChainedHashEntries chains = new ChainedHashEntries("entries", 40, ENTRY_LENGTH)) {
            for (int i = 0; i < 5_000; i++) {
                if (random.nextBoolean() && chains.free() > 0) {
                    final int bucket = chains.bucket(random.nextInt(12));
                    final int entry = chains.acquire();
                    chains.link(entry, bucket);
                    expected.computeIfAbsent(bucket, b -> new ArrayDeque<>()).addFirst(entry);
                    bucketOf.put(entry, bucket);
                } else if (!bucketOf.isEmpty()) {
                    final List<Integer> linked = List.copyOf(bucketOf.keySet());
                    final int entry = linked.get(random.nextInt(linked.size()));
                    final int bucket = bucketOf.remove(entry);
                    chains.unlink(entry, bucket);
                    chains.release(entry);
                    expected.get(bucket).remove(entry);
                }
                expected.forEach((b, chain) -> assertEquals(List.copyOf(chain), walk(chains, b)));
                assertEquals(bucketOf.size(), chains.used());
            }
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 1_000, 1_024})
    void keysSpreadOverAsManyBucketsAsEntriesOrMore(long capacity) {
        try (ChainedHashEntries chains =
                new ChainedHashEntries("entries", capacity, ENTRY_LENGTH)) {
            final long buckets = (chains.bytes() - (capacity + 1) * ENTRY_LENGTH) / 4;
            assertTrue(buckets >= capacity && buckets <= 2 * Math.max(1, capacity));
            for (long key = -50; key < 50; key++) {
                final int bucket = chains.bucket(key << 40);
                assertTrue(bucket >= 0 && bucket < buckets);
            }
        }
    }

    @Test
    void keysThatDifferInAnyByteSpread() {
        try (ChainedHashEntries chains = new ChainedHashEntries("entries", 1 << 16, ENTRY_LENGTH)) {
            for (int shift = 0; shift <= 48; shift += 8) {
                final int[] load = new int[1 << 16];
                int longest = 0;
                for (long key = 0; key < 1 << 16; key++) {
                    longest = Math.max(longest, ++load[chains.bucket(key << shift)]);
                }
                assertTrue(longest <= 12, "shift=" + shift + ", longest chain=" + longest);
            }
        }
    }

    @Test
    void limitsOutOfRangeAreRefusedByName() {
        final IllegalArgumentException refused =
                assertThrows(
                        IllegalArgumentException.class,
                        () -> new ChainedHashEntries("maxBlocks", 0, ENTRY_LENGTH));
        assertEquals("maxBlocks out of range: value=0, limits=1..1073741824", refused.getMessage());
        assertThrows(
                IllegalArgumentException.class, () -> new ChainedHashEntries("maxBlocks", 1, 12));
    }

    private static List<Integer> walk(ChainedHashEntries chains, int bucket) {
        final List<Integer> walked = new ArrayList<>();
        for (int e = chains.firstAcquire(bucket);
                e != ChainedHashEntries.NONE;
                e = chains.nextOpaque(e)) {
            walked.add(e);
        }
        return walked;
    }
}

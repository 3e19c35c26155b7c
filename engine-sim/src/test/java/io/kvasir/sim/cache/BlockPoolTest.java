package io.kvasir.sim.cache;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;

class BlockPoolTest {
    /**
     * The pool over plain lists, written for being right: free blocks in order, copies in order.
     */
    private static final class NaivePool {
        final List<Integer> free = new ArrayList<>();
        final Map<Integer, Integer> references = new HashMap<>();
        final Map<Integer, Long> hashes = new HashMap<>();
        final Map<Long, List<Integer>> copies = new HashMap<>();
        final List<Long> evicted = new ArrayList<>();

        NaivePool(int blocks) {
            for (int i = 0; i < blocks; i++) {
                free.add(i);
                references.put(i, 0);
            }
        }

        List<Integer> lookup(long[] chain, int most) {
            final List<Integer> found = new ArrayList<>();
            for (int i = 0; i < most && copies.containsKey(chain[i]); i++) {
                found.add(copies.get(chain[i]).getFirst());
            }
            return found;
        }

        void use(List<Integer> blocks) {
            for (Integer block : blocks) {
                references.merge(block, 1, Integer::sum);
                free.removeIf(block::equals);
            }
        }

        List<Integer> take(int count) {
            final List<Integer> taken = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                final Integer block = free.removeFirst();
                final Long hash = hashes.remove(block);
                if (hash != null) {
                    evicted.add(hash);
                    copies.get(hash).removeIf(block::equals);
                    if (copies.get(hash).isEmpty()) {
                        copies.remove(hash);
                    }
                }
                references.put(block, 1);
                taken.add(block);
            }
            return taken;
        }

        void cache(int block, long hash) {
            hashes.put(block, hash);
            copies.computeIfAbsent(hash, h -> new ArrayList<>()).add(block);
        }

        void release(List<Integer> blocks) {
            int front = 0;
            for (Integer block : blocks.reversed()) {
                if (references.merge(block, -1, Integer::sum) == 0) {
                    if (hashes.containsKey(block)) {
                        free.addLast(block);
                    } else {
                        free.add(front++, block);
                    }
                }
            }
        }

        boolean reset() {
            if (free.size() != references.size()) {
                return false;
            }
            hashes.clear();
            copies.clear();
            return true;
        }
    }

    private static final class Request {
        final long[] chain;
        final List<Integer> blocks;
        int named;

        Request(long[] chain, List<Integer> hits) {
            this.chain = chain;
            this.blocks = new ArrayList<>(hits);
            this.named = hits.size();
        }
    }

    @Test
    void aPoolUnderRandomRequestsDoesWhatANaiveOneDoes() {
        final Random random = new Random(Seeds.next("block pool"));
        for (int round = 0; round < 30; round++) {
            final int size = 1 + random.nextInt(60);
            final List<Long> evicted = new ArrayList<>();
            final BlockPool pool = new BlockPool(size, evicted::add);
            final NaivePool naive = new NaivePool(size);
            final List<Request> requests = new ArrayList<>();
            for (int step = 0; step < 600; step++) {
                act(random, pool, naive, requests);
                assertEquals(naive.evicted, evicted);
                assertEquals(naive.free.size(), pool.freeBlocks());
                assertEquals(naive.hashes.size(), pool.cachedBlocks());
                assertEquals(naive.copies.size(), pool.distinctHashes());
            }
            final Map<Long, Integer> held = new TreeMap<>();
            pool.forEachCached(hash -> held.merge(hash, 1, Integer::sum));
            final Map<Long, Integer> expected = new TreeMap<>();
            naive.copies.forEach((hash, blocks) -> expected.put(hash, blocks.size()));
            assertEquals(expected, held);
        }
    }

    private static void act(
            Random random, BlockPool pool, NaivePool naive, List<Request> requests) {
        final int action = random.nextInt(100);
        if (action < 45) {
            begin(random, pool, naive, requests);
        } else if (action < 70 && !requests.isEmpty()) {
            grow(requests.get(random.nextInt(requests.size())), pool, naive);
        } else if (action < 98 && !requests.isEmpty()) {
            final Request ended = requests.remove(random.nextInt(requests.size()));
            pool.release(array(ended.blocks), ended.blocks.size());
            naive.release(ended.blocks);
        } else {
            assertEquals(naive.reset(), pool.reset());
        }
    }

    private static void begin(
            Random random, BlockPool pool, NaivePool naive, List<Request> requests) {
        final long[] chain = new long[1 + random.nextInt(10)];
        final long family = random.nextInt(4);
        final int branch = random.nextInt(chain.length + 1);
        final long leaf = random.nextInt(3);
        for (int i = 0; i < chain.length; i++) {
            chain[i] = (family << 32) * 0x9E3779B97F4A7C15L + i + (i < branch ? 0 : (leaf << 50));
        }
        final int most = random.nextInt(chain.length + 1);
        final int[] hits = new int[chain.length];
        final int found = pool.lookup(chain, most, hits);
        final List<Integer> expected = naive.lookup(chain, most);
        assertEquals(expected, list(hits, found));
        final long wouldCease = expected.stream().filter(naive.free::contains).count();
        assertEquals(wouldCease, pool.countFree(hits, found));
        pool.use(hits, found);
        naive.use(expected);
        requests.add(new Request(chain, expected));
    }

    /** Takes one more block and names the one before, so that the last one stays unnamed. */
    private static void grow(Request request, BlockPool pool, NaivePool naive) {
        if (pool.freeBlocks() == 0) {
            return;
        }
        final int named = request.named;
        final int[] taken = new int[1];
        pool.take(1, taken, 0);
        assertEquals(naive.take(1), list(taken, 1));
        request.blocks.add(taken[0]);
        if (request.blocks.size() > named + 1 && named < request.chain.length) {
            pool.cache(request.blocks.get(named), request.chain[named]);
            naive.cache(request.blocks.get(named), request.chain[named]);
            request.named++;
        }
    }

    private static List<Integer> list(int[] blocks, int count) {
        final List<Integer> list = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            list.add(blocks[i]);
        }
        return list;
    }

    private static int[] array(List<Integer> blocks) {
        return blocks.stream().mapToInt(Integer::intValue).toArray();
    }

    @Test
    void blocksWithoutANameAreReusedBeforeCachedOnes() {
        final List<Long> evicted = new ArrayList<>();
        final BlockPool pool = new BlockPool(4, evicted::add);
        final int[] blocks = new int[4];
        pool.take(4, blocks, 0);
        pool.cache(blocks[0], 10);
        pool.cache(blocks[1], 11);
        pool.release(blocks, 4);
        final int[] again = new int[3];
        pool.take(3, again, 0);
        assertArrayEquals(new int[] {3, 2, 1}, again);
        assertEquals(List.of(11L), evicted);
        assertFalse(pool.reset());
        pool.release(again, 3);
        assertTrue(pool.reset());
    }

    @Test
    void aMapUnderRandomChangesDoesWhatAHashMapDoes() {
        final Random random = new Random(Seeds.next("long to int map"));
        final LongIntMap map = new LongIntMap(200);
        final Map<Long, Integer> expected = new HashMap<>();
        for (int i = 0; i < 50_000; i++) {
            final long key = (long) random.nextInt(300) << (random.nextInt(2) * 40);
            if (random.nextBoolean() && expected.size() < 200) {
                map.put(key, i);
                expected.put(key, i);
            } else {
                map.remove(key);
                expected.remove(key);
            }
            final long other = random.nextInt(300);
            assertEquals(expected.getOrDefault(other, LongIntMap.ABSENT), map.get(other));
            assertEquals(expected.size(), map.size());
        }
    }
}

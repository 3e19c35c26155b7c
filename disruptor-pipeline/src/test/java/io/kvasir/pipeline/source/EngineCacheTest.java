package io.kvasir.pipeline.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;

/** What a shadow of an engine's cache shows is what an index holds that got the same messages. */
class EngineCacheTest {
    private static final int SLOT = 0;

    private final PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(1, 1 << 16, 1 << 16));
    private final PrefixIndex copy = new PrefixIndex(new PrefixIndexConfig(1, 1 << 16, 1 << 16));
    private final EngineCache cache = new EngineCache();
    private final KvBatch batch = new KvBatch();

    private static Set<List<Long>> contents(PrefixIndex shown) {
        final Set<List<Long>> all = new HashSet<>();
        shown.forEach((slot, name, sequence, n) -> all.add(List.of(name, sequence, (long) n)));
        return all;
    }

    /** Shows everything to the copy, in parts, with some messages between them. */
    private void show(Random random, List<Long> leaves) {
        cache.rewind();
        boolean all = false;
        while (!all) {
            batch.reset(SLOT, 0, CopyRule.PHYSICAL, true, ApplyListener.NONE);
            all =
                    cache.show(
                            1 + random.nextInt(50),
                            new EngineCache.Visitor() {
                                @Override
                                public void stored(
                                        boolean root,
                                        long parent,
                                        long[] names,
                                        long[] locals,
                                        int count) {
                                    batch.addReported(root, parent, names, locals, count);
                                }

                                @Override
                                public void copies(long name, int copies) {
                                    batch.addRemovedTo(name, copies);
                                }
                            });
            new IndexApplier(copy).offer(batch);
            if (!all) {
                message(random, leaves);
                new IndexApplier(copy).offer(batch);
            }
        }
    }

    private final List<Long> stored = new ArrayList<>(); // most of them

    private void message(Random random, List<Long> leaves) {
        batch.reset(SLOT, 0, CopyRule.PHYSICAL, true, ApplyListener.NONE);
        final int count = 1 + random.nextInt(5);
        final long[] names = random.longs(count).toArray();
        final long[] locals = random.longs(count).toArray();
        if (leaves.isEmpty() || random.nextInt(4) == 0) {
            batch.addStored(true, 0, names, locals, count);
            leaves.add(names[count - 1]);
        } else if (random.nextInt(3) > 0) {
            final int leaf = random.nextInt(leaves.size());
            batch.addStored(false, leaves.get(leaf), names, locals, count);
            leaves.set(leaf, names[count - 1]);
            if (random.nextInt(5) == 0) {
                batch.addStored(false, names[count - 1], names, locals, 0);
                batch.addRemovedTo(names[count - 1], 3);
            }
        } else {
            final List<Long> from = random.nextInt(4) == 0 ? stored : leaves; // a hole, or none
            final long name = from.remove(random.nextInt(from.size()));
            leaves.remove(name);
            batch.addRemoved(new long[] {name, name, name}, 3);
        }
        for (long name : names) {
            stored.add(name);
        }
        cache.apply(batch);
        new IndexApplier(index).offer(batch);
    }

    @RepeatedTest(5)
    void showsWhatAnIndexHoldsThatGotTheSameMessages() {
        final Random random = new Random(Seeds.next("EngineCacheTest"));
        final List<Long> leaves = new ArrayList<>();
        for (int i = 0; i < 3_000; i++) {
            message(random, leaves);
        }
        assertEquals(index.heldBlocks(), cache.size());
        assertTrue(cache.entries() <= 2 * cache.size() + 1_024, "useless holes");
        show(random, leaves);
        assertEquals(contents(index), contents(copy));
    }

    @Test
    void showsAPathThatIsLongerThanAPart() {
        final Random random = new Random(7);
        final int count = 3 * EngineCache.PART + 5;
        final long[] names = random.longs(count).toArray();
        batch.reset(SLOT, 0, CopyRule.PHYSICAL, true, ApplyListener.NONE);
        batch.addStored(true, 0, names, names, count);
        cache.apply(batch);
        new IndexApplier(index).offer(batch);
        show(random, new ArrayList<>());
        assertEquals(contents(index), contents(copy));
    }

    @Test
    void showsWhatIsBehindMoreHolesThanAPartHas() {
        final Random random = new Random(7);
        final int count = 5 * EngineCache.PART;
        final long[] names = random.longs(count).toArray();
        batch.reset(SLOT, 0, CopyRule.PHYSICAL, true, ApplyListener.NONE);
        batch.addStored(true, 0, names, names, count);
        batch.addRemoved(Arrays.copyOfRange(names, 7, count - 7), count - 14);
        cache.apply(batch);
        new IndexApplier(index).offer(batch);
        show(random, new ArrayList<>());
        assertEquals(contents(index), contents(copy));
    }
}

package io.kvasir.core.load;

import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.core.memory.LaggingMemory;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.core.radix.SteppedReader;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/**
 * Random bookings, and a reader that stops at any step while any number of the writer's single
 * stores take effect, in the writer's order or in another that releases and fences allow. A slot
 * may be found with what one of its requests used at some moment of the match, and no more.
 */
class RefCountedPrefixesStoresTest {
    private static final int SLOTS = 20;
    private static final int MATCHES = Trials.of(1_500, 30_000);
    private static final int DEPTH = 12;

    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Path(int slot, long[] hashes, int array, int offset) {}

    private final RefCountedPrefixes paths = new RefCountedPrefixes(SLOTS, 1 << 16, 96 << 10);
    private final List<Path> open = new ArrayList<>();

    /** Deepest use of the prompt being matched by each slot since the log was emptied. */
    private final int[] most = new int[SLOTS];

    private long[] prompt = {};

    @Tag("trials")
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aSlotIsFoundWithNoMoreThanItUsed(boolean anyOrder) {
        assumeTrue(LaggingMemory.isPossible());
        final Random random = new Random(Seeds.next("RefCountedPrefixesStoresTest"));
        final OverlapScores found = new OverlapScores(SLOTS);
        int inside = 0;
        try (LaggingMemory lag = new LaggingMemory(paths.arena().memory(), () -> 0)) {
            final SteppedReader reader = new SteppedReader(lag.memory(), paths.tree(), SLOTS);
            for (int match = 0; match < MATCHES; match++) {
                lag.clear();
                prompt = random(random, DEPTH);
                Arrays.fill(most, 0);
                open.forEach(this::use);
                final int used = random.nextInt(4);
                for (int i = 0; i < used; i++) {
                    operate(random);
                }
                final int stride = 1 + random.nextInt(16);
                lag.advance(random.nextInt(lag.logged() + 1));
                reader.match(
                        prompt,
                        found,
                        () -> {
                            if (anyOrder) {
                                lag.advanceInAnyOrder(random.nextInt(stride), random);
                            } else {
                                lag.advance(random.nextInt(stride));
                            }
                        });
                inside += lag.applied() < lag.logged() ? 1 : 0;
                for (int slot = 0; slot < SLOTS; slot++) {
                    final int s = slot;
                    assertTrue(
                            found.depth(slot) <= most[slot],
                            () -> "slot=" + s + ", used=" + most[s] + ", found=" + found);
                }
            }
            lag.check();
            assertNotEquals(0, inside);
        } finally {
            paths.close();
        }
    }

    @Test
    void aRequestThatEndsInsideARunIsFoundWithNoMoreThanItUsed() {
        assumeTrue(LaggingMemory.isPossible());
        final long[] hashes = {1, 2, 3, 4, 5, 6, 7, 8};
        final OverlapScores found = new OverlapScores(SLOTS);
        paths.enter(0, hashes, 8);
        try (LaggingMemory lag = new LaggingMemory(paths.arena().memory(), () -> 0)) {
            final SteppedReader reader = new SteppedReader(lag.memory(), paths.tree(), SLOTS);
            paths.enter(1, hashes, 4);
            for (int begin = 0; begin < lag.logged(); begin++) {
                lag.seek(begin);
                final int steps = reader.match(hashes, found, () -> {});
                for (int step = 0; step < steps; step++) {
                    for (int end = begin + 1; end <= lag.logged(); end++) {
                        final int[] left = {step};
                        final int goOn = end;
                        lag.seek(begin);
                        reader.match(
                                hashes,
                                found,
                                () -> lag.seek(left[0]-- == 0 ? goOn : lag.applied()));
                        assertTrue(found.depth(1) <= 4, found::toString);
                    }
                }
            }
        } finally {
            paths.close();
        }
    }

    private void operate(Random random) {
        if (!open.isEmpty() && random.nextInt(open.size() + 20) > 20) {
            final Path path = open.remove(random.nextInt(open.size()));
            paths.leave(path.slot, path.array, path.offset);
            return;
        }
        final long[] hashes = random(random, 1 + random.nextInt(DEPTH));
        final int slot = random.nextInt(SLOTS);
        if (paths.enter(slot, hashes, hashes.length) == RefCountedPrefixes.FULL) {
            use(new Path(slot, hashes, 0, 0)); // seen until it is taken back
            return;
        }
        final Path path = new Path(slot, hashes, paths.endArray(), paths.endOffset());
        open.add(path);
        use(path);
    }

    private void use(Path path) {
        final int same = Arrays.mismatch(path.hashes, prompt);
        final int depth = same < 0 ? prompt.length : same;
        most[path.slot] = Math.max(most[path.slot], depth);
    }

    /** Few different prompts: mostly the same block again, seldom another one. */
    private static long[] random(Random random, int length) {
        final long[] hashes = new long[length];
        for (int i = 0; i < length; i++) {
            hashes[i] = i * 10L + (random.nextInt(10) == 0 ? 1 : 0);
        }
        return hashes;
    }
}

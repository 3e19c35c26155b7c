package io.kvasir.core.radix;

import static org.junit.jupiter.api.Assumptions.assumeTrue;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.index.StoreResult;
import io.kvasir.core.memory.LaggingMemory;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

import java.util.Arrays;
import java.util.Random;
import java.util.stream.Stream;

/**
 * Random operations of the writer between any two steps of the reader, on one thread, so that a
 * seed is one story. Few different blocks, few slots and little memory: whatever is given back is
 * something else a moment later. {@link WatchedIndex} says which blocks a match may find; without
 * an operation during the call it says exactly which ones it must find.
 *
 * <p>{@code -Dkvasir.explore.operations=N} is how many operations a case makes at least, 600 by
 * default and 50,000 with all trials.
 */
class RadixMatcherExplorerTest {
    private static final long OPERATIONS =
            Long.getLong("kvasir.explore.operations", Trials.of(600, 50_000));
    private static final int MATCHES_PER_CHECK = 64;
    private static final int CHECKED_MATCHES = 4_000;

    /** What the writer does at a step of the reader. */
    enum Order {
        /** Whole operations. */
        OPERATIONS,
        /** Single stores of operations, in the writer's order. */
        STORES,
        /** Single stores, as a machine with weak memory may order them. */
        STORES_IN_ANY_ORDER
    }

    static Stream<Arguments> cases() {
        return Stream.of(Order.values())
                .flatMap(
                        order ->
                                Stream.of(
                                        arguments(order, 3, 64, 12, 2),
                                        arguments(order, 4, 64, 40, 2),
                                        arguments(order, 24, 64, 20, 3),
                                        arguments(order, 40, 96, 30, 4),
                                        arguments(order, 5, 128, 700, 2),
                                        arguments(order, 9, 64, 20, 12),
                                        arguments(order, 3, 128, 2, 120)));
    }

    @Tag("trials")
    @ParameterizedTest(name = "{0}: {1} slots, {2} KiB, prompts to {3} blocks, {4} kinds of block")
    @MethodSource("cases")
    void aMatchFindsOnlyWhatWasHeldAtSomeMomentOfIt(
            Order order, int slots, int kib, int depth, int kinds) {
        explore(order, slots, kib, depth, kinds);
    }

    private static void explore(Order order, int slots, int kib, int depth, int kinds) {
        final long seed = Seeds.next("RadixMatcherExplorerTest " + slots + "/" + kib + "/" + depth);
        final PrefixIndexConfig config =
                new PrefixIndexConfig(slots, 1 << 20, 1 << 20, (long) kib << 10);
        assumeTrue(order == Order.OPERATIONS || LaggingMemory.isPossible());
        try (WatchedIndex index =
                order == Order.OPERATIONS
                        ? new WatchedIndex(config)
                        : WatchedIndex.lagging(config)) {
            final Explorer explorer =
                    new Explorer(new Random(seed), index, order, slots, depth, kinds);
            while (explorer.operations < OPERATIONS || !explorer.hasDisturbed()) {
                explorer.match();
                if (explorer.matches < CHECKED_MATCHES
                        ? explorer.matches % MATCHES_PER_CHECK == 0
                        : explorer.matches % (MATCHES_PER_CHECK * MATCHES_PER_CHECK) == 0) {
                    index.check();
                }
            }
            explorer.clearAll();
            index.check();
            System.out.printf(
                    "%s, %d slots: %d matches (%d with operations inside), %d operations, %d"
                            + " refused, %d runs read again%n",
                    order,
                    slots,
                    explorer.matches,
                    explorer.disturbed,
                    explorer.operations,
                    explorer.refused,
                    explorer.readAgain);
        }
    }

    private static final class Explorer {
        private final Random random;
        private final WatchedIndex index;
        private final Order order;
        private final int slots;
        private final long[][] prompts;
        private long matches;
        private long disturbed;
        private long operations;
        private long refused;
        private long readAgain;
        private double chance;
        private int stride;
        private long[] matched = {};

        Explorer(Random random, WatchedIndex index, Order order, int slots, int depth, int kinds) {
            this.random = random;
            this.index = index;
            this.order = order;
            this.slots = slots;
            this.prompts = new long[20][];
            for (int i = 0; i < prompts.length; i++) {
                final long[] base = i == 0 ? new long[0] : prompts[random.nextInt(i)];
                // the same blocks again at other offsets, and prompts that differ in one block only
                final int shared = base.length == 0 ? 0 : random.nextInt(base.length);
                prompts[i] = Arrays.copyOf(base, Math.max(shared + 1, random.nextInt(depth) + 1));
                for (int j = Math.min(shared, base.length); j < prompts[i].length; j++) {
                    if (j >= base.length || j == shared || random.nextInt(8) == 0) {
                        prompts[i][j] = random.nextInt(kinds);
                    }
                }
            }
        }

        /** Whether anything was tried. */
        boolean hasDisturbed() {
            return disturbed > 0 && operations > refused;
        }

        void match() {
            if (matches++ % 512 == 0) {
                chance = new double[] {0.02, 0.05, 0.15, 0.5}[random.nextInt(4)];
                stride = new int[] {1, 4, 16, 64}[random.nextInt(4)];
            }
            if (order != Order.OPERATIONS && random.nextInt(3) > 0) {
                index.lag().clear();
            }
            final long[] prompt = prompts[random.nextInt(prompts.length)];
            matched = prompt;
            final long before = index.moment();
            final boolean lagging =
                    order != Order.OPERATIONS && index.lag().applied() < index.lag().logged();
            index.match(
                    prompt,
                    step -> {
                        while (random.nextDouble() < chance && random.nextInt(4) > 0) {
                            operate();
                        }
                        step();
                    });
            disturbed += index.moment() > before || lagging ? 1 : 0;
            final int found = index.taken(RadixMatcher.Step.IDENTIFIED);
            readAgain += Math.max(0, found - index.taken(RadixMatcher.Step.CHILD_FOUND));
            if (random.nextInt(8) == 0) {
                operate();
            }
        }

        /** Lets stores that were made take effect for the reader: often none, seldom many. */
        private void step() {
            if (order == Order.OPERATIONS || random.nextBoolean()) {
                return;
            }
            final int stores = random.nextInt(stride + 1);
            if (order == Order.STORES) {
                index.lag().advance(stores);
            } else {
                index.lag().advanceInAnyOrder(stores, random);
            }
        }

        private void operate() {
            operations++;
            final int slot = random.nextInt(slots);
            final long[] prompt =
                    matched.length > 0 && random.nextInt(3) == 0
                            ? matched
                            : prompts[random.nextInt(prompts.length)];
            final int length = 1 + random.nextInt(prompt.length);
            final int held = index.heldLength(slot, prompt);
            switch (random.nextInt(16)) {
                case 0, 1, 2, 3, 4, 5 -> store(slot, prompt, 0, length);
                case 6, 7 -> store(slot, prompt, held, prompt.length);
                case 8, 9, 10 -> remove(slot, prompt, random.nextInt(held + 1), held);
                case 11 -> remove(slot, prompt, random.nextInt(length), length);
                case 12, 13 -> remove(slot, prompt, length - 1, length);
                case 14 -> {
                    // many slots join or leave a run
                    final int first = random.nextInt(slots);
                    final int last = first + random.nextInt(slots - first);
                    final boolean join = random.nextBoolean();
                    for (int s = first; s <= last; s++) {
                        if (join) {
                            store(s, prompt, 0, length);
                        } else {
                            remove(s, prompt, 0, prompt.length);
                        }
                    }
                }
                default -> {
                    if (random.nextInt(4) == 0) {
                        index.clear(slot);
                    }
                }
            }
        }

        private void store(int slot, long[] prompt, int from, int to) {
            final int variant = random.nextInt(24) == 0 ? 1 : 0;
            final boolean refresh = random.nextInt(12) > 0;
            final StoreResult result = index.store(slot, prompt, from, to, variant, refresh);
            refused += result == StoreResult.STORED ? 0 : 1;
        }

        private void remove(int slot, long[] prompt, int from, int to) {
            final int variant = random.nextInt(24) == 0 ? 1 : 0;
            index.remove(slot, prompt, from, to, variant, CopyRule.LAST_COPY);
        }

        void clearAll() {
            for (int slot = 0; slot < slots; slot++) {
                index.clear(slot);
            }
        }
    }
}

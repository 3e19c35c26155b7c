package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.MemoryGate;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.testsupport.NaiveTiers;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;

/** Random events of three tiers of several workers; the indexes and naive tiers say the same. */
class LowerTiersModelTest {
    private static final int OPERATIONS = 4_000;
    private static final int TRIALS = 10;
    private static final int STEPS = 150;
    private static final StorageTier[] TIERS = {
        StorageTier.DEVICE, StorageTier.HOST, StorageTier.DISK
    };

    @ParameterizedTest(name = "{0} slots")
    @ValueSource(ints = {1, 3, 70})
    void saysWhatNaiveTiersSay(int slots) {
        run(slots, false);
    }

    @ParameterizedTest(name = "{0} slots")
    @ValueSource(ints = {1, 3})
    void saysNoMoreWhereParentsAreInTiersBelow(int slots) {
        run(slots, true);
    }

    /**
     * Tiers that lack room: whatever each of them refuses or gives up, none says more than there
     * is, and cleared they have all of their memory again.
     */
    @ParameterizedTest
    @EnumSource(CapacityRule.class)
    void saysNoMoreWhereTiersAreFull(CapacityRule rule) {
        final long seed = Seeds.next("LowerTiersModelTest " + rule);
        for (int trial = 0; trial < TRIALS; trial++) {
            final Random random = new Random(seed + trial);
            final int slots = 1 + random.nextInt(4);
            try (MemoryGate gate = new MemoryGate("the test")) {
                final PrefixIndex device = new PrefixIndex(sizes(random, slots, rule), gate);
                final LowerTiersConfig config =
                        new LowerTiersConfig(
                                Set.of(StorageTier.HOST, StorageTier.DISK, StorageTier.SHARED),
                                sizes(random, slots, rule));
                final Story story =
                        new Story(
                                random, slots, true, device, new LowerTiers(device, config, gate));
                try {
                    story.runFull();
                } catch (RuntimeException | AssertionError e) {
                    throw new AssertionError("trial " + trial + " of " + seed, e);
                }
            }
        }
    }

    private static PrefixIndexConfig sizes(Random random, int slots, CapacityRule rule) {
        return switch (random.nextInt(4)) {
            case 0 -> new PrefixIndexConfig(slots, 100_000, 100_000).with(rule);
            case 1 -> new PrefixIndexConfig(slots, 100, 400, 64 << 10, rule);
            case 2 -> new PrefixIndexConfig(slots, 40, 60).with(rule);
            default -> new PrefixIndexConfig(slots, 4 + random.nextInt(20), 30).with(rule);
        };
    }

    private static void run(int slots, boolean parentsBelow) {
        final Random random = new Random(Seeds.next("LowerTiersModelTest " + slots));
        final PrefixIndexConfig sizes = new PrefixIndexConfig(slots, 100_000, 100_000);
        try (MemoryGate gate = new MemoryGate("the test")) {
            final PrefixIndex device = new PrefixIndex(sizes, gate);
            final Story story =
                    new Story(
                            random,
                            slots,
                            parentsBelow,
                            device,
                            new LowerTiers(
                                    device,
                                    new LowerTiersConfig(
                                            Set.of(StorageTier.HOST, StorageTier.DISK), sizes),
                                    gate));
            for (int i = 0; i < OPERATIONS; i++) {
                story.step();
                if (i % 11 == 0) {
                    story.compare();
                }
                if (i % 499 == 0) {
                    story.checkInvariants();
                }
            }
            story.compare();
            story.checkInvariants();
        }
    }

    private static final class Story {
        private final Random random;
        private final int slots;
        private final boolean parentsBelow; // some indexes refuse a store then
        private final PrefixIndex device;
        private final LowerTiers lower;
        private final NaiveTiers naive;
        private final OverlapScores scores;
        private final OverlapScores sharedScores = new OverlapScores(1);
        private final NaiveTiers shared = new NaiveTiers(1, 1);
        private final Map<Long, Integer> announcers = new HashMap<>(); // of shared blocks, the last
        private final List<List<Long>> prompts = new ArrayList<>();

        Story(
                Random random,
                int slots,
                boolean parentsBelow,
                PrefixIndex device,
                LowerTiers lower) {
            this.random = random;
            this.slots = slots;
            this.parentsBelow = parentsBelow;
            this.device = device;
            this.lower = lower;
            this.naive = new NaiveTiers(slots, TIERS.length);
            this.scores = new OverlapScores(slots);
            for (int i = 0; i < 12; i++) {
                final List<Long> base = i == 0 ? List.of() : prompts.get(random.nextInt(i));
                final List<Long> prompt =
                        new ArrayList<>(base.subList(0, random.nextInt(base.size() + 1)));
                final int length = prompt.size() + 1 + random.nextInt(14);
                while (prompt.size() < length) {
                    prompt.add((long) random.nextInt(3));
                }
                prompts.add(prompt);
            }
        }

        void runFull() {
            final List<PrefixIndex> all = new ArrayList<>(List.of(device));
            for (StorageTier tier : lower.tiers()) {
                all.add(lower.indexOrNull(tier));
            }
            final long unused = usedBytes(all);
            for (int i = 0; i < STEPS; i++) {
                final int slot = random.nextInt(slots);
                switch (random.nextInt(8)) {
                    case 0 -> removeTo(slot);
                    case 1, 2 -> share(slot);
                    default -> step();
                }
                compare();
                compareShared();
                for (int tier = 1; tier < TIERS.length; tier++) {
                    int names = naive.names(slot, 0).size();
                    for (int t = 1; t <= tier; t++) {
                        names += naive.names(slot, t).size();
                    }
                    assertTrue(lower.indexOrNull(TIERS[tier]).heldBlocks(slot) <= names);
                }
                if (i % 31 == 0) {
                    all.forEach(IndexInvariants::check);
                }
            }
            all.forEach(IndexInvariants::check);
            for (int slot = 0; slot < slots; slot++) {
                clear(slot);
                if (random.nextBoolean()) {
                    clear(slot, random.nextInt(TIERS.length));
                }
            }
            for (PrefixIndex index : all) {
                assertEquals(0, index.heldBlocks());
                assertEquals(0, index.blocks());
            }
            assertEquals(unused, usedBytes(all));
        }

        private static long usedBytes(List<PrefixIndex> all) {
            return all.stream().mapToLong(PrefixIndex::usedBytes).sum();
        }

        /** An engine that counts copies says how many of a block are left on its device. */
        private void removeTo(int slot) {
            final List<Long> known = naive.names(slot, random.nextInt(TIERS.length));
            if (known.isEmpty()) {
                return;
            }
            final long name = known.get(random.nextInt(known.size()));
            final int left = random.nextInt(3);
            naive.removeTo(slot, 0, name, left);
            device.removeTo(slot, name, left);
            lower.deviceRemovedTo(slot, name, left);
        }

        /** Stores, removes or drops of shared storage, where all workers name alike. */
        private void share(int slot) {
            final List<Long> prompt = prompts.get(random.nextInt(prompts.size()));
            final int from = random.nextBoolean() ? 0 : random.nextInt(prompt.size());
            final int to = from + 1 + random.nextInt(prompt.size() - from);
            final List<Long> names = new ArrayList<>();
            for (int end = from + 1; end <= to; end++) {
                names.add(nameOf(0, prompt.subList(0, end)));
            }
            final long[] hashes = longs(names);
            switch (random.nextInt(6)) {
                case 0, 1, 2, 3 -> {
                    final Long parent = from == 0 ? null : nameOf(0, prompt.subList(0, from));
                    final boolean fits =
                            shared.store(0, 0, parent, names, prompt.subList(from, to));
                    for (long name : names) {
                        if (fits || announcers.containsKey(name)) {
                            announcers.put(name, slot);
                        }
                    }
                    lower.stored(
                            slot,
                            StorageTier.SHARED,
                            from == 0,
                            parent == null ? 0 : parent,
                            hashes,
                            longs(prompt.subList(from, to)),
                            hashes.length);
                }
                case 4 -> {
                    names.forEach(this::unshare);
                    lower.removed(slot, StorageTier.SHARED, hashes, hashes.length);
                }
                default -> {
                    unshareAllOf(slot);
                    lower.tierCleared(slot, StorageTier.SHARED);
                }
            }
        }

        private void unshare(long name) {
            shared.removeTo(0, 0, name, 0);
            announcers.remove(name);
        }

        private void unshareAllOf(int slot) {
            for (long name : List.copyOf(announcers.keySet())) {
                if (announcers.get(name) == slot) {
                    unshare(name);
                }
            }
        }

        private void compareShared() {
            final List<Long> prompt = prompts.get(random.nextInt(prompts.size()));
            final int depth =
                    lower.match(StorageTier.SHARED, longs(prompt), prompt.size(), sharedScores);
            assertTrue(depth <= shared.depth(0, 0, prompt), () -> "shared: " + depth);
            assertTrue(lower.indexOrNull(StorageTier.SHARED).heldBlocks() <= announcers.size());
        }

        /** One engine names each block of a prompt by what is before it, as all engines do. */
        private static long nameOf(int slot, List<Long> path) {
            return path.hashCode() * 0x9e3779b97f4a7c15L + slot;
        }

        void step() {
            final int slot = random.nextInt(slots);
            final int tier = random.nextInt(TIERS.length);
            switch (random.nextInt(12)) {
                case 0, 1, 2, 3 -> store(slot, tier);
                case 4, 5 -> storeByName(slot, 1 + random.nextInt(2));
                case 6, 7, 8, 9, 10 -> remove(slot, tier);
                default -> {
                    if (random.nextInt(30) == 0) {
                        clear(slot);
                    } else if (random.nextInt(6) == 0) {
                        clear(slot, tier);
                    }
                }
            }
        }

        /** Any part of a prompt, after its parent wherever that is; refused alike if nowhere. */
        private void store(int slot, int tier) {
            final List<Long> prompt = prompts.get(random.nextInt(prompts.size()));
            final int from = random.nextInt(prompt.size());
            final int to = from + 1 + random.nextInt(prompt.size() - from);
            final List<Long> names = new ArrayList<>();
            for (int end = from + 1; end <= to; end++) {
                names.add(nameOf(slot, prompt.subList(0, end)));
            }
            final Long parent = from == 0 ? null : nameOf(slot, prompt.subList(0, from));
            // a store that the device refuses is none of the device's; the tiers may know better
            if (!isHeldUpTo(slot, parentsBelow ? TIERS.length - 1 : tier, parent)) {
                return;
            }
            naive.store(slot, tier, parent, names, prompt.subList(from, to));
            final long[] hashes = longs(names);
            final long[] locals = longs(prompt.subList(from, to));
            final long before = parent == null ? 0 : parent;
            if (tier == 0) {
                final boolean root = parent == null;
                final StoreResult result =
                        device.store(slot, root, before, hashes, locals, hashes.length, false);
                lower.deviceStored(
                        slot, root, before, hashes, locals, hashes.length, false, result);
            } else {
                lower.stored(
                        slot, TIERS[tier], parent == null, before, hashes, locals, hashes.length);
            }
        }

        /**
         * Whether the parent is in the tier or one above it, so that no index refuses the store.
         */
        private boolean isHeldUpTo(int slot, int tier, Long parent) {
            boolean held = parent == null;
            for (int t = 0; t <= tier && parent != null; t++) {
                held |= naive.names(slot, t).contains(parent);
            }
            return held;
        }

        private void storeByName(int slot, int tier) {
            final int from = random.nextInt(parentsBelow ? TIERS.length : tier + 1);
            final List<Long> known = naive.names(slot, from);
            if (known.isEmpty()) {
                return;
            }
            final long name = known.get(random.nextInt(known.size()));
            naive.storeByName(slot, tier, name);
            lower.storedByName(slot, TIERS[tier], new long[] {name}, 1);
        }

        /** Mostly a block that is there, else one of another tier, which changes nothing. */
        private void remove(int slot, int tier) {
            final List<Long> known = naive.names(slot, random.nextInt(4) == 0 ? 0 : tier);
            if (known.isEmpty()) {
                return;
            }
            final long[] names = {known.get(random.nextInt(known.size()))};
            naive.remove(slot, tier, names[0]);
            if (tier == 0) {
                device.remove(slot, names, 1, CopyRule.PHYSICAL);
                lower.deviceRemoved(slot, names, 1, CopyRule.PHYSICAL);
            } else {
                lower.removed(slot, TIERS[tier], names, 1);
            }
        }

        private void clear(int slot) {
            naive.clear(slot);
            unshareAllOf(slot);
            device.clear(slot);
            lower.cleared(slot);
        }

        private void clear(int slot, int tier) {
            naive.clear(slot, tier);
            if (tier == 0) {
                lower.deviceCleared(slot);
                device.clear(slot);
            } else {
                lower.tierCleared(slot, TIERS[tier]);
            }
        }

        void compare() {
            final List<Long> prompt = prompts.get(random.nextInt(prompts.size()));
            final long[] hashes = longs(prompt);
            final int[] depths = new int[slots]; // the deepest of the tiers so far
            for (int tier = 0; tier < TIERS.length; tier++) {
                if (tier == 0) {
                    device.match(hashes, hashes.length, scores);
                } else {
                    lower.match(TIERS[tier], hashes, hashes.length, scores);
                }
                for (int slot = 0; slot < slots; slot++) {
                    final boolean announced = tier == 0 || !naive.names(slot, tier).isEmpty();
                    final int expected = naive.depth(slot, tier, prompt);
                    final int depth = scores.depth(slot);
                    depths[slot] = Math.max(depths[slot], depth);
                    if (parentsBelow) {
                        assertTrue(depth <= expected, TIERS[tier] + " of " + slot + ": " + depth);
                    } else {
                        assertEquals(expected, depths[slot], TIERS[tier] + " of " + slot);
                        assertTrue(!announced || depth == expected, TIERS[tier] + " of " + slot);
                    }
                }
            }
        }

        void checkInvariants() {
            IndexInvariants.check(device);
            IndexInvariants.check(lower.indexOrNull(StorageTier.HOST));
            IndexInvariants.check(lower.indexOrNull(StorageTier.DISK));
        }

        private static long[] longs(List<Long> values) {
            return values.stream().mapToLong(Long::longValue).toArray();
        }
    }
}

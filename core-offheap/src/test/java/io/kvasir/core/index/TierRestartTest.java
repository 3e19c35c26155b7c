package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.MemoryGate;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.testsupport.NaiveTiers;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;

/**
 * After a restart the device's blocks are there and those of lower tiers are not: whatever the
 * engine does then, no tier says more than the engine has, and a clear makes all exact again.
 */
class TierRestartTest {
    private static final int SLOT = 1;
    private static final int LENGTH = 9;
    private static final PrefixIndexConfig SIZES = new PrefixIndexConfig(2, 4_096, 4_096);
    private static final StorageTier[] TIERS = {
        StorageTier.DEVICE, StorageTier.HOST, StorageTier.DISK
    };

    private final NaiveTiers naive = new NaiveTiers(2, TIERS.length);
    private final OverlapScores scores = new OverlapScores(2);

    @TempDir Path folder;
    private Random random;
    private PrefixIndex device;
    private LowerTiers lower;
    private int lost;

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void noTierSaysMoreThanTheEngineHas(boolean mapped) throws IOException {
        random = new Random(Seeds.next("TierRestartTest " + mapped));
        for (int story = 0; story < 20; story++) {
            final Path file = folder.resolve("index-" + story);
            device = mapped ? kept(file) : new PrefixIndex(SIZES);
            lower = tiers();
            naive.clear(SLOT);
            for (int i = 0; i < 200; i++) {
                step();
            }
            compare(true);
            restart(mapped, file);
            for (int i = 0; i < 200; i++) {
                compare(false);
                step();
            }
            naive.clear(SLOT);
            device.clear(SLOT);
            lower.cleared(SLOT);
            for (int i = 0; i < 50; i++) {
                step();
                compare(true);
            }
            device.close();
        }
        assertTrue(lost > 0, "a restart that loses nothing shows nothing");
    }

    private void restart(boolean mapped, Path file) throws IOException {
        if (mapped) {
            device.commit();
            device.close();
            device = kept(file);
        } else {
            final PrefixIndex before = device;
            final SlotCopies.Content content = SlotCopies.export(before, SLOT, 7, () -> {});
            device = new PrefixIndex(SIZES);
            SlotCopies.importInto(device, SLOT, content, () -> {});
            before.close();
        }
        lower = tiers();
    }

    private static PrefixIndex kept(Path file) throws IOException {
        final IndexMemory memory = IndexMemory.open(file, SIZES, 16, 1337L, 0);
        return new PrefixIndex(SIZES, new MemoryGate("the test"), memory);
    }

    private LowerTiers tiers() {
        return new LowerTiers(
                device,
                new LowerTiersConfig(Set.of(StorageTier.HOST, StorageTier.DISK), SIZES),
                device.gate());
    }

    private List<Long> prompt() {
        final List<Long> prompt = new ArrayList<>();
        for (long i = 0; i < LENGTH; i++) {
            prompt.add(i == LENGTH / 2 ? random.nextInt(2) : i);
        }
        return prompt;
    }

    private static long name(List<Long> path) {
        return path.hashCode() * 0x9e3779b97f4a7c15L;
    }

    private void step() {
        final int tier = random.nextInt(TIERS.length);
        if (random.nextInt(5) > 2) {
            remove(tier);
        } else {
            store(tier);
        }
    }

    /** An engine stores a block after one that it has in the tier or above it. */
    private void store(int tier) {
        final List<Long> prompt = prompt();
        final int at = random.nextInt(prompt.size());
        final Long parent = at == 0 ? null : (Long) name(prompt.subList(0, at));
        boolean held = parent == null;
        for (int t = 0; t <= tier && !held; t++) {
            held = naive.names(SLOT, t).contains(parent);
        }
        final long[] names = {name(prompt.subList(0, at + 1))};
        if (!held || naive.names(SLOT, tier).contains(names[0])) {
            return;
        }
        naive.store(SLOT, tier, parent, List.of(names[0]), List.of(prompt.get(at)));
        final long[] locals = {prompt.get(at)};
        final long before = parent == null ? 0 : parent;
        if (tier == 0) {
            final StoreResult result =
                    device.store(SLOT, parent == null, before, names, locals, 1, false);
            lower.deviceStored(SLOT, parent == null, before, names, locals, 1, false, result);
        } else {
            lower.stored(SLOT, TIERS[tier], parent == null, before, names, locals, 1);
        }
    }

    private void remove(int tier) {
        final List<Long> known = naive.names(SLOT, tier);
        if (known.isEmpty()) {
            return;
        }
        final long[] names = {known.get(random.nextInt(known.size()))};
        naive.remove(SLOT, tier, names[0]);
        if (tier == 0) {
            device.remove(SLOT, names, 1, CopyRule.PHYSICAL);
            lower.deviceRemoved(SLOT, names, 1, CopyRule.PHYSICAL);
        } else {
            lower.removed(SLOT, TIERS[tier], names, 1);
        }
    }

    private void compare(boolean exact) {
        final List<Long> prompt = prompt();
        final long[] hashes = prompt.stream().mapToLong(hash -> hash).toArray();
        device.match(hashes, LENGTH, scores);
        final int ofDevice = scores.depth(SLOT);
        assertEquals(naive.depth(SLOT, 0, prompt), ofDevice, "the device is as the engine's");
        int found = ofDevice;
        for (int tier = 1; tier < TIERS.length; tier++) {
            lower.match(TIERS[tier], hashes, LENGTH, scores);
            found = Math.max(found, scores.depth(SLOT));
            final int has = naive.depth(SLOT, tier, prompt);
            assertTrue(found <= has, TIERS[tier] + ": " + found + " of " + has);
            assertTrue(!exact || found == has, TIERS[tier] + ": " + found + " is not " + has);
            lost += has - found;
        }
    }
}

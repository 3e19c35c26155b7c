package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.MemoryGate;
import io.kvasir.core.radix.OverlapScores;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.stream.LongStream;

class LowerTiersTest {
    private static final Set<StorageTier> ALL =
            EnumSet.of(StorageTier.HOST, StorageTier.DISK, StorageTier.SHARED);
    private static final int SLOTS = 4;
    private static final long[] LOCALS = {11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
    private static final long[] NAMES = {101, 102, 103, 104, 105, 106, 107, 108, 109, 110};

    private final MemoryGate gate = new MemoryGate("the test");
    private PrefixIndexConfig sizes = new PrefixIndexConfig(SLOTS, 10_000, 10_000);
    private PrefixIndex device = new PrefixIndex(sizes, gate);
    private LowerTiers lower = new LowerTiers(device, new LowerTiersConfig(ALL, sizes), gate);

    @AfterEach
    void giveBack() {
        gate.close();
    }

    @Test
    void aHostBlockAfterADeviceBlockGoesOnFromIt() {
        device(0, 0, 4);
        lower(0, StorageTier.HOST, 4, 7);

        assertEquals(4, depth(StorageTier.DEVICE, 0));
        assertEquals(7, depth(StorageTier.HOST, 0));
        assertEquals(0, depth(StorageTier.HOST, 1));
    }

    @Test
    void aTierThatAWorkerNeverAnnouncesHoldsNothing() {
        device(0, 0, 4);
        lower(0, StorageTier.HOST, 4, 7);
        byName(0, StorageTier.HOST, 0, 2);
        device(0, 4, 5);
        remove(0, StorageTier.HOST, 6, 7);
        removeFromDevice(0, 3, 4);
        remove(0, StorageTier.DISK, 0, 4);
        lower.tierCleared(0, StorageTier.DISK);
        assertEquals(0, lower.indexOrNull(StorageTier.DISK).heldBlocks());
        assertEquals(0, lower.indexOrNull(StorageTier.DISK).unknownRemovals());
        assertEquals(0, lower.heldBlocks(StorageTier.DISK, 0));

        lower(1, StorageTier.DISK, 0, 4);
        device(1, 0, 2);
        assertEquals(0, lower.indexOrNull(StorageTier.HOST).heldBlocks(1));
        assertEquals(4, lower.heldBlocks(StorageTier.DISK, 1));
        clearDevice(1);
        assertEquals(4, depth(StorageTier.DISK, 1));
    }

    @Test
    void theFirstDiskBlockHasWhatIsOnTheHostAndTheDevice() {
        device(0, 0, 3);
        device(0, 0, 1); // a second copy
        lower(0, StorageTier.HOST, 2, 6);
        removeFromDevice(0, 2, 3);
        lower(0, StorageTier.DISK, 6, 8);
        assertEquals(8, depth(StorageTier.DISK, 0));
        assertEquals(6, depth(StorageTier.HOST, 0));
        assertEquals(2, lower.heldBlocks(StorageTier.DISK, 0));

        removeFromDevice(0, 0, 1);
        assertEquals(8, depth(StorageTier.DISK, 0));
        remove(0, StorageTier.HOST, 5, 6);
        assertEquals(5, depth(StorageTier.DISK, 0));
        lower.tierCleared(0, StorageTier.HOST);
        assertEquals(2, depth(StorageTier.DISK, 0));
        lower(0, StorageTier.DISK, 2, 6);
        assertEquals(8, depth(StorageTier.DISK, 0));
        assertEquals(2, depth(StorageTier.HOST, 0));
        IndexInvariants.check(lower.indexOrNull(StorageTier.DISK));
    }

    @Test
    void theFirstHostBlockGoesOnFromTheDisks() {
        device(0, 0, 2);
        lower(0, StorageTier.DISK, 2, 4);
        lower(0, StorageTier.HOST, 1, 3);
        assertEquals(3, depth(StorageTier.HOST, 0));
        assertEquals(4, depth(StorageTier.DISK, 0));
        remove(0, StorageTier.DISK, 2, 3);
        assertEquals(4, depth(StorageTier.DISK, 0), "the host still has it");
        remove(0, StorageTier.HOST, 2, 3);
        assertEquals(2, depth(StorageTier.DISK, 0));
    }

    @Test
    void tiersMayAlternateAlongAPrompt() {
        device(0, 0, 2);
        lower(0, StorageTier.DISK, 2, 4);
        lower(0, StorageTier.HOST, 4, 6); // Dynamo's fixed order ends before these
        device(0, 6, 8); // refused by the device's own index, which has no parent there

        assertEquals(2, depth(StorageTier.DEVICE, 0));
        assertEquals(2, depth(StorageTier.HOST, 0));
        assertEquals(8, depth(StorageTier.DISK, 0));
    }

    @Test
    void aBlockIsThereUntilTheLastTierGivesItUp() {
        device(0, 0, 3);
        lower(0, StorageTier.HOST, 0, 3);
        removeFromDevice(0, 0, 3);
        assertEquals(0, depth(StorageTier.DEVICE, 0));
        assertEquals(3, depth(StorageTier.HOST, 0));

        device(0, 0, 3);
        remove(0, StorageTier.HOST, 0, 3);
        assertEquals(3, depth(StorageTier.HOST, 0));
        removeFromDevice(0, 1, 2);
        assertEquals(1, depth(StorageTier.HOST, 0));
    }

    @Test
    void anOffloadedBlockWhoseParentIsOnTheHostAlreadyOrOnTheDeviceStillIsFound() {
        device(0, 0, 4);
        for (int block = 3; block >= 0; block--) { // the deepest is evicted first
            removeFromDevice(0, block, block + 1);
            lower(0, StorageTier.HOST, block, block + 1);
        }
        assertEquals(0, depth(StorageTier.DEVICE, 0));
        assertEquals(4, depth(StorageTier.HOST, 0));
    }

    @Test
    void aHoleOfTheHostIsFilledByTheDevice() {
        lower(0, StorageTier.HOST, 0, 6);
        remove(0, StorageTier.HOST, 2, 3);
        assertEquals(2, depth(StorageTier.HOST, 0));
        device(0, 0, 3);
        assertEquals(6, depth(StorageTier.HOST, 0));
    }

    @Test
    void aRemovalFromATierThatHasNotGotTheBlockChangesNothing() {
        device(0, 0, 3);
        lower(0, StorageTier.HOST, 3, 5);
        remove(0, StorageTier.HOST, 0, 3);
        remove(0, StorageTier.DISK, 0, 5);
        removeFromDevice(0, 3, 5);
        remove(1, StorageTier.HOST, 0, 5);
        remove(0, StorageTier.SHARED, 0, 5);

        assertEquals(3, depth(StorageTier.DEVICE, 0));
        assertEquals(5, depth(StorageTier.HOST, 0));
    }

    @Test
    void aBlockThatMovesUpAndDownTenThousandTimesLeavesNothingBehind() {
        device(0, 0, 10);
        lower(0, StorageTier.HOST, 9, 10);
        lower(0, StorageTier.DISK, 9, 10);
        remove(0, StorageTier.HOST, 9, 10);
        remove(0, StorageTier.DISK, 9, 10);
        final long used = lower.indexOrNull(StorageTier.DISK).usedBytes();
        for (int i = 0; i < 10_000; i++) {
            lower(0, StorageTier.HOST, 8, 10);
            removeFromDevice(0, 8, 10);
            lower(0, StorageTier.DISK, 8, 10);
            remove(0, StorageTier.HOST, 8, 10);
            assertEquals(8, depth(StorageTier.HOST, 0));
            assertEquals(10, depth(StorageTier.DISK, 0));
            device(0, 8, 10);
            remove(0, StorageTier.DISK, 8, 10);
            assertEquals(10, depth(StorageTier.HOST, 0));
        }
        assertEquals(used, lower.indexOrNull(StorageTier.DISK).usedBytes());
        assertEquals(10, lower.indexOrNull(StorageTier.HOST).heldBlocks(0));
        IndexInvariants.check(lower.indexOrNull(StorageTier.HOST));
        IndexInvariants.check(lower.indexOrNull(StorageTier.DISK));
    }

    @Test
    void aTierStoresABlockOnceHoweverOftenItIsAnnounced() {
        for (int i = 0; i < 10_000; i++) {
            lower(0, StorageTier.HOST, 0, 4);
        }
        remove(0, StorageTier.HOST, 0, 4);
        assertEquals(0, depth(StorageTier.HOST, 0));
        assertEquals(0, lower.indexOrNull(StorageTier.HOST).heldBlocks());
    }

    @Test
    void aStoreByNameTakesTheBlockThatTheDeviceAnnounced() {
        device(0, 0, 5);
        byName(0, StorageTier.HOST, 0, 5);
        removeFromDevice(0, 2, 5);
        assertEquals(2, depth(StorageTier.DEVICE, 0));
        assertEquals(5, depth(StorageTier.HOST, 0));
        byName(0, StorageTier.DISK, 4, 5);
        remove(0, StorageTier.HOST, 0, 5);
        assertEquals(2, depth(StorageTier.HOST, 0));
        assertEquals(2, depth(StorageTier.DISK, 0));
        assertEquals(0, lower.unnamedBlocks());
    }

    @Test
    void aStoreOfAnUnknownNameIsCountedAndNothingElse() {
        device(0, 0, 2);
        byName(0, StorageTier.HOST, 5, 8);
        byName(1, StorageTier.HOST, 0, 1);
        byName(0, StorageTier.SHARED, 7, 8);
        assertEquals(5, lower.unnamedBlocks());
        assertEquals(2, depth(StorageTier.HOST, 0));
        assertEquals(0, lower.heldBlocks(StorageTier.HOST, 0));
    }

    @Test
    void aStoreWhoseParentIsInNoTierIsRefusedAndCounted() {
        lower(0, StorageTier.HOST, 3, 5);
        assertEquals(0, depth(StorageTier.HOST, 0));
        assertEquals(1, lower.indexOrNull(StorageTier.HOST).unknownParents());
        assertEquals(0, device.unknownParents());
    }

    @Test
    void aClearEmptiesAllTiersOfTheSlotAndNoOther() {
        for (int slot = 0; slot < 2; slot++) {
            device(slot, 0, 2);
            lower(slot, StorageTier.HOST, 2, 4);
            lower(slot, StorageTier.DISK, 4, 6);
        }
        device.clear(0);
        lower.cleared(0);
        for (StorageTier tier : EnumSet.of(StorageTier.HOST, StorageTier.DISK)) {
            assertEquals(0, depth(tier, 0));
            assertEquals(0, lower.heldBlocks(tier, 0));
        }
        assertEquals(6, depth(StorageTier.DISK, 1));
        lower(0, StorageTier.HOST, 0, 3); // and it begins anew
        assertEquals(3, depth(StorageTier.HOST, 0));
    }

    @Test
    void whatSharedStorageHasIsThereForEveryWorkerWhoeverAnnouncedIt() {
        device(0, 0, 2);
        lower(0, StorageTier.SHARED, 0, 2);
        lower(1, StorageTier.SHARED, 2, 5); // that worker has loaded the first two
        assertEquals(5, shared());
        lower(2, StorageTier.SHARED, 4, 5);
        remove(3, StorageTier.SHARED, 4, 5); // whoever says so: it is there no more
        assertEquals(4, shared());
        assertEquals(2, depth(StorageTier.DEVICE, 0));
    }

    @Test
    void whatAWorkerAnnouncedOfSharedStorageIsDroppedWithIt() {
        lower(0, StorageTier.SHARED, 0, 6);
        lower(1, StorageTier.SHARED, 0, 4); // announced last by another one
        lower.cleared(0);
        assertEquals(4, shared());
        assertEquals(2, lower.droppedBlocks());
        lower.cleared(0);
        assertEquals(4, shared());
        lower.cleared(1);
        assertEquals(0, shared());
        assertEquals(0, lower.heldBlocks(StorageTier.SHARED, 0));
    }

    @Test
    void aStoreByNameInSharedStorageTakesTheDevicesBlock() {
        device(0, 0, 3);
        byName(0, StorageTier.SHARED, 0, 3);
        removeFromDevice(0, 0, 3);
        assertEquals(3, shared());
    }

    @Test
    void aFullTierEvictsItsOwnAndLeavesTheDeviceAlone() {
        sizes = new PrefixIndexConfig(SLOTS, 12, 12).with(CapacityRule.EVICT);
        lower =
                new LowerTiers(
                        device, new LowerTiersConfig(EnumSet.of(StorageTier.HOST), sizes), gate);
        device(0, 0, 4);
        lower(0, StorageTier.HOST, 0, 4);
        lower(1, StorageTier.HOST, 0, 10);
        lower(2, StorageTier.HOST, 0, 10);
        assertTrue(lower.indexOrNull(StorageTier.HOST).heldBlocks() <= 12);
        assertTrue(lower.indexOrNull(StorageTier.HOST).evictedBlocks() > 0);
        assertEquals(4, depth(StorageTier.DEVICE, 0));
        assertEquals(0, device.evictedBlocks());
        byName(0, StorageTier.HOST, 0, 4);
        IndexInvariants.check(lower.indexOrNull(StorageTier.HOST));
    }

    @Test
    void aFullTierRefusesWhereThatIsTheRule() {
        sizes = new PrefixIndexConfig(SLOTS, 4, 4);
        lower =
                new LowerTiers(
                        device,
                        new LowerTiersConfig(
                                EnumSet.of(StorageTier.HOST, StorageTier.SHARED), sizes),
                        gate);
        lower(0, StorageTier.HOST, 0, 3);
        byName(0, StorageTier.HOST, 0, 3);
        lower(1, StorageTier.HOST, 0, 2);
        lower(0, StorageTier.SHARED, 0, 5);
        assertEquals(3, depth(StorageTier.HOST, 0));
        assertEquals(0, depth(StorageTier.HOST, 1));
        assertEquals(0, shared());
        assertEquals(1, lower.indexOrNull(StorageTier.HOST).capacityRefusals());
        remove(0, StorageTier.HOST, 0, 3);
        lower(1, StorageTier.HOST, 0, 2);
        assertEquals(2, depth(StorageTier.HOST, 1));
    }

    @Test
    void whatASharedStoreThatIsRefusedAnnouncesAgainIsTheLastAnnouncers() {
        sizes = new PrefixIndexConfig(SLOTS, 2, 2).with(CapacityRule.REFUSE);
        lower =
                new LowerTiers(
                        device, new LowerTiersConfig(EnumSet.of(StorageTier.SHARED), sizes), gate);
        lower(0, StorageTier.SHARED, 0, 2);
        lower(1, StorageTier.SHARED, 0, 3); // no room for the third
        assertEquals(2, shared());
        lower.cleared(0);
        assertEquals(2, shared());
        lower.cleared(1);
        assertEquals(0, shared());
    }

    @Test
    void evictedSharedBlocksHaveNoAnnouncerAnyMore() {
        sizes = new PrefixIndexConfig(SLOTS, 6, 6).with(CapacityRule.EVICT);
        lower =
                new LowerTiers(
                        device, new LowerTiersConfig(EnumSet.of(StorageTier.SHARED), sizes), gate);
        for (int i = 0; i < 1_000; i++) {
            final long[] names = {1_000 + 2 * i, 1_001 + 2 * i};
            lower.stored(i % SLOTS, StorageTier.SHARED, true, 0, names, names, 2);
        }
        for (int slot = 0; slot < SLOTS; slot++) {
            lower.cleared(slot);
        }
        final long dropped = lower.droppedBlocks();
        assertTrue(dropped <= 6, "dropped " + dropped);
        assertEquals(0, lower.heldBlocks(StorageTier.SHARED, 0));
    }

    @Test
    void aClearOfTheDeviceLeavesNothingOfWhatItsOwnIndexHadRefused() {
        lower(0, StorageTier.HOST, 0, 4);
        device(0, 4, 6); // only the tiers' indexes have its parent
        assertEquals(6, depth(StorageTier.HOST, 0));
        clearDevice(0);
        assertTrue(depth(StorageTier.HOST, 0) <= 4);
        assertTrue(depth(StorageTier.DISK, 0) <= 4);
        lower(0, StorageTier.HOST, 0, 4);
        clearDevice(0);
        assertEquals(4, depth(StorageTier.HOST, 0));
    }

    @Test
    void aClearOfTheHostLeavesNothingOfWhatItsIndexHadRefused() {
        device(0, 0, 2);
        lower(0, StorageTier.DISK, 2, 4);
        lower(0, StorageTier.HOST, 4, 6); // only the disk's index has its parent
        assertEquals(6, depth(StorageTier.DISK, 0));
        lower.tierCleared(0, StorageTier.HOST);
        assertTrue(depth(StorageTier.DISK, 0) <= 4);
    }

    @Test
    void aClearOfTheHostLeavesNothingThatItsIndexHadNoNameOf() {
        device(0, 0, 2);
        lower(0, StorageTier.DISK, 2, 4);
        byName(0, StorageTier.HOST, 2, 4); // only the disk's index has these blocks
        remove(0, StorageTier.DISK, 2, 4);
        assertEquals(4, depth(StorageTier.DISK, 0));
        lower.tierCleared(0, StorageTier.HOST);
        assertTrue(depth(StorageTier.DISK, 0) <= 2);
    }

    @Test
    void whatWasLeftOutOfAFormerTenantCostsTheNextNothing() {
        device = new PrefixIndex(new PrefixIndexConfig(SLOTS, 6, 6).with(CapacityRule.EVICT), gate);
        lower = new LowerTiers(device, new LowerTiersConfig(ALL, sizes), gate);
        device(0, 0, 4);
        device(1, 0, 4); // evicts some of the other's
        assertTrue(device.evictedBlocks(0) + device.evictedBlocks(1) > 0);
        for (int slot = 0; slot < 2; slot++) {
            device.clear(slot);
            lower.cleared(slot);
        }
        for (int slot = 0; slot < 2; slot++) {
            lower(slot, StorageTier.HOST, 0, 4);
            lower(slot, StorageTier.DISK, 4, 6);
            clearDevice(slot);
            assertEquals(4, depth(StorageTier.HOST, slot));
            assertEquals(6, depth(StorageTier.DISK, slot));
        }
    }

    @Test
    void aTierThatIsOffTakesNothing() {
        lower =
                new LowerTiers(
                        device, new LowerTiersConfig(EnumSet.of(StorageTier.DISK), sizes), gate);
        assertNull(lower.indexOrNull(StorageTier.HOST));
        assertFalse(lower.isIndexed(StorageTier.SHARED));
        device(0, 0, 2);
        lower(0, StorageTier.HOST, 2, 4);
        byName(0, StorageTier.SHARED, 0, 2);
        lower(0, StorageTier.SHARED, 0, 2);
        remove(0, StorageTier.SHARED, 0, 2);
        lower(0, StorageTier.DISK, 2, 3);
        assertEquals(3, depth(StorageTier.DISK, 0));
        assertEquals(1, lower.heldBlocks(StorageTier.DISK, 0));
        assertEquals(0, lower.heldBlocks(StorageTier.HOST, 0));
    }

    @Test
    void aWorkerThatAnnouncesNoLowerTierCostsNothing() {
        device(0, 0, 10);
        assertEquals(0, lower.indexOrNull(StorageTier.HOST).heldBlocks());
        lower(0, StorageTier.HOST, 0, 1);
        assertEquals(11, lower.indexOrNull(StorageTier.HOST).heldBlocks(0));
        assertEquals(1, lower.heldBlocks(StorageTier.HOST, 0));
    }

    @Test
    void copiesAndHolesOfTheDeviceAreCopiedToo() {
        device(0, 0, 6);
        device(0, 0, 6); // two copies of each
        removeFromDevice(0, 2, 3);
        removeFromDevice(0, 2, 3);
        lower(0, StorageTier.HOST, 2, 3);
        assertEquals(2, depth(StorageTier.DEVICE, 0));
        assertEquals(6, depth(StorageTier.HOST, 0));
        removeFromDevice(0, 4, 5);
        assertEquals(6, depth(StorageTier.HOST, 0));
        removeFromDevice(0, 4, 5);
        assertEquals(4, depth(StorageTier.HOST, 0));
    }

    @Test
    void whatOtherSlotsHoldInATierCountsWhileADeviceIsCopied() {
        final PrefixIndexConfig full =
                new PrefixIndexConfig(SLOTS, 10_000, 30, 4 << 20, CapacityRule.EVICT);
        lower = new LowerTiers(device, new LowerTiersConfig(Set.of(StorageTier.HOST), full), gate);
        final List<String> found = new ArrayList<>();
        lower.indexOrNull(StorageTier.HOST)
                .onEviction((_, _, _) -> found.add(matched())); // a reader amid the copy
        final long[] others = LongStream.range(1_000, 1_024).toArray();
        lower.stored(1, StorageTier.HOST, true, 0, others, others, others.length);
        lower(2, StorageTier.HOST, 0, 5);
        device(0, 0, 8);
        removeFromDevice(0, 2, 3);

        lower(0, StorageTier.HOST, 8, 9); // its first: the device's blocks are copied
        assertFalse(found.isEmpty(), "nothing was given up during the copy");
        assertEquals(Set.of("{2=5}"), Set.copyOf(found));
        assertEquals("{0=2, 2=5}", matched());
    }

    @Test
    void theDeviceIsNoLowerTier() {
        assertThrows(
                IllegalArgumentException.class,
                () -> new LowerTiersConfig(EnumSet.of(StorageTier.DEVICE), sizes));
    }

    private void device(int slot, int from, int to) {
        final long parent = from == 0 ? 0 : NAMES[from - 1];
        final long[] names = Arrays.copyOfRange(NAMES, from, to);
        final long[] locals = Arrays.copyOfRange(LOCALS, from, to);
        final StoreResult result =
                device.store(slot, from == 0, parent, names, locals, to - from, false);
        lower.deviceStored(slot, from == 0, parent, names, locals, to - from, false, result);
    }

    private void clearDevice(int slot) {
        lower.deviceCleared(slot);
        device.clear(slot);
    }

    private void removeFromDevice(int slot, int from, int to) {
        final long[] names = Arrays.copyOfRange(NAMES, from, to);
        device.remove(slot, names, to - from, CopyRule.PHYSICAL);
        lower.deviceRemoved(slot, names, to - from, CopyRule.PHYSICAL);
    }

    private void lower(int slot, StorageTier tier, int from, int to) {
        lower.stored(
                slot,
                tier,
                from == 0,
                from == 0 ? 0 : NAMES[from - 1],
                Arrays.copyOfRange(NAMES, from, to),
                Arrays.copyOfRange(LOCALS, from, to),
                to - from);
    }

    private void byName(int slot, StorageTier tier, int from, int to) {
        lower.storedByName(slot, tier, Arrays.copyOfRange(NAMES, from, to), to - from);
    }

    private void remove(int slot, StorageTier tier, int from, int to) {
        lower.removed(slot, tier, Arrays.copyOfRange(NAMES, from, to), to - from);
    }

    private int depth(StorageTier tier, int slot) {
        final OverlapScores scores = new OverlapScores(SLOTS);
        if (tier == StorageTier.DEVICE) {
            device.match(LOCALS, LOCALS.length, scores);
        } else {
            lower.match(tier, LOCALS, LOCALS.length, scores);
        }
        return scores.depth(slot);
    }

    private String matched() {
        final OverlapScores scores = new OverlapScores(SLOTS);
        final int deepest = lower.match(StorageTier.HOST, LOCALS, LOCALS.length, scores);
        assertEquals(scores.deepest(), deepest);
        return scores.toString();
    }

    private int shared() {
        return lower.match(StorageTier.SHARED, LOCALS, LOCALS.length, new OverlapScores(1));
    }
}

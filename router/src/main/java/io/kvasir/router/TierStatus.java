package io.kvasir.router;

import io.kvasir.core.index.LowerTiers;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.StorageTier;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;

/**
 * What the index of a tier below the device has used of its memory and what it has refused, as of
 * one moment. It has what workers that announce such blocks hold in the tiers above, too.
 *
 * @param tier host, disk or shared
 * @param usedBytes of its memory
 * @param limitBytes most that it may use
 * @param refused what was not taken since the start, by cause: index-full, evicted-block,
 *     unknown-parent, unknown-removal, invalid-store
 */
public record TierStatus(
        StorageTier tier, long usedBytes, long limitBytes, SequencedMap<String, Long> refused) {
    /** Those of all tiers that are followed. */
    static List<TierStatus> of(LowerTiers lowerOrNull) {
        final List<TierStatus> list = new ArrayList<>();
        for (StorageTier tier : StorageTier.values()) {
            if (lowerOrNull != null && lowerOrNull.isIndexed(tier)) {
                list.add(of(tier, lowerOrNull.indexOrNull(tier)));
            }
        }
        return List.copyOf(list);
    }

    private static TierStatus of(StorageTier tier, PrefixIndex index) {
        final SequencedMap<String, Long> refused = new LinkedHashMap<>();
        refused.put("index-full", index.capacityRefusals() + index.missingParents());
        refused.put("evicted-block", index.evictedBlocks());
        refused.put("unknown-parent", index.unknownParents());
        refused.put("unknown-removal", index.unknownRemovals());
        refused.put("invalid-store", index.invalidStores());
        return new TierStatus(tier, index.usedBytes(), index.config().budgetBytes(), refused);
    }
}

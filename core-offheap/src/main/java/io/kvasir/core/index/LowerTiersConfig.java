package io.kvasir.core.index;

import java.util.Set;

/**
 * Which tiers below the device are indexed, and how large each of their instances may be.
 *
 * @param tiers tiers to index; {@link StorageTier#DEVICE} is not one of them
 * @param sizes limits of each instance, of which that of shared storage has one slot
 */
public record LowerTiersConfig(Set<StorageTier> tiers, PrefixIndexConfig sizes) {
    /**
     * Copies the set.
     *
     * @throws IllegalArgumentException if it names the device
     */
    public LowerTiersConfig {
        tiers = Set.copyOf(tiers);
        if (tiers.contains(StorageTier.DEVICE)) {
            throw new IllegalArgumentException(
                    "the device's blocks are in the index itself; tiers=" + tiers);
        }
    }
}

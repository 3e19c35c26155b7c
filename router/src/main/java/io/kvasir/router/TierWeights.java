package io.kvasir.router;

import io.kvasir.core.index.StorageTier;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Settings;

import java.util.EnumSet;
import java.util.Set;

/**
 * What a block in each tier below the device counts against one on the device.
 *
 * @param host 0 to 1; 0: the tier is not followed
 * @param disk likewise
 * @param shared likewise
 */
record TierWeights(double host, double disk, double shared) {
    static TierWeights of(Settings settings) {
        return new TierWeights(
                settings.get(RouterSettings.HOST_CACHE_HIT_WEIGHT),
                settings.get(RouterSettings.DISK_CACHE_HIT_WEIGHT),
                settings.get(RouterSettings.SHARED_CACHE_MULTIPLIER));
    }

    /** Tiers whose blocks count something. */
    Set<StorageTier> tiers() {
        final Set<StorageTier> counting = EnumSet.noneOf(StorageTier.class);
        if (host > 0) {
            counting.add(StorageTier.HOST);
        }
        if (disk > 0) {
            counting.add(StorageTier.DISK);
        }
        if (shared > 0) {
            counting.add(StorageTier.SHARED);
        }
        return counting;
    }
}

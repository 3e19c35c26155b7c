package io.kvasir.router;

import io.kvasir.core.load.LoadBoardDescriptor;
import io.kvasir.core.radix.OverlapScores;

import java.util.Arrays;

/**
 * What each worker holds of one prompt in tiers below its device, or can load, and what that
 * counts. Each tier's blocks are those from where the tiers above it end: on the host from the
 * device's on, on disk from the host's on, in shared storage from the disk's on. Owned by {@link
 * CandidateCosts}.
 *
 * <p>Where no worker's prefix continues in a lower tier, which is so for most prompts of a fleet
 * without such tiers, nothing is kept, and costs are computed as without tiers.
 */
final class TierOverlaps {
    private static final int GROUP_SLOTS = LoadBoardDescriptor.GROUP_SLOTS;

    private boolean any;
    private int deepest;
    private int reusableBlocks;
    private int[] device = {}; // by slot, as all
    private int[] host = {};
    private int[] disk = {};
    private int[] reach = {}; // blocks up to the end of the last tier
    private double[] extra = {}; // what those below the device count

    /**
     * Takes what the matches found.
     *
     * @param scoresOrNull of the tiers; null where there are none
     * @param cached of the devices
     * @param groups of 64 slots
     * @param reusable most blocks that an engine reuses of the prompt
     */
    void fill(TierScores scoresOrNull, OverlapScores cached, int groups, int reusable) {
        any = false;
        if (scoresOrNull == null || scoresOrNull.deepest() == 0) {
            return;
        }
        final int slots = groups * GROUP_SLOTS;
        if (device.length < slots) {
            device = new int[slots];
            host = new int[slots];
            disk = new int[slots];
            reach = new int[slots];
            extra = new double[slots];
        }
        cached.copyDepths(0, groups, device);
        if (!scoresOrNull.copyHost(groups, host)) {
            Arrays.fill(host, 0, slots, 0);
        }
        if (!scoresOrNull.copyDisk(groups, disk)) {
            Arrays.fill(disk, 0, slots, 0);
        }
        deepest = cached.deepest();
        reusableBlocks = reusable;
        addUp(slots, scoresOrNull.sharedBlocks(), scoresOrNull.weights(), reusable);
    }

    private void addUp(int slots, int inShared, TierWeights weights, int reusable) {
        int more = 0;
        for (int i = 0; i < slots; i++) {
            final int withHost = Math.max(device[i], host[i]);
            final int withDisk = Math.max(withHost, disk[i]);
            final int all = Math.max(withDisk, inShared);
            extra[i] =
                    weights.host() * below(device[i], withHost, reusable)
                            + weights.disk() * below(withHost, withDisk, reusable)
                            + weights.shared() * below(withDisk, all, reusable);
            host[i] = withHost;
            disk[i] = withDisk;
            reach[i] = all;
            more |= all - device[i];
            deepest = Math.max(deepest, all);
        }
        any = more != 0;
    }

    /** Blocks from one depth to another that an engine reuses. */
    private static int below(int from, int to, int reusable) {
        return Math.min(to, reusable) - Math.min(from, reusable);
    }

    /** Whether any slot holds more than it has on its device. */
    boolean any() {
        return any;
    }

    /** The deepest of all. */
    int deepest() {
        return deepest;
    }

    /** By slot, how many leading blocks are in any tier; to be read only where there are any. */
    int[] reach() {
        return reach;
    }

    /** What the blocks of a slot below the device count, in blocks of the device. */
    double extra(int slot) {
        return any ? extra[slot] : 0;
    }

    /** Blocks of a slot in shared storage that an engine reuses. */
    int sharedReused(int slot) {
        return any ? below(disk[slot], reach[slot], reusableBlocks) : 0;
    }

    /** Blocks on the host, from the device's on. */
    int host(int slot) {
        return any ? host[slot] - device[slot] : 0;
    }

    /** Blocks on disk, from the host's on. */
    int disk(int slot) {
        return any ? disk[slot] - host[slot] : 0;
    }

    /** Blocks in shared storage, from the disk's on. */
    int shared(int slot) {
        return any ? reach[slot] - disk[slot] : 0;
    }
}

package io.kvasir.router;

import io.kvasir.core.load.LoadSnapshot;
import io.kvasir.router.policy.RandomSource;

/**
 * Consistent hashing with bounded loads: of the candidates that run fewer requests than the bound
 * the one with the greatest weight for the request's key. Weights are drawn by hashing key and
 * worker, so that a worker that comes takes over its share of the keys and no other key moves, and
 * the keys of one that leaves are spread over all others. Any thread; allocates nothing.
 *
 * @see <a href="https://doi.org/10.1109/90.663936">Thaler, Ravishankar: Using name-based mappings
 *     to increase hit rates</a>
 * @see <a href="https://arxiv.org/abs/1608.01350">Mirrokni, Thorup, Zadimoghaddam: Consistent
 *     hashing with bounded loads</a>
 */
final class HashSelector {
    private final double loadFactor;

    /**
     * @param loadFactor how many times its share of the running requests a worker has at most, 1 or
     *     more
     */
    HashSelector(double loadFactor) {
        this.loadFactor = loadFactor;
    }

    /** The slot for a key; there is a candidate. */
    int slot(Selection selection, long key) {
        final Candidates candidates = selection.candidates();
        final LoadSnapshot loads = candidates.loads();
        final long most = mostRequests(candidates, loads);
        int best = -1;
        long heaviest = 0;
        for (int group = 0; group < candidates.groups(); group++) {
            for (long rest = candidates.slots(group); rest != 0; rest &= rest - 1) {
                final int slot = group * Long.SIZE + Long.numberOfTrailingZeros(rest);
                if (loads.activeRequests(slot) < most) {
                    final long weight = weight(key, candidates.workers().at(slot));
                    if (best < 0 || Long.compareUnsigned(weight, heaviest) > 0) {
                        best = slot;
                        heaviest = weight;
                    }
                }
            }
        }
        return best;
    }

    /** Requests on one worker, the new one included; some candidate has fewer. */
    private long mostRequests(Candidates candidates, LoadSnapshot loads) {
        long running = 0;
        for (int group = 0; group < candidates.groups(); group++) {
            for (long rest = candidates.slots(group); rest != 0; rest &= rest - 1) {
                final int slot = group * Long.SIZE + Long.numberOfTrailingZeros(rest);
                running += Math.max(0, loads.activeRequests(slot)); // below 0 for moments
            }
        }
        return (long) Math.ceil(loadFactor * (running + 1) / candidates.count());
    }

    static long weight(long key, Worker worker) {
        return RandomSource.mix(key ^ RandomSource.mix(worker.nameHash()));
    }
}

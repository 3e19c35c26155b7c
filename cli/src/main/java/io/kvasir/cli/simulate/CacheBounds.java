package io.kvasir.cli.simulate;

import io.kvasir.cli.load.MooncakeTrace;

import java.util.LinkedHashMap;
import java.util.List;

/**
 * Hit rates without a fleet: of one cache that all requests share, filled by each at once. In
 * blocks of one hash id.
 *
 * @param endless of a cache that never evicts: no policy hits more
 * @param pooled of one that holds what all engines hold together and evicts the least recently used
 *     block: what engines that evict so reach if none holds a block twice and all evict equally old
 *     ones. A policy that knows what is not asked for again could exceed it
 */
record CacheBounds(double endless, double pooled) {
    /**
     * Plays requests through both caches.
     *
     * @param tokensPerId prompt tokens that a hash id stands for
     */
    static CacheBounds of(List<MooncakeTrace.Request> requests, FleetPlan plan, int tokensPerId) {
        final long tokens =
                (long) plan.workers() * plan.engine().blocks() * plan.engine().blockSize();
        final int blockSize = plan.engine().blockSize();
        return new CacheBounds(
                hitRate(requests, Long.MAX_VALUE, tokensPerId, blockSize),
                hitRate(requests, tokens / tokensPerId, tokensPerId, blockSize));
    }

    private static double hitRate(
            List<MooncakeTrace.Request> requests, long capacity, int tokensPerId, int blockSize) {
        final LinkedHashMap<Long, Boolean> cache = new LinkedHashMap<>(16, 0.75f, true);
        long all = 0;
        long hits = 0;
        for (MooncakeTrace.Request request : requests) {
            final long[] ids = request.hashIds();
            int found = 0;
            while (found < ids.length && cache.containsKey(ids[found])) {
                found++;
            }
            final int most = (request.inputLength() - 1) / blockSize * blockSize;
            hits += Math.min((long) found * tokensPerId, most);
            all += request.inputLength();
            for (int i = ids.length - 1; i >= 0; i--) { // the deepest is the oldest
                cache.put(ids[i], true);
            }
            while (cache.size() > capacity) {
                cache.pollFirstEntry();
            }
        }
        return (double) hits / all;
    }
}

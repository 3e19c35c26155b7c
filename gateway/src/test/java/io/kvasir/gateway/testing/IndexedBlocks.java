package io.kvasir.gateway.testing;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Worker;

import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** What the index of a running router holds. */
public final class IndexedBlocks {
    private static final int AT_ONCE = 4_096;

    private IndexedBlocks() {}

    /** Engine hashes by the name of the worker, which has one rank. */
    public static Map<String, Set<Long>> of(KvRouter router) {
        final Map<String, Set<Long>> held = new TreeMap<>();
        for (Worker worker : router.workers()) {
            held.put(worker.name(), of(router, worker.slot()));
        }
        return held;
    }

    private static Set<Long> of(KvRouter router, int slot) {
        final Set<Long> names = new TreeSet<>();
        try {
            int from = 0;
            while (from != PrefixIndex.NO_MORE_RUNS) {
                from =
                        router.indexPipeline()
                                .visitRuns(
                                        slot,
                                        from,
                                        AT_ONCE,
                                        (_, _, engineHashes, _, count) -> {
                                            for (int i = 0; i < count; i++) {
                                                names.add(engineHashes[i]);
                                            }
                                        });
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        return names;
    }
}

package io.kvasir.gateway.upstream;

import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * What the registered servers can do together, and whether a pool keeps its quorum. Counted: a
 * server that changes costs as much as one server, but where its pool loses the quorum or has it
 * again, which all of the pool are notified of. One thread at a time.
 */
final class UsableServers {
    private final EjectionLimit limit;
    private final Map<Upstream, Counted> counted = new HashMap<>();
    private final Map<WorkerPool, Pool> pools = new EnumMap<>(WorkerPool.class);
    private final int[] prefills = new int[Long.SIZE]; // usable ones, by taint of the protocol
    private final int[] decodes = new int[Long.SIZE];
    private int whole; // usable ones that answer a whole request

    /** How a server was counted last. */
    private record Counted(boolean living, boolean ejected, boolean usable) {
        static final Counted NOT = new Counted(false, false, false);
    }

    /** The servers of one pool that something new may be sent to. */
    private static final class Pool {
        private int living; // ejected ones included
        private int ejected;
        private boolean usesEjected;
    }

    UsableServers(EjectionLimit limit) {
        this.limit = limit;
        for (WorkerPool pool : WorkerPool.values()) {
            pools.put(pool, new Pool());
        }
    }

    /** Begins to count a server. */
    void added(Upstream upstream) {
        counted.put(upstream, Counted.NOT);
        changed(upstream);
    }

    /** Counts a server anew; one that was never added, or was removed, counts nothing. */
    void changed(Upstream upstream) {
        if (counted.containsKey(upstream)) {
            upstream.useEjected(pools.get(upstream.pool()).usesEjected); // tells the router
            count(upstream, now(upstream));
            keepQuorum(upstream.pool());
        }
    }

    /** Counts a server no more. */
    void removed(Upstream upstream) {
        if (counted.containsKey(upstream)) {
            count(upstream, Counted.NOT);
            counted.remove(upstream);
            keepQuorum(upstream.pool());
        }
    }

    /** Asks again whether the pools keep their quorum, which is another one now. */
    void limitChanged() {
        for (WorkerPool pool : WorkerPool.values()) {
            keepQuorum(pool);
        }
    }

    private static Counted now(Upstream upstream) {
        final boolean usable = upstream.inUse();
        if (upstream.draining() || !upstream.admitted()) {
            return new Counted(false, false, usable); // it is none of those that are left
        }
        return switch (upstream.health().state()) {
            case DOWN -> new Counted(false, false, usable);
            case EJECTED -> new Counted(true, true, usable);
            case UNKNOWN, UP, TRIAL -> new Counted(true, false, usable);
        };
    }

    private void count(Upstream upstream, Counted now) {
        final Counted before = counted.put(upstream, now);
        final Pool pool = pools.get(upstream.pool());
        pool.living += difference(before.living, now.living);
        pool.ejected += difference(before.ejected, now.ejected);
        final int more = difference(before.usable, now.usable);
        if (more != 0) {
            countUsable(upstream, more);
        }
    }

    private static int difference(boolean before, boolean now) {
        return (now ? 1 : 0) - (before ? 1 : 0);
    }

    private void countUsable(Upstream upstream, int more) {
        final int protocol = Long.numberOfTrailingZeros(WorkerTaints.of(upstream.handoff()));
        switch (upstream.role()) {
            case BOTH -> whole += more;
            case PREFILL -> prefills[protocol] += more;
            case DECODE -> {
                decodes[protocol] += more;
                whole += upstream.handoff().decodeWorkerCanPrefill() ? more : 0;
            }
        }
    }

    private void keepQuorum(WorkerPool of) {
        final Pool pool = pools.get(of);
        final boolean exceeded = limit.isExceeded(pool.living, pool.ejected);
        if (exceeded == pool.usesEjected) {
            return;
        }
        pool.usesEjected = exceeded;
        for (Upstream upstream : List.copyOf(counted.keySet())) {
            if (upstream.pool() == of) {
                upstream.useEjected(exceeded);
                count(upstream, now(upstream)); // no other living or ejected than before
            }
        }
    }

    /** What those can do that can be used. */
    Capabilities capabilities() {
        return new Capabilities(whole > 0, present(prefills), present(decodes));
    }

    private static long present(int[] byTaint) {
        long taints = 0;
        for (int i = 0; i < byTaint.length; i++) {
            taints |= byTaint[i] > 0 ? 1L << i : 0;
        }
        return taints;
    }
}

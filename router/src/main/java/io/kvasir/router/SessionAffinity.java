package io.kvasir.router;

import java.util.function.LongSupplier;

/**
 * Has the requests of a session go to the worker that had the last one, while that is a candidate.
 * Any thread; allocates nothing.
 */
final class SessionAffinity {
    private final SessionTable table;
    private final SessionMode mode;
    private final long ttlNs;
    private final LongSupplier clock;

    SessionAffinity(SessionTable table, SessionMode mode, long ttlNs, LongSupplier clock) {
        this.table = table;
        this.mode = mode;
        this.ttlNs = ttlNs;
        this.clock = clock;
    }

    /** As a router's settings say; null where sessions are not followed. */
    static SessionAffinity ofOrNull(RouterConfig config) {
        final long ttlNs = config.get(RouterSettings.SESSION_TTL).toNanos();
        return ttlNs == 0
                ? null
                : new SessionAffinity(
                        new SessionTable(
                                config.get(RouterSettings.MAX_SESSIONS),
                                config.random().nextLong()),
                        config.get(RouterSettings.SESSION_MODE),
                        ttlNs,
                        config.clock());
    }

    SessionMode mode() {
        return mode;
    }

    SessionTable table() {
        return table;
    }

    /** What a request's session is bound to now. */
    long find(long key) {
        return table.find(key, clock.getAsLong());
    }

    /** A request of the session was booked. */
    void booked(long key, long seen, Worker worker) {
        final long nowNs = clock.getAsLong();
        table.bind(key, seen, binding(worker), nowNs + ttlNs, nowNs);
    }

    /** Sessions that are bound now. */
    int count() {
        return table.count(clock.getAsLong());
    }

    /** A tenant of a slot as one number, never {@link SessionTable#NONE}. */
    static long binding(Worker worker) {
        return ((long) worker.slotGeneration() << 32) | (worker.slot() + 1);
    }

    /** The slot of a binding; -1 where its worker is not in the set any more. */
    static int slot(long binding, WorkerSet workers) {
        final Worker worker = binding == SessionTable.NONE ? null : workers.at((int) binding - 1);
        return worker != null && binding(worker) == binding ? worker.slot() : -1;
    }
}

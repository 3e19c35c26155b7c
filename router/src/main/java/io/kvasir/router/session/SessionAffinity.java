package io.kvasir.router.session;

import java.util.function.LongSupplier;

/**
 * Which tenant of a worker slot had the last request of each session, for as long as sessions are
 * followed. Any thread; takes no lock, allocates nothing.
 */
public final class SessionAffinity {
    /** What a session is bound to that is bound to nothing. */
    public static final long NONE = SessionTable.NONE;

    private final SessionTable table;
    private final long ttlNs;
    private final LongSupplier clock;

    /**
     * @param sessions how many are followed at least, were they spread evenly
     * @param salt not known to clients, which choose the keys
     * @param ttlNs how long a session is followed after its last request
     */
    public SessionAffinity(int sessions, long salt, long ttlNs, LongSupplier clock) {
        this(new SessionTable(sessions, salt), ttlNs, clock);
    }

    private SessionAffinity(SessionTable table, long ttlNs, LongSupplier clock) {
        this.table = table;
        this.ttlNs = ttlNs;
        this.clock = clock;
    }

    /** The same sessions, which end after another time from their next requests on. */
    public SessionAffinity withTtl(long ns) {
        return ns == ttlNs ? this : new SessionAffinity(table, ns, clock);
    }

    /** What a request's session is bound to now; {@link #NONE} for nothing. */
    public long find(long key) {
        return table.find(key, clock.getAsLong());
    }

    /**
     * A request of the session was booked.
     *
     * @param seen what the session was bound to when the worker was chosen
     * @param binding the chosen worker's
     */
    public void booked(long key, long seen, long binding) {
        final long nowNs = clock.getAsLong();
        table.bind(key, seen, binding, nowNs + ttlNs, nowNs);
    }

    /** Sessions that are bound now. */
    public int count() {
        return table.count(clock.getAsLong());
    }

    /** A tenant of a slot as one number, never {@link #NONE}. */
    public static long binding(int slot, int slotGeneration) {
        return ((long) slotGeneration << 32) | (slot + 1);
    }

    /** The slot of a binding; -1 of {@link #NONE}. */
    public static int slot(long binding) {
        return (int) binding - 1;
    }
}

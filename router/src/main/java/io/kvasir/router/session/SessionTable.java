package io.kvasir.router.session;

import io.kvasir.router.policy.RandomSource;

import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.LongAdder;

/**
 * Which worker each session is bound to, and until when. Of a fixed size: where no room is left,
 * the session that would end soonest is forgotten. Any thread; takes no lock, never waits,
 * allocates nothing. A reader or writer that finds another one at work in the same set for long
 * continues without: affinity is a preference.
 *
 * <p>Sets of eight entries, each set with a version that is odd while it is written: readers
 * believe what they have read only if the version is the same afterwards. All accesses are
 * volatile.
 */
final class SessionTable {
    /** No binding. */
    static final long NONE = 0;

    private static final int WAYS = 8;
    private static final int KEYS = 1; // offsets in a set; the version is at 0
    private static final int VALUES = KEYS + WAYS;
    private static final int ENDS = VALUES + WAYS;
    private static final int SET_WORDS = ENDS + WAYS;
    private static final int TRIES = 16;

    private final AtomicLongArray words;
    private final int sets; // a power of two
    private final long salt;
    private final LongAdder evicted = new LongAdder();
    private final LongAdder skipped = new LongAdder();

    /**
     * @param sessions how many fit at least, were they spread evenly
     * @param salt not known to clients, which choose the keys, so that they cannot aim at a set
     */
    SessionTable(int sessions, long salt) {
        this.salt = salt;
        sets = Integer.highestOneBit(Math.max(1, (sessions + WAYS - 1) / WAYS * 2 - 1));
        words = new AtomicLongArray(sets * SET_WORDS);
    }

    /** Entries for sessions. */
    int entries() {
        return sets * WAYS;
    }

    /**
     * The binding of a session that has not ended.
     *
     * @return {@link #NONE} where there is none
     */
    long find(long key, long nowNs) {
        final int set = set(key);
        for (int tries = 0; tries < TRIES; tries++) {
            final long version = words.get(set);
            if ((version & 1) == 0) {
                final long found = scan(set, key, nowNs);
                if (words.get(set) == version) {
                    return found;
                }
            }
            Thread.onSpinWait();
        }
        skipped.increment();
        return NONE;
    }

    private long scan(int set, long key, long nowNs) {
        for (int way = 0; way < WAYS; way++) {
            if (words.get(set + KEYS + way) == key && isLive(set, way, nowNs)) {
                return words.get(set + VALUES + way);
            }
        }
        return NONE;
    }

    private boolean isLive(int set, int way, long nowNs) {
        return words.get(set + VALUES + way) != NONE && words.get(set + ENDS + way) - nowNs > 0;
    }

    /**
     * Binds a session, unless it has been bound to something else since it was looked up: the first
     * binding wins.
     *
     * @param seen what {@link #find} gave
     * @param value not {@link #NONE}
     * @param endNs when it ends
     */
    void bind(long key, long seen, long value, long endNs, long nowNs) {
        final int set = set(key);
        for (int tries = 0; tries < TRIES; tries++) {
            final long version = words.get(set);
            if ((version & 1) == 0 && words.compareAndSet(set, version, version + 1)) {
                write(set, key, seen, value, endNs, nowNs);
                words.set(set, version + 2);
                return;
            }
            Thread.onSpinWait();
        }
        skipped.increment();
    }

    private void write(int set, long key, long seen, long value, long endNs, long nowNs) {
        int free = -1;
        int soonest = 0;
        for (int way = 0; way < WAYS; way++) {
            final boolean live = isLive(set, way, nowNs);
            if (live && words.get(set + KEYS + way) == key) {
                final long now = words.get(set + VALUES + way);
                if (now == seen || now == value) {
                    put(set, way, key, value, endNs);
                }
                return;
            }
            if (!live) {
                free = way;
            } else if (words.get(set + ENDS + way) - words.get(set + ENDS + soonest) < 0) {
                soonest = way;
            }
        }
        if (free < 0) {
            evicted.increment();
            free = soonest;
        }
        put(set, free, key, value, endNs);
    }

    private void put(int set, int way, long key, long value, long endNs) {
        words.set(set + KEYS + way, key);
        words.set(set + VALUES + way, value);
        words.set(set + ENDS + way, endNs);
    }

    /** Sessions that are bound; reads every entry. */
    int count(long nowNs) {
        int count = 0;
        for (int set = 0; set < words.length(); set += SET_WORDS) {
            for (int way = 0; way < WAYS; way++) {
                count += isLive(set, way, nowNs) ? 1 : 0;
            }
        }
        return count;
    }

    /** Sessions that were forgotten before their end, for want of room. */
    long evicted() {
        return evicted.sum();
    }

    /** Look-ups and bindings that were given up because others were at work in the same set. */
    long skipped() {
        return skipped.sum();
    }

    private int set(long key) {
        return (int) ((RandomSource.mix(key ^ salt) >>> 32) & (sets - 1)) * SET_WORDS;
    }
}

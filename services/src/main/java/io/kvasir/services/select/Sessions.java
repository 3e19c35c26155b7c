package io.kvasir.services.select;

import io.kvasir.router.settings.SessionMode;
import io.kvasir.services.http.GroupKey;
import io.kvasir.services.indexer.Match;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.LongSupplier;

/**
 * Which rank had the last reservation of each session, for some time; where no room is left, the
 * session that was used longest ago is forgotten. Guarded by the lock under which workers are
 * chosen.
 */
final class Sessions {
    /** Characters of a session's name at most. */
    static final int MOST_NAME_LENGTH = 512;

    /** A session of a model and routing group. */
    record Name(GroupKey key, String session) {}

    private record Bound(Match.Rank rank, long untilNs) {}

    private final long ttlNs;
    private final SessionMode mode;
    private final int most;
    private final LongSupplier nanoClock;
    private final Map<Name, Bound> bound = new LinkedHashMap<>(); // the one to end first is first

    /**
     * @param ttl after a session's last reservation; zero to follow none
     * @param most sessions at once
     */
    Sessions(Duration ttl, SessionMode mode, int most, LongSupplier nanoClock) {
        this.ttlNs = ttl.toNanos();
        this.mode = mode;
        this.most = most;
        this.nanoClock = nanoClock;
    }

    /** Whether a session's rank is chosen whatever its load is. */
    boolean isHard() {
        return mode == SessionMode.HARD;
    }

    /** The rank of a session; null for none, and for no session. */
    Match.Rank rankOrNull(GroupKey key, String sessionOrNull) {
        final Bound found = sessionOrNull == null ? null : bound.get(new Name(key, sessionOrNull));
        return found == null || found.untilNs - nanoClock.getAsLong() <= 0 ? null : found.rank;
    }

    /** A request of a session was reserved on a rank: the session is that rank's from now on. */
    void reserved(GroupKey key, String sessionOrNull, Match.Rank rank) {
        if (sessionOrNull == null || ttlNs == 0) {
            return;
        }
        final Name name = new Name(key, sessionOrNull);
        bound.remove(name);
        if (bound.size() == most) {
            bound.remove(bound.keySet().iterator().next());
        }
        bound.put(name, new Bound(rank, nanoClock.getAsLong() + ttlNs));
    }
}

package io.kvasir.services.select;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.kvasir.router.settings.SessionMode;
import io.kvasir.services.http.GroupKey;
import io.kvasir.services.indexer.Match;

import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

class SessionsTest {
    private static final GroupKey KEY = new GroupKey("m", "default");
    private static final Match.Rank RANK = new Match.Rank(7, 1);

    private final AtomicLong now = new AtomicLong(Long.MAX_VALUE - 5);
    private final Sessions sessions =
            new Sessions(Duration.ofNanos(10), SessionMode.HARD, 2, now::get);

    @Test
    void aSessionEndsSomeTimeAfterItsLastReservation() {
        sessions.reserved(KEY, "s", RANK);
        now.addAndGet(9);
        assertEquals(RANK, sessions.rankOrNull(KEY, "s"));
        sessions.reserved(KEY, "s", RANK);
        now.addAndGet(9);
        assertEquals(RANK, sessions.rankOrNull(KEY, "s"));
        now.addAndGet(1);
        assertNull(sessions.rankOrNull(KEY, "s"));
    }

    @Test
    void theOneUsedLongestAgoGivesWay() {
        sessions.reserved(KEY, "a", RANK);
        sessions.reserved(KEY, "b", RANK);
        sessions.reserved(KEY, "a", RANK);
        sessions.reserved(KEY, "c", RANK);
        assertNull(sessions.rankOrNull(KEY, "b"));
        assertEquals(RANK, sessions.rankOrNull(KEY, "a"));
        assertEquals(RANK, sessions.rankOrNull(KEY, "c"));
    }

    @Test
    void groupsHaveSessionsOfTheirOwnAndNoneIsFollowedWithoutATime() {
        sessions.reserved(KEY, "a", RANK);
        assertNull(sessions.rankOrNull(new GroupKey("m", "other"), "a"));
        assertNull(sessions.rankOrNull(KEY, null));
        final Sessions off = new Sessions(Duration.ZERO, SessionMode.HARD, 2, now::get);
        off.reserved(KEY, "a", RANK);
        assertNull(off.rankOrNull(KEY, "a"));
    }
}

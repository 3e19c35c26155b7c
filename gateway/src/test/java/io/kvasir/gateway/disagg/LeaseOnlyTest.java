package io.kvasir.gateway.disagg;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.protocol.handoff.KvTransferParams;
import io.kvasir.protocol.handoff.VerbatimJson;
import io.kvasir.router.disagg.PrefillBlocks;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

class LeaseOnlyTest {
    private static final long LEASE = 30;
    private static final KvTransferParams PARAMS = new KvTransferParams(VerbatimJson.parse("{}"));

    private final AtomicLong clock = new AtomicLong(Long.MAX_VALUE - 10); // overflows meanwhile
    private final LeaseOnly release =
            new LeaseOnly(LeaseReason.NO_LIBRARY, LEASE, new ReleaseCounters(), clock::get);

    private void assertCounts(long held, long fetched, long left) {
        final BlockReleaseCounts counts = release.counts();
        assertEquals(held, counts.held(), counts::toString);
        assertEquals(fetched, counts.fetched(), counts::toString);
        assertEquals(left, counts.left().get(LeaseReason.NO_LIBRARY), counts::toString);
        assertEquals(0, counts.released());
        assertEquals(0, counts.heartbeats());
    }

    @Test
    void fetchedBlocksAreNotHeldAnyMore() {
        final PrefillBlocks.Held held = release.hold(PARAMS);
        assertCounts(1, 0, 0);
        held.fetched();
        assertCounts(0, 1, 0);
    }

    @Test
    void blocksThatNoDecodeFetchesAreHeldUntilTheLeaseEnds() {
        release.hold(PARAMS).free();
        clock.addAndGet(LEASE - 1);
        assertCounts(1, 0, 1);
        clock.addAndGet(1);
        assertCounts(0, 0, 1);
    }

    @Test
    void theFirstEndCounts() {
        final PrefillBlocks.Held freed = release.hold(PARAMS);
        freed.free();
        freed.free();
        freed.fetched();
        assertCounts(1, 0, 1);
        final PrefillBlocks.Held fetched = release.hold(PARAMS);
        fetched.fetched();
        fetched.free();
        fetched.fetched();
        assertCounts(1, 1, 1);
    }

    @Test
    void aHoldThatIsNeverEndedIsForgottenWithItsLeaseAndCanStillBeEnded() {
        final PrefillBlocks.Held first = release.hold(PARAMS);
        final PrefillBlocks.Held second = release.hold(PARAMS);
        clock.addAndGet(LEASE);
        assertCounts(0, 0, 0);
        first.fetched();
        second.free();
        assertCounts(0, 1, 1);
    }

    @Test
    void holdsBeyondTheLimitAreCountedByTheirEndsAndTheGaugeReturnsToZero() {
        final List<PrefillBlocks.Held> all = new ArrayList<>();
        for (int i = 0; i < LeaseOnly.MOST_HELD + 10; i++) {
            all.add(release.hold(PARAMS));
        }
        assertCounts(LeaseOnly.MOST_HELD, 0, 0);
        all.forEach(PrefillBlocks.Held::free);
        assertCounts(LeaseOnly.MOST_HELD, 0, all.size());
        clock.addAndGet(LEASE);
        assertCounts(0, 0, all.size());
    }

    @Test
    void closedItHoldsNothing() {
        final PrefillBlocks.Held held = release.hold(PARAMS);
        release.close();
        release.close();
        held.free();
        assertCounts(0, 0, 1);
    }
}

package io.kvasir.gateway.disagg;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import io.kvasir.protocol.handoff.KvTransferParams;
import io.kvasir.router.disagg.PrefillBlocks;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

class LazyBlockReleaseTest {
    private static final KvTransferParams PARAMS = Prefills.json("{}");
    private static final long LEASE_NS = TimeUnit.MINUTES.toNanos(5);

    private final CompletableFuture<BlockRelease> gate = new CompletableFuture<>();
    private final AtomicBoolean asked = new AtomicBoolean();
    private final LazyBlockRelease release =
            new LazyBlockRelease(
                    () -> {
                        asked.set(true);
                        return gate.join();
                    },
                    LEASE_NS);

    private static BlockRelease leases() {
        return new LeaseOnly(
                LeaseReason.NO_LIBRARY, LEASE_NS, new ReleaseCounters(), System::nanoTime);
    }

    private long left(LeaseReason why) {
        return release.counts().left().get(why);
    }

    @Test
    void nothingIsOpenedWithoutAPrefill() {
        assertEquals(0, release.counts().held());
        release.close();
        release.close();
        assertFalse(asked.get());
        release.hold(PARAMS).free();
        assertFalse(asked.get());
        assertEquals(1, left(LeaseReason.CLOSING));
    }

    @Test
    void whatIsHeldWhileItOpensIsHandedOver() {
        final PrefillBlocks.Held before = release.hold(PARAMS);
        release.hold(PARAMS).fetched();
        final PrefillBlocks.Held after = release.hold(PARAMS);
        before.free();
        assertEquals(0, release.counts().held());
        gate.complete(leases());
        Eventually.holds(
                () -> release.counts().fetched() == 1 && left(LeaseReason.NO_LIBRARY) == 1);
        assertEquals(2, release.counts().held());
        after.free();
        release.hold(PARAMS).free();
        assertEquals(3, left(LeaseReason.NO_LIBRARY));
        release.close();
    }

    @Test
    void anOpeningThatFailsLeavesBlocksToTheLease() {
        release.hold(PARAMS).free();
        gate.completeExceptionally(new IllegalStateException("what was not thought of"));
        Eventually.holds(() -> left(LeaseReason.NO_LIBRARY) == 1);
        release.close();
    }
}

package io.kvasir.nixl.vllm;

import static io.kvasir.nixl.vllm.Refusals.refused;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.nixl.transport.ScriptedTransport;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

class VllmPrefillReleaserTest {
    private final ScriptedTransport transport = new ScriptedTransport();
    private final List<String> unreached = new ArrayList<>();
    private final VllmPrefillReleaser releaser =
            new VllmPrefillReleaser(transport, LeaseTerms.DEFAULT, 2);

    private static long s(long seconds) {
        return TimeUnit.SECONDS.toNanos(seconds);
    }

    private static VllmEngine engine(String engineId, int ranks) {
        return Golden.engine(
                engineId, ranks, rank -> List.of(Golden.region("layer", 0, 1 << 20, 10)));
    }

    private PrefillLease hold(String engineId, String requestId, long nowNs) {
        return releaser.hold(Golden.params(engineId, requestId, "[[4,2]]", ""), nowNs);
    }

    @Test
    void blocksAreFreedByOneMessageAndNothingIsPrepared() {
        releaser.connect(engine("e", 1));
        final PrefillLease lease = hold("e", "r", 0);
        assertTrue(releaser.release("e", "r", s(1)));
        assertEquals(List.of("e0 r:1"), transport.sent);
        assertEquals(PrefillLease.State.RELEASED, lease.state(s(1)));
        assertTrue(transport.lists.isEmpty());
        refused(
                VllmPeerException.Kind.UNKNOWN_REQUEST,
                () -> releaser.release("e", "r", s(1)),
                "r");
    }

    @Test
    void everyRankIsNotifiedWhenTheEngineIsConnectedAnew() {
        releaser.connect(engine("e", 2));
        releaser.hold(Golden.params("e", "r", 2), 0);
        transport.refuseSend = true;
        assertThrows(KvTransportException.class, () -> releaser.release("e", "r", s(6)));
        assertEquals(0, releaser.heartbeat(s(6), unreached));
        assertEquals(List.of("e"), unreached);
        transport.refuseSend = false;
        releaser.connect(engine("e", 2));
        assertEquals(List.of("e0", "e1"), transport.peers);
        assertEquals(1, releaser.heartbeat(s(7), unreached));
        assertTrue(releaser.release("e", "r", s(8)));
        assertEquals(List.of("e0 HB:r", "e1 HB:r", "e0 r:1", "e1 r:1"), transport.sent);
    }

    @Test
    void heartbeatsKeepALeaseBeyondItsEndUntilItIsFetched() {
        releaser.connect(engine("e", 1));
        hold("e", "r", 0);
        for (int second = 5; second < 200; second += 5) {
            assertEquals(1, releaser.heartbeat(s(second), unreached));
        }
        releaser.fetched("e", "r");
        releaser.fetched("e", "r");
        assertEquals(0, releaser.heartbeat(s(200), unreached));
        assertEquals(0, releaser.leases());
        assertEquals(List.of(), unreached);
    }

    @Test
    void anExpiredLeaseIsNotReleased() {
        releaser.connect(engine("e", 1));
        hold("e", "r", 0);
        assertFalse(releaser.release("e", "r", s(25)));
        assertEquals(List.of(), transport.sent);
        assertEquals(0, releaser.leases());
    }

    @Test
    void anEngineThatHasEndedIsForgottenWithItsLeases() {
        releaser.connect(engine("e", 1));
        releaser.connect(engine("f", 1));
        hold("e", "r1", 0);
        hold("f", "r2", 0);
        releaser.disconnect("e");
        releaser.disconnect("never was");
        assertEquals(1, releaser.leases());
        assertEquals(List.of("f0"), transport.peers);
        refused(VllmPeerException.Kind.NOT_CONNECTED, () -> hold("e", "r3", 0), "engine e");
        releaser.close();
        releaser.close();
        assertEquals(0, releaser.leases());
        assertEquals(List.of(), transport.peers);
    }

    @Test
    void twoEnginesMayGiveOneName() {
        releaser.connect(engine("e", 1));
        releaser.connect(engine("f", 1));
        hold("e", "r", 0);
        hold("f", "r", 0);
        releaser.fetched("e", "r");
        assertTrue(releaser.release("f", "r", s(1)));
        assertEquals(List.of("f0 r:1"), transport.sent);
        assertEquals(0, releaser.leases());
    }

    @Test
    void whatCannotBeHeldIsRefused() {
        releaser.connect(engine("e", 1));
        hold("e", "r1", 0);
        refused(VllmPeerException.Kind.ALREADY_HELD, () -> hold("e", "r1", 0), "r1");
        hold("e", "r2", 0);
        refused(VllmPeerException.Kind.CAPACITY, () -> hold("e", "r3", 0), "maxLeases");
        refused(
                VllmPeerException.Kind.UNKNOWN_RANK,
                () ->
                        releaser.connect(
                                new VllmEngine("f", 2, List.of(engine("f", 2).ranks().get(0)))),
                "1 of 2 ranks of engine f");
    }

    @Test
    void anEngineThatCannotBeConnectedLeavesNoPeer() {
        transport.connectFails =
                new KvTransportException(KvTransportException.Kind.BAD_METADATA, "told so");
        assertThrows(KvTransportException.class, () -> releaser.connect(engine("e", 1)));
        assertEquals(List.of(), transport.peers);
        hold("e", "r", 0);
        assertThrows(KvTransportException.class, () -> releaser.release("e", "r", 0));
        transport.connectFails = null;
        releaser.connect(engine("e", 1));
        assertTrue(releaser.release("e", "r", 0));
    }
}

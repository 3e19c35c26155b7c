package io.kvasir.nixl.vllm;

import static io.kvasir.nixl.vllm.Refusals.refused;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.transfer.KvTransport.Progress;
import io.kvasir.nixl.transfer.KvTransportException;

import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

class VllmPrefillPeerTest {
    private static final long LOCAL = 77;

    private final FakeTransport transport = new FakeTransport();
    private final VllmPrefillPeer peer =
            new VllmPrefillPeer(transport, VllmPrefillPeer.Options.DEFAULT);

    private static long s(long seconds) {
        return TimeUnit.SECONDS.toNanos(seconds);
    }

    private static VllmAgent agent(String engineId) {
        return Golden.agentOf(
                Golden.metadata(
                        engineId,
                        Golden.region("layer 0", 0, 1 << 20, 10),
                        Golden.region("layer 1", 0, 1 << 21, 10)),
                "hash");
    }

    private PrefillLease hold(String engineId, String requestId, long nowNs) {
        return peer.hold(Golden.params(engineId, requestId, "[[4,2]]", ""), nowNs);
    }

    @Test
    void aPullReadsEveryBlockAndGivesThemBack() {
        peer.connect(agent("e"));
        final long list = transport.lists.keySet().iterator().next();
        assertEquals(20, transport.lists.get(list).count());
        hold("e", "r:1", 0);
        peer.pull("r:1", LOCAL, new int[] {0, 1, 2, 3}, s(1));
        assertEquals(
                List.of(
                        new FakeTransport.Read(
                                LOCAL, List.of(0, 1, 2, 3), list, List.of(4, 2, 14, 12), "r:1:1")),
                transport.reads);
        assertEquals(1, peer.leases());
        peer.pullEnded("r:1", Progress.DONE, 0);
        assertEquals(0, peer.leases());
        assertEquals(List.of(), transport.sent);
        refused(
                VllmPeerException.Kind.UNKNOWN_REQUEST,
                () -> peer.pull("r:1", LOCAL, new int[4], s(1)),
                "r:1");
    }

    @Test
    void aRecordedPrefillIsPulled() {
        peer.connect(Golden.agent());
        final PrefillLease lease = peer.hold(Golden.params(), 0);
        peer.pull(lease.requestId(), LOCAL, new int[16], 0);
        assertEquals("cmpl-golden-1-0-a2c7c6e1:1", transport.reads.getFirst().notification());
        assertEquals(
                List.of(1, 2, 3, 4, 5, 6, 7, 8, 65, 66, 67, 68, 69, 70, 71, 72),
                transport.reads.getFirst().remote());
    }

    @Test
    void layersArePulledApartAndGivenBackAtTheEnd() {
        peer.connect(agent("e"));
        hold("e", "r", 0);
        peer.pullRegions("r", 0, 1, LOCAL, new int[] {0, 1}, 0);
        peer.pullRegions("r", 1, 2, LOCAL, new int[] {2, 3}, 0);
        assertEquals(List.of(4, 2), transport.reads.get(0).remote());
        assertEquals(List.of(14, 12), transport.reads.get(1).remote());
        assertEquals(null, transport.reads.get(1).notification());
        refused(VllmPeerException.Kind.READING, () -> peer.release("r", 0), "2 requests");
        refused(
                VllmPeerException.Kind.READING,
                () -> peer.pull("r", LOCAL, new int[4], 0),
                "2 requests");
        peer.pullEnded("r", Progress.DONE, 0);
        peer.pullEnded("r", Progress.DONE, 0);
        assertTrue(peer.release("r", 0));
        assertEquals(1, transport.sent.size());
        assertTrue(transport.sent.getFirst().endsWith(" r:1"));
    }

    @Test
    void aPrefillWhoseDecodeNeverCameIsReleased() {
        peer.connect(agent("e"));
        final PrefillLease lease = hold("e", "r", 0);
        assertTrue(peer.release("r", s(1)));
        assertEquals(List.of(transport.peers.getFirst() + " r:1"), transport.sent);
        assertEquals(PrefillLease.State.RELEASED, lease.state(s(1)));
        refused(VllmPeerException.Kind.UNKNOWN_REQUEST, () -> peer.release("r", s(1)), "r");
        assertEquals(List.of(), transport.reads);
    }

    @Test
    void aReleaseThatCannotBeSentKeepsTheLease() {
        peer.connect(agent("e"));
        hold("e", "r", 0);
        transport.refuseSend = true;
        assertThrows(KvTransportException.class, () -> peer.release("r", 0));
        transport.refuseSend = false;
        assertTrue(peer.release("r", 0));
    }

    @Test
    void anExpiredLeaseIsNotRead() {
        peer.connect(agent("e"));
        hold("e", "r", 0);
        refused(
                VllmPeerException.Kind.EXPIRED,
                () -> peer.pull("r", LOCAL, new int[4], s(25)),
                "request r",
                "engine e");
        refused(
                VllmPeerException.Kind.EXPIRED,
                () -> peer.pullRegions("r", 0, 1, LOCAL, new int[2], s(25)),
                "request r");
        assertFalse(peer.release("r", s(25)));
        assertEquals(1, peer.expired());
        assertEquals(List.of(), transport.sent);
        assertEquals(List.of(), transport.reads);
    }

    @Test
    void aFailedPullCanBeTriedAgain() {
        peer.connect(agent("e"));
        hold("e", "r", 0);
        peer.pull("r", LOCAL, new int[4], 0);
        refused(
                VllmPeerException.Kind.READING,
                () -> peer.pullRegions("r", 0, 1, LOCAL, new int[2], 0),
                "pullEnded");
        assertThrows(
                IllegalArgumentException.class, () -> peer.pullEnded("r", Progress.RUNNING, 0));
        peer.pullEnded("r", Progress.FAILED, 0);
        assertThrows(IllegalStateException.class, () -> peer.pullEnded("r", Progress.FAILED, 0));
        peer.pull("r", LOCAL, new int[4], 0);
        peer.pullEnded("r", Progress.DONE, 0);
        assertEquals(0, peer.leases());
    }

    @Test
    void bytesOfAReadThatEndedTooLateAreRefused() {
        peer.connect(agent("e"));
        hold("e", "whole", 0);
        hold("e", "layers", 0);
        hold("e", "kept", 0);
        peer.pull("whole", LOCAL, new int[4], s(24));
        peer.pullRegions("layers", 0, 1, LOCAL, new int[2], s(24));
        peer.pull("kept", LOCAL, new int[4], s(24));
        refused(
                VllmPeerException.Kind.EXPIRED,
                () -> peer.pullEnded("whole", Progress.DONE, s(29)),
                "request whole ended 1500 ms too late",
                "another prompt");
        refused(
                VllmPeerException.Kind.EXPIRED,
                () -> peer.pullEnded("layers", Progress.DONE, s(29)),
                "request layers");
        assertFalse(peer.release("layers", s(29)));
        peer.pullEnded("kept", Progress.DONE, s(27));
        assertEquals(0, peer.leases());
    }

    @Test
    void heartbeatsAreOneMessageToEachEngine() {
        peer.connect(agent("e"));
        peer.connect(agent("f"));
        hold("e", "r1", 0);
        hold("e", "r2", 0);
        hold("f", "r3", 0);
        assertEquals(0, peer.heartbeat(s(5) - 1));
        assertEquals(3, peer.heartbeat(s(5)));
        assertEquals(
                List.of(transport.peers.get(0) + " HB:r1,r2", transport.peers.get(1) + " HB:r3"),
                transport.sent);
        assertEquals(0, peer.heartbeat(s(9)));
        for (int second = 10; second < 200; second += 5) {
            assertEquals(3, peer.heartbeat(s(second)));
        }
        peer.pull("r3", LOCAL, new int[4], s(200));
        assertEquals(3, peer.heartbeat(s(200))); // also while they are read
    }

    @Test
    void missedHeartbeatsEndALease() {
        peer.connect(agent("e"));
        hold("e", "r1", 0);
        hold("e", "read", 0);
        peer.pull("read", LOCAL, new int[4], 0);
        transport.refuseSend = true;
        assertEquals(0, peer.heartbeat(s(20)));
        assertEquals(1, peer.failedHeartbeats());
        assertEquals(0, peer.heartbeat(s(25)));
        assertEquals(1, peer.expired());
        assertEquals(1, peer.leases()); // the one that is being read
        peer.pullEnded("read", Progress.DONE, 0);
        assertEquals(0, peer.leases());
    }

    @Test
    void manyLeasesAreSplitIntoSmallMessages() {
        peer.connect(agent("e"));
        final int count = 2_000;
        for (int i = 0; i < count; i++) {
            hold("e", "cmpl-a-rather-long-request-name-" + i, 0);
        }
        assertEquals(count, peer.heartbeat(s(6)));
        assertTrue(transport.sent.size() > 10);
        final long named =
                transport.sent.stream().mapToLong(message -> message.split(",").length).sum();
        assertEquals(count, named);
    }

    @Test
    void enginesAreConnectedOnce() {
        final VllmBlocks blocks = peer.connect(agent("e"));
        assertSame(blocks, peer.connect(agent("e")));
        assertNotSame(blocks, peer.connect(agent("f")));
        assertEquals(2, transport.peers.size());
        assertEquals(2, transport.lists.size());
        peer.disconnect("nobody");
        hold("e", "r", 0);
        peer.pull("r", LOCAL, new int[4], 0);
        refused(VllmPeerException.Kind.READING, () -> peer.disconnect("e"), "request r");
        peer.pullEnded("r", Progress.FAILED, 0);
        peer.disconnect("e");
        assertFalse(peer.isConnected("e"));
        assertTrue(peer.isConnected("f"));
        assertEquals(0, peer.leases());
        assertEquals(1, transport.peers.size());
        peer.close();
        peer.close();
        assertEquals(List.of(), transport.peers);
        assertTrue(transport.lists.isEmpty());
    }

    @Test
    void aRefusedListLeavesNoPeerBehind() {
        transport.refusePrepare = true;
        assertThrows(KvTransportException.class, () -> peer.connect(agent("e")));
        assertEquals(List.of(), transport.peers);
        assertFalse(peer.isConnected("e"));
    }

    @Test
    void anotherHashIsRefused() {
        final VllmPrefillPeer strict =
                new VllmPrefillPeer(
                        transport,
                        new VllmPrefillPeer.Options(
                                Optional.of("expected"), LeaseTerms.DEFAULT, 1));
        refused(
                VllmPeerException.Kind.INCOMPATIBLE,
                () -> strict.connect(agent("e")),
                "hash of engine e is hash",
                "expected");
        assertEquals(List.of(), transport.peers);
    }

    @Test
    void whatCannotBeHeldIsRefused() {
        refused(VllmPeerException.Kind.NOT_CONNECTED, () -> hold("e", "r", 0), "engine e");
        peer.connect(agent("e"));
        refused(
                VllmPeerException.Kind.BAD_BLOCKS,
                () -> peer.hold(Golden.params("e", "r", "[[10]]", ""), 0),
                "block 10 of group 0");
        refused(
                VllmPeerException.Kind.UNSUPPORTED,
                () -> peer.hold(Golden.params("e", "r", "[[1]]", ",\"pp_size\":2"), 0),
                "pp_size=2");
        hold("e", "r", 0);
        refused(VllmPeerException.Kind.ALREADY_HELD, () -> hold("e", "r", 0), "request r");
        refused(
                VllmPeerException.Kind.BAD_BLOCKS,
                () -> peer.pull("r", LOCAL, new int[3], 0),
                "4 blocks to read and 3 local places");
        peer.hold(Golden.params("e", "none", "[[]]", ""), 0);
        refused(
                VllmPeerException.Kind.BAD_BLOCKS,
                () -> peer.pull("none", LOCAL, new int[0], 0),
                "release it instead");
    }

    @Test
    void leasesAreBounded() {
        final VllmPrefillPeer small =
                new VllmPrefillPeer(
                        transport,
                        new VllmPrefillPeer.Options(Optional.empty(), LeaseTerms.DEFAULT, 1));
        small.connect(agent("e"));
        small.hold(Golden.params("e", "r1", "[[1]]", ""), 0);
        refused(
                VllmPeerException.Kind.CAPACITY,
                () -> small.hold(Golden.params("e", "r2", "[[1]]", ""), 0),
                "maxLeases");
        assertThrows(
                IllegalArgumentException.class,
                () -> new VllmPrefillPeer.Options(Optional.empty(), LeaseTerms.DEFAULT, 0));
    }
}

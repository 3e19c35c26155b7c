package io.kvasir.nixl.vllm;

import static io.kvasir.nixl.vllm.Refusals.refused;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.nixl.transport.KvTransport.Operation;
import io.kvasir.nixl.transport.KvTransport.Progress;
import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.nixl.transport.ScriptedTransport;
import io.kvasir.panama.nixl.NixlMemory;

import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;

class VllmPrefillPeerTest {
    private static final VllmCache CACHE =
            cache(
                    TensorRank.only(2),
                    Golden.region("own 0", 0, 1 << 22, 16),
                    Golden.region("own 1", 0, 1 << 23, 16));

    private final ScriptedTransport transport = new ScriptedTransport();
    private final VllmPrefillPeer peer =
            new VllmPrefillPeer(transport, CACHE, VllmPrefillPeer.Options.DEFAULT);

    private static VllmCache cache(TensorRank rank, KvRegion... regions) {
        return new VllmCache(
                List.of(regions), VllmCacheLayout.plain("LBHNC", 32, "CPU_ATTN"), rank);
    }

    private static long s(long seconds) {
        return TimeUnit.SECONDS.toNanos(seconds);
    }

    private static VllmEngine engine(String engineId) {
        return VllmEngine.of(
                Golden.agentOf(
                        Golden.metadata(
                                engineId,
                                Golden.region("layer 0", 0, 1 << 20, 10),
                                Golden.region("layer 1", 0, 1 << 21, 10)),
                        "hash"));
    }

    /** An engine that shares the model between several ranks. */
    private static VllmEngine engine(String engineId, int ranks) {
        return Golden.engine(
                engineId,
                ranks,
                rank ->
                        List.of(
                                part("layer 0", 2L * rank + 1, ranks),
                                part("layer 1", 2L * rank + 2, ranks)));
    }

    private static KvRegion part(String name, long megabyte, int ranks) {
        final long base = megabyte << 20;
        return new KvRegion(name, 0, NixlMemory.DRAM, 0, base, 4_096 / ranks, 4_096 / ranks, 10);
    }

    private PrefillLease hold(String engineId, String requestId, long nowNs) {
        return peer.hold(Golden.params(engineId, requestId, "[[4,2]]", ""), nowNs);
    }

    private long list(int descriptors) {
        return transport.lists.entrySet().stream()
                .filter(list -> list.getValue().count() == descriptors)
                .mapToLong(Map.Entry::getKey)
                .findFirst()
                .orElseThrow();
    }

    @Test
    void aPullReadsEveryBlockAndGivesThemBack() {
        peer.connect(engine("e"));
        final long own = list(32);
        final long list = list(20);
        hold("e", "r:1", 0);
        peer.pull("r:1", new int[] {0, 1, 2, 3}, s(1));
        final ScriptedTransport.Made read = transport.all.getFirst();
        assertEquals(1, transport.all.size());
        assertEquals(Operation.READ, read.operation);
        assertEquals(own, read.localList);
        assertEquals(list, read.remoteList);
        assertArrayEquals(new int[] {0, 1, 2, 3}, read.local);
        assertArrayEquals(new int[] {4, 2, 14, 12}, read.remote);
        assertEquals("r:1:1", read.notification);
        assertEquals(1, peer.leases());
        peer.pullEnded("r:1", Progress.DONE, 0);
        assertEquals(0, peer.leases());
        assertEquals(List.of(), transport.sent);
        refused(
                VllmPeerException.Kind.UNKNOWN_REQUEST,
                () -> peer.pull("r:1", new int[4], s(1)),
                "r:1");
    }

    @Test
    void aRecordedPrefillIsPulled() {
        final VllmPrefillPeer recorded =
                new VllmPrefillPeer(
                        transport,
                        new VllmCache(
                                Golden.agent().metadata().regions(),
                                Golden.agent().metadata().layout(),
                                TensorRank.only(2)),
                        VllmPrefillPeer.Options.DEFAULT);
        recorded.connect(VllmEngine.of(Golden.agent()));
        final PrefillLease lease = recorded.hold(Golden.params(), 0);
        recorded.pull(lease.requestId(), new int[16], 0);
        assertEquals("cmpl-golden-1-0-a2c7c6e1:1", transport.all.getFirst().notification);
        assertArrayEquals(
                new int[] {1, 2, 3, 4, 5, 6, 7, 8, 65, 66, 67, 68, 69, 70, 71, 72},
                transport.all.getFirst().remote);
    }

    @Test
    void aPrefillWhoseDecodeNeverCameIsReleased() {
        peer.connect(engine("e"));
        final PrefillLease lease = hold("e", "r", 0);
        assertTrue(peer.release("r", s(1)));
        assertEquals(List.of(transport.peers.getFirst() + " r:1"), transport.sent);
        assertEquals(PrefillLease.State.RELEASED, lease.state(s(1)));
        refused(VllmPeerException.Kind.UNKNOWN_REQUEST, () -> peer.release("r", s(1)), "r");
        assertEquals(List.of(), transport.all);
    }

    @Test
    void aReleaseThatCannotBeSentKeepsTheLease() {
        peer.connect(engine("e"));
        hold("e", "r", 0);
        transport.refuseSend = true;
        assertThrows(KvTransportException.class, () -> peer.release("r", 0));
        transport.refuseSend = false;
        assertTrue(peer.release("r", 0));
    }

    @Test
    void anExpiredLeaseIsNotRead() {
        peer.connect(engine("e"));
        hold("e", "r", 0);
        refused(
                VllmPeerException.Kind.EXPIRED,
                () -> peer.pull("r", new int[4], s(25)),
                "request r",
                "engine e");
        assertFalse(peer.release("r", s(25)));
        assertEquals(1, peer.expired());
        assertEquals(List.of(), transport.sent);
        assertEquals(List.of(), transport.all);
    }

    @Test
    void aFailedPullCanBeTriedAgain() {
        peer.connect(engine("e"));
        hold("e", "r", 0);
        peer.pull("r", new int[4], 0);
        refused(VllmPeerException.Kind.READING, () -> peer.pull("r", new int[4], 0), "pullEnded");
        assertThrows(
                IllegalArgumentException.class, () -> peer.pullEnded("r", Progress.RUNNING, 0));
        peer.pullEnded("r", Progress.FAILED, 0);
        assertThrows(IllegalStateException.class, () -> peer.pullEnded("r", Progress.FAILED, 0));
        peer.pull("r", new int[4], 0);
        peer.pullEnded("r", Progress.DONE, 0);
        assertEquals(0, peer.leases());
    }

    @Test
    void bytesOfAReadThatEndedTooLateAreRefused() {
        peer.connect(engine("e"));
        hold("e", "whole", 0);
        hold("e", "kept", 0);
        peer.pull("whole", new int[4], s(24));
        peer.pull("kept", new int[4], s(24));
        refused(
                VllmPeerException.Kind.EXPIRED,
                () -> peer.pullEnded("whole", Progress.DONE, s(29)),
                "request whole ended 1500 ms too late",
                "another prompt");
        peer.pullEnded("kept", Progress.DONE, s(27));
        assertEquals(0, peer.leases());
    }

    @Test
    void heartbeatsAreOneMessageToEachEngine() {
        peer.connect(engine("e"));
        peer.connect(engine("f"));
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
        peer.pull("r3", new int[4], s(200));
        assertEquals(3, peer.heartbeat(s(200))); // also while they are read
    }

    @Test
    void missedHeartbeatsEndALease() {
        peer.connect(engine("e"));
        hold("e", "r1", 0);
        hold("e", "read", 0);
        peer.pull("read", new int[4], 0);
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
        peer.connect(engine("e"));
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
    void leasesWithLongIdsAreProlongedAsTheOthersAre() {
        peer.connect(engine("e"));
        final String most = "m".repeat(8_176);
        for (String id : List.of("a".repeat(4_000), "b".repeat(4_500), "c", "d", most, "e")) {
            hold("e", id, 0);
        }
        assertEquals(6, peer.heartbeat(s(6)));
        assertEquals(5, transport.sent.size()); // what fits beside others is sent so
        assertTrue(transport.sent.get(2).endsWith(" HB:c,d"), transport.sent.get(2));
        assertTrue(peer.release(most, s(7)));
    }

    @Test
    void anIdThatFitsInNoMessageIsRefusedAndTheOthersAreProlonged() {
        peer.connect(engine("e"));
        hold("e", "a", 0);
        refused(
                VllmPeerException.Kind.UNSUPPORTED,
                () -> hold("e", "ä".repeat(4_089), 0),
                "remote_request_id of 8178 bytes",
                "8176");
        hold("e", "b", 0);
        assertEquals(2, peer.heartbeat(s(6)));
        assertEquals(0, peer.failedHeartbeats());
    }

    @Test
    void enginesAreConnectedOnce() {
        peer.connect(engine("e"));
        peer.connect(engine("e"));
        peer.connect(engine("f"));
        assertEquals(2, transport.peers.size());
        assertEquals(3, transport.lists.size()); // theirs, and the one of own blocks
        peer.disconnect("nobody");
        hold("e", "r", 0);
        final long request = peer.pull("r", new int[4], 0)[0];
        refused(VllmPeerException.Kind.READING, () -> peer.disconnect("e"), "request r");
        peer.pullEnded("r", Progress.FAILED, 0);
        transport.release(request);
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
        transport.prepareFails =
                new KvTransportException(KvTransportException.Kind.INVALID, "told so");
        assertThrows(KvTransportException.class, () -> peer.connect(engine("e")));
        assertEquals(List.of(), transport.peers);
        assertFalse(peer.isConnected("e"));
    }

    @Test
    void anotherHashIsRefused() {
        final VllmPrefillPeer strict =
                new VllmPrefillPeer(
                        transport,
                        CACHE,
                        new VllmPrefillPeer.Options(
                                Optional.of("expected"), LeaseTerms.DEFAULT, 1));
        refused(
                VllmPeerException.Kind.INCOMPATIBLE,
                () -> strict.connect(engine("e")),
                "hash of engine e is hash",
                "expected");
        assertEquals(List.of(), transport.peers);
    }

    @Test
    void whatCannotBeHeldIsRefused() {
        refused(VllmPeerException.Kind.NOT_CONNECTED, () -> hold("e", "r", 0), "engine e");
        peer.connect(engine("e"));
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
                () -> peer.pull("r", new int[3], 0),
                "4 blocks to read and 3 local indices");
        peer.hold(Golden.params("e", "none", "[[]]", ""), 0);
        refused(
                VllmPeerException.Kind.BAD_BLOCKS,
                () -> peer.pull("none", new int[0], 0),
                "release it instead");
    }

    @Test
    void anEngineOfSeveralRanksIsReadInPartsAndToldWhenAllAreIn() {
        peer.connect(engine("e", 2));
        peer.hold(Golden.params("e", "r", 2), 0);
        assertEquals(2, peer.pull("r", new int[] {0, 1, 16, 17}, 0).length);
        final ScriptedTransport.Made first = transport.all.get(0);
        final ScriptedTransport.Made second = transport.all.get(1);
        assertArrayEquals(new int[] {4, 2, 14, 12}, first.remote);
        assertArrayEquals(first.remote, second.remote);
        final long own = CACHE.regions().getFirst().address(0);
        assertEquals(own, transport.lists.get(first.localList).address(0));
        assertEquals(own + 2_048, transport.lists.get(second.localList).address(0));
        assertEquals(3L << 20, transport.lists.get(second.remoteList).address(0));
        assertEquals(2_048, transport.lists.get(second.remoteList).length(0));
        assertEquals(null, first.notification);
        peer.pullEnded("r", Progress.DONE, 0);
        assertEquals(List.of(), transport.sent);
        peer.pullEnded("r", Progress.FAILED, 0);
        assertEquals(
                List.of(), transport.sent); // else the first rank might free what is read again
        peer.pull("r", new int[4], 0);
        peer.pullEnded("r", Progress.DONE, 0);
        peer.pullEnded("r", Progress.DONE, 0);
        assertEquals(
                List.of(transport.peers.get(0) + " r:1", transport.peers.get(1) + " r:1"),
                transport.sent);
        assertEquals(0, peer.leases());
        List.copyOf(transport.requests.keySet()).forEach(transport::release);
        peer.disconnect("e");
        assertEquals(List.of(), transport.peers);
    }

    @Test
    void aRequestThatIsNotReleasedKeepsItsListsAlone() {
        peer.connect(engine("f"));
        peer.connect(engine("e", 2));
        peer.connect(engine("g"));
        peer.hold(Golden.params("e", "r", 2), 0);
        final long request = peer.pull("r", new int[4], 0)[0];
        transport.requests.keySet().removeIf(made -> made != request);
        final Set<Long> used =
                Set.of(
                        transport.requests.get(request).localList,
                        transport.requests.get(request).remoteList);

        assertThrows(KvTransportException.class, peer::close);
        assertEquals(List.of(), transport.peers);
        assertEquals(used, transport.lists.keySet());
        peer.close();
    }

    @Test
    void everyRankHearsHeartbeatsAndReleases() {
        peer.connect(engine("e", 2));
        peer.hold(Golden.params("e", "r", 2), 0);
        assertEquals(1, peer.heartbeat(s(5)));
        assertEquals(
                List.of(transport.peers.get(0) + " HB:r", transport.peers.get(1) + " HB:r"),
                transport.sent);
        transport.sent.clear();
        transport.refuseSend = true;
        assertThrows(KvTransportException.class, () -> peer.release("r", s(6)));
        transport.refuseSend = false;
        assertTrue(peer.release("r", s(6)));
        assertEquals(2, transport.sent.size());
    }

    @Test
    void oneOfSeveralRanksHereReadsItsHeadsAndIsCounted() {
        final VllmPrefillPeer second =
                new VllmPrefillPeer(
                        transport,
                        cache(new TensorRank(1, 2, 2), part("own 0", 4, 2), part("own 1", 8, 2)),
                        VllmPrefillPeer.Options.DEFAULT);
        second.connect(engine("e"));
        second.hold(Golden.params("e", "r", "[[4,2]]", ""), 0);
        assertEquals(1, second.pull("r", new int[4], 0).length);
        final ScriptedTransport.Made read = transport.all.getFirst();
        assertEquals("r:2", read.notification);
        assertEquals((1L << 20) + 2_048, transport.lists.get(read.remoteList).address(0));
        assertEquals(2_048, transport.lists.get(read.remoteList).length(0));
    }

    @Test
    void anEngineThatDoesNotFitIsRefusedByName() {
        refused(
                VllmPeerException.Kind.UNSUPPORTED,
                () -> peer.connect(engine("e", 4)),
                "block length of a rank's heads of region layer 0 is 1024 there and 2048 here");
        peer.connect(engine("e", 2));
        refused(
                VllmPeerException.Kind.OTHER_ENGINE,
                () -> peer.hold(Golden.params("e", "r", 1), 0),
                "tp_size=1");
        refused(
                VllmPeerException.Kind.UNKNOWN_RANK,
                () -> peer.connect(new VllmEngine("f", 2, List.of(engine("f", 2).ranks().get(1)))),
                "rank 0 of engine f was not asked");
        assertEquals(2, transport.peers.size());
    }

    @Test
    void leasesAreBounded() {
        final VllmPrefillPeer small =
                new VllmPrefillPeer(
                        transport,
                        CACHE,
                        new VllmPrefillPeer.Options(Optional.empty(), LeaseTerms.DEFAULT, 1));
        small.connect(engine("e"));
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

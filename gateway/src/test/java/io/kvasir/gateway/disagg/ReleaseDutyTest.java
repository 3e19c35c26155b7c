package io.kvasir.gateway.disagg;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.nixl.transport.ScriptedTransport;
import io.kvasir.nixl.vllm.LeaseTerms;
import io.kvasir.nixl.vllm.VllmEngine;
import io.kvasir.nixl.vllm.VllmPeerException;
import io.kvasir.protocol.handoff.KvTransferParams;

import org.junit.jupiter.api.Test;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;

class ReleaseDutyTest {
    private static final ReleaseDuty.Limits LIMITS = new ReleaseDuty.Limits(20_000, 4, 2);

    private final ScriptedTransport transport = new ScriptedTransport();
    private final Deque<Runnable> asking = new ArrayDeque<>();
    private final List<KvTransferParams> asked = new ArrayList<>();
    private final ReleaseCounters counters = new ReleaseCounters();
    private final ReleaseDuty duty =
            new ReleaseDuty(
                    transport,
                    this::ask,
                    asking::add,
                    new LeaseTerms(30, TimeUnit.SECONDS.toNanos(1)),
                    LIMITS,
                    counters,
                    () -> {});
    private RuntimeException askFails;
    private long nowNs = Long.MAX_VALUE - TimeUnit.SECONDS.toNanos(20); // overflows meanwhile

    private VllmEngine ask(KvTransferParams params) {
        asked.add(params);
        if (askFails != null) {
            throw askFails;
        }
        return Prefills.engine(params.remoteEngineId().orElseThrow());
    }

    private WatchedPrefill watch(String engineId, String requestId) {
        return duty.watch(Prefills.params(engineId, requestId, 5600), nowNs).orElseThrow();
    }

    /** Lets time pass in steps, and every handshake that is begun end in its step. */
    private void pass(long seconds) {
        for (long step = 0; step < 4 * seconds; step++) {
            work();
            nowNs += TimeUnit.MILLISECONDS.toNanos(250);
        }
        work();
    }

    private void work() {
        duty.doWork(nowNs);
        while (!asking.isEmpty()) {
            asking.poll().run();
            duty.doWork(nowNs);
        }
    }

    private void assertCounts(long fetched, long released) {
        assertEquals(fetched, counters.with(0).fetched());
        assertEquals(released, counters.with(0).released());
    }

    private long left(LeaseReason why) {
        return counters.with(0).left().get(why);
    }

    private long left() {
        return counters.with(0).left().values().stream().mapToLong(n -> n).sum();
    }

    @Test
    void blocksThatAreFreedAfterTheHandshakeAreFreedByOneMessage() {
        final WatchedPrefill prefill = watch("e", "r");
        work();
        assertEquals(1, duty.held());
        prefill.free();
        prefill.free();
        prefill.fetched();
        work();
        assertEquals(List.of("e r:1"), transport.sent);
        assertEquals(0, duty.held());
        assertCounts(0, 1);
        pass(60);
        assertEquals(1, transport.sent.size());
        assertTrue(duty.isIdle());
    }

    @Test
    void blocksThatAreFreedBeforeTheHandshakeAreFreedAfterIt() {
        final WatchedPrefill prefill = watch("e", "r");
        duty.doWork(nowNs);
        prefill.free();
        duty.doWork(nowNs);
        assertEquals(List.of(), transport.sent);
        assertTrue(duty.isFreeing());
        work();
        assertEquals(List.of("e r:1"), transport.sent);
        assertFalse(duty.isFreeing());
        assertCounts(0, 1);
        assertEquals(0, left());
    }

    @Test
    void blocksThatAreFreedBeforeAnyWorkWasDoneAreFreedOnce() {
        watch("e", "r").free();
        work();
        work();
        assertEquals(List.of("e r:1"), transport.sent);
        assertCounts(0, 1);
        assertEquals(0, duty.held());
    }

    @Test
    void fetchedBlocksAreForgotten() {
        final WatchedPrefill before = watch("e", "r1");
        before.fetched();
        final WatchedPrefill after = watch("e", "r2");
        work();
        after.fetched();
        after.free();
        pass(60);
        assertEquals(List.of(), transport.sent);
        assertCounts(2, 0);
        assertEquals(0, duty.held());
        assertEquals(0, left());
    }

    @Test
    void heartbeatsKeepALeaseAliveUntilItsEndIsSaid() {
        final WatchedPrefill prefill = watch("e", "r");
        pass(300);
        assertEquals(1, duty.held());
        assertTrue(transport.sent.size() >= 300 / 6, () -> "" + transport.sent.size());
        assertEquals("e HB:r", transport.sent.getFirst());
        assertEquals(transport.sent.size(), counters.with(0).heartbeats());
        prefill.free();
        work();
        assertEquals("e r:1", transport.sent.getLast());
        assertCounts(0, 1);
    }

    @Test
    void anEndThatIsNeverSaidStopsTheHeartbeats() {
        final WatchedPrefill prefill = watch("e", "r");
        pass(TimeUnit.NANOSECONDS.toSeconds(ReleaseDuty.LONGEST_NS) + 1);
        final int sent = transport.sent.size();
        assertEquals(0, duty.held());
        pass(60);
        assertEquals(sent, transport.sent.size());
        prefill.free();
        work();
        assertEquals(1, left(LeaseReason.EXPIRED));
    }

    @Test
    void aRefusedHandshakeIsRepeatedWithGrowingPausesWhileTheLeaseLives() {
        askFails = new VllmPeerException(VllmPeerException.Kind.UNREACHABLE, "refused");
        final WatchedPrefill freed = watch("e", "r1");
        final WatchedPrefill open = watch("e", "r2");
        freed.free();
        pass(29);
        assertEquals(2, duty.held());
        assertEquals(0, left());
        assertTrue(asked.size() > 5 && asked.size() < 20, () -> "asked " + asked.size());
        pass(1);
        assertEquals(0, duty.held());
        assertEquals(1, left(LeaseReason.HANDSHAKE_FAILED));
        open.free();
        work();
        assertEquals(2, left(LeaseReason.HANDSHAKE_FAILED));
        final int before = asked.size();
        pass(60);
        assertEquals(before, asked.size(), "nothing needs the engine");
        askFails = null;
        watch("e", "r3").free();
        work();
        assertEquals(List.of("e r3:1"), transport.sent);
    }

    @Test
    void aSilentHandshakeIsAloneAndTheLeaseEndsMeanwhile() {
        watch("e", "r1").free();
        for (int second = 0; second < 31; second++) {
            duty.doWork(nowNs);
            nowNs += TimeUnit.SECONDS.toNanos(1);
        }
        assertEquals(1, asking.size());
        assertEquals(0, duty.held());
        assertEquals(1, left(LeaseReason.HANDSHAKE_FAILED));
        work();
        assertEquals(List.of(), transport.sent);
    }

    @Test
    void anAnswerThatMakesNoSenseLeavesBlocksToTheLease() {
        askFails = new VllmPeerException(VllmPeerException.Kind.MALFORMED, "garbage");
        watch("e", "r").free();
        pass(31);
        assertEquals(1, left(LeaseReason.UNSUPPORTED));
        assertEquals(0, duty.held());
    }

    @Test
    void anyFailureOfAHandshakeIsAFailedOne() {
        askFails = new IllegalArgumentException("what was not thought of");
        watch("e", "r").free();
        pass(31);
        assertEquals(1, left(LeaseReason.HANDSHAKE_FAILED));
    }

    @Test
    void metadataThatTheTransportRefusesIsRetried() {
        transport.connectFails =
                new KvTransportException(KvTransportException.Kind.BAD_METADATA, "told so");
        watch("e", "r").free();
        pass(1);
        assertCounts(0, 0);
        transport.connectFails = null;
        pass(5);
        assertCounts(0, 1);
    }

    @Test
    void anotherEngineAtTheAddressMeansThatTheFirstHasEnded() {
        askFails = new VllmPeerException(VllmPeerException.Kind.OTHER_ENGINE, "restarted");
        final WatchedPrefill open = watch("old", "r1");
        watch("old", "r2").free();
        work();
        assertEquals(0, duty.held());
        assertEquals(1, left(LeaseReason.ENGINE_LOST));
        open.free();
        work();
        assertEquals(2, left(LeaseReason.ENGINE_LOST));
        askFails = null;
        watch("new", "r3").free();
        work();
        assertEquals(List.of("new r3:1"), transport.sent);
    }

    @Test
    void aConnectedEngineHasEndedWhenAnotherIntroducesItselfAtItsAddress() {
        final WatchedPrefill old = watch("old", "r1");
        work();
        watch("new", "r2");
        work();
        assertEquals(List.of("new"), transport.peers);
        assertEquals(1, duty.held());
        old.free();
        work();
        assertEquals(1, left(LeaseReason.ENGINE_LOST));
        assertEquals(List.of(), transport.sent);
    }

    @Test
    void anEngineThatIsNotReachedIsConnectedAnewAndNotified() {
        final WatchedPrefill prefill = watch("e", "r");
        work();
        transport.refuseSend = true;
        prefill.free();
        pass(5);
        assertEquals(1, duty.held());
        assertTrue(asked.size() > 2, () -> "asked " + asked.size());
        transport.refuseSend = false;
        pass(6);
        assertEquals("e r:1", transport.sent.getLast());
        assertCounts(0, 1);
        assertEquals(0, left());
    }

    @Test
    void anEngineThatIsNeverReachedAgainIsLostWhenTheLeaseEnds() {
        final WatchedPrefill freed = watch("e", "r1");
        final WatchedPrefill open = watch("e", "r2");
        pass(60);
        transport.refuseSend = true;
        askFails = new VllmPeerException(VllmPeerException.Kind.UNREACHABLE, "killed");
        freed.free();
        pass(10);
        assertEquals(2, duty.held(), "heartbeats had prolonged the leases");
        pass(20);
        assertEquals(0, duty.held());
        open.free();
        work();
        assertEquals(2, left(LeaseReason.ENGINE_LOST));
    }

    @Test
    void paramsThatAreNotUnderstoodAreLeftToTheLease() {
        for (String text :
                List.of(
                        "{}",
                        "{\"remote_engine_id\":7}",
                        "{\"remote_engine_id\":\"e\"}",
                        "{\"remote_engine_id\":\"e\",\"remote_request_id\":\"r\","
                                + "\"remote_block_ids\":\"none\"}")) {
            duty.watch(Prefills.json(text), nowNs).orElseThrow().free();
        }
        work();
        watch("e", "twice");
        watch("e", "twice").free();
        work();
        assertEquals(5, left(LeaseReason.UNSUPPORTED));
        assertEquals(6, duty.held());
        pass(31);
        assertEquals(1, duty.held(), "the first of two of one name is kept alive");
        assertEquals(5, left());
    }

    @Test
    void anIdentifierThatNoHeartbeatCanNameIsFreedWhileItsLeaseLives() {
        final WatchedPrefill early = watch("e", "a,b");
        watch("e", "c,d");
        work();
        early.free();
        work();
        assertEquals(List.of("e a,b:1"), transport.sent);
        pass(31);
        assertEquals(0, duty.held());
    }

    @Test
    void enginesAndHandshakesAreBounded() {
        for (int i = 0; i < LIMITS.engines() + 2; i++) {
            duty.watch(Prefills.params("e" + i, "r" + i, 5600 + i), nowNs).orElseThrow().free();
        }
        duty.doWork(nowNs);
        assertEquals(LIMITS.handshakes(), asking.size());
        assertEquals(2, left(LeaseReason.TOO_MANY));
        work();
        assertCounts(0, LIMITS.engines());
        pass(30);
        assertEquals(0, duty.held());
        pass(TimeUnit.NANOSECONDS.toSeconds(ReleaseDuty.UNUSED_NS));
        assertEquals(List.of(), transport.peers, "unused engines are forgotten");
        watch("later", "r").free();
        work();
        assertEquals("later r:1", transport.sent.getLast());
    }

    @Test
    void tenThousandHoldsAreKeptAliveFreedAndForgotten() {
        final List<WatchedPrefill> all = new ArrayList<>();
        for (int i = 0; i < 10_000; i++) {
            all.add(
                    duty.watch(
                                    Prefills.params("e" + i % 2, "cmpl-request-" + i, 5600 + i % 2),
                                    nowNs)
                            .orElseThrow());
        }
        pass(40);
        assertEquals(all.size(), duty.held());
        transport.sent.clear();
        all.forEach(WatchedPrefill::free);
        work();
        assertEquals(all.size(), transport.sent.size());
        assertCounts(0, all.size());
        assertEquals(0, duty.held());
    }

    @Test
    void holdsBeyondTheLimitAreRefused() {
        for (int i = 0; i < LIMITS.prefills(); i++) {
            watch("e", "r" + i);
        }
        assertTrue(duty.watch(Prefills.params("e", "r", 5600), nowNs).isEmpty());
        assertEquals(LIMITS.prefills(), duty.held());
        pass(1);
        assertEquals(LIMITS.prefills(), duty.held());
    }

    @Test
    void closedItLeavesAllToTheirLeasesOnce() {
        final WatchedPrefill waiting = watch("e", "r1");
        work();
        watch("silent", "r2").free();
        duty.doWork(nowNs);
        watch("silent", "r3").fetched();
        watch("e", "r4");
        duty.close();
        assertEquals(3, left(LeaseReason.CLOSING));
        assertCounts(1, 0);
        assertEquals(0, duty.held());
        assertTrue(transport.closed);
        waiting.free();
        assertEquals(3, left());
    }
}

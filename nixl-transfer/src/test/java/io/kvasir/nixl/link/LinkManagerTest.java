package io.kvasir.nixl.link;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.engine.KvLink;
import io.kvasir.nixl.engine.LocalBlocks;
import io.kvasir.nixl.engine.Transfer;
import io.kvasir.nixl.engine.TransferConfig;
import io.kvasir.nixl.engine.TransferEngine;
import io.kvasir.nixl.exchange.ExchangeException;
import io.kvasir.nixl.exchange.PeerMemory;
import io.kvasir.nixl.exchange.PeerRecord;
import io.kvasir.nixl.exchange.Records;
import io.kvasir.nixl.link.ManagedLink.State;
import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.nixl.transport.ScriptedTransport;

import org.agrona.LangUtil;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.random.RandomGenerator;
import java.util.stream.Stream;

/** Timing and order, by a script: one thread, a clock by hand, no jitter unless said. */
class LinkManagerTest {
    private static final long MS = 1_000_000;
    private static final String GONE = "GONE";

    private final ScriptedTransport transport = new ScriptedTransport();
    private final List<String> told = new ArrayList<>();
    private final ViewExchange exchange = new ViewExchange();
    private final RandomGenerator random = () -> -1L; // as large as a random number can be
    private long nowNs;
    private long engineStepNs;
    private TransferEngine engine;
    private LinkManager manager;
    private ManagedLink link;

    @BeforeEach
    void make() {
        make(0);
        link = manager.keep("peer", "", (kept, state, why) -> told.add(state + " " + why));
    }

    private void make(double jitter) {
        final LinkConfig config =
                new LinkConfig(
                        2,
                        Duration.ofMillis(10),
                        Duration.ofMillis(50),
                        jitter,
                        Duration.ofMillis(1));
        engine =
                new TransferEngine(
                        transport,
                        TransferConfig.DEFAULT,
                        () -> nowNs += engineStepNs,
                        (p, m) -> {});
        manager = new LinkManager(exchange, engine, config, () -> nowNs, random);
    }

    @AfterEach
    void close() {
        transport.releaseFails = false;
        manager.close();
        work();
        assertEquals(State.CLOSED, link.state());
        assertTrue(transport.peers.isEmpty(), "peers are left: " + transport.peers);
        assertEquals(0, engine.stuckRequests());
        engine.close();
    }

    private void work() {
        int quiet = 0;
        while (quiet < 2) { // what one does may be work for the other
            final int done = manager.doWork() + engine.doWork();
            quiet = done == 0 ? quiet + 1 : 0;
        }
    }

    private void workAfter(long ms) {
        nowNs += ms * MS;
        work();
    }

    private void up() {
        exchange.publish(Records.record("peer", 1, 1));
        work();
        assertEquals(State.UP, link.state());
        told.clear();
    }

    private Transfer pull(KvLink over) {
        final CompletableFuture<LocalBlocks> own =
                engine.local(new PeerMemory.Pool(Records.LAYOUT, 4096).descriptors());
        engine.doWork();
        final Transfer transfer = new Transfer().pull(own.join(), over).add(0, 0);
        assertTrue(engine.submit(transfer));
        engine.doWork();
        return transfer;
    }

    @Test
    void itWaitsForTheRecordAndThenLinksAtOnce() {
        workAfter(1_000);
        assertEquals(State.CONNECTING, link.state());
        final KvTransportException refusal = assertThrows(KvTransportException.class, link::link);
        assertEquals(KvTransportException.Kind.PEER_LOST, refusal.kind());
        assertTrue(refusal.getMessage().contains("no record of peer"), refusal.getMessage());
        exchange.publish(Records.record("peer", 1, 1));
        work();
        assertEquals(List.of("CONNECTING makes a link of PeerRecord[peer, 1.1]", "UP "), told);
        assertTrue(link.link().isUp());
        assertEquals(Records.record("peer", 1, 1), link.linked().record());
        assertEquals(1, link.handshakes());
        assertEquals(0, link.failures());
        nowNs += 7;
        assertEquals(7, link.upForNs());
    }

    @Test
    void aFailedTransferCostsTheLinkWhichComesBackAfterAPause() {
        up();
        final KvLink first = link.link();
        transport.failAtOnce = true;
        final Transfer transfer = pull(first);
        work();
        transport.failAtOnce = false;
        assertEquals(Transfer.State.FAILED, transfer.state());
        assertEquals(State.LOST, link.state());
        assertTrue(link.why().contains("scripted failure"), link.why());
        assertThrows(KvTransportException.class, link::link);
        assertEquals(0, link.upForNs());
        assertTrue(transport.peers.isEmpty(), "the peer was not forgotten");
        workAfter(9);
        assertEquals(State.LOST, link.state());
        workAfter(1);
        assertEquals(State.UP, link.state());
        assertFalse(first.isUp());
        assertEquals(2, link.handshakes());
        assertEquals(1, link.failures());
    }

    @Test
    void pausesDoubleToTheirCapAndBeginAnewWithAnotherRecord() {
        transport.connectFails =
                new KvTransportException(KvTransportException.Kind.BAD_METADATA, "not yet");
        exchange.publish(Records.record("peer", 1, 1));
        work();
        assertEquals(1, link.failures());
        long failures = 1;
        for (long pause : new long[] {10, 20, 40, 50, 50}) {
            workAfter(pause - 1);
            assertEquals(failures, link.failures());
            workAfter(1);
            assertEquals(++failures, link.failures());
        }
        assertEquals("LOST not yet", told.getLast());
        exchange.publish(Records.record("peer", 1, 2));
        work();
        assertEquals(++failures, link.failures());
        workAfter(10);
        assertEquals(++failures, link.failures());
        transport.connectFails = null;
        workAfter(20);
        assertEquals(State.UP, link.state());
    }

    @Test
    void aLinkThatFailsWithoutHavingMovedAnythingIsNotTriedWithoutPause() {
        up();
        transport.failAtOnce = true;
        for (long pause : new long[] {10, 20, 40}) {
            pull(link.link());
            work();
            workAfter(pause - 1);
            assertEquals(State.LOST, link.state());
            workAfter(1);
            assertEquals(State.UP, link.state());
        }
        transport.failAtOnce = false;
        transport.doneAtOnce = true;
        pull(link.link());
        work();
        transport.failAtOnce = true;
        pull(link.link());
        work();
        workAfter(10);
        assertEquals(State.UP, link.state());
    }

    @Test
    void jitterTakesAPartOfEachPause() {
        final LinkConfig config =
                new LinkConfig(
                        1,
                        Duration.ofMillis(100),
                        Duration.ofMillis(400),
                        0.5,
                        Duration.ofMillis(1));
        for (int i = 0; i < 100; i++) {
            final long pauseNs = config.backoffNs(1 + i % 50, RandomGenerator.getDefault());
            final long wholeNs = Math.min(100L << Math.min(i % 50, 10), 400) * MS;
            assertTrue(pauseNs <= wholeNs && pauseNs >= wholeNs / 2, pauseNs + " of " + wholeNs);
        }
        assertEquals(50.0 * MS, (double) config.backoffNs(1, random), MS / 100.0);
    }

    @Test
    void theLongestTimesAreTakenAndThoseBelowTheirLimitsNamed() {
        final Duration longest = Duration.ofSeconds(Long.MAX_VALUE);
        final LinkConfig config = new LinkConfig(1, longest, longest, 0, longest);
        assertEquals(Long.MAX_VALUE, config.backoffNs(100, random));
        assertEquals(Long.MAX_VALUE, config.pollNs());
        refused(
                "firstBackoff=PT0S, backoffCap="
                        + longest
                        + ": at least 1 ms, and the cap not below the first",
                Duration.ZERO,
                longest,
                longest);
        refused("poll=PT-1S, at least 1 µs", longest, longest, Duration.ofSeconds(-1));
    }

    private static void refused(String why, Duration first, Duration cap, Duration poll) {
        assertEquals(
                why,
                assertThrows(
                                IllegalArgumentException.class,
                                () -> new LinkConfig(1, first, cap, 0, poll))
                        .getMessage());
    }

    @Test
    void aPeerThatIsGoneIsUnlinkedAndLinkedAgainWhenItIsBack() {
        up();
        exchange.withdraw("peer");
        work();
        assertEquals(List.of("LOST peer is gone from the exchange"), told);
        assertTrue(transport.peers.isEmpty());
        workAfter(100_000);
        assertEquals(State.LOST, link.state());
        exchange.publish(Records.record("peer", 1, 1));
        work();
        assertEquals(State.UP, link.state());
    }

    @Test
    void aNewerRecordReplacesTheLinkAtOnceAndWhatMovesOverTheOldOneFails() {
        up();
        final KvLink old = link.link();
        final Transfer transfer = pull(old);
        exchange.publish(Records.record("peer", 1, 2));
        work();
        assertEquals(Transfer.State.FAILED, transfer.state());
        assertEquals(
                List.of(
                        "LOST PeerRecord[peer, 1.2] has replaced PeerRecord[peer, 1.1]",
                        "CONNECTING makes a link of PeerRecord[peer, 1.2]",
                        "UP "),
                told);
        assertFalse(old.isUp());
        assertEquals(Records.record("peer", 1, 2), link.linked().record());
    }

    @Test
    void aRecordOfAnotherModelIsRefusedByNameUntilABetterOneComes() {
        final ManagedLink picky = manager.keep("picky", "model-y", (kept, state, why) -> {});
        exchange.publish(withDigest(1, "model-x"));
        work();
        assertEquals(State.LOST, picky.state());
        assertTrue(picky.why().contains("'model-x', expected is 'model-y'"), picky.why());
        exchange.publish(withDigest(2, "model-y"));
        work();
        assertEquals(State.UP, picky.state());
        picky.close();
        work();
        assertEquals(State.CLOSED, picky.state());
    }

    private static PeerRecord withDigest(long incarnation, String digest) {
        final PeerMemory memory = new PeerMemory.Pool(Records.LAYOUT, 4096);
        return new PeerRecord("picky", incarnation, 1, new byte[] {'p'}, memory, digest);
    }

    @Test
    void memoryThatCannotBePreparedLeavesNoPeerBehind() {
        transport.prepareFails =
                new KvTransportException(KvTransportException.Kind.INVALID, "no such memory");
        exchange.publish(Records.record("peer", 1, 1));
        work();
        assertEquals("no such memory", link.why());
        assertTrue(transport.peers.isEmpty());
        transport.prepareFails = null;
        workAfter(10);
        assertEquals(State.UP, link.state());
    }

    @Test
    void whileRequestsCannotBeGivenUpNothingIsLinkedAgain() {
        up();
        transport.failAtOnce = true;
        transport.releaseFails = true;
        pull(link.link());
        engine.doWork();
        manager.doWork(); // asks the engine to unlink
        engine.doWork();
        nowNs += 5_000 * MS; // for which the engine tries to
        engine.doWork();
        manager.doWork();
        assertEquals(State.LOST, link.state());
        assertTrue(link.why().contains("could not be given up"), link.why());
        assertEquals(1, engine.stuckRequests());
        assertEquals(1, transport.peers.size());
        transport.releaseFails = false;
        transport.failAtOnce = false;
        work();
        workAfter(50);
        assertEquals(State.UP, link.state());
    }

    @Test
    void aPeerThatHangsHoldsUpNoOther() {
        up();
        final ManagedLink other = manager.keep("other", "", (kept, state, why) -> {});
        exchange.publish(Records.record("other", 1, 1));
        work();
        final CompletableFuture<LocalBlocks> own =
                engine.local(new PeerMemory.Pool(Records.LAYOUT, 4096).descriptors());
        work();
        pull(link.link());
        transport.releaseFails = true;
        exchange.withdraw("peer");
        manager.doWork(); // asks the engine to unlink
        final Transfer transfer = new Transfer().pull(own.join(), other.link()).add(0, 0);
        assertTrue(engine.submit(transfer.deadlineNs(nowNs + 1_000 * MS)));
        engineStepNs = 10 * MS;
        engine.doWork();
        engineStepNs = 0;
        assertEquals(Transfer.State.RUNNING, transfer.state());
        assertEquals(2, transport.requests.size());
        assertTrue(transport.all.getLast().posted);
        assertEquals(1, engine.stuckRequests());
        assertTrue(transport.peers.contains("peer"));
    }

    @Test
    void aPeerThatCouldNotBeForgottenIsForgottenAfterAPause() {
        up();
        transport.disconnectFails = new IllegalStateException("scripted");
        exchange.publish(Records.record("peer", 1, 2));
        work();
        assertEquals("LOST scripted", told.getLast());
        assertEquals(0, transport.lists.size());
        transport.disconnectFails = null;
        workAfter(50);
        assertEquals(State.UP, link.state());
        assertEquals(Records.record("peer", 1, 2), link.linked().record());
    }

    @Test
    void aLinkThatCouldNotBeGivenUpIsGivenUpAgainAfterAPause() {
        up();
        pull(link.link());
        transport.releaseFails = true;
        exchange.withdraw("peer"); // its pause is the first
        work();
        workAfter(5_000);
        assertTrue(link.why().contains("could not be given up"), link.why());
        assertEquals(2, link.failures());
        for (int moment = 0; moment < 20; moment++) {
            manager.doWork();
            assertEquals(0, engine.doWork(), "asked again after " + moment + " ms");
            nowNs += MS;
        }
        manager.doWork();
        assertEquals(1, engine.doWork());
        assertEquals(2, link.failures());
        workAfter(5_000);
        assertEquals(3, link.failures());
    }

    @Test
    void aKeeperThatIsClosedBeforeItSeesAFailureTriesOnceMore() {
        up();
        pull(link.link());
        transport.releaseFails = true;
        exchange.withdraw("peer");
        work();
        nowNs += 5_000 * MS;
        engine.doWork(); // gives up to let go of it
        manager.close();
        transport.releaseFails = false;
        work();
        assertTrue(transport.peers.isEmpty());
    }

    @Test
    void linksAreBoundedAndOneAPeer() {
        assertThrows(
                IllegalArgumentException.class, () -> manager.keep("peer", "", (l, s, w) -> {}));
        manager.keep("second", "", (l, s, w) -> {});
        final ExchangeException refusal =
                assertThrows(
                        ExchangeException.class, () -> manager.keep("third", "", (l, s, w) -> {}));
        assertTrue(refusal.getMessage().contains("maxLinks"), refusal.getMessage());
        link.close();
        work();
        assertEquals(State.CLOSED, link.state());
        assertSame(State.CONNECTING, manager.keep("third", "", (l, s, w) -> {}).state());
    }

    @Test
    void aLinkThatIsReportedAsClosedMayBeKeptAgain() {
        final List<ManagedLink> again = new ArrayList<>();
        final ManagedLink other =
                manager.keep(
                        "other",
                        "",
                        (kept, state, why) -> {
                            if (state == State.CLOSED) {
                                again.add(manager.keep("other", "", (l, s, w) -> {}));
                            }
                        });
        exchange.publish(Records.record("other", 1, 1));
        up();
        other.close();
        work();
        assertEquals(State.CLOSED, other.state());
        assertEquals(1, again.size());
        assertEquals(State.UP, again.getFirst().state());
        assertEquals(List.of("peer", "other"), transport.peers);
    }

    @Test
    void aClosedManagerSaysThatThereIsWorkUntilNothingIsLeft() {
        exchange.publish(Records.record("peer", 1, 1));
        manager.doWork(); // asks the engine to link
        manager.close();
        assertNotEquals(0, manager.doWork(), "the engine still links");
        while (manager.doWork() > 0) {
            engine.doWork();
        }
        assertEquals(State.CLOSED, link.state());
        assertTrue(transport.peers.isEmpty());
        assertEquals(0, manager.doWork());
    }

    @Test
    void aClosedLinkForgetsThePeer() {
        up();
        link.close();
        work();
        assertEquals(List.of("LOST closed", "CLOSED closed"), told);
        assertTrue(transport.peers.isEmpty());
        assertEquals(0, link.failures());
        assertFalse(told.contains(GONE));
    }

    @ParameterizedTest
    @MethodSource("faults")
    void whateverAListenerThrowsItsLinkGoesOnAndTheOthersToo(Throwable fault) {
        final ManagedLink other =
                manager.keep("other", "", (kept, state, why) -> LangUtil.rethrowUnchecked(fault));
        exchange.publish(Records.record("other", 1, 1));
        up();
        assertEquals(State.UP, other.state());
        exchange.withdraw("other");
        work();
        assertEquals(State.LOST, other.state());
        assertEquals(List.of("peer"), transport.peers);
        other.close();
        work();
        assertEquals(State.CLOSED, other.state());
        assertEquals(State.UP, link.state());
    }

    private static Stream<Throwable> faults() {
        return Stream.of(
                new AssertionError("scripted"),
                new Exception("scripted"),
                new IllegalStateException("scripted"));
    }

    @Test
    void whatIsMissingIsNamedWhereItIsGiven() {
        missing("peer", () -> manager.keep(null, "", (l, s, w) -> {}));
        missing("digest", () -> manager.keep("other", null, (l, s, w) -> {}));
        missing("listener", () -> manager.keep("other", "", null));
        final LinkConfig config = LinkConfig.DEFAULT;
        missing("exchange", () -> new LinkManager(null, engine, config, () -> 0, random));
        missing("engine", () -> new LinkManager(exchange, null, config, () -> 0, random));
        missing("config", () -> new LinkManager(exchange, engine, null, () -> 0, random));
        missing("clock", () -> new LinkManager(exchange, engine, config, null, random));
        missing("random", () -> new LinkManager(exchange, engine, config, () -> 0, null));
        up();
    }

    private static void missing(String name, Executable call) {
        assertEquals(name, assertThrows(NullPointerException.class, call).getMessage());
    }
}

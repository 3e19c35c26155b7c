package io.kvasir.nixl.engine;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.engine.EngineTelemetry.Span;
import io.kvasir.nixl.engine.Transfer.Priority;
import io.kvasir.nixl.engine.Transfer.State;
import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.KvTransport.NotificationHandler;
import io.kvasir.nixl.transport.KvTransport.Operation;
import io.kvasir.nixl.transport.KvTransport.Progress;
import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.nixl.transport.KvTransportException.Kind;
import io.kvasir.nixl.transport.ScriptedTransport;
import io.kvasir.panama.nixl.NixlMemory;

import org.HdrHistogram.Histogram;
import org.agrona.LangUtil;
import org.agrona.concurrent.BusySpinIdleStrategy;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import java.util.stream.Stream;

class TransferEngineTest {
    private static final int BLOCK = 100;

    private final ScriptedTransport transport = new ScriptedTransport();
    private final List<String> told = new ArrayList<>();
    private long nowNs;
    private TransferEngine engine;
    private LocalBlocks own;
    private KvLink link;

    @BeforeEach
    void make() {
        make(new TransferConfig(4, 8, 10 * BLOCK, 3 * BLOCK, 16));
    }

    private void make(TransferConfig config) {
        engine = new TransferEngine(transport, config, () -> nowNs, (peer, message) -> {});
        own = now(engine.local(descriptors()));
        link = link("peer");
    }

    private KvLink link(String peer) {
        return now(engine.link(peer.getBytes(StandardCharsets.US_ASCII), descriptors()));
    }

    private <T> T now(CompletableFuture<T> future) {
        engine.doWork();
        return future.join();
    }

    private static Descriptors descriptors() {
        return Descriptors.ofBlocks(
                List.of(new KvRegion("r", 0, NixlMemory.DRAM, 0, 4096, BLOCK, BLOCK, 64)));
    }

    @AfterEach
    void close() {
        transport.releaseFails = false;
        engine.close();
        assertTrue(transport.closed);
        assertTrue(transport.requests.isEmpty(), "a request is left");
    }

    private Transfer transfer(String name, int... blocks) {
        final Transfer transfer = new Transfer().pull(own, link);
        IntStream.of(blocks).forEach(block -> transfer.add(block, block + 1));
        return transfer.listener(
                new Transfer.Listener() {
                    @Override
                    public void onStage(Transfer staged, int stage) {
                        told.add(name + " stage " + stage);
                    }

                    @Override
                    public void onEnd(Transfer ended) {
                        told.add(name + " " + ended.state());
                    }
                });
    }

    private void work(int times) {
        for (int i = 0; i < times; i++) {
            engine.doWork();
        }
    }

    private void done(int request) {
        transport.all.get(request).progress = Progress.DONE;
    }

    @Test
    void aTransferIsCutIntoRequestsAndEndsWhenAllAreDone() {
        final Transfer transfer = transfer("a", 0, 1, 2, 3, 4, 5, 6);
        assertTrue(engine.submit(transfer));
        assertEquals(State.WAITING, transfer.state());
        work(5);
        assertEquals(3, transport.all.size());
        assertArrayEquals(new int[] {3, 4, 5}, transport.all.get(1).local);
        assertArrayEquals(new int[] {4, 5, 6}, transport.all.get(1).remote);
        assertEquals(State.RUNNING, transfer.state());
        done(2);
        done(0);
        work(1);
        assertEquals(List.of(), told);
        done(1);
        nowNs += 1_000;
        work(1);
        assertEquals(List.of("a stage 0", "a DONE"), told);
        assertEquals(7 * BLOCK, link.bytes());
        assertEquals(1, link.transfers());
        assertTrue(link.expectedNs(1, BLOCK) >= 0);
    }

    @Test
    void stagesEndInOrder() {
        final Transfer transfer = transfer("a", 0, 1, 2, 3).endStage(null);
        transfer.add(4, 5).endStage(null);
        engine.submit(transfer);
        work(3);
        done(0);
        done(2);
        work(1);
        assertEquals(0, transfer.completedStages());
        done(1);
        work(1);
        assertEquals(List.of("a stage 0", "a stage 1", "a DONE"), told);
    }

    @Test
    void aNotificationGoesWithTheLastRequestWhenAllBeforeItHaveEnded() {
        final Transfer transfer = transfer("a", 0, 1, 2, 3);
        transfer.endStage("first".getBytes(StandardCharsets.US_ASCII));
        transfer.add(4, 5).endStage(null);
        transfer.add(6, 7).endStage("last".getBytes(StandardCharsets.US_ASCII));
        engine.submit(transfer);
        work(3);
        assertEquals(1, transport.all.size(), "the stage's last request waits for the others");
        done(0);
        work(3);
        assertNull(transport.all.get(0).notification);
        assertEquals("first", transport.all.get(1).notification);
        assertEquals(3, transport.all.size(), "the last one waits for the stages before it");
        done(2);
        work(3);
        assertEquals(3, transport.all.size());
        done(1);
        work(3);
        assertEquals("last", transport.all.get(3).notification);
        done(3);
        work(1);
        assertEquals(List.of("a stage 0", "a stage 1", "a stage 2", "a DONE"), told);
    }

    @Test
    void whoWaitsForItsOwnRequestsIsInNobodysWay() {
        final Transfer first = transfer("first", 0, 1, 2, 3);
        first.endStage("told".getBytes(StandardCharsets.US_ASCII));
        engine.submit(first);
        engine.submit(transfer("second", 4, 5, 6, 7));
        engine.submit(transfer("third", 8));
        work(5);
        assertEquals(4, transport.all.size());
        assertArrayEquals(new int[] {7}, transport.all.get(2).local);
        assertArrayEquals(new int[] {8}, transport.all.get(3).local);
        done(0);
        work(2);
        assertEquals("told", transport.all.get(4).notification);
        IntStream.range(1, 5).forEach(this::done);
        work(1);
        assertEquals(3, told.stream().filter(line -> line.endsWith("DONE")).count());
    }

    @Test
    void aGatedTransferGoesStageByStageAsTheyAreOpened() {
        final Transfer transfer = transfer("a", 0, 1, 2, 3).endStage(null);
        transfer.add(4, 5).endStage(null).add(5, 6).endStage(null).gated();
        engine.submit(transfer);
        work(3);
        assertEquals(List.of(), transport.all);
        assertEquals(State.WAITING, transfer.state());
        transfer.openStages(1);
        work(4);
        assertEquals(2, transport.all.size());
        done(0);
        done(1);
        work(2);
        assertEquals(1, transfer.completedStages());
        transfer.openStages(0);
        transfer.openStages(3);
        work(3);
        assertEquals(4, transport.all.size());
        done(2);
        done(3);
        work(1);
        assertEquals(State.DONE, transfer.state());
        transport.doneAtOnce = true;
        engine.submit(transfer.pull(own, link).add(0, 1));
        work(2);
        assertEquals(State.DONE, transfer.state(), "filled again it is not gated");
    }

    @Test
    void aGatedTransferIsInNobodysWayAndGoesFirstOnceItMay() {
        final Transfer first = transfer("first", 0).gated();
        final Transfer second = transfer("second", 1).gated();
        engine.submit(first);
        engine.submit(second);
        engine.submit(transfer("free", 2));
        work(1);
        assertArrayEquals(new int[] {2}, transport.all.get(0).local);
        engine.submit(transfer("late", 3, 4, 5, 6, 7, 8));
        work(1);
        second.openStages(1);
        first.openStages(1);
        work(2);
        assertArrayEquals(new int[] {0}, transport.all.get(2).local);
        assertArrayEquals(new int[] {1}, transport.all.get(3).local);
        transport.all.forEach(made -> made.progress = Progress.DONE);
        transport.doneAtOnce = true;
        work(5);
        assertEquals(4, told.stream().filter(line -> line.endsWith("DONE")).count());
    }

    @Test
    void aGatedTransferEndsByItsDeadlineItsLinkACancelAndTheEngine() {
        final Transfer late = transfer("late", 0).gated().deadlineNs(100);
        final Transfer cancelled = transfer("cancelled", 1).gated();
        final KvLink other = link("other");
        final Transfer lost = new Transfer().push(own, other).add(2, 2).gated();
        final Transfer closed = transfer("closed", 3).gated();
        for (Transfer transfer : List.of(late, cancelled, lost, closed)) {
            assertTrue(engine.submit(transfer));
        }
        work(1);
        nowNs = 100;
        cancelled.cancel();
        final CompletableFuture<Void> unlinked = engine.unlink(other);
        work(4);
        assertTrue(unlinked.isDone());
        assertEquals(State.EXPIRED, late.state());
        assertEquals(State.CANCELLED, cancelled.state());
        assertEquals(State.FAILED, lost.state());
        assertEquals(State.WAITING, closed.state());
        engine.close();
        assertEquals(State.CANCELLED, closed.state());
    }

    @Test
    void gatedTransfersFillTheQueueToo() {
        make(new TransferConfig(2, 1, 1, 1, 1));
        int taken = 0;
        for (int i = 0; i < 10; i++) {
            taken += engine.submit(transfer("t" + i, i).gated()) ? 1 : 0;
            work(1);
        }
        assertTrue(taken >= 2 && taken < 10, "taken " + taken);
        assertEquals(10 - taken, engine.refusedTransfers());
    }

    @Test
    void bytesInFlightAreLimitedAndALargerRequestGoesAlone() {
        make(new TransferConfig(4, 8, 4 * BLOCK, 3 * BLOCK, 16));
        engine.submit(transfer("a", 0, 1, 2));
        engine.submit(transfer("b", 3, 4));
        work(4);
        assertEquals(1, transport.all.size());
        done(0);
        work(4);
        assertEquals(2, transport.all.size());
        done(1);
        work(1);
        make(new TransferConfig(4, 8, 1, 3 * BLOCK, 16));
        engine.submit(transfer("c", 0, 1, 2));
        work(2);
        assertEquals(3, transport.all.size());
        done(2);
        work(1);
        assertTrue(told.contains("c DONE"));
    }

    private double[] times(Span span) {
        final Histogram times = now(engine.takeTimes(span, EngineTelemetry.histogram()));
        final List<Double> values = new ArrayList<>();
        times.recordedValues()
                .forEach(
                        value -> {
                            for (long i = 0; i < value.getCountAtValueIteratedTo(); i++) {
                                values.add((double) value.getValueIteratedTo());
                            }
                        });
        return values.stream().mapToDouble(Double::doubleValue).toArray();
    }

    @Test
    void telemetryTellsWhatTransfersTook() {
        final EngineTelemetry telemetry = engine.telemetry();
        final Transfer transfer = transfer("a", 0, 1, 2).endStage(null);
        transfer.add(3, 4);
        engine.submit(transfer);
        nowNs = 10_000;
        work(2); // both requests
        nowNs = 50_000;
        done(0);
        work(1);
        nowNs = 90_000;
        done(1);
        work(1);
        assertArrayEquals(new double[] {10_000}, times(Span.WAITING), 100);
        assertArrayEquals(new double[] {40_000, 80_000}, times(Span.REQUEST), 800);
        assertArrayEquals(new double[] {40_000, 80_000}, times(Span.STAGE), 800);
        assertArrayEquals(new double[] {90_000}, times(Span.TRANSFER), 900);
        assertEquals(2, times(Span.POSTING).length);
        assertArrayEquals(new double[0], times(Span.TRANSFER), "they are handed out once");
        assertEquals(80_000, telemetry.busyNs());
        assertEquals(4 * BLOCK, telemetry.bytes(Operation.READ));
        assertEquals(0, telemetry.bytes(Operation.WRITE));
        assertEquals(4, telemetry.descriptors());
        assertEquals(2, telemetry.requests());

        transport.doneAtOnce = true;
        engine.submit(new Transfer().push(own, link).add(0, 0));
        engine.submit(transfer("late", 1).deadlineNs(0));
        transfer.pull(own, link).add(0, 0).cancel();
        engine.submit(transfer);
        nowNs += TimeUnit.HOURS.toNanos(2);
        work(6);
        assertEquals(BLOCK, telemetry.bytes(Operation.WRITE));
        assertEquals(2, telemetry.transfers(State.DONE));
        assertEquals(1, telemetry.transfers(State.EXPIRED));
        assertEquals(1, telemetry.transfers(State.CANCELLED));
        assertEquals(0, telemetry.transfers(State.FAILED));
        final double[] hours = times(Span.TRANSFER);
        assertEquals(1, hours.length);
        assertTrue(hours[0] >= TimeUnit.HOURS.toNanos(1), "longer ones count as an hour");

        final Histogram used = EngineTelemetry.histogram();
        used.recordValue(1_000);
        final Histogram small = new Histogram(64, 1_000_000, 2);
        for (Histogram wrong : List.of(used, small)) {
            assertThrows(
                    IllegalArgumentException.class,
                    () -> engine.takeTimes(Span.STAGE, wrong).join());
        }
    }

    @Test
    void higherPriorityGoesBetweenTwoRequests() {
        engine.submit(transfer("low", 0, 1, 2, 3, 4, 5).priority(Priority.LOW));
        work(1);
        engine.submit(transfer("high", 10).priority(Priority.HIGH));
        work(3);
        assertArrayEquals(new int[] {10}, transport.all.get(1).local);
        transport.all.forEach(made -> made.progress = Progress.DONE);
        work(2);
        assertTrue(told.containsAll(List.of("high DONE", "low DONE")), told.toString());
    }

    @Test
    void aFailureLosesTheLinkAndAllThatGoesOverItButNoOther() {
        final KvLink other = link("other");
        final Transfer first = transfer("a", 0);
        final Transfer second = transfer("b", 1);
        final Transfer third = new Transfer().push(own, other).add(0, 0);
        engine.submit(first);
        engine.submit(second);
        engine.submit(third);
        work(3);
        transport.all.get(0).progress = Progress.FAILED;
        transport.all.get(2).progress = Progress.DONE;
        work(2);
        assertEquals(State.FAILED, first.state());
        assertEquals("scripted failure", first.failure());
        assertEquals(State.FAILED, second.state());
        assertEquals(State.DONE, third.state());
        assertFalse(link.isUp());
        assertEquals("scripted failure", link.lostBecause());
        assertTrue(other.isUp());
        assertEquals(2, link.failures());
        final Transfer late = transfer("late", 2);
        engine.submit(late);
        work(1);
        assertEquals(State.FAILED, late.state());
        link = link("peer");
        transport.doneAtOnce = true;
        engine.submit(late.pull(own, link).add(0, 0));
        work(2);
        assertEquals(State.DONE, late.state());
    }

    @Test
    void aRequestThatIsInvalidFailsItsTransferAlone() {
        final Transfer good = transfer("good", 0);
        engine.submit(good);
        work(1);
        transport.requestFails = new KvTransportException(Kind.INVALID, "scripted refusal");
        final Transfer bad = transfer("bad", 1);
        engine.submit(bad);
        work(1);
        assertEquals(State.FAILED, bad.state());
        assertEquals("scripted refusal", bad.failure());
        assertTrue(link.isUp());
        done(0);
        work(1);
        assertEquals(State.DONE, good.state());
        transport.requestFails = new KvTransportException(Kind.PEER_LOST, "scripted loss");
        engine.submit(transfer("lost", 2));
        work(1);
        assertEquals("scripted loss", link.lostBecause());
    }

    /** The first lists of all transports have the same handles: theirs would be other memory. */
    @Test
    void listsOfAnotherEngineAreRefused() {
        final TransferEngine first = engine;
        final ScriptedTransport foreign = new ScriptedTransport();
        engine =
                new TransferEngine(
                        foreign, TransferConfig.DEFAULT, () -> nowNs, (peer, message) -> {});
        final LocalBlocks foreignOwn = now(engine.local(descriptors()));
        final KvLink foreignLink = link("peer");
        engine.close();
        engine = first;
        assertRefused(
                "the own blocks are of another transfer engine; take those of this one's local()",
                new Transfer().pull(foreignOwn, link).add(0, 1));
        assertRefused(
                "the link to peer is of another transfer engine; take one of this one's link()",
                new Transfer().push(own, foreignLink).add(0, 1));
        final CompletableFuture<Void> unlinked = engine.unlink(foreignLink);
        work(1);
        assertEquals(Kind.INVALID, ((KvTransportException) unlinked.exceptionNow()).kind());
        assertTrue(transport.peers.contains("peer"));
        assertEquals(List.of(), transport.all);
    }

    private void assertRefused(String why, Transfer transfer) {
        for (Executable taken :
                List.<Executable>of(() -> engine.submit(transfer), () -> engine.move(transfer))) {
            final KvTransportException refusal = assertThrows(KvTransportException.class, taken);
            assertEquals(Kind.INVALID, refusal.kind());
            assertEquals(why, refusal.getMessage());
            assertEquals(State.NEW, transfer.state());
        }
    }

    @Test
    void aNotificationThatIsTooLongIsRefusedWhereItIsGiven() {
        final Transfer transfer = transfer("a", 0);
        final byte[] tooLong = new byte[KvTransport.MAX_MESSAGE + 1];
        final IllegalArgumentException e =
                assertThrows(IllegalArgumentException.class, () -> transfer.endStage(tooLong));
        assertEquals("notification of stage 0 has 8193 bytes, at most 8192", e.getMessage());
        transport.doneAtOnce = true;
        engine.submit(transfer.endStage(new byte[KvTransport.MAX_MESSAGE]));
        work(2);
        assertEquals(State.DONE, transfer.state());
    }

    @Test
    void whatCannotBeReleasedKeepsItsBlocksUntilItCan() {
        final Transfer transfer = transfer("a", 0, 1, 2, 3);
        engine.submit(transfer);
        work(2);
        transport.releaseFails = true;
        transfer.cancel();
        work(5);
        assertEquals(State.RUNNING, transfer.state());
        assertEquals(2, engine.stuckRequests());
        assertThrows(IllegalStateException.class, () -> transfer.pull(own, link));
        transport.releaseFails = false;
        work(1);
        assertEquals(State.CANCELLED, transfer.state());
        assertEquals(0, engine.stuckRequests());
    }

    @Test
    void aDeadlineEndsWhatWaitsAndWhatRuns() {
        final Transfer running = transfer("running", 0).deadlineNs(100);
        final Transfer waiting = transfer("waiting", 1, 2, 3, 4, 5, 6).deadlineNs(100);
        engine.submit(running);
        engine.submit(waiting);
        work(2);
        nowNs = 99;
        work(1);
        assertEquals(List.of(), told);
        nowNs = 100;
        work(3);
        assertEquals(State.EXPIRED, running.state());
        assertEquals(State.EXPIRED, waiting.state());
    }

    @Test
    void whatWaitsBehindATransferThatHangsEndsAllTheSame() {
        make(new TransferConfig(64, 1, 10 * BLOCK, 3 * BLOCK, 1));
        final Transfer hung = transfer("hung", 0, 1); // has the only request, and needs another
        engine.submit(hung);
        work(1);
        final KvLink other = link("other");
        final List<Transfer> late = new ArrayList<>();
        for (int i = 0; i < 30; i++) {
            late.add(new Transfer().pull(own, other).add(i, i).deadlineNs(100));
            engine.submit(late.getLast());
        }
        final Transfer cancelled = transfer("cancelled", 40).priority(Priority.LOW);
        final Transfer patient = transfer("patient", 41);
        final Transfer last = transfer("last", 42);
        for (Transfer transfer : List.of(cancelled, patient, last)) {
            assertTrue(engine.submit(transfer));
        }
        work(10);
        assertEquals(1, transport.all.size());
        nowNs = 100;
        cancelled.cancel();
        work(10);
        late.forEach(transfer -> assertEquals(State.EXPIRED, transfer.state()));
        assertEquals(State.CANCELLED, cancelled.state());
        assertEquals(State.RUNNING, hung.state());
        assertEquals(State.WAITING, patient.state());
        transport.doneAtOnce = true;
        done(0);
        work(10);
        assertEquals(
                List.of("hung DONE", "patient DONE", "last DONE"),
                told.stream().filter(line -> line.endsWith("DONE")).toList());
    }

    @Test
    void moreThanTheQueueHoldsIsRefusedAndCounted() {
        make(new TransferConfig(2, 1, 1, 1, 1));
        final List<Transfer> transfers = new ArrayList<>();
        int taken = 0;
        for (int i = 0; i < 10; i++) {
            final Transfer transfer = transfer("t" + i, i);
            transfers.add(transfer);
            taken += engine.submit(transfer) ? 1 : 0;
        }
        assertEquals(10 - taken, engine.refusedTransfers());
        assertTrue(taken >= 2 && taken < 10, "taken " + taken);
        assertEquals(State.NEW, transfers.getLast().state());
        transport.doneAtOnce = true;
        work(40);
        assertEquals(taken, told.stream().filter(line -> line.endsWith("DONE")).count());
        assertTrue(engine.submit(transfers.getLast()));
        work(4);
        assertEquals(State.DONE, transfers.getLast().state());
    }

    @Test
    void aFutureEndsAsItsTransferDoesAfterTheListener() {
        final Transfer good = transfer("good", 0);
        final CompletableFuture<Transfer> done = engine.move(good);
        final CompletableFuture<Boolean> after =
                done.thenApply(ended -> told.add("future " + ended.state()));
        work(1);
        assertFalse(done.isDone());
        done(0);
        work(1);
        assertTrue(after.join());
        assertEquals(List.of("good stage 0", "good DONE", "future DONE"), told);

        final Transfer cancelled = transfer("cancelled", 1);
        final CompletableFuture<Transfer> cancel = engine.move(cancelled);
        cancelled.cancel();
        work(1);
        assertThrows(CancellationException.class, cancel::join);

        final CompletableFuture<Transfer> late = engine.move(transfer("late", 2).deadlineNs(0));
        work(1);
        assertInstanceOf(TimeoutException.class, late.exceptionNow());

        transport.failAtOnce = true;
        final CompletableFuture<Transfer> failed = engine.move(transfer("failed", 3));
        work(2);
        assertEquals("scripted failure", failed.exceptionNow().getMessage());
        assertInstanceOf(KvTransportException.class, failed.exceptionNow());
    }

    @Test
    void aFutureOfARefusedTransferSaysSoAndTheTransferIsAsBefore() {
        make(new TransferConfig(2, 1, 1, 1, 1));
        final List<Transfer> transfers = new ArrayList<>();
        final List<CompletableFuture<Transfer>> futures = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            transfers.add(transfer("t" + i, i));
            futures.add(engine.move(transfers.getLast()));
        }
        final Throwable refusal = futures.getLast().exceptionNow();
        assertInstanceOf(RejectedExecutionException.class, refusal);
        assertEquals("queueCapacity=2 transfers wait already", refusal.getMessage());
        transport.doneAtOnce = true;
        work(40);
        assertTrue(engine.submit(transfers.getLast()));
        work(4);
        assertTrue(told.contains("t9 DONE"));
        final Transfer empty = new Transfer().pull(own, link);
        assertThrows(IllegalArgumentException.class, () -> engine.move(empty));
        engine.close();
        final CompletableFuture<Transfer> closed = engine.move(transfer("late", 1));
        assertEquals("the transfer engine is closed", closed.exceptionNow().getMessage());
    }

    @Test
    void aFutureEndsEvenIfTheListenerThrows() {
        final Transfer transfer = transfer("a", 0);
        final CompletableFuture<Transfer> future =
                engine.move(
                        transfer.listener(
                                ended -> {
                                    throw new IllegalStateException("a listener's fault");
                                }));
        transport.doneAtOnce = true;
        engine.doWork();
        assertThrows(IllegalStateException.class, engine::doWork);
        assertEquals(transfer, future.join());
    }

    @Test
    void aTransferEndsEvenIfItsListenerThrowsAtEachStage() {
        final Transfer transfer = transfer("a", 0).endStage(null).add(1, 2).endStage(null);
        final Transfer other = transfer("other", 2);
        transfer.listener(
                new Transfer.Listener() {
                    @Override
                    public void onStage(Transfer staged, int stage) {
                        throw new IllegalStateException("stage " + stage);
                    }

                    @Override
                    public void onEnd(Transfer ended) {
                        throw new IllegalStateException("end");
                    }
                });
        final CompletableFuture<Transfer> future = engine.move(transfer);
        engine.submit(other);
        work(3);
        assertEquals(3, transport.all.size());
        IntStream.range(0, 3).forEach(this::done);
        final IllegalStateException first =
                assertThrows(IllegalStateException.class, engine::doWork);
        assertEquals("stage 0", first.getMessage());
        assertEquals(
                List.of("stage 1", "end"),
                Stream.of(first.getSuppressed()).map(Throwable::getMessage).toList());
        assertEquals(2, transfer.completedStages());
        assertEquals(State.DONE, transfer.state());
        assertTrue(future.isDone());
        assertEquals(State.DONE, other.state(), "in the same round");
        work(1);
    }

    /** Checked exceptions too: not all languages know them. */
    @ParameterizedTest
    @MethodSource("faults")
    void aCallEndsWithWhateverItThrows(Throwable fault) {
        final CompletableFuture<Object> call = engine.call(t -> thrown(fault));
        final CompletableFuture<String> next = engine.call(KvTransport::name);
        engine.doWork();
        assertSame(fault, call.exceptionNow());
        assertEquals("scripted", next.join());
    }

    @ParameterizedTest
    @MethodSource("faults")
    void whateverListenersAndHandlersThrowTheRoundGoesToItsEnd(Throwable fault) {
        final Transfer other = transfer("other", 2);
        final Transfer transfer = transfer("a", 0);
        transfer.listener(
                new Transfer.Listener() {
                    @Override
                    public void onStage(Transfer staged, int stage) {
                        thrown(fault);
                    }

                    @Override
                    public void onEnd(Transfer ended) {
                        thrown(new IllegalStateException("end"));
                    }
                });
        engine.submit(other);
        engine.submit(transfer);
        work(2);
        IntStream.range(0, 2).forEach(this::done);
        assertSame(fault, assertThrows(Throwable.class, engine::doWork));
        assertEquals("end", fault.getSuppressed()[0].getMessage());
        assertEquals(State.DONE, transfer.state());
        assertEquals(State.DONE, other.state(), "in the same round");
        work(1);
    }

    private static Stream<Throwable> faults() {
        return Stream.of(
                new AssertionError("scripted"),
                new NoClassDefFoundError("scripted"),
                new Exception("scripted"),
                new IllegalStateException("scripted"));
    }

    private static Object thrown(Throwable fault) {
        LangUtil.rethrowUnchecked(fault);
        return null;
    }

    @Test
    void closingEndsAllEvenIfListenersThrow() {
        final Transfer running = transfer("running", 0);
        running.listener(
                ended -> {
                    throw new IllegalStateException("running");
                });
        final List<CompletableFuture<Transfer>> futures = new ArrayList<>();
        futures.add(engine.move(running));
        work(1);
        for (int i = 0; i < 4; i++) {
            final String name = "gated " + i;
            futures.add(
                    engine.move(
                            transfer(name, i)
                                    .gated()
                                    .listener(
                                            ended -> {
                                                throw new IllegalStateException(name);
                                            })));
        }
        work(1);
        assertThrows(IllegalStateException.class, engine::close);
        assertTrue(transport.closed);
        futures.forEach(future -> assertTrue(future.isDone()));
        futures.forEach(future -> assertThrows(CancellationException.class, future::join));
    }

    /** The round would go on with a transport that is closed. */
    @Test
    void closingInAListenerClosesWhenTheRoundIsOver() {
        final List<Boolean> closedInside = new ArrayList<>();
        final Transfer first = transfer("first", 0);
        first.listener(
                ended -> {
                    engine.close();
                    closedInside.add(transport.closed);
                });
        final Transfer second = transfer("second", 1);
        final Transfer gated = transfer("gated", 2).gated();
        Stream.of(second, first, gated).forEach(engine::submit);
        work(2);
        done(0);
        done(1);
        work(1);
        assertEquals(List.of(false), closedInside);
        assertTrue(transport.closed);
        assertEquals(State.DONE, second.state(), "in the same round");
        assertEquals(State.CANCELLED, gated.state());
        assertEquals(0, engine.doWork(), "nothing is left to do");
    }

    @Test
    void closingCancelsWhatIsLeft() {
        final Transfer running = transfer("running", 0);
        final Transfer waiting = transfer("waiting", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13);
        engine.submit(running);
        engine.submit(waiting);
        work(1);
        engine.close();
        assertEquals(State.CANCELLED, running.state());
        assertEquals(State.CANCELLED, waiting.state());
        assertFalse(engine.submit(transfer("late", 1)));
        assertThrows(Exception.class, () -> engine.local(descriptors()).join());
    }

    @Test
    void closingEndsMoreThanTheWaitingQueueHolds() {
        make(new TransferConfig(2, 1, 1, 1, 1));
        final List<Transfer> taken = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            final Transfer transfer = transfer("t" + i, i);
            if (engine.submit(transfer)) {
                taken.add(transfer);
            }
            work(1);
        }
        assertTrue(taken.size() > 3, "taken " + taken.size());
        engine.close();
        taken.forEach(transfer -> assertEquals(State.CANCELLED, transfer.state()));
        assertEquals(taken.size(), told.stream().filter(t -> t.endsWith("CANCELLED")).count());
    }

    @Test
    void whatIsSubmittedWhileTheEngineClosesEndsOrIsRefused() throws InterruptedException {
        for (int round = 0; round < 100; round++) {
            final ScriptedTransport scripted = new ScriptedTransport();
            scripted.doneAtOnce = true;
            final TransferEngine running =
                    TransferEngine.start(
                            scripted,
                            TransferConfig.DEFAULT,
                            new BusySpinIdleStrategy(),
                            (peer, message) -> {},
                            error -> {});
            final LocalBlocks local = running.local(descriptors()).join();
            final KvLink peer = running.link(new byte[] {'p'}, descriptors()).join();
            final List<Transfer> taken = new ArrayList<>();
            final List<CompletableFuture<String>> calls = new ArrayList<>();
            final CountDownLatch begun = new CountDownLatch(1);
            final AtomicBoolean over = new AtomicBoolean();
            final Thread submitter =
                    Thread.ofPlatform()
                            .start(
                                    () -> {
                                        while (!over.get()) {
                                            final Transfer transfer =
                                                    new Transfer().pull(local, peer).add(0, 0);
                                            if (running.submit(transfer)) {
                                                taken.add(transfer);
                                            }
                                            calls.add(running.call(KvTransport::name));
                                            begun.countDown();
                                        }
                                    });
            begun.await();
            running.close();
            over.set(true);
            submitter.join();
            for (Transfer transfer : taken) {
                assertTrue(transfer.state().isEnd(), "round " + round + ": " + transfer.state());
            }
            for (CompletableFuture<String> call : calls) {
                assertTrue(call.isDone(), "round " + round + ": a call never ends");
            }
        }
    }

    @Test
    void aLinkThatIsGivenUpFailsItsTransfersFirst() {
        final Transfer transfer = transfer("a", 0);
        engine.submit(transfer);
        work(1);
        now(engine.unlink(link));
        assertEquals(State.FAILED, transfer.state());
        assertEquals("given up", transfer.failure());
        assertFalse(transport.peers.contains("peer"));
    }

    @Test
    void aLinkThatNobodyWaitsForAnyMoreIsForgotten() {
        final int lists = transport.lists.size();
        final CompletableFuture<KvLink> given =
                engine.link("other".getBytes(StandardCharsets.US_ASCII), descriptors());
        given.cancel(false);
        engine.doWork();
        assertEquals(List.of("peer"), transport.peers);
        assertEquals(lists, transport.lists.size());
        assertEquals("other", link("other").peer());
    }

    @Test
    void aLinkWhoseRequestsAreNotGivenUpStaysAndCanBeGivenUpAgain() {
        engine.submit(transfer("a", 0));
        work(1);
        transport.releaseFails = true;
        final CompletableFuture<Void> first = engine.unlink(link);
        nowNs += TimeUnit.SECONDS.toNanos(5) - 1;
        work(1);
        nowNs += TimeUnit.SECONDS.toNanos(5) - 1;
        work(1);
        assertFalse(first.isDone());
        nowNs++;
        work(1);
        final KvTransportException refusal = (KvTransportException) first.exceptionNow();
        assertEquals(Kind.FAILED, refusal.kind());
        assertTrue(transport.peers.contains("peer"));
        final CompletableFuture<Void> second = engine.unlink(link);
        work(1);
        assertFalse(second.isDone());
        transport.releaseFails = false;
        engine.close();
        assertEquals(Future.State.SUCCESS, second.state());
        assertFalse(transport.peers.contains("peer"));
    }

    @Test
    void descriptorsOfDifferentLengthAndUnknownIndicesAreRefusedWhereTheyAreAdded() {
        final Descriptors longer =
                Descriptors.ofBlocks(
                        List.of(new KvRegion("l", 0, NixlMemory.DRAM, 0, 4096, 200, 200, 4)));
        final KvLink other = now(engine.link("other".getBytes(StandardCharsets.US_ASCII), longer));
        final Transfer transfer = new Transfer().pull(own, other);
        final IllegalArgumentException e =
                assertThrows(IllegalArgumentException.class, () -> transfer.add(0, 1));
        assertEquals(
                "own descriptor 0 has 100 bytes, descriptor 1 of other has 200", e.getMessage());
        outside("the blocks of other have indices 0..3, not 4", transfer, 0, 4);
        outside("the blocks of other have indices 0..3, not -1", transfer, 0, -1);
        final int count = own.descriptors().count();
        final String ownRange = "the own blocks have indices 0.." + (count - 1) + ", not ";
        outside(ownRange + count, transfer, count, 0);
        outside(ownRange + -1, transfer, -1, 9);
        assertThrows(IllegalArgumentException.class, () -> engine.submit(transfer));
    }

    private static void outside(String why, Transfer transfer, int localIndex, int remoteIndex) {
        assertEquals(
                why,
                assertThrows(
                                IndexOutOfBoundsException.class,
                                () -> transfer.add(localIndex, remoteIndex))
                        .getMessage());
    }

    @Test
    void aTransferWithoutADirectionOrAnEndIsRefusedInWords() {
        assertEquals(
                "the transfer has no direction: push or pull comes before add",
                assertThrows(IllegalStateException.class, () -> new Transfer().add(0, 0))
                        .getMessage());
        assertEquals(
                "own blocks",
                assertThrows(NullPointerException.class, () -> new Transfer().push(null, link))
                        .getMessage());
        assertEquals(
                "link",
                assertThrows(NullPointerException.class, () -> new Transfer().pull(own, null))
                        .getMessage());
    }

    @Test
    void whatIsMissingIsNamedWhereItIsGiven() {
        final Transfer transfer = transfer("a", 0);
        final byte[] metadata = {'p'};
        missing("priority", () -> transfer.priority(null));
        missing("listener", () -> transfer.listener(null));
        missing("transfer", () -> engine.submit(null));
        missing("transfer", () -> engine.move(null));
        missing("what", () -> engine.call(null));
        missing("descriptors", () -> engine.local(null));
        missing("metadata", () -> engine.link(null, descriptors()));
        missing("descriptors", () -> engine.link(metadata, null));
        missing("link", () -> engine.unlink(null));
        missing("span", () -> engine.takeTimes(null, EngineTelemetry.histogram()));
        missing("empty", () -> engine.takeTimes(Span.STAGE, null));
        final TransferConfig config = TransferConfig.DEFAULT;
        final NotificationHandler handler = (peer, message) -> {};
        missing("transport", () -> new TransferEngine(null, config, () -> 0, handler));
        missing("config", () -> new TransferEngine(transport, null, () -> 0, handler));
        missing("clock", () -> new TransferEngine(transport, config, null, handler));
        missing("notifications", () -> new TransferEngine(transport, config, () -> 0, null));
        transport.doneAtOnce = true;
        engine.submit(transfer);
        work(2);
        assertEquals(List.of("a stage 0", "a DONE"), told);
    }

    private static void missing(String name, Executable call) {
        assertEquals(name, assertThrows(NullPointerException.class, call).getMessage());
    }

    @Test
    void aLinkThatIsGivenUpTwiceAtATimeEndsBoth() {
        engine.submit(transfer("a", 0));
        work(1);
        transport.releaseFails = true;
        final CompletableFuture<Void> first = engine.unlink(link);
        final CompletableFuture<Void> second = engine.unlink(link);
        work(1);
        assertFalse(first.isDone());
        assertFalse(second.isDone());
        transport.releaseFails = false;
        work(2);
        assertEquals(Future.State.SUCCESS, first.state());
        assertEquals(Future.State.SUCCESS, second.state());
    }

    @Test
    void aLinkThatWasGivenUpBeforeIsNamed() {
        final CompletableFuture<Void> first = engine.unlink(link);
        final CompletableFuture<Void> second = engine.unlink(link); // both in one round
        work(1);
        assertEquals(Future.State.SUCCESS, first.state());
        for (CompletableFuture<Void> again : List.of(second, engine.unlink(link))) {
            work(1);
            final KvTransportException refusal = (KvTransportException) again.exceptionNow();
            assertEquals(Kind.INVALID, refusal.kind());
            assertEquals("the link to peer was given up before", refusal.getMessage());
        }
    }
}

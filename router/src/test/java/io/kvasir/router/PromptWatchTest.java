package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** When the prompts of answers that are not streamed stop to count as work. */
class PromptWatchTest {
    private static final int BLOCK = 16;
    private static final long MS = 1_000_000;

    private final Random random = new Random(Seeds.next("PromptWatchTest"));
    private final Decision decision = new Decision();
    private long nowNs = 5 * MS;
    private KvRouter router = builder().tickedBy(() -> nowNs).build();
    private Worker worker;
    private EngineStream stream;
    private long sequence;

    private static RouterConfig.Builder builder() {
        return KvRouter.builder()
                .blockSize(BLOCK)
                .maxWorkers(4)
                .maxBlocks(65_536, 65_536)
                .maxActiveRequests(2_000);
    }

    @AfterEach
    void close() {
        router.close();
    }

    private void addWorker(boolean withEvents) {
        worker = router.addWorker(WorkerSpec.of(1, "w", "http://w"));
        if (withEvents) {
            stream = router.openDirect(worker, EngineMessages.source("w", BLOCK));
            announce(prompt(1), 1); // an engine is known by its first message
            assertEquals(IndexState.EXACT, worker.state());
        }
    }

    private int[] prompt(int blocks) {
        return random.ints((long) blocks * BLOCK, 0, 50_000).toArray();
    }

    private void announce(int[] prompt, int blocks) {
        stream.onMessage(
                sequence, EngineMessages.stored(prompt, blocks, BLOCK, 10_000 * sequence++));
        Eventually.holds("events", worker::ready);
    }

    private Lease reserve(int[] prompt, boolean unseen) throws RouteException {
        final Lease lease =
                router.reserve(
                        router.newRequest().tokens(prompt, prompt.length).firstTokenUnseen(unseen),
                        decision);
        settle();
        return lease;
    }

    private void settle() {
        Eventually.holds("an empty ring", () -> router.bookingPipeline().backlog() == 0);
    }

    private void tick() {
        router.tick(nowNs);
        settle();
    }

    @Test
    void itIsComputedOnceItsLastFullBlockIsStored() throws RouteException {
        addWorker(true);
        final int[] prompt = prompt(4);
        final Lease lease = reserve(prompt, true);
        final Lease other = reserve(prompt(2), true);
        announce(prompt, 3);
        tick();
        assertEquals(PromptEnd.NOT_YET, lease.promptEnd());
        assertEquals(-1, lease.promptEndNs());
        assertEquals(6 * BLOCK, worker.prefillTokens());
        announce(prompt, 4);
        nowNs += 7 * MS;
        tick();
        assertEquals(PromptEnd.STORED, lease.promptEnd());
        assertEquals(7 * MS, lease.promptEndNs());
        assertEquals(2 * BLOCK, worker.prefillTokens());
        assertEquals(PromptEnd.NOT_YET, other.promptEnd());
        lease.prefillComplete();
        assertEquals(PromptEnd.STORED, lease.promptEnd());
        other.prefillComplete();
        assertEquals(PromptEnd.REPORTED, other.promptEnd());
        settle();
        assertEquals(0, worker.prefillTokens());
        assertEquals(2, worker.activeRequests());
    }

    @Test
    void withoutEventsItTakesWhatOtherPromptsTook() throws RouteException {
        teach();
        final Lease lease = reserve(prompt(10), true);
        nowNs += 10 * BLOCK * MS - MS / 2;
        tick();
        assertEquals(PromptEnd.NOT_YET, lease.promptEnd());
        nowNs += MS;
        tick();
        assertEquals(PromptEnd.EXPECTED, lease.promptEnd());
        assertEquals(0, worker.prefillTokens());
    }

    private Lease reserveBatch(int[] tokens) throws RouteException {
        final Lease lease =
                router.reserve(
                        router.newRequest()
                                .tokens(tokens, tokens.length)
                                .firstTokenUnseen(true)
                                .severalPrompts(true),
                        decision);
        settle();
        return lease;
    }

    /** A worker announces each of its prompts, and never one that is all of them. */
    @Test
    void aBatchTakesWhatPromptsTookWhateverEventsSay() throws RouteException {
        teach();
        stream = router.openDirect(worker, EngineMessages.source("w", BLOCK));
        announce(prompt(1), 1);
        assertEquals(IndexState.EXACT, worker.state());
        final int[] batch = prompt(10);
        final Lease lease = reserveBatch(batch);
        announce(batch, 10);
        nowNs += 10 * BLOCK * MS - MS / 2;
        tick();
        assertEquals(PromptEnd.NOT_YET, lease.promptEnd());
        nowNs += MS;
        tick();
        assertEquals(PromptEnd.EXPECTED, lease.promptEnd());
        assertEquals(0, worker.prefillTokens());
    }

    /** What is reported of it at its answer's end is the time of the answers. */
    @Test
    void aBatchTeachesNothing() throws RouteException {
        teach();
        for (int i = 0; i < 20; i++) {
            final Lease batch = reserveBatch(prompt(2));
            nowNs += 3_600_000 * MS;
            batch.prefillComplete();
            batch.close();
            settle();
        }
        final Lease lease = reserve(prompt(10), true);
        nowNs += 10 * BLOCK * MS + MS;
        tick();
        assertEquals(PromptEnd.EXPECTED, lease.promptEnd());
    }

    /** A token takes a millisecond. */
    private void teach() throws RouteException {
        addWorker(false);
        final Lease early = reserve(prompt(1), true);
        for (int i = 1; i <= 8; i++) {
            final Lease seen = reserve(prompt(i), false);
            nowNs += (i + 1) * (BLOCK * MS); // the early one is before it
            seen.prefillComplete();
            seen.close();
            settle();
            assertEquals(PromptEnd.REPORTED, seen.promptEnd());
        }
        early.close();
        settle();
    }

    @Test
    void whatAnotherWorkerTookIsTakenWhereNothingIsKnown() throws RouteException {
        teach();
        final Worker second = router.addWorker(WorkerSpec.of(2, "v", "http://v"));
        final int[] prompt = prompt(4);
        final Lease lease =
                router.reserve(
                        router.newRequest()
                                .tokens(prompt, prompt.length)
                                .pin(second)
                                .firstTokenUnseen(true),
                        decision);
        nowNs += 4 * BLOCK * MS + MS;
        tick();
        assertEquals(PromptEnd.EXPECTED, lease.promptEnd());
    }

    @Test
    void withNothingKnownItLastsUntilTheAnswer() throws RouteException {
        addWorker(false);
        final Lease lease = reserve(prompt(4), true);
        nowNs += 3_600_000 * MS / 2;
        tick();
        assertEquals(PromptEnd.NOT_YET, lease.promptEnd());
        assertEquals(4 * BLOCK, worker.prefillTokens());
        lease.close();
        settle();
        assertEquals(0, worker.prefillTokens());
        tick();
    }

    @Test
    void noEventTellsOfAPromptThatTheWorkerHolds() throws RouteException {
        addWorker(true);
        final int[] prompt = prompt(3);
        announce(prompt, 3);
        final Lease lease = reserve(prompt, true);
        tick();
        assertEquals(PromptEnd.NOT_YET, lease.promptEnd(), "its last block is stored already");
        final int[] short15 = prompt(1);
        final Lease withoutBlocks =
                router.reserve(
                        router.newRequest().tokens(short15, 15).firstTokenUnseen(true), decision);
        tick();
        assertEquals(PromptEnd.NOT_YET, withoutBlocks.promptEnd());
    }

    @Test
    void whatTheWorkerDoesNotComputeIsNotWatched() throws RouteException {
        addWorker(true);
        final int[] prompt = prompt(3);
        final Lease decode =
                router.reserve(
                        router.newRequest()
                                .tokens(prompt, prompt.length)
                                .trackPrefillTokens(false)
                                .firstTokenUnseen(true),
                        decision);
        announce(prompt, 3);
        tick();
        assertEquals(PromptEnd.NOT_YET, decode.promptEnd());
    }

    @Test
    void aRequestThatIsResetIsNotWatched() throws RouteException {
        addWorker(true);
        final int[] prompt = prompt(3);
        final RouteRequest request = router.newRequest().firstTokenUnseen(true).reset();
        final Lease lease = router.reserve(request.tokens(prompt, prompt.length), decision);
        announce(prompt, 3);
        tick();
        assertEquals(PromptEnd.NOT_YET, lease.promptEnd());
    }

    @Test
    void aLeaseForgetsTheEndOfItsFormerBooking() throws RouteException {
        addWorker(true);
        final int[] prompt = prompt(3);
        final Lease lease = reserve(prompt, true);
        announce(prompt, 3);
        tick();
        assertEquals(PromptEnd.STORED, lease.promptEnd());
        lease.close();
        final int[] next = prompt(2);
        router.reserve(router.newRequest().tokens(next, next.length), decision, lease);
        assertEquals(PromptEnd.NOT_YET, lease.promptEnd());
        lease.prefillComplete();
        assertEquals(PromptEnd.REPORTED, lease.promptEnd());
    }

    @Test
    void bookingsOfARemovedWorkerAreDropped() throws RouteException {
        addWorker(true);
        final int[] prompt = prompt(3);
        final Lease lease = reserve(prompt, true);
        router.removeWorker(worker);
        Eventually.holds("the end of the booking", () -> !lease.isOpen());
        worker = router.addWorker(WorkerSpec.of(2, "next", "http://w"));
        stream = router.openDirect(worker, EngineMessages.source("next", BLOCK));
        sequence = 0;
        announce(prompt, 3);
        tick();
        assertEquals(PromptEnd.NOT_YET, lease.promptEnd());
    }

    /** A thousand that are computed and one that is not, between any of them. */
    @Test
    void aLookIsBoundedAndComesToAllInTurn() throws RouteException {
        addWorker(true);
        final Lease never = reserve(prompt(2), true);
        final List<Lease> leases = new ArrayList<>();
        final List<int[]> prompts = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            prompts.add(prompt(1));
            leases.add(reserve(prompts.getLast(), true));
        }
        prompts.forEach(prompt -> announce(prompt, 1));
        long before = 0;
        for (int look = 0; look < 6; look++) {
            tick();
            final long stored =
                    leases.stream().filter(l -> l.promptEnd() == PromptEnd.STORED).count();
            assertTrue(stored - before <= 64, "in one look: " + (stored - before));
            before = stored;
        }
        assertEquals(300, before);
        assertEquals(PromptEnd.NOT_YET, never.promptEnd());
        assertEquals(2 * BLOCK, worker.prefillTokens());
    }

    @Test
    void aRouterThatTicksItselfFindsOutWithoutBeingAsked() throws RouteException {
        router.close();
        router = builder().build();
        addWorker(true);
        for (int round = 0; round < 20; round++) { // its thread sleeps in between
            final int[] prompt = prompt(3);
            final Lease lease = reserve(prompt, true);
            announce(prompt, 3);
            Eventually.holds("the end", () -> lease.promptEnd() == PromptEnd.STORED);
            lease.close();
        }
    }
}

package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.core.index.StorageTier;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.concurrent.atomic.AtomicBoolean;

/** Selections while the set of workers changes all the time. */
class ChangingWorkersTest {
    private static final int SLOTS = 3;

    private final RouterConfig config =
            KvRouter.builder().maxWorkers(SLOTS).maxBlocks(256, 256).maxActiveRequests(16).config();
    private final RouterParts parts = new RouterParts(config, new PartMaker(), null);
    private final CurrentRules rules = new CurrentRules(config, parts, () -> WorkerSet.EMPTY);
    private final WorkerRegistry registry =
            new WorkerRegistry(config, parts, null, null, rules::get);
    private final Selection selection = new Selection();
    private int reads;

    @AfterEach
    void close() {
        registry.close();
        parts.close();
    }

    private Worker add(int id) {
        return registry.add(WorkerSpec.of(id, "w" + id, "http://w" + id));
    }

    /** Matches with a set of these workers that is another object whenever it is read. */
    private void match(boolean given, Worker... workers) {
        final PromptMatcher matcher =
                new PromptMatcher(
                        parts,
                        config.clock(),
                        () -> {
                            reads++;
                            WorkerSet set = WorkerSet.EMPTY;
                            for (Worker worker : workers) {
                                set = set.with(worker);
                            }
                            return set;
                        });
        final RouteRequest request = new RouteRequest(null, 16, 1337, 64, SLOTS, false, null);
        request.tokens(new int[40], 40).hash();
        selection.begin(
                request, 16, true, new CurrentRules(config, parts, registry::current).get());
        if (given) {
            final OverlapScores none = new OverlapScores(SLOTS);
            matcher.take(request, none, none, selection);
        } else {
            matcher.match(request, selection);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aMatchIsRepeatedAFewTimesOnly(boolean given) {
        match(given, add(0), add(1), add(2));
        assertEquals(2 * PromptMatcher.MAX_TRIES, reads);
        assertEquals(3, selection.candidates().count());
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void theLastMatchIsWithoutWorkersWhoseSlotsAreOthersByNow(boolean given) {
        final Worker first = add(0);
        final Worker removed = add(1);
        final Worker last = add(2);
        registry.remove(removed);
        final Worker next = add(3); // waits until the slot is swept
        assertEquals(removed.slot(), next.slot());
        match(given, first, removed, last);
        assertEquals(2, selection.candidates().count());
        assertFalse(selection.candidates().contains(removed.slot()));
        match(given, removed);
        assertThrows(
                RouteException.class,
                () -> new WorkerSelector(parts.random, config.clock()).choose(selection));
    }

    @Test
    void slotsAreGivenToOthersWhateverAListenerThrows() {
        parts.board.addListener(
                _ -> {
                    throw new IllegalStateException("a defect of the listener");
                });
        for (int i = 0; i < 3 * SLOTS; i++) {
            registry.remove(add(i)); // waits until a slot is swept
        }
        assertEquals(0, registry.current().workers().length);
    }

    @Test
    void aRemovedWorkerShowsNothingOfTheNextOneInItsSlot() {
        add(0);
        final Worker removed = add(1);
        add(2);
        registry.remove(removed);
        final Worker next = add(3); // waits until the slot is swept
        assertEquals(removed.slot(), next.slot());
        parts.board.addProvisional(next.slot(), 100, 7);
        registry.openDirect(next, EngineMessages.source(next.name(), 16), null)
                .onMessage(0, EngineMessages.stored(new int[32], 2, 16, 0));
        Eventually.holds("event 0", next::ready);
        assertEquals("100 7 1 2 2 0", gauges(next));
        assertEquals("0 0 0 0 0 -1", gauges(removed));
    }

    private static String gauges(Worker worker) {
        return worker.prefillTokens()
                + " "
                + worker.activeBlocks()
                + " "
                + worker.activeRequests()
                + " "
                + worker.indexedBlocks()
                + " "
                + worker.indexedBlocks(StorageTier.DEVICE)
                + " "
                + worker.eventSequence();
    }

    @Test
    void selectionsEndWhileAThreadAddsAndRemoves() throws Exception {
        try (KvRouter router = KvRouter.builder().maxWorkers(8).maxBlocks(256, 256).build()) {
            router.addWorker(WorkerSpec.of(0, "w0", "http://w0"));
            final AtomicBoolean done = new AtomicBoolean();
            final Thread changing =
                    Thread.ofPlatform()
                            .daemon()
                            .start(
                                    () -> {
                                        for (int i = 1; !done.get(); i++) {
                                            router.removeWorker(
                                                    router.addWorker(
                                                            WorkerSpec.of(i, "w" + i, "http://w")));
                                        }
                                    });
            final Decision decision = new Decision();
            final RouteRequest request = router.newRequest().tokens(new int[40], 40);
            for (int i = 0; i < 2_000; i++) {
                router.select(request, decision);
                assertNotNull(decision.worker());
            }
            done.set(true);
            changing.join();
            assertEquals(1, router.workers().size());
        }
    }
}

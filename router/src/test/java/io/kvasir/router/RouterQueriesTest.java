package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.ClosedException;
import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.router.PrefixMatches.Match;
import io.kvasir.router.policy.Eligibility.Verdict;
import io.kvasir.router.settings.LoraMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.SplittableRandom;

/** What a router says of its workers beside choosing one. */
class RouterQueriesTest {
    private static final int BLOCK_SIZE = 16;

    private KvRouter router = builder().build();
    private final int[] prompt = new SplittableRandom(3).ints(6 * BLOCK_SIZE, 0, 50_000).toArray();

    private static RouterConfig.Builder builder() {
        return KvRouter.builder().tickedBy(() -> 0).blockSize(BLOCK_SIZE).maxWorkers(8);
    }

    private void restart(RouterConfig.Builder builder) {
        router.close();
        router = builder.build();
    }

    @AfterEach
    void close() {
        router.close();
    }

    private Worker worker(long id) {
        return router.addWorker(WorkerSpec.of(id, "w" + id, "http://w" + id));
    }

    private void announce(Worker worker, int blocks) {
        final EngineStream stream =
                router.openDirect(worker, EngineMessages.source(worker.name(), BLOCK_SIZE));
        stream.onMessage(0, EngineMessages.stored(prompt, blocks, BLOCK_SIZE, worker.id() * 1_000));
        Eventually.holds("event 0 of " + worker, worker::ready);
    }

    private RouteRequest request() {
        return router.newRequest().tokens(prompt, prompt.length);
    }

    @Test
    void withoutWorkersThereIsNothing() throws Exception {
        assertEquals(List.of(), router.potentialLoads(request()));
        final PrefixMatches matches = router.findMatches(request());
        assertEquals(new PrefixMatches(6, List.of()), matches);
        assertEquals(Optional.empty(), matches.best());
        assertEquals(0, matches.max());
        assertEquals("[\n]\n", dump());
    }

    @Test
    void matchesAreThoseThatHoldMostFirst() {
        final Worker one = worker(1);
        final Worker two = worker(2);
        worker(3);
        final Worker four = worker(4);
        announce(one, 2);
        announce(two, 5);
        announce(four, 5);
        two.available(false);
        final PrefixMatches matches = router.findMatches(request());
        assertEquals(6, matches.requestBlocks());
        assertEquals(
                List.of(new Match(two, 5), new Match(four, 5), new Match(one, 2)),
                matches.matches());
        assertSame(two, matches.best().orElseThrow().worker());
        assertEquals(5, matches.max());
        assertEquals(0, router.findMatches(router.newRequest()).requestBlocks());
    }

    @Test
    void potentialLoadsCountWhatRunsAndWhatIsCached() throws RouteException {
        final Worker one = worker(1);
        final Worker two = worker(2);
        final Worker three = worker(3);
        announce(one, 4);
        router.reserve("r", request().pin(two), new Decision());
        EngineMessages.awaitLoad(router, two, 1, 6);
        final List<PotentialLoad> loads = router.potentialLoads(request().exclude(three));
        assertEquals(
                List.of(
                        new PotentialLoad(one, 4, 2 * BLOCK_SIZE, 6),
                        new PotentialLoad(two, 0, 12 * BLOCK_SIZE, 6)),
                loads);
        assertEquals(1, router.activeLeases(), "nothing was booked");
    }

    private List<Worker> listed(RouteRequest request) {
        return router.potentialLoads(request).stream().map(PotentialLoad::worker).toList();
    }

    @Test
    void potentialLoadsAreOfWorkersThatThePolicyAllows() throws RouteException {
        restart(
                builder()
                        .eligibility(
                                one ->
                                        one.worker().id() == 2
                                                ? Verdict.ELIGIBLE
                                                : Verdict.INELIGIBLE));
        announce(worker(1), 4);
        final Worker two = worker(2);
        assertEquals(List.of(two), listed(request()));
        router.reserve(request().pin(two), new Decision());
        assertEquals(List.of(), listed(request().exclude(two)));
        assertEquals(1, router.findMatches(request()).matches().size(), "allowed or not");
    }

    @Test
    void potentialLoadsAreOfWorkersThatTheRequestsOwnCostAllows() {
        worker(1);
        final Worker two = worker(2);
        assertEquals(
                List.of(two),
                listed(
                        request()
                                .addCost(
                                        one ->
                                                one.worker().id() == 1
                                                        ? Double.POSITIVE_INFINITY
                                                        : 0)));
    }

    @Test
    void potentialLoadsAreOfWorkersWithThePreferredAdapter() {
        restart(builder().set(RouterSettings.LORA_MODE, LoraMode.PREFERRED));
        final Worker one = worker(1);
        final Worker two = worker(2);
        two.adapters(Set.of("a"));
        assertEquals(List.of(two), listed(request().lora("a")));
        assertEquals(List.of(one), listed(request().lora("a").exclude(two)), "none has it");
    }

    @Test
    void aDumpIsTheEventsThatBuildTheIndex() throws Exception {
        final Worker one = worker(-1);
        final Worker two = worker(2);
        announce(one, 3);
        announce(two, 1);
        final String dump = dump();
        final String[] lines = dump.split("\n", -1);
        assertEquals(5, lines.length, dump); // [, two events, ], end
        assertTrue(
                lines[1].startsWith(
                        "{\"worker_id\":18446744073709551615,\"event\":{\"event_id\":0,"
                                + "\"data\":{\"stored\":{\"parent_hash\":null,\"blocks\":["),
                lines[1]);
        assertEquals(3, lines[1].split("tokens_hash", -1).length - 1);
        assertTrue(lines[1].endsWith("]}},\"dp_rank\":0}},"), lines[1]);
        assertTrue(lines[2].startsWith("{\"worker_id\":2,\"event\":{\"event_id\":1,"), lines[2]);
        assertTrue(lines[2].contains("{\"block_hash\":2001,"), lines[2]);
        router.removeWorker(one);
        assertEquals(4, dump().split("\n", -1).length);
    }

    @Test
    void aClosedRouterSaysNothing() {
        final RouteRequest request = request();
        router.close();
        assertThrows(ClosedException.class, () -> router.potentialLoads(request));
        assertThrows(ClosedException.class, () -> router.findMatches(request));
        assertThrows(ClosedException.class, () -> router.dumpEvents(new StringBuilder()));
    }

    private String dump() throws Exception {
        final StringBuilder out = new StringBuilder();
        router.dumpEvents(out);
        return out.toString();
    }
}

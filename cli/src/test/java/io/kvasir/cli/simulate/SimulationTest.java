package io.kvasir.cli.simulate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.cli.CommandRun;
import io.kvasir.cli.load.MooncakeTrace;
import io.kvasir.router.Worker;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.state.SimState;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;

/** Policies in virtual time, on fleets small enough to be followed by hand or in a second. */
@Order(1) // takes long: begins first, beside the others
class SimulationTest {
    private static final int ID_TOKENS = 512;
    private static final double ID_MS = 51.2; // 512 tokens at 10,000 a second
    private static final double STEP_MS = 10;
    private static final double ROUNDING = 1e-3; // of histograms with three digits

    private static FleetPlan fleet(int workers, int blocks) {
        return new FleetPlan(workers, SimConfig.builder().blocks(blocks).seed(1).build(), 5);
    }

    /** A prompt of whole hash ids and one output token. */
    private static MooncakeTrace.Request request(long atMs, long... ids) {
        return new MooncakeTrace.Request(atMs, ids.length * ID_TOKENS, 1, ids);
    }

    private static FleetStats.Result play(
            FleetPlan plan, String policy, List<MooncakeTrace.Request> requests) {
        try (FleetRun run = new FleetRun(plan, Policies.of(policy, plan, requests), 1)) {
            return run.play(requests);
        }
    }

    @Test
    void oneRequestTakesItsPrefillAndAsManySteps() {
        final var one = new MooncakeTrace.Request(0, 2 * ID_TOKENS, 4, new long[] {1, 2});
        final FleetStats.Result result = play(fleet(1, 1024), "round-robin", List.of(one));
        assertEquals(0, result.hitRate());
        assertEquals(2 * ID_MS, result.ttftP50Ms(), 2 * ID_MS * ROUNDING);
        assertEquals(STEP_MS, result.gapMeanMs(), STEP_MS * ROUNDING);
        assertEquals(1, result.imbalance());
    }

    @Test
    void aPromptThatWasComputedIsHitButForItsLastBlock() {
        final FleetStats.Result result =
                play(fleet(1, 1024), "kv:1", List.of(request(0, 1, 2), request(1_000, 1, 2)));
        assertEquals((2 * ID_TOKENS - 16) / (4.0 * ID_TOKENS), result.hitRate(), 1e-12);
        assertEquals(STEP_MS, result.ttftP50Ms(), STEP_MS * ROUNDING); // 16 tokens: one short step
        assertEquals(2 * ID_MS, result.ttftP99Ms(), 2 * ID_MS * ROUNDING);
    }

    @Test
    void theSecondOfTwoWaitsOnOneWorkerAndNotOnTwo() {
        final List<MooncakeTrace.Request> two = List.of(request(0, 1, 2), request(0, 3, 4));
        assertEquals(
                4 * ID_MS, play(fleet(1, 1024), "kv:1", two).ttftP99Ms(), 4 * ID_MS * ROUNDING);
        assertEquals(
                2 * ID_MS, play(fleet(2, 1024), "kv:1", two).ttftP99Ms(), 2 * ID_MS * ROUNDING);
    }

    @Test
    void whatWasEvictedIsNoHit() {
        final List<MooncakeTrace.Request> turns =
                List.of(
                        request(0, 1, 2),
                        request(1_000, 3, 4),
                        request(2_000, 5, 6),
                        request(3_000, 1, 2));
        final double perHit = (2 * ID_TOKENS - 16) / (8.0 * ID_TOKENS);
        assertEquals(perHit, play(fleet(1, 256), "kv:1", turns).hitRate(), 1e-12);
        assertEquals(0, play(fleet(1, 128), "kv:1", turns).hitRate());
    }

    @Tag("trials")
    @ParameterizedTest
    @ValueSource(strings = {"random", "power-of-two", "kv:1", "prefill-time", "clairvoyant"})
    void equalSeedsGiveEqualNumbers(String policy) {
        final Simulation agents = Simulation.ofAgents(fleet(3, 4096), Trials.of(15, 80), 20);
        final List<PolicyResults> once = agents.report(List.of(policy), 2, _ -> {}).policies();
        assertEquals(once, agents.report(List.of(policy), 2, _ -> {}).policies());
        assertNotEquals(once.getFirst().runs().get(0), once.getFirst().runs().get(1));
    }

    @Tag("trials")
    @ParameterizedTest
    @ValueSource(
            strings = {
                "random",
                "kv:4",
                "prefill-time",
                "affinity",
                "eviction-aware",
                "load-aware"
            })
    void everyRequestEndsAndAllItsBlocksComeBack(String policy) {
        final List<MooncakeTrace.Request> agents =
                AgentWorkload.requests(Trials.of(40, 100), 50, 7);
        final FleetPlan plan = fleet(2, 4096);
        try (FleetRun run = new FleetRun(plan, Policies.of(policy, plan, agents), 1)) {
            assertEquals(agents.size(), run.play(agents).requests());
            for (SimState engine : run.engines()) {
                assertEquals(engine.blocks(), engine.freeBlocks());
                assertEquals(0, engine.running() + engine.waiting());
            }
            assertEquals(agents.size(), run.engines().stream().mapToLong(SimState::finished).sum());
            for (int i = 0; i < plan.workers(); i++) {
                final Worker worker = run.workers().get(i);
                assertEquals(0, worker.activeRequests());
                assertEquals(0, worker.activeBlocks());
                assertEquals(0, worker.prefillTokens());
                assertEquals(run.engines().get(i).distinctBlocks(), worker.indexedBlocks());
            }
        }
    }

    @Tag("integration") // twenty seconds
    @Test
    void policiesThatKnowWhereBlocksAreHitMoreAndAnswerEarlier() {
        final Simulation agents = Simulation.ofAgents(fleet(4, 8192), 300, 10);
        final SimulationReport report =
                agents.report(
                        List.of("round-robin", "kv:1", "prefill-time", "clairvoyant"), 3, _ -> {});
        final Map<String, PolicyResults> by =
                report.policies().stream()
                        .collect(Collectors.toMap(PolicyResults::policy, Function.identity()));
        final double blind = by.get("round-robin").mean(FleetStats.Result::hitRate);
        final double linear = by.get("kv:1").mean(FleetStats.Result::hitRate);
        final double timed = by.get("prefill-time").mean(FleetStats.Result::hitRate);
        final double clairvoyant = by.get("clairvoyant").mean(FleetStats.Result::hitRate);
        assertTrue(linear > blind + 0.05, report::toString);
        assertTrue(timed > blind + 0.15, report::toString);
        assertTrue(timed > linear, report::toString);
        for (CacheBounds bounds : report.bounds()) {
            assertTrue(bounds.endless() >= bounds.pooled(), report::toString);
        }
        final double endless =
                report.bounds().stream().mapToDouble(CacheBounds::endless).average().orElseThrow();
        assertTrue(endless >= Math.max(timed, clairvoyant), report::toString);
        assertTrue(
                by.get("prefill-time").mean(FleetStats.Result::ttftP95Ms)
                        < 0.8 * by.get("round-robin").mean(FleetStats.Result::ttftP95Ms),
                report::toString);
    }

    @Test
    void eventsThatComeTooLateAreHitsThatTheRouterDoesNotKnowOf() {
        final SimConfig engine = SimConfig.builder().blocks(4096).seed(1).build();
        final MooncakeTrace.Request[] turns = new MooncakeTrace.Request[40];
        Arrays.setAll(turns, i -> request(i * 500L, i % 4 + 1, i % 4 + 11, i % 4 + 21));
        final FleetPlan late = new FleetPlan(4, engine, FleetPlan.MAX_DELAY_MS);
        final FleetPlan early = new FleetPlan(4, engine, 0);
        assertTrue(
                play(early, "kv:4", List.of(turns)).hitRate()
                        > play(late, "kv:4", List.of(turns)).hitRate() + 0.2);
    }

    @Test
    void agentsComeInOrderAndShareTheirSystemPrompts() {
        final List<MooncakeTrace.Request> agents = AgentWorkload.requests(500, 5, 3);
        assertEquals(500, agents.size());
        for (int i = 1; i < agents.size(); i++) {
            assertTrue(agents.get(i).timestampMs() >= agents.get(i - 1).timestampMs());
        }
        assertTrue(agents.stream().map(each -> each.hashIds()[0]).distinct().count() <= 6);
    }

    @Test
    void aPolicyThatIsUnknownIsRefusedWithTheOnesThatThereAre() {
        final FleetPlan plan = fleet(1, 64);
        for (String name : List.of("", "kv", "kv:", "kv:-1", "kv:NaN", "kv:1e999", "best")) {
            final var refused =
                    assertThrows(
                            IllegalArgumentException.class,
                            () -> Policies.of(name, plan, List.of()));
            assertTrue(refused.getMessage().contains("eviction-aware"), refused.getMessage());
        }
        assertEquals(
                new RouterPolicy("kv:2.5", RoutingMode.KV, "linear", 2.5),
                Policies.of("kv:2.5", plan, List.of()));
    }

    @Test
    void theCommandPrintsATableAndAnObject(@TempDir Path dir) throws IOException {
        final Path trace =
                Files.writeString(
                        dir.resolve("t.jsonl"),
                        """
                        {"timestamp": 0, "input_length": 600, "output_length": 2, "hash_ids": [1, 2]}
                        {"timestamp": 9, "input_length": 600, "output_length": 2, "hash_ids": [1, 2]}
                        """);
        final CommandRun table =
                CommandRun.of(
                        "simulate",
                        "--trace=" + trace,
                        "--workers=2",
                        "--blocks=512",
                        "--seeds=2",
                        "--policies=round-robin,kv:1");
        assertEquals(0, table.exitCode(), table::err);
        assertTrue(table.out().contains("round-robin"), table::out);
        assertTrue(table.out().contains("one endless cache"), table::out);
        final CommandRun object =
                CommandRun.of(
                        "simulate",
                        "--agents",
                        "--requests=5",
                        "--policies=least-loaded",
                        "--workers=1",
                        "--json");
        assertEquals(0, object.exitCode(), object::err);
        assertTrue(object.out().contains("\"policy\":\"least-loaded\""), object::out);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "--agents --trace=x",
                "--agents --seeds=0",
                "--agents --requests=0",
                "--agents --workers=1025",
                "--agents --rate=0",
                "--agents --rate=NaN",
                "--agents --event-delay-ms=-1",
                "--agents --jitter-ms=-1",
                "--agents --block-size=0",
                "--agents --prefill-rate=0",
                "--agents --policies=best"
            })
    void aWrongCommandLineIsSaidSo(String options) {
        final CommandRun run = CommandRun.of(("simulate " + options).strip().split(" "));
        assertEquals(2, run.exitCode(), run::err);
    }

    @Test
    void aRequestThatFitsNoEngineIsRefusedBeforeAnythingRuns() {
        final CommandRun run = CommandRun.of("simulate", "--agents", "--blocks=64");
        assertEquals(3, run.exitCode(), run::err);
        assertTrue(run.err().contains("raise --blocks"), run::err);
    }
}

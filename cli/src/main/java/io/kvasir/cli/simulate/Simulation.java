package io.kvasir.cli.simulate;

import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.CommandFailure;
import io.kvasir.cli.load.MooncakeTrace;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.Consumer;
import java.util.function.LongFunction;

/** Plays policies over workloads, seed by seed. One thread. */
public final class Simulation {
    private static final int TOKENS_PER_ID = 512;

    private final FleetPlan plan;
    private final LongFunction<List<MooncakeTrace.Request>> workload; // by seed

    private Simulation(FleetPlan plan, LongFunction<List<MooncakeTrace.Request>> workload) {
        this.plan = plan;
        this.workload = workload;
    }

    /**
     * Of a trace, whose requests arrive up to a jitter later, by the seed.
     *
     * @param jitterMs not negative; 0 = seeds differ by their ties alone
     */
    public static Simulation ofTrace(
            FleetPlan plan, List<MooncakeTrace.Request> requests, int jitterMs) {
        return new Simulation(plan, seed -> jittered(requests, jitterMs, seed));
    }

    /** Of agents, see {@link AgentWorkload}; each seed is another workload. */
    public static Simulation ofAgents(FleetPlan plan, int requests, double perSecond) {
        return new Simulation(plan, seed -> AgentWorkload.requests(requests, perSecond, seed));
    }

    /** Names of all policies. */
    public static List<String> policies() {
        return Policies.NAMES;
    }

    /**
     * Checks the name of a policy.
     *
     * @throws IllegalArgumentException if there is none; the message lists them
     */
    public void check(String policy) {
        Policies.of(policy, plan, List.of());
    }

    /**
     * Plays every policy with every seed.
     *
     * @param policies names
     * @param seeds 1 to this
     * @param progress takes a line that names the run, before each
     * @param output takes the results
     * @throws CommandFailure if a request is longer than an engine's cache
     */
    public void run(List<String> policies, int seeds, Consumer<String> progress, Output output) {
        final SimulationReport report = report(policies, seeds, progress);
        if (output.json() == null) {
            report.print(output.out());
        } else {
            report.write(output.json());
        }
    }

    /**
     * Where results go.
     *
     * @param json takes them; null to print a table
     */
    public record Output(PrintWriter out, ObjectNode json) {}

    SimulationReport report(List<String> policies, int seeds, Consumer<String> progress) {
        final List<List<MooncakeTrace.Request>> workloads = new ArrayList<>();
        final List<CacheBounds> bounds = new ArrayList<>();
        for (int seed = 1; seed <= seeds; seed++) {
            workloads.add(workload.apply(seed));
            checkFit(workloads.getLast());
            bounds.add(CacheBounds.of(workloads.getLast(), plan, TOKENS_PER_ID));
        }
        final List<PolicyResults> results = new ArrayList<>();
        for (String policy : policies) {
            final List<FleetStats.Result> runs = new ArrayList<>();
            for (int seed = 1; seed <= seeds; seed++) {
                progress.accept(policy + ", seed " + seed + " of " + seeds);
                runs.add(play(policy, workloads.get(seed - 1), seed));
            }
            results.add(new PolicyResults(policy, runs));
        }
        return new SimulationReport(bounds, results);
    }

    private void checkFit(List<MooncakeTrace.Request> requests) {
        final int blocks = plan.engine().blocks();
        final int blockSize = plan.engine().blockSize();
        final long longest =
                requests.stream()
                        .mapToLong(each -> (long) each.inputLength() + each.outputLength())
                        .max()
                        .orElseThrow();
        if (longest > (long) blocks * blockSize) {
            throw new CommandFailure(
                    "the longest request has "
                            + longest
                            + " tokens, an engine holds --blocks "
                            + blocks
                            + " x --block-size "
                            + blockSize
                            + " = "
                            + (long) blocks * blockSize
                            + "; raise --blocks");
        }
    }

    private FleetStats.Result play(String policy, List<MooncakeTrace.Request> requests, long seed) {
        try (FleetRun run = new FleetRun(plan, Policies.of(policy, plan, requests), seed)) {
            return run.play(requests);
        }
    }

    private static List<MooncakeTrace.Request> jittered(
            List<MooncakeTrace.Request> requests, int jitterMs, long seed) {
        final SplittableRandom random = new SplittableRandom(seed);
        final List<MooncakeTrace.Request> moved = new ArrayList<>();
        for (MooncakeTrace.Request request : requests) {
            moved.add(
                    new MooncakeTrace.Request(
                            request.timestampMs() + random.nextInt(jitterMs + 1),
                            request.inputLength(),
                            request.outputLength(),
                            request.hashIds()));
        }
        moved.sort(Comparator.comparingLong(MooncakeTrace.Request::timestampMs));
        return moved;
    }
}

package io.kvasir.cli.commands;

import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.ExitCode;
import io.kvasir.cli.console.Json;
import io.kvasir.cli.console.NamedFile;
import io.kvasir.cli.load.MooncakeTrace;
import io.kvasir.cli.simulate.FleetPlan;
import io.kvasir.cli.simulate.Simulation;
import io.kvasir.sim.config.SimConfig;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;

/** {@code kvasir simulate}: routing policies beside each other in virtual time. */
@Command(
        name = "simulate",
        description = {
            "Compare routing policies over a simulated fleet in virtual time.",
            "",
            "The router is the real one, the engines are those of `kvasir sim`, stepped without a"
                    + " clock: no HTTP, no waiting, and the same seed gives the same numbers. What"
                    + " `kvasir replay` measures in minutes is computed in seconds.",
            "",
            "The workload is a trace in Mooncake's format (--trace), or agents: shared system"
                    + " prompts, tool loops, sub-agents.",
            "",
            "Columns:",
            "  cache hits   prompt tokens taken from caches / all prompt tokens, mean over the"
                    + " seeds; +- is half of the spread",
            "  regret       points below one endless cache that all requests share",
            "  TTFT         time to first token from a request's arrival",
            "  imbalance    prompt tokens computed by the busiest worker / mean; 1 = even",
            "",
            "The policy clairvoyant sees the engines' queues and caches as they are, and which"
                    + " blocks later requests will ask for; it still decides request by request, so"
                    + " it is no upper bound. It shows what better information would be worth.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir simulate --trace conversation_trace.jsonl",
            "  kvasir simulate --agents --seeds 5 --policies round-robin,kv:1,kv:64",
            "",
            "Exit codes: 0 done; 2 wrong command line; 3 no such file, bad trace; 130/143 ended by"
                    + " ctrl-C/kill."
        })
public final class SimulateCommand implements Callable<Integer> {
    private static final long ENGINE_SEED = 1;
    private static final int MOST_SEEDS = 1_000;
    private static final int MOST_JITTER_MS = 3_600_000;

    @Mixin private CommonOptions common;

    @Mixin private FleetOptions fleet;

    @Option(names = "--trace", paramLabel = "FILE", description = "Trace file, JSON lines.")
    private Path trace;

    @Option(names = "--agents", description = "Agents instead of a trace.")
    private boolean agents;

    @Option(
            names = "--rate",
            paramLabel = "R",
            defaultValue = "6",
            description = "Agents: requests a second. Default: ${DEFAULT-VALUE}.")
    private double rate;

    @Option(
            names = "--requests",
            paramLabel = "N",
            defaultValue = "2000",
            description = "Requests of each run. Default: ${DEFAULT-VALUE}.")
    private int requests;

    @Option(
            names = "--policies",
            paramLabel = "P",
            split = ",",
            description =
                    "Policies, in this order; kv:W is the linear cost with weight W. Default:"
                            + " all.")
    private List<String> policies = new ArrayList<>();

    @Option(
            names = "--seeds",
            paramLabel = "N",
            defaultValue = "1",
            description =
                    "Runs of each policy, seeds 1..N: of ties and, by seed, of the agents or of the"
                            + " trace's jitter. Default: ${DEFAULT-VALUE}.")
    private int seeds;

    @Option(
            names = "--jitter-ms",
            paramLabel = "MS",
            defaultValue = "0",
            description =
                    "Trace: a request arrives up to so much later than it says. Default:"
                            + " ${DEFAULT-VALUE}.")
    private int jitterMs;

    @Option(
            names = "--prefill-rate",
            paramLabel = "T/S",
            defaultValue = "10000",
            description = "Prompt tokens an engine computes per second. Default: ${DEFAULT-VALUE}.")
    private double prefillRate;

    @Option(
            names = "--inter-token-ms",
            paramLabel = "MS",
            defaultValue = "10",
            description = "Shortest time between two tokens. Default: ${DEFAULT-VALUE}.")
    private double interTokenMillis;

    @Option(
            names = "--slots",
            paramLabel = "N",
            defaultValue = "64",
            description = "Requests an engine runs at once. Default: ${DEFAULT-VALUE}.")
    private int slots;

    @Option(
            names = "--event-delay-ms",
            paramLabel = "MS",
            defaultValue = "10",
            description =
                    "Time from the end of an engine's step until the router has its events."
                            + " Default: ${DEFAULT-VALUE}.")
    private double eventDelayMs;

    @Option(names = "--json", description = "Print one JSON object instead of the table.")
    private boolean json;

    @Override
    public Integer call() throws IOException {
        check();
        final Simulation simulation = simulation();
        final List<String> names = policies.isEmpty() ? Simulation.policies() : policies;
        common.checked("", () -> names.forEach(simulation::check));
        final ObjectNode object = json ? Json.object() : null;
        simulation.run(
                names,
                seeds,
                run -> common.err().println(run),
                new Simulation.Output(common.out(), object));
        if (json) {
            common.out().println(object);
        }
        return ExitCode.OK;
    }

    private void check() {
        if ((trace == null) != agents) {
            throw common.wrong("one of --trace FILE and --agents is needed");
        }
        common.atLeast("--requests", requests, 1);
        common.within("--seeds", seeds, 1, MOST_SEEDS);
        fleet.check(common);
        common.within("--jitter-ms", jitterMs, 0, MOST_JITTER_MS);
        common.within("--event-delay-ms", eventDelayMs, 0, FleetPlan.MAX_DELAY_MS);
        common.positive("--rate", rate);
        common.positive("--prefill-rate", prefillRate);
        common.notNegative("--inter-token-ms", interTokenMillis);
        common.atLeast("--slots", slots, 1);
    }

    private Simulation simulation() throws IOException {
        final FleetPlan plan = common.made(this::plan);
        if (agents) {
            return Simulation.ofAgents(plan, requests, rate);
        }
        final List<MooncakeTrace.Request> read =
                NamedFile.read("--trace", trace, () -> MooncakeTrace.read(trace, requests));
        return Simulation.ofTrace(plan, read, jitterMs);
    }

    private FleetPlan plan() {
        return new FleetPlan(
                fleet.workers(),
                SimConfig.builder()
                        .blocks(fleet.blocks())
                        .blockSize(fleet.blockSize())
                        .prefillTokensPerSecond(prefillRate)
                        .interTokenMillis(interTokenMillis)
                        .slots(slots)
                        .seed(ENGINE_SEED)
                        .build(),
                eventDelayMs);
    }
}

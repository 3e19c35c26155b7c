package io.kvasir.cli.commands;

import com.sun.management.UnixOperatingSystemMXBean;

import io.kvasir.cli.console.CommandFailure;
import io.kvasir.cli.console.Shutdown;
import io.kvasir.cli.demo.WorkerFlag;
import io.kvasir.registry.FailureText;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.HandoffConfig;
import io.kvasir.sim.config.KvBytes;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.SimHandoff;
import io.kvasir.sim.config.SimRole;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import java.io.IOException;
import java.io.PrintWriter;
import java.lang.management.ManagementFactory;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;

/** {@code kvasir sim}: simulated engines that run until the command is ended. */
@Command(
        name = "sim",
        description = {
            "Run simulated engines that speak vLLM's HTTP API and KV events.",
            "",
            "Each has a block pool with prefix caching and eviction, continuous batching in"
                + " simulated time, an event publisher and a replay socket. One token is one byte"
                + " of text. Prints the --worker flags for kvasir serve and runs until ctrl-C.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir sim --port 9000",
            "  kvasir sim --count 4 --port 9000 --events-port 5600 --blocks 4096",
            "  kvasir sim --role prefill --port 9100",
            "",
            "Exit codes: 130/143 ended by ctrl-C/kill; 2 wrong command line; 3 port in use."
        })
public final class SimCommand implements Callable<Integer> {
    private static final String LACK = "Too many open files"; // the JDK has no type for it

    @Mixin private CommonOptions common;

    @Option(
            names = "--count",
            paramLabel = "N",
            defaultValue = "1",
            description =
                    "Engines to run. Engine i listens on --port + i, publishes on --events-port + 2"
                            + " i dp, replays on the ports after those. Default: ${DEFAULT-VALUE}.")
    private int count;

    @Option(
            names = "--host",
            defaultValue = "127.0.0.1",
            description = "Address to listen on. Default: ${DEFAULT-VALUE}.")
    private String host;

    @Option(
            names = "--port",
            defaultValue = "9000",
            description = "First HTTP port; 0 = any free ones. Default: ${DEFAULT-VALUE}.")
    private int port;

    @Option(
            names = "--events-port",
            defaultValue = "0",
            description =
                    "First event port; 0 = any free ones, -1 = no events. Default:"
                            + " ${DEFAULT-VALUE}.")
    private int eventsPort;

    @Option(
            names = "--no-replay",
            description = "Offer no replay socket: a missed event is lost for good.")
    private boolean noReplay;

    @Option(
            names = "--model",
            defaultValue = "kvasir-sim",
            description = "Served model name. Default: ${DEFAULT-VALUE}.")
    private String model;

    @Option(
            names = "--lora",
            paramLabel = "NAME",
            description = "LoRA adapter served as a model of its own; repeatable. Default: none.")
    private List<String> adapters = new ArrayList<>();

    @Option(
            names = "--block-size",
            paramLabel = "N",
            defaultValue = "16",
            description = "Tokens per block. Default: ${DEFAULT-VALUE}.")
    private int blockSize;

    @Option(
            names = "--blocks",
            paramLabel = "N",
            defaultValue = "8192",
            description = "Blocks in the pool of one rank. Default: ${DEFAULT-VALUE}.")
    private int blocks;

    @Option(
            names = "--max-model-len",
            paramLabel = "N",
            defaultValue = "0",
            description =
                    "Most tokens of prompt and answer; 0 = what the pool holds, at most 131072."
                            + " Default: ${DEFAULT-VALUE}.")
    private int maxModelLength;

    @Option(
            names = "--max-batched-tokens",
            paramLabel = "N",
            defaultValue = "2048",
            description = "Most tokens computed in one step. Default: ${DEFAULT-VALUE}.")
    private int maxBatchedTokens;

    @Option(
            names = "--prefill-rate",
            paramLabel = "T/S",
            defaultValue = "10000",
            description = "Prompt tokens computed per second. Default: ${DEFAULT-VALUE}.")
    private double prefillRate;

    @Option(
            names = "--inter-token-ms",
            paramLabel = "MS",
            defaultValue = "10",
            description = "Time between two tokens of an answer. Default: ${DEFAULT-VALUE}.")
    private double interTokenMillis;

    @Option(
            names = "--slots",
            paramLabel = "N",
            defaultValue = "64",
            description = "Requests of one rank that run at once. Default: ${DEFAULT-VALUE}.")
    private int slots;

    @Option(
            names = "--dp",
            paramLabel = "N",
            defaultValue = "1",
            description = "Data-parallel ranks behind one URL. Default: ${DEFAULT-VALUE}.")
    private int dataParallelSize;

    @Option(
            names = "--speed-up",
            paramLabel = "X",
            defaultValue = "1",
            description = "Divides every simulated time. Default: ${DEFAULT-VALUE}.")
    private double speedUp;

    @Option(
            names = "--mean-output",
            paramLabel = "N",
            defaultValue = "256",
            description =
                    "Mean length of an answer that ends by itself. Default: ${DEFAULT-VALUE}.")
    private int meanOutput;

    @Option(
            names = "--topic",
            defaultValue = "kv-events",
            description = "Topic of the event messages. Default: ${DEFAULT-VALUE}.")
    private String topic;

    @Option(
            names = "--replay-steps",
            paramLabel = "N",
            defaultValue = "10000",
            description = "Event messages kept for replay. Default: ${DEFAULT-VALUE}.")
    private int replaySteps;

    @Option(
            names = "--seed",
            paramLabel = "N",
            description = "Seed of the block names; engine i uses seed + i. Default: random.")
    private Long seed;

    @Option(
            names = "--role",
            defaultValue = "both",
            description =
                    "prefill: its blocks are pulled by decode engines; decode: it pulls blocks;"
                            + " both: no hand-offs. Default: ${DEFAULT-VALUE}.")
    private SimRole role;

    @Option(
            names = "--handoff",
            paramLabel = "PROTOCOL",
            defaultValue = "vllm",
            description =
                    "How prefill and decode engines agree: vllm (kv_transfer_params), sglang"
                            + " (bootstrap room), trtllm (disaggregated_params). Default:"
                            + " ${DEFAULT-VALUE}.")
    private SimHandoff handoff;

    @Option(
            names = "--side-port",
            defaultValue = "0",
            description =
                    "First port at which prefill engines give their blocks, with sglang the"
                            + " bootstrap port; 0 = any free ones. Default: ${DEFAULT-VALUE}.")
    private int sidePort;

    @Option(
            names = "--kv-lease-s",
            paramLabel = "S",
            defaultValue = "30",
            description =
                    "How long a prefill's blocks wait for a decode. Default: ${DEFAULT-VALUE}.")
    private double leaseSeconds;

    @Option(
            names = "--kv-patience-s",
            paramLabel = "S",
            defaultValue = "5",
            description =
                    "How long a decode waits for the side port, with sglang for the prefill."
                            + " Default: ${DEFAULT-VALUE}.")
    private double patienceSeconds;

    @Option(
            names = "--kv-rate",
            paramLabel = "GB/S",
            defaultValue = "25",
            description =
                    "Gigabytes per second that a decode rank receives; a token has 128 KiB."
                            + " Default: ${DEFAULT-VALUE}.")
    private double transferRate;

    @Option(
            names = "--kv-strict",
            description =
                    "Fail a decode that pulled other blocks than its prompt's; without, it answers"
                            + " with another text, as real engines do.")
    private boolean strict;

    @Option(
            names = "--kv-bytes",
            description =
                    "Give blocks real bytes, which a decode moves and checks before it generates;"
                            + " all engines of both roles alike.")
    private boolean bytes;

    @Option(
            names = "--kv-layers",
            paramLabel = "N",
            defaultValue = "2",
            description = "Layers of --kv-bytes. Default: ${DEFAULT-VALUE}.")
    private int layers;

    @Option(
            names = "--kv-row-bytes",
            paramLabel = "N",
            defaultValue = "64",
            description =
                    "Bytes of a token in a layer of --kv-bytes, a multiple of 8. Default:"
                            + " ${DEFAULT-VALUE}.")
    private int rowBytes;

    @Option(
            names = "--kv-nixl",
            description =
                    "Move the bytes of --kv-bytes by NIXL, which must be there, and not by shared"
                            + " memory.")
    private boolean nixl;

    @Override
    public Integer call() throws InterruptedException {
        check();
        if (dataParallelSize > 1 && eventsPort == 0) {
            throw common.wrong(
                    "--dp "
                            + dataParallelSize
                            + " needs --events-port: a gateway counts the ports of"
                            + " the ranks up from the first");
        }
        checkHost();
        final List<SimEngine> engines = new ArrayList<>();
        final Shutdown shutdown = Shutdown.of(() -> engines.forEach(SimEngine::close));
        for (int i = 0; i < count; i++) {
            engines.add(start(i));
        }
        print(engines);
        return shutdown.await();
    }

    /** What is no address of this machine is wrong whatever the ports are. */
    private void checkHost() {
        try (ServerSocket any = new ServerSocket(0, 1, InetAddress.getByName(host))) {
            assert any.isBound() : host;
        } catch (BindException | UnknownHostException e) {
            throw new CommandFailure(
                    "cannot listen on --host " + host + ": it must be an address of this machine",
                    e);
        } catch (IOException e) {
            throw new CommandFailure(
                    "cannot listen on --host " + host + ": " + FailureText.of(e), e);
        }
    }

    private void check() {
        common.atLeast("--count", count, 1);
        common.atLeast("--dp", dataParallelSize, 1);
        common.notBlank("--host", host);
        common.ports("--port", port, count);
        common.ports("--side-port", sidePort, count);
        if (eventsPort != -1) {
            common.ports("--events-port", eventsPort, eventPorts());
        }
        FleetOptions.checkPool(common, blocks, blockSize);
        if (maxModelLength < 0 || maxModelLength == 1) {
            throw common.wrong("--max-model-len " + maxModelLength + " must be at least 2, or 0");
        }
        final long pool = (long) blocks * blockSize;
        if (maxModelLength > pool) {
            throw common.wrong(
                    "--max-model-len "
                            + maxModelLength
                            + " is more than the "
                            + pool
                            + " tokens of --blocks "
                            + blocks
                            + " of --block-size "
                            + blockSize);
        }
        common.atLeast("--max-batched-tokens", maxBatchedTokens, 1);
        common.positive("--prefill-rate", prefillRate);
        common.notNegative("--inter-token-ms", interTokenMillis);
        common.atLeast("--slots", slots, 1);
        common.positive("--speed-up", speedUp);
        common.atLeast("--mean-output", meanOutput, 1);
        common.atLeast("--replay-steps", replaySteps, 0);
        common.within("--kv-lease-s", leaseSeconds, 0, CommonOptions.MOST_SECONDS);
        common.within("--kv-patience-s", patienceSeconds, 0, CommonOptions.MOST_SECONDS);
        common.positive("--kv-rate", transferRate);
        for (String option : List.of("--kv-nixl", "--kv-layers", "--kv-row-bytes")) {
            if (!bytes && common.isGiven(option)) {
                throw common.wrong(option + " is for --kv-bytes, which is not given");
            }
        }
        common.atLeast("--kv-layers", layers, 0);
        if (rowBytes < Long.BYTES || rowBytes % Long.BYTES != 0) {
            throw common.wrong(
                    "--kv-row-bytes " + rowBytes + " must be a multiple of " + Long.BYTES);
        }
        if (model.isEmpty() || adapters.contains(model)) {
            throw common.wrong("--model '" + model + "' must be a name that no --lora has");
        }
    }

    /** From the first one's to the last one's, those of replays included. */
    private long eventPorts() {
        final long all = 2L * count * dataParallelSize;
        return noReplay ? all - dataParallelSize : all;
    }

    private SimEngine start(int number) {
        final SimConfig config = common.made(() -> config(number));
        try {
            return SimEngine.start(config);
        } catch (RuntimeException e) {
            throw notStarted(e, number, count);
        }
    }

    /** The failure to start one of so many engines, with what to change where that is known. */
    static RuntimeException notStarted(RuntimeException cause, int number, int count) {
        for (Throwable t = cause; t != null; t = t.getCause()) {
            if (t instanceof IOException && String.valueOf(t.getMessage()).startsWith(LACK)) {
                return new CommandFailure(
                        String.format(
                                Locale.ROOT,
                                "no file descriptor is left for engine %d of --count %d%s; raise"
                                        + " ulimit -n, or lower --count",
                                number + 1,
                                count,
                                descriptorLimit()),
                        cause);
            }
        }
        return cause instanceof IllegalStateException
                ? new CommandFailure(
                        cause.getMessage()
                                + "; choose other ports with --port and --events-port, 0 = any"
                                + " free ones",
                        cause)
                : cause;
    }

    private static String descriptorLimit() {
        return ManagementFactory.getOperatingSystemMXBean()
                        instanceof UnixOperatingSystemMXBean unix
                ? ": the limit is " + unix.getMaxFileDescriptorCount()
                : "";
    }

    private SimConfig config(int i) {
        // every rank takes one event port and one replay port, the latter after all event ports
        final int events = eventsPort > 0 ? eventsPort + 2 * i * dataParallelSize : eventsPort;
        final int replay = eventsPort > 0 ? events + dataParallelSize : eventsPort;
        final SimConfig.Builder builder =
                SimConfig.builder()
                        .host(host)
                        .port(port == 0 ? 0 : port + i)
                        .model(model)
                        .loraAdapters(adapters)
                        .blockSize(blockSize)
                        .blocks(blocks)
                        .maxModelLength(maxModelLength)
                        .maxBatchedTokens(maxBatchedTokens)
                        .prefillTokensPerSecond(prefillRate)
                        .interTokenMillis(interTokenMillis)
                        .slots(slots)
                        .eventsPort(events)
                        .replayPort(noReplay ? -1 : replay)
                        .topic(topic)
                        .replaySteps(replaySteps)
                        .dataParallelSize(dataParallelSize)
                        .speedUp(speedUp)
                        .meanOutputTokens(meanOutput)
                        .handoff(handoff(i));
        if (seed != null) {
            builder.seed(seed + i);
        }
        return builder.build();
    }

    private HandoffConfig handoff(int i) {
        return HandoffConfig.of(role, handoff)
                .withSidePort(sidePort == 0 ? 0 : sidePort + i)
                .withLease(seconds(leaseSeconds))
                .withPatience(seconds(patienceSeconds))
                .withBytesPerSecond(transferRate * 1e9)
                .withStrict(strict)
                .withBytes(bytes ? new KvBytes(layers, rowBytes, nixl) : KvBytes.NONE);
    }

    private static Duration seconds(double seconds) {
        return Duration.ofMillis(Math.round(seconds * 1000));
    }

    private void print(List<SimEngine> engines) {
        final PrintWriter out = common.out();
        final List<String> flags = new ArrayList<>();
        for (SimEngine engine : engines) {
            out.println("engine " + engine.url() + "/v1/models");
            for (int rank = 0; rank < dataParallelSize && eventsPort >= 0; rank++) {
                out.println(
                        "  rank "
                                + rank
                                + ": events "
                                + engine.eventsEndpoint(rank)
                                + (noReplay ? "" : ", replay " + engine.replayEndpoint(rank)));
            }
            if (role == SimRole.PREFILL) {
                out.println("  side port " + engine.sidePort());
            }
            flags.add("--worker " + WorkerFlag.of(engine));
        }
        out.println();
        out.println(
                "kvasir serve --model "
                        + model
                        + " --tokenizer sim --block-size "
                        + blockSize
                        + " \\\n  "
                        + String.join(" \\\n  ", flags));
        out.println();
        out.println("running; ctrl-C ends");
        out.flush();
    }
}

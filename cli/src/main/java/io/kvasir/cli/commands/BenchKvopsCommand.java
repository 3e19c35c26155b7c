package io.kvasir.cli.commands;

import com.fasterxml.jackson.databind.node.DoubleNode;
import com.fasterxml.jackson.databind.node.LongNode;
import com.fasterxml.jackson.databind.node.NumericNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.ExitCode;
import io.kvasir.cli.console.Json;
import io.kvasir.cli.console.NamedFile;
import io.kvasir.cli.console.TextTable;
import io.kvasir.opstreams.kvops.Figure;
import io.kvasir.opstreams.kvops.KvopsBench;
import io.kvasir.opstreams.kvops.KvopsResult;
import io.kvasir.opstreams.kvops.LiveMaximum;
import io.kvasir.opstreams.kvops.ReplayMode;
import io.kvasir.opstreams.kvops.ReplayPlan;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.Locale;
import java.util.concurrent.Callable;

/** {@code kvasir bench kvops}: one index on one op stream. */
@Command(
        name = "kvops",
        description = {
            "Replay an op stream against an index; check every answer and measure the costs.",
            "",
            "Each fork is a fresh JVM: it decodes the stream into memory, warms up on an index of"
                    + " its own, then measures on an empty one that has room for exactly what the"
                    + " stream's workers hold at most. Figures are medians over the forks.",
            "",
            "Modes:",
            "  inorder   one thread, every operation in order, every answer checked. Events: CPU"
                + " time of the thread. Queries: wall time, those left out during which the thread"
                + " lost its core (preempted_share says how many; *_raw_* has all)",
            "  events    one thread, every operation in order, with a clock for each event; the"
                    + " least time of --passes passes counts",
            "  beside    a writer applies the events as fast as it can or at --block-rate; a reader"
                    + " asks for the prompts that come next, without pause",
            "  openloop  events and queries at the stream's times ÷ --speed-up; latency counts from"
                    + " the time a query was due",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir bench kvops conv16_w64.kvops --forks 3 --json",
            "  kvasir bench kvops conv16_w64.kvops --mode beside --depth 128 --block-rate 1000000",
            "  kvasir bench kvops conv16_w64.kvops --jvm-option -Xlog:gc",
            "",
            "Exit codes: 0 measured, no wrong answer (modes inorder and events check them, with"
                    + " --room 1 and a stream that has checksums); 1 wrong answers; 2 wrong command"
                    + " line; 3 no such file, no KVOPS stream, a fork failed."
        })
final class BenchKvopsCommand implements Callable<Integer> {
    private static final double ROUNDING = 10_000;

    @Mixin private CommonOptions common;
    @Mixin private MeasurementOptions measurement;

    @Parameters(index = "0", paramLabel = "FILE", description = "The stream, KVOPS v1.")
    private Path file;

    @Option(
            names = "--mode",
            paramLabel = "M",
            defaultValue = "inorder",
            description = "inorder, events, beside or openloop. Default: ${DEFAULT-VALUE}.")
    private ReplayMode mode;

    @Option(
            names = "--warm-up",
            paramLabel = "N",
            description =
                    "Operations of the stream's start that are replayed before, again and again"
                            + " until figures stand still; 0 = none. Default: the whole stream.")
    private Long warmUp;

    @Option(
            names = "--warm-up-seconds",
            paramLabel = "S",
            defaultValue = "30",
            description = "Most time for the warm-up. Default: ${DEFAULT-VALUE}.")
    private double warmUpSeconds;

    @Option(
            names = "--room",
            paramLabel = "X",
            defaultValue = "1",
            description =
                    "Room of the index as a share of what the stream's workers hold at most; below"
                            + " 1 answers are not checked. Default: ${DEFAULT-VALUE}.")
    private double room;

    @Option(
            names = "--short-prompts",
            description =
                    "Size the index for prompts of a few blocks, too, as bench cliffs does; else"
                            + " for prompts of some 30 blocks and more.")
    private boolean shortPrompts;

    @Option(
            names = "--limit-seconds",
            paramLabel = "S",
            defaultValue = "0",
            description =
                    "Mode events: a pass ends after so long (replayed_share); 0 = never. Default:"
                            + " ${DEFAULT-VALUE}.")
    private double limitSeconds;

    @Option(
            names = "--passes",
            paramLabel = "N",
            defaultValue = "3",
            description =
                    "Modes beside and events: passes over the stream. Default: ${DEFAULT-VALUE}.")
    private int passes;

    @Option(
            names = "--block-rate",
            paramLabel = "N",
            defaultValue = "0",
            description =
                    "Mode beside: blocks per second that the writer applies; 0 = all it can."
                            + " Default: ${DEFAULT-VALUE}.")
    private double blockRate;

    @Option(
            names = "--depth",
            paramLabel = "N",
            defaultValue = "0",
            description =
                    "Mode beside: cut every prompt to N blocks, leave shorter ones out; 0 = as they"
                            + " are. Default: ${DEFAULT-VALUE}.")
    private int depth;

    @Option(
            names = "--speed-up",
            paramLabel = "X",
            defaultValue = "0",
            description =
                    "Mode openloop: stream time / wall time; 0 = the stream in 10 s. Default:"
                            + " ${DEFAULT-VALUE}.")
    private double speedUp;

    @Override
    public Integer call() throws IOException, InterruptedException {
        final ReplayPlan plan = plan();
        final KvopsBench bench = measurement.bench(common);
        final LiveMaximum live = NamedFile.read("FILE", file, () -> bench.liveMaximum(file));
        final KvopsResult result = bench.run(plan, live);
        if (measurement.isJson()) {
            Json.print(json(result), common.out());
        } else {
            print(result, common.out());
        }
        return result.mismatches() == 0 ? ExitCode.OK : ExitCode.NEGATIVE;
    }

    private ReplayPlan plan() {
        if (warmUp != null) {
            common.atLeast("--warm-up", warmUp, 0);
        }
        common.notNegative("--warm-up-seconds", warmUpSeconds);
        common.positive("--room", room);
        common.notNegative("--limit-seconds", limitSeconds);
        common.atLeast("--passes", passes, 1);
        common.notNegative("--block-rate", blockRate);
        common.atLeast("--depth", depth, 0);
        common.notNegative("--speed-up", speedUp);
        return common.made(
                () ->
                        ReplayPlan.of(file)
                                .withIndex(measurement.index())
                                .withMode(mode)
                                .withWarmUp(warmUp == null ? ReplayPlan.WHOLE : warmUp)
                                .withWarmUpSeconds(warmUpSeconds)
                                .withRoom(room)
                                .withShortPrompts(shortPrompts)
                                .withLimit(limitSeconds)
                                .withBeside(passes, blockRate, depth)
                                .withSpeedUp(speedUp));
    }

    private static void print(KvopsResult result, PrintWriter out) {
        final TextTable table = new TextTable("figure", "unit", "median", "min", "max");
        boolean tooFew = false;
        for (Figure figure : result.figures()) {
            final boolean ofTooFew = result.isOfTooFew(figure);
            tooFew |= ofTooFew;
            table.row(
                    figure.field() + (ofTooFew ? " *" : ""),
                    figure.unit(),
                    text(result.median(figure)),
                    text(result.min(figure)),
                    text(result.max(figure)));
        }
        if (!result.isChecked()) {
            final Figure unknown = Figure.CHECKSUM_MISMATCHES;
            table.row(unknown.field(), unknown.unit(), "-", "-", "-");
        }
        out.println(
                result.plan().file()
                        + ": "
                        + result.plan().index()
                        + ", "
                        + result.plan().mode().label()
                        + ", processes: "
                        + result.forks().size()
                        + ", warm-up: "
                        + result.plan().warmUpText());
        table.print(out);
        if (tooFew) {
            out.println("* of too few queries or events: nothing but the longest of them");
        }
        if (result.mismatches() > 0) {
            out.println("WRONG ANSWERS: " + result.mismatches());
        }
        out.flush();
    }

    private static String text(double value) {
        return value == Math.rint(value)
                ? String.format(Locale.ROOT, "%,.0f", value)
                : String.format(Locale.ROOT, "%,.4f", value);
    }

    /** All figures of a measurement. */
    static ObjectNode json(KvopsResult result) {
        final ObjectNode root = Json.object();
        final ReplayPlan plan = result.plan();
        root.put("stream", plan.file().getFileName().toString())
                .put("index", plan.index())
                .put("mode", plan.mode().label())
                .put("forks", result.forks().size())
                .put("warm_up", plan.warmUpText())
                .put("java", Runtime.version().toString())
                .put("workers", result.header().workers())
                .put("live_max_pairs", result.live().pairs())
                .put("live_max_blocks", result.live().blocks());
        for (Figure figure : result.figures()) {
            root.set(figure.field(), number(result.median(figure)));
        }
        // over all forks together: one fork with wrong answers must not vanish in a median
        root.put(
                Figure.CHECKSUM_MISMATCHES.field(),
                result.isChecked() ? (Long) result.mismatches() : null);
        final ObjectNode spread = root.putObject("spread");
        for (Figure figure : result.figures()) {
            spread.putArray(figure.field())
                    .add(number(result.min(figure)))
                    .add(number(result.max(figure)));
        }
        return root;
    }

    /** A whole number without a fraction, any other with four digits of it. */
    private static NumericNode number(double value) {
        return value == Math.rint(value)
                ? LongNode.valueOf((long) value)
                : DoubleNode.valueOf(Math.round(value * ROUNDING) / ROUNDING);
    }
}

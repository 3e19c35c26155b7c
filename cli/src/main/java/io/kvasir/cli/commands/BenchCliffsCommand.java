package io.kvasir.cli.commands;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.CommandFailure;
import io.kvasir.cli.console.ExitCode;
import io.kvasir.cli.console.Json;
import io.kvasir.cli.console.TemporaryFolder;
import io.kvasir.cli.console.TextTable;
import io.kvasir.opstreams.cliffs.Cliff;
import io.kvasir.opstreams.kvops.Figure;
import io.kvasir.opstreams.kvops.KvopsBench;
import io.kvasir.opstreams.kvops.KvopsResult;
import io.kvasir.opstreams.kvops.ReplayMode;
import io.kvasir.opstreams.kvops.ReplayPlan;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;

/** {@code kvasir bench cliffs}: the longest events in situations where an index may stall. */
@Command(
        name = "cliffs",
        description = {
            "Measure the longest single events in situations where an index may stall.",
            "",
            "Each situation is an op stream with exact answers that is written to a temporary file"
                + " and replayed in mode events of bench kvops. Times are CPU times of the applying"
                + " thread; over the bound is what goes beyond 2 us + 100 ns a block.",
            "",
            "Situations:",
            "  index-limit     ten engines that hold twice what the index may; blocks one by one",
            "  index-room      the same with room for all",
            "  late-attach     the same engines, full before the index saw them",
            "  salted-tenants  one worker, the same system prompt under names of 2,000 tenants",
            "  branch-churn    one-block branches come and go along a prompt that stays",
            "  block-by-block  64 workers generate, an event a block",
            "  big-worker      one worker of 4 M blocks; middle removals, branches, unknown names",
            "  shared-drop     1,000 workers take up one system prompt and drop it",
            "  unknown-flood   removals of what was never stored",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir bench cliffs",
            "  kvasir bench cliffs big-worker --room 0.5 --json",
            "  kvasir bench cliffs branch-churn --keep /tmp",
            "",
            "Exit codes: 0 measured, no wrong answer; 1 wrong answers; 2 wrong command line; 3"
                    + " could not write or measure."
        })
final class BenchCliffsCommand implements Callable<Integer> {
    @Mixin private CommonOptions common;
    @Mixin private MeasurementOptions measurement;

    @Parameters(
            arity = "0..*",
            paramLabel = "NAME",
            description = "The situations, see above. Default: all.")
    private List<String> names = new ArrayList<>();

    @Option(
            names = "--scale",
            paramLabel = "X",
            defaultValue = "1",
            description = "Size of each situation, 0..1. Default: ${DEFAULT-VALUE}.")
    private double scale;

    @Option(
            names = "--seed",
            paramLabel = "N",
            defaultValue = "42",
            description = "Of the streams. Default: ${DEFAULT-VALUE}.")
    private long seed;

    @Option(
            names = "--room",
            paramLabel = "X",
            description =
                    "Room of the index as a share of what the workers hold at most; below 1 answers"
                            + " are not checked. Default: 0.5 for index-limit, 1 for the others.")
    private Double room;

    @Option(
            names = "--passes",
            paramLabel = "N",
            defaultValue = "3",
            description =
                    "Passes over each stream; the least time of an event counts. Default:"
                            + " ${DEFAULT-VALUE}.")
    private int passes;

    @Option(
            names = "--limit-seconds",
            paramLabel = "S",
            defaultValue = "20",
            description =
                    "A pass ends after so long (replayed below 100 %%); 0 = never. Default:"
                            + " ${DEFAULT-VALUE}.")
    private double limitSeconds;

    @Option(
            names = "--warm-up-seconds",
            paramLabel = "S",
            defaultValue = "10",
            description = "Most time for the warm-up. Default: ${DEFAULT-VALUE}.")
    private double warmUpSeconds;

    @Option(
            names = "--keep",
            paramLabel = "DIR",
            description = "Keep the streams there, as NAME.kvops. Default: they are deleted.")
    private Path keep;

    @Override
    public Integer call() throws IOException, InterruptedException {
        final List<Cliff> cliffs = cliffs();
        final KvopsBench bench = measurement.bench(common);
        final List<KvopsResult> results = results(cliffs, bench);
        if (measurement.isJson()) {
            final ObjectNode root = Json.object();
            final ArrayNode all = root.putArray("cliffs");
            results.forEach(result -> all.add(BenchKvopsCommand.json(result)));
            Json.print(root, common.out());
        } else {
            print(results);
        }
        return results.stream().allMatch(result -> result.mismatches() == 0)
                ? ExitCode.OK
                : ExitCode.NEGATIVE;
    }

    private List<KvopsResult> results(List<Cliff> cliffs, KvopsBench bench)
            throws IOException, InterruptedException {
        if (keep != null) {
            if (!Files.isDirectory(keep)) {
                throw new CommandFailure("--keep " + keep + ": there is no such folder");
            }
            return results(cliffs, bench, keep);
        }
        try (TemporaryFolder folder = new TemporaryFolder("kvasir-cliffs")) {
            return results(cliffs, bench, folder.path());
        }
    }

    private List<KvopsResult> results(List<Cliff> cliffs, KvopsBench bench, Path folder)
            throws IOException, InterruptedException {
        final List<KvopsResult> results = new ArrayList<>();
        for (Cliff cliff : cliffs) {
            final Path stream = folder.resolve(cliff.label() + ".kvops");
            final ReplayPlan plan = plan(cliff, stream); // refuses options before the work
            cliff.write(stream, scale, seed);
            results.add(bench.run(plan));
            if (keep == null) {
                Files.deleteIfExists(stream); // all of them together may be large
            }
        }
        return results;
    }

    private List<Cliff> cliffs() {
        if (!(scale > 0) || scale > 1) {
            throw common.wrong("--scale " + scale + " is not within 0..1");
        }
        final List<Cliff> cliffs = new ArrayList<>();
        for (String name : names) {
            final Cliff cliff = Cliff.of(name);
            if (cliff == null) {
                throw common.wrong(
                        "no situation is named "
                                + name
                                + "; there are "
                                + Arrays.stream(Cliff.values())
                                        .map(Cliff::label)
                                        .collect(Collectors.joining(", ")));
            }
            cliffs.add(cliff);
        }
        return cliffs.isEmpty() ? List.of(Cliff.values()) : cliffs;
    }

    private ReplayPlan plan(Cliff cliff, Path stream) {
        return common.made(
                () ->
                        ReplayPlan.of(stream)
                                .withIndex(measurement.index())
                                .withMode(ReplayMode.EVENTS)
                                .withRoom(room == null ? cliff.room() : room)
                                .withShortPrompts(true)
                                .withPasses(passes)
                                .withLimit(limitSeconds)
                                .withWarmUpSeconds(warmUpSeconds));
    }

    private void print(List<KvopsResult> results) {
        final TextTable table =
                new TextTable(
                        "situation",
                        "events",
                        "p50 us",
                        "p99.99 us",
                        "max us",
                        "blocks",
                        "p99.99 over bound",
                        "share over bound",
                        "query mean us",
                        "bytes/pair",
                        "used",
                        "refused",
                        "wrong",
                        "replayed");
        for (KvopsResult result : results) {
            table.row(
                    result.plan().file().getFileName().toString().replaceFirst("\\.kvops$", ""),
                    text(result, Figure.EVENTS, "%,.0f"),
                    text(result, Figure.EVENT_P50_US, "%,.2f"),
                    text(result, Figure.EVENT_P9999_US, "%,.2f"),
                    text(result, Figure.EVENT_MAX_US, "%,.1f"),
                    text(result, Figure.EVENT_MAX_BLOCKS, "%,.0f"),
                    text(result, Figure.EVENT_P9999_OVER_BOUND_US, "%,.2f"),
                    text(result, Figure.EVENT_SHARE_OVER_BOUND, "%.6f"),
                    text(result, Figure.QUERY_MEAN_US, "%,.2f"),
                    text(result, Figure.BYTES_PER_PAIR, "%,.1f"),
                    text(result, Figure.USED_BYTES_PER_PAIR, "%,.1f"),
                    text(result, Figure.REFUSED_STORES, "%,.0f"),
                    result.isChecked() ? Long.toString(result.mismatches()) : "-",
                    String.format(
                            Locale.ROOT, "%.1f %%", 100 * result.median(Figure.REPLAYED_SHARE)));
        }
        table.print(common.out());
        common.out().flush();
    }

    private static String text(KvopsResult result, Figure figure, String format) {
        return result.figures().contains(figure)
                ? String.format(Locale.ROOT, format, result.median(figure))
                : "-";
    }
}

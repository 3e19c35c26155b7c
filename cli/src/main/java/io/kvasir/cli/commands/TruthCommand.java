package io.kvasir.cli.commands;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.ExitCode;
import io.kvasir.cli.console.Json;
import io.kvasir.cli.console.NamedFile;
import io.kvasir.cli.console.TextTable;
import io.kvasir.pipeline.source.RemovalRule;
import io.kvasir.pipeline.source.SourceStatus;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;

/** {@code kvasir truth}: the index against what a real engine said about its own cache. */
@Command(
        name = "truth",
        description = {
            "Check the index against a recording of a real engine.",
            "",
            "EVENTS holds the engine's event messages with a mark REQ i before request i, REQUESTS"
                + " what was asked and the cached_tokens that the engine reported. The index sees"
                + " the events and nothing else; at each mark it predicts min(matched blocks, (n -"
                + " 1) / block size) x block size for the n prompt tokens, which is compared with"
                + " the engine's figure.",
            ""
        },
        footer = {
            "",
            "Example:",
            "  kvasir truth golden.zcap golden.jsonl --block-size 32",
            "",
            "Exit codes: 0 every prediction exact and no message missing in between; 1 a prediction"
                + " differs, a message number is missing, or a request has no mark; 2 wrong command"
                + " line; 3 no such file or no such format."
        })
public final class TruthCommand implements Callable<Integer> {
    @Mixin private CommonOptions common;

    @Parameters(index = "0", paramLabel = "EVENTS", description = "Recorded messages, .zcap.")
    private Path events;

    @Parameters(
            index = "1",
            paramLabel = "REQUESTS",
            description = "Requests as JSON lines with i, prompt, cached_tokens.")
    private Path requests;

    @Option(
            names = "--block-size",
            paramLabel = "N",
            required = true,
            description = "The engine's tokens per block.")
    private int blockSize;

    @Option(
            names = "--removals",
            paramLabel = "RULE",
            defaultValue = "physical",
            description =
                    "What a removal means: physical (each copy is announced) or last-copy. Default:"
                            + " ${DEFAULT-VALUE}.")
    private String removals;

    @Option(
            names = "--lacks-last-block",
            description =
                    "The engine computes the last block of each hit anew, as vLLM does with EAGLE"
                            + " or MTP: a block less is predicted.")
    private boolean lacksLastBlock;

    @Option(
            names = "--show",
            paramLabel = "N",
            defaultValue = "10",
            description = "Differing requests to list. Default: ${DEFAULT-VALUE}.")
    private int show;

    @Option(names = "--json", description = "Print one JSON object instead of the table.")
    private boolean json;

    @Override
    public Integer call() {
        common.atLeast("--block-size", blockSize, 1);
        common.atLeast("--show", show, 0);
        final RemovalRule rule = rule();
        final Map<Integer, GoldenTrace.Request> asked =
                NamedFile.read("REQUESTS", requests, () -> GoldenTrace.read(requests));
        final TruthCheck.Result result =
                NamedFile.read(
                        "EVENTS",
                        events,
                        () -> TruthCheck.run(events, asked, blockSize, rule, lacksLastBlock));
        if (json) {
            printJson(result);
        } else {
            printTable(result);
        }
        return result.passed() ? ExitCode.OK : ExitCode.NEGATIVE;
    }

    private RemovalRule rule() {
        return switch (removals) {
            case "physical" -> RemovalRule.PHYSICAL;
            case "last-copy" -> RemovalRule.LAST_COPY;
            default ->
                    throw common.wrong("--removals " + removals + " must be physical or last-copy");
        };
    }

    private void printTable(TruthCheck.Result result) {
        final PrintWriter out = common.out();
        final SourceStatus source = result.source();
        new TextTable("requests", "exact", "over", "under", "without mark")
                .row(
                        Integer.toString(result.requests()),
                        Integer.toString(result.exact()),
                        Integer.toString(result.over()),
                        Integer.toString(result.under()),
                        Integer.toString(result.unmarked().size()))
                .print(out);
        out.println(
                "events: "
                        + source.messages()
                        + " messages, "
                        + source.events()
                        + " events, "
                        + source.applied()
                        + " operations applied, dropped "
                        + dropped(source));
        out.println("gaps: " + result.gaps() + ", missing messages: " + source.lostMessages());
        if (result.missingAtStart() > 0) {
            out.println(
                    "gap at the start: the first message is number "
                            + result.missingAtStart()
                            + " (some engines number their data from 1)");
        }
        if (!source.problem().isEmpty()) {
            out.println("problem: " + source.problem());
        }
        differences(result.differences(), out);
        out.flush();
    }

    private void differences(List<TruthCheck.Difference> differences, PrintWriter out) {
        if (differences.isEmpty()) {
            return;
        }
        out.println();
        final TextTable table =
                new TextTable("request", "prompt tokens", "predicted", "cached", "difference");
        for (TruthCheck.Difference d : differences.subList(0, Math.min(show, differences.size()))) {
            table.row(
                    Integer.toString(d.request()),
                    Integer.toString(d.promptTokens()),
                    Integer.toString(d.predicted()),
                    Integer.toString(d.cached()),
                    Integer.toString(d.predicted() - d.cached()));
        }
        table.print(out);
        if (differences.size() > show) {
            out.println("and " + (differences.size() - show) + " more; --show N lists more");
        }
    }

    private static Map<String, Long> dropped(SourceStatus source) {
        return new TreeMap<>(source.drops());
    }

    private void printJson(TruthCheck.Result result) {
        final SourceStatus source = result.source();
        final ObjectNode root = Json.object();
        root.put("requests", result.requests())
                .put("exact", result.exact())
                .put("over", result.over())
                .put("under", result.under())
                .put("unmarked", result.unmarked().size())
                .put("passed", result.passed())
                .put("messages", source.messages())
                .put("events", source.events())
                .put("applied", source.applied())
                .put("blocks_stored", source.blocksStored())
                .put("blocks_removed", source.blocksRemoved())
                .put("unknown_parents", source.unknownParents())
                .put("unknown_removals", source.unknownRemovals());
        final ObjectNode drops = root.putObject("dropped");
        dropped(source).forEach(drops::put);
        root.put("gaps", result.gaps())
                .put("lost_messages", source.lostMessages())
                .put("missing_at_start", result.missingAtStart())
                .put("problem", source.problem());
        final ArrayNode differing = root.putArray("differing");
        for (TruthCheck.Difference d : result.differences()) {
            differing
                    .addObject()
                    .put("i", d.request())
                    .put("prompt_tokens", d.promptTokens())
                    .put("predicted", d.predicted())
                    .put("cached_tokens", d.cached());
        }
        Json.print(root, common.out());
    }
}

package io.kvasir.cli.commands;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.ExitCode;
import io.kvasir.cli.console.Json;
import io.kvasir.cli.console.Terminal;
import io.kvasir.core.counters.CountersReader;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Instant;
import java.util.Locale;
import java.util.concurrent.Callable;

/** {@code kvasir stat}: counters and errors of a router in another process, running or ended. */
@Command(
        name = "stat",
        description = {
            "Show the counters and errors that a router keeps in a folder (counters-dir).",
            "",
            "They are read from the router's memory-mapped file: it is not asked and not slowed"
                + " down, and what it had counted is there after it has died. A line per counter:"
                + " number, value, name.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir serve --counters-dir /dev/shm/kvasir --worker http://127.0.0.1:9000 --model"
                    + " m",
            "  kvasir stat --dir /dev/shm/kvasir",
            "  kvasir stat --dir /dev/shm/kvasir --watch 1 refused",
            "",
            "Exit codes: 0 shown; 1 shown, and the router has ended or sets no values any more; 2,"
                    + " 3 as ever; --watch ends by ctrl-C, and with 3 when its output takes no"
                    + " more."
        })
public final class StatCommand implements Callable<Integer> {
    /** A router sets its values five times a second. */
    private static final long DEAD_AFTER_MS = 5_000;

    private static final double SECOND_MS = 1_000;

    @Mixin private CommonOptions common;

    @Mixin private ShowOptions show;

    @Option(
            names = "--dir",
            paramLabel = "D",
            required = true,
            description = "Folder of the counters: the router's counters-dir.")
    private Path folder;

    @Option(names = "--errors", description = "Show each distinct error with its stack trace.")
    private boolean errors;

    @Parameters(
            arity = "0..1",
            paramLabel = "TEXT",
            description = "Show only counters with this text in their names.")
    private String part = "";

    @Override
    public Integer call() throws IOException, InterruptedException {
        return show.repeat(common, 0, this::show);
    }

    /** Opens the file each time: a router that is started again makes another. */
    private int show() throws IOException {
        try (CountersReader reader = CountersReader.open(folder)) {
            final long nowMs = Clock.systemUTC().millis();
            if (show.json()) {
                printJson(reader);
            } else {
                printLines(reader, nowMs);
            }
            return lives(reader, nowMs) ? ExitCode.OK : ExitCode.NEGATIVE;
        }
    }

    /** Values of a time to come were set before the clock went back, and none since. */
    private static boolean lives(CountersReader reader, long nowMs) {
        return !reader.isClosed() && Math.abs(nowMs - reader.writtenMs()) < DEAD_AFTER_MS;
    }

    private void printLines(CountersReader reader, long nowMs) {
        final PrintWriter out = common.out();
        out.println(
                String.format(
                        Locale.ROOT,
                        "process %d, since %s: %s, values of %.1f s ago",
                        reader.processId(),
                        Instant.ofEpochMilli(reader.startedMs()),
                        state(reader, nowMs),
                        (nowMs - reader.writtenMs()) / SECOND_MS));
        reader.counters(
                (counter, type, label, value) -> {
                    if (label.contains(part)) {
                        out.println(
                                String.format(
                                        Locale.ROOT,
                                        "%5d: %,20d - %s",
                                        counter,
                                        value,
                                        Terminal.printable(label)));
                    }
                });
        printErrors(reader, out);
        out.flush();
    }

    private static String state(CountersReader reader, long nowMs) {
        if (reader.isClosed()) {
            return "ended";
        }
        return lives(reader, nowMs) ? "running" : "sets no values any more";
    }

    private void printErrors(CountersReader reader, PrintWriter out) {
        final int[] kinds = {0};
        reader.errors(
                (count, firstMs, lastMs, text) -> {
                    kinds[0]++;
                    if (errors) {
                        out.println();
                        out.println(
                                count
                                        + " times, from "
                                        + Instant.ofEpochMilli(firstMs)
                                        + " to "
                                        + Instant.ofEpochMilli(lastMs)
                                        + ":");
                        text.lines().forEach(line -> out.println(Terminal.printable(line)));
                    }
                });
        out.println(kinds[0] + " distinct errors" + (errors || kinds[0] == 0 ? "" : " (--errors)"));
    }

    private void printJson(CountersReader reader) {
        final ObjectNode root = Json.object();
        root.put("process", reader.processId())
                .put("started_ms", reader.startedMs())
                .put("written_ms", reader.writtenMs())
                .put("ended", reader.isClosed());
        final ArrayNode counters = root.putArray("counters");
        reader.counters(
                (counter, type, label, value) -> {
                    if (label.contains(part)) {
                        counters.addObject()
                                .put("id", counter)
                                .put("type", type)
                                .put("label", label)
                                .put("value", value);
                    }
                });
        final ArrayNode kinds = root.putArray("errors");
        reader.errors(
                (count, firstMs, lastMs, text) ->
                        kinds.addObject()
                                .put("count", count)
                                .put("first_ms", firstMs)
                                .put("last_ms", lastMs)
                                .put("text", text));
        Json.print(root, common.out());
    }
}

package io.kvasir.cli.commands;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.CommandFailure;
import io.kvasir.cli.console.ExitCode;
import io.kvasir.cli.console.Json;
import io.kvasir.cli.console.NamedFile;
import io.kvasir.cli.console.TextTable;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.router.journal.DecisionJournal;
import io.kvasir.router.journal.JournalFile;
import io.kvasir.router.journal.JournalRecord;
import io.kvasir.router.journal.WhatIf;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Settings;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SequencedMap;

/** {@code kvasir replay --journal}: what other settings would have chosen, decision by decision. */
final class JournalReplay {
    private static final List<Double> WEIGHTS = List.of(0.0, 0.5, 1.0, 2.0, 4.0);
    private static final double PERCENT = 100;

    private final Path file;
    private final Path configOrNull;
    private final SequencedMap<String, WhatIf> policies = new LinkedHashMap<>();

    JournalReplay(Path file, Path configOrNull) {
        this.file = file;
        this.configOrNull = configOrNull;
    }

    /**
     * Judges and prints.
     *
     * @throws CommandFailure if there is no such journal, or nothing in it, or the configuration
     *     cannot be read
     */
    int run(PrintWriter out, boolean json) {
        final WhatIf.Policy given =
                configOrNull == null
                        ? null
                        : NamedFile.read("--config", configOrNull, this::ofConfig);
        final WhatIf recorded = NamedFile.read("--journal", file, () -> judge(given));
        if (json) {
            printJson(out);
        } else {
            print(recorded, out);
        }
        return ExitCode.OK;
    }

    /** Lets every policy judge the decisions of the journal; gives the one that made them. */
    private WhatIf judge(WhatIf.Policy givenOrNull) throws IOException {
        try (DecisionJournal journal = JournalFile.open(file)) {
            addPolicies(givenOrNull, journal.blockSize());
            final JournalRecord record = journal.newRecord();
            final long end = journal.end();
            for (long n = Math.max(0, end - journal.records()); n < end; n++) {
                if (journal.read(n, record)) {
                    policies.values().forEach(policy -> policy.add(record));
                }
            }
        }
        final WhatIf recorded = policies.firstEntry().getValue();
        if (recorded.decisions() == 0) {
            throw new CommandFailure("no decision is in it");
        }
        return recorded;
    }

    private void addPolicies(WhatIf.Policy givenOrNull, int blockSize) {
        policies.put("recorded", new WhatIf(WhatIf.recorded(), blockSize));
        if (givenOrNull != null) {
            policies.put(configOrNull.toString(), new WhatIf(givenOrNull, blockSize));
            return;
        }
        for (double weight : WEIGHTS) {
            policies.put("kv, weight " + weight, new WhatIf(WhatIf.linear(weight), blockSize));
        }
        policies.put("least-connections", new WhatIf(WhatIf.leastConnections(), blockSize));
    }

    private WhatIf.Policy ofConfig() throws IOException {
        final Settings settings =
                GatewayConfig.builder()
                        .setDefault(GatewaySettings.MODEL, SimModel.NAME) // of no effect here
                        .file(configOrNull)
                        .build()
                        .settings();
        final RoutingMode mode = settings.get(RouterSettings.MODE);
        return switch (mode) {
            case KV -> WhatIf.linear(settings.get(RouterSettings.OVERLAP_WEIGHT));
            case LEAST_CONNECTIONS -> WhatIf.leastConnections();
            default ->
                    throw new CommandFailure(
                            "mode "
                                    + mode.spelling()
                                    + " cannot be judged by a journal; kv and least-connections"
                                    + " can");
        };
    }

    private void print(WhatIf recorded, PrintWriter out) {
        final TextTable table =
                new TextTable(
                        "policy",
                        "other choices",
                        "cache hits",
                        "blocks to prefill",
                        "blocks in use",
                        "spread",
                        "mean TTFT ms");
        for (Map.Entry<String, WhatIf> entry : policies.entrySet()) {
            final WhatIf policy = entry.getValue();
            table.row(
                    entry.getKey(),
                    format("%.1f %%", PERCENT * policy.changed() / policy.decisions()),
                    format("%.1f %%", PERCENT * policy.hitRate()),
                    format("%.1f", policy.meanPrefillBlocks()),
                    format("%.1f", policy.meanDecodeBlocks()),
                    format("%.2f", policy.spread()),
                    format("%.1f", 1e3 * policy.meanFirstTokenSeconds()));
        }
        out.println();
        table.print(out);
        out.println();
        out.println(
                recorded.decisions()
                        + " decisions, each judged by itself, with the loads and caches that the"
                        + " recorded ones have led to.");
        if (recorded.incomplete() > 0) {
            out.println(
                    recorded.incomplete()
                            + " of them list some candidates only"
                            + " (decision-journal-candidates): others could have won.");
        }
        out.flush();
    }

    private void printJson(PrintWriter out) {
        final ObjectNode root = Json.object();
        root.put("command", "replay").put("journal", file.toString());
        final ArrayNode list = root.putArray("policies");
        for (Map.Entry<String, WhatIf> entry : policies.entrySet()) {
            final WhatIf policy = entry.getValue();
            final ObjectNode item =
                    list.addObject()
                            .put("policy", entry.getKey())
                            .put("decisions", policy.decisions())
                            .put("changed", policy.changed())
                            .put("incomplete", policy.incomplete());
            number(item, "hit_rate", policy.hitRate());
            number(item, "prefill_blocks", policy.meanPrefillBlocks());
            number(item, "decode_blocks", policy.meanDecodeBlocks());
            number(item, "spread", policy.spread());
            number(item, "ttft_ms", 1e3 * policy.meanFirstTokenSeconds());
        }
        Json.print(root, out);
    }

    private static void number(ObjectNode json, String name, double value) {
        if (Double.isNaN(value)) {
            json.putNull(name);
        } else {
            json.put(name, value);
        }
    }

    private static String format(String format, double value) {
        return Double.isNaN(value) ? "-" : String.format(Locale.ROOT, format, value);
    }
}

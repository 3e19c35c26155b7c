package io.kvasir.cli.commands;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** {@code kvasir bench}: the benchmark kit's commands. */
@Command(
        name = "bench",
        description = {
            "Measure the index on op streams (KVOPS), and make such streams from request traces.",
            "",
            "JMH suites and the report with its latency curves are started by bench/run.",
            ""
        },
        subcommands = {
            BenchKvopsCommand.class,
            BenchCliffsCommand.class,
            BenchGenerateCommand.class
        },
        synopsisSubcommandLabel = "COMMAND",
        footer = {
            "",
            "Examples:",
            "  kvasir bench generate --trace conversation_trace.jsonl --out w64.kvops --workers 64",
            "  kvasir bench kvops w64.kvops --forks 3 --json",
            "  kvasir bench cliffs",
            "",
            "Exit codes: 0 measured, every answer right; 1 wrong answers; 2 wrong command line; 3"
                    + " no such file, no such format, could not measure."
        })
public final class BenchCommand implements Runnable {
    @Mixin private CommonOptions common;

    @Override
    public void run() {
        throw common.wrong("no command given");
    }
}

package io.kvasir.cli.commands;

import io.kvasir.cli.console.ExitCode;
import io.kvasir.cli.console.NamedFile;
import io.kvasir.cli.console.UnfinishedFile;
import io.kvasir.cli.load.MooncakeTrace;
import io.kvasir.opstreams.cliffs.Cliff;
import io.kvasir.opstreams.generate.GeneratorOptions;
import io.kvasir.opstreams.generate.MultiTurnOptions;
import io.kvasir.opstreams.generate.MultiTurnStream;
import io.kvasir.opstreams.generate.StreamGenerator;
import io.kvasir.opstreams.generate.TraceRequest;
import io.kvasir.opstreams.kvops.KvopsHeader;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;

/** {@code kvasir bench generate}: an op stream from a trace, conversations or a situation. */
@Command(
        name = "generate",
        description = {
            "Make an op stream (KVOPS) from a request trace in Mooncake's format, from"
                + " conversations that are made up (--multi-turn), or for a situation in which an"
                + " index may stall (--cliff).",
            "",
            "The requests are played through simulated workers with least-recently-used block"
                + " caches. The stream holds what a router would get from them (stored, removed)"
                + " and ask (a query per request, with the checksum of its exact answer), and the"
                + " life of each request. Equal options give equal bytes.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir bench generate --trace conversation_trace.jsonl --out conv16_w64.kvops"
                    + " --workers 64 --capacity 16384 --speedup 4",
            "  kvasir bench generate --trace conversation_trace.jsonl --out small.kvops --workers 4"
                    + " --capacity 2048 --limit 200 --salted",
            "  kvasir bench generate --multi-turn --hit-rate 0.8 --out mt_08_w64.kvops",
            "  kvasir bench generate --cliff branch-churn --out branches.kvops",
            "",
            "Exit codes: 0 written; 2 wrong command line; 3 no such file, bad trace, could not"
                    + " write."
        })
final class BenchGenerateCommand implements Callable<Integer> {
    @Mixin private CommonOptions common;

    @Option(names = "--trace", paramLabel = "FILE", description = "Trace file, JSON lines.")
    private Path trace;

    @Option(names = "--multi-turn", description = "Make up conversations instead of a trace.")
    private boolean multiTurn;

    @Option(
            names = "--cliff",
            paramLabel = "NAME",
            description = "A situation of bench cliffs; only --out, --seed and --scale count then.")
    private String cliff;

    @Option(
            names = "--scale",
            paramLabel = "X",
            defaultValue = "1",
            description = "--cliff: its size, 0..1. Default: ${DEFAULT-VALUE}.")
    private double scale;

    @Option(
            names = "--hit-rate",
            paramLabel = "X",
            description =
                    "--multi-turn: share of all prompts' blocks that the chosen workers hold;"
                            + " requests that share nothing are mixed in until it is near. The rate"
                            + " that was reached is printed, with a warning where it is more than "
                            + MultiTurnStream.NEAR
                            + " off. Default: conversations only.")
    private Double hitRate;

    @Option(
            names = "--requests",
            paramLabel = "N",
            defaultValue = "12000",
            description = "--multi-turn: requests. Default: ${DEFAULT-VALUE}.")
    private int requests;

    @Option(
            names = "--turns",
            paramLabel = "X",
            description =
                    "--multi-turn: turns of a conversation on average. Default: 4, or 1.6 / (1 -"
                            + " hit rate).")
    private Double turns;

    @Option(
            names = "--system-prompts",
            paramLabel = "N",
            defaultValue = "32",
            description = "--multi-turn: system prompts. Default: ${DEFAULT-VALUE}.")
    private int systemPrompts;

    @Option(
            names = "--system-blocks",
            paramLabel = "N",
            defaultValue = "200",
            description =
                    "--multi-turn: blocks of a system prompt on average. Default:"
                            + " ${DEFAULT-VALUE}.")
    private int systemBlocks;

    @Option(
            names = "--prompt-blocks",
            paramLabel = "N",
            defaultValue = "960",
            description =
                    "--multi-turn: blocks of a whole prompt on average; what users write follows"
                            + " from it. Default: ${DEFAULT-VALUE}.")
    private int promptBlocks;

    @Option(
            names = "--answer-blocks",
            paramLabel = "N",
            defaultValue = "24",
            description =
                    "--multi-turn: blocks of an answer on average. Default: ${DEFAULT-VALUE}.")
    private int answerBlocks;

    @Option(
            names = "--branch",
            paramLabel = "X",
            defaultValue = "0.1",
            description =
                    "--multi-turn: share of later turns that ask the same again or change an"
                            + " earlier turn. Default: ${DEFAULT-VALUE}.")
    private double branch;

    @Option(
            names = "--rate",
            paramLabel = "X",
            defaultValue = "4",
            description = "--multi-turn: requests per second. Default: ${DEFAULT-VALUE}.")
    private double rate;

    @Option(
            names = "--think-seconds",
            paramLabel = "S",
            defaultValue = "10",
            description =
                    "--multi-turn: time between an answer and the next turn on average. Default:"
                            + " ${DEFAULT-VALUE}.")
    private double thinkSeconds;

    @Option(
            names = "--out",
            paramLabel = "FILE",
            required = true,
            description = "Stream to create or overwrite.")
    private Path out;

    @Option(
            names = "--workers",
            paramLabel = "N",
            defaultValue = "64",
            description = "Simulated workers. Default: ${DEFAULT-VALUE}.")
    private int workers;

    @Option(
            names = "--capacity",
            paramLabel = "N",
            defaultValue = "16384",
            description = "Blocks in each worker's cache. Default: ${DEFAULT-VALUE}.")
    private int capacity;

    @Option(
            names = "--block",
            paramLabel = "N",
            defaultValue = "16",
            description = "Tokens per block. Default: ${DEFAULT-VALUE}.")
    private int block;

    @Option(
            names = "--trace-block",
            paramLabel = "N",
            defaultValue = "512",
            description = "Tokens per hash id of the trace. Default: ${DEFAULT-VALUE}.")
    private int traceBlock;

    @Option(
            names = "--dup",
            paramLabel = "N",
            defaultValue = "1",
            description =
                    "Copies of the trace with hashes of their own, 977 ms apart. Default:"
                            + " ${DEFAULT-VALUE}.")
    private int copies;

    @Option(
            names = "--speedup",
            paramLabel = "X",
            defaultValue = "1",
            description = "Trace time / stream time. Default: ${DEFAULT-VALUE}.")
    private double speedUp;

    @Option(
            names = "--limit",
            paramLabel = "N",
            defaultValue = "1000000000",
            description = "Requests to take from the trace's start. Default: all.")
    private int limit;

    @Option(
            names = "--ts-us",
            paramLabel = "US",
            defaultValue = "1000",
            description =
                    "Microseconds per unit of the trace's timestamps. Default: ${DEFAULT-VALUE}.")
    private double timestampUs;

    @Option(
            names = "--prefill-rate",
            paramLabel = "T/S",
            defaultValue = "20000",
            description = "Prompt tokens a worker computes per second. Default: ${DEFAULT-VALUE}.")
    private double prefillRate;

    @Option(
            names = "--itl-ms",
            paramLabel = "MS",
            defaultValue = "15",
            description = "Time between two tokens of an answer. Default: ${DEFAULT-VALUE}.")
    private double interTokenMs;

    @Option(
            names = "--chunk-tokens",
            paramLabel = "N",
            defaultValue = "8192",
            description =
                    "Prompt tokens computed, and stored, at a time. Default: ${DEFAULT-VALUE}.")
    private int chunkTokens;

    @Option(
            names = "--decode",
            paramLabel = "0|1",
            defaultValue = "1",
            description = "Whether output blocks are stored too. Default: ${DEFAULT-VALUE}.")
    private int decode;

    @Option(
            names = "--overlap-weight",
            paramLabel = "W",
            defaultValue = "1",
            description =
                    "Weight of a block to compute against a block in use. Default:"
                            + " ${DEFAULT-VALUE}.")
    private double overlapWeight;

    @Option(
            names = "--seed",
            paramLabel = "N",
            defaultValue = "42",
            description = "Of the hashes and of ties. Default: ${DEFAULT-VALUE}.")
    private long seed;

    @Option(
            names = "--salted",
            description =
                    "Every worker names blocks its own way, as engines without a shared seed do.")
    private boolean salted;

    @Override
    public Integer call() {
        if ((trace == null ? 0 : 1) + (multiTurn ? 1 : 0) + (cliff == null ? 0 : 1) != 1) {
            throw common.wrong("one of --trace FILE, --multi-turn and --cliff NAME is needed");
        }
        if (cliff != null) {
            print(cliffStream());
        } else if (multiTurn) {
            final MultiTurnStream.Result result = multiTurnStream();
            print(result.made());
            common.out()
                    .println(
                            String.format(
                                    Locale.ROOT,
                                    "conversations of %.1f turns, prompts of %.0f blocks on"
                                            + " average, %.3f of the requests share nothing",
                                    result.options().turns(),
                                    (double) result.made().header().queryBlocks()
                                            / result.made().header().queries(),
                                    result.options().cold()));
            if (hitRate != null) {
                sayHitRate(result);
            }
            common.out().flush();
        } else {
            if (NamedFile.isSame(trace, out)) {
                throw common.wrong("--out " + out + " is the file of --trace");
            }
            final GeneratorOptions options = options(traceBlock);
            final List<TraceRequest> read = traceRequests();
            final StreamGenerator.Summary made =
                    common.made(
                            () -> written(file -> StreamGenerator.generate(read, options, file)));
            print(made);
        }
        return ExitCode.OK;
    }

    private void sayHitRate(MultiTurnStream.Result result) {
        final String reached = String.format(Locale.ROOT, "%.4f", result.made().hitRatio());
        common.out().println("hit rate " + hitRate + " asked for, " + reached + " reached");
        if (result.isNear(hitRate)) {
            return;
        }
        common.err()
                .println(
                        "warning: --hit-rate "
                                + hitRate
                                + " was not reached: "
                                + reached
                                + (result.options().cold() == 0
                                        ? ", conversations alone have no more hits; more --turns or"
                                                + " a larger --capacity give more"
                                        : ", the last stream that was tried; more --requests come"
                                                + " nearer"));
        common.err().flush();
    }

    private List<TraceRequest> traceRequests() {
        return NamedFile.read("--trace", trace, () -> MooncakeTrace.read(trace, limit, traceBlock))
                .stream()
                .map(
                        r ->
                                new TraceRequest(
                                        r.timestampMs(),
                                        r.inputLength(),
                                        r.outputLength(),
                                        r.hashIds()))
                .toList();
    }

    private KvopsHeader cliffStream() {
        final Cliff chosen = Cliff.of(cliff);
        if (chosen == null) {
            throw common.wrong("no situation is named " + cliff + "; bench cliffs --help has all");
        }
        return common.made("--", () -> written(file -> chosen.write(file, scale, seed)));
    }

    private MultiTurnStream.Result multiTurnStream() {
        if (hitRate != null && !(hitRate > 0 && hitRate < 1)) {
            throw common.wrong("--hit-rate " + hitRate + " is not between 0 and 1");
        }
        common.within("--block", block, 1, MultiTurnStream.MOST_BLOCK_TOKENS);
        final GeneratorOptions generator = options(block);
        final MultiTurnOptions conversations = common.made("--", this::conversations);
        return common.made(() -> written(file -> stream(conversations, generator, file)));
    }

    private MultiTurnStream.Result stream(
            MultiTurnOptions conversations, GeneratorOptions generator, Path file)
            throws IOException {
        return hitRate == null
                ? MultiTurnStream.generate(conversations, generator, file)
                : MultiTurnStream.generate(conversations, hitRate, generator, file);
    }

    /** What makes a stream in a file. */
    @FunctionalInterface
    private interface Writing<T> {
        T into(Path file) throws IOException;
    }

    private <T> T written(Writing<T> work) {
        return NamedFile.write(
                "--out",
                out,
                () -> {
                    try (UnfinishedFile file = new UnfinishedFile(out)) {
                        final T result = work.into(file.path());
                        file.finish();
                        return result;
                    }
                });
    }

    private MultiTurnOptions conversations() {
        final double defaultTurns =
                hitRate == null
                        ? MultiTurnOptions.defaults().turns()
                        : MultiTurnOptions.turnsFor(hitRate);
        return new MultiTurnOptions(
                requests,
                turns == null ? defaultTurns : turns,
                systemPrompts,
                systemBlocks,
                promptBlocks,
                answerBlocks,
                branch,
                0,
                rate,
                thinkSeconds,
                seed);
    }

    private GeneratorOptions options(int hashIdTokens) {
        if (decode != 0 && decode != 1) {
            throw common.wrong("--decode " + decode + " must be 0 or 1");
        }
        common.atLeast("--limit", limit, 1);
        return common.made(
                "--",
                () ->
                        new GeneratorOptions(
                                workers,
                                capacity,
                                block,
                                hashIdTokens,
                                copies,
                                speedUp,
                                timestampUs,
                                prefillRate,
                                interTokenMs,
                                chunkTokens,
                                decode == 1,
                                overlapWeight,
                                seed,
                                salted));
    }

    private void print(KvopsHeader header) {
        final PrintWriter text = common.out();
        text.println(
                out
                        + ": "
                        + header.records()
                        + " records, "
                        + header.queries()
                        + " queries of "
                        + header.queryBlocks()
                        + " blocks, "
                        + header.storedBlocks()
                        + " blocks stored, "
                        + header.removedBlocks()
                        + " removed");
        text.flush();
    }

    private void print(StreamGenerator.Summary made) {
        print(made.header());
        final PrintWriter text = common.out();
        text.println(
                String.format(
                        Locale.ROOT,
                        "prefix hit ratio %.4f, held at the end: %d (worker, block) pairs, %d"
                                + " distinct blocks; overcommitted %d times",
                        made.hitRatio(),
                        made.livePairs(),
                        made.liveBlocks(),
                        made.overcommitted()));
        text.flush();
    }
}

package io.kvasir.cli;

import io.kvasir.bench.generate.GeneratorOptions;
import io.kvasir.bench.generate.StreamGenerator;
import io.kvasir.bench.generate.TraceRequest;
import io.kvasir.bench.kvops.KvopsHeader;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;

/** {@code kvasir bench generate}: an op stream from a request trace. */
@Command(
        name = "generate",
        description = {
            "Make an op stream (KVOPS) from a request trace in Mooncake's format.",
            "",
            "The trace is played through simulated workers with least-recently-used block caches."
                + " The stream holds what a router would hear from them (stored, removed) and ask"
                + " (a query per request, with the checksum of its exact answer), and the life of"
                + " each request. Equal options give equal bytes.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir bench generate --trace conversation_trace.jsonl --out conv16_w64.kvops"
                    + " --workers 64 --capacity 16384 --speedup 4",
            "  kvasir bench generate --trace conversation_trace.jsonl --out small.kvops --workers 4"
                    + " --capacity 2048 --limit 200 --salted",
            "",
            "Exit codes: 0 written; 2 wrong command line; 3 no such file, bad trace, could not"
                    + " write."
        })
final class BenchGenerateCommand implements Callable<Integer> {
    @Mixin private CommonOptions common;

    @Option(
            names = "--trace",
            paramLabel = "FILE",
            required = true,
            description = "Trace file, JSON lines.")
    private Path trace;

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
            description = "Every worker names blocks its own way, as engines without a shared seed")
    private boolean salted;

    @Override
    public Integer call() throws IOException {
        final GeneratorOptions options = options();
        final List<TraceRequest> requests =
                MooncakeTrace.read(trace, limit, traceBlock).stream()
                        .map(
                                r ->
                                        new TraceRequest(
                                                r.timestampMs(),
                                                r.inputLength(),
                                                r.outputLength(),
                                                r.hashIds()))
                        .toList();
        print(StreamGenerator.generate(requests, options, out));
        return ExitCode.OK;
    }

    private GeneratorOptions options() {
        if (decode != 0 && decode != 1) {
            throw common.wrong("--decode " + decode + " must be 0 or 1");
        }
        if (limit < 1) {
            throw common.wrong("--limit " + limit + " is not a positive number");
        }
        try {
            return new GeneratorOptions(
                    workers,
                    capacity,
                    block,
                    traceBlock,
                    copies,
                    speedUp,
                    timestampUs,
                    prefillRate,
                    interTokenMs,
                    chunkTokens,
                    decode == 1,
                    overlapWeight,
                    seed,
                    salted);
        } catch (IllegalArgumentException e) {
            throw common.wrong("--" + e.getMessage());
        }
    }

    private void print(StreamGenerator.Summary made) {
        final KvopsHeader header = made.header();
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

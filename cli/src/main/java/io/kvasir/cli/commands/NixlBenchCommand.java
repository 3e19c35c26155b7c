package io.kvasir.cli.commands;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.ExitCode;
import io.kvasir.cli.console.Json;
import io.kvasir.cli.console.TextTable;
import io.kvasir.nixl.probe.TransferEnd;
import io.kvasir.nixl.probe.TransferPeer;
import io.kvasir.nixl.probe.TransferSweep;
import io.kvasir.nixl.transport.KvTransport.Operation;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;

/** {@code kvasir nixl bench}: transfers between two processes, block size by block count. */
@Command(
        name = "bench",
        description = {
            "Measure transfers between two processes of this machine.",
            "",
            "Each request names its blocks in an order in which no two are neighbours, as in a real"
                    + " pool. p50 and p99 go from making the request to its end; over CMA the whole"
                    + " copy happens inside the post.",
            ""
        })
final class NixlBenchCommand implements Callable<Integer> {
    private static final double NS_PER_US = TimeUnit.MICROSECONDS.toNanos(1);
    private static final double BYTES_PER_GB = 1e9;

    @Mixin private CommonOptions common;

    @Option(
            names = "--transport",
            paramLabel = "T",
            description = "nixl or loopback (shared memory). Default: nixl where it is usable.")
    private TransferEnd.Kind kind;

    @Option(
            names = "--operation",
            paramLabel = "OP",
            defaultValue = "read",
            description = "read (pull) or write (push). Default: ${DEFAULT-VALUE}.")
    private Operation operation;

    @Option(
            names = "--block-bytes",
            paramLabel = "N",
            split = ",",
            defaultValue = "16384,131072,1048576",
            description = "Bytes of a block. Default: ${DEFAULT-VALUE}.")
    private List<Long> blockBytes;

    @Option(
            names = "--blocks",
            paramLabel = "N",
            split = ",",
            defaultValue = "1,8,64,512",
            description = "Blocks of a request. Default: ${DEFAULT-VALUE}.")
    private List<Integer> blocks;

    @Option(
            names = "--max-bytes",
            paramLabel = "N",
            defaultValue = "67108864",
            description = "Leave larger requests out. Default: ${DEFAULT-VALUE}.")
    private long maxBytes;

    @Option(
            names = "--millis",
            paramLabel = "N",
            defaultValue = "200",
            description = "Time for each size. Default: ${DEFAULT-VALUE}.")
    private long millis;

    @Option(names = "--json", description = "Print one JSON object instead of the table.")
    private boolean json;

    @Override
    public Integer call() throws IOException {
        if (blockBytes.stream().anyMatch(n -> n < 1)
                || blocks.stream().anyMatch(n -> n < 1)
                || millis < 1
                || maxBytes < 1) {
            throw common.wrong(
                    "--block-bytes, --blocks, --max-bytes and --millis are numbers above 0");
        }
        final TransferEnd.Kind chosen = kind == null ? TransferEnd.best() : kind;
        final List<TransferSweep.Result> results = new ArrayList<>();
        try (TransferEnd own = TransferEnd.open(chosen, maxBytes);
                TransferPeer peer = TransferPeer.start(chosen, maxBytes)) {
            final TransferSweep sweep =
                    new TransferSweep(own, peer, operation, TimeUnit.MILLISECONDS.toNanos(millis));
            for (long length : blockBytes) {
                for (int count : blocks) {
                    if (length <= maxBytes / count) {
                        results.add(sweep.measure(length, count));
                    }
                }
            }
        }
        if (json) {
            printJson(chosen, results);
        } else {
            printTable(chosen, results);
        }
        return ExitCode.OK;
    }

    private void printTable(TransferEnd.Kind chosen, List<TransferSweep.Result> results) {
        final TextTable table =
                new TextTable(
                        spelling(chosen) + " " + spelling(operation),
                        "blocks",
                        "post p50 us",
                        "p50 us",
                        "p99 us",
                        "GB/s");
        for (TransferSweep.Result result : results) {
            table.row(
                    result.blockBytes() + " B",
                    Integer.toString(result.blocks()),
                    number(result.postP50Ns() / NS_PER_US),
                    number(result.p50Ns() / NS_PER_US),
                    number(result.p99Ns() / NS_PER_US),
                    number(result.bytesPerSecond() / BYTES_PER_GB));
        }
        table.print(common.out());
        common.out().flush();
    }

    private static String spelling(Enum<?> value) {
        return value.name().toLowerCase(Locale.ROOT);
    }

    private static String number(double value) {
        return String.format(Locale.ROOT, "%.2f", value);
    }

    private void printJson(TransferEnd.Kind chosen, List<TransferSweep.Result> results) {
        final ObjectNode root = Json.object();
        root.put("transport", spelling(chosen));
        root.put("operation", spelling(operation));
        final ArrayNode sizes = root.putArray("sizes");
        for (TransferSweep.Result result : results) {
            sizes.addObject()
                    .put("block_bytes", result.blockBytes())
                    .put("blocks", result.blocks())
                    .put("requests", result.requests())
                    .put("post_p50_us", result.postP50Ns() / NS_PER_US)
                    .put("p50_us", result.p50Ns() / NS_PER_US)
                    .put("p99_us", result.p99Ns() / NS_PER_US)
                    .put("gb_per_s", result.bytesPerSecond() / BYTES_PER_GB);
        }
        Json.print(root, common.out());
    }
}

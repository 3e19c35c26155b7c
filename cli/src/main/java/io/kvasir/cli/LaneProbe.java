package io.kvasir.cli;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.bench.transfer.TransferEnd;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.regex.Pattern;

/**
 * Measures a short transfer in processes of its own, with UCX told to print how it goes about it.
 * Whatever happens to them, the caller lives.
 */
final class LaneProbe {
    private static final int PATIENCE_SECONDS = 60;
    private static final String BLOCK_BYTES = "131072";
    private static final String BLOCKS = "64";

    /** A lane in UCX's tables: transport/device, such as {@code cma/memory} or {@code tcp/lo}. */
    private static final Pattern LANE = Pattern.compile("\\b([a-z][a-z0-9_]+/[A-Za-z0-9_.:-]+)");

    private LaneProbe() {}

    /**
     * What was found.
     *
     * @param transport what moved the blocks; empty when nothing was asked or moved
     * @param lanes transports and devices that UCX chose among, empty for shared memory
     * @param gbPerSecond measured; 0 when nothing moved
     * @param p50Us median time of a request
     * @param failure why nothing moved; empty when something did
     */
    record Lanes(
            String transport,
            SortedSet<String> lanes,
            double gbPerSecond,
            double p50Us,
            String failure) {
        static final Lanes NOT_ASKED = new Lanes("", new TreeSet<>(), 0, 0, "not measured");

        String describe() {
            return failure.isEmpty()
                    ? String.format(
                            Locale.ROOT,
                            "%s: pulling %s blocks of %s B from another process takes %.0f us (%.1f"
                                    + " GB/s)%s",
                            transport,
                            BLOCKS,
                            BLOCK_BYTES,
                            p50Us,
                            gbPerSecond,
                            lanes.isEmpty() ? "" : "; lanes " + String.join(", ", lanes))
                    : failure;
        }

        void into(ObjectNode node) {
            node.put("transport", transport).put("gb_per_s", gbPerSecond).put("p50_us", p50Us);
            final var names = node.putArray("lanes");
            lanes.forEach(names::add);
            if (!failure.isEmpty()) {
                node.put("failure", failure);
            }
        }
    }

    static Lanes measure(TransferEnd.Kind kind) throws IOException {
        final Path ucx = Files.createTempFile("kvasir-doctor", ".ucx");
        try {
            final ChildJvm.Result child =
                    ChildJvm.run(
                            PATIENCE_SECONDS,
                            Map.of("UCX_PROTO_INFO", "y", "UCX_LOG_FILE", ucx.toString()),
                            Kvasir.class,
                            "nixl",
                            "bench",
                            "--transport",
                            kind.name(),
                            "--block-bytes",
                            BLOCK_BYTES,
                            "--blocks",
                            BLOCKS,
                            "--json");
            if (!child.ended()) {
                return failed("no end after " + PATIENCE_SECONDS + " s");
            }
            return child.exitCode() == 0
                    ? read(kind, child.out(), Files.readString(ucx, StandardCharsets.UTF_8))
                    : failed("exit code " + child.exitCode() + ": " + child.err().strip());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return failed("interrupted");
        } finally {
            Files.deleteIfExists(ucx);
        }
    }

    private static Lanes failed(String why) {
        return new Lanes("", new TreeSet<>(), 0, 0, "the measurement failed: " + why);
    }

    /** Reads what the measurement printed, and the tables that UCX wrote. */
    static Lanes read(TransferEnd.Kind kind, String result, String tables) {
        final SortedSet<String> lanes = new TreeSet<>();
        tables.lines()
                .filter(line -> line.contains("|"))
                .forEach(
                        line ->
                                LANE.matcher(line)
                                        .results()
                                        .forEach(match -> lanes.add(match.group(1))));
        try {
            final JsonNode size = Json.MAPPER.readTree(result).at("/sizes/0");
            return new Lanes(
                    kind.name().toLowerCase(Locale.ROOT),
                    lanes,
                    size.path("gb_per_s").asDouble(),
                    size.path("p50_us").asDouble(),
                    "");
        } catch (JsonProcessingException e) {
            return failed("no result: " + result);
        }
    }
}

package io.kvasir.nixl.probe;

import io.kvasir.nixl.transport.KvTransport;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;

/**
 * Measures a short transfer in processes of its own, with UCX set to print how it goes about it.
 * Whatever happens to them, the caller lives.
 */
public final class LaneProbe {
    private static final int PATIENCE_SECONDS = 60;
    private static final String MARK = "result\t";
    private static final long BLOCK_BYTES = 131_072;
    private static final int BLOCKS = 64;
    private static final long DURATION_NS = TimeUnit.MILLISECONDS.toNanos(200);
    private static final double NS_PER_US = TimeUnit.MICROSECONDS.toNanos(1);
    private static final double BYTES_PER_GB = 1e9;

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
    public record Lanes(
            String transport,
            SortedSet<String> lanes,
            double gbPerSecond,
            double p50Us,
            String failure) {
        /** Where no measurement was asked for. */
        public static final Lanes NOT_ASKED = new Lanes("", new TreeSet<>(), 0, 0, "not measured");

        /** One line for a reader. */
        public String describe() {
            return failure.isEmpty()
                    ? String.format(
                            Locale.ROOT,
                            "%s: pulling %d blocks of %d B from another process takes %.0f us (%.1f"
                                    + " GB/s)%s",
                            transport,
                            BLOCKS,
                            BLOCK_BYTES,
                            p50Us,
                            gbPerSecond,
                            lanes.isEmpty() ? "" : "; lanes " + String.join(", ", lanes))
                    : failure;
        }
    }

    /**
     * Measures pulls of one size.
     *
     * @param kind what moves the blocks
     * @return what was found, or why nothing moved
     * @throws IOException if no process can be started
     */
    public static Lanes measure(TransferEnd.Kind kind) throws IOException {
        final Path ucx = Files.createTempFile("kvasir-doctor", ".ucx");
        try {
            final ChildJvm.Result child =
                    ChildJvm.run(
                            PATIENCE_SECONDS,
                            Map.of("UCX_PROTO_INFO", "y", "UCX_LOG_FILE", ucx.toString()),
                            LaneProbe.class,
                            kind.name());
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
        return result.lines()
                .filter(line -> line.startsWith(MARK))
                .map(line -> line.split("\t", -1))
                .findFirst()
                .map(
                        words ->
                                new Lanes(
                                        kind.name().toLowerCase(Locale.ROOT),
                                        lanes,
                                        Double.parseDouble(words[1]),
                                        Double.parseDouble(words[2]),
                                        ""))
                .orElseGet(() -> failed("no result: " + result));
    }

    /**
     * The process itself: measures one size and prints a line.
     *
     * @param args kind of transport
     */
    public static void main(String[] args) {
        final TransferEnd.Kind kind = TransferEnd.Kind.valueOf(args[0]);
        try (TransferEnd own = TransferEnd.open(kind, BLOCKS * BLOCK_BYTES);
                TransferPeer peer = TransferPeer.start(kind, BLOCKS * BLOCK_BYTES)) {
            final TransferSweep.Result result =
                    new TransferSweep(own, peer, KvTransport.Operation.READ, DURATION_NS)
                            .measure(BLOCK_BYTES, BLOCKS);
            System.out.println(
                    "\n"
                            + MARK
                            + result.bytesPerSecond() / BYTES_PER_GB
                            + "\t"
                            + result.p50Ns() / NS_PER_US);
        } catch (IOException | RuntimeException e) {
            System.err.println(e.getMessage());
            System.exit(1);
        }
    }
}

package io.kvasir.bench;

import io.kvasir.core.index.IndexMemory;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.index.StoreResult;
import io.kvasir.core.memory.MemoryGate;
import io.kvasir.core.radix.OverlapScores;

import java.io.BufferedReader;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;

/**
 * Restart of an index in a mapped file after its process was killed. Question answered: how long
 * after the start of the next process does the index answer, and what does the file cost while
 * events are applied?
 *
 * <p>A process fills the file with blocks as {@link SnapshotCost} does, a commit for each event,
 * keeps applying and is killed; the next one opens the file, and matches prompts of which no page
 * is mapped yet. Costs are CPU time, so that other load of the machine counts little. Beside it:
 * the same fill in memory of the process. What a restore of the same blocks by a logical snapshot
 * costs is what {@code bench/run snapshots} prints.
 */
public final class RestartCost {
    private static final int PROMPT = 256;
    private static final int SHARED = 64;
    private static final int PER_PREFIX = 64;
    private static final int MATCHES = 10_000;
    private static final double NS_PER_MS = 1e6;
    private static final double BYTES_PER_MIB = 1 << 20;
    private static final String FILL = "fill";
    private static final String OPEN = "open";

    private RestartCost() {}

    /** Folder of the file, then numbers of held blocks; 1 Mi, 4 Mi and 16 Mi without. */
    public static void main(String[] args) throws IOException, InterruptedException {
        if (args[0].equals(FILL)) {
            fill(Path.of(args[1]), Integer.parseInt(args[2]));
        } else if (args[0].equals(OPEN)) {
            open(Path.of(args[1]), Integer.parseInt(args[2]));
        } else {
            measure(
                    Path.of(args[0]),
                    args.length == 1
                            ? new int[] {1 << 20, 1 << 22, 1 << 24}
                            : Arrays.stream(args).skip(1).mapToInt(Integer::parseInt).toArray());
        }
    }

    private static void measure(Path folder, int[] sizes) throws IOException, InterruptedException {
        System.out.println(
                "| held blocks | file MiB | store ns/block: in memory | in the file | open ms: CPU"
                        + " | wall | words taken back | first matches, us each | then"
                        + " | RSS MiB: open | after matches |");
        final Path file = folder.resolve("restart-cost.index");
        for (int blocks : sizes) {
            final Process filler = start(FILL, file, blocks);
            try (BufferedReader out = filler.inputReader()) {
                System.out.print(out.readLine());
            } finally {
                filler.destroyForcibly().waitFor();
            }
            final Process opener = start(OPEN, file, blocks);
            try (BufferedReader out = opener.inputReader()) {
                System.out.println(out.readLine());
            }
            opener.waitFor();
            Files.deleteIfExists(file);
            Files.deleteIfExists(file.resolveSibling(file.getFileName() + ".lock"));
        }
    }

    private static long cpuNs() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    private static Process start(String what, Path file, int blocks) throws IOException {
        final List<String> command = new ArrayList<>();
        command.add(ProcessHandle.current().info().command().orElse("java"));
        command.addAll(
                List.of(
                        "-Xmx256m",
                        "--enable-native-access=ALL-UNNAMED",
                        "-cp",
                        System.getProperty("java.class.path"),
                        RestartCost.class.getName(),
                        what,
                        file.toString(),
                        Integer.toString(blocks)));
        return new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    }

    private static PrefixIndexConfig config(int blocks) {
        return new PrefixIndexConfig(2, blocks + 4L * PROMPT, blocks + 4L * PROMPT);
    }

    private static PrefixIndex index(Path file, int blocks) throws IOException {
        final IndexMemory memory = IndexMemory.open(file, config(blocks), 16, 1337L, 0);
        return new PrefixIndex(config(blocks), new MemoryGate("the benchmark"), memory);
    }

    private static void fill(Path file, int blocks) throws IOException {
        final double plain;
        try (PrefixIndex index = new PrefixIndex(config(blocks))) {
            plain = fill(index, blocks);
        }
        try (PrefixIndex index = index(file, blocks)) {
            final double kept = fill(index, blocks);
            System.out.printf(
                    Locale.ROOT,
                    "| %,d | %.0f | %.1f | %.1f ",
                    blocks,
                    Files.size(file) / BYTES_PER_MIB,
                    plain,
                    kept);
            System.out.println();
            for (long last = 0; ; last++) { // until it is killed
                final long[] names = {-1_000_000_000_000L - last % 2};
                index.store(0, true, 0, names, names, 1, true);
                index.eventApplied(0, last);
                index.commit();
            }
        }
    }

    /** Fills an index; says what a block has cost, in ns. */
    private static double fill(PrefixIndex index, int blocks) {
        final long[] hashes = new long[PROMPT];
        final long startNs = cpuNs();
        for (long prompt = 0; index.heldBlocks(0) < blocks; prompt++) {
            prompt(hashes, prompt);
            if (index.store(0, true, 0, hashes, hashes, PROMPT, true) != StoreResult.STORED) {
                throw new IllegalStateException("the index is too small: " + prompt);
            }
            index.eventApplied(0, prompt);
            index.commit();
        }
        return (cpuNs() - startNs) / (double) index.heldBlocks(0);
    }

    private static void prompt(long[] hashes, long prompt) {
        final long prefix = -1 - prompt / PER_PREFIX * PROMPT;
        final long own = 1 + prompt * PROMPT;
        Arrays.setAll(hashes, i -> i < SHARED ? prefix - i : own + i);
    }

    private static void open(Path file, int blocks) throws IOException {
        final long startNs = System.nanoTime();
        final long startCpuNs = cpuNs();
        final IndexMemory memory = IndexMemory.open(file, config(blocks), 16, 1337L, 0);
        try (PrefixIndex index =
                new PrefixIndex(config(blocks), new MemoryGate("the benchmark"), memory)) {
            final long openCpuNs = cpuNs() - startCpuNs;
            final long openNs = System.nanoTime() - startNs;
            if (memory.discardedOrNull() != null || index.heldBlocks(0) < blocks) {
                throw new IllegalStateException("not reopened: " + memory.discardedOrNull());
            }
            final double atOpen = rssMib();
            final double first = matches(index, blocks, 1);
            final double then = matches(index, blocks, 2);
            System.out.printf(
                    Locale.ROOT,
                    "| %.1f | %.1f | %d | %.1f | %.1f | %.0f | %.0f |",
                    openCpuNs / NS_PER_MS,
                    openNs / NS_PER_MS,
                    memory.wordsTakenBack(),
                    first,
                    then,
                    atOpen,
                    rssMib());
            System.out.println();
        }
    }

    /** Matches random prompts, of which each is held as a whole; us for each. */
    private static double matches(PrefixIndex index, int blocks, long seed) {
        final SplittableRandom random = new SplittableRandom(seed);
        final OverlapScores scores = new OverlapScores(2);
        final long[] hashes = new long[PROMPT];
        final int prompts = blocks / PROMPT;
        long ns = 0;
        for (int i = 0; i < MATCHES; i++) {
            prompt(hashes, random.nextInt(prompts));
            final long startNs = cpuNs();
            final int depth = index.match(hashes, PROMPT, scores);
            ns += cpuNs() - startNs;
            if (depth != PROMPT) {
                throw new IllegalStateException("a match of " + depth + " blocks");
            }
        }
        return ns / 1e3 / MATCHES;
    }

    private static double rssMib() throws IOException {
        for (String line :
                Files.readAllLines(Path.of("/proc/self/status"), StandardCharsets.UTF_8)) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("[^0-9]", "")) / 1024.0;
            }
        }
        return -1;
    }
}

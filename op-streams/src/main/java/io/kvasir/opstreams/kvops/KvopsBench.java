package io.kvasir.opstreams.kvops;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/**
 * Measures an index on a stream in fresh JVMs, one after the other: what one of them learned about
 * the code does not carry over.
 */
public final class KvopsBench {
    private static final long MIB = 1 << 20;
    private static final long HEAP_MIB_MORE = 512;
    private static final long HEAP_BYTES_PER_PAIR = 512; // for the indexes on the heap

    private final int forks;
    private final List<String> jvmOptions;
    private final Consumer<String> progress;

    /**
     * Makes a bench.
     *
     * @param forks processes, at least 1; 0 = one run inside this JVM, for tests and debuggers
     * @param jvmOptions further options of the child JVMs; they come after the bench's own
     * @param progress receives one line about what happens next
     * @throws IllegalArgumentException if {@code forks} is negative
     */
    public KvopsBench(int forks, List<String> jvmOptions, Consumer<String> progress) {
        if (forks < 0) {
            throw new IllegalArgumentException("forks must not be negative: forks=" + forks);
        }
        this.forks = forks;
        this.jvmOptions = List.copyOf(jvmOptions);
        this.progress = progress;
    }

    /**
     * Finds the stream's live maximum and carries out the plan in every process.
     *
     * @throws KvopsFormatException if the stream is not well-formed
     * @throws IOException if it cannot be read, or a child process failed
     * @throws InterruptedException if the calling thread was interrupted; the child is ended
     */
    public KvopsResult run(ReplayPlan plan) throws IOException, InterruptedException {
        return run(plan, liveMaximum(plan.file()));
    }

    /**
     * The stream's live maximum, to be used for several plans.
     *
     * @throws KvopsFormatException if the stream is not well-formed
     * @throws IOException if it cannot be read
     */
    public LiveMaximum liveMaximum(Path stream) throws IOException {
        progress.accept(stream.getFileName() + ": reading the live maximum");
        return LiveMaximum.of(stream);
    }

    /**
     * Carries out the plan in every process.
     *
     * @param live the stream's live maximum; sizes the index
     * @throws KvopsFormatException if the stream is not well-formed
     * @throws IOException if it cannot be read, or a child process failed
     * @throws InterruptedException if the calling thread was interrupted; the child is ended
     */
    public KvopsResult run(ReplayPlan plan, LiveMaximum live)
            throws IOException, InterruptedException {
        final KvopsHeader header;
        try (KvopsFile file = KvopsFile.open(plan.file())) {
            header = file.header();
        }
        final List<ForkResult> results = new ArrayList<>();
        if (forks == 0) {
            results.add(Replays.run(plan, live));
        }
        for (int fork = 1; fork <= forks; fork++) {
            progress.accept(
                    plan.file().getFileName()
                            + ": "
                            + plan.index()
                            + ", "
                            + plan.mode().label()
                            + ", process "
                            + fork
                            + " of "
                            + forks);
            results.add(inChild(plan, live));
        }
        return new KvopsResult(plan, header, live, results);
    }

    /** Options of the child JVMs, those of the user last. */
    public List<String> jvmOptions(Path stream, LiveMaximum live) throws IOException {
        final long streamMib = Files.size(stream) / MIB;
        final long start = HEAP_MIB_MORE + streamMib + streamMib / 2;
        final long most = start + streamMib + live.pairs() * HEAP_BYTES_PER_PAIR / MIB;
        final List<String> options = new ArrayList<>();
        options.add("--enable-native-access=ALL-UNNAMED");
        options.add("-XX:+UseCompactObjectHeaders");
        // nothing is allocated while the clock runs; no collector thread takes a core either
        options.add("-XX:+UseSerialGC");
        options.add("-Xms" + start + "m");
        options.add("-Xmx" + most + "m");
        options.addAll(jvmOptions);
        return options;
    }

    private ForkResult inChild(ReplayPlan plan, LiveMaximum live)
            throws IOException, InterruptedException {
        final List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(jvmOptions(plan.file(), live));
        command.add("-cp");
        command.add(System.getProperty("java.class.path"));
        command.add(KvopsFork.class.getName());
        command.addAll(KvopsFork.liveWords(live));
        command.addAll(plan.words());
        final Process process =
                new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try (BufferedReader out = process.inputReader()) {
            final List<String> lines = out.lines().toList();
            final int code = process.waitFor();
            if (code != 0) {
                throw new IOException(
                        "the measuring process ended with exit code "
                                + code
                                + "; its error stands above, its command was "
                                + String.join(" ", command));
            }
            return ForkResult.parse(lines);
        } finally {
            process.destroy();
        }
    }
}

package io.kvasir.cli;

import io.kvasir.testsupport.Signals;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.stream.Stream;

/**
 * The command line in a process of its own, for what only a process can show: signals, exit codes.
 */
public final class KvasirProcess implements AutoCloseable {
    /** Far beyond what a start takes: half a minute on a machine that runs ten other processes. */
    private static final long TIMEOUT_SECONDS = 300;

    private static final long POLL_MS = 10;

    private final Process process;
    private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();
    private final List<String> seen = new ArrayList<>();
    private final Thread reader;

    public KvasirProcess(String... args) throws IOException {
        this(List.of(), args);
    }

    /** With further flags of the JVM. */
    public KvasirProcess(List<String> flags, String... args) throws IOException {
        this(true, flags, Map.of(), args);
    }

    private KvasirProcess(
            boolean readsErrors, List<String> flags, Map<String, String> variables, String... args)
            throws IOException {
        final List<String> command = new ArrayList<>(hearingHangUps());
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "-XX:TieredStopAtLevel=1"));
        command.addAll(flags);
        command.addAll(List.of("-cp", System.getProperty("java.class.path")));
        command.add(Kvasir.class.getName());
        command.addAll(List.of(args));
        final ProcessBuilder builder = new ProcessBuilder(command);
        builder.redirectErrorStream(readsErrors);
        builder.environment().putIfAbsent("KVASIR_WARM_UP_MS", "0"); // short tests, cold code
        builder.environment().putAll(variables);
        process = builder.start();
        reader = Thread.ofVirtual().start(this::read);
    }

    /** One whose standard error is a pipe that nothing reads. */
    public static KvasirProcess withUnreadErrors(String... args) throws IOException {
        return new KvasirProcess(false, List.of(), Map.of(), args);
    }

    /** One with further environment variables. */
    public static KvasirProcess withVariables(Map<String, String> variables, String... args)
            throws IOException {
        return new KvasirProcess(true, List.of(), variables, args);
    }

    /** A process that nohup has started ignores hang-ups, and so do its children, unless told. */
    private static List<String> hearingHangUps() throws IOException {
        final Path status = Path.of("/proc/self/status");
        return Files.exists(status)
                        && Files.readAllLines(status).stream()
                                .filter(line -> line.startsWith("SigIgn:"))
                                .map(line -> line.substring("SigIgn:".length()).strip())
                                .anyMatch(set -> (Long.parseUnsignedLong(set, 16) & 1) != 0)
                ? List.of("env", "--default-signal=HUP")
                : List.of();
    }

    private void read() {
        try (BufferedReader out = process.inputReader()) {
            out.lines().forEach(lines::add);
        } catch (IOException | UncheckedIOException e) {
            lines.add("output broke off: " + e.getMessage());
        }
    }

    /** Waits for the first line that fits, standard output and error alike. */
    public String await(Predicate<String> wanted) throws InterruptedException {
        final long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(TIMEOUT_SECONDS);
        while (true) {
            final String line = lines.poll(endNs - System.nanoTime(), TimeUnit.NANOSECONDS);
            if (line == null) {
                throw new AssertionError("no such line in " + seen);
            }
            seen.add(line);
            if (wanted.test(line)) {
                return line;
            }
        }
    }

    /** Waits for the end and gives the exit code. */
    public int exitCode() throws InterruptedException {
        if (!process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
            throw new AssertionError("still running; it wrote " + seen + lines);
        }
        return process.exitValue();
    }

    /** All that it wrote, standard output and error alike, up to its end. */
    public List<String> output() throws InterruptedException {
        reader.join();
        lines.drainTo(seen);
        return List.copyOf(seen);
    }

    /** Waits until it has started a process of its own. */
    public ProcessHandle child() throws InterruptedException {
        final long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(TIMEOUT_SECONDS);
        while (System.nanoTime() < endNs) {
            final ProcessHandle child = process.children().findFirst().orElse(null);
            if (child != null) {
                return child;
            }
            Thread.sleep(POLL_MS);
        }
        throw new AssertionError("no child; it wrote " + seen + lines);
    }

    /** Waits until it has opened its standard input by name. */
    public void awaitOpenedInput() throws IOException, InterruptedException {
        final Path descriptors = Path.of("/proc/" + process.pid() + "/fd");
        final Path input = Files.readSymbolicLink(descriptors.resolve("0"));
        final long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(TIMEOUT_SECONDS);
        while (System.nanoTime() < endNs) {
            try (Stream<Path> open = Files.list(descriptors)) {
                if (open.filter(fd -> leadsTo(input, fd)).count() > 1) {
                    return;
                }
            }
            Thread.sleep(POLL_MS);
        }
        throw new AssertionError("it did not read its input; it wrote " + seen + lines);
    }

    private static boolean leadsTo(Path file, Path descriptor) {
        try {
            return Files.readSymbolicLink(descriptor).equals(file);
        } catch (IOException e) {
            return false; // closed since
        }
    }

    /** Gives it all of its standard input. */
    public void input(String text) throws IOException {
        try (Writer in = process.outputWriter()) {
            in.write(text);
        }
    }

    /** Asks the process to end, as kill does, and gives its exit code. */
    public int terminate() throws InterruptedException {
        var _ = process.toHandle().destroy(); // Process.destroy would cut what it still writes
        return exitCode();
    }

    /** Ends it without a word. */
    public void kill() {
        var _ = process.toHandle().destroyForcibly();
    }

    /** Says that its configuration has changed. */
    public void hangUp() throws IOException, InterruptedException {
        Signals.hangUp(process);
    }

    @Override
    public void close() {
        kill();
    }
}

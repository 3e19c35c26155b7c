package io.kvasir.bench.gpu;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** {@link GpuBench} in a JVM of its own, ended with the test at the latest. */
final class BenchProcess implements AutoCloseable {
    private static final int LIMIT_S = 120;

    private final Process process;
    private final Path output;

    private BenchProcess(Process process, Path output) {
        this.process = process;
        this.output = output;
    }

    /** Starts it; {@code environment} is added to this process's own. */
    static BenchProcess start(Path folder, Map<String, String> environment, String... arguments)
            throws IOException {
        final List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(
                List.of(
                        "-ea",
                        "-Xmx256m",
                        "-XX:+UseSerialGC",
                        "-XX:-CreateCoredumpOnCrash",
                        "-XX:ErrorFile=" + folder.resolve("crash.log"),
                        "--enable-native-access=ALL-UNNAMED",
                        "-cp",
                        System.getProperty("java.class.path"),
                        GpuBench.class.getName()));
        command.addAll(List.of(arguments));
        final Path output = Files.createTempFile(folder, arguments[0], ".txt");
        final ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().putAll(environment);
        return new BenchProcess(
                builder.redirectErrorStream(true).redirectOutput(output.toFile()).start(), output);
    }

    /** Waits for the end and returns the exit code. */
    int exit() throws InterruptedException {
        assertTrue(process.waitFor(LIMIT_S, TimeUnit.SECONDS), () -> "no end: " + text());
        return process.exitValue();
    }

    /** Waits until a line starts so. */
    void awaitLine(String start) throws InterruptedException {
        final long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_S);
        while (text().lines().noneMatch(line -> line.startsWith(start))) {
            assertTrue(process.isAlive() && System.nanoTime() - deadline < 0, this::text);
            Thread.sleep(5);
        }
    }

    /** Output and errors so far. */
    String text() {
        try {
            return new String(Files.readAllBytes(output), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    long cells() {
        return text().lines().filter(line -> line.startsWith("cell ")).count();
    }

    void terminate() {
        process.destroy();
    }

    void kill() {
        process.destroyForcibly();
    }

    @Override
    public void close() {
        process.destroyForcibly().onExit().join();
    }
}

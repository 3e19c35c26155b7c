package io.kvasir.panama.nixl;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * Runs a main class of the tests in a JVM of its own, so that what it loads or breaks stays there.
 */
final class ChildProcess {
    private ChildProcess() {}

    /** What a finished child left. */
    record Result(int exit, String out, String err) {}

    static Result run(
            Class<?> main, List<String> flags, Map<String, String> environment, Path folder)
            throws IOException, InterruptedException {
        final List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(
                List.of("-ea", "-Xmx256m", "-XX:+UseSerialGC", "-XX:-CreateCoredumpOnCrash"));
        command.add("-XX:ErrorFile=" + folder.resolve("crash.log"));
        command.addAll(flags);
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
        final Path out = folder.resolve("out.txt");
        final Path err = folder.resolve("err.txt");
        final ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().putAll(environment);
        final Process process =
                builder.redirectOutput(out.toFile()).redirectError(err.toFile()).start();
        final boolean ended = process.waitFor(60, TimeUnit.SECONDS);
        process.destroyForcibly().waitFor();
        assertTrue(ended, "no end after 60 s: " + command);
        return new Result(process.exitValue(), text(out), text(err));
    }

    private static String text(Path file) throws IOException {
        return new String(Files.readAllBytes(file), StandardCharsets.UTF_8);
    }
}

package io.kvasir.nixl.probe;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** A main class in a JVM of its own, with this one's class path. */
public final class ChildJvm {
    private ChildJvm() {}

    /**
     * What a child left.
     *
     * @param ended whether it ended by itself in time; else it was killed
     * @param exitCode its own, or that of the kill
     * @param out its standard output
     * @param err its standard error
     */
    record Result(boolean ended, int exitCode, String out, String err) {}

    /**
     * The command line that starts it.
     *
     * @param main its main class
     * @param arguments of the main class
     * @return words, of the caller
     */
    public static List<String> command(Class<?> main, String... arguments) {
        final List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.add("--enable-native-access=ALL-UNNAMED");
        command.add("-XX:+UseSerialGC"); // no threads of a collector beside what is measured
        command.add("-cp");
        command.add(System.getProperty("java.class.path"));
        command.add(main.getName());
        command.addAll(List.of(arguments));
        return command;
    }

    /** Runs it to its end, or kills it and its children after some seconds. */
    static Result run(
            int seconds, Map<String, String> environment, Class<?> main, String... arguments)
            throws IOException, InterruptedException {
        final Path out = Files.createTempFile("kvasir-child", ".out");
        final Path err = Files.createTempFile("kvasir-child", ".err");
        try {
            final ProcessBuilder builder =
                    new ProcessBuilder(command(main, arguments))
                            .redirectOutput(out.toFile())
                            .redirectError(err.toFile());
            builder.environment().putAll(environment);
            final Process process = builder.start();
            final boolean ended = process.waitFor(seconds, TimeUnit.SECONDS);
            process.descendants().forEach(ProcessHandle::destroyForcibly);
            process.destroyForcibly().waitFor();
            return new Result(
                    ended,
                    process.exitValue(),
                    Files.readString(out, StandardCharsets.UTF_8),
                    Files.readString(err, StandardCharsets.UTF_8));
        } finally {
            Files.delete(out);
            Files.delete(err);
        }
    }
}

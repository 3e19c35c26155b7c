package io.kvasir.testsupport;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Runs a main class of the test's class path in a JVM of its own: for what may crash a JVM, and for
 * flags that the build's own JVM does not have.
 */
public final class ChildJvm {
    private static final int LIMIT_MINUTES = 10;

    private ChildJvm() {}

    /** Flags under which off-heap memory is accessed as it is shipped: nothing is checked. */
    public static List<String> unchecked() {
        return List.of(
                "-ea",
                "-Xmx512m",
                "-Dkvasir.memory.checked=false",
                "--enable-native-access=ALL-UNNAMED");
    }

    /**
     * Runs it to its end.
     *
     * @param flags of the JVM
     * @param main the class
     * @param arguments of its main method
     * @return what it has written, standard output and error together
     * @throws AssertionError if it has not ended with 0, a crash included
     */
    public static String run(List<String> flags, Class<?> main, String... arguments)
            throws IOException, InterruptedException {
        final Path folder = Files.createTempDirectory("child-jvm");
        final Path output = folder.resolve("output");
        final List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.add("-XX:ErrorFile=" + folder.resolve("crash"));
        command.add("-XX:-CreateCoredumpOnCrash");
        command.addAll(flags);
        command.add("-cp");
        command.add(System.getProperty("java.class.path"));
        command.add(main.getName());
        command.addAll(List.of(arguments));
        final Process process =
                new ProcessBuilder(command)
                        .redirectErrorStream(true)
                        .redirectOutput(output.toFile())
                        .start();
        try {
            if (!process.waitFor(LIMIT_MINUTES, TimeUnit.MINUTES)) {
                throw new AssertionError(
                        "still running after " + LIMIT_MINUTES + " minutes: " + text(output));
            }
            if (process.exitValue() != 0) {
                throw new AssertionError("exit " + process.exitValue() + ": " + text(output));
            }
            return text(output);
        } finally {
            process.destroyForcibly();
        }
    }

    private static String text(Path output) throws IOException {
        return Files.readString(output, StandardCharsets.UTF_8);
    }
}

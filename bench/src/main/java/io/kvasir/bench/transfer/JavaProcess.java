package io.kvasir.bench.transfer;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A main class in a JVM of its own, with this one's class path. */
final class JavaProcess {
    private JavaProcess() {}

    /** The command line that starts it. */
    static List<String> command(Class<?> main, String... arguments) {
        final List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(
                List.of(
                        "--enable-native-access=ALL-UNNAMED",
                        "-XX:+UseSerialGC",
                        "-cp",
                        System.getProperty("java.class.path"),
                        main.getName()));
        command.addAll(List.of(arguments));
        return command;
    }
}

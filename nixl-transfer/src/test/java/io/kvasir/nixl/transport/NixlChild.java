package io.kvasir.nixl.transport;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.testsupport.NixlWheel;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Programs of the tests in JVMs of their own, with the real NIXL. */
public final class NixlChild {
    /** Environment in which UCX goes over TCP, also inside one machine. */
    public static final Map<String, String> TCP = Map.of("UCX_TLS", "tcp,self");

    private static final int PATIENCE_SECONDS = 300;

    /** UCX would take the JVM's signals with this set, were it not kept from it. */
    private static final Map<String, String> HOSTILE =
            Map.of("UCX_HANDLE_ERRORS", "bt", "NIXL_LOG_LEVEL", "FATAL");

    /**
     * Runs a program to its end, or ends the test as skipped where there is no NIXL.
     *
     * @return what it printed
     */
    public static String run(
            Class<?> main, Map<String, String> more, Path folder, String... arguments)
            throws IOException, InterruptedException {
        final NixlWheel wheel = NixlWheel.get();
        assumeTrue(wheel.isThere(), "skipped: no NIXL: " + wheel.why());
        final List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(
                List.of(
                        "--enable-native-access=ALL-UNNAMED",
                        "-Xmx256m",
                        "-XX:+UseSerialGC",
                        "-XX:-CreateCoredumpOnCrash",
                        "-XX:ErrorFile=" + folder.resolve("crash.log"),
                        "-cp",
                        System.getProperty("java.class.path"),
                        main.getName()));
        command.addAll(List.of(arguments));
        final Path out = folder.resolve("out.txt");
        final ProcessBuilder builder =
                new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(out.toFile());
        final Map<String, String> environment = new HashMap<>(HOSTILE);
        environment.put("KVASIR_NIXL_LIBRARY", wheel.library().toString());
        environment.putAll(more);
        builder.environment().putAll(environment);
        final Process process = builder.start();
        final boolean ended = process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS);
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly().waitFor();
        final String text = Files.readString(out);
        assertTrue(ended, "no end after " + PATIENCE_SECONDS + " s: " + text);
        assertEquals(0, process.exitValue(), text);
        return text;
    }

    private NixlChild() {}
}

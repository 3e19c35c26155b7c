package io.kvasir.nixl.exchange;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Another process that publishes a record, to be killed. */
public final class RecordOwner {
    private RecordOwner() {}

    /** Publishes, says so in a line after {@code first}, and ends with its input. */
    public static void serve(MetadataExchange exchange, String first, PeerRecord record)
            throws IOException {
        try (exchange) {
            exchange.publish(record);
            System.out.println(first);
            System.out.flush();
            System.in.transferTo(OutputStream.nullOutputStream());
        }
    }

    /** Starts a JVM. */
    public static Process start(Class<?> main, List<String> arguments) throws IOException {
        final List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(
                List.of(
                        "--enable-native-access=ALL-UNNAMED",
                        "-Xmx128m",
                        "-XX:+UseSerialGC",
                        "-XX:TieredStopAtLevel=1",
                        "-XX:-CreateCoredumpOnCrash",
                        "-cp",
                        System.getProperty("java.class.path"),
                        main.getName()));
        command.addAll(arguments);
        return new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    }
}

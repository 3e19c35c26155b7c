package io.kvasir.testsupport;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.StringJoiner;

/**
 * A real HAProxy for tests: the program that {@code HAPROXY} names, else {@code haproxy} on the
 * path, else Debian's packages of it and of what it needs, unpacked once below the build's folder
 * without being installed.
 */
public final class HaproxyServer extends ServerProcess {
    private static final Path INSTALLED = Path.of("/usr/sbin/haproxy");

    /** The simulation needs no root and names what is missing on this machine. */
    private static final List<String> INSTALL =
            List.of(
                    "sh",
                    "-c",
                    "apt-get download -q $(apt-get install --simulate haproxy | awk '$1 == \"Inst\""
                            + " {print $2}') && for package in *.deb; do dpkg-deb -x \"$package\" ."
                            + " || exit; done");

    private final Path program;
    private final Path configuration;
    private final int port;

    private HaproxyServer(Path program, Path folder, Path configuration, int port) {
        super(folder);
        this.program = program;
        this.configuration = configuration;
        this.port = port;
    }

    /**
     * Finds the program, or fetches it.
     *
     * @return where it is
     * @throws IOException saying why it cannot be had
     */
    public static Path program() throws IOException {
        final Path found =
                BuildFolder.program("HAPROXY", "haproxy")
                        .orElse(Files.isExecutable(INSTALLED) ? INSTALLED : null);
        if (found != null) {
            return found;
        }
        try {
            return BuildFolder.install("haproxy", "usr/sbin/haproxy", INSTALL);
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
     * @param configuration the text of its configuration file
     * @param port one that the configuration binds on the loopback
     */
    public static HaproxyServer in(Path program, Path folder, String configuration, int port)
            throws IOException {
        return new HaproxyServer(
                program,
                folder,
                Files.writeString(folder.resolve("haproxy.cfg"), configuration),
                port);
    }

    @Override
    List<String> command() throws IOException {
        return List.of(
                "env",
                "LD_LIBRARY_PATH=" + libraries(),
                program.toString(),
                "-db",
                "-f",
                configuration.toString());
    }

    /** Where the unpacked packages have their libraries. */
    private String libraries() throws IOException {
        final StringJoiner libraries = new StringJoiner(":");
        final Path lib = program.resolveSibling("../lib").normalize();
        if (Files.isDirectory(lib)) {
            try (DirectoryStream<Path> folders = Files.newDirectoryStream(lib, "*-linux-gnu*")) {
                folders.forEach(folder -> libraries.add(folder.toString()));
            }
        }
        return libraries.toString();
    }

    @Override
    boolean answers() {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            return socket.isConnected();
        } catch (IOException e) {
            return false;
        }
    }
}

package io.kvasir.testsupport;

import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * A real etcd for tests, of one member: the program that {@code ETCD_SERVER} names, else {@code
 * etcd} on the path, else Debian's package, unpacked once below the build's folder without being
 * installed.
 */
public final class EtcdServer extends ServerProcess {
    private static final int OK = 200;

    /** {@code dpkg-deb} alone unpacks: nothing of the system is touched. */
    private static final List<String> INSTALL =
            List.of(
                    "sh",
                    "-c",
                    "apt-get download -q etcd-server && dpkg-deb -x etcd-server_*.deb .");

    private final Path program;
    private final int port;
    private final int peerPort;

    private EtcdServer(Path program, Path folder) {
        super(folder);
        this.program = program;
        port = FreePorts.run(2);
        peerPort = port + 1;
    }

    /**
     * Finds the program, or fetches it.
     *
     * @return where it is
     * @throws IOException saying why it cannot be had
     */
    public static Path program() throws IOException {
        final Path found = BuildFolder.program("ETCD_SERVER", "etcd").orElse(null);
        if (found != null) {
            return found;
        }
        try {
            return BuildFolder.install("etcd", "usr/bin/etcd", INSTALL);
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
    public static EtcdServer in(Path program, Path folder) {
        return new EtcdServer(program, folder);
    }

    @Override
    List<String> command() {
        final String peers = "http://127.0.0.1:" + peerPort;
        final List<String> command = new ArrayList<>();
        command.add(program.toString());
        command.addAll(List.of("--data-dir", data().toString()));
        command.addAll(List.of("--listen-client-urls", uri().toString()));
        command.addAll(List.of("--advertise-client-urls", uri().toString()));
        command.addAll(List.of("--listen-peer-urls", peers));
        command.addAll(List.of("--initial-advertise-peer-urls", peers));
        command.addAll(List.of("--initial-cluster", "default=" + peers));
        command.addAll(List.of("--heartbeat-interval", "50", "--election-timeout", "500"));
        return command;
    }

    @Override
    boolean answers() {
        try {
            final HttpURLConnection connection =
                    (HttpURLConnection) uri().resolve("/health").toURL().openConnection();
            connection.setConnectTimeout(1_000);
            connection.setReadTimeout(1_000);
            return connection.getResponseCode() == OK;
        } catch (IOException e) {
            return false;
        }
    }

    /**
     * Where clients reach it.
     *
     * @return the same after another start
     */
    public URI uri() {
        return URI.create("http://127.0.0.1:" + port);
    }
}

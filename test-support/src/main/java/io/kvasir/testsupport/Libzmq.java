package io.kvasir.testsupport;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * Headers and library of libzmq, for tests that compile C: those of the system, else Debian's
 * packages, unpacked once below the build's folder without being installed.
 */
public final class Libzmq {
    private static final String HEADER = "usr/include/zmq.h";

    /** The simulation needs no root and names what is missing on this machine. */
    private static final List<String> INSTALL =
            List.of(
                    "sh",
                    "-c",
                    "apt-get download -q libzmq3-dev $(apt-get install --simulate"
                            + " --no-install-recommends libzmq5 | awk '$1 == \"Inst\" {print $2}')"
                            + " && for package in *.deb; do dpkg-deb -x \"$package\" . || exit;"
                            + " done");

    private final Path root;

    private Libzmq(Path root) {
        this.root = root;
    }

    /**
     * Finds them, or fetches them.
     *
     * @return where they are
     * @throws IOException saying why they cannot be had
     */
    public static Libzmq find() throws IOException {
        final Path system = Path.of("/");
        if (Files.exists(system.resolve(HEADER))) {
            return new Libzmq(system);
        }
        try {
            BuildFolder.install("libzmq", HEADER, INSTALL);
            return new Libzmq(BuildFolder.get().resolve("libzmq"));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted", e);
        }
    }

    /** Folder of {@code zmq.h}. */
    public Path include() {
        return root.resolve("usr/include");
    }

    /**
     * Folder of {@code libzmq.so} and of what it needs.
     *
     * @throws IOException if there is none
     */
    public Path libraries() throws IOException {
        try (DirectoryStream<Path> folders =
                Files.newDirectoryStream(root.resolve("usr/lib"), "*-linux-gnu*")) {
            for (Path folder : folders) {
                if (Files.exists(folder.resolve("libzmq.so"))) {
                    return folder;
                }
            }
        }
        throw new IOException("no libzmq.so below " + root.resolve("usr/lib"));
    }
}

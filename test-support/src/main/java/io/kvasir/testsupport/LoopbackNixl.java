package io.kvasir.testsupport;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;

/** The loopback library of module native, for tests that have it on their class path. */
public final class LoopbackNixl {
    /** Where it lies in the jar. */
    public static final String RESOURCE = "/io/kvasir/nativelib/linux-x86_64/libkvasir_loopback.so";

    /** Why a test without it is skipped. */
    public static final String ABSENT =
            "skipped: module native built no loopback library here (needs Linux x86-64 and cmake)";

    private LoopbackNixl() {}

    /**
     * Unpacks the library.
     *
     * @param folder where to
     * @return its file; null where this machine could not build it
     * @throws IOException if it cannot be written
     */
    public static Path unpack(Path folder) throws IOException {
        try (InputStream library = LoopbackNixl.class.getResourceAsStream(RESOURCE)) {
            if (library == null) {
                return null;
            }
            final Path file = folder.resolve("libkvasir_loopback.so");
            Files.write(file, library.readAllBytes());
            return file;
        }
    }
}

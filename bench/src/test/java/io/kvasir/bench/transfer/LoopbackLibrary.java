package io.kvasir.bench.transfer;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;

/** The loopback library of module native, unpacked for a test. */
final class LoopbackLibrary {
    private static final String NAME = "libkvasir_loopback.so";

    private LoopbackLibrary() {}

    /** Unpacks it; ends the test as skipped where this machine could not build it. */
    static Path unpack(Path folder) throws IOException {
        try (InputStream library =
                LoopbackLibrary.class.getResourceAsStream(
                        "/io/kvasir/nativelib/linux-x86_64/" + NAME)) {
            assumeTrue(
                    library != null,
                    "skipped: module native built no loopback library here (needs Linux x86-64 and"
                            + " cmake)");
            final Path file = folder.resolve(NAME);
            Files.write(file, library.readAllBytes());
            return file;
        }
    }
}

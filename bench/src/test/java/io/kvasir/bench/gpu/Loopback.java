package io.kvasir.bench.gpu;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.testsupport.LoopbackNixl;

import java.io.IOException;
import java.nio.file.Path;

/** The loopback library of module native, unpacked for a test. */
final class Loopback {
    private Loopback() {}

    /** Unpacks the library; ends the test as skipped where this machine could not build it. */
    static Path unpack(Path folder) throws IOException {
        final Path library = LoopbackNixl.unpack(folder);
        assumeTrue(library != null, LoopbackNixl.ABSENT);
        return library;
    }
}

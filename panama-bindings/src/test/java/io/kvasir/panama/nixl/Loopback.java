package io.kvasir.panama.nixl;

import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.testsupport.LoopbackNixl;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** The loopback library of module native, unpacked for a test. */
@SuppressWarnings("restricted") // tests read the library's own counters
final class Loopback {
    private Loopback() {}

    /** Unpacks the library; ends the test as skipped where this machine could not build it. */
    static Path unpack(Path folder) {
        try {
            final Path file = LoopbackNixl.unpack(folder);
            assumeTrue(file != null, LoopbackNixl.ABSENT);
            return file;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static NixlAvailability probe(Path library) {
        return NixlProbe.probe(
                Map.of(NixlProbe.LIBRARY_PROPERTY, library.toString())::get,
                variable -> null,
                List.of());
    }

    static NixlLibrary load(Path folder) {
        return assertInstanceOf(NixlAvailability.Available.class, probe(unpack(folder))).library();
    }

    static long liveHandles(NixlLibrary library) {
        try {
            return (long)
                    Linker.nativeLinker()
                            .downcallHandle(
                                    symbols(library).findOrThrow("kvasir_loopback_live_handles"),
                                    FunctionDescriptor.of(ValueLayout.JAVA_LONG))
                            .invokeExact();
        } catch (Throwable t) {
            throw new AssertionError(t);
        }
    }

    /** Size and field offsets of the agent configuration as the C compiler laid it out. */
    static long[] agentConfigLayout(NixlLibrary library) {
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment words = arena.allocate(ValueLayout.JAVA_LONG, 9);
            Linker.nativeLinker()
                    .downcallHandle(
                            symbols(library).findOrThrow("kvasir_loopback_agent_config_layout"),
                            FunctionDescriptor.ofVoid(ValueLayout.ADDRESS))
                    .invokeExact(words);
            return words.toArray(ValueLayout.JAVA_LONG);
        } catch (Throwable t) {
            throw new AssertionError(t);
        }
    }

    static SymbolLookup symbols(NixlLibrary library) {
        return SymbolLookup.libraryLookup(library.path(), Arena.global());
    }
}

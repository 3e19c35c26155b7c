package io.kvasir.panama.cuda;

import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.kvasir.testsupport.Gcc;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.Map;

/** The stand-in for the driver, built by the test; see {@code src/test/c/fake_cuda.c}. */
@SuppressWarnings("restricted") // tests script and read the library itself
final class FakeCuda {
    /** Kinds of handles that the library counts. */
    enum Kind {
        CONTEXT_REFERENCE(0),
        MEMORY(1),
        OPENED(2),
        HOST(3),
        STREAM(4),
        EVENT(5);

        private final int code;

        Kind(int code) {
            this.code = code;
        }
    }

    private final Path library;
    private final SymbolLookup symbols;

    private FakeCuda(Path library) {
        this.library = library;
        this.symbols = SymbolLookup.libraryLookup(library, Arena.global());
    }

    /** Builds a copy of its own; ends the test as skipped where there is no gcc. */
    static FakeCuda build(Path folder) {
        return new FakeCuda(compile(folder.resolve("libfake_cuda.so")));
    }

    static Path compile(Path output, String... flags) {
        assumeTrue(Gcc.isInstalled(), "skipped: gcc cannot be started here");
        return Gcc.compileFakeCuda(output, flags);
    }

    static CudaAvailability probe(Path library) {
        return CudaProbe.probe(
                Map.of(CudaProbe.LIBRARY_PROPERTY, library.toString())::get, variable -> null);
    }

    CudaAvailability probe() {
        return probe(library);
    }

    CudaDevice device(int ordinal) {
        return assertInstanceOf(CudaAvailability.Available.class, probe()).devices().get(ordinal);
    }

    /** Lets the next call of a function answer a code, once. */
    void fail(CudaFunction function, int code) {
        fail(function, 0, code);
    }

    /** Lets a later call of a function answer a code, once. */
    void fail(CudaFunction function, int skip, int code) {
        try (Arena arena = Arena.ofConfined()) {
            final var symbol = arena.allocateFrom(function.symbol());
            handle("fake_cuda_fail", FunctionDescriptor.ofVoid(ADDRESS, JAVA_INT, JAVA_INT))
                    .invokeExact(symbol, skip, code);
        } catch (Throwable t) {
            throw new AssertionError(t);
        }
    }

    void setDevices(int count) {
        try {
            handle("fake_cuda_devices", FunctionDescriptor.ofVoid(JAVA_INT)).invokeExact(count);
        } catch (Throwable t) {
            throw new AssertionError(t);
        }
    }

    /** Forgets every live handle and reference, such as those whose end was scripted to fail. */
    void reset() {
        try {
            handle("fake_cuda_reset", FunctionDescriptor.ofVoid()).invokeExact();
        } catch (Throwable t) {
            throw new AssertionError(t);
        }
    }

    int live(Kind kind) {
        try {
            return (int)
                    handle("fake_cuda_live", FunctionDescriptor.of(JAVA_INT, JAVA_INT))
                            .invokeExact(kind.code);
        } catch (Throwable t) {
            throw new AssertionError(t);
        }
    }

    boolean isSynced(CudaMemory memory) {
        try {
            final long address = memory.address();
            return (int)
                            handle("fake_cuda_synced", FunctionDescriptor.of(JAVA_INT, JAVA_LONG))
                                    .invokeExact(address)
                    == 1;
        } catch (Throwable t) {
            throw new AssertionError(t);
        }
    }

    private MethodHandle handle(String symbol, FunctionDescriptor descriptor) {
        return Linker.nativeLinker().downcallHandle(symbols.findOrThrow(symbol), descriptor);
    }
}

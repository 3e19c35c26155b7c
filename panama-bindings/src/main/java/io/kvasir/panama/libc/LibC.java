package io.kvasir.panama.libc;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** What is called of the C library, but for its loader. */
@SuppressWarnings("restricted") // linking a downcall is what this class is for
public final class LibC {
    private static final MethodHandle FREE = bind("free", FunctionDescriptor.ofVoid(ADDRESS));
    private static final MethodHandle SETENV =
            bind("setenv", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_INT));
    private static final int OVERWRITE = 1;
    private static final int ADVICE_LARGE_PAGES = 14; // Linux

    private LibC() {}

    private static MethodHandle bind(String symbol, FunctionDescriptor descriptor) {
        final Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(linker.defaultLookup().findOrThrow(symbol), descriptor);
    }

    /** Gives memory back that C's {@code malloc} gave, such as NIXL's; null is ignored. */
    public static void free(MemorySegment memory) {
        try {
            FREE.invokeExact(memory);
        } catch (Throwable t) {
            throw new AssertionError("free must not throw", t);
        }
    }

    /**
     * Takes memory that {@link #free} gives back; what stands in it is anything.
     *
     * @param alignment a power of two
     * @param length a multiple of it
     * @return null if there is not so much
     */
    static MemorySegment allocate(long alignment, long length) {
        try {
            return (MemorySegment) Lazy.ALIGNED_ALLOC.invokeExact(alignment, length);
        } catch (Throwable t) {
            throw new AssertionError("aligned_alloc must not throw", t);
        }
    }

    /**
     * Asks Linux for large pages where memory is written for the first time.
     *
     * @return whether the kernel knows of such
     */
    static boolean adviseLargePages(MemorySegment memory, long length) {
        try {
            return (int) Lazy.MADVISE.invokeExact(memory, length, ADVICE_LARGE_PAGES) == 0;
        } catch (Throwable t) {
            throw new AssertionError("madvise must not throw", t);
        }
    }

    /** What not every system has. */
    private static final class Lazy {
        private static final MethodHandle ALIGNED_ALLOC =
                bind("aligned_alloc", FunctionDescriptor.of(ADDRESS, JAVA_LONG, JAVA_LONG));
        private static final MethodHandle MADVISE =
                bind("madvise", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT));
    }

    /**
     * Sets a variable of the process as C libraries see it; {@link System#getenv} does not change.
     * Other native threads must not read the environment meanwhile.
     *
     * @return whether it was set
     */
    public static boolean setEnvironment(String variable, String value) {
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment cVariable = arena.allocateFrom(variable);
            final MemorySegment cValue = arena.allocateFrom(value);
            return (int) SETENV.invokeExact(cVariable, cValue, OVERWRITE) == 0;
        } catch (Throwable t) {
            throw new AssertionError("setenv must not throw", t);
        }
    }
}

package io.kvasir.panama;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** What is called of the C library, but for its loader. */
@SuppressWarnings("restricted") // linking a downcall is what this class is for
final class LibC {
    private static final MethodHandle FREE = bind("free", FunctionDescriptor.ofVoid(ADDRESS));
    private static final MethodHandle SETENV =
            bind("setenv", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_INT));
    private static final int OVERWRITE = 1;

    private LibC() {}

    private static MethodHandle bind(String symbol, FunctionDescriptor descriptor) {
        final Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(linker.defaultLookup().findOrThrow(symbol), descriptor);
    }

    /** Gives memory back that C's {@code malloc} gave, such as NIXL's; null is ignored. */
    static void free(MemorySegment memory) {
        try {
            FREE.invokeExact(memory);
        } catch (Throwable t) {
            throw new AssertionError("free must not throw", t);
        }
    }

    /**
     * Sets a variable of the process as C libraries see it; {@link System#getenv} does not change.
     * Other native threads must not read the environment meanwhile.
     *
     * @return whether it was set
     */
    static boolean setEnvironment(String variable, String value) {
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment cVariable = arena.allocateFrom(variable);
            final MemorySegment cValue = arena.allocateFrom(value);
            return (int) SETENV.invokeExact(cVariable, cValue, OVERWRITE) == 0;
        } catch (Throwable t) {
            throw new AssertionError("setenv must not throw", t);
        }
    }
}

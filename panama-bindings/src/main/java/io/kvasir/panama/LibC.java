package io.kvasir.panama;

import static java.lang.foreign.ValueLayout.ADDRESS;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** The C library's {@code free}, for memory that NIXL allocated and gave away. */
@SuppressWarnings("restricted") // linking a downcall is what this class is for
final class LibC {
    private static final MethodHandle FREE =
            Linker.nativeLinker()
                    .downcallHandle(
                            Linker.nativeLinker().defaultLookup().findOrThrow("free"),
                            FunctionDescriptor.ofVoid(ADDRESS));

    private LibC() {}

    /** Gives memory back that C's {@code malloc} gave; null is ignored. */
    static void free(MemorySegment memory) {
        try {
            FREE.invokeExact(memory);
        } catch (Throwable t) {
            throw new AssertionError("free must not throw", t);
        }
    }
}

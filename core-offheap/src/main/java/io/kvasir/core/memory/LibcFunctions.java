package io.kvasir.core.memory;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.invoke.MethodHandle;

/** Functions of the C library of Linux, callable where native access is enabled. */
final class LibcFunctions {
    private LibcFunctions() {}

    /** Whether functions may be called: native access is enabled, on Linux. */
    static boolean areCallable() {
        return LibcFunctions.class.getModule().isNativeAccessEnabled()
                && System.getProperty("os.name", "").equals("Linux");
    }

    /** A function by name, where {@link #areCallable}; throws where the library has none. */
    @SuppressWarnings("restricted") // asked for only where native access is enabled
    static MethodHandle named(
            String name, FunctionDescriptor descriptor, Linker.Option... options) {
        final Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(linker.defaultLookup().findOrThrow(name), descriptor, options);
    }
}

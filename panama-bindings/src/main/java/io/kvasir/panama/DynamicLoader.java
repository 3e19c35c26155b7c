package io.kvasir.panama;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.Optional;

/**
 * The C library's own loader. {@link SymbolLookup#libraryLookup(String, Arena)} keeps the cause of
 * a failure to itself; {@code dlopen} followed by {@code dlerror} on the same thread tells it.
 */
@SuppressWarnings("restricted") // linking a downcall is what this class is for
final class DynamicLoader {
    private static final int RTLD_NOW = 2; // every symbol is bound here, not inside a later call

    private final MethodHandle dlopen;
    private final MethodHandle dlerror;
    private final MethodHandle setenv;

    private DynamicLoader(Linker linker) {
        final SymbolLookup libc = linker.defaultLookup();
        dlopen =
                linker.downcallHandle(
                        libc.findOrThrow("dlopen"),
                        FunctionDescriptor.of(ADDRESS, ADDRESS, JAVA_INT));
        dlerror =
                linker.downcallHandle(libc.findOrThrow("dlerror"), FunctionDescriptor.of(ADDRESS));
        setenv =
                linker.downcallHandle(
                        libc.findOrThrow("setenv"),
                        FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_INT));
    }

    /**
     * Binds the C library.
     *
     * @throws java.util.NoSuchElementException if it has no dlopen under that name
     */
    static DynamicLoader system() {
        return new DynamicLoader(Linker.nativeLinker());
    }

    /**
     * Loads a library for the life of the process: it may run threads of its own, so it is never
     * unloaded.
     *
     * @param name a path, or a bare name for the loader's own search
     * @return why it cannot be loaded, or empty when it is loaded
     */
    Optional<String> open(String name) {
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment cName = arena.allocateFrom(name);
            final MemorySegment handle = (MemorySegment) dlopen.invokeExact(cName, RTLD_NOW);
            return MemorySegment.NULL.equals(handle) ? Optional.of(lastError()) : Optional.empty();
        } catch (Throwable t) {
            throw new AssertionError("dlopen must not throw", t);
        }
    }

    private String lastError() throws Throwable {
        final MemorySegment text = (MemorySegment) dlerror.invokeExact();
        return MemorySegment.NULL.equals(text)
                ? "dlopen failed without a reason"
                : text.reinterpret(Long.MAX_VALUE).getString(0);
    }

    /**
     * Sets a variable of the process as C libraries see it; {@link System#getenv} does not change.
     * Other native threads must not read the environment meanwhile.
     *
     * @return whether it was set
     */
    boolean setEnvironment(String variable, String value) {
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment cVariable = arena.allocateFrom(variable);
            final MemorySegment cValue = arena.allocateFrom(value);
            return (int) setenv.invokeExact(cVariable, cValue, 1) == 0;
        } catch (Throwable t) {
            throw new AssertionError("setenv must not throw", t);
        }
    }
}

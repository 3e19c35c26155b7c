package io.kvasir.panama.libc;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.NoSuchElementException;
import java.util.Optional;

/**
 * The C library's own loader. {@link SymbolLookup#libraryLookup(String, Arena)} keeps the cause of
 * a failure to itself; {@code dlopen} followed by {@code dlerror} on the same thread tells it. Any
 * thread may call it.
 */
@SuppressWarnings("restricted") // linking a downcall is what this class is for
public final class DynamicLoader {
    private static final int RTLD_NOW = 2; // every symbol is bound here, not inside a later call

    private final MethodHandle dlopen;
    private final MethodHandle dlsym;
    private final MethodHandle dlerror;

    private DynamicLoader(Linker linker) {
        final SymbolLookup libc = linker.defaultLookup();
        dlopen =
                linker.downcallHandle(
                        libc.findOrThrow("dlopen"),
                        FunctionDescriptor.of(ADDRESS, ADDRESS, JAVA_INT));
        dlsym =
                linker.downcallHandle(
                        libc.findOrThrow("dlsym"),
                        FunctionDescriptor.of(ADDRESS, ADDRESS, ADDRESS));
        dlerror =
                linker.downcallHandle(libc.findOrThrow("dlerror"), FunctionDescriptor.of(ADDRESS));
    }

    /** What loading gave. */
    public sealed interface Outcome {
        /**
         * Loaded for the life of the process.
         *
         * @param symbols of this library and of those that it needs, of no other
         */
        record Loaded(SymbolLookup symbols) implements Outcome {}

        /**
         * Not loaded.
         *
         * @param why the loader's words
         */
        record Failed(String why) implements Outcome {}
    }

    /**
     * Loads a library for the life of the process: it may run threads of its own, so it is never
     * unloaded. Loading it again only finds its symbols.
     *
     * @param name a path, or a bare name for the loader's own search
     * @return its symbols, or why there are none
     */
    public static Outcome open(String name) {
        try {
            return new DynamicLoader(Linker.nativeLinker()).load(name);
        } catch (NoSuchElementException e) {
            return new Outcome.Failed("the C library has no dlopen: " + e.getMessage());
        }
    }

    private Outcome load(String name) {
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment cName = arena.allocateFrom(name);
            final MemorySegment handle = (MemorySegment) dlopen.invokeExact(cName, RTLD_NOW);
            if (!MemorySegment.NULL.equals(handle)) {
                return new Outcome.Loaded(symbol -> find(handle, symbol));
            }
            final MemorySegment text = (MemorySegment) dlerror.invokeExact();
            return new Outcome.Failed(
                    MemorySegment.NULL.equals(text)
                            ? name + ": dlopen failed without a reason"
                            : text.reinterpret(Long.MAX_VALUE).getString(0));
        } catch (Throwable t) {
            throw new AssertionError("dlopen must not throw", t);
        }
    }

    private Optional<MemorySegment> find(MemorySegment handle, String symbol) {
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment cSymbol = arena.allocateFrom(symbol);
            final MemorySegment address = (MemorySegment) dlsym.invokeExact(handle, cSymbol);
            return MemorySegment.NULL.equals(address) ? Optional.empty() : Optional.of(address);
        } catch (Throwable t) {
            throw new AssertionError("dlsym must not throw", t);
        }
    }
}

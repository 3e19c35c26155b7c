package io.kvasir.panama.nixl;

import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.EnumMap;
import java.util.Map;

/**
 * The raw layer: calls of one loaded library by {@link NixlFunction}, with pointers as they are.
 * Only the safe layer calls it; whether pointers live and belong together is the caller's business.
 */
@SuppressWarnings("restricted") // linking a downcall is what this class is for
final class NixlCapi {
    private final Map<NixlFunction, MethodHandle> handles;

    private NixlCapi(Map<NixlFunction, MethodHandle> handles) {
        this.handles = handles;
    }

    /**
     * Binds every function.
     *
     * @throws java.util.NoSuchElementException if one is missing; the probe has asked before
     */
    static NixlCapi bind(SymbolLookup lookup) {
        final Map<NixlFunction, MethodHandle> handles = new EnumMap<>(NixlFunction.class);
        for (NixlFunction function : NixlFunction.values()) {
            handles.put(
                    function,
                    Linker.nativeLinker()
                            .downcallHandle(
                                    lookup.findOrThrow(function.symbol()), function.descriptor()));
        }
        return new NixlCapi(handles);
    }

    boolean isStub() {
        try {
            return (boolean) handles.get(NixlFunction.IS_STUB).invokeExact();
        } catch (Throwable t) {
            throw mustNotThrow(NixlFunction.IS_STUB, t);
        }
    }

    int call(NixlFunction function, MemorySegment a) {
        try {
            return (int) handles.get(function).invokeExact(a);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int call(NixlFunction function, MemorySegment a, MemorySegment b) {
        try {
            return (int) handles.get(function).invokeExact(a, b);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int call(NixlFunction function, MemorySegment a, long index, MemorySegment b) {
        try {
            return (int) handles.get(function).invokeExact(a, index, b);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int call(NixlFunction function, MemorySegment a, MemorySegment b, MemorySegment c) {
        try {
            return (int) handles.get(function).invokeExact(a, b, c);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int call(
            NixlFunction function,
            MemorySegment a,
            MemorySegment b,
            MemorySegment c,
            MemorySegment d) {
        try {
            return (int) handles.get(function).invokeExact(a, b, c, d);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int call(
            NixlFunction function,
            MemorySegment a,
            MemorySegment b,
            MemorySegment c,
            MemorySegment d,
            MemorySegment e) {
        try {
            return (int) handles.get(function).invokeExact(a, b, c, d, e);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int call(NixlFunction function, int kind, MemorySegment a) {
        try {
            return (int) handles.get(function).invokeExact(kind, a);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int call(
            NixlFunction function, MemorySegment a, MemorySegment b, long length, MemorySegment c) {
        try {
            return (int) handles.get(function).invokeExact(a, b, length, c);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int addRegistration(MemorySegment list, long address, long length, long device) {
        try {
            return (int)
                    handles.get(NixlFunction.REG_DLIST_ADD_DESC)
                            .invokeExact(list, address, length, device, MemorySegment.NULL, 0L);
        } catch (Throwable t) {
            throw mustNotThrow(NixlFunction.REG_DLIST_ADD_DESC, t);
        }
    }

    static AssertionError mustNotThrow(NixlFunction function, Throwable cause) {
        return new AssertionError(function.symbol() + " must not throw", cause);
    }
}

package io.kvasir.panama.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.EnumMap;
import java.util.Map;
import java.util.Optional;

/**
 * The raw layer: calls of one loaded driver by {@link CudaFunction}, with addresses as numbers.
 * Only the safe layer calls it; whether handles live and belong together is the caller's business.
 *
 * <p>What runs once per block or per poll (copies, record, query) has a method and a final handle
 * of its own and allocates nothing; the rest goes by name.
 */
@SuppressWarnings("restricted") // linking a downcall is what this class is for
final class CudaApi {
    private final Map<CudaFunction, MethodHandle> handles;
    private final MethodHandle memcpyHtoDAsync;
    private final MethodHandle memcpyDtoHAsync;
    private final MethodHandle memcpyDtoDAsync;
    private final MethodHandle streamQuery;
    private final MethodHandle eventRecord;
    private final MethodHandle eventQuery;

    private CudaApi(Map<CudaFunction, MethodHandle> handles) {
        this.handles = handles;
        memcpyHtoDAsync = handles.get(CudaFunction.MEMCPY_H_TO_D_ASYNC);
        memcpyDtoHAsync = handles.get(CudaFunction.MEMCPY_D_TO_H_ASYNC);
        memcpyDtoDAsync = handles.get(CudaFunction.MEMCPY_D_TO_D_ASYNC);
        streamQuery = handles.get(CudaFunction.STREAM_QUERY);
        eventRecord = handles.get(CudaFunction.EVENT_RECORD);
        eventQuery = handles.get(CudaFunction.EVENT_QUERY);
    }

    /**
     * Binds every function; one that only newer drivers have is left out where it is missing.
     *
     * @throws java.util.NoSuchElementException if another is missing; the probe has asked before
     */
    static CudaApi bind(SymbolLookup lookup) {
        final Map<CudaFunction, MethodHandle> handles = new EnumMap<>(CudaFunction.class);
        for (CudaFunction function : CudaFunction.values()) {
            final Optional<MemorySegment> address =
                    function.isNeeded()
                            ? Optional.of(lookup.findOrThrow(function.symbol()))
                            : lookup.find(function.symbol());
            address.ifPresent(
                    a ->
                            handles.put(
                                    function,
                                    Linker.nativeLinker()
                                            .downcallHandle(a, function.descriptor())));
        }
        return new CudaApi(handles);
    }

    int memcpyHtoDAsync(long device, long host, long length, long stream) {
        try {
            return (int) memcpyHtoDAsync.invokeExact(device, host, length, stream);
        } catch (Throwable t) {
            throw mustNotThrow(CudaFunction.MEMCPY_H_TO_D_ASYNC, t);
        }
    }

    int memcpyDtoHAsync(long host, long device, long length, long stream) {
        try {
            return (int) memcpyDtoHAsync.invokeExact(host, device, length, stream);
        } catch (Throwable t) {
            throw mustNotThrow(CudaFunction.MEMCPY_D_TO_H_ASYNC, t);
        }
    }

    int memcpyDtoDAsync(long target, long source, long length, long stream) {
        try {
            return (int) memcpyDtoDAsync.invokeExact(target, source, length, stream);
        } catch (Throwable t) {
            throw mustNotThrow(CudaFunction.MEMCPY_D_TO_D_ASYNC, t);
        }
    }

    int streamQuery(long stream) {
        try {
            return (int) streamQuery.invokeExact(stream);
        } catch (Throwable t) {
            throw mustNotThrow(CudaFunction.STREAM_QUERY, t);
        }
    }

    int eventRecord(long event, long stream) {
        try {
            return (int) eventRecord.invokeExact(event, stream);
        } catch (Throwable t) {
            throw mustNotThrow(CudaFunction.EVENT_RECORD, t);
        }
    }

    int eventQuery(long event) {
        try {
            return (int) eventQuery.invokeExact(event);
        } catch (Throwable t) {
            throw mustNotThrow(CudaFunction.EVENT_QUERY, t);
        }
    }

    int call(CudaFunction function) {
        try {
            return (int) handles.get(function).invokeExact();
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int call(CudaFunction function, int a) {
        try {
            return (int) handles.get(function).invokeExact(a);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int call(CudaFunction function, long a) {
        try {
            return (int) handles.get(function).invokeExact(a);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int call(CudaFunction function, MemorySegment a) {
        try {
            return (int) handles.get(function).invokeExact(a);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int call(CudaFunction function, int a, MemorySegment b) {
        try {
            return (int) handles.get(function).invokeExact(a, b);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int call(CudaFunction function, MemorySegment a, int b) {
        try {
            return (int) handles.get(function).invokeExact(a, b);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int call(CudaFunction function, MemorySegment a, long b) {
        try {
            return (int) handles.get(function).invokeExact(a, b);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int call(CudaFunction function, MemorySegment a, MemorySegment b) {
        try {
            return (int) handles.get(function).invokeExact(a, b);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int call(CudaFunction function, long a, int b) {
        try {
            return (int) handles.get(function).invokeExact(a, b);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int call(CudaFunction function, MemorySegment a, int b, int c) {
        try {
            return (int) handles.get(function).invokeExact(a, b, c);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int call(CudaFunction function, MemorySegment a, int b, long c) {
        try {
            return (int) handles.get(function).invokeExact(a, b, c);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int call(CudaFunction function, MemorySegment a, long b, long c) {
        try {
            return (int) handles.get(function).invokeExact(a, b, c);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    /** {@code b} goes by value where the function's layout is a struct. */
    int call(CudaFunction function, MemorySegment a, MemorySegment b, int c) {
        try {
            return (int) handles.get(function).invokeExact(a, b, c);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int call(CudaFunction function, MemorySegment a, MemorySegment b, long c) {
        try {
            return (int) handles.get(function).invokeExact(a, b, c);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int call(CudaFunction function, long a, long b, int c) {
        try {
            return (int) handles.get(function).invokeExact(a, b, c);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int call(CudaFunction function, long a, byte b, long c) {
        try {
            return (int) handles.get(function).invokeExact(a, b, c);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int call(CudaFunction function, long a, byte b, long c, long d) {
        try {
            return (int) handles.get(function).invokeExact(a, b, c, d);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    int call(CudaFunction function, long a, long b, long c, long d, long e, long f) {
        try {
            return (int) handles.get(function).invokeExact(a, b, c, d, e, f);
        } catch (Throwable t) {
            throw mustNotThrow(function, t);
        }
    }

    /** Returns the number a function fills in that takes nothing else. */
    int intOf(CudaFunction function, String subject) {
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment out = arena.allocate(JAVA_INT);
            check(function, call(function, out), subject);
            return out.get(JAVA_INT, 0);
        }
    }

    /** Returns the number a function fills in that takes two more numbers. */
    int intOf(CudaFunction function, int b, int c, String subject) {
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment out = arena.allocate(JAVA_INT);
            check(function, call(function, out, b, c), subject);
            return out.get(JAVA_INT, 0);
        }
    }

    /** Returns the handle or size a function fills in that takes one more number. */
    long longOf(CudaFunction function, int b, String subject) {
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment out = arena.allocate(JAVA_LONG);
            check(function, call(function, out, b), subject);
            return out.get(JAVA_LONG, 0);
        }
    }

    /** Ends without a word if the result is 0. */
    void check(CudaFunction function, int code, String subject) {
        if (code != 0) {
            throw failure(function, code, subject);
        }
    }

    /** Returns the exception for a result that is not 0. */
    CudaException failure(CudaFunction function, int code, String subject) {
        return new CudaException(function.symbol(), code, errorName(code), subject);
    }

    /** Returns the name of a result: the driver's, or ours where the driver knows none. */
    String errorName(int code) {
        return text(CudaFunction.GET_ERROR_NAME, code)
                .or(() -> CudaResult.of(code).map(CudaResult::cName))
                .orElse("unknown result");
    }

    /** Returns the driver's words for a result. */
    Optional<String> errorText(int code) {
        return text(CudaFunction.GET_ERROR_STRING, code);
    }

    private Optional<String> text(CudaFunction function, int code) {
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment out = arena.allocate(ADDRESS);
            if (call(function, code, out) != 0) {
                return Optional.empty();
            }
            final MemorySegment text = out.get(ADDRESS, 0);
            return MemorySegment.NULL.equals(text)
                    ? Optional.empty()
                    : Optional.of(text.reinterpret(Long.MAX_VALUE).getString(0));
        }
    }

    private static AssertionError mustNotThrow(CudaFunction function, Throwable cause) {
        return new AssertionError(function.symbol() + " must not throw", cause);
    }
}

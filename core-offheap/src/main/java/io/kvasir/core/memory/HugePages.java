package io.kvasir.core.memory;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Optional;

/**
 * Zeroed memory on 2 MiB pages, where the operating system is Linux and the caller's module may
 * call native code ({@code --enable-native-access}). Random access to large tables costs a third
 * less there: one entry of the processor's page cache covers 512 times as much.
 *
 * <p>Pages are taken when they are first written. Whether they are large is for the kernel to say
 * ({@code transparent_hugepage} must be {@code madvise} or {@code always}); without them it is
 * plain memory.
 */
final class HugePages {
    private static final long PAGE = 2L << 20;
    private static final int READ_WRITE = 0x3;
    private static final int PRIVATE_ANONYMOUS = 0x22;
    private static final int ADVICE_HUGE = 14;
    private static final MemorySegment FAILED = MemorySegment.ofAddress(-1);

    private static final Optional<Calls> CALLS = calls();

    private record Calls(MethodHandle map, MethodHandle unmap, MethodHandle advise) {}

    private HugePages() {}

    /**
     * Takes memory of at least one large page.
     *
     * @param arena gives the memory back when it is closed
     * @param length bytes
     * @return zeroed memory of that length, empty where it cannot be had this way
     */
    @SuppressWarnings("restricted") // maps and unmaps its own memory only
    static Optional<MemorySegment> allocate(Arena arena, long length) {
        if (CALLS.isEmpty() || length < PAGE) {
            return Optional.empty();
        }
        final Calls calls = CALLS.get();
        final long mapped = length + PAGE; // so that a page boundary is inside
        try {
            final MemorySegment base =
                    (MemorySegment)
                            calls.map.invokeExact(
                                    MemorySegment.NULL,
                                    mapped,
                                    READ_WRITE,
                                    PRIVATE_ANONYMOUS,
                                    -1,
                                    0L);
            if (base.equals(FAILED)) {
                return Optional.empty();
            }
            final long aligned = (base.address() + PAGE - 1) & -PAGE;
            // a kernel without large pages refuses the advice; the memory is good all the same
            final int advised =
                    (int)
                            calls.advise.invokeExact(
                                    MemorySegment.ofAddress(aligned), length & -PAGE, ADVICE_HUGE);
            assert advised == 0 || advised == -1;
            return Optional.of(
                    MemorySegment.ofAddress(aligned)
                            .reinterpret(length, arena, gone -> unmap(calls, base, mapped)));
        } catch (Throwable t) {
            throw new AssertionError("mmap and madvise do not throw", t);
        }
    }

    private static void unmap(Calls calls, MemorySegment base, long length) {
        try {
            final int unmapped = (int) calls.unmap.invokeExact(base, length);
            assert unmapped == 0 : "munmap refused: base=" + base + ", length=" + length;
        } catch (Throwable t) {
            throw new AssertionError("munmap does not throw", t);
        }
    }

    /** Memory from address 0 on where native access is enabled, else an empty segment. */
    @SuppressWarnings("restricted") // asked for only where native access is enabled
    static MemorySegment allMemory() {
        return HugePages.class.getModule().isNativeAccessEnabled()
                ? MemorySegment.NULL.reinterpret(Long.MAX_VALUE)
                : MemorySegment.NULL;
    }

    @SuppressWarnings("restricted") // asked for only where native access is enabled
    private static Optional<Calls> calls() {
        if (!HugePages.class.getModule().isNativeAccessEnabled()
                || !System.getProperty("os.name", "").equals("Linux")) {
            return Optional.empty();
        }
        final Linker linker = Linker.nativeLinker();
        return Optional.of(
                new Calls(
                        linker.downcallHandle(
                                linker.defaultLookup().findOrThrow("mmap"),
                                FunctionDescriptor.of(
                                        ValueLayout.ADDRESS,
                                        ValueLayout.ADDRESS,
                                        ValueLayout.JAVA_LONG,
                                        ValueLayout.JAVA_INT,
                                        ValueLayout.JAVA_INT,
                                        ValueLayout.JAVA_INT,
                                        ValueLayout.JAVA_LONG)),
                        linker.downcallHandle(
                                linker.defaultLookup().findOrThrow("munmap"),
                                FunctionDescriptor.of(
                                        ValueLayout.JAVA_INT,
                                        ValueLayout.ADDRESS,
                                        ValueLayout.JAVA_LONG)),
                        linker.downcallHandle(
                                linker.defaultLookup().findOrThrow("madvise"),
                                FunctionDescriptor.of(
                                        ValueLayout.JAVA_INT,
                                        ValueLayout.ADDRESS,
                                        ValueLayout.JAVA_LONG,
                                        ValueLayout.JAVA_INT))));
    }
}

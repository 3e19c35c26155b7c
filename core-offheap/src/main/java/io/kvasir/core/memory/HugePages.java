package io.kvasir.core.memory;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Optional;

/**
 * Zeroed memory on 2 MiB pages, where the operating system is Linux and the caller's module may
 * call native code ({@code --enable-native-access}). Random access to large tables costs a third
 * less there: one entry of the processor's page cache serves 512 times as much.
 *
 * <p>Pages are taken when they are first written. Whether they are large is for the kernel to say
 * ({@code transparent_hugepage} must be {@code madvise} or {@code always}); without them, and with
 * {@code -Dkvasir.memory.large-pages=false}, it is plain memory: less of it where there are many
 * small structures, since the first byte of a large page takes all of it.
 */
final class HugePages {
    private static final long PAGE = 2L << 20;
    private static final long LARGEST_SMALL_PAGE = 64L << 10;
    private static final int READ_WRITE = 0x3;
    private static final int PRIVATE_ANONYMOUS = 0x22;
    private static final int ADVICE_HUGE = 14;
    private static final MemorySegment FAILED = MemorySegment.ofAddress(-1);

    private static final boolean LARGE =
            !"false".equals(System.getProperty("kvasir.memory.large-pages"));

    private static final Optional<Calls> CALLS = calls();

    private record Calls(MethodHandle map, MethodHandle unmap, MethodHandle advise) {}

    private HugePages() {}

    /**
     * Maps memory; {@link #unmap} gives it back. From 2 MiB on it begins at a large page.
     *
     * @param length bytes
     * @return zeroed memory of that length, empty where it cannot be had this way
     */
    @SuppressWarnings("restricted") // maps its own memory only
    static Optional<MemorySegment> map(long length) {
        if (CALLS.isEmpty()) {
            return Optional.empty();
        }
        final Calls calls = CALLS.get();
        final boolean large = isLarge(length);
        final long mapped = large ? mapped(length) : length;
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
            if (!large) {
                return Optional.of(base.reinterpret(length));
            }
            final long start = base.address();
            final long aligned = aligned(start);
            final long end = aligned + kept(length);
            unmap(start, aligned - start);
            unmap(end, start + mapped - end);
            // a kernel without large pages refuses the advice; the memory is good all the same
            final int advised =
                    (int)
                            calls.advise.invokeExact(
                                    MemorySegment.ofAddress(aligned), length & -PAGE, ADVICE_HUGE);
            assert advised == 0 || advised == -1;
            return Optional.of(MemorySegment.ofAddress(aligned).reinterpret(length));
        } catch (Throwable t) {
            throw new AssertionError("mmap and madvise do not throw", t);
        }
    }

    private static boolean isLarge(long length) {
        return LARGE && length >= PAGE;
    }

    /** Bytes to map for large memory: what is kept is inside, wherever the kernel puts them. */
    static long mapped(long length) {
        return kept(length) + PAGE;
    }

    /** Where large memory begins in a mapping. */
    static long aligned(long start) {
        return (start + PAGE - 1) & -PAGE;
    }

    /** Bytes of large memory that stay mapped: whole small pages, however large they are here. */
    static long kept(long length) {
        return (length + LARGEST_SMALL_PAGE - 1) & -LARGEST_SMALL_PAGE;
    }

    /** Gives memory of {@link #map} back. */
    static void unmap(MemorySegment memory) {
        final long length = memory.byteSize();
        unmap(memory.address(), isLarge(length) ? kept(length) : length);
    }

    private static void unmap(long start, long length) {
        if (length <= 0) {
            return;
        }
        try {
            final int unmapped =
                    (int)
                            CALLS.orElseThrow()
                                    .unmap
                                    .invokeExact(MemorySegment.ofAddress(start), length);
            assert unmapped == 0 : "munmap refused: start=" + start + ", length=" + length;
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

    private static Optional<Calls> calls() {
        if (!LibcFunctions.areCallable()) {
            return Optional.empty();
        }
        return Optional.of(
                new Calls(
                        LibcFunctions.named(
                                "mmap",
                                FunctionDescriptor.of(
                                        ValueLayout.ADDRESS,
                                        ValueLayout.ADDRESS,
                                        ValueLayout.JAVA_LONG,
                                        ValueLayout.JAVA_INT,
                                        ValueLayout.JAVA_INT,
                                        ValueLayout.JAVA_INT,
                                        ValueLayout.JAVA_LONG)),
                        LibcFunctions.named(
                                "munmap",
                                FunctionDescriptor.of(
                                        ValueLayout.JAVA_INT,
                                        ValueLayout.ADDRESS,
                                        ValueLayout.JAVA_LONG)),
                        LibcFunctions.named(
                                "madvise",
                                FunctionDescriptor.of(
                                        ValueLayout.JAVA_INT,
                                        ValueLayout.ADDRESS,
                                        ValueLayout.JAVA_LONG,
                                        ValueLayout.JAVA_INT))));
    }
}

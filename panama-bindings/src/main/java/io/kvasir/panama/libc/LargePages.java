package io.kvasir.panama.libc;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Zeroed memory of the host on pages of 2 MiB, for whatever copies it page by page. Between two
 * processes of one machine (CMA) the kernel looks up every page of a block: 16 blocks of 64 KiB
 * come over in 50 to 60 µs instead of 103.
 *
 * <p>Only on Linux, with native access ({@code --enable-native-access}), from 2 MiB on, and where
 * the kernel's {@code transparent_hugepage} is {@code madvise} or {@code always} and has such pages
 * left; else it is memory on ordinary pages. Any thread.
 */
public final class LargePages {
    private static final long PAGE = 2L << 20;
    private static final long SMALL_PAGE = 4096;

    private LargePages() {}

    /**
     * Allocates memory and writes all of it, so that the kernel must not find pages later.
     *
     * @param arena gives it back when it is closed
     * @param length bytes, at least 1; up to 2 MiB more are taken
     * @return zeros, from a page's first byte on
     * @throws OutOfMemoryError if there is not so much
     */
    @SuppressWarnings("restricted") // its own memory, of the length that it asked for
    public static MemorySegment allocate(Arena arena, long length) {
        if (length < PAGE || !isUsable()) {
            return arena.allocate(length, SMALL_PAGE);
        }
        final long whole = (length + PAGE - 1) & -PAGE;
        final MemorySegment memory = LibC.allocate(PAGE, whole);
        if (memory.address() == 0) {
            throw new OutOfMemoryError("no " + whole + " bytes of memory outside the Java heap");
        }
        LibC.adviseLargePages(
                memory, whole); // refused without them: the memory is good all the same
        return memory.reinterpret(length, arena, LibC::free).fill((byte) 0);
    }

    private static boolean isUsable() {
        return LargePages.class.getModule().isNativeAccessEnabled()
                && System.getProperty("os.name", "").equals("Linux");
    }
}

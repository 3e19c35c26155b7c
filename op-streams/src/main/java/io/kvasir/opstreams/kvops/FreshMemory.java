package io.kvasir.opstreams.kvops;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Memory that the process has mapped since a moment, to be touched before a clock runs: a page that
 * is written for the first time costs a fault, 100 us and more for a large one, which belongs to
 * starting an index and not to an event. Linux 5.14 and later; elsewhere nothing is touched.
 */
@SuppressWarnings("restricted") // asks the kernel to back writable memory of this process
final class FreshMemory {
    private static final Path MAPS = Path.of("/proc/self/maps");
    private static final int POPULATE_WRITE = 23;
    private static final long PAGE = 4096;
    private static final long SLACK = 64L << 20;
    private static final int COLUMNS = 6; // address mode offset device inode path
    private static final MethodHandle ADVISE =
            Files.isReadable(MAPS)
                    ? Linker.nativeLinker()
                            .defaultLookup()
                            .find("madvise")
                            .map(
                                    address ->
                                            Linker.nativeLinker()
                                                    .downcallHandle(
                                                            address,
                                                            FunctionDescriptor.of(
                                                                    JAVA_INT, ADDRESS, JAVA_LONG,
                                                                    JAVA_INT)))
                            .orElse(null)
                    : null;

    private final List<Range> before;

    private FreshMemory(List<Range> before) {
        this.before = before;
    }

    /** Addresses from {@code start} (inclusive) to {@code end} (exclusive). */
    private record Range(long start, long end) {
        long length() {
            return end - start;
        }
    }

    /** What is mapped from now on is fresh. */
    static FreshMemory before() {
        return new FreshMemory(ADVISE == null ? List.of() : mapped());
    }

    /**
     * Backs all fresh memory with pages.
     *
     * @param expected bytes that are meant, about; when far more is fresh, none of it is touched: a
     *     reserve that is never to be filled
     * @return bytes touched
     */
    long touch(long expected) {
        if (ADVISE == null) {
            return 0;
        }
        final List<Range> fresh = mapped();
        for (Range known : before) {
            subtract(fresh, known);
        }
        final long length = fresh.stream().mapToLong(Range::length).sum();
        if (length > Math.max(expected, 0) + expected / 2 + SLACK) {
            return 0;
        }
        long touched = 0;
        for (Range range : fresh) {
            touched += advise(range) == 0 ? range.length() : 0;
        }
        return touched;
    }

    private static int advise(Range range) {
        try {
            return (int)
                    ADVISE.invokeExact(
                            MemorySegment.ofAddress(range.start), range.length(), POPULATE_WRITE);
        } catch (Throwable t) {
            throw new AssertionError("madvise does not throw", t);
        }
    }

    private static void subtract(List<Range> ranges, Range known) {
        for (int i = ranges.size() - 1; i >= 0; i--) {
            final Range range = ranges.get(i);
            if (range.end <= known.start || known.end <= range.start) {
                continue;
            }
            ranges.remove(i);
            if (range.start < known.start) {
                ranges.add(new Range(range.start, known.start));
            }
            if (known.end < range.end) {
                ranges.add(new Range(known.end, range.end));
            }
        }
    }

    /** Writable memory of this process alone that stands for no file. */
    private static List<Range> mapped() {
        try {
            final List<Range> ranges = new ArrayList<>();
            // read at once: the file changes while it is read line by line
            final String maps = Files.readString(MAPS, StandardCharsets.ISO_8859_1);
            for (String line : maps.split("\n", -1)) {
                final String[] words = line.split(" +", COLUMNS);
                if (words.length >= COLUMNS - 1
                        && words[1].equals("rw-p")
                        && words[4].equals("0")
                        && (words.length < COLUMNS || words[COLUMNS - 1].isBlank())) {
                    final int dash = words[0].indexOf('-');
                    final long start = Long.parseUnsignedLong(words[0], 0, dash, 16);
                    final long end =
                            Long.parseUnsignedLong(words[0], dash + 1, words[0].length(), 16);
                    if (end - start >= PAGE) {
                        ranges.add(new Range(start, end));
                    }
                }
            }
            return ranges;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}

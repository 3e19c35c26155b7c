package io.kvasir.core.counters;

import io.kvasir.core.memory.OffHeap;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Objects;
import java.util.Set;

/**
 * Errors by their cause: the first of a kind is written with its stack trace, the others count. Two
 * are of one kind if class, message and stack trace are the same, those of their causes included.
 * Any thread; waits for others that record.
 */
public final class DistinctErrors {
    /** Causes that are compared: they may form a circle. */
    private static final int MAX_CAUSES = 100;

    private final OffHeap memory;
    private final long start;
    private final List<Observation> observations = new ArrayList<>();
    private long next;
    private boolean closed;

    private record Observation(Throwable error, long offset) {}

    DistinctErrors(OffHeap memory, long start) {
        this.memory = memory;
        this.start = start;
        this.next = start;
    }

    /**
     * Records an error.
     *
     * @param nowMs milliseconds since the epoch
     * @return whether it is recorded: false where there is no room for another kind, or the file is
     *     closed
     */
    public synchronized boolean record(Throwable error, long nowMs) {
        if (closed) {
            return false;
        }
        long offset = find(error);
        if (offset < start) {
            offset = write(error, nowMs);
            if (offset < start) {
                return false;
            }
        }
        final long count = offset + CountersDescriptor.ERROR_COUNT_OFFSET;
        memory.putIntRelease(count, memory.getInt(count) + 1);
        // the time (release) after the count: a reader acquires the time first, and its count is
        // that of this observation or of a later one
        memory.putLongRelease(offset + CountersDescriptor.ERROR_LAST_OFFSET, nowMs);
        return true;
    }

    private long find(Throwable error) {
        for (Observation known : observations) {
            if (areAlike(known.error, error)) {
                return known.offset;
            }
        }
        return -1;
    }

    private static boolean areAlike(Throwable one, Throwable other) {
        Throwable a = one;
        Throwable b = other;
        for (int depth = 0; !Objects.equals(a, b) && depth < MAX_CAUSES; depth++) {
            if (a == null
                    || b == null
                    || a.getClass() != b.getClass()
                    || !Objects.equals(a.getMessage(), b.getMessage())
                    || !Arrays.equals(a.getStackTrace(), b.getStackTrace())) {
                return false;
            }
            a = a.getCause();
            b = b.getCause();
        }
        return true;
    }

    /** Where it was written; -1 where it has no room. */
    private long write(Throwable error, long nowMs) {
        final byte[] text = text(error);
        final long room = memory.length() - next - CountersDescriptor.ERROR_TEXT_OFFSET;
        if (text.length > room) {
            return -1;
        }
        final long offset = next;
        CountersFile.putBytes(
                memory, offset + CountersDescriptor.ERROR_TEXT_OFFSET, text, text.length);
        memory.putLong(offset + CountersDescriptor.ERROR_FIRST_OFFSET, nowMs);
        final int length = CountersDescriptor.ERROR_TEXT_OFFSET + text.length;
        next = offset + CountersDescriptor.alignedError(length);
        observations.add(new Observation(error, offset));
        // the length (release) after the text: CountersReader.errors acquires it, then reads that
        memory.putIntRelease(offset + CountersDescriptor.ERROR_LENGTH_OFFSET, length);
        return offset;
    }

    /** Error and causes with their frames; a cause that comes again ends it. */
    private static byte[] text(Throwable error) {
        final StringBuilder text = new StringBuilder();
        final Set<Throwable> seen = Collections.newSetFromMap(new IdentityHashMap<>());
        for (Throwable each = error; each != null && seen.add(each); each = each.getCause()) {
            text.append(seen.size() == 1 ? "" : "Caused by: ").append(each).append('\n');
            for (StackTraceElement frame : each.getStackTrace()) {
                text.append("\tat ").append(frame).append('\n');
            }
        }
        return text.toString().getBytes(StandardCharsets.UTF_8);
    }

    synchronized void close() {
        closed = true;
        observations.clear();
    }
}

package io.kvasir.core.memory;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.channels.FileChannel;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;

/**
 * One bounded range of memory outside the Java heap, zeroed or a file's, and the ways to read and
 * write it.
 *
 * <p>The only class that touches a {@link MemorySegment}. Without native access, and in tests, an
 * offset beyond the end is an {@link IndexOutOfBoundsException} and an access after {@link
 * #close()} an {@link IllegalStateException}. With {@code --enable-native-access} neither is
 * checked, which saves a fifth of the time of the index; {@code -Dkvasir.memory.checked=true}
 * brings the checks back. The suffix names the memory order in {@link VarHandle}'s words; no suffix
 * means plain. Offsets are bytes from the start and must be a multiple of the value's length. Any
 * thread may call; the owner of the memory decides which thread writes what.
 */
public sealed class OffHeap implements AutoCloseable permits LoggedMemory {
    /**
     * Alignment of the first byte: two cache lines, so that adjacent-line prefetch stays inside.
     */
    public static final int ALIGNMENT = 128;

    /** Longs compared at once: 0.24 ns each in cache, 0.55 one by one. */
    private static final int STRIDE = 64;

    private static final VarHandle LONG =
            ValueLayout.JAVA_LONG.varHandle().withInvokeExactBehavior();
    private static final VarHandle SHORT =
            ValueLayout.JAVA_SHORT.varHandle().withInvokeExactBehavior();
    private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle().withInvokeExactBehavior();

    /** All memory there is, where {@link HugePages} may be used; else nothing of it is touched. */
    private static final MemorySegment ALL = HugePages.allMemory();

    private static final boolean CHECKED =
            ALL.byteSize() == 0 || Boolean.getBoolean("kvasir.memory.checked");

    private static final String LIMIT = "kvasir.memory.limit";

    private static final AtomicLong ALLOCATED = new AtomicLong();

    private final Runnable release;
    private final AtomicBoolean released = new AtomicBoolean();
    private final MemorySegment segment;
    private final MemoryParts parts; // null where the operating system takes pages when touched
    private final long length;
    private final long base;
    private final long counted; // of the allocated bytes
    private StoreListener listener;

    private OffHeap(MemorySegment segment, Runnable release) {
        this.release = release;
        this.segment = segment;
        this.parts = null;
        this.length = segment.byteSize();
        this.base = CHECKED ? 0 : segment.address();
        this.counted = length;
        ALLOCATED.addAndGet(length);
    }

    /** A part of another memory, which is to be closed instead of this one. */
    OffHeap(OffHeap whole, long offset, long length) {
        if (whole.parts != null) {
            throw new IllegalArgumentException("memory that is taken in parts has none of its own");
        }
        this.release = () -> {};
        this.segment = whole.segment.asSlice(offset, length);
        this.parts = null;
        this.length = length;
        this.counted = 0;
        this.base = CHECKED ? 0 : segment.address();
    }

    private OffHeap(MemoryParts parts, long length, Runnable release) {
        this.release = release;
        this.segment = MemorySegment.NULL;
        this.parts = parts;
        this.length = length;
        this.base = 0;
        this.counted = length;
        ALLOCATED.addAndGet(length);
    }

    /** Bytes of all memory of this process that was allocated here and not given back. */
    public static long allocatedBytes() {
        return ALLOCATED.get();
    }

    /**
     * Bytes of all memory that this process may have: {@code -Dkvasir.memory.limit}, else {@link
     * Long#MAX_VALUE}.
     *
     * @throws IllegalArgumentException if the property is no number; the message has its value
     */
    public static long limit() {
        return limit(System.getProperty(LIMIT));
    }

    static long limit(String textOrNull) {
        try {
            return textOrNull == null ? Long.MAX_VALUE : Long.decode(textOrNull);
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(
                    LIMIT
                            + "="
                            + textOrNull
                            + " is no number of bytes; write it without a unit, such as -D"
                            + LIMIT
                            + "=4000000000",
                    e);
        }
    }

    /**
     * Allocates zeroed memory.
     *
     * @param length bytes, at least 1
     * @throws IllegalArgumentException if {@code length} is not positive, or the {@link #limit} no
     *     number
     * @throws OutOfMemoryError if the operating system refuses, or the process would have more than
     *     the {@link #limit}
     */
    public static OffHeap allocate(long length) {
        if (length <= 0) {
            throw new IllegalArgumentException("length must be positive: length=" + length);
        }
        final long limit = limit();
        if (length > limit - ALLOCATED.get()) {
            throw new OutOfMemoryError(
                    "off-heap memory beyond "
                            + LIMIT
                            + ": length="
                            + length
                            + ", allocated="
                            + ALLOCATED.get()
                            + ", limit="
                            + limit);
        }
        final Optional<MemorySegment> mapped = HugePages.map(length);
        if (mapped.isPresent() && !CHECKED) {
            return new OffHeap(mapped.get(), () -> HugePages.unmap(mapped.get()));
        }
        if (mapped.isEmpty() && CHECKED && length > MemoryParts.LENGTH) {
            return inParts(length);
        }
        final Arena arena = Arena.ofShared();
        try {
            final MemorySegment memory =
                    mapped.isPresent()
                            ? bounded(mapped.get(), arena)
                            : arena.allocate(length, ALIGNMENT);
            return new OffHeap(memory, arena::close);
        } catch (Throwable t) {
            arena.close();
            throw t;
        }
    }

    /**
     * Maps a file from its start on; it stays open for as long as the caller likes.
     *
     * @param file has at least {@code length} bytes where it is only read, else it is extended
     * @param mode {@link FileChannel.MapMode#READ_WRITE}; or {@link FileChannel.MapMode#READ_ONLY},
     *     and nothing may be stored
     * @param length bytes, at least 1
     * @throws IOException if the operating system refuses
     */
    public static OffHeap map(FileChannel file, FileChannel.MapMode mode, long length)
            throws IOException {
        final Arena arena = Arena.ofShared();
        try {
            return new OffHeap(file.map(mode, 0, length, arena), arena::close);
        } catch (Throwable t) {
            arena.close();
            throw t;
        }
    }

    /**
     * A view of a part of this memory, which lasts as long as this memory does.
     *
     * @throws IndexOutOfBoundsException if it does not lie in this memory
     */
    public OffHeap part(long offset, long length) {
        return new OffHeap(this, offset, length);
    }

    /** Memory of which each part is taken when it is touched first; for checked access only. */
    static OffHeap inParts(long length) {
        final Arena arena = Arena.ofShared();
        return new OffHeap(new MemoryParts(arena, length), length, arena::close);
    }

    /** The same memory, given back with an arena that knows when it is closed. */
    @SuppressWarnings("restricted") // the length that was mapped
    private static MemorySegment bounded(MemorySegment mapped, Arena arena) {
        return mapped.reinterpret(arena, HugePages::unmap);
    }

    /**
     * Makes a second part of an owner of several: if that fails, the first is closed.
     *
     * @param first part that exists
     * @param second makes the other
     * @return what {@code second} has returned
     */
    public static <A extends AutoCloseable, B> B orClose(A first, Supplier<B> second) {
        try {
            return second.get();
        } catch (Throwable t) {
            try {
                first.close();
            } catch (Exception e) {
                t.addSuppressed(e);
            }
            throw t;
        }
    }

    /**
     * Is shown each store to a checked memory before the store takes effect, in program order. For
     * tests, which let a reader act between any two stores of a writer.
     */
    interface StoreListener {
        /**
         * A store is next.
         *
         * @param release whether it is ordered after all stores before it
         */
        void store(long offset, int length, long value, boolean release);

        /** No later store may be seen before an earlier one. */
        void fence();
    }

    /** Whether {@link #listen} has an effect: where accesses are checked. */
    static boolean isCheckable() {
        return CHECKED;
    }

    /** Shows all stores from now on to a listener; {@code null} = none. Unchecked: no effect. */
    void listen(StoreListener newListener) {
        listener = newListener;
    }

    private void store(long offset, int length, long value, boolean release) {
        remember(offset, length);
        show(offset, length, value, release);
    }

    private void show(long offset, int length, long value, boolean release) {
        if (CHECKED && listener != null) {
            listener.store(offset, length, value, release);
        }
    }

    /**
     * Bytes are about to be stored over. Does nothing: where there is no {@link LoggedMemory} the
     * compiler leaves no trace of it.
     */
    void remember(long offset, long length) {}

    /**
     * Writes a long that is in no log. Not virtual, and nothing below it is: {@link #remember} of
     * another memory calls it in the middle of a store.
     */
    final void write(long offset, long value) {
        show(offset, Long.BYTES, value, false);
        LONG.set(memory(offset), at(offset), value);
    }

    /** The same in release mode, and no later store comes before it. */
    final void writeFenced(long offset, long value) {
        show(offset, Long.BYTES, value, true);
        LONG.setRelease(memory(offset), at(offset), value);
        VarHandle.storeStoreFence();
    }

    /** Length in bytes. */
    public long length() {
        return length;
    }

    /** Reads a long. */
    public long getLong(long offset) {
        return (long) LONG.get(memory(offset), at(offset));
    }

    /** Reads a long in opaque mode. */
    public long getLongOpaque(long offset) {
        return (long) LONG.getOpaque(memory(offset), at(offset));
    }

    /** Reads a long in acquire mode. */
    public long getLongAcquire(long offset) {
        return (long) LONG.getAcquire(memory(offset), at(offset));
    }

    /** Reads neighbouring longs into an array; each by itself is whole. */
    public void getLongs(long offset, long[] out, int to, int count) {
        for (int done = 0; done < count; ) {
            final long at = offset + (long) done * Long.BYTES;
            final int next = (int) (contiguous(at, (long) (count - done) * Long.BYTES) >> 3);
            MemorySegment.copy(range(at), ValueLayout.JAVA_LONG, inRange(at), out, to + done, next);
            done += next;
        }
    }

    /** Writes a long. */
    public void putLong(long offset, long value) {
        store(offset, Long.BYTES, value, false);
        LONG.set(memory(offset), at(offset), value);
    }

    /** Writes a long in opaque mode. */
    public void putLongOpaque(long offset, long value) {
        store(offset, Long.BYTES, value, false);
        LONG.setOpaque(memory(offset), at(offset), value);
    }

    /** Writes a long in release mode. */
    public void putLongRelease(long offset, long value) {
        store(offset, Long.BYTES, value, true);
        LONG.setRelease(memory(offset), at(offset), value);
    }

    /**
     * Adds to a long atomically, in volatile mode; returns the value before. For memory that
     * several threads write: it is the one store that a {@link LoggedMemory} cannot undo.
     */
    public long getAndAddLong(long offset, long delta) {
        show(offset, Long.BYTES, getLong(offset) + delta, true);
        return (long) LONG.getAndAdd(memory(offset), at(offset), delta);
    }

    /**
     * Replaces a long if it has a value, atomically, in volatile mode; says whether it had. For
     * memory that several threads write; likewise no {@link LoggedMemory} can undo it.
     */
    public boolean compareAndSetLong(long offset, long expected, long value) {
        show(offset, Long.BYTES, value, true);
        return LONG.compareAndSet(memory(offset), at(offset), expected, value);
    }

    /** Reads a short. */
    public short getShort(long offset) {
        return (short) SHORT.get(memory(offset), at(offset));
    }

    /** Reads a short in opaque mode. */
    public short getShortOpaque(long offset) {
        return (short) SHORT.getOpaque(memory(offset), at(offset));
    }

    /** Writes a short in opaque mode. */
    public void putShortOpaque(long offset, short value) {
        store(offset, Short.BYTES, value, false);
        SHORT.setOpaque(memory(offset), at(offset), value);
    }

    /** Writes a short. */
    public void putShort(long offset, short value) {
        store(offset, Short.BYTES, value, false);
        SHORT.set(memory(offset), at(offset), value);
    }

    /** Reads a byte. */
    public byte getByte(long offset) {
        return memory(offset).get(ValueLayout.JAVA_BYTE, at(offset));
    }

    /** Writes a byte. */
    public void putByte(long offset, byte value) {
        store(offset, Byte.BYTES, value, false);
        memory(offset).set(ValueLayout.JAVA_BYTE, at(offset), value);
    }

    /** Reads an int. */
    public int getInt(long offset) {
        return (int) INT.get(memory(offset), at(offset));
    }

    /** Reads an int in opaque mode. */
    public int getIntOpaque(long offset) {
        return (int) INT.getOpaque(memory(offset), at(offset));
    }

    /** Reads an int in acquire mode. */
    public int getIntAcquire(long offset) {
        return (int) INT.getAcquire(memory(offset), at(offset));
    }

    /** Writes an int. */
    public void putInt(long offset, int value) {
        store(offset, Integer.BYTES, value, false);
        INT.set(memory(offset), at(offset), value);
    }

    /** Writes an int in opaque mode. */
    public void putIntOpaque(long offset, int value) {
        store(offset, Integer.BYTES, value, false);
        INT.setOpaque(memory(offset), at(offset), value);
    }

    /** Writes an int in release mode. */
    public void putIntRelease(long offset, int value) {
        store(offset, Integer.BYTES, value, true);
        INT.setRelease(memory(offset), at(offset), value);
    }

    /** Copies longs from an array. The same offset rules as for one long. */
    public void putLongs(long offset, long[] source, int from, int count) {
        remember(offset, (long) count * Long.BYTES);
        for (int i = 0; CHECKED && listener != null && i < count; i++) {
            show(offset + (long) i * Long.BYTES, Long.BYTES, source[from + i], false);
        }
        for (int done = 0; done < count; ) {
            final long at = offset + (long) done * Long.BYTES;
            final int next = (int) (contiguous(at, (long) (count - done) * Long.BYTES) >> 3);
            MemorySegment.copy(
                    source, from + done, range(at), ValueLayout.JAVA_LONG, inRange(at), next);
            done += next;
        }
    }

    /** Writes zeros; {@code length} is a multiple of 8. */
    public void zero(long offset, long length) {
        remember(offset, length);
        for (long at = offset; at < offset + length; at += Long.BYTES) {
            show(at, Long.BYTES, 0, false);
            LONG.set(memory(at), at(at), 0L);
        }
    }

    /** Stores before this one are seen before the stores after it. */
    public void storeStoreFence() {
        if (CHECKED && listener != null) {
            listener.fence();
        }
        VarHandle.storeStoreFence();
    }

    /** Copies longs inside this memory, {@code length} bytes; the two ranges do not overlap. */
    public void copy(long from, long to, long length) {
        remember(to, length);
        for (long i = 0; CHECKED && listener != null && i < length; i += Long.BYTES) {
            show(to + i, Long.BYTES, getLong(from + i), false);
        }
        for (long done = 0; done < length; ) {
            final long left = contiguous(from + done, length - done);
            final long next = Math.min(left, contiguous(to + done, length - done));
            MemorySegment.copy(
                    range(from + done),
                    inRange(from + done),
                    range(to + done),
                    inRange(to + done),
                    next);
            done += next;
        }
    }

    /**
     * Counts how many longs from an offset on equal those of an array. Plain reads.
     *
     * @param offset first long in this memory
     * @param values compared with; [from + count]
     * @param from first index in {@code values}
     * @param count longs to compare at most
     * @return 0..{@code count}: longs before the first difference
     */
    public int matchingLongs(long offset, long[] values, int from, int count) {
        int i = 0;
        while (i + STRIDE <= count && !differ(offset + (long) i * Long.BYTES, values, from + i)) {
            i += STRIDE;
        }
        while (i < count && getLong(offset + (long) i * Long.BYTES) == values[from + i]) {
            i++;
        }
        return i;
    }

    /** Without a branch inside, so that the compiler compares eight longs at a time. */
    private boolean differ(long offset, long[] values, int from) {
        long difference = 0;
        for (int i = 0; i < STRIDE; i++) {
            difference |= getLong(offset + (long) i * Long.BYTES) ^ values[from + i];
        }
        return difference != 0;
    }

    private MemorySegment memory(long offset) {
        if (!CHECKED) {
            return ALL;
        }
        return parts == null ? segment : parts.at(offset);
    }

    /** Where an offset is in its {@link #memory}. */
    private long at(long offset) {
        return CHECKED && parts != null ? MemoryParts.offset(offset) : base + offset;
    }

    /** The same of what is no element but a range. */
    private MemorySegment range(long offset) {
        return parts == null ? segment : parts.at(offset);
    }

    private long inRange(long offset) {
        return parts == null ? offset : MemoryParts.offset(offset);
    }

    /** How much of a range lies in one segment. */
    private long contiguous(long offset, long length) {
        return parts == null ? length : Math.min(length, MemoryParts.left(offset));
    }

    /** Gives the memory back; a second call does nothing. */
    @Override
    public void close() {
        if (released.compareAndSet(false, true)) {
            release.run();
            ALLOCATED.addAndGet(-counted);
        }
    }
}

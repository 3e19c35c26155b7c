package io.kvasir.core.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.LongSupplier;

/**
 * A second copy of a checked memory that its readers use: each store of the writer waits in a log
 * until the test lets it take effect here, alone. So one thread can stop a reader at any step, the
 * writer between any two stores, and say which of the two goes on.
 */
public final class LaggingMemory implements AutoCloseable {
    /** How far a later store may overtake an earlier one. */
    private static final int REACH = 16;

    /**
     * A store that the writer has made.
     *
     * @param before what was there when the writer made it
     * @param fences fences of the writer before it
     * @param moment what the test's clock said then
     */
    public record Store(
            long offset,
            int length,
            long value,
            long before,
            boolean release,
            int fences,
            long moment) {
        private boolean meets(Store other) {
            return offset < other.offset + other.length && other.offset < offset + length;
        }
    }

    private final OffHeap source;
    private final OffHeap copy;
    private final List<Store> log = new ArrayList<>();
    private final LongSupplier clock;
    private int applied;
    private int fences;

    /** Copies a memory as it is now. */
    public LaggingMemory(OffHeap source, LongSupplier clock) {
        this.source = source;
        this.clock = clock;
        this.copy = OffHeap.allocate(source.length());
        for (long offset = 0; offset + Long.BYTES <= source.length(); offset += Long.BYTES) {
            copy.putLong(offset, source.getLong(offset));
        }
        source.listen(
                new OffHeap.StoreListener() {
                    @Override
                    public void store(long offset, int length, long value, boolean release) {
                        log.add(
                                new Store(
                                        offset,
                                        length,
                                        value,
                                        read(source, offset, length),
                                        release,
                                        fences,
                                        clock.getAsLong()));
                    }

                    @Override
                    public void fence() {
                        fences++;
                    }
                });
    }

    /** Whether there is such a thing: unchecked memory shows no stores. */
    public static boolean isPossible() {
        return OffHeap.isCheckable();
    }

    /** What readers read. */
    public OffHeap memory() {
        return copy;
    }

    /** Stores in the log. */
    public int logged() {
        return log.size();
    }

    /** Stores of the log that have taken effect. */
    public int applied() {
        return applied;
    }

    /** What the clock said when the first store was made that has no effect yet; else now. */
    public long moment() {
        return applied == log.size() ? clock.getAsLong() : log.get(applied).moment;
    }

    /** Lets exactly the first stores of the log have taken effect: goes on, or back. */
    public void seek(int stores) {
        while (applied < stores) {
            final Store store = log.get(applied++);
            write(store, store.value);
        }
        while (applied > stores) {
            final Store store = log.get(--applied);
            write(store, store.before);
        }
    }

    /** Lets up to so many more stores take effect. */
    public void advance(int stores) {
        seek(Math.min(log.size(), applied + stores));
    }

    /**
     * Lets up to so many more stores take effect, not in the writer's order, but in one that a
     * machine with weak memory may make of it: only a release store and a fence keep the order.
     */
    public void advanceInAnyOrder(int stores, Random random) {
        for (int i = 0; i < stores && applied < log.size(); i++) {
            int next = applied + random.nextInt(Math.min(REACH, log.size() - applied));
            while (!mayBeNext(next)) {
                next--;
            }
            final Store store = log.remove(next);
            log.add(applied, store);
            advance(1);
        }
    }

    private boolean mayBeNext(int index) {
        final Store store = log.get(index);
        for (int i = applied; i < index; i++) {
            final Store earlier = log.get(i);
            if (store.release || store.fences > earlier.fences || store.meets(earlier)) {
                return false;
            }
        }
        return true;
    }

    /** The log, in the writer's order if nothing has changed it. */
    public List<Store> log() {
        return List.copyOf(log);
    }

    /** Gives the log another order; none of it has taken effect yet. */
    public void log(List<Store> stores) {
        assertEquals(0, applied, "stores have taken effect");
        log.clear();
        log.addAll(stores);
    }

    /** Forgets the log, of which everything has taken effect. */
    public void clear() {
        advance(log.size());
        log.clear();
        applied = 0;
    }

    /** Fails when the copy is not what the writer has. */
    public void check() {
        clear();
        for (long offset = 0; offset + Long.BYTES <= source.length(); offset += Long.BYTES) {
            assertEquals(source.getLong(offset), copy.getLong(offset), "a store was not shown");
        }
    }

    private void write(Store store, long value) {
        switch (store.length) {
            case Long.BYTES -> copy.putLong(store.offset, value);
            case Integer.BYTES -> copy.putInt(store.offset, (int) value);
            case Short.BYTES -> copy.putShort(store.offset, (short) value);
            default -> copy.putByte(store.offset, (byte) value);
        }
    }

    private static long read(OffHeap memory, long offset, int length) {
        return switch (length) {
            case Long.BYTES -> memory.getLong(offset);
            case Integer.BYTES -> memory.getInt(offset);
            case Short.BYTES -> memory.getShort(offset);
            default -> memory.getByte(offset);
        };
    }

    /** Gives the copy back. */
    @Override
    public void close() {
        source.listen(null);
        copy.close();
    }
}

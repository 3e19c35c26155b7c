package io.kvasir.core.memory;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;

/**
 * Every store to a {@link RecoverableMemory}, in the order in which a process makes them, and the
 * memory that one leaves which is killed after any of them. Needs checked memory.
 */
public final class StoreRecorder {
    /** A life of the operating system. */
    public static final UUID BOOT = new UUID(1, 2);

    private final OffHeap whole;
    private final List<long[]> stores = new ArrayList<>();

    /**
     * Records from now on.
     *
     * @param whole what the memory is in
     */
    public StoreRecorder(OffHeap whole, RecoverableMemory memory) {
        this.whole = whole;
        memory.listen(
                new OffHeap.StoreListener() {
                    @Override
                    public void store(long offset, int length, long value, boolean release) {
                        stores.add(new long[] {offset, length, value});
                    }

                    @Override
                    public void fence() {
                        // a killed process makes its stores in their order anyway
                    }
                });
    }

    /** Makes an empty memory in zeroed memory. */
    public static RecoverableMemory create(
            OffHeap whole, RecoverableMemory.Shape shape, long... constants) {
        return RecoverableMemory.create(whole, shape, BOOT, constants);
    }

    /** Opens what a process has left; null if it cannot be used. */
    public static RecoverableMemory reopen(OffHeap whole, RecoverableMemory.Shape shape) {
        final String problem = RecoverableMemory.problem(whole, whole.length(), shape, BOOT);
        return problem == null ? RecoverableMemory.reopen(whole, shape) : null;
    }

    /** Offset of the first area. */
    public static int areas(RecoverableMemory.Shape shape) {
        return Math.toIntExact(RecoverableMemory.areaOffset(shape, 0));
    }

    /** Stores since {@link #clear}. */
    public int count() {
        return stores.size();
    }

    /** Forgets what was recorded. */
    public void clear() {
        stores.clear();
    }

    /** All bytes of a memory. */
    public static byte[] image(OffHeap whole) {
        final long[] longs = new long[(int) (whole.length() / Long.BYTES)];
        whole.getLongs(0, longs, 0, longs.length);
        final ByteBuffer bytes = ByteBuffer.allocate((int) whole.length());
        bytes.order(ByteOrder.nativeOrder()).asLongBuffer().put(longs);
        return bytes.array();
    }

    /** All bytes of the memory that is recorded. */
    public byte[] image() {
        return image(whole);
    }

    /** Gives a memory all its bytes. */
    public static void load(OffHeap whole, byte[] image) {
        final long[] longs = new long[image.length / Long.BYTES];
        ByteBuffer.wrap(image).order(ByteOrder.nativeOrder()).asLongBuffer().get(longs);
        whole.putLongs(0, longs, 0, longs.length);
    }

    /** Makes a store in an image. */
    public void apply(int store, byte[] image) {
        final long[] made = stores.get(store);
        final int at = Math.toIntExact(made[0]);
        final ByteBuffer bytes = ByteBuffer.wrap(image).order(ByteOrder.nativeOrder());
        switch ((int) made[1]) {
            case Long.BYTES -> bytes.putLong(at, made[2]);
            case Integer.BYTES -> bytes.putInt(at, (int) made[2]);
            case Short.BYTES -> bytes.putShort(at, (short) made[2]);
            case Byte.BYTES -> bytes.put(at, (byte) made[2]);
            default -> throw new IllegalStateException("a store of " + made[1] + " bytes");
        }
    }
}

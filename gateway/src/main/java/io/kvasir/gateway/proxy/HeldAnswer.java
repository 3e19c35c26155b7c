package io.kvasir.gateway.proxy;

import io.kvasir.gateway.server.AnswerMemory;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * The bytes of an answer as far as it has come, in one array whose memory all answers share. One
 * thread at a time.
 */
final class HeldAnswer {
    private static final byte[] NONE = {};

    private final AnswerMemory memory;
    private final int announced; // bytes, or what is more than can come
    private byte[] bytes = NONE;
    private int length;
    private long taken;

    /**
     * @param announced how long the answer says it is; negative where it does not
     */
    HeldAnswer(AnswerMemory memory, long announced) {
        this.memory = memory;
        this.announced =
                announced < 0 || announced > Integer.MAX_VALUE
                        ? Integer.MAX_VALUE
                        : (int) announced;
    }

    /**
     * Adds bytes; they are held in any case.
     *
     * @return false if there is no memory for them now, so that none should follow
     */
    boolean add(ByteBuffer more) {
        final int count = more.remaining();
        final boolean fits = count <= bytes.length - length || grow(length + count);
        more.get(bytes, length, count);
        length += count;
        return fits;
    }

    /** Doubles the array, but not beyond what is to come. */
    private boolean grow(int needed) {
        final int wanted = Math.max(needed, Math.min(announced, 2 * bytes.length));
        final int more = wanted - bytes.length;
        final boolean has = memory.take(more);
        if (has) {
            taken += more;
        }
        bytes = Arrays.copyOf(bytes, has ? wanted : needed);
        return has;
    }

    /** How many bytes are held. */
    int length() {
        return length;
    }

    /** All of them, which are held no more; their memory is taken until {@link #free}. */
    ByteBuffer takeAll() {
        final int count = length;
        return ByteBuffer.wrap(takeArray(), 0, count);
    }

    /** The same: the first {@link #length} bytes of the array. */
    byte[] takeArray() {
        final byte[] all = bytes;
        drop();
        return all;
    }

    private void drop() {
        bytes = NONE;
        length = 0;
    }

    /** Holds nothing any more and gives the memory back; does nothing the second time. */
    void free() {
        drop();
        memory.giveBack(taken);
        taken = 0;
    }
}

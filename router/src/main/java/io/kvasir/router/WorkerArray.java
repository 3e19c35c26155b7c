package io.kvasir.router;

import java.util.Arrays;

/**
 * An array of workers of which nothing that can be read ever changes. Those made by {@link #with}
 * share one memory: a worker is written after the end of every array that is there. So one more
 * costs no copy of the others, but when the memory is full, which then doubles, or when it is
 * written before the end.
 *
 * <p>Arrays that share memory are made by one thread at a time. Others may read one that was
 * published to them by a volatile write.
 */
final class WorkerArray {
    static final WorkerArray EMPTY = new WorkerArray(new Worker[0], 0, new Shared(0));

    private static final int LEAST_CAPACITY = 16;

    private final Worker[] memory;
    private final int length;
    private final Shared shared;

    /** What is known of a memory by all arrays in it. */
    private static final class Shared {
        private int written; // length of the longest array

        Shared(int written) {
            this.written = written;
        }
    }

    private WorkerArray(Worker[] memory, int length, Shared shared) {
        this.memory = memory;
        this.length = length;
        this.shared = shared;
    }

    /** An array of its own memory, which the caller gives up. */
    static WorkerArray of(Worker[] workers) {
        return new WorkerArray(workers, workers.length, new Shared(workers.length));
    }

    int length() {
        return length;
    }

    /** The worker at an index below the length; null where none was set. */
    Worker get(int index) {
        return memory[index];
    }

    /** The same with a worker at an index, which may be beyond the end. */
    WorkerArray with(int index, Worker worker) {
        final int longer = Math.max(length, index + 1);
        if (index >= length && shared.written == length && longer <= memory.length) {
            memory[index] = worker; // no array reaches there
            shared.written = longer;
            return new WorkerArray(memory, longer, shared);
        }
        final int capacity =
                longer <= memory.length ? memory.length : Math.max(LEAST_CAPACITY, 2 * longer);
        final Worker[] more = new Worker[capacity];
        System.arraycopy(memory, 0, more, 0, length);
        more[index] = worker;
        return new WorkerArray(more, longer, new Shared(longer));
    }

    /** A copy of what is there, of that length. */
    Worker[] copy() {
        return Arrays.copyOf(memory, length);
    }
}

package io.kvasir.gateway.upstream;

import java.util.AbstractList;
import java.util.Objects;
import java.util.RandomAccess;

/**
 * A list that never changes. Those made of it by {@link #with} share its memory: an element is
 * written after the end of every list that is there. So one more costs no copy of the others, but
 * when the memory is full, which then doubles.
 *
 * <p>Lists that share memory are made by one thread at a time. Others may read one that was
 * published to them by a volatile write.
 */
final class AppendedList<E> extends AbstractList<E> implements RandomAccess {
    private static final int LEAST_CAPACITY = 16;

    private final Object[] memory;
    private final int size;
    private final Shared shared;

    /** What is known of a memory by all lists in it. */
    private static final class Shared {
        private int written; // size of the longest list

        Shared(int written) {
            this.written = written;
        }
    }

    /** The empty list. */
    AppendedList() {
        this(new Object[0], 0, new Shared(0));
    }

    private AppendedList(Object[] memory, int size, Shared shared) {
        this.memory = memory;
        this.size = size;
        this.shared = shared;
    }

    /** The same with one more at the end. */
    AppendedList<E> with(E element) {
        if (shared.written == size && size < memory.length) {
            memory[size] = element; // no list reaches there
            shared.written = size + 1;
            return new AppendedList<>(memory, size + 1, shared);
        }
        final Object[] more = new Object[Math.max(LEAST_CAPACITY, 2 * size)];
        System.arraycopy(memory, 0, more, 0, size);
        more[size] = element;
        return new AppendedList<>(more, size + 1, new Shared(size + 1));
    }

    /** The same without the first one that equals an element; this list if none does. */
    AppendedList<E> without(Object element) {
        final int index = indexOf(element);
        if (index < 0) {
            return this;
        }
        final Object[] fewer = new Object[size - 1];
        System.arraycopy(memory, 0, fewer, 0, index);
        System.arraycopy(memory, index + 1, fewer, index, size - 1 - index);
        return new AppendedList<>(fewer, size - 1, new Shared(size - 1));
    }

    @Override
    @SuppressWarnings("unchecked") // nothing else is written
    public E get(int index) {
        return (E) memory[Objects.checkIndex(index, size)];
    }

    @Override
    public int size() {
        return size;
    }
}

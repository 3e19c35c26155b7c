package io.kvasir.prompt.jinja;

import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.Function;
import java.util.function.Predicate;

/**
 * A sequence that exists only while it is walked through, once: what filters like {@code map} and
 * {@code selectattr} return. It has no length, is always true and cannot be indexed.
 */
final class LazyItems implements Iterator<Object> {
    private final Iterator<?> source;
    private final Predicate<Object> keep;
    private final Function<Object, Object> change;
    private final int depth;
    private Object next = Absent.ABSENT;

    private LazyItems(Iterator<?> source, Predicate<Object> keep, Function<Object, Object> change) {
        this.depth = source instanceof LazyItems inner ? inner.depth + 1 : 1;
        Budget.current().depth(depth);
        this.source = source;
        this.keep = keep;
        this.change = change;
    }

    static LazyItems of(Iterator<?> source) {
        return new LazyItems(source, item -> true, item -> item);
    }

    static LazyItems keeping(Iterator<?> source, Predicate<Object> keep) {
        return new LazyItems(source, keep, item -> item);
    }

    static LazyItems changing(Iterator<?> source, Function<Object, Object> change) {
        return new LazyItems(source, item -> true, change);
    }

    @Override
    public boolean hasNext() {
        while (next == Absent.ABSENT && source.hasNext()) {
            Budget.current().step();
            final Object item = source.next();
            if (keep.test(item)) {
                next = change.apply(item);
            }
        }
        return next != Absent.ABSENT;
    }

    @Override
    public Object next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        final Object item = next;
        next = Absent.ABSENT;
        return item;
    }
}

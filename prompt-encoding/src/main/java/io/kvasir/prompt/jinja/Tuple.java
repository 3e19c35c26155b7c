package io.kvasir.prompt.jinja;

import java.util.AbstractList;
import java.util.List;

/** An immutable sequence that is printed with parentheses and never equals a list. */
sealed class Tuple extends AbstractList<Object> permits Group {
    private final List<?> items;

    Tuple(List<?> items) {
        this.items = items;
    }

    static Tuple of(Object first, Object second) {
        return new Tuple(java.util.Arrays.asList(first, second));
    }

    @Override
    public Object get(int index) {
        return items.get(index);
    }

    @Override
    public int size() {
        return items.size();
    }
}

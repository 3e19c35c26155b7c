package io.kvasir.prompt.jinja;

import java.util.List;

/** Hands out its values one after the other, again and again. */
final class Cycler {
    private final List<Object> values;
    private int next;

    Cycler(Arguments arguments) {
        values = List.copyOf(arguments.rest());
        arguments.end();
        if (values.isEmpty()) {
            throw new ValueException("at least one item has to be provided");
        }
    }

    /** An attribute, or null where there is none of that name. */
    Object attribute(String name) {
        return switch (name) {
            case "current" -> values.get(next);
            case "next" -> (Callable) this::next;
            case "reset" -> (Callable) this::reset;
            default -> null;
        };
    }

    private Object next(Arguments arguments) {
        arguments.end();
        final Object value = values.get(next);
        next = (next + 1) % values.size();
        return value;
    }

    private Object reset(Arguments arguments) {
        arguments.end();
        next = 0;
        return null;
    }
}

package io.kvasir.prompt.jinja;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * The variable {@code loop}: position in the loop, and the items around. Reads at most one ahead.
 */
final class LoopContext implements Callable {
    private final Object source;
    private final int depth;
    private final UnaryOperator<Object> recursionOrNull;
    private Iterator<?> items;
    private long index0 = -1;
    private long length = -1;
    private Object before = Absent.ABSENT;
    private Object current = Absent.ABSENT;
    private Object after = Absent.ABSENT;
    private Object lastChanged = Absent.ABSENT;

    LoopContext(
            Object source, Iterator<?> items, int depth, UnaryOperator<Object> recursionOrNull) {
        this.recursionOrNull = recursionOrNull;
        this.source = source;
        this.items = items;
        this.depth = depth;
    }

    /** Renders the loop with other items, one deeper. */
    @Override
    public Object call(Arguments arguments) {
        if (recursionOrNull == null) {
            throw new ValueException(
                    "The loop must have the 'recursive' marker to be called recursively.");
        }
        final Object inner = arguments.take("iterable");
        arguments.end();
        return recursionOrNull.apply(inner);
    }

    boolean advance() {
        if (after == Absent.ABSENT && !items.hasNext()) {
            return false;
        }
        before = current;
        current = after == Absent.ABSENT ? items.next() : after;
        after = Absent.ABSENT;
        index0++;
        return true;
    }

    Object current() {
        return current;
    }

    /** An attribute, or null where there is none of that name. */
    Object attribute(String name) {
        return switch (name) {
            case "index" -> index0 + 1;
            case "index0" -> index0;
            case "revindex" -> length() - index0;
            case "revindex0" -> length() - index0 - 1;
            case "first" -> index0 == 0;
            case "last" -> !peek();
            case "length" -> length();
            case "depth" -> (long) depth;
            case "depth0" -> (long) depth - 1;
            case "previtem" -> index0 == 0 ? new Undefined("there is no previous item") : before;
            case "nextitem" -> peek() ? after : new Undefined("there is no next item");
            case "cycle" -> (Callable) this::cycle;
            case "changed" -> (Callable) this::changed;
            default -> null;
        };
    }

    long length() {
        if (length < 0) {
            final long known = PythonValues.lengthOrUnknown(source);
            if (known >= 0) {
                length = known;
            } else {
                final List<Object> rest = new ArrayList<>();
                while (items.hasNext()) {
                    Budget.current().items(1);
                    rest.add(items.next());
                }
                items = rest.iterator();
                length = rest.size() + index0 + 1 + (after == Absent.ABSENT ? 0 : 1);
            }
        }
        return length;
    }

    private boolean peek() {
        if (after == Absent.ABSENT && items.hasNext()) {
            after = items.next();
        }
        return after != Absent.ABSENT;
    }

    private Object cycle(Arguments arguments) {
        final List<Object> values = arguments.rest();
        arguments.end();
        if (values.isEmpty()) {
            throw new ValueException("no items for cycling given");
        }
        return values.get((int) (index0 % values.size()));
    }

    private Object changed(Arguments arguments) {
        final Tuple values = new Tuple(List.copyOf(wrapped(arguments.rest())));
        arguments.end();
        if (lastChanged != Absent.ABSENT && PythonValues.equal(lastChanged, values)) {
            return false;
        }
        lastChanged = values;
        return true;
    }

    private static List<Object> wrapped(List<Object> values) {
        final List<Object> lists = new ArrayList<>(values.size());
        values.forEach(value -> lists.add(java.util.Collections.singletonList(value)));
        return lists;
    }
}

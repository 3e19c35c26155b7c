package io.kvasir.prompt.jinja;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A set of Python, as a difference of keys or items of dicts makes it; and what such views and sets
 * have in common. Python's order of the elements is any, this one's that of the left operand.
 */
final class ElementSet implements Iterable<Object> {
    private final Map<Object, Object> elements;

    private ElementSet(Map<Object, Object> elements) {
        this.elements = elements;
    }

    /** Whether a value is a set, or a view that acts as one. */
    static boolean isSet(Object value) {
        return value instanceof ElementSet
                || (value instanceof DictView view && !view.kind().equals("values"));
    }

    /** {@code left - right}; null unless both are sets, or one is a view that acts as one. */
    static ElementSet difference(Object left, Object right) {
        final boolean defined =
                (isSet(left) && isSet(right))
                        || (left instanceof DictView && isSet(left))
                        || (right instanceof DictView && isSet(right));
        if (!defined) {
            return null;
        }
        final Map<Object, Object> elements = elementsOf(left);
        final ElementSet without = new ElementSet(elementsOf(right));
        elements.keySet().removeIf(element -> PythonValues.contains(without, element));
        return new ElementSet(elements);
    }

    private static Map<Object, Object> elementsOf(Object value) {
        final Map<Object, Object> elements = new LinkedHashMap<>();
        final Iterator<?> items = PythonValues.iterate(value);
        while (items.hasNext()) {
            PythonValues.put(elements, items.next(), null);
        }
        return elements;
    }

    /** Whether all of one are in the other; both are sets. */
    static boolean isSubset(Object part, Object whole) {
        if (PythonValues.length(part) > PythonValues.length(whole)) {
            return false;
        }
        final Iterator<?> items = PythonValues.iterate(part);
        while (items.hasNext()) {
            if (!PythonValues.contains(whole, items.next())) {
                return false;
            }
        }
        return true;
    }

    /** {@code left < right} and the like, which say what is contained in what; both are sets. */
    static boolean ordered(String operator, Object left, Object right) {
        final boolean sameSize = PythonValues.length(left) == PythonValues.length(right);
        return switch (operator) {
            case "<" -> !sameSize && isSubset(left, right);
            case "<=" -> isSubset(left, right);
            case ">" -> !sameSize && isSubset(right, left);
            default -> isSubset(right, left);
        };
    }

    int size() {
        return elements.size();
    }

    /** The elements as keys, each with a value that means nothing. */
    Map<Object, Object> elements() {
        return elements;
    }

    @Override
    public Iterator<Object> iterator() {
        return elements.keySet().iterator();
    }
}

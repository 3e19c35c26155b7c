package io.kvasir.prompt.jinja;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What Python does with values: truth, equality, order, membership, items. PythonValues are null,
 * {@link Boolean}, {@link Long} and its kin (see {@link Numbers}), {@link String}, {@link List},
 * {@link Map} and the types of this package.
 */
final class PythonValues {
    /** A value in a list or map counts as so many characters of text. */
    private static final int VALUE_CHARS = 4;

    private PythonValues() {}

    /**
     * Brings what a caller passed into the types that templates work with. Containers are shared
     * with the caller as long as nothing in them has another type: templates change none.
     */
    static Object imported(Object value) {
        return switch (value) {
            case Integer i -> i.longValue();
            case Short s -> s.longValue();
            case Byte b -> b.longValue();
            case Float f -> f.doubleValue();
            case java.math.BigInteger big -> Numbers.of(big);
            case java.math.BigDecimal decimal -> decimal.doubleValue();
            case List<?> list -> {
                Budget.current().given(VALUE_CHARS * list.size());
                yield importedItems(list);
            }
            case Map<?, ?> map -> {
                Budget.current().given(VALUE_CHARS * map.size());
                yield importedEntries(map);
            }
            case String s -> {
                Budget.current().given(s.length());
                yield s;
            }
            case Long l -> l;
            case Double d -> d;
            case Boolean b -> b;
            case null -> null;
            default ->
                    throw new IllegalArgumentException(
                            "template variable of type " + value.getClass().getName());
        };
    }

    @SuppressWarnings("ReferenceEquality")
    private static List<?> importedItems(List<?> list) {
        List<Object> copy = list instanceof ArrayList ? null : new ArrayList<>(list.size());
        int index = 0;
        for (Object item : list) {
            final Object imported = imported(item);
            if (copy == null && imported != item) {
                copy = new ArrayList<>(list.subList(0, index));
            }
            if (copy != null) {
                copy.add(imported);
            }
            index++;
        }
        return copy == null ? list : copy;
    }

    @SuppressWarnings("ReferenceEquality")
    private static Map<?, ?> importedEntries(Map<?, ?> map) {
        Map<Object, Object> copy =
                map instanceof LinkedHashMap ? null : LinkedHashMap.newLinkedHashMap(map.size());
        for (Map.Entry<?, ?> entry : map.entrySet()) {
            final Object key = imported(entry.getKey());
            final Object value = imported(entry.getValue());
            if (copy == null && (key != entry.getKey() || value != entry.getValue())) {
                copy = entriesBefore(map, entry.getKey());
            }
            if (copy != null) {
                copy.put(key, value);
            }
        }
        return copy == null ? map : copy;
    }

    @SuppressWarnings("ReferenceEquality")
    private static Map<Object, Object> entriesBefore(Map<?, ?> map, Object end) {
        final Map<Object, Object> entries = LinkedHashMap.newLinkedHashMap(map.size());
        for (Map.Entry<?, ?> entry : map.entrySet()) {
            if (entry.getKey() == end) {
                break;
            }
            entries.put(entry.getKey(), entry.getValue());
        }
        return entries;
    }

    static String typeName(Object value) {
        return switch (value) {
            case null -> "NoneType";
            case Boolean b -> "bool";
            case Long l -> "int";
            case java.math.BigInteger big -> "int";
            case Double d -> "float";
            case String s -> "str";
            case Markup markup -> "Markup";
            case Tuple tuple -> "tuple";
            case Range range -> "range";
            case List<?> list -> "list";
            case Map<?, ?> map -> "dict";
            case DictView view -> "dict_" + view.kind();
            case ElementSet set -> "set";
            case LazyItems items -> "generator";
            case Undefined undefined -> "Undefined";
            case Namespace namespace -> "Namespace";
            case LoopContext loop -> "LoopContext";
            case Macro macro -> "Macro";
            case Cycler cycler -> "Cycler";
            default -> "function";
        };
    }

    /** The type as error messages of the reference implementation name it. */
    private static String owner(Object value) {
        return value == null ? "None" : "'" + typeName(value) + " object'";
    }

    static boolean truth(Object value) {
        return switch (value) {
            case null -> false;
            case Boolean b -> b;
            case Long l -> l != 0;
            case Double d -> d != 0;
            case String s -> !s.isEmpty();
            case Markup markup -> !markup.text().isEmpty();
            case List<?> list -> !list.isEmpty();
            case Map<?, ?> map -> !map.isEmpty();
            case DictView view -> !view.dict().isEmpty();
            case ElementSet set -> set.size() != 0;
            case LoopContext loop -> loop.length() != 0;
            case Undefined undefined -> false;
            default -> true;
        };
    }

    static boolean isText(Object value) {
        return value instanceof String || value instanceof Markup;
    }

    /** {@code left == right}; what has no values to compare equals only itself. */
    static boolean equal(Object left, Object right) {
        final Budget budget = Budget.current();
        budget.step();
        budget.enter();
        final boolean equal = isEqual(left, right, budget);
        budget.leave();
        return equal;
    }

    @SuppressWarnings("ReferenceEquality")
    private static boolean isEqual(Object left, Object right, Budget budget) {
        if (Numbers.isNumber(left) && Numbers.isNumber(right)) {
            final boolean nan =
                    (left instanceof Double a && a.isNaN())
                            || (right instanceof Double b && b.isNaN());
            return !nan && Numbers.compare(left, right) == 0;
        }
        if (isText(left) && isText(right)) {
            final String text = Text.of(left);
            budget.read(text.length());
            return text.equals(Text.of(right));
        }
        if (left instanceof List<?> a && right instanceof List<?> b) {
            return a instanceof Tuple == b instanceof Tuple
                    && a instanceof Range == b instanceof Range
                    && sameItems(a, b);
        }
        if (left instanceof Map<?, ?> a && right instanceof Map<?, ?> b) {
            return sameEntries(a, b);
        }
        if (ElementSet.isSet(left) && ElementSet.isSet(right)) {
            return length(left) == length(right) && ElementSet.isSubset(left, right);
        }
        return left == right || (left instanceof Undefined && right instanceof Undefined);
    }

    private static boolean sameItems(List<?> left, List<?> right) {
        if (left.size() != right.size()) {
            return false;
        }
        for (int i = 0; i < left.size(); i++) {
            if (!equal(left.get(i), right.get(i))) {
                return false;
            }
        }
        return true;
    }

    private static boolean sameEntries(Map<?, ?> left, Map<?, ?> right) {
        if (left.size() != right.size()) {
            return false;
        }
        for (Map.Entry<?, ?> entry : left.entrySet()) {
            hashable(entry.getKey());
            if (!right.containsKey(entry.getKey())
                    || !equal(entry.getValue(), right.get(entry.getKey()))) {
                return false;
            }
        }
        return true;
    }

    /** Order of two values of a kind; a failure names the operator. */
    static int compare(String operator, Object left, Object right) {
        final Budget budget = Budget.current();
        budget.step();
        budget.enter();
        final int order = order(operator, left, right, budget);
        budget.leave();
        return order;
    }

    private static int order(String operator, Object left, Object right, Budget budget) {
        if (left instanceof Undefined undefined) {
            throw undefined.fail();
        }
        if (right instanceof Undefined undefined) {
            throw undefined.fail();
        }
        if (Numbers.isNumber(left) && Numbers.isNumber(right)) {
            return Numbers.compare(left, right);
        }
        if (isText(left) && isText(right)) {
            final String text = Text.of(left);
            budget.read(text.length());
            return Text.compare(text, Text.of(right));
        }
        if (left instanceof List<?> a
                && right instanceof List<?> b
                && a instanceof Tuple == b instanceof Tuple
                && !(a instanceof Range || b instanceof Range)) {
            for (int i = 0; i < Math.min(a.size(), b.size()); i++) {
                if (!equal(a.get(i), b.get(i))) {
                    return compare(operator, a.get(i), b.get(i));
                }
            }
            return Integer.compare(a.size(), b.size());
        }
        if (ElementSet.isSet(left) && ElementSet.isSet(right)) {
            return ElementSet.ordered("<", left, right)
                    ? -1
                    : ElementSet.ordered(">", left, right) ? 1 : 0;
        }
        throw new ValueException(
                "'"
                        + operator
                        + "' not supported between instances of '"
                        + typeName(left)
                        + "' and '"
                        + typeName(right)
                        + "'");
    }

    /** {@code item in container}. */
    static boolean contains(Object container, Object item) {
        if (isText(container)) {
            if (item instanceof Undefined undefined) {
                throw undefined.fail();
            }
            if (!isText(item)) {
                throw new ValueException(
                        "'in <string>' requires string as left operand, not " + typeName(item));
            }
            final String text = Text.of(container);
            final String wanted = Text.of(item);
            Budget.current().search(text.length(), wanted.length());
            return text.contains(wanted);
        }
        if (container instanceof Map<?, ?> dict) {
            return isKey(dict, item);
        }
        if (container instanceof ElementSet set) {
            return isKey(set.elements(), item);
        }
        if (container instanceof DictView view && !view.kind().equals("values")) {
            return isInView(view, item);
        }
        final Iterator<?> items = iterate(container);
        while (items.hasNext()) {
            if (equal(items.next(), item)) {
                return true;
            }
        }
        return false;
    }

    private static boolean isKey(Map<?, ?> dict, Object key) {
        requireHash(key);
        return find(dict, key) != Absent.ABSENT;
    }

    private static boolean isInView(DictView view, Object item) {
        if (view.kind().equals("keys")) {
            return isKey(view.dict(), item);
        }
        if (!(item instanceof Tuple pair) || pair.size() != 2) {
            return false;
        }
        requireHash(pair.get(0));
        final Object found = find(view.dict(), pair.get(0));
        return found != Absent.ABSENT && equal(found, pair.get(1));
    }

    /** Walks through a value. */
    static Iterator<?> iterate(Object value) {
        return switch (value) {
            case String s -> Text.characters(s).iterator();
            case Markup markup -> Text.characters(markup.text()).iterator();
            case List<?> list -> list.iterator();
            case Map<?, ?> dict -> dict.keySet().iterator();
            case DictView view -> view.iterator();
            case ElementSet set -> set.iterator();
            case LazyItems items -> items;
            case Undefined undefined -> Collections.emptyIterator();
            case null, default ->
                    throw new ValueException("'" + typeName(value) + "' object is not iterable");
        };
    }

    static boolean isIterable(Object value) {
        return isText(value)
                || value instanceof List
                || value instanceof Map
                || value instanceof DictView
                || value instanceof ElementSet
                || value instanceof LazyItems
                || value instanceof Undefined
                || value instanceof LoopContext;
    }

    /** {@code list(value)}. */
    static List<Object> list(Object value) {
        final List<Object> list = new ArrayList<>();
        final Budget budget = Budget.current();
        final Iterator<?> items = iterate(value);
        while (items.hasNext()) {
            budget.items(1);
            list.add(items.next());
        }
        return list;
    }

    /** Length in items or code points, -1 for what has no length. */
    static long lengthOrUnknown(Object value) {
        return switch (value) {
            case String s -> Text.length(s);
            case Markup markup -> Text.length(markup.text());
            case List<?> list -> list.size();
            case Map<?, ?> dict -> dict.size();
            case DictView view -> view.dict().size();
            case ElementSet set -> set.size();
            case Undefined undefined -> 0;
            case LoopContext loop -> loop.length();
            case null, default -> -1;
        };
    }

    static long length(Object value) {
        final long length = lengthOrUnknown(value);
        if (length < 0) {
            throw new ValueException("object of type '" + typeName(value) + "' has no len()");
        }
        return length;
    }

    /** {@code dict(mapping or pairs, name=value)}. */
    static Map<Object, Object> newDict(Arguments arguments) {
        final Map<Object, Object> dict = new LinkedHashMap<>();
        final List<Object> sources = arguments.rest();
        if (sources.size() > 1) {
            throw new ValueException("dict expected at most 1 argument, got " + sources.size());
        }
        for (Object source : sources) {
            if (source instanceof Undefined undefined) {
                throw undefined.fail();
            }
            if (source instanceof Map<?, ?> map) {
                Budget.current().items(2L * map.size());
                dict.putAll(map);
                continue;
            }
            final Iterator<?> pairs = iterate(source);
            while (pairs.hasNext()) {
                final List<Object> pair = list(pairs.next());
                if (pair.size() != 2) {
                    throw new ValueException("dict() needs pairs of key and value");
                }
                put(dict, pair.get(0), pair.get(1));
            }
        }
        dict.putAll(arguments.restNamed());
        return dict;
    }

    // --- attributes and items ---

    /** Asks for the cost of a hash: that of every value inside, however often it is inside. */
    private static void hashable(Object key) {
        final Budget budget = Budget.current();
        budget.step();
        switch (key) {
            case String s -> budget.read(s.length());
            case List<?> list -> {
                budget.enter();
                list.forEach(PythonValues::hashable);
                budget.leave();
            }
            case Map<?, ?> map -> {
                budget.enter();
                map.forEach(
                        (name, value) -> {
                            hashable(name);
                            hashable(value);
                        });
                budget.leave();
            }
            case null, default -> {
                // a number, or an object by its identity
            }
        }
    }

    /**
     * Asks for the cost of a hash.
     *
     * @throws ValueException where Python has none: for lists and dicts, and tuples of such
     */
    static void requireHash(Object key) {
        hashable(key);
        refuseUnhashable(key);
    }

    private static void refuseUnhashable(Object key) {
        if (key instanceof Tuple tuple) {
            tuple.forEach(PythonValues::refuseUnhashable);
        } else if (key instanceof Map
                || ElementSet.isSet(key)
                || (key instanceof List && !(key instanceof Range))) {
            throw new ValueException("unhashable type: '" + typeName(key) + "'");
        }
    }

    /** Value of a key, {@link Absent#ABSENT} if there is none. */
    private static Object find(Map<?, ?> dict, Object key) {
        final Object plain = key instanceof Markup markup ? markup.text() : key;
        hashable(plain);
        if (dict.containsKey(plain)) {
            return dict.get(plain);
        }
        if (Numbers.isNumber(plain)) { // 1, 1.0 and True are one key
            for (Map.Entry<?, ?> entry : dict.entrySet()) {
                if (equal(entry.getKey(), plain)) {
                    return entry.getValue();
                }
            }
        }
        if (plain instanceof List || plain instanceof Map) {
            for (Map.Entry<?, ?> entry : dict.entrySet()) {
                if (entry.getKey() instanceof Tuple && equal(entry.getKey(), plain)) {
                    return entry.getValue();
                }
            }
        }
        return Absent.ABSENT;
    }

    /** Sets a key; one that equals an older key, such as true and 1, keeps the older spelling. */
    static void put(Map<Object, Object> dict, Object key, Object value) {
        final Object plain = key instanceof Markup markup ? markup.text() : key;
        requireHash(plain);
        Budget.current().items(4);
        if (Numbers.isNumber(plain)) {
            for (Object old : dict.keySet()) {
                if (equal(old, plain)) {
                    dict.put(old, value);
                    return;
                }
            }
        }
        dict.put(plain, value);
    }

    /** Value of a key, or the default. */
    static Object get(Map<?, ?> dict, Object key, Object defaultValue) {
        requireHash(key);
        final Object found = find(dict, key);
        return found == Absent.ABSENT ? defaultValue : found;
    }

    /** {@code value.name}: an attribute or method, else an item. */
    static Object attribute(Object value, String name) {
        if (value instanceof Undefined undefined) {
            throw undefined.fail();
        }
        final Object own = Methods.attribute(value, name);
        if (own != null) {
            return own;
        }
        if (value instanceof Namespace namespace && namespace.has(name)) {
            return namespace.get(name);
        }
        if (value instanceof Map<?, ?> dict) {
            final Object found = find(dict, name);
            if (found != Absent.ABSENT) {
                return found;
            }
        }
        return new Undefined(owner(value) + " has no attribute '" + name + "'");
    }

    /** {@code value[key]}: an item, else an attribute or method. */
    static Object item(Object value, Object key) {
        if (value instanceof Undefined undefined) {
            throw undefined.fail();
        }
        if (value instanceof Map<?, ?> dict) {
            final Object found = find(dict, key);
            if (found != Absent.ABSENT) {
                return found;
            }
        } else if (Numbers.isWhole(key)) {
            final long index = Numbers.index(key);
            final long size = isText(value) || value instanceof List ? lengthOrUnknown(value) : 0;
            final long offset = index < 0 ? index + size : index;
            if (offset >= 0 && offset < size) {
                return value instanceof List<?> list
                        ? list.get((int) offset)
                        : like(
                                value,
                                Text.substring(Text.of(value), (int) offset, (int) offset + 1));
            }
        }
        if (isText(key)) {
            final String name = Text.of(key);
            final Object own = Methods.attribute(value, name);
            if (own != null) {
                return own;
            }
            if (value instanceof Namespace namespace && namespace.has(name)) {
                return namespace.get(name);
            }
            return new Undefined(owner(value) + " has no attribute '" + name + "'");
        }
        return new Undefined(owner(value) + " has no element " + Text.repr(key));
    }

    /** {@code value[start:stop:step]}; parts left out are null. */
    static Object slice(Object value, Object start, Object stop, Object step) {
        if (value instanceof Undefined undefined) {
            throw undefined.fail();
        }
        if (!isText(value) && !(value instanceof List)) {
            throw new ValueException("'" + typeName(value) + "' object cannot be sliced");
        }
        final long by = step == null ? 1 : Numbers.index(step);
        if (by == 0) {
            throw new ValueException("slice step cannot be zero");
        }
        final int size = (int) lengthOrUnknown(value);
        final long from = bound(start, size, by, by > 0 ? 0 : size - 1);
        final long to = bound(stop, size, by, by > 0 ? size : -1);
        if (value instanceof Range range) {
            return range.slice(from, to, by);
        }
        if (isText(value) && by == 1) {
            return like(
                    value, Text.substring(Text.of(value), (int) from, (int) Math.max(from, to)));
        }
        final List<?> items =
                value instanceof List<?> list ? list : Text.characters(Text.of(value));
        final List<Object> out = new ArrayList<>();
        final long stride = Math.clamp(by, -size - 1, size + 1); // no sum beyond 64 bits
        for (long i = from; by > 0 ? i < to : i > to; i += stride) {
            Budget.current().items(1);
            out.add(items.get((int) i));
        }
        if (isText(value)) {
            final StringBuilder text = new StringBuilder();
            out.forEach(text::append);
            Budget.current().text(text.length());
            return like(value, text.toString());
        }
        return value instanceof Tuple ? new Tuple(out) : out;
    }

    /** A part of a text, marked as HTML if the text is. */
    private static Object like(Object text, String part) {
        return text instanceof Markup ? new Markup(part) : part;
    }

    private static long bound(Object given, int size, long step, long defaultValue) {
        if (given == null) {
            return defaultValue;
        }
        final long index = Numbers.index(given);
        final long at = index < 0 ? index + size : index;
        return step > 0 ? Math.clamp(at, 0, size) : Math.clamp(at, -1, Math.max(size - 1, -1));
    }

    // --- arithmetic ---

    /** {@code text % values}. */
    static Object percent(Object text, Object values) {
        final Object inserted = text instanceof Markup ? Markup.inserted(values) : values;
        return Markup.like(text, Formats.percent(Text.of(text), inserted));
    }

    static Object binary(String operator, Object left, Object right) {
        if (left instanceof Undefined undefined) {
            throw undefined.fail();
        }
        if (operator.equals("%") && isText(left)) {
            return percent(left, right);
        }
        if (operator.equals("-")) {
            final ElementSet difference = ElementSet.difference(left, right);
            if (difference != null) {
                return difference;
            }
        }
        if (right instanceof Undefined undefined) {
            throw undefined.fail();
        }
        if (Numbers.isNumber(left) && Numbers.isNumber(right)) {
            return Numbers.arithmetic(operator, left, right);
        }
        final Object result =
                switch (operator) {
                    case "+" -> add(left, right);
                    case "*" ->
                            Numbers.isWhole(right)
                                    ? repeat(left, Numbers.index(right))
                                    : Numbers.isWhole(left)
                                            ? repeat(right, Numbers.index(left))
                                            : null;
                    default -> null;
                };
        if (result == null) {
            throw new ValueException(
                    "unsupported operand type(s) for "
                            + operator
                            + ": '"
                            + typeName(left)
                            + "' and '"
                            + typeName(right)
                            + "'");
        }
        return result;
    }

    private static Object add(Object left, Object right) {
        if (isText(left) && isText(right)) {
            if (left instanceof Markup || right instanceof Markup) {
                return new Markup(Markup.escape(left).text() + Markup.escape(right).text());
            }
            final String start = Text.of(left);
            final String end = Text.of(right);
            Budget.current().text((long) start.length() + end.length());
            return start + end;
        }
        if (left instanceof List<?> a
                && right instanceof List<?> b
                && a instanceof Tuple == b instanceof Tuple
                && !(a instanceof Range)
                && !(b instanceof Range)) {
            Budget.current().items((long) a.size() + b.size());
            final List<Object> both = new ArrayList<>(a.size() + b.size());
            both.addAll(a);
            both.addAll(b);
            return a instanceof Tuple ? new Tuple(both) : both;
        }
        return null;
    }

    private static Object repeat(Object value, long times) {
        final int count = Math.clamp(times, 0, Integer.MAX_VALUE);
        if (isText(value)) {
            return like(value, Text.repeat(Text.of(value), count));
        }
        if (value instanceof List<?> list && !(value instanceof Range)) {
            Budget.current().items((long) list.size() * count);
            final List<Object> out = new ArrayList<>();
            for (int i = 0; i < count && !list.isEmpty(); i++) {
                out.addAll(list);
            }
            return value instanceof Tuple ? new Tuple(out) : out;
        }
        return null;
    }
}

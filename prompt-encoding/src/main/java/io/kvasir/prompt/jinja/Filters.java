package io.kvasir.prompt.jinja;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Predicate;

/** Jinja's filters: {@code value|name(arguments)}, and {@code tojson} as chat templates get it. */
final class Filters {
    @FunctionalInterface
    private interface Filter {
        Object apply(Object value, Arguments arguments);
    }

    private static final Map<String, Filter> FILTERS = new HashMap<>();

    private static final Set<String> ROUND_METHODS = Set.of("common", "ceil", "floor");

    /** A list in a list takes as much as so many items. */
    private static final int PART_ITEMS = 6;

    static {
        plain("abs", Filters::absolute);
        FILTERS.put("attr", (value, a) -> attr(value, a));
        FILTERS.put("batch", Filters::batch);
        marked("capitalize", (value, a) -> plainly(a, Cases.capitalize(Text.of(value))));
        marked("center", Filters::center);
        for (String name : new String[] {"count", "length"}) {
            plain(name, PythonValues::length);
        }
        for (String name : new String[] {"d", "default"}) {
            FILTERS.put(name, Filters::defaulted);
        }
        FILTERS.put("dictsort", Filters::dictSort);
        for (String name : new String[] {"e", "escape"}) {
            plain(name, Markup::escape);
        }
        FILTERS.put("groupby", Filters::groupBy);
        plain("first", Filters::first);
        FILTERS.put("filesizeformat", Filters::fileSize);
        FILTERS.put("float", Filters::real);
        plain("forceescape", value -> Markup.escape(Text.of(value)));
        FILTERS.put("format", Filters::format);
        marked("indent", Filters::indent);
        FILTERS.put("int", Filters::whole);
        plain("items", Filters::items);
        FILTERS.put("join", Filters::join);
        marked("last", (value, a) -> plainly(a, last(value)));
        plain("list", PythonValues::list);
        marked("lower", (value, a) -> plainly(a, Cases.lower(Text.of(value))));
        FILTERS.put("map", Filters::map);
        FILTERS.put("max", (value, a) -> extreme(value, a, true));
        FILTERS.put("min", (value, a) -> extreme(value, a, false));
        FILTERS.put("reject", (value, a) -> select(value, a, false, false));
        FILTERS.put("rejectattr", (value, a) -> select(value, a, true, false));
        FILTERS.put("replace", Filters::replace);
        plain("reverse", Filters::reverse);
        FILTERS.put("round", Filters::round);
        plain("safe", value -> new Markup(Text.of(value)));
        FILTERS.put("select", (value, a) -> select(value, a, false, true));
        FILTERS.put("selectattr", (value, a) -> select(value, a, true, true));
        FILTERS.put("slice", Filters::slice);
        FILTERS.put("sort", Filters::sort);
        plain("string", value -> value instanceof Markup ? value : Text.of(value));
        FILTERS.put("sum", Filters::sum);
        plain("title", Filters::title);
        FILTERS.put("tojson", Json::dumps);
        marked("trim", Filters::trim);
        FILTERS.put("truncate", Filters::truncate);
        FILTERS.put("unique", Filters::unique);
        marked("upper", (value, a) -> plainly(a, Cases.upper(Text.of(value))));
        plain("urlencode", UrlEncoding::encode);
        plain("wordcount", Filters::wordCount);
        FILTERS.put("wordwrap", WordWrap::apply);
        FILTERS.put("xmlattr", Filters::attributes);
    }

    private Filters() {}

    static boolean exists(String name) {
        return FILTERS.containsKey(name);
    }

    static Object apply(String name, Object value, Arguments arguments) {
        final Filter filter = FILTERS.get(name);
        if (filter == null) {
            throw new ValueException("filter '" + name + "' is unknown or not implemented");
        }
        return filter.apply(value, arguments);
    }

    private static void plain(String name, Function<Object, Object> function) {
        FILTERS.put(
                name,
                (value, arguments) -> {
                    arguments.end();
                    return function.apply(value);
                });
    }

    /** A filter whose text is marked where the value is. */
    private static void marked(String name, Filter filter) {
        FILTERS.put(name, (value, arguments) -> Markup.like(value, filter.apply(value, arguments)));
    }

    private static Object plainly(Arguments arguments, Object result) {
        arguments.end();
        return result;
    }

    private static Object absolute(Object value) {
        if (value instanceof Undefined undefined) {
            throw undefined.fail();
        }
        if (!Numbers.isNumber(value)) {
            throw new ValueException(
                    "bad operand type for abs(): '" + PythonValues.typeName(value) + "'");
        }
        final boolean negative =
                value instanceof Double d ? d < 0 || 1 / d < 0 : Numbers.big(value).signum() < 0;
        return negative ? Numbers.negate(value) : PythonValues.binary("+", value, 0L);
    }

    private static Object attr(Object value, Arguments arguments) {
        final String name = Methods.text(arguments.take("name"));
        arguments.end();
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
        return new Undefined(
                "'" + PythonValues.typeName(value) + " object' has no attribute '" + name + "'");
    }

    private static Object batch(Object value, Arguments arguments) {
        final Object size = arguments.take("linecount");
        final Object fill = arguments.take("fill_with", null);
        arguments.end();
        final Budget budget = Budget.current();
        final List<Object> batches = new ArrayList<>();
        List<Object> batch = new ArrayList<>();
        final Iterator<?> items = PythonValues.iterate(value);
        while (items.hasNext()) {
            budget.items(PART_ITEMS);
            if (PythonValues.equal((long) batch.size(), size)) { // of what is no number never
                batches.add(batch);
                batch = new ArrayList<>();
            }
            batch.add(items.next());
        }
        if (!batch.isEmpty()) {
            if (fill != null) {
                fill(batch, size, fill);
            }
            batches.add(batch);
        }
        return LazyItems.of(batches.iterator());
    }

    private static void fill(List<Object> batch, Object size, Object fill) {
        if (PythonValues.compare("<", (long) batch.size(), size) < 0) {
            final long last = Numbers.index(size);
            while (batch.size() < last) {
                Budget.current().items(1);
                batch.add(fill);
            }
        }
    }

    private static Object slice(Object value, Arguments arguments) {
        final long slices = Numbers.index(arguments.take("slices"));
        final Object fill = arguments.take("fill_with", null);
        arguments.end();
        final List<Object> items = PythonValues.list(value);
        if (slices == 0) {
            throw new ValueException("slice: slices must not be 0");
        }
        final int perSlice = (int) (items.size() / slices);
        final int longer = (int) (items.size() % slices);
        final List<Object> out = new ArrayList<>();
        int at = 0;
        for (int i = 0; i < slices; i++) {
            Budget.current().items(PART_ITEMS);
            final int end = at + perSlice + (i < longer ? 1 : 0);
            final List<Object> part = new ArrayList<>(items.subList(at, end));
            if (fill != null && i >= longer) {
                part.add(fill);
            }
            out.add(part);
            at = end;
        }
        return LazyItems.of(out.iterator());
    }

    private static Object center(Object value, Arguments arguments) {
        final long width = Numbers.index(arguments.take("width", 80L));
        arguments.end();
        return Methods.justify(Text.of(value), width, " ", "center");
    }

    private static Object defaulted(Object value, Arguments arguments) {
        final Object other = arguments.take("default_value", "");
        final boolean falseToo = PythonValues.truth(arguments.take("boolean", false));
        arguments.end();
        return value instanceof Undefined || (falseToo && !PythonValues.truth(value))
                ? other
                : value;
    }

    private static Object dictSort(Object value, Arguments arguments) {
        final boolean caseSensitive = PythonValues.truth(arguments.take("case_sensitive", false));
        final String by = Text.of(arguments.take("by", "key"));
        final boolean reverse = PythonValues.truth(arguments.take("reverse", false));
        arguments.end();
        if (!by.equals("key") && !by.equals("value")) {
            throw new ValueException("You can only sort by either \"key\" or \"value\"");
        }
        if (value instanceof Undefined undefined) {
            throw undefined.fail();
        }
        if (!(value instanceof Map<?, ?> dict)) {
            throw new ValueException(
                    "dictsort needs a dict, not '" + PythonValues.typeName(value) + "'");
        }
        final int element = by.equals("key") ? 0 : 1;
        return sorted(
                PythonValues.list(new DictView("items", dict)),
                item -> folded(((Tuple) item).get(element), caseSensitive),
                reverse);
    }

    private static Object folded(Object value, boolean caseSensitive) {
        return !caseSensitive && PythonValues.isText(value) ? Cases.lower(Text.of(value)) : value;
    }

    private static Object groupBy(Object value, Arguments arguments) {
        final Object attribute = arguments.take("attribute");
        final Object defaultValue = arguments.take("default", null);
        final boolean caseSensitive = PythonValues.truth(arguments.take("case_sensitive", false));
        arguments.end();
        final Function<Object, Object> getter = getter(attribute, defaultValue);
        final List<Object> groups = new ArrayList<>();
        Object last = Absent.ABSENT;
        List<Object> items = new ArrayList<>();
        for (Object item :
                sorted(
                        PythonValues.list(value),
                        each -> folded(getter.apply(each), caseSensitive),
                        false)) {
            Budget.current().items(PART_ITEMS);
            final Object key = getter.apply(item);
            if (key == null) {
                throw new ValueException("groupby of items whose value is None is not implemented");
            }
            final Object folded = folded(key, caseSensitive);
            if (last == Absent.ABSENT || !PythonValues.equal(last, folded)) {
                items = new ArrayList<>();
                groups.add(new Group(key, items));
                last = folded;
            }
            items.add(item);
        }
        return groups;
    }

    /** An item and what it is sorted by. */
    private record Keyed(Object key, Object item) {}

    private static List<Object> sorted(
            List<Object> items, Function<Object, Object> key, boolean reverse) {
        Budget.current().items(PART_ITEMS * (long) items.size());
        final List<Keyed> keyed = new ArrayList<>(items.size());
        for (Object item : items) {
            keyed.add(new Keyed(key.apply(item), item)); // also of the only one: it may fail
        }
        final Comparator<Keyed> order = (a, b) -> PythonValues.compare("<", a.key(), b.key());
        keyed.sort(reverse ? (a, b) -> order.compare(b, a) : order);
        final List<Object> out = new ArrayList<>(items.size());
        keyed.forEach(each -> out.add(each.item()));
        return out;
    }

    private static Object attributes(Object value, Arguments arguments) {
        final boolean spaceBefore = PythonValues.truth(arguments.take("autospace", true));
        arguments.end();
        return Markup.attributes(value, spaceBefore);
    }

    private static Object fileSize(Object value, Arguments arguments) {
        final boolean binary = PythonValues.truth(arguments.take("binary", false));
        arguments.end();
        final Double bytes = parseReal(value);
        if (bytes == null) {
            throw new ValueException("filesizeformat needs a number, not " + Text.repr(value));
        }
        return FileSize.text(bytes, binary);
    }

    private static Object first(Object value) {
        final Iterator<?> items = PythonValues.iterate(value);
        return items.hasNext() ? items.next() : new Undefined("No first item, sequence was empty.");
    }

    private static Object last(Object value) {
        if (value instanceof LazyItems) {
            throw new ValueException("'generator' object is not reversible");
        }
        final List<Object> items = PythonValues.list(value);
        return items.isEmpty()
                ? new Undefined("No last item, sequence was empty.")
                : items.getLast();
    }

    private static Object real(Object value, Arguments arguments) {
        final Object other = arguments.take("default", 0.0);
        arguments.end();
        final Double parsed = parseReal(value);
        return parsed == null ? other : parsed;
    }

    private static Double parseReal(Object value) {
        if (value instanceof Undefined undefined) {
            throw undefined.fail();
        }
        if (Numbers.isNumber(value)) {
            return Numbers.real(value);
        }
        if (!PythonValues.isText(value)) {
            return null;
        }
        final String text = Cases.lower(digits(value));
        if (text.matches("[+-]?(inf|infinity|nan)")) {
            final double size = text.endsWith("nan") ? Double.NaN : Double.POSITIVE_INFINITY;
            return text.startsWith("-") ? -size : size;
        }
        if (text.matches(
                "[+-]?([0-9](?:_?[0-9])*+\\.?([0-9](?:_?[0-9])*+)?|\\.[0-9](?:_?[0-9])*+)"
                        + "(e[+-]?[0-9](?:_?[0-9])*+)?")) {
            return Double.parseDouble(text.replace("_", ""));
        }
        return null;
    }

    private static Object whole(Object value, Arguments arguments) {
        final Object other = arguments.take("default", 0L);
        final Object base = arguments.take("base", 10L);
        arguments.end();
        if (PythonValues.isText(value)) {
            Budget.current().text(Text.of(value).length());
            final Object parsed =
                    Numbers.isWhole(base)
                            ? parseWhole(
                                    digits(value),
                                    Math.clamp(Numbers.index(base), -1, Character.MAX_RADIX + 1))
                            : null;
            if (parsed != null) {
                return parsed;
            }
        } else if (Numbers.isWhole(value)) {
            return Numbers.of(Numbers.big(value));
        }
        final Double parsed = parseReal(value);
        if (parsed == null || parsed.isNaN() || parsed.isInfinite()) {
            return other;
        }
        return Numbers.truncated(parsed);
    }

    /** A text without white space around it, and decimal digits of any script as ASCII. */
    private static String digits(Object value) {
        final String text = Text.strip(Text.of(value), null, true, true);
        if (text.chars().allMatch(c -> c < 0x80)) {
            return text;
        }
        final StringBuilder digits = new StringBuilder(text.length());
        text.codePoints()
                .forEach(
                        c ->
                                digits.appendCodePoint(
                                        Character.isDigit(c) ? '0' + Character.digit(c, 10) : c));
        return digits.toString();
    }

    private static Object parseWhole(String text, int givenBase) {
        String digits = Cases.lower(text);
        boolean negative = false;
        if (digits.startsWith("-") || digits.startsWith("+")) {
            negative = digits.startsWith("-");
            digits = digits.substring(1);
        }
        final int prefixBase =
                digits.startsWith("0b")
                        ? 2
                        : digits.startsWith("0o") ? 8 : digits.startsWith("0x") ? 16 : 10;
        final int base = givenBase == 0 ? prefixBase : givenBase;
        if (base == prefixBase && base != 10) {
            digits = digits.substring(digits.startsWith("_", 2) ? 3 : 2);
        } else if (givenBase == 0 && digits.matches("0[0_]*+[1-9].*+")) {
            return null; // as a literal of Python: no number but 0 has leading zeros
        }
        if (!digits.matches("[0-9a-z](?:_?[0-9a-z])*+")) {
            return null;
        }
        try {
            final java.math.BigInteger size =
                    Numbers.big(Numbers.parse(digits.replace("_", ""), base));
            return Numbers.of(negative ? size.negate() : size);
        } catch (NumberFormatException | ValueException e) {
            return null; // a digit beyond the base, or too many: no number, as Python has it
        }
    }

    private static Object format(Object value, Arguments arguments) {
        final List<Object> values = arguments.rest();
        final Map<String, Object> named = arguments.restNamed();
        if (!values.isEmpty() && !named.isEmpty()) {
            throw new ValueException(
                    "can't handle positional and keyword arguments at the same time");
        }
        return PythonValues.percent(value, named.isEmpty() ? new Tuple(values) : named);
    }

    private static Object indent(Object value, Arguments arguments) {
        final Object width = arguments.take("width", 4L);
        final boolean first = PythonValues.truth(arguments.take("first", false));
        final boolean blank = PythonValues.truth(arguments.take("blank", false));
        arguments.end();
        if (value instanceof Undefined undefined) {
            throw undefined.fail();
        }
        if (!PythonValues.isText(value)) {
            throw new ValueException(
                    "indent needs a string, not '" + PythonValues.typeName(value) + "'");
        }
        final String indent =
                PythonValues.isText(width)
                        ? Text.of(width)
                        : Text.repeat(" ", Math.max(0, Numbers.index(width)));
        final StringBuilder out = new StringBuilder(first ? indent : "");
        final List<String> lines = Text.lines(Text.of(value) + "\n");
        for (int i = 0; i < lines.size(); i++) {
            Budget.current().text(2L * (lines.get(i).length() + indent.length()));
            if (i > 0) {
                out.append('\n').append(blank || !lines.get(i).isEmpty() ? indent : "");
            }
            out.append(lines.get(i));
        }
        return out.toString();
    }

    private static Object items(Object value) {
        if (value instanceof Undefined) {
            return LazyItems.of(Collections.emptyIterator());
        }
        if (!(value instanceof Map<?, ?> dict)) {
            throw new ValueException("Can only get item pairs from a mapping.");
        }
        return LazyItems.of(new DictView("items", dict).iterator());
    }

    private static Object join(Object value, Arguments arguments) {
        final String separator = Text.of(arguments.take("d", ""));
        final Object attribute = arguments.take("attribute", null);
        arguments.end();
        final Function<Object, Object> getter = getter(attribute, null);
        final StringBuilder out = new StringBuilder();
        final Iterator<?> items = PythonValues.iterate(value);
        while (items.hasNext()) {
            final String text = Text.of(getter.apply(items.next()));
            Budget.current().step();
            Budget.current().text(2L * (text.length() + separator.length()));
            out.append(text);
            out.append(items.hasNext() ? separator : "");
        }
        return out.toString();
    }

    /** Looks up an attribute path such as {@code "a.b.0"}; null leaves items as they are. */
    private static Function<Object, Object> getter(Object attribute, Object defaultValue) {
        if (attribute == null) {
            return item -> item;
        }
        final List<Object> path = new ArrayList<>();
        if (PythonValues.isText(attribute)) {
            for (String part : Text.of(attribute).split("\\.", -1)) {
                path.add(part.matches("[0-9]+") ? (Object) Long.valueOf(part) : part);
            }
        } else {
            path.add(attribute);
        }
        return item -> {
            Object value = item;
            for (Object part : path) {
                Budget.current().step();
                value = PythonValues.item(value, part);
                if (defaultValue != null && value instanceof Undefined) {
                    value = defaultValue;
                }
            }
            return value;
        };
    }

    private static Object map(Object value, Arguments arguments) {
        final Function<Object, Object> change;
        if (arguments.positionalLeft() == 0 && arguments.has("attribute")) {
            final Object attribute = arguments.take("attribute");
            change = getter(attribute, arguments.take("default", null));
            arguments.end();
        } else {
            final List<Object> rest = new ArrayList<>(arguments.rest());
            final Map<String, Object> named = arguments.restNamed();
            if (rest.isEmpty()) {
                throw new ValueException("map requires a filter argument");
            }
            final String name = Text.of(rest.removeFirst());
            change = item -> apply(name, item, new Arguments(name, rest, named));
        }
        return LazyItems.changing(truthful(value), change);
    }

    /** Items of a value, none if it is false: so also for what cannot be walked through. */
    private static Iterator<?> truthful(Object value) {
        return PythonValues.truth(value)
                ? PythonValues.iterate(value)
                : Collections.emptyIterator();
    }

    private static Object select(
            Object value, Arguments arguments, boolean byAttribute, boolean wanted) {
        final List<Object> rest = new ArrayList<>(arguments.rest());
        final Map<String, Object> named = arguments.restNamed();
        if (byAttribute && rest.isEmpty()) {
            throw new ValueException("Missing parameter for attribute name");
        }
        final Function<Object, Object> getter =
                getter(byAttribute ? rest.removeFirst() : null, null);
        final Predicate<Object> predicate;
        if (rest.isEmpty()) {
            predicate = PythonValues::truth;
        } else {
            final String name = Text.of(rest.removeFirst());
            predicate = item -> TestFunctions.apply(name, item, new Arguments(name, rest, named));
        }
        return LazyItems.keeping(
                truthful(value), item -> predicate.test(getter.apply(item)) == wanted);
    }

    private static Object extreme(Object value, Arguments arguments, boolean largest) {
        final boolean caseSensitive = PythonValues.truth(arguments.take("case_sensitive", false));
        final Function<Object, Object> getter = getter(arguments.take("attribute", null), null);
        arguments.end();
        final Iterator<?> items = PythonValues.iterate(value);
        if (!items.hasNext()) {
            return new Undefined("No aggregated item, sequence was empty.");
        }
        Object best = items.next();
        while (items.hasNext()) {
            final Object item = items.next();
            final int order =
                    PythonValues.compare(
                            largest ? ">" : "<",
                            folded(getter.apply(item), caseSensitive),
                            folded(getter.apply(best), caseSensitive));
            if (largest ? order > 0 : order < 0) {
                best = item;
            }
        }
        return best;
    }

    private static Object replace(Object value, Arguments arguments) {
        final String old = Text.of(arguments.take("old"));
        final String with = Text.of(arguments.take("new"));
        final Object count = arguments.take("count", null);
        arguments.end();
        return Methods.replace(
                Text.of(value), old, with, count == null ? -1 : Numbers.index(count));
    }

    private static Object reverse(Object value) {
        if (PythonValues.isText(value)) {
            return PythonValues.slice(value, null, null, -1L);
        }
        if (!PythonValues.isIterable(value)) {
            throw new ValueException("argument must be iterable");
        }
        return LazyItems.of(PythonValues.list(value).reversed().iterator());
    }

    private static Object round(Object value, Arguments arguments) {
        final Object precision = arguments.take("precision", 0L);
        final String method = Text.of(arguments.take("method", "common"));
        arguments.end();
        if (value instanceof Undefined undefined) {
            throw undefined.fail();
        }
        if (!Numbers.isNumber(value)) {
            throw new ValueException("type " + PythonValues.typeName(value) + " cannot be rounded");
        }
        if (!ROUND_METHODS.contains(method)) {
            throw new ValueException("method must be common, ceil or floor");
        }
        if (method.equals("common")) {
            return precision == null
                    ? Numbers.round(value)
                    : Numbers.round(value, Numbers.index(precision));
        }
        final Object factor = PythonValues.binary("**", 10L, precision);
        final double scaled = Numbers.real(Numbers.arithmetic("*", value, factor));
        final double whole = method.equals("ceil") ? Math.ceil(scaled) : Math.floor(scaled);
        return Numbers.arithmetic("/", Numbers.truncated(whole), factor);
    }

    private static Object sort(Object value, Arguments arguments) {
        final boolean reverse = PythonValues.truth(arguments.take("reverse", false));
        final boolean caseSensitive = PythonValues.truth(arguments.take("case_sensitive", false));
        final Object attribute = arguments.take("attribute", null);
        arguments.end();
        final List<Function<Object, Object>> getters = new ArrayList<>();
        if (PythonValues.isText(attribute)) {
            for (String part : Text.of(attribute).split(",", -1)) {
                getters.add(getter(part, null));
            }
        } else {
            getters.add(getter(attribute, null));
        }
        return sorted(
                PythonValues.list(value),
                item -> {
                    final List<Object> key = new ArrayList<>();
                    getters.forEach(g -> key.add(folded(g.apply(item), caseSensitive)));
                    return key;
                },
                reverse);
    }

    private static Object sum(Object value, Arguments arguments) {
        final Function<Object, Object> getter = getter(arguments.take("attribute", null), null);
        Object total = arguments.take("start", 0L);
        arguments.end();
        if (PythonValues.isText(total)) {
            throw new ValueException("sum() can't sum strings");
        }
        final Iterator<?> items = PythonValues.iterate(value);
        while (items.hasNext()) {
            total = PythonValues.binary("+", total, getter.apply(items.next()));
        }
        return total;
    }

    /** Words begin after white space, hyphens and opening brackets. */
    private static Object title(Object value) {
        final String text = Text.of(value);
        Budget.current().text(text.length());
        Budget.current().steps(text.length());
        final StringBuilder out = new StringBuilder(text.length());
        boolean begins = true;
        int at = 0;
        while (at < text.length()) {
            final int next = text.offsetByCodePoints(at, 1);
            final String one = text.substring(at, next);
            final boolean separates = "-({[<".contains(one) || Text.isSpace(one.codePointAt(0));
            if (separates || begins) {
                out.append(separates ? one : Cases.upper(one));
                begins = separates;
                at = next;
            } else {
                final int start = at;
                while (at < text.length()
                        && "-({[<".indexOf(text.charAt(at)) < 0
                        && !Text.isSpace(text.charAt(at))) {
                    at++;
                }
                out.append(Cases.lower(text.substring(start, at)));
            }
        }
        return out.toString();
    }

    private static Object trim(Object value, Arguments arguments) {
        final Object characters = arguments.take("chars", null);
        arguments.end();
        return Text.strip(
                Text.of(value), characters == null ? null : Methods.text(characters), true, true);
    }

    private static Object truncate(Object value, Arguments arguments) {
        final Object length = arguments.take("length", 255L);
        final boolean killWords = PythonValues.truth(arguments.take("killwords", false));
        final Object end = arguments.take("end", "...");
        final Object given = arguments.take("leeway", null);
        arguments.end();
        final Object leeway = given == null ? 5L : given;
        final Object endLength = PythonValues.length(end);
        if (!Evaluator.ordered(">=", length, endLength)) {
            throw new ValueException(
                    "truncate: expected length >= " + endLength + ", got " + Text.repr(length));
        }
        if (!Evaluator.ordered(">=", leeway, 0L)) {
            throw new ValueException("truncate: expected leeway >= 0, got " + Text.repr(leeway));
        }
        if (Evaluator.ordered(
                "<=", PythonValues.length(value), PythonValues.binary("+", length, leeway))) {
            return value;
        }
        final Object kept =
                PythonValues.slice(value, null, PythonValues.binary("-", length, endLength), null);
        if (killWords) {
            return PythonValues.binary("+", kept, end);
        }
        final String text = Methods.text(kept);
        final int space = text.lastIndexOf(' ');
        final String words = space < 0 ? text : text.substring(0, space);
        return PythonValues.binary("+", Markup.like(value, words), end);
    }

    private static Object unique(Object value, Arguments arguments) {
        final boolean caseSensitive = PythonValues.truth(arguments.take("case_sensitive", false));
        final Function<Object, Object> getter = getter(arguments.take("attribute", null), null);
        arguments.end();
        final List<Object> seen = new ArrayList<>();
        return LazyItems.keeping(
                PythonValues.iterate(value),
                item -> {
                    final Object key = folded(getter.apply(item), caseSensitive);
                    PythonValues.requireHash(key);
                    final boolean fresh =
                            seen.stream().noneMatch(old -> PythonValues.equal(old, key));
                    if (fresh) {
                        seen.add(key);
                    }
                    return fresh;
                });
    }

    private static Object wordCount(Object value) {
        final String text = Text.of(value);
        Budget.current().steps(text.length());
        long count = 0;
        boolean inWord = false;
        for (int i = 0; i < text.length(); ) {
            final int c = text.codePointAt(i);
            final boolean word = c == '_' || Methods.isAlphanumeric(c);
            count += word && !inWord ? 1 : 0;
            inWord = word;
            i += Character.charCount(c);
        }
        return count;
    }
}

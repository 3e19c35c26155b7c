package io.kvasir.prompt.jinja;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.IntPredicate;

/**
 * Attributes and methods of values. Those that change a list or dict are out of bounds, as in the
 * sandbox.
 */
final class Methods {
    private static final Set<String> LIST_MUTATORS =
            Set.of("append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove");
    private static final Set<String> DICT_MUTATORS =
            Set.of("clear", "pop", "popitem", "setdefault", "update");

    /** What Python has and this interpreter does not: an error instead of something undefined. */
    private static final Set<String> MISSING_TEXT =
            Set.of("encode", "format_map", "isidentifier", "isprintable", "maketrans", "translate");

    private static final Set<String> MISSING_NUMBER =
            Set.of(
                    "as_integer_ratio",
                    "bit_count",
                    "bit_length",
                    "conjugate",
                    "denominator",
                    "from_bytes",
                    "fromhex",
                    "hex",
                    "imag",
                    "is_integer",
                    "numerator",
                    "real",
                    "to_bytes");

    /** First and last of the signs of one digit that are no decimals: raised, in circles, … */
    private static final int[] DIGIT_SIGNS = {
        0xB2, 0xB3, 0xB9, 0xB9, 0x1369, 0x1371, 0x19DA, 0x19DA, 0x2070, 0x2070,
        0x2074, 0x2079, 0x2080, 0x2089, 0x2460, 0x2468, 0x2474, 0x247C, 0x2488, 0x2490,
        0x24EA, 0x24EA, 0x24F5, 0x24FD, 0x24FF, 0x24FF, 0x2776, 0x277E, 0x2780, 0x2788,
        0x278A, 0x2792, 0x10A40, 0x10A43, 0x10E60, 0x10E68, 0x11052, 0x1105A, 0x1F100, 0x1F10A
    };

    /** Ideographs that stand for numbers: letters with a Numeric_Type in Unicode 15's Unihan. */
    private static final String NUMERAL_LETTERS =
            "\u3405\u3483\u382a\u3b4d\u4e00\u4e03\u4e07\u4e09\u4e5d\u4e8c\u4e94\u4e96"
                    + "\u4ebf\u4ec0\u4edf\u4ee8\u4f0d\u4f70\u5104\u5146\u5169\u516b\u516d\u5341"
                    + "\u5343\u5344\u5345\u534c\u53c1\u53c2\u53c3\u53c4\u56db\u58f1\u58f9\u5e7a"
                    + "\u5efe\u5eff\u5f0c\u5f0d\u5f0e\u5f10\u62fe\u634c\u67d2\u6f06\u7396\u767e"
                    + "\u8086\u842c\u8cae\u8cb3\u8d30\u9621\u9646\u964c\u9678\u96f6\uf96b\uf973"
                    + "\uf978\uf9b2\uf9d1\uf9d3\uf9fd\ud840\udc01\ud840\udc64\ud840\udce2"
                    + "\ud840\udd21\ud842\udd2a\ud842\udd83\ud842\udd8c\ud842\udd9c\ud842\udeea"
                    + "\ud842\udefd\ud842\udf19\ud848\udf90\ud84a\udd98\ud84e\udf1b\ud858\ude6d"
                    + "\ud87e\udc90";

    /** A part of a text takes as much as so many items of a list. */
    private static final int PART_ITEMS = 6;

    private Methods() {}

    /** An attribute of a value other than its items, or null where there is none of that name. */
    static Object attribute(Object value, String name) {
        if (name.startsWith("__") && name.endsWith("__")) {
            return unsafe(value, name);
        }
        return switch (value) {
            case String s -> text(s, name);
            case Markup markup -> Markup.method(markup, name, text(markup.text(), name));
            case Map<?, ?> dict -> dict(dict, name);
            case Group group when group.attribute(name) != null -> group.attribute(name);
            case List<?> list -> list(list, name);
            case LoopContext loop -> loop.attribute(name);
            case Cycler cycler -> cycler.attribute(name);
            case Macro macro -> macro.attribute(name);
            case null -> null;
            default -> {
                if (Numbers.isNumber(value) && MISSING_NUMBER.contains(name)) {
                    throw missing(value, name);
                }
                yield null;
            }
        };
    }

    private static Undefined unsafe(Object value, String name) {
        return new Undefined(
                "access to attribute '"
                        + name
                        + "' of '"
                        + PythonValues.typeName(value)
                        + "' object is unsafe.");
    }

    private static ValueException missing(Object value, String name) {
        return new ValueException(
                "'"
                        + name
                        + "' of '"
                        + PythonValues.typeName(value)
                        + "' objects is not implemented");
    }

    private static Object dict(Map<?, ?> dict, String name) {
        if (DICT_MUTATORS.contains(name)) {
            return unsafe(dict, name);
        }
        return switch (name) {
            case "keys", "values", "items" ->
                    (Callable)
                            arguments -> {
                                arguments.end();
                                return new DictView(name, dict);
                            };
            case "get" ->
                    (Callable)
                            arguments -> {
                                final Object key = arguments.take("key");
                                final Object defaultValue = arguments.take("default", null);
                                arguments.end();
                                return PythonValues.get(dict, key, defaultValue);
                            };
            case "copy" ->
                    (Callable)
                            arguments -> {
                                arguments.end();
                                Budget.current().items(4L * dict.size());
                                return new LinkedHashMap<Object, Object>(dict);
                            };
            case "fromkeys" -> throw missing(dict, name);
            default -> null;
        };
    }

    private static Object list(List<?> list, String name) {
        if (!(list instanceof Tuple || list instanceof Range) && LIST_MUTATORS.contains(name)) {
            return unsafe(list, name);
        }
        return switch (name) {
            case "count" ->
                    (Callable)
                            arguments -> {
                                final Object wanted = arguments.take("value");
                                arguments.end();
                                return list.stream()
                                        .filter(i -> PythonValues.equal(i, wanted))
                                        .count();
                            };
            case "index" -> (Callable) arguments -> indexOf(list, arguments);
            case "copy" ->
                    list instanceof Tuple || list instanceof Range
                            ? null
                            : plain(() -> PythonValues.list(list));
            default -> null;
        };
    }

    private static Object indexOf(List<?> list, Arguments arguments) {
        final Object wanted = arguments.take("value");
        arguments.end();
        for (int i = 0; i < list.size(); i++) {
            if (PythonValues.equal(list.get(i), wanted)) {
                return (long) i;
            }
        }
        throw new ValueException(Text.repr(wanted) + " is not in list");
    }

    private static Object text(String s, String name) {
        if (MISSING_TEXT.contains(name)) {
            throw missing(s, name);
        }
        return switch (name) {
            case "strip" -> (Callable) a -> strip(s, a, true, true);
            case "lstrip" -> (Callable) a -> strip(s, a, true, false);
            case "rstrip" -> (Callable) a -> strip(s, a, false, true);
            case "upper" -> plain(() -> Cases.upper(s));
            case "lower" -> plain(() -> Cases.lower(s));
            case "casefold" -> plain(() -> Cases.fold(s));
            case "title" -> plain(() -> Cases.title(s));
            case "capitalize" -> plain(() -> Cases.capitalize(s));
            case "swapcase" -> plain(() -> Cases.swap(s));
            case "split" -> (Callable) a -> split(s, a, false);
            case "rsplit" -> (Callable) a -> split(s, a, true);
            case "splitlines" -> (Callable) a -> splitLines(s, a);
            case "startswith" -> (Callable) a -> affix(s, a, true);
            case "endswith" -> (Callable) a -> affix(s, a, false);
            case "replace" -> (Callable) a -> replace(s, a);
            case "join" -> (Callable) a -> join(s, a);
            case "find" -> (Callable) a -> find(s, a, false);
            case "rfind" -> (Callable) a -> find(s, a, true);
            case "index" -> (Callable) a -> found(find(s, a, false));
            case "rindex" -> (Callable) a -> found(find(s, a, true));
            case "count" -> (Callable) a -> count(s, a);
            case "format" -> (Callable) a -> Formats.braces(s, a.rest(), a.restNamed());
            case "removeprefix" -> (Callable) a -> removeAffix(s, a, true);
            case "removesuffix" -> (Callable) a -> removeAffix(s, a, false);
            case "partition" -> (Callable) a -> partition(s, a, false);
            case "rpartition" -> (Callable) a -> partition(s, a, true);
            case "zfill" -> (Callable) a -> zeroFill(s, a);
            case "center", "ljust", "rjust" -> (Callable) a -> justify(s, a, name);
            case "isdigit" -> plain(() -> all(s, Methods::isDigit));
            case "isdecimal" -> plain(() -> all(s, Character::isDigit));
            case "isnumeric" -> plain(() -> all(s, Methods::isNumeric));
            case "isalpha" -> plain(() -> all(s, Character::isLetter));
            case "isalnum" -> plain(() -> all(s, Methods::isAlphanumeric));
            case "isspace" -> plain(() -> all(s, Text::isSpace));
            case "isupper" -> plain(() -> isUpper(s));
            case "islower" -> plain(() -> isLower(s));
            case "istitle" -> plain(() -> isTitle(s));
            case "isascii" -> plain(() -> s.isEmpty() || all(s, c -> c < 0x80));
            case "expandtabs" -> (Callable) a -> expandTabs(s, a);
            default -> null;
        };
    }

    private static Callable plain(java.util.function.Supplier<Object> method) {
        return arguments -> {
            arguments.end();
            return method.get();
        };
    }

    private static Object strip(String s, Arguments arguments, boolean left, boolean right) {
        final Object characters = arguments.take("chars", null);
        arguments.end();
        return Text.strip(s, characters == null ? null : text(characters), left, right);
    }

    /** A value that has to be a string. */
    static String text(Object value) {
        if (value instanceof Undefined undefined) {
            throw undefined.fail();
        }
        if (!PythonValues.isText(value)) {
            throw new ValueException(
                    "expected a string, got '" + PythonValues.typeName(value) + "'");
        }
        return Text.of(value);
    }

    private static List<Object> split(String s, Arguments arguments, boolean fromRight) {
        Budget.current().text(s.length());
        final Object separator = arguments.take("sep", null);
        final Object limit = arguments.take("maxsplit", -1L);
        arguments.end();
        final long max = Numbers.index(limit);
        final List<Object> parts;
        if (separator == null) {
            parts = fromRight ? words(s, max).reversed() : wordsFromLeft(s, max);
            return new ArrayList<>(parts);
        }
        final String by = text(separator);
        if (by.isEmpty()) {
            throw new ValueException("empty separator");
        }
        Budget.current().search(s.length(), by.length());
        parts = new ArrayList<>();
        if (fromRight) {
            int end = s.length();
            while (max < 0 || parts.size() < max) {
                final int at = end < by.length() ? -1 : s.lastIndexOf(by, end - by.length());
                if (at < 0) {
                    break;
                }
                Budget.current().items(PART_ITEMS);
                parts.add(s.substring(at + by.length(), end));
                end = at;
            }
            parts.add(s.substring(0, end));
            return new ArrayList<>(parts.reversed());
        }
        int start = 0;
        while (max < 0 || parts.size() < max) {
            final int at = s.indexOf(by, start);
            if (at < 0) {
                break;
            }
            Budget.current().items(PART_ITEMS);
            parts.add(s.substring(start, at));
            start = at + by.length();
        }
        parts.add(s.substring(start));
        return parts;
    }

    private static List<Object> wordsFromLeft(String s, long max) {
        final List<Object> parts = new ArrayList<>();
        int at = 0;
        while (true) {
            while (at < s.length() && Text.isSpace(s.charAt(at))) {
                at++;
            }
            if (at == s.length()) {
                return parts;
            }
            if (max >= 0 && parts.size() >= max) {
                parts.add(s.substring(at));
                return parts;
            }
            final int start = at;
            while (at < s.length() && !Text.isSpace(s.charAt(at))) {
                at++;
            }
            Budget.current().items(PART_ITEMS);
            parts.add(s.substring(start, at));
        }
    }

    /** Words from the end of the text, last one first. */
    private static List<Object> words(String s, long max) {
        final List<Object> parts = new ArrayList<>();
        int at = s.length();
        while (true) {
            while (at > 0 && Text.isSpace(s.charAt(at - 1))) {
                at--;
            }
            if (at == 0) {
                return parts;
            }
            if (max >= 0 && parts.size() >= max) {
                parts.add(s.substring(0, at));
                return parts;
            }
            Budget.current().items(PART_ITEMS);
            final int end = at;
            while (at > 0 && !Text.isSpace(s.charAt(at - 1))) {
                at--;
            }
            parts.add(s.substring(at, end));
        }
    }

    private static Object splitLines(String s, Arguments arguments) {
        final boolean keep = PythonValues.truth(arguments.take("keepends", false));
        arguments.end();
        return new ArrayList<Object>(Text.lines(s, keep));
    }

    private static Object affix(String s, Arguments arguments, boolean start) {
        final Object affix = arguments.take("affix");
        Budget.current().text(s.length());
        final int from = start(s, arguments.take("start", null));
        final int to = offset(s, arguments.take("end", null), s.length());
        arguments.end();
        if (from > to) {
            return false;
        }
        final String rest = s.substring(from, to);
        final List<?> candidates = affix instanceof Tuple tuple ? tuple : List.of(text(affix));
        for (Object candidate : candidates) {
            Budget.current().step();
            Budget.current().read(text(candidate).length());
            if (start ? rest.startsWith(text(candidate)) : rest.endsWith(text(candidate))) {
                return true;
            }
        }
        return false;
    }

    /** Offset in UTF-16 of an index in code points, which may be negative or beyond the ends. */
    private static int offset(String s, Object index, int defaultOffset) {
        if (index == null) {
            return defaultOffset;
        }
        final int length = Text.length(s);
        final long given = Numbers.index(index);
        final long offset = Math.clamp(given < 0 ? given + length : given, 0, length);
        return s.offsetByCodePoints(0, (int) offset);
    }

    /** The same of where a part begins; behind the end, where nothing is, one more than that. */
    private static int start(String s, Object index) {
        return index != null && Numbers.index(index) > Text.length(s)
                ? s.length() + 1
                : offset(s, index, 0);
    }

    private static Object replace(String s, Arguments arguments) {
        final String old = text(arguments.take("old"));
        final String with = text(arguments.take("new"));
        final long count = Numbers.index(arguments.take("count", -1L));
        arguments.end();
        return replace(s, old, with, count);
    }

    /** Replaces the first {@code count} occurrences, all of them when it is negative. */
    static String replace(String s, String old, String with, long count) {
        final Budget budget = Budget.current();
        budget.search(s.length(), old.length());
        budget.text(2L * s.length());
        final StringBuilder out = new StringBuilder();
        int at = 0;
        long left = count < 0 ? Long.MAX_VALUE : count;
        while (left > 0) {
            final int found = s.indexOf(old, at);
            if (found < 0) {
                break;
            }
            budget.step();
            budget.text(2L * with.length());
            if (old.isEmpty()) {
                out.append(with);
                if (at == s.length()) {
                    return out.toString();
                }
                final int next = s.offsetByCodePoints(at, 1);
                out.append(s, at, next);
                at = next;
            } else {
                out.append(s, at, found).append(with);
                at = found + old.length();
            }
            left--;
        }
        return out.append(s, at, s.length()).toString();
    }

    private static Object join(String s, Arguments arguments) {
        final Object items = arguments.take("iterable");
        arguments.end();
        final StringBuilder out = new StringBuilder();
        boolean first = true;
        for (Object item : PythonValues.list(items)) {
            if (!PythonValues.isText(item)) {
                throw new ValueException(
                        "join() expected strings, found '" + PythonValues.typeName(item) + "'");
            }
            final String text = Text.of(item);
            Budget.current().text(2L * (s.length() + text.length()));
            out.append(first ? "" : s).append(text);
            first = false;
        }
        return out.toString();
    }

    private static Object find(String s, Arguments arguments, boolean last) {
        final String wanted = text(arguments.take("sub"));
        final int start = start(s, arguments.take("start", null));
        final int end = offset(s, arguments.take("end", null), s.length());
        arguments.end();
        if (start > end) {
            return -1L;
        }
        Budget.current().search(end - start, wanted.length());
        Budget.current().text(end - start);
        final String part = s.substring(start, end);
        final int found = last ? part.lastIndexOf(wanted) : part.indexOf(wanted);
        return found < 0 ? -1L : (long) s.codePointCount(0, start + found);
    }

    private static Object found(Object index) {
        if (index.equals(-1L)) {
            throw new ValueException("substring not found");
        }
        return index;
    }

    private static Object count(String s, Arguments arguments) {
        final String wanted = text(arguments.take("sub"));
        final int start = start(s, arguments.take("start", null));
        final int end = offset(s, arguments.take("end", null), s.length());
        arguments.end();
        if (start > end) {
            return 0L;
        }
        if (wanted.isEmpty()) {
            Budget.current().read(end - start);
            return (long) s.codePointCount(start, end) + 1;
        }
        Budget.current().search(end - start, wanted.length());
        long count = 0;
        for (int at = s.indexOf(wanted, start, end);
                at >= 0;
                at = s.indexOf(wanted, at + wanted.length(), end)) {
            Budget.current().step();
            count++;
        }
        return count;
    }

    private static Object removeAffix(String s, Arguments arguments, boolean prefix) {
        final String affix = text(arguments.take("affix"));
        arguments.end();
        Budget.current().text(s.length());
        if (prefix) {
            return s.startsWith(affix) ? s.substring(affix.length()) : s;
        }
        return s.endsWith(affix) ? s.substring(0, s.length() - affix.length()) : s;
    }

    private static Object partition(String s, Arguments arguments, boolean last) {
        final String by = text(arguments.take("sep"));
        arguments.end();
        if (by.isEmpty()) {
            throw new ValueException("empty separator");
        }
        Budget.current().search(s.length(), by.length());
        Budget.current().text(s.length());
        final int at = last ? s.lastIndexOf(by) : s.indexOf(by);
        if (at < 0) {
            return new Tuple(last ? List.of("", "", s) : List.of(s, "", ""));
        }
        return new Tuple(List.of(s.substring(0, at), by, s.substring(at + by.length())));
    }

    private static Object zeroFill(String s, Arguments arguments) {
        final long width = Numbers.index(arguments.take("width"));
        arguments.end();
        final int sign = s.startsWith("-") || s.startsWith("+") ? 1 : 0;
        final String zeros = Text.repeat("0", room(s, width));
        return s.substring(0, sign) + zeros + s.substring(sign);
    }

    private static Object justify(String s, Arguments arguments, String how) {
        final long width = Numbers.index(arguments.take("width"));
        final String fill = text(arguments.take("fillchar", " "));
        arguments.end();
        if (Text.length(fill) != 1) {
            throw new ValueException("The fill character must be exactly one character long");
        }
        return justify(s, width, fill, how);
    }

    /** {@code center}, {@code ljust} or {@code rjust}. */
    static String justify(String s, long width, String fill, String how) {
        final long room = room(s, width);
        final long left =
                switch (how) {
                    case "ljust" -> 0;
                    case "rjust" -> room;
                    default -> room / 2 + (room & width & 1);
                };
        return Text.repeat(fill, left) + s + Text.repeat(fill, room - left);
    }

    /** Characters that are missing to a width. */
    private static long room(String s, long width) {
        Budget.current().text(s.length());
        return Math.max(0, Math.max(0, width) - Text.length(s));
    }

    private static boolean all(String s, IntPredicate predicate) {
        Budget.current().read(s.length());
        return !s.isEmpty() && s.codePoints().allMatch(predicate);
    }

    private static boolean isDigit(int c) {
        if (Character.getType(c) == Character.OTHER_NUMBER) {
            for (int i = 0; i < DIGIT_SIGNS.length; i += 2) {
                if (c >= DIGIT_SIGNS[i] && c <= DIGIT_SIGNS[i + 1]) {
                    return true;
                }
            }
        }
        return Character.isDigit(c);
    }

    /** {@code str.isalnum} of one character. */
    static boolean isAlphanumeric(int c) {
        return Character.isLetter(c) || isNumeric(c);
    }

    private static boolean isNumeric(int c) {
        return switch (Character.getType(c)) {
            case Character.DECIMAL_DIGIT_NUMBER, Character.LETTER_NUMBER, Character.OTHER_NUMBER ->
                    true;
            case Character.OTHER_LETTER -> NUMERAL_LETTERS.indexOf(c) >= 0;
            default -> false;
        };
    }

    /** Some cased character, none of them lower case. */
    static boolean isUpper(String s) {
        Budget.current().read(2L * s.length());
        return s.codePoints().anyMatch(Character::isUpperCase)
                && s.codePoints()
                        .noneMatch(c -> Character.isLowerCase(c) || Character.isTitleCase(c));
    }

    /** Some cased character; the first of each word is upper or title case, no other one is. */
    private static boolean isTitle(String s) {
        Budget.current().read(s.length());
        boolean cased = false; // the character before
        boolean any = false;
        for (int i = 0; i < s.length(); i += Character.charCount(s.codePointAt(i))) {
            final int c = s.codePointAt(i);
            final boolean begins = Character.isUpperCase(c) || Character.isTitleCase(c);
            if (begins ? cased : Character.isLowerCase(c) && !cased) {
                return false;
            }
            cased = begins || Character.isLowerCase(c);
            any |= cased;
        }
        return any;
    }

    private static Object expandTabs(String s, Arguments arguments) {
        final long size = Numbers.index(arguments.take("tabsize", 8L));
        arguments.end();
        final StringBuilder out = new StringBuilder();
        long column = 0;
        for (int i = 0; i < s.length(); i += Character.charCount(s.codePointAt(i))) {
            final int c = s.codePointAt(i);
            if (c == '\t') {
                final long spaces = size <= 0 ? 0 : size - (column % size);
                out.append(Text.repeat(" ", spaces));
                column += spaces;
            } else {
                out.appendCodePoint(c);
                column = c == '\n' || c == '\r' ? 0 : column + 1;
            }
        }
        Budget.current().text(2L * out.length());
        return out.toString();
    }

    /** Some cased character, none of them upper case. */
    static boolean isLower(String s) {
        Budget.current().read(2L * s.length());
        return s.codePoints().anyMatch(Character::isLowerCase)
                && s.codePoints()
                        .noneMatch(c -> Character.isUpperCase(c) || Character.isTitleCase(c));
    }
}

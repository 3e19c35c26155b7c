package io.kvasir.prompt.jinja;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.List;
import java.util.Map;

/**
 * Python's two ways to format: {@code "%s" % values} and {@code "{}".format(values)}. Conversions
 * that are not implemented (such as {@code %e} and {@code :g}) are errors.
 */
final class Formats {
    private static final String FLAGS = "-+ #0";

    /** No double has more digits after its point that are not 0. */
    private static final int MAX_FRACTION_DIGITS = 1074;

    private Formats() {}

    /**
     * {@code template % values}: a tuple, a dict for named fields, or a single value. One that has
     * items, such as a list, need not be used.
     */
    static String percent(String template, Object values) {
        final List<?> given =
                values instanceof Tuple tuple ? tuple : java.util.Collections.singletonList(values);
        Budget.current().text(template.length());
        final StringBuilder out = new StringBuilder();
        int used = 0;
        int at = 0;
        while (at < template.length()) {
            final char c = template.charAt(at++);
            if (c != '%') {
                out.append(c);
                continue;
            }
            Object value = null;
            boolean taken = false;
            if (at < template.length() && template.charAt(at) == '(') {
                final int end = template.indexOf(')', at);
                if (end < 0 || !(values instanceof Map<?, ?> dict)) {
                    throw new ValueException("format requires a mapping");
                }
                value = member(dict, template.substring(at + 1, end));
                taken = true;
                used = given.size(); // the dict is no single value any more
                at = end + 1;
            }
            final int specStart = at;
            while (at < template.length() && FLAGS.indexOf(template.charAt(at)) >= 0) {
                at++;
            }
            final String flags = template.substring(specStart, at);
            final int widthStart = at;
            at = digits(template, at);
            final int width = number(template, widthStart, at, 0);
            int precision = -1;
            if (at < template.length() && template.charAt(at) == '.') {
                final int from = ++at;
                at = digits(template, at);
                precision = number(template, from, at, 0);
            }
            if (at >= template.length()) {
                throw new ValueException("incomplete format");
            }
            final char type = template.charAt(at++);
            if (type == '%') {
                out.append('%');
                continue;
            }
            if (!taken) {
                if (used >= given.size()) {
                    throw new ValueException("not enough arguments for format string");
                }
                value = given.get(used++);
            }
            append(out, percentValue(value, flags, width, precision, type));
        }
        if (used < given.size() && !hasItems(values)) {
            throw new ValueException("not all arguments converted during string formatting");
        }
        return out.toString();
    }

    private static Object member(Map<?, ?> dict, String name) {
        final Object value = PythonValues.get(dict, name, Absent.ABSENT);
        if (value == Absent.ABSENT) {
            throw new ValueException("format requires the key " + Text.repr(name));
        }
        return value;
    }

    /** Whether a value that is no tuple or text has items by key or number. */
    private static boolean hasItems(Object value) {
        return value instanceof Map
                || (value instanceof List && !(value instanceof Tuple))
                || value instanceof Undefined;
    }

    private static String percentValue(
            Object value, String flags, int width, int precision, char type) {
        final boolean left = flags.indexOf('-') >= 0;
        final boolean zeros = flags.indexOf('0') >= 0 && !left;
        final char sign = flags.indexOf('+') >= 0 ? '+' : flags.indexOf(' ') >= 0 ? ' ' : '-';
        if (flags.indexOf('#') >= 0) {
            throw new ValueException("the flag # of a format is not implemented");
        }
        if (type == 's' || type == 'r') {
            String text = type == 's' ? Text.of(value) : Text.repr(value);
            if (precision >= 0 && precision < Text.length(text)) {
                text = text.substring(0, text.offsetByCodePoints(0, precision));
            }
            return Methods.justify(text, width, " ", left ? "ljust" : "rjust");
        }
        if (value instanceof Undefined undefined) {
            throw undefined.fail();
        }
        if (!Numbers.isNumber(value)) {
            throw new ValueException(
                    "%"
                            + type
                            + " format: a number is required, not "
                            + PythonValues.typeName(value));
        }
        final String digits =
                switch (type) {
                    case 'd', 'i', 'u' -> signed(Numbers.text(truncated(value)), sign);
                    case 'x' -> signed(Numbers.big(whole(value)).toString(16), sign);
                    case 'X' -> signed(Cases.upper(Numbers.big(whole(value)).toString(16)), sign);
                    case 'o' -> signed(Numbers.big(whole(value)).toString(8), sign);
                    case 'f', 'F' -> signed(fixed(value, precision < 0 ? 6 : precision), sign);
                    default ->
                            throw new ValueException("the format %" + type + " is not implemented");
                };
        return padded(digits, width, zeros ? "0" : " ", left ? '<' : zeros ? '=' : '>');
    }

    /** {@code template.format(values)}. */
    static String braces(String template, List<Object> values, Map<String, Object> named) {
        Budget.current().text(template.length());
        final StringBuilder out = new StringBuilder();
        int automatic = 0;
        int at = 0;
        while (at < template.length()) {
            final char c = template.charAt(at);
            if ((c == '{' || c == '}')
                    && at + 1 < template.length()
                    && template.charAt(at + 1) == c) {
                out.append(c);
                at += 2;
            } else if (c == '}') {
                throw new ValueException("Single '}' encountered in format string");
            } else if (c == '{') {
                final int end = template.indexOf('}', at);
                if (end < 0) {
                    throw new ValueException("Single '{' encountered in format string");
                }
                final String field = template.substring(at + 1, end);
                if (field.indexOf('{') >= 0) {
                    throw new ValueException("nested fields in a format are not implemented");
                }
                final int colon = field.indexOf(':');
                String name = colon < 0 ? field : field.substring(0, colon);
                String conversion = "";
                final int mark = name.indexOf('!');
                if (mark >= 0) {
                    conversion = name.substring(mark + 1);
                    name = name.substring(0, mark);
                }
                if (name.isEmpty() || name.charAt(0) == '.' || name.charAt(0) == '[') {
                    name = automatic++ + name;
                }
                final Object value = converted(field(name, values, named), conversion);
                append(out, formatted(value, colon < 0 ? "" : field.substring(colon + 1)));
                at = end + 1;
            } else {
                out.append(c);
                at++;
            }
        }
        return out.toString();
    }

    private static void append(StringBuilder out, String text) {
        Budget.current().step();
        Budget.current().text(text.length());
        out.append(text);
    }

    private static Object converted(Object value, String conversion) {
        return switch (conversion) {
            case "" -> value;
            case "s" -> Text.of(value);
            case "r" -> Text.repr(value);
            default ->
                    throw new ValueException("conversion !" + conversion + " is not implemented");
        };
    }

    private static Object field(String path, List<Object> values, Map<String, Object> named) {
        int end = 0;
        while (end < path.length() && path.charAt(end) != '.' && path.charAt(end) != '[') {
            end++;
        }
        final String first = path.substring(0, end);
        Object value;
        if (first.chars().allMatch(c -> c >= '0' && c <= '9')) {
            final int index = Integer.parseInt(first);
            if (index >= values.size()) {
                throw new ValueException(
                        "Replacement index " + index + " out of range for positional args tuple");
            }
            value = values.get(index);
        } else if (named.containsKey(first)) {
            value = named.get(first);
        } else {
            throw new ValueException("format() has no argument '" + first + "'");
        }
        while (end < path.length()) {
            if (path.charAt(end) == '.') {
                int next = end + 1;
                while (next < path.length()
                        && path.charAt(next) != '.'
                        && path.charAt(next) != '[') {
                    next++;
                }
                value = PythonValues.attribute(value, path.substring(end + 1, next));
                end = next;
            } else {
                final int close = path.indexOf(']', end);
                if (close < 0) {
                    throw new ValueException("Missing ']' in format string");
                }
                final String key = path.substring(end + 1, close);
                value =
                        PythonValues.item(
                                value, key.matches("[0-9]+") ? (Object) Long.valueOf(key) : key);
                end = close + 1;
            }
        }
        return value;
    }

    /** {@code format(value, spec)}: {@code [[fill]align][sign][0][width][,][.precision][type]}. */
    private static String formatted(Object value, String spec) {
        if (spec.isEmpty()) {
            return Text.of(value);
        }
        int at = 0;
        String fill = " ";
        char align = 0;
        final int fillEnd = spec.offsetByCodePoints(0, 1);
        if (fillEnd < spec.length() && "<>^=".indexOf(spec.charAt(fillEnd)) >= 0) {
            fill = spec.substring(0, fillEnd);
            align = spec.charAt(fillEnd);
            at = fillEnd + 1;
        } else if ("<>^=".indexOf(spec.charAt(0)) >= 0) {
            align = spec.charAt(at++);
        }
        char sign = '-';
        if (at < spec.length() && "+- ".indexOf(spec.charAt(at)) >= 0) {
            sign = spec.charAt(at++);
        }
        if (at < spec.length() && spec.charAt(at) == '0') {
            fill = align == 0 ? "0" : fill;
            align = align == 0 ? '=' : align;
            at++;
        }
        final int widthStart = at;
        at = digits(spec, at);
        final int width = number(spec, widthStart, at, 0);
        boolean grouped = false;
        if (at < spec.length() && spec.charAt(at) == ',') {
            grouped = true;
            at++;
        }
        int precision = -1;
        if (at < spec.length() && spec.charAt(at) == '.') {
            final int from = ++at;
            at = digits(spec, at);
            precision = number(spec, from, at, 0);
        }
        final String type = spec.substring(at);
        if (!Numbers.isNumber(value) || type.equals("s")) {
            if (!PythonValues.isText(value) || grouped || sign != '-' || !type.matches("s?")) {
                throw new ValueException(
                        "format '"
                                + spec
                                + "' for a "
                                + PythonValues.typeName(value)
                                + " is not implemented");
            }
            String text = Text.of(value);
            if (precision >= 0 && precision < Text.length(text)) {
                text = text.substring(0, text.offsetByCodePoints(0, precision));
            }
            return padded(text, width, fill, align == 0 ? '<' : align);
        }
        final String digits = numeric(value, type, precision, spec);
        return padded(
                signed(grouped ? group(digits) : digits, sign),
                width,
                fill,
                align == 0 ? '>' : align);
    }

    private static String numeric(Object value, String type, int precision, String spec) {
        return switch (type) {
            case "d" -> Numbers.text(Numbers.big(whole(value)));
            case "x" -> Numbers.big(whole(value)).toString(16);
            case "X" -> Cases.upper(Numbers.big(whole(value)).toString(16));
            case "o" -> Numbers.big(whole(value)).toString(8);
            case "b" -> Numbers.big(whole(value)).toString(2);
            case "f", "F" -> fixed(value, precision < 0 ? 6 : precision);
            case "%" -> fixed(Numbers.real(value) * 100, precision < 0 ? 6 : precision) + "%";
            case "" -> {
                if (precision >= 0) {
                    throw new ValueException("format '" + spec + "' is not implemented");
                }
                yield value instanceof Double d
                        ? Numbers.text(d)
                        : Numbers.text(Numbers.big(value));
            }
            default -> throw new ValueException("format '" + spec + "' is not implemented");
        };
    }

    private static Object whole(Object value) {
        if (!Numbers.isWhole(value)) {
            throw new ValueException("an integer is required, not " + PythonValues.typeName(value));
        }
        return value;
    }

    private static java.math.BigInteger truncated(Object number) {
        return Numbers.big(number instanceof Double d ? Numbers.truncated(d) : number);
    }

    /** {@code %.Nf} of a number. */
    static String fixed(Object number, int digits) {
        final double value = Numbers.real(number);
        if (Double.isNaN(value) || Double.isInfinite(value)) {
            return Numbers.text(value);
        }
        final int exact = Math.min(digits, MAX_FRACTION_DIGITS);
        Budget.current().steps(exact);
        final String text =
                new BigDecimal(value).setScale(exact, RoundingMode.HALF_EVEN).toPlainString()
                        + Text.repeat("0", digits - exact);
        final boolean lostSign = (value < 0 || 1 / value < 0) && !text.startsWith("-");
        return lostSign ? "-" + text : text;
    }

    private static String signed(String digits, char sign) {
        return digits.startsWith("-") || sign == '-' ? digits : sign + digits;
    }

    private static String group(String digits) {
        final int start = digits.startsWith("-") ? 1 : 0;
        int end = start;
        while (end < digits.length() && Character.isDigit(digits.charAt(end))) {
            end++;
        }
        final StringBuilder out = new StringBuilder(digits);
        for (int i = end - 3; i > start; i -= 3) {
            out.insert(i, ',');
        }
        return out.toString();
    }

    private static String padded(String text, int width, String fill, char align) {
        final int room = width - Text.length(text);
        if (room <= 0) {
            return text;
        }
        return switch (align) {
            case '<' -> text + Text.repeat(fill, room);
            case '^' -> Text.repeat(fill, room / 2) + text + Text.repeat(fill, room - room / 2);
            case '=' -> {
                final int sign = !text.isEmpty() && "+- ".indexOf(text.charAt(0)) >= 0 ? 1 : 0;
                yield text.substring(0, sign) + Text.repeat(fill, room) + text.substring(sign);
            }
            default -> Text.repeat(fill, room) + text;
        };
    }

    private static int digits(String text, int from) {
        int at = from;
        while (at < text.length() && text.charAt(at) >= '0' && text.charAt(at) <= '9') {
            at++;
        }
        return at;
    }

    private static int number(String text, int from, int to, int defaultValue) {
        if (to - from > 6) {
            throw new ValueException("a format with the width " + text.substring(from, to));
        }
        return from == to ? defaultValue : Integer.parseInt(text.substring(from, to));
    }
}

package io.kvasir.prompt.jinja;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/**
 * A string marked as HTML by {@code safe} or {@code escape}. Prints like any string; a plain string
 * added to it is escaped first.
 *
 * @param text the marked text
 */
record Markup(String text) {
    private static final int LONGEST_ESCAPE = 6;

    private static final Pattern NO_NAME = Pattern.compile("[ \\t\\n\\x0B\\f\\r/>=]");

    static Markup escape(Object value) {
        if (value instanceof Markup markup) {
            return markup;
        }
        final String text = Text.of(value);
        Budget.current().text(LONGEST_ESCAPE * (long) text.length());
        return new Markup(
                text.replace("&", "&amp;")
                        .replace(">", "&gt;")
                        .replace("<", "&lt;")
                        .replace("'", "&#39;")
                        .replace("\"", "&#34;"));
    }

    /** What a method or filter has made of a text: marked as the text was, each part of it. */
    static Object like(Object text, Object made) {
        if (!(text instanceof Markup)) {
            return made;
        }
        return switch (made) {
            case String plain -> new Markup(plain);
            case Tuple tuple -> new Tuple(likeEach(text, tuple));
            case List<?> list -> likeEach(text, list);
            case null, default -> made;
        };
    }

    private static List<Object> likeEach(Object text, List<?> made) {
        final List<Object> parts = new ArrayList<>(made.size());
        made.forEach(part -> parts.add(like(text, part)));
        return parts;
    }

    /** What is put into a marked text: escaped, but for numbers, also each of several. */
    static Object inserted(Object value) {
        return switch (value) {
            case Tuple tuple -> new Tuple(insertedEach(tuple));
            case Map<?, ?> dict -> {
                final Map<Object, Object> values = new LinkedHashMap<>();
                dict.forEach((key, of) -> values.put(key, inserted(of)));
                yield values;
            }
            case null, default -> Numbers.isNumber(value) ? value : escape(value);
        };
    }

    private static List<Object> insertedEach(List<?> values) {
        final List<Object> all = new ArrayList<>(values.size());
        values.forEach(value -> all.add(inserted(value)));
        return all;
    }

    /** A method of a marked text: what it puts into the text is escaped, and its text is marked. */
    static Object method(Markup markup, String name, Object method) {
        if (!(method instanceof Callable callable)) {
            return method;
        }
        return (Callable)
                arguments -> {
                    final Arguments taken =
                            switch (name) {
                                case "replace", "center", "ljust", "rjust" -> escaped(arguments, 1);
                                case "format" -> escaped(arguments, 0);
                                case "join" -> joined(arguments);
                                default -> arguments;
                            };
                    return like(markup, callable.call(taken));
                };
    }

    private static Arguments escaped(Arguments arguments, int first) {
        final List<Object> given = new ArrayList<>(arguments.rest());
        for (int i = first; i < given.size(); i++) {
            given.set(i, inserted(given.get(i)));
        }
        final Map<String, Object> named = arguments.restNamed();
        named.replaceAll((key, value) -> key.equals("old") ? value : inserted(value));
        return new Arguments("method", given, named);
    }

    private static Arguments joined(Arguments arguments) {
        final Object items = arguments.take("iterable");
        arguments.end();
        final List<Object> escaped = new ArrayList<>();
        PythonValues.list(items).forEach(item -> escaped.add(escape(item)));
        return new Arguments("join", List.of(escaped), Map.of());
    }

    /**
     * The entries of a dict as attributes of an element, without those that have no value.
     *
     * @param spaceBefore whether a space comes first, where there are any
     */
    static String attributes(Object value, boolean spaceBefore) {
        if (!(value instanceof Map<?, ?> dict)) {
            throw new ValueException(
                    "xmlattr needs a dict, not '" + PythonValues.typeName(value) + "'");
        }
        final StringBuilder out = new StringBuilder();
        dict.forEach(
                (key, of) -> {
                    if (of != null && !(of instanceof Undefined)) {
                        out.append(spaceBefore || !out.isEmpty() ? " " : "")
                                .append(name(key))
                                .append("=\"")
                                .append(escape(of).text())
                                .append('"');
                    }
                });
        return out.toString();
    }

    private static String name(Object key) {
        final String name = Methods.text(key);
        if (NO_NAME.matcher(name).find()) {
            throw new ValueException(
                    "xmlattr: white space, /, > or = in the name " + Text.repr(name));
        }
        return escape(key).text();
    }
}

package io.kvasir.prompt.jinja;

import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

/** Jinja's filter {@code urlencode}: a text for a URL's path, or pairs for its query. */
final class UrlEncoding {
    private static final HexFormat HEX = HexFormat.of().withUpperCase();

    /** A byte is written by so many characters at the most. */
    private static final int LONGEST_BYTE = 3;

    private static final int LONGEST_CHARACTER = 3 * LONGEST_BYTE;

    private UrlEncoding() {}

    /** {@code value|urlencode}. */
    static Object encode(Object value) {
        if (PythonValues.isText(value) || !PythonValues.isIterable(value)) {
            return quoted(value, false);
        }
        final StringBuilder out = new StringBuilder();
        final Iterator<?> pairs =
                PythonValues.iterate(
                        value instanceof Map<?, ?> dict ? new DictView("items", dict) : value);
        while (pairs.hasNext()) {
            final List<Object> pair = PythonValues.list(pairs.next());
            if (pair.size() != 2) {
                throw new ValueException(
                        "urlencode needs pairs of key and value, got " + pair.size() + " values");
            }
            out.append(out.isEmpty() ? "" : "&")
                    .append(quoted(pair.get(0), true))
                    .append('=')
                    .append(quoted(pair.get(1), true));
        }
        return out.toString();
    }

    private static String quoted(Object value, boolean inQuery) {
        final String text = Text.of(value);
        Budget.current().text((long) LONGEST_CHARACTER * text.length());
        final StringBuilder out = new StringBuilder(text.length());
        for (byte b : text.getBytes(StandardCharsets.UTF_8)) {
            final char c = (char) (b & 0xFF);
            if (isKept(c) || (c == '/' && !inQuery)) {
                out.append(c);
            } else if (c == ' ' && inQuery) {
                out.append('+');
            } else {
                out.append('%').append(HEX.toHexDigits(b));
            }
        }
        return out.toString();
    }

    private static boolean isKept(char c) {
        return (c >= 'a' && c <= 'z')
                || (c >= 'A' && c <= 'Z')
                || (c >= '0' && c <= '9')
                || "_.-~".indexOf(c) >= 0;
    }
}

package io.kvasir.gateway.openai;

import com.fasterxml.jackson.core.JsonParser;

import java.io.IOException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * An integer, or what engines (pydantic) take for one: a whole float, a boolean, and digits in a
 * string with white space around them, a sign, underscores between them or zeros after a point.
 */
final class LaxInteger {
    /** No step of it goes back, so that a long text costs one pass. */
    private static final Pattern TEXT =
            Pattern.compile(
                    "\\s*+([+-]?+[0-9][0-9_]*+)(?:\\.0++)?+\\s*+", Pattern.UNICODE_CHARACTER_CLASS);

    private LaxInteger() {}

    /**
     * Reads the current token and moves no further.
     *
     * @param otherwise returned for what engines refuse
     * @return one beyond the range of an int as the nearest int
     */
    static int read(JsonParser json, int otherwise) throws IOException {
        final double value = whole(json);
        return Double.isNaN(value) ? otherwise : (int) value;
    }

    /** The same of any size; NaN for what engines refuse. */
    static double whole(JsonParser json) throws IOException {
        final double value =
                switch (json.currentToken()) {
                    case VALUE_NUMBER_INT, VALUE_NUMBER_FLOAT -> json.getDoubleValue();
                    case VALUE_STRING -> ofText(json.getText());
                    case VALUE_TRUE -> 1;
                    case VALUE_FALSE -> 0;
                    default -> Double.NaN;
                };
        return value == Math.rint(value) ? value : Double.NaN;
    }

    private static double ofText(String text) {
        final Matcher matcher = TEXT.matcher(text);
        return matcher.matches()
                ? Double.parseDouble(matcher.group(1).replace("_", ""))
                : Double.NaN;
    }
}

package io.kvasir.gateway.upstream;

import java.io.IOException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What failures of Jetty's client say of a connection of HTTP/2 that has ended. They have no type
 * of their own: their text is the error's name or number, a slash, and a word of Jetty's or of the
 * worker's GOAWAY, or {@code null}.
 */
final class Http2End {
    private static final Pattern TEXT = Pattern.compile("([a-z_]+|\\d+)/(.*)", Pattern.DOTALL);
    private static final String NO_ERROR = "no_error";

    private Http2End() {}

    /**
     * What the end adds to the fact.
     *
     * @return empty for an end without an error, whose word is Jetty's own most often; null if the
     *     failure is no such end
     */
    static String errorOrNull(Throwable failure) {
        final Matcher text =
                TEXT.matcher(
                        failure instanceof IOException && failure.getMessage() != null
                                ? failure.getMessage()
                                : "");
        if (!text.matches() || !isError(text.group(1))) {
            return null;
        }
        if (text.group(1).equals(NO_ERROR)) {
            return "";
        }
        final String reason = text.group(2);
        return " (" + text.group(1) + (reason.equals("null") ? "" : ": " + reason) + ")";
    }

    private static boolean isError(String name) {
        return Character.isDigit(name.charAt(0)) || StreamReset.isError(name);
    }
}

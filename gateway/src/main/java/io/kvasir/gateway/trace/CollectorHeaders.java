package io.kvasir.gateway.trace;

import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.Secret;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Pattern;

/** Headers for a collector as they are written: {@code name=value}. Stateless. */
final class CollectorHeaders {
    private static final Pattern NAME = Pattern.compile("[!#$%&'*+.^_`|~0-9A-Za-z-]+");

    private CollectorHeaders() {}

    /**
     * Reads one and adds it.
     *
     * @param from where it is written
     * @throws GatewayException if it is none; the message has no value
     */
    static void put(Map<String, String> headers, String from, String text) {
        final int equals = text.indexOf('=');
        final String name = equals < 0 ? "" : text.substring(0, equals).strip();
        final String value = text.substring(equals + 1).strip();
        if (!NAME.matcher(name).matches() || !isValue(value)) {
            throw new GatewayException(
                    from + ": it must be name=value of a header, in ASCII", null);
        }
        headers.put(name, value);
    }

    private static boolean isValue(String value) {
        return value.chars().allMatch(c -> c >= ' ' && c <= '~');
    }

    /**
     * Reads the list that OpenTelemetry's variables have: separated by commas, in values %XX for
     * what cannot be written.
     *
     * @param option what has it
     * @throws GatewayException if one of them is none; the message has its number and no value
     */
    static Map<String, String> ofList(String option, Secret list) {
        final Map<String, String> headers = new LinkedHashMap<>();
        int number = 0;
        for (String text : list.value().split(",", -1)) {
            number++;
            if (!text.isBlank()) {
                final String from = option + ", header " + number;
                put(headers, from, decoded(from, text));
            }
        }
        return headers;
    }

    private static String decoded(String from, String text) {
        try {
            return URLDecoder.decode(text.replace("+", "%2B"), StandardCharsets.UTF_8);
        } catch (IllegalArgumentException e) { // which says the text
            throw new GatewayException(
                    from + ": a % is not followed by two hexadecimal digits", null);
        }
    }
}

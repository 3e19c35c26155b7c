package io.kvasir.gateway.config;

import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * What OpenTelemetry knows a process by: names with values, such as {@code k8s.pod.name}.
 *
 * @param values by name, in the order in which they are written
 */
public record ResourceAttributes(Map<String, String> values) {
    /** Copies them. */
    public ResourceAttributes {
        values = Collections.unmodifiableMap(new LinkedHashMap<>(values));
    }

    /**
     * Reads them as {@code OTEL_RESOURCE_ATTRIBUTES} has them: {@code name=value} separated by
     * commas, %XX for what cannot be written; of two with a name the last one counts.
     *
     * @throws IllegalArgumentException if one of them is none; the message has it
     */
    public static ResourceAttributes parse(String text) {
        final Map<String, String> values = new LinkedHashMap<>();
        for (String attribute : text.split(",", -1)) {
            if (!attribute.isBlank()) {
                final int equals = attribute.indexOf('=');
                if (equals < 0 || attribute.substring(0, equals).isBlank()) {
                    throw new IllegalArgumentException(
                            "has '" + attribute.strip() + "', which is not name=value");
                }
                values.put(
                        decoded(attribute.substring(0, equals).strip()),
                        decoded(attribute.substring(equals + 1).strip()));
            }
        }
        return new ResourceAttributes(values);
    }

    private static String decoded(String text) {
        try {
            return URLDecoder.decode(text.replace("+", "%2B"), StandardCharsets.UTF_8);
        } catch (IllegalArgumentException e) { // which does not say where
            throw new IllegalArgumentException(
                    "has '" + text + "', with a % that two hexadecimal digits do not follow", e);
        }
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }

    /** As they are written. */
    @Override
    public String toString() {
        return values.entrySet().stream()
                .map(each -> encoded(each.getKey()) + "=" + encoded(each.getValue()))
                .collect(Collectors.joining(","));
    }
}

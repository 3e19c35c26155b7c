package io.kvasir.gateway.config;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * Parses where a worker is, as operators label it: {@code zone:a;rack:7}, and its taints. What the
 * labels mean is theirs to say; equal ones are near.
 */
final class WorkerLabels {
    private static final int MOST = 16;
    private static final String TAINTS = "taints";
    private static final Pattern PART = Pattern.compile("[A-Za-z0-9._/-]{1,63}");

    private WorkerLabels() {}

    /**
     * Labels in the order given; empty for an empty text.
     *
     * @throws IllegalArgumentException if one is no {@code key:value}, is given twice, or they are
     *     too many
     */
    static Map<String, String> parse(String text) {
        final Map<String, String> labels = new LinkedHashMap<>();
        for (String label : text.isEmpty() ? new String[0] : text.split(";", -1)) {
            final int colon = label.indexOf(':');
            final String key = colon < 0 ? label : label.substring(0, colon);
            final String value = colon < 0 ? "" : label.substring(colon + 1);
            if (!PART.matcher(key).matches() || !PART.matcher(value).matches()) {
                throw new IllegalArgumentException(
                        "labels="
                                + text
                                + ": '"
                                + label
                                + "' is not key:value, each 1 to 63 of the characters"
                                + " A-Z a-z 0-9 . _ / -");
            }
            if (labels.put(key, value) != null) {
                throw new IllegalArgumentException(
                        "labels=" + text + ": '" + key + "' is given twice");
            }
        }
        if (labels.size() > MOST) {
            throw new IllegalArgumentException(
                    "labels=" + text + ": " + labels.size() + " are more than " + MOST);
        }
        return Collections.unmodifiableMap(labels);
    }

    /**
     * Names of what keeps requests away: {@code spot;night}; empty for an empty text.
     *
     * @throws IllegalArgumentException if one is no name, is given twice, or they are too many
     */
    static Set<String> taints(Map<String, String> values) {
        final String text = values.getOrDefault(TAINTS, "");
        final Set<String> taints = new LinkedHashSet<>();
        for (String taint : text.isEmpty() ? new String[0] : text.split(";", -1)) {
            if (!PART.matcher(taint).matches() || !taints.add(taint)) {
                throw new IllegalArgumentException(
                        "taints="
                                + text
                                + ": '"
                                + taint
                                + "' is not 1 to 63 of the characters A-Z a-z 0-9 . _ / -, or is"
                                + " given twice");
            }
        }
        if (taints.size() > MOST) {
            throw new IllegalArgumentException(
                    "taints=" + text + ": " + taints.size() + " are more than " + MOST);
        }
        return Collections.unmodifiableSet(taints);
    }
}

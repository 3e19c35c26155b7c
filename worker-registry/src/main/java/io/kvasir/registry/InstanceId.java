package io.kvasir.registry;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Objects;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Name of a worker instance: which one, of which endpoint of which component in which namespace.
 *
 * @param namespace one deployment; workers of others are not seen
 * @param component part of it, such as {@code prefill} or {@code decode}
 * @param endpoint what is called there, such as {@code generate}
 * @param instance one server; the name of the worker in logs, metrics and headers
 */
public record InstanceId(String namespace, String component, String endpoint, String instance) {
    /** Where workers register and gateways look, if none is named; Dynamo has the same one. */
    public static final String DEFAULT_NAMESPACE = "dynamo";

    private static final Pattern PART = Pattern.compile("[^\\s\\p{Cntrl},/]{1,200}");
    private static final String PLAIN =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

    /**
     * Checks the parts.
     *
     * @throws IllegalArgumentException naming the one that cannot be
     */
    public InstanceId {
        check("namespace", namespace);
        check("component", component);
        check("endpoint", endpoint);
        check("instance", instance);
    }

    private static void check(String what, String part) {
        Objects.requireNonNull(part, what);
        if (!PART.matcher(part).matches()) {
            throw new IllegalArgumentException(
                    what
                            + "="
                            + part
                            + " must have 1 to 200 characters, no blank, control character, comma"
                            + " or slash among them");
        }
    }

    /**
     * Key of its registration in every store: the parts with slashes between. Characters other than
     * letters, digits, {@code _} and {@code -} are {@code =XX}, a byte of their UTF-8 each.
     */
    public String key() {
        return List.of(namespace, component, endpoint, instance).stream()
                .map(InstanceId::escaped)
                .collect(Collectors.joining("/"));
    }

    /** What the keys of all instances of a namespace begin with. */
    public static String prefix(String namespace) {
        check("namespace", namespace);
        return escaped(namespace) + "/";
    }

    private static String escaped(String part) {
        final StringBuilder out = new StringBuilder();
        for (byte b : part.getBytes(StandardCharsets.UTF_8)) {
            if (b > 0 && PLAIN.indexOf(b) >= 0) {
                out.append((char) b);
            } else {
                out.append(String.format("=%02X", b & 0xff));
            }
        }
        return out.toString();
    }

    @Override
    public String toString() {
        return namespace + "/" + component + "/" + endpoint + "/" + instance;
    }
}

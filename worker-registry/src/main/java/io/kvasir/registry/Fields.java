package io.kvasir.registry;

import com.fasterxml.jackson.databind.JsonNode;

import java.net.URI;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * Reads the members of a JSON object strictly; what is missing or of another kind is refused by
 * name with an {@link IllegalArgumentException}. A member that is null counts as missing.
 */
final class Fields {
    private final JsonNode node;
    private final String path;

    private Fields(JsonNode node, String path) {
        this.node = node;
        this.path = path;
    }

    static Fields of(JsonNode node) {
        if (!node.isObject()) {
            throw new IllegalArgumentException("the document is no JSON object");
        }
        return new Fields(node, "");
    }

    static String spelling(Enum<?> value) {
        return value.name().toLowerCase(Locale.ROOT);
    }

    boolean has(String key) {
        return node.hasNonNull(key);
    }

    private JsonNode get(String key) {
        if (!has(key)) {
            throw new IllegalArgumentException(path + key + " is missing");
        }
        return node.get(key);
    }

    private IllegalArgumentException wrong(String key, String must) {
        return new IllegalArgumentException(path + key + "=" + get(key) + " must be " + must);
    }

    String anyText(String key) {
        if (!get(key).isTextual()) {
            throw wrong(key, "a text");
        }
        return get(key).textValue();
    }

    String text(String key) {
        final String text = anyText(key);
        if (text.isBlank()) {
            throw wrong(key, "a text that is not blank");
        }
        return text;
    }

    String textOrNull(String key) {
        return has(key) ? text(key) : null;
    }

    boolean bool(String key) {
        if (!get(key).isBoolean()) {
            throw wrong(key, "true or false");
        }
        return get(key).booleanValue();
    }

    long number(String key, long least, long most) {
        final JsonNode value = get(key);
        if (!value.isIntegralNumber()
                || !value.canConvertToLong()
                || value.longValue() < least
                || value.longValue() > most) {
            throw wrong(key, "a whole number, " + least + ".." + most);
        }
        return value.longValue();
    }

    URI url(String key) {
        // the value may hold a password, and is not repeated
        final String must =
                path + key + " must be http://host:port or https://host:port, without a password";
        final URI url;
        try {
            url = URI.create(text(key));
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException(must, e);
        }
        if (url.getRawUserInfo() != null) {
            throw new IllegalArgumentException(must);
        }
        final String problem = HttpAddress.problemOrNull(url);
        if (problem != null) {
            throw new IllegalArgumentException(path + key + " " + problem);
        }
        return url;
    }

    <E extends Enum<E>> E choice(String key, Class<E> type) {
        return choice(key, text(key), type);
    }

    private <E extends Enum<E>> E choice(String key, String text, Class<E> type) {
        for (E each : type.getEnumConstants()) {
            if (spelling(each).equals(text)) {
                return each;
            }
        }
        throw wrong(
                key, "of " + Arrays.stream(type.getEnumConstants()).map(Fields::spelling).toList());
    }

    <E extends Enum<E>> Set<E> choices(String key, Class<E> type) {
        final Set<E> all = EnumSet.noneOf(type);
        if (!get(key).isArray() || get(key).isEmpty()) {
            throw wrong(key, "a list of at least one text");
        }
        for (JsonNode each : get(key)) {
            all.add(choice(key, each.asText(), type));
        }
        return all;
    }

    Fields object(String key) {
        if (!get(key).isObject()) {
            throw wrong(key, "an object");
        }
        return new Fields(get(key), path + key + ".");
    }

    /** All members, which must be texts. */
    Map<String, String> texts() {
        final Map<String, String> all = new LinkedHashMap<>();
        node.fieldNames().forEachRemaining(key -> all.put(key, text(key)));
        return all;
    }

    /** A list of texts, each once. */
    Set<String> names(String key, int most) {
        final JsonNode list = get(key);
        if (!list.isArray()) {
            throw new IllegalArgumentException(path + key + " must be a list of texts");
        }
        if (list.size() > most) {
            throw new IllegalArgumentException(
                    path + key + " has " + list.size() + " texts, at most " + most + " are read");
        }
        final Set<String> all = new LinkedHashSet<>();
        for (JsonNode each : list) {
            if (!each.isTextual() || !all.add(each.textValue())) {
                throw new IllegalArgumentException(
                        path + key + " must be a list of texts, each of them once");
            }
        }
        return all;
    }

    /** All members, which must be whole numbers above 0. */
    Map<String, Long> numbers(int most) {
        if (node.size() > most) {
            throw new IllegalArgumentException(
                    path.substring(0, path.length() - 1)
                            + " has "
                            + node.size()
                            + " numbers, at most "
                            + most
                            + " are read");
        }
        final Map<String, Long> all = new LinkedHashMap<>();
        node.fieldNames().forEachRemaining(key -> all.put(key, number(key, 1, Long.MAX_VALUE)));
        return all;
    }
}

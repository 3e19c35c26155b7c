package io.kvasir.pipeline.source;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Which sources of one address a topic belongs to: those whose prefix is the longest that fits. One
 * step per different length of a prefix, however many sources there are.
 */
final class TopicRoutes {
    private final Map<String, List<ZmqSource>> byPrefix = new HashMap<>();
    private int[] lengths = {}; // longest first

    private static String key(byte[] prefix, int offset, int length) {
        return length == 0 ? "" : new String(prefix, offset, length, StandardCharsets.ISO_8859_1);
    }

    static byte[] bytes(String key) {
        return key.getBytes(StandardCharsets.ISO_8859_1);
    }

    /** Key of a source's prefix: one char per byte. */
    static String key(ZmqSource source) {
        final byte[] prefix = source.topic().getBytes(StandardCharsets.UTF_8);
        return key(prefix, 0, prefix.length);
    }

    /** Adds a source; true if its prefix is new. */
    boolean add(ZmqSource source) {
        final boolean isNew = !byPrefix.containsKey(key(source));
        byPrefix.computeIfAbsent(key(source), k -> new ArrayList<>(1)).add(source);
        if (isNew) {
            listLengths();
        }
        return isNew;
    }

    /** Removes a source; true if its prefix is not used any more. */
    boolean remove(ZmqSource source) {
        final List<ZmqSource> sources = byPrefix.get(key(source));
        if (sources == null || !sources.remove(source) || !sources.isEmpty()) {
            return false;
        }
        byPrefix.remove(key(source));
        listLengths();
        return true;
    }

    private void listLengths() {
        lengths = byPrefix.keySet().stream().mapToInt(String::length).distinct().sorted().toArray();
        for (int i = 0, j = lengths.length - 1; i < j; i++, j--) {
            final int shorter = lengths[i];
            lengths[i] = lengths[j];
            lengths[j] = shorter;
        }
    }

    /** The sources that a topic belongs to, none if no prefix fits. */
    List<ZmqSource> of(byte[] topic, int offset, int length) {
        for (int prefix : lengths) {
            if (prefix <= length) {
                final List<ZmqSource> sources = byPrefix.get(key(topic, offset, prefix));
                if (sources != null) {
                    return sources;
                }
            }
        }
        return List.of();
    }

    /** The different prefixes. */
    Set<String> prefixes() {
        return byPrefix.keySet();
    }

    @Override
    public String toString() {
        return byPrefix.keySet() + " " + Arrays.toString(lengths);
    }
}

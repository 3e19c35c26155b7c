package io.kvasir.prompt.jinja;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

/**
 * Keys, values or items of a dict: has a length and can be walked through, but not indexed.
 *
 * @param kind {@code keys}, {@code values} or {@code items}
 * @param dict the dict
 */
record DictView(String kind, Map<?, ?> dict) implements Iterable<Object> {
    @Override
    public Iterator<Object> iterator() {
        Budget.current().items(dict.size());
        final List<Object> all = new ArrayList<>(dict.size());
        dict.forEach(
                (key, value) ->
                        all.add(
                                switch (kind) {
                                    case "keys" -> key;
                                    case "values" -> value;
                                    default -> Tuple.of(key, value);
                                }));
        return all.iterator();
    }
}

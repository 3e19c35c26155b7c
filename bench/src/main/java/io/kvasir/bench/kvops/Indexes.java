package io.kvasir.bench.kvops;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The indexes that can be measured, by name. A further one is one more line here. */
public final class Indexes {
    /** Name of the product's index. */
    public static final String KVASIR = "kvasir";

    private static final Map<String, Maker> MAKERS = new LinkedHashMap<>();

    static {
        MAKERS.put(KVASIR, PrefixBlockIndex::new);
    }

    private Indexes() {}

    /** Makes an empty index with room for a stream. */
    @FunctionalInterface
    private interface Maker {
        BlockIndex make(KvopsHeader header, LiveMaximum live);
    }

    /** Names of all indexes, the product's first. */
    public static List<String> names() {
        return List.copyOf(MAKERS.keySet());
    }

    /**
     * Makes an empty index.
     *
     * @param name one of {@link #names()}
     * @param header of the stream that it will get
     * @param live what it must have room for
     * @throws IllegalArgumentException if there is no index of that name
     */
    public static BlockIndex make(String name, KvopsHeader header, LiveMaximum live) {
        return MAKERS.get(checked(name)).make(header, live);
    }

    /**
     * The name itself, if there is an index of it.
     *
     * @throws IllegalArgumentException if there is none
     */
    public static String checked(String name) {
        if (!MAKERS.containsKey(name)) {
            throw new IllegalArgumentException(
                    "no index is named " + name + "; there are " + String.join(", ", names()));
        }
        return name;
    }
}

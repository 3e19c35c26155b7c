package io.kvasir.opstreams.kvops;

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
        MAKERS.put(
                "flat",
                (workers, countCopies, live, shortPrompts) ->
                        new FlatBlockIndex(workers, countCopies, live));
        MAKERS.put(
                "hashmap",
                (workers, countCopies, live, shortPrompts) ->
                        new HashMapBlockIndex(workers, countCopies));
    }

    private Indexes() {}

    @FunctionalInterface
    private interface Maker {
        BlockIndex make(int workers, boolean countCopies, LiveMaximum live, boolean shortPrompts);
    }

    /** Names of all indexes, the product's first. */
    public static List<String> names() {
        return List.copyOf(MAKERS.keySet());
    }

    /**
     * Makes an empty index.
     *
     * @param name one of {@link #names()}
     * @param workers workers; their numbers are 0..workers-1
     * @param countCopies whether a block is held while it was stored more often than removed; else
     *     a store of a held block changes nothing and one removal takes it away
     * @param live what it must have room for
     * @param shortPrompts whether it has memory for prompts of a few blocks, too
     * @throws IllegalArgumentException if there is no index of that name
     */
    public static BlockIndex make(
            String name, int workers, boolean countCopies, LiveMaximum live, boolean shortPrompts) {
        return MAKERS.get(checked(name)).make(workers, countCopies, live, shortPrompts);
    }

    /** Makes an empty index for a stream that is replayed by a plan. */
    static BlockIndex make(ReplayPlan plan, KvopsHeader header, LiveMaximum live) {
        return make(
                plan.index(),
                header.workers(),
                header.has(KvopsHeader.COUNTED_COPIES),
                live,
                plan.shortPrompts());
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

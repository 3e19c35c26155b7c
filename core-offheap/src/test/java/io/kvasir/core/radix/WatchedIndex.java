package io.kvasir.core.radix;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.IndexInvariants;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.index.StoreResult;
import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.LaggingMemory;
import io.kvasir.core.memory.OffHeap;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

/**
 * An index and, in plain Java, which slot has held which block at which moment: a moment ends with
 * each operation of the writer. The reader is the real one, and the test acts between its steps, on
 * the same thread; a {@link #lagging} one also between any two stores of the writer. Blocks are
 * named after slot and path, so no publisher contradicts itself here.
 */
final class WatchedIndex implements AutoCloseable {
    private static final long NEVER = -1;
    private static final long NOW = Long.MAX_VALUE;

    private static final class Block {
        final int number;
        final Map<Long, Block> next = new HashMap<>();
        final long[] lastHeld;
        final int[] names;

        Block(int number, int slots) {
            this.number = number;
            this.lastHeld = new long[slots];
            this.names = new int[slots];
            Arrays.fill(lastHeld, NEVER);
        }
    }

    /** A name that a slot has given to a block. */
    private static final class Name {
        final Block block;
        int copies = 1;

        Name(Block block) {
            this.block = block;
        }
    }

    /** The reader of the index, which tells of its steps. */
    private static final class Reader extends RadixMatcher {
        Consumer<Step> listener = step -> {};
        final Map<Step, Integer> steps = new EnumMap<>(Step.class);

        Reader(OffHeap memory, RadixTree tree, int slots) {
            super(memory, tree.root(), slots, tree.runChildren().secret());
        }

        @Override
        void at(Step step) {
            steps.merge(step, 1, Integer::sum);
            listener.accept(step);
        }
    }

    private final PrefixIndex index;
    private final int slots;
    private final LaggingMemory lag;
    private final Reader reader;
    private final OverlapScores scores;
    private final Block root;
    private final List<Map<Long, Name>> names = new ArrayList<>();
    private int blocks;
    private long moment;
    private long firstMoment;
    private long forgotten;

    WatchedIndex(int slots, long budgetBytes) {
        this(new PrefixIndexConfig(slots, 1 << 20, 1 << 20, budgetBytes));
    }

    WatchedIndex(PrefixIndexConfig config) {
        this(config, false);
    }

    /** An index whose reader sees the writer's stores one by one, as {@link #lag} says. */
    static WatchedIndex lagging(PrefixIndexConfig config) {
        return new WatchedIndex(config, true);
    }

    private WatchedIndex(PrefixIndexConfig config, boolean lagging) {
        this.slots = config.maxWorkerSlots();
        this.index = new PrefixIndex(config);
        this.lag = lagging ? new LaggingMemory(arena().memory(), () -> moment) : null;
        this.reader = new Reader(lagging ? lag.memory() : arena().memory(), tree(), slots);
        this.scores = new OverlapScores(slots);
        this.root = new Block(blocks++, slots);
        for (int slot = 0; slot < slots; slot++) {
            names.add(new HashMap<>());
        }
    }

    /** One local hash for each letter. */
    static long[] prompt(String letters) {
        return letters.chars().asLongStream().toArray();
    }

    PrefixIndex index() {
        return index;
    }

    RadixTree tree() {
        return IndexInvariants.tree(index);
    }

    BuddyArena arena() {
        return IndexInvariants.arena(index);
    }

    /** What the reader sees of the writer's stores. */
    LaggingMemory lag() {
        return lag;
    }

    // -- the writer -------------------------------------------------------------------------

    /** Stores a prompt from its first block on; what is held already stays as it is. */
    StoreResult store(int slot, long... prompt) {
        return store(slot, prompt, 0, prompt.length, 0, true);
    }

    /** Stores a prompt that must fit. */
    void store(int slot, String prompt) {
        assertEquals(StoreResult.STORED, store(slot, prompt(prompt)), prompt);
    }

    /**
     * Stores blocks {@code from..to - 1} of a prompt behind its block {@code from - 1}.
     *
     * @param variant which of its names the slot gives to each block
     */
    StoreResult store(int slot, long[] prompt, int from, int to, int variant, boolean refresh) {
        final Block[] path = path(prompt, to);
        final long parent = from == 0 ? 0 : name(slot, path[from - 1], 0);
        final long[] given = new long[to - from];
        Arrays.setAll(given, i -> name(slot, path[from + i], variant));
        final StoreResult result =
                index.store(
                        slot,
                        from == 0,
                        parent,
                        given,
                        Arrays.copyOfRange(prompt, from, to),
                        to - from,
                        refresh);
        if (result == StoreResult.STORED) {
            moment++;
            for (int i = from; i < to; i++) {
                final Name known = names.get(slot).get(given[i - from]);
                if (known == null) {
                    names.get(slot).put(given[i - from], new Name(path[i]));
                    path[i].names[slot]++;
                    path[i].lastHeld[slot] = NOW;
                } else if (!refresh) {
                    known.copies++;
                }
            }
        }
        if (result == StoreResult.CAPACITY) {
            // blocks that fitted were held until the first one that did not
            moment++;
            for (int i = from; i < to; i++) {
                path[i].lastHeld[slot] = Math.max(path[i].lastHeld[slot], moment);
            }
        }
        hasForgotten();
        return result;
    }

    /** Lets a slot go of a prompt's blocks from one on, the last one first. */
    void drop(int slot, String prompt, int from) {
        final long[] path = prompt(prompt);
        assertEquals(0, remove(slot, path, from, path.length, 0, CopyRule.LAST_COPY));
    }

    /**
     * Lets a slot go of blocks {@code from..to - 1}, the last one first; says how many it lacked.
     */
    int remove(int slot, long[] prompt, int from, int to, int variant, CopyRule rule) {
        final Block[] path = path(prompt, to);
        final long[] gone = new long[to - from];
        Arrays.setAll(gone, i -> name(slot, path[to - 1 - i], variant));
        final long missing = index.missingRemovals();
        final int found = index.remove(slot, gone, gone.length, rule);
        final int unknown = found + (int) (index.missingRemovals() - missing);
        moment++;
        int expected = 0;
        for (long name : gone) {
            final Name known = names.get(slot).get(name);
            if (known == null) {
                expected++;
            } else if (rule == CopyRule.LAST_COPY || --known.copies == 0) {
                forget(slot, name);
            }
        }
        if (!hasForgotten()) {
            assertEquals(expected, unknown, "unknown removals");
        }
        return unknown;
    }

    void clear(int slot) {
        assertEquals(names.get(slot).size(), index.clear(slot));
        moment++;
        for (long name : Set.copyOf(names.get(slot).keySet())) {
            forget(slot, name);
        }
    }

    private void forget(int slot, long name) {
        final Block block = names.get(slot).remove(name).block;
        if (--block.names[slot] == 0) {
            block.lastHeld[slot] = moment - 1;
        }
    }

    /** Fails when the index does not agree with itself, or holds other names than it should. */
    void check() {
        final List<Set<Long>> held = heldNames();
        for (int slot = 0; slot < slots; slot++) {
            assertEquals(names.get(slot).keySet(), held.get(slot), "names of slot " + slot);
        }
        IndexInvariants.check(index);
        if (lag != null) {
            lag.check();
        }
    }

    private List<Set<Long>> heldNames() {
        final List<Set<Long>> held = new ArrayList<>();
        for (int slot = 0; slot < slots; slot++) {
            held.add(new HashSet<>());
        }
        index.forEach((slot, engineHash, sequenceHash, copies) -> held.get(slot).add(engineHash));
        return held;
    }

    /** Without memory to note a hole the index gives up what is behind it. */
    private boolean hasForgotten() {
        if (index.forgottenBlocks() == forgotten) {
            return false;
        }
        forgotten = index.forgottenBlocks();
        moment++;
        final List<Set<Long>> left = heldNames();
        for (int slot = 0; slot < slots; slot++) {
            for (long name : Set.copyOf(names.get(slot).keySet())) {
                if (!left.get(slot).contains(name)) {
                    forget(slot, name);
                }
            }
        }
        return true;
    }

    private Block[] path(long[] prompt, int count) {
        final Block[] path = new Block[count];
        Block block = root;
        for (int i = 0; i < count; i++) {
            block = block.next.computeIfAbsent(prompt[i], hash -> new Block(blocks++, slots));
            path[i] = block;
        }
        return path;
    }

    private static long name(int slot, Block block, int variant) {
        return ((long) block.number << 24 | (long) slot << 4 | variant) * 0x9E37_79B9_7F4A_7C15L;
    }

    /** Leading blocks of a prompt that a slot holds. */
    int heldLength(int slot, long[] prompt) {
        Block block = root;
        int length = 0;
        while (length < prompt.length) {
            block = block.next.get(prompt[length]);
            if (block == null || block.lastHeld[slot] != NOW) {
                break;
            }
            length++;
        }
        return length;
    }

    // -- the reader -------------------------------------------------------------------------

    /** Matches a prompt while there is no write; the result must be exact. */
    OverlapScores match(String prompt) {
        return match(prompt(prompt), step -> {});
    }

    /** Matches a prompt and acts once, the {@code nth} time that the reader takes a step. */
    OverlapScores match(String prompt, RadixMatcher.Step step, int nth, Runnable action) {
        final int[] seen = {0};
        final OverlapScores found =
                match(
                        prompt(prompt),
                        at -> {
                            if (at == step && ++seen[0] == nth) {
                                action.run();
                            }
                        });
        assertTrue(
                seen[0] >= nth, () -> "the reader came to " + step + " only " + seen[0] + " times");
        return found;
    }

    /**
     * Matches a prompt and checks what was found: each block was held at some moment of the call,
     * and all blocks are found that are held when nothing was written meanwhile.
     */
    OverlapScores match(long[] prompt, Consumer<RadixMatcher.Step> listener) {
        firstMoment = lag == null ? moment : lag.moment();
        final boolean quiet = lag == null || lag.applied() == lag.logged();
        reader.steps.clear();
        reader.listener = listener;
        final int deepest = reader.match(prompt, prompt.length, scores);
        reader.listener = step -> {};
        int largest = 0;
        final Set<Integer> seen = new HashSet<>();
        for (int i = 0; i < scores.matchedSlots(); i++) {
            assertTrue(seen.add(scores.slotAt(i)), () -> "a slot is listed twice: " + scores);
        }
        for (int slot = 0; slot < slots; slot++) {
            final int depth = scores.depth(slot);
            checkHeld(prompt, slot, depth, quiet && moment == firstMoment);
            assertEquals(depth > 0, seen.contains(slot), "slots with a depth are listed");
            largest = Math.max(largest, depth);
        }
        assertEquals(largest, deepest, "deepest");
        return scores;
    }

    private void checkHeld(long[] prompt, int slot, int depth, boolean exactly) {
        Block block = root;
        for (int i = 0; i < depth; i++) {
            block = block == null ? null : block.next.get(prompt[i]);
            if (block == null || block.lastHeld[slot] < firstMoment) {
                throw new AssertionError(
                        "the slot never held the block during the call: slot="
                                + slot
                                + ", block="
                                + i
                                + ", found="
                                + scores);
            }
        }
        if (exactly) {
            assertEquals(
                    heldLength(slot, prompt),
                    depth,
                    () -> "held blocks found: slot=" + slot + ", found=" + scores);
        }
    }

    /** Writer's operations so far that changed what is held. */
    long moment() {
        return moment;
    }

    /** How often the last match took a step. */
    int taken(RadixMatcher.Step step) {
        return reader.steps.getOrDefault(step, 0);
    }

    @Override
    public void close() {
        if (lag != null) {
            lag.close();
        }
        index.close();
    }
}

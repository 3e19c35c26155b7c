package io.kvasir.jcstress;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.index.StoreResult;
import io.kvasir.core.radix.OverlapScores;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * What two threads race for: an index with so little memory that what is given back is used again
 * at once. Indexes are taken from a pool and given back empty by the arbiter. One actor writes, one
 * reads. A prompt is a word, each letter a block.
 */
class Race {
    /** Worker slots of each index. */
    static final int SLOTS = 64;

    /** Most holders of a run that are a list; one more and they are a map. */
    static final int LIST = 16;

    /** A map of holders becomes a list when so many are left. */
    static final int LIST_AGAIN = 8;

    /**
     * The slot that holds four blocks, where hashes of {@link #LIKE_HOLDERS} are read as holders.
     */
    static final int LIKE_SLOT = 60;

    /** Blocks whose hashes read as holders; seven, so that one more fills a line. */
    static final String LIKE_HOLDERS = "\u0400".repeat(7);

    private static final PrefixIndexConfig CONFIG =
            new PrefixIndexConfig(SLOTS, 4_096, 4_096, 64 << 10);
    private static final Queue<PrefixIndex> POOL = new ConcurrentLinkedQueue<>();

    private final PrefixIndex index;
    private final OverlapScores scores = new OverlapScores(SLOTS);

    Race() {
        final PrefixIndex used = POOL.poll();
        index = used == null ? new PrefixIndex(CONFIG) : used;
    }

    /** Stores a prompt from its first block on. */
    final void store(int slot, String prompt) {
        final long[] names = names(slot, prompt);
        final StoreResult result =
                index.store(slot, true, 0, names, locals(prompt), names.length, true);
        if (result != StoreResult.STORED) {
            throw new IllegalStateException(prompt + ": " + result);
        }
    }

    /** Stores a prompt for some slots. */
    final void store(int fromSlot, int toSlot, String prompt) {
        for (int slot = fromSlot; slot < toSlot; slot++) {
            store(slot, prompt);
        }
    }

    /** Lets a slot go of a prompt's blocks from one on, the last one first. */
    final void drop(int slot, String prompt, int from) {
        drop(slot, prompt, from, prompt.length());
    }

    /** Lets a slot go of the blocks {@code from..to - 1} of a prompt, the last one first. */
    final void drop(int slot, String prompt, int from, int to) {
        final long[] names = names(slot, prompt);
        final long[] removed = new long[to - from];
        for (int i = 0; i < removed.length; i++) {
            removed[i] = names[to - 1 - i];
        }
        if (index.remove(slot, removed, removed.length, CopyRule.LAST_COPY) != 0) {
            throw new IllegalStateException("unknown names of " + prompt);
        }
    }

    final void clear(int slot) {
        index.clear(slot);
    }

    final void eventApplied(int slot, long sequence) {
        index.eventApplied(slot, sequence);
    }

    final long appliedSequence(int slot) {
        return index.appliedSequence(slot);
    }

    final int blocks() {
        return (int) index.blocks();
    }

    /** Matches a prompt; only the reading actor calls this and what follows. */
    final void match(String prompt) {
        final long[] locals = locals(prompt);
        index.match(locals, locals.length, scores);
    }

    /** Blocks of the last match that a slot holds. */
    final int depth(int slot) {
        return scores.depth(slot);
    }

    /** Slots from one on to before another that the last match found. */
    final int found(int fromSlot, int toSlot) {
        return found(fromSlot, toSlot, 1);
    }

    /** As {@link #found(int, int)}, those that hold at least so many blocks. */
    final int found(int fromSlot, int toSlot, int blocks) {
        int found = 0;
        for (int i = 0; i < scores.matchedSlots(); i++) {
            final int slot = scores.slotAt(i);
            found += slot >= fromSlot && slot < toSlot && depth(slot) >= blocks ? 1 : 0;
        }
        return found;
    }

    /** The race is over. */
    final void end() {
        for (int slot = 0; slot < SLOTS; slot++) {
            index.clear(slot);
            index.eventApplied(slot, PrefixIndex.NO_EVENT);
        }
        POOL.add(index);
    }

    private static long[] locals(String prompt) {
        final long[] locals = new long[prompt.length()];
        for (int i = 0; i < locals.length; i++) {
            final char letter = prompt.charAt(i);
            locals[i] =
                    letter < LIKE_HOLDERS.charAt(0) ? letter : (long) LIKE_SLOT << 48 | 4L << 32;
        }
        return locals;
    }

    private static long[] names(int slot, String prompt) {
        final long[] names = new long[prompt.length()];
        long path = slot;
        for (int i = 0; i < names.length; i++) {
            path = (path * 131 + prompt.charAt(i)) * 0x9E37_79B9_7F4A_7C15L;
            names[i] = path;
        }
        return names;
    }
}

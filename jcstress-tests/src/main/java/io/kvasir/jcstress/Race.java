package io.kvasir.jcstress;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.OverlapScores;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.index.StoreResult;

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

    private static final PrefixIndexConfig CONFIG =
            new PrefixIndexConfig(SLOTS, 4_096, 4_096, 64 << 10, false);
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
        final long[] names = names(slot, prompt);
        final long[] gone = new long[names.length - from];
        for (int i = 0; i < gone.length; i++) {
            gone[i] = names[names.length - 1 - i];
        }
        if (index.remove(slot, gone, gone.length, CopyRule.LAST_COPY) != 0) {
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
        int found = 0;
        for (int i = 0; i < scores.matchedSlots(); i++) {
            final int slot = scores.slotAt(i);
            found += slot >= fromSlot && slot < toSlot ? 1 : 0;
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
            locals[i] = prompt.charAt(i);
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

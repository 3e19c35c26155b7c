package io.kvasir.opstreams.cliffs;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/**
 * Engines with caches of 100,000 blocks that evict the oldest, and conversations of 30 blocks after
 * a system prompt of 20: ten stored at once, twenty one by one; evicted one by one, the deepest
 * first.
 */
final class Conversations {
    private static final int SYSTEM_BLOCKS = 20;
    private static final int FIRST_TURN = 10;
    private static final int CONVERSATION = 30;
    private static final int CACHE_BLOCKS = 100_000;
    private static final int TURNS = 50_000;
    private static final int QUERY_EVERY = 64;

    private final CliffStream out;
    private final int cacheBlocks;
    private final long[] system;
    private final List<Deque<Conversation>> caches = new ArrayList<>();

    private Conversations(CliffStream out, int workers, double scale) {
        this.out = out;
        this.cacheBlocks = Cliff.scaled(CACHE_BLOCKS, scale, 2 * CONVERSATION + SYSTEM_BLOCKS);
        this.system = out.fresh(SYSTEM_BLOCKS);
        for (int worker = 0; worker < workers; worker++) {
            caches.add(new ArrayDeque<>());
        }
    }

    /** One that was announced from its start on, or whose first blocks were never announced. */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Conversation(long[] prompt, int from, boolean known) {}

    /** Fills the caches, in turns, and continues for half as long. */
    static void atTheLimit(CliffStream out, int workers, double scale) throws IOException {
        final Conversations all = new Conversations(out, workers, scale);
        for (int worker = 0; worker < workers; worker++) {
            out.store(worker, all.system, 0, 0, SYSTEM_BLOCKS);
        }
        for (int turn = 0; turn < Cliff.scaled(TURNS, scale, 3 * workers); turn++) {
            final long[] prompt = CliffStream.append(all.system, out.fresh(CONVERSATION));
            all.take(turn, new Conversation(prompt, SYSTEM_BLOCKS, true));
        }
    }

    /**
     * The caches are full and nothing of it was announced, the system prompt neither; every second
     * conversation is after it, the others start by themselves.
     */
    static void lateAttach(CliffStream out, int workers, double scale) throws IOException {
        final Conversations all = new Conversations(out, workers, scale);
        for (Deque<Conversation> cache : all.caches) {
            while (all.fits(cache)) {
                cache.add(all.unknown());
            }
        }
        for (int turn = 0; turn < Cliff.scaled(TURNS, scale, 3 * workers); turn++) {
            final boolean known = turn / workers % 2 == 0;
            all.take(
                    turn,
                    known ? new Conversation(out.fresh(CONVERSATION), 0, true) : all.unknown());
        }
    }

    private Conversation unknown() {
        final long[] prompt = CliffStream.append(system, out.fresh(CONVERSATION));
        return new Conversation(prompt, SYSTEM_BLOCKS, false);
    }

    private boolean fits(Deque<Conversation> cache) {
        return SYSTEM_BLOCKS + (cache.size() + 1) * CONVERSATION <= cacheBlocks;
    }

    /** The next worker stores a conversation, after the oldest was evicted for it. */
    private void take(int turn, Conversation next) throws IOException {
        final int worker = turn % caches.size();
        final Deque<Conversation> cache = caches.get(worker);
        if (!fits(cache)) {
            evict(worker, cache.poll());
        }
        final long[] prompt = next.prompt;
        final int answer = next.from + FIRST_TURN;
        store(worker, next, next.from, answer);
        for (int i = answer; i < prompt.length; i++) {
            store(worker, next, i, i + 1);
        }
        cache.add(next);
        if (turn % QUERY_EVERY == 0) {
            out.query(prompt);
        }
    }

    private void store(int worker, Conversation what, int from, int to) throws IOException {
        if (what.known) {
            out.store(worker, what.prompt, 0, from, to);
        } else {
            out.storeBehindUnknown(worker, what.prompt, 0, from, to);
        }
    }

    private void evict(int worker, Conversation what) throws IOException {
        if (what.known) {
            out.removeOneByOne(worker, what.prompt, 0, what.from, what.prompt.length);
            return;
        }
        final long[] names = CliffStream.names(what.prompt, 0);
        for (int i = names.length; i > what.from; i--) {
            out.removeNames(worker, names, i - 1, i);
        }
    }
}

package io.kvasir.opstreams.cliffs;

import java.io.IOException;

/**
 * A thousand workers store a system prompt of 512 blocks one after the other and evict it, in
 * removals of 64 blocks, the deepest first; half of the rounds in the order in which they stored.
 */
final class SharedPrompt {
    private static final int PROMPT_BLOCKS = 512;
    private static final int EVICTED_AT_ONCE = 64;
    private static final int ROUNDS = 6;
    private static final int QUERY_EVERY = 50;

    private SharedPrompt() {}

    static void write(CliffStream out, int workers, double scale) throws IOException {
        final long[] prompt = out.fresh(PROMPT_BLOCKS);
        for (int round = 0; round < Cliff.scaled(ROUNDS, scale, 2); round++) {
            for (int worker = 0; worker < workers; worker++) {
                out.store(worker, prompt, 0, 0, PROMPT_BLOCKS);
                ask(out, prompt, worker);
            }
            for (int i = 0; i < workers; i++) {
                final int worker = round % 2 == 0 ? i : workers - 1 - i;
                for (int to = PROMPT_BLOCKS; to > 0; to -= EVICTED_AT_ONCE) {
                    out.remove(worker, prompt, 0, to - EVICTED_AT_ONCE, to);
                }
                ask(out, prompt, i);
            }
        }
    }

    private static void ask(CliffStream out, long[] prompt, int step) throws IOException {
        if (step % QUERY_EVERY == 0) {
            out.query(prompt);
        }
    }
}

package io.kvasir.opstreams.cliffs;

import java.io.IOException;

/**
 * Removals of 1 to 64 names that no worker ever stored, between removals and stores of held ones.
 */
final class UnknownFlood {
    private static final int PROMPTS = 50_000;
    private static final int PROMPT_BLOCKS = 20;
    private static final int EVENTS = 60_000;
    private static final int MOST_AT_ONCE = 64;
    private static final int KNOWN_EVERY = 16;

    private UnknownFlood() {}

    static void write(CliffStream out, int workers, double scale) throws IOException {
        final long[][] prompts = new long[Cliff.scaled(PROMPTS, scale, 100)][];
        for (int i = 0; i < prompts.length; i++) {
            prompts[i] = out.fresh(PROMPT_BLOCKS);
            out.store(0, prompts[i], 0, 0, PROMPT_BLOCKS);
        }
        for (int i = 0; i < Cliff.scaled(EVENTS, scale, 100); i++) {
            final int count = 1 + out.random().nextInt(MOST_AT_ONCE);
            out.removeNames(i % workers, out.fresh(count), 0, count);
            if (i % KNOWN_EVERY == 0) {
                final long[] prompt = prompts[i % prompts.length];
                out.removeOneByOne(0, prompt, 0, PROMPT_BLOCKS / 2, PROMPT_BLOCKS);
                out.query(prompt);
                out.store(0, prompt, 0, PROMPT_BLOCKS / 2, PROMPT_BLOCKS);
            }
        }
    }
}

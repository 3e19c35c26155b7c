package io.kvasir.opstreams.cliffs;

import java.io.IOException;
import java.util.Arrays;

/**
 * Requests that generate, all at the same time: each of 64 workers runs 32, which take turns with
 * one block each. Half of the blocks of a request are a prompt that another worker stores too.
 */
final class Decoding {
    private static final int REQUESTS = 32;
    private static final int PROMPT_BLOCKS = 128;
    private static final int ANSWER_BLOCKS = 128;

    private Decoding() {}

    static void write(CliffStream out, int workers, double scale) throws IOException {
        final int answer = Cliff.scaled(ANSWER_BLOCKS, scale, 2);
        final int requests = workers * REQUESTS;
        final long[][] prompts = new long[requests][];
        for (int i = 0; i < requests; i++) {
            final boolean shared = i % 2 == 1;
            final long[] prompt =
                    shared
                            ? Arrays.copyOf(prompts[i - 1], PROMPT_BLOCKS)
                            : out.fresh(PROMPT_BLOCKS);
            prompts[i] = CliffStream.append(prompt, out.fresh(answer));
        }
        final int longest = PROMPT_BLOCKS + answer;
        for (int block = 0; block < longest; block++) {
            for (int i = 0; i < requests; i++) {
                out.store(i % workers, prompts[i], 0, block, block + 1);
            }
            out.query(prompts[block % requests]);
        }
        for (int i = 0; i < requests; i += 8) { // what is freed can be used again
            out.removeOneByOne(i % workers, prompts[i], 0, PROMPT_BLOCKS, longest);
            out.query(prompts[i]);
        }
    }
}

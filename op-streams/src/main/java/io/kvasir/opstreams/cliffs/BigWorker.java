package io.kvasir.opstreams.cliffs;

import java.io.IOException;
import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * One worker with 200,000 prompts of 20 blocks, each stored at once; then, in turns, what no
 * pattern leads to.
 */
final class BigWorker {
    private static final int PROMPTS = 200_000;
    private static final int PROMPT_BLOCKS = 20;
    private static final int TURNS = 40_000;

    private BigWorker() {}

    static void write(CliffStream out, int workers, double scale) throws IOException {
        final SplittableRandom random = out.random();
        final long[][] prompts = new long[Cliff.scaled(PROMPTS, scale, 100)][];
        for (int i = 0; i < prompts.length; i++) {
            prompts[i] = out.fresh(PROMPT_BLOCKS);
            out.store(i % workers, prompts[i], 0, 0, PROMPT_BLOCKS);
        }
        for (int turn = 0; turn < Cliff.scaled(TURNS, scale, 100); turn++) {
            final int chosen = random.nextInt(prompts.length);
            final int worker = chosen % workers;
            final long[] prompt = prompts[chosen];
            final int middle = 1 + random.nextInt(PROMPT_BLOCKS - 2);
            final long[] branch = CliffStream.append(Arrays.copyOf(prompt, middle), out.fresh(1));
            out.removeNames(worker, out.fresh(1), 0, 1);
            out.storeBehindUnknown(worker, out.fresh(2), 0, 1, 2);
            out.store(worker, branch, 0, middle, middle + 1);
            out.remove(worker, prompt, 0, middle, middle + 1);
            out.query(prompt);
            out.store(worker, prompt, 0, middle, middle + 1);
            out.remove(worker, branch, 0, middle, middle + 1);
            out.query(prompt);
        }
    }
}

package io.kvasir.opstreams.cliffs;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;

/**
 * A prompt that stays and one-block branches from it: at every 64th block, then the 16th, 4th and
 * every block, all removed again before the next. The prompt is asked for after each step.
 */
final class Branches {
    private static final int PROMPT_BLOCKS = 2_560;
    private static final int[] DISTANCES = {64, 16, 4, 1};
    private static final int ROUNDS = 8;
    private static final int QUERIES = 500;

    private Branches() {}

    static void write(CliffStream out, int workers, double scale) throws IOException {
        final long[] prompt = out.fresh(Cliff.scaled(PROMPT_BLOCKS, scale, DISTANCES[0]));
        for (int worker = 0; worker < workers; worker++) {
            out.store(worker, prompt, 0, 0, prompt.length);
        }
        ask(out, prompt, scale);
        for (int distance : DISTANCES) {
            for (int round = 0; round < ROUNDS; round++) {
                comeAndGo(out, prompt, distance);
            }
            ask(out, prompt, scale);
        }
    }

    private static void comeAndGo(CliffStream out, long[] prompt, int distance) throws IOException {
        final Deque<long[]> branches = new ArrayDeque<>();
        for (int at = distance; at < prompt.length; at += distance) {
            final long[] branch = CliffStream.append(Arrays.copyOf(prompt, at), out.fresh(1));
            out.store(0, branch, 0, at, at + 1);
            branches.add(branch);
        }
        out.query(prompt);
        for (long[] branch : branches) {
            out.remove(0, branch, 0, branch.length - 1, branch.length);
        }
    }

    private static void ask(CliffStream out, long[] prompt, double scale) throws IOException {
        for (int i = 0; i < Cliff.scaled(QUERIES, scale, 1); i++) {
            out.query(prompt);
        }
    }
}

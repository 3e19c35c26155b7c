package io.kvasir.bench.kvops;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * What to replay and how; travels to a child process as words.
 *
 * @param file the stream
 * @param index name of the index, see {@link Indexes}
 * @param mode how it is replayed
 * @param warmUp operations replayed before on an index of its own, unmeasured; 0 = none
 * @param passes measured passes of mode BESIDE, one after the other
 * @param blockRate blocks per second that the writer of mode BESIDE applies; 0 = all it can
 * @param depth blocks of each query of mode BESIDE; 0 = the stream's prompts as they are
 * @param speedUp stream time ÷ wall time of mode OPENLOOP; 0 = the whole stream in {@value
 *     OpenLoopReplay#DEFAULT_SECONDS} s
 */
public record ReplayPlan(
        Path file,
        String index,
        ReplayMode mode,
        long warmUp,
        int passes,
        double blockRate,
        int depth,
        double speedUp) {
    /** Warm-up by the whole stream. */
    public static final long WHOLE = Long.MAX_VALUE;

    /**
     * How often the warm-up is done: a stream of 12,000 queries alone leaves the second compiler in
     * the middle of its work (median of a match 1.3 us after one round, 0.8 after three).
     */
    static final int WARM_UP_ROUNDS = 3;

    private static final int PASSES = 3;

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if one is out of range, or no index has the name
     */
    public ReplayPlan {
        Indexes.checked(index);
        if (warmUp < 0 || passes < 1 || depth < 0) {
            throw new IllegalArgumentException(
                    "warm-up and depth are not negative, passes positive: warm-up="
                            + warmUp
                            + ", passes="
                            + passes
                            + ", depth="
                            + depth);
        }
        if (!(blockRate >= 0) || !(speedUp >= 0)) {
            throw new IllegalArgumentException(
                    "rate and speed-up are not negative: rate="
                            + blockRate
                            + ", speed-up="
                            + speedUp);
        }
    }

    /** The product's index, in order, warmed up by the whole stream. */
    public static ReplayPlan of(Path file) {
        return new ReplayPlan(file, Indexes.KVASIR, ReplayMode.INORDER, WHOLE, PASSES, 0, 0, 0);
    }

    /** The same for another index. */
    public ReplayPlan withIndex(String name) {
        return new ReplayPlan(file, name, mode, warmUp, passes, blockRate, depth, speedUp);
    }

    /** The same in another mode. */
    public ReplayPlan withMode(ReplayMode other) {
        return new ReplayPlan(file, index, other, warmUp, passes, blockRate, depth, speedUp);
    }

    /** The same with a shorter or no warm-up, in operations. */
    public ReplayPlan withWarmUp(long operations) {
        return new ReplayPlan(file, index, mode, operations, passes, blockRate, depth, speedUp);
    }

    /** The same with other settings of mode BESIDE. */
    public ReplayPlan withBeside(int newPasses, double newBlockRate, int newDepth) {
        return new ReplayPlan(
                file, index, mode, warmUp, newPasses, newBlockRate, newDepth, speedUp);
    }

    /** The same with another speed-up of mode OPENLOOP. */
    public ReplayPlan withSpeedUp(double factor) {
        return new ReplayPlan(file, index, mode, warmUp, passes, blockRate, depth, factor);
    }

    /** How the warm-up was done, for people. */
    public String warmUpText() {
        if (warmUp == 0) {
            return "none";
        }
        return (warmUp == WHOLE ? "the whole stream" : "the first " + warmUp + " operations")
                + ", "
                + WARM_UP_ROUNDS
                + " times in the same JVM, each on an index of its own, unmeasured";
    }

    /** Words that {@link #parse} understands. */
    List<String> words() {
        return List.of(
                "file=" + file,
                "index=" + index,
                "mode=" + mode.label(),
                "warmUp=" + warmUp,
                "passes=" + passes,
                "blockRate=" + blockRate,
                "depth=" + depth,
                "speedUp=" + speedUp);
    }

    /**
     * Reads what {@link #words()} wrote.
     *
     * @throws IllegalArgumentException if a word is missing or not of that form
     */
    static ReplayPlan parse(List<String> words) {
        final Map<String, String> values = new HashMap<>();
        for (String word : words) {
            final int equals = word.indexOf('=');
            values.put(word.substring(0, equals), word.substring(equals + 1));
        }
        return new ReplayPlan(
                Path.of(values.get("file")),
                values.get("index"),
                ReplayMode.valueOf(values.get("mode").toUpperCase(Locale.ROOT)),
                Long.parseLong(values.get("warmUp")),
                Integer.parseInt(values.get("passes")),
                Double.parseDouble(values.get("blockRate")),
                Integer.parseInt(values.get("depth")),
                Double.parseDouble(values.get("speedUp")));
    }
}

package io.kvasir.opstreams.kvops;

import java.nio.file.Path;
import java.util.ArrayList;
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
 * @param warmUp operations of a pass that warms up, unmeasured, each on an index of its own; 0 = no
 *     warm-up
 * @param warmUpSeconds time for all those passes; they end before when figures stand still
 * @param room of the index as a share of what the stream's workers hold at most, above 0; below 1
 *     stores are refused and answers are not checked
 * @param shortPrompts whether the index has memory for prompts of a few blocks too, by its own
 *     rule; else for prompts of some 30 blocks and more
 * @param passes measured passes of modes BESIDE and EVENTS, one after the other
 * @param limitSeconds wall time after which a pass of mode EVENTS ends; 0 = never
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
        double warmUpSeconds,
        double room,
        boolean shortPrompts,
        int passes,
        double limitSeconds,
        double blockRate,
        int depth,
        double speedUp) {
    /** Warm-up by the whole stream. */
    public static final long WHOLE = Long.MAX_VALUE;

    /** Time for the warm-up unless another is given. */
    public static final double WARM_UP_SECONDS = 30;

    private static final int PASSES = 3;
    private static final double NS_PER_S = 1e9;

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
        if (!(room > 0) || !(limitSeconds >= 0) || !(warmUpSeconds >= 0)) {
            throw new IllegalArgumentException(
                    "room is positive, times are not negative: room="
                            + room
                            + ", limit="
                            + limitSeconds
                            + ", warm-up-seconds="
                            + warmUpSeconds);
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
        return new ReplayPlan(
                file,
                Indexes.KVASIR,
                ReplayMode.INORDER,
                WHOLE,
                WARM_UP_SECONDS,
                1,
                false,
                PASSES,
                0,
                0,
                0,
                0);
    }

    /** The same for another index. */
    public ReplayPlan withIndex(String name) {
        return with("index=" + name);
    }

    /** The same in another mode. */
    public ReplayPlan withMode(ReplayMode other) {
        return with("mode=" + other.label());
    }

    /** The same with a shorter or no warm-up, in operations of a pass. */
    public ReplayPlan withWarmUp(long operations) {
        return with("warmUp=" + operations);
    }

    /** The same with another time for the warm-up. */
    public ReplayPlan withWarmUpSeconds(double seconds) {
        return with("warmUpSeconds=" + seconds);
    }

    /** The same with an index that has room for a share of what the stream's workers hold. */
    public ReplayPlan withRoom(double share) {
        return with("room=" + share);
    }

    /** The same with memory for prompts of a few blocks, or for long ones only. */
    public ReplayPlan withShortPrompts(boolean on) {
        return with("shortPrompts=" + on);
    }

    /** The same with other passes of modes BESIDE and EVENTS. */
    public ReplayPlan withPasses(int newPasses) {
        return with("passes=" + newPasses);
    }

    /** The same with another limit of a pass of mode EVENTS; 0 = none. */
    public ReplayPlan withLimit(double seconds) {
        return with("limitSeconds=" + seconds);
    }

    /** The same with other settings of mode BESIDE. */
    public ReplayPlan withBeside(int newPasses, double newBlockRate, int newDepth) {
        return with("passes=" + newPasses, "blockRate=" + newBlockRate, "depth=" + newDepth);
    }

    /** The same with another speed-up of mode OPENLOOP. */
    public ReplayPlan withSpeedUp(double factor) {
        return with("speedUp=" + factor);
    }

    /** The same with other words in place of those of the same fields. */
    private ReplayPlan with(String... others) {
        final List<String> words = new ArrayList<>(words());
        words.addAll(List.of(others)); // the last word of a field counts
        return parse(words);
    }

    /** {@link #limitSeconds} in nanoseconds. */
    long limitNs() {
        return limitSeconds == 0 ? Long.MAX_VALUE : (long) (limitSeconds * NS_PER_S);
    }

    /** How the warm-up was done, for people. */
    public String warmUpText() {
        if (warmUp == 0) {
            return "none";
        }
        return (warmUp == WHOLE ? "the whole stream" : "the first " + warmUp + " operations")
                + " again and again, each time on an index of its own, unmeasured, until figures"
                + " stand still or "
                + warmUpSeconds
                + " s are over";
    }

    /** Words that {@link #parse} understands. */
    List<String> words() {
        return List.of(
                "file=" + file,
                "index=" + index,
                "mode=" + mode.label(),
                "warmUp=" + warmUp,
                "warmUpSeconds=" + warmUpSeconds,
                "room=" + room,
                "shortPrompts=" + shortPrompts,
                "passes=" + passes,
                "limitSeconds=" + limitSeconds,
                "blockRate=" + blockRate,
                "depth=" + depth,
                "speedUp=" + speedUp);
    }

    /**
     * Reads what {@link #words()} wrote; of several words for one field the last counts.
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
                Double.parseDouble(values.get("warmUpSeconds")),
                Double.parseDouble(values.get("room")),
                Boolean.parseBoolean(values.get("shortPrompts")),
                Integer.parseInt(values.get("passes")),
                Double.parseDouble(values.get("limitSeconds")),
                Double.parseDouble(values.get("blockRate")),
                Integer.parseInt(values.get("depth")),
                Double.parseDouble(values.get("speedUp")));
    }
}

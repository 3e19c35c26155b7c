package io.kvasir.opstreams.generate;

/**
 * What conversations look like.
 *
 * @param requests requests to make, of all conversations together
 * @param turns requests of a conversation on average; their number is geometric
 * @param systemPrompts system prompts that conversations start with; a few of them are popular
 * @param systemBlocks blocks of a system prompt on average
 * @param promptBlocks blocks of a whole prompt on average; what a user writes follows from it
 * @param answerBlocks blocks of an answer on average
 * @param branch share of later turns that do not go on but branch off: half of them ask the same
 *     again, half change an earlier turn, 0..1
 * @param cold share of requests that belong to no conversation and share nothing, 0..1
 * @param rate requests per second of stream time
 * @param thinkSeconds time between an answer and the next turn on average
 * @param seed of lengths, times and branches
 */
public record MultiTurnOptions(
        int requests,
        double turns,
        int systemPrompts,
        int systemBlocks,
        int promptBlocks,
        int answerBlocks,
        double branch,
        double cold,
        double rate,
        double thinkSeconds,
        long seed) {
    /** Blocks at which a conversation ends; the mean of no length is beyond it. */
    static final int LONGEST_PROMPT = 8_192;

    private static final int MOST_SYSTEM_PROMPTS = 1 << 16;
    private static final double TURNS_PER_MISS = 1.6;
    private static final int LEAST_TURNS = 2;

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException naming the first that is out of range
     */
    public MultiTurnOptions {
        GeneratorOptions.require(requests >= 1, "requests", requests, "at least 1");
        GeneratorOptions.require(
                turns >= 1 && Double.isFinite(turns), "turns", turns, "1 or more and finite");
        requireWithin("system-prompts", systemPrompts, MOST_SYSTEM_PROMPTS);
        requireWithin("system-blocks", systemBlocks, LONGEST_PROMPT);
        requireWithin("prompt-blocks", promptBlocks, LONGEST_PROMPT);
        requireWithin("answer-blocks", answerBlocks, LONGEST_PROMPT);
        GeneratorOptions.require(branch >= 0 && branch <= 1, "branch", branch, "0..1");
        GeneratorOptions.require(cold >= 0 && cold <= 1, "cold", cold, "0..1");
        GeneratorOptions.requirePositive("rate", rate);
        GeneratorOptions.requireNotNegative("think-seconds", thinkSeconds);
        GeneratorOptions.require(
                userBlocks(turns, systemBlocks, promptBlocks, answerBlocks) >= 1,
                "prompt-blocks",
                promptBlocks,
                "more than a system prompt and the answers of "
                        + turns
                        + " turns leave for what users write");
    }

    private static void requireWithin(String name, int value, int most) {
        GeneratorOptions.require(value >= 1 && value <= most, name, value, "1.." + most);
    }

    /** Prompts of 960 blocks, 4 requests a second. */
    public static MultiTurnOptions defaults() {
        return new MultiTurnOptions(12_000, 4, 32, 200, 960, 24, 0.1, 0, 4, 10, 42);
    }

    /** Turns at which conversations alone give some more than a share of hits. */
    public static double turnsFor(double hitRate) {
        return Math.max(LEAST_TURNS, TURNS_PER_MISS / (1 - hitRate));
    }

    /** The same with another share of requests that share nothing. */
    public MultiTurnOptions withCold(double share) {
        return new MultiTurnOptions(
                requests,
                turns,
                systemPrompts,
                systemBlocks,
                promptBlocks,
                answerBlocks,
                branch,
                share,
                rate,
                thinkSeconds,
                seed);
    }

    /**
     * Blocks that a user writes in a turn on average. A request is its conversation's turn {@code
     * turns} on average, as the turns are geometric: so many texts, and one answer less, are in its
     * prompt.
     */
    double userBlocks() {
        return userBlocks(turns, systemBlocks, promptBlocks, answerBlocks);
    }

    private static double userBlocks(double turns, int system, int prompt, int answer) {
        return (prompt - system - answer * (turns - 1)) / turns;
    }
}

package io.kvasir.router;

import io.kvasir.pipeline.IndexState;

import java.util.Arrays;
import java.util.Locale;

/**
 * The outcome of one selection and the reason for it: every worker that was looked at, what it
 * holds, what it has to do and what it would have cost. Caller-owned and reusable; filled by {@link
 * KvRouter#select}, belongs to one thread at a time.
 */
public final class Decision {
    /** Why a worker was not a candidate. */
    public enum Exclusion {
        /** It was a candidate. */
        NONE,
        /** Marked unavailable by whoever watches its health. */
        UNAVAILABLE,
        /** Excluded by the request: it failed before. */
        EXCLUDED,
        /** The request is pinned to another worker. */
        NOT_PINNED
    }

    private Worker[] workers = new Worker[8];
    private Exclusion[] exclusions = new Exclusion[8];
    private IndexState[] states = new IndexState[8];
    private int[] overlapBlocks = new int[8];
    private int[] activePrefixBlocks = new int[8];
    private double[] prefillBlocks = new double[8];
    private long[] decodeBlocks = new long[8];
    private long[] activeRequests = new long[8];
    private long[] eventSequences = new long[8];
    private double[] costs = new double[8];
    private int count;
    private int eligible;
    private int chosen = -1;

    private int blockSize;
    private int requestTokens;
    private int requestBlocks;
    private RoutingMode mode = RoutingMode.KV;
    private double overlapWeight;
    private double temperature;

    /** An empty decision. */
    public Decision() {}

    void begin(
            RouteRequest request,
            int size,
            RoutingMode routingMode,
            double weight,
            double samplingTemperature) {
        count = 0;
        eligible = 0;
        chosen = -1;
        blockSize = size;
        requestTokens = request.tokenCount();
        requestBlocks = request.blockCount;
        mode = routingMode;
        overlapWeight = weight;
        temperature = samplingTemperature;
    }

    /** Adds a worker to the record with the number of its last applied event; the rest follows. */
    void candidate(Worker worker, Exclusion exclusion, IndexState state, long eventSequence) {
        if (count == workers.length) {
            grow();
        }
        workers[count] = worker;
        exclusions[count] = exclusion;
        states[count] = state;
        eventSequences[count] = eventSequence;
        costs[count] = Double.NaN;
        if (exclusion == Exclusion.NONE) {
            eligible++;
        }
        count++;
    }

    private void grow() {
        final int length = 2 * workers.length;
        workers = Arrays.copyOf(workers, length);
        exclusions = Arrays.copyOf(exclusions, length);
        states = Arrays.copyOf(states, length);
        overlapBlocks = Arrays.copyOf(overlapBlocks, length);
        activePrefixBlocks = Arrays.copyOf(activePrefixBlocks, length);
        prefillBlocks = Arrays.copyOf(prefillBlocks, length);
        decodeBlocks = Arrays.copyOf(decodeBlocks, length);
        activeRequests = Arrays.copyOf(activeRequests, length);
        eventSequences = Arrays.copyOf(eventSequences, length);
        costs = Arrays.copyOf(costs, length);
    }

    void figures(
            int i,
            int overlap,
            int activePrefix,
            double prefill,
            long decode,
            long requests,
            double cost) {
        overlapBlocks[i] = overlap;
        activePrefixBlocks[i] = activePrefix;
        prefillBlocks[i] = prefill;
        decodeBlocks[i] = decode;
        activeRequests[i] = requests;
        costs[i] = cost;
    }

    void choose(int i) {
        chosen = i;
    }

    boolean isEligible(int i) {
        return exclusions[i] == Exclusion.NONE;
    }

    int eligibleCount() {
        return eligible;
    }

    int chosenIndex() {
        return chosen;
    }

    /**
     * The worker to send the request to.
     *
     * @return null before a successful selection
     */
    public Worker worker() {
        return chosen < 0 ? null : workers[chosen];
    }

    /**
     * Leading blocks of the prompt that the chosen worker holds.
     *
     * @return blocks, before the engine's rule that the last token is always computed
     */
    public int overlapBlocks() {
        return chosen < 0 ? 0 : overlapBlocks[chosen];
    }

    /**
     * Prompt tokens that the chosen worker's engine is expected to report as cached.
     *
     * @return {@code min(overlap, ⌊(tokens − 1) / blockSize⌋) · blockSize}
     */
    public int predictedCachedTokens() {
        return cachedTokens(overlapBlocks(), requestTokens, blockSize);
    }

    /**
     * The engines' own rule for a prefix hit: whole blocks, and never the last token.
     *
     * @param overlapBlocks leading blocks held
     * @param tokenCount prompt length in tokens
     * @param blockSize tokens per block
     * @return tokens that need no prefill
     */
    public static int cachedTokens(int overlapBlocks, int tokenCount, int blockSize) {
        return tokenCount == 0
                ? 0
                : Math.min(overlapBlocks, (tokenCount - 1) / blockSize) * blockSize;
    }

    /**
     * Full blocks of the prompt.
     *
     * @return blocks that were matched
     */
    public int requestBlocks() {
        return requestBlocks;
    }

    /**
     * The prompt's length.
     *
     * @return tokens
     */
    public int requestTokens() {
        return requestTokens;
    }

    /**
     * Cost of the chosen worker.
     *
     * @return blocks; NaN before a successful selection
     */
    public double cost() {
        return chosen < 0 ? Double.NaN : costs[chosen];
    }

    /**
     * Number of the chosen worker's last event message that was in the index before the prompt was
     * matched.
     *
     * @return the engine's number, -1 when none
     */
    public long eventSequence() {
        return chosen < 0 ? -1 : eventSequences[chosen];
    }

    /**
     * The mode that chose.
     *
     * @return the request's override, or the router's own
     */
    public RoutingMode mode() {
        return mode;
    }

    /**
     * The weight that a block to prefill had.
     *
     * @return the request's override, or the router's own
     */
    public double overlapWeight() {
        return overlapWeight;
    }

    /**
     * The sampling temperature.
     *
     * @return the request's override, or the router's own
     */
    public double temperature() {
        return temperature;
    }

    /**
     * How many workers were looked at.
     *
     * @return candidates and excluded ones
     */
    public int candidateCount() {
        return count;
    }

    /**
     * A worker that was looked at.
     *
     * @param i 0..{@link #candidateCount()}-1, in order of registration
     * @return the worker
     */
    public Worker candidate(int i) {
        return workers[checkIndex(i)];
    }

    /**
     * Why a worker was not a candidate.
     *
     * @param i 0..{@link #candidateCount()}-1
     * @return {@link Exclusion#NONE} for a candidate
     */
    public Exclusion exclusion(int i) {
        return exclusions[checkIndex(i)];
    }

    /**
     * How far the index could be trusted for a worker.
     *
     * @param i 0..{@link #candidateCount()}-1
     * @return its state when it was looked at
     */
    public IndexState state(int i) {
        return states[checkIndex(i)];
    }

    /**
     * Leading blocks of the prompt that a worker holds.
     *
     * @param i 0..{@link #candidateCount()}-1
     * @return blocks
     */
    public int overlapBlocks(int i) {
        return overlapBlocks[checkIndex(i)];
    }

    /**
     * Leading blocks of the prompt that running requests of a worker use now.
     *
     * @param i 0..{@link #candidateCount()}-1
     * @return blocks
     */
    public int activePrefixBlocks(int i) {
        return activePrefixBlocks[checkIndex(i)];
    }

    /**
     * Blocks that a worker would have to prefill.
     *
     * @param i 0..{@link #candidateCount()}-1
     * @return blocks, fractional
     */
    public double prefillBlocks(int i) {
        return prefillBlocks[checkIndex(i)];
    }

    /**
     * Blocks that a worker would have in use.
     *
     * @param i 0..{@link #candidateCount()}-1
     * @return blocks
     */
    public long decodeBlocks(int i) {
        return decodeBlocks[checkIndex(i)];
    }

    /**
     * Requests booked on a worker when it was looked at.
     *
     * @param i 0..{@link #candidateCount()}-1
     * @return requests
     */
    public long activeRequests(int i) {
        return activeRequests[checkIndex(i)];
    }

    /**
     * Number of a worker's last applied event message when it was looked at.
     *
     * @param i 0..{@link #candidateCount()}-1
     * @return the engine's number, -1 when none
     */
    public long eventSequence(int i) {
        return eventSequences[checkIndex(i)];
    }

    /**
     * Cost of a worker.
     *
     * @param i 0..{@link #candidateCount()}-1
     * @return blocks; NaN when excluded
     */
    public double cost(int i) {
        return costs[checkIndex(i)];
    }

    private int checkIndex(int i) {
        if (i < 0 || i >= count) {
            throw new IndexOutOfBoundsException("candidate " + i + " of " + count);
        }
        return i;
    }

    /**
     * The decision for people: one line for the request, one per worker.
     *
     * @return several lines, each ended by a newline; allocates
     */
    public String explain() {
        final StringBuilder text = new StringBuilder(128 + 96 * count);
        text.append(
                String.format(
                        Locale.ROOT,
                        "%s: %d tokens, %d blocks of %d; cost = %s · prefill + decode, temperature"
                                + " %s%n",
                        mode.spelling(),
                        requestTokens,
                        requestBlocks,
                        blockSize,
                        number(overlapWeight),
                        number(temperature)));
        for (int i = 0; i < count; i++) {
            text.append(i == chosen ? " -> " : "    ").append(workers[i]).append(": ");
            if (exclusions[i] != Exclusion.NONE) {
                text.append("not a candidate, ").append(exclusions[i]).append('\n');
                continue;
            }
            text.append(
                    String.format(
                            Locale.ROOT,
                            "cost %.3f = prefill %.3f, decode %d; holds %d blocks (%s, event %d), "
                                    + "%d of them in use, %d requests%n",
                            costs[i],
                            prefillBlocks[i],
                            decodeBlocks[i],
                            overlapBlocks[i],
                            states[i],
                            eventSequences[i],
                            activePrefixBlocks[i],
                            activeRequests[i]));
        }
        return text.toString();
    }

    private static String number(double value) {
        return value == Math.rint(value) ? Long.toString((long) value) : Double.toString(value);
    }
}

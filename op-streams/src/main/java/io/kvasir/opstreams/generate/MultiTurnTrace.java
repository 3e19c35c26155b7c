package io.kvasir.opstreams.generate;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;
import java.util.SplittableRandom;

/**
 * Conversations as a trace: each turn's prompt is the one before, its answer and what the user
 * writes now, after one of a few system prompts. One hash id stands for one block. Equal options
 * give equal requests. One use.
 */
final class MultiTurnTrace {
    private static final double MS_PER_S = 1e3;
    private static final int MOST_TRIES = 5;
    private static final double NEAR = 0.01;

    private final MultiTurnOptions options;
    private final double userBlocks;
    private final int blockTokens;
    private final double blockMs;
    private final SplittableRandom random;
    private final long[][] systemPrompts;
    private final PriorityQueue<Turn> turns =
            new PriorityQueue<>(
                    Comparator.comparingDouble(Turn::timeMs).thenComparingLong(Turn::order));
    private long lastId;
    private long order;

    /**
     * Prepares a trace.
     *
     * @param userBlocks blocks that a user writes in a turn on average
     * @param blockTokens tokens per block
     * @param interTokenMs time between two tokens of an answer
     */
    private MultiTurnTrace(
            MultiTurnOptions options, double userBlocks, int blockTokens, double interTokenMs) {
        this.options = options;
        this.userBlocks = userBlocks;
        this.blockTokens = blockTokens;
        this.blockMs = blockTokens * interTokenMs;
        this.random = new SplittableRandom(options.seed());
        this.systemPrompts = new long[options.systemPrompts()][];
        Arrays.setAll(systemPrompts, i -> fresh(about(options.systemBlocks())));
    }

    /**
     * Makes the requests, in the order of their arrival; timestamps are milliseconds. Branches and
     * conversations that the end cuts off make prompts shorter, so what users write is stretched
     * until prompts have the length asked for.
     *
     * @throws IllegalArgumentException if blocks are so large that prompts are too long for an int
     */
    static List<TraceRequest> of(MultiTurnOptions options, int blockTokens, double interTokenMs) {
        GeneratorOptions.require(
                blockTokens <= MultiTurnStream.MOST_BLOCK_TOKENS,
                "block",
                blockTokens,
                "1.." + MultiTurnStream.MOST_BLOCK_TOKENS);
        double userBlocks = options.userBlocks();
        List<TraceRequest> requests = List.of();
        for (int i = 0; i < MOST_TRIES; i++) {
            requests =
                    new MultiTurnTrace(options, userBlocks, blockTokens, interTokenMs).requests();
            final double stretch =
                    options.promptBlocks()
                            / requests.stream()
                                    .mapToInt(request -> request.hashIds().length)
                                    .average()
                                    .orElseThrow();
            if (Math.abs(stretch - 1) <= NEAR) {
                break;
            }
            userBlocks *= stretch;
        }
        return requests;
    }

    /**
     * A request to come.
     *
     * @param history whole conversation so far, its last answer included; empty = starts now
     * @param starts lengths of the history at which its turns' texts started
     * @param answerStart length of the history before its last answer
     */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Turn(
            double timeMs, long order, long[] history, List<Integer> starts, int answerStart) {}

    private List<TraceRequest> requests() {
        final List<TraceRequest> requests = new ArrayList<>();
        final double startsPerMs =
                options.rate() / MS_PER_S * (options.cold() + conversationsPerRequest());
        double startMs = 0;
        while (requests.size() < options.requests()) {
            if (turns.isEmpty() || turns.peek().timeMs >= startMs) {
                start(startMs, requests);
                startMs += exponential(1 / startsPerMs);
            } else {
                go(turns.poll(), requests);
            }
        }
        return requests;
    }

    /** Conversations that start for each request that arrives. */
    private double conversationsPerRequest() {
        return (1 - options.cold()) / options.turns();
    }

    private void start(double timeMs, List<TraceRequest> requests) {
        final double conversations = conversationsPerRequest();
        if (random.nextDouble() * (options.cold() + conversations) < options.cold()) {
            final long[] prompt = fresh(about(options.promptBlocks()));
            requests.add(request(timeMs, prompt, fresh(about(options.answerBlocks()))));
            return;
        }
        // the square makes the first ones popular
        final double popular = random.nextDouble();
        final long[] system = systemPrompts[(int) (popular * popular * systemPrompts.length)];
        go(new Turn(timeMs, 0, system, List.of(), system.length), requests);
    }

    private void go(Turn turn, List<TraceRequest> requests) {
        final boolean branches = !turn.starts.isEmpty() && random.nextDouble() < options.branch();
        final boolean again = branches && random.nextBoolean();
        final List<Integer> starts = new ArrayList<>(turn.starts);
        long[] prompt;
        if (again) {
            prompt = Arrays.copyOf(turn.history, turn.answerStart);
        } else {
            int from = turn.history.length;
            if (branches) {
                final int changed = random.nextInt(starts.size());
                from = starts.get(changed);
                starts.subList(changed, starts.size()).clear();
            }
            starts.add(from);
            prompt = join(Arrays.copyOf(turn.history, from), fresh(about(userBlocks)));
        }
        if (prompt.length > MultiTurnOptions.LONGEST_PROMPT) {
            prompt = Arrays.copyOf(prompt, MultiTurnOptions.LONGEST_PROMPT);
        }
        final long[] answer = fresh(about(options.answerBlocks()));
        requests.add(request(turn.timeMs, prompt, answer));
        if (random.nextDouble() * options.turns() >= 1
                && prompt.length < MultiTurnOptions.LONGEST_PROMPT) {
            final double nextMs =
                    turn.timeMs
                            + answer.length * blockMs
                            + exponential(options.thinkSeconds() * MS_PER_S);
            turns.add(new Turn(nextMs, order++, join(prompt, answer), starts, prompt.length));
        }
    }

    private TraceRequest request(double timeMs, long[] prompt, long[] answer) {
        return new TraceRequest(
                timeMs, prompt.length * blockTokens, answer.length * blockTokens, prompt, answer);
    }

    private long[] fresh(int blocks) {
        final long[] ids = new long[blocks];
        Arrays.setAll(ids, i -> ++lastId);
        return ids;
    }

    private static long[] join(long[] first, long[] second) {
        final long[] both = Arrays.copyOf(first, first.length + second.length);
        System.arraycopy(second, 0, both, first.length, second.length);
        return both;
    }

    /** A length between half of the mean and one and a half of it. */
    private int about(double mean) {
        return (int) Math.max(1, Math.round(mean * (0.5 + random.nextDouble())));
    }

    private double exponential(double mean) {
        return -mean * Math.log(1 - random.nextDouble());
    }
}

package io.kvasir.cli.simulate;

import io.kvasir.cli.load.MooncakeTrace;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.SplittableRandom;

/**
 * Agents as a trace, one hash id per 512 tokens: sessions arrive at random, begin with one of a few
 * long system prompts and a task of their own, and go on in loops, each with the result of a tool
 * behind the prompt before it. Some turns fan out: several sub-agents go on from the same prompt at
 * the same time, and the session continues when they are done. Equal seeds give equal requests.
 */
final class AgentWorkload {
    private static final int TOKENS_PER_ID = 512;
    private static final int SYSTEM_PROMPTS = 6;
    private static final int SYSTEM_IDS = 8; // half of it to one and a half
    private static final int TASK_IDS = 4;
    private static final int RESULT_IDS = 3;
    private static final int LONGEST_IDS = 64; // about where a session ends at the latest
    private static final double TURNS = 6;
    private static final double FAN_OUT = 0.15;
    private static final int CHILDREN = 4;
    private static final int CHILD_TURNS = 2;
    private static final int ANSWER = 160;
    private static final double ANSWER_MS_PER_TOKEN = 12;
    private static final double TOOL_MS = 4_000;

    private final SplittableRandom random;
    private final long[][] systemPrompts = new long[SYSTEM_PROMPTS][];
    private final List<MooncakeTrace.Request> requests = new ArrayList<>();
    private long lastId;

    private AgentWorkload(long seed) {
        random = new SplittableRandom(seed);
        Arrays.setAll(systemPrompts, i -> fresh(about(SYSTEM_IDS)));
    }

    /**
     * Makes requests.
     *
     * @param count at least 1
     * @param perSecond requests a second on average, positive
     * @return in the order of their arrival
     */
    static List<MooncakeTrace.Request> requests(int count, double perSecond, long seed) {
        return new AgentWorkload(seed).make(count, perSecond);
    }

    private List<MooncakeTrace.Request> make(int count, double perSecond) {
        final double endMs = count / perSecond * 1e3;
        final double perSession = TURNS * (1 + FAN_OUT * CHILDREN * CHILD_TURNS);
        for (double startMs = 0;
                startMs < endMs || requests.size() < count;
                startMs += exponential(perSession / perSecond * 1e3)) {
            session(startMs);
        }
        requests.sort(Comparator.comparingLong(MooncakeTrace.Request::timestampMs));
        return List.copyOf(requests.subList(0, count));
    }

    private void session(double startMs) {
        long[] prompt = join(systemPrompts[popular()], fresh(about(TASK_IDS)));
        double nowMs = startMs;
        do {
            nowMs = turn(nowMs, prompt);
            if (random.nextDouble() < FAN_OUT) {
                nowMs = fanOut(nowMs, prompt);
            }
            prompt = join(prompt, fresh(about(RESULT_IDS)));
        } while (random.nextDouble() * TURNS >= 1 && prompt.length < LONGEST_IDS);
    }

    /** Adds one request; when its tool is done. */
    private double turn(double nowMs, long[] prompt) {
        final int answer = 1 + random.nextInt(2 * ANSWER);
        requests.add(
                new MooncakeTrace.Request(
                        Math.round(nowMs), prompt.length * TOKENS_PER_ID, answer, prompt));
        return nowMs + answer * ANSWER_MS_PER_TOKEN + exponential(TOOL_MS);
    }

    /** Adds the sub-agents of a turn; when the last of them is done. */
    private double fanOut(double startMs, long[] prompt) {
        double endMs = startMs;
        for (int i = 0; i < CHILDREN; i++) {
            long[] own = join(prompt, fresh(1));
            double nowMs = startMs;
            for (int j = 0; j < CHILD_TURNS; j++) {
                nowMs = turn(nowMs, own);
                own = join(own, fresh(about(RESULT_IDS)));
            }
            endMs = Math.max(endMs, nowMs);
        }
        return endMs;
    }

    /** The square makes the first ones popular. */
    private int popular() {
        final double drawn = random.nextDouble();
        return (int) (drawn * drawn * SYSTEM_PROMPTS);
    }

    private long[] fresh(int ids) {
        final long[] made = new long[ids];
        Arrays.setAll(made, i -> ++lastId);
        return made;
    }

    private static long[] join(long[] first, long[] second) {
        final long[] both = Arrays.copyOf(first, first.length + second.length);
        System.arraycopy(second, 0, both, first.length, second.length);
        return both;
    }

    /** Between half of the mean and one and a half of it. */
    private int about(int mean) {
        return Math.max(1, (int) Math.round(mean * (0.5 + random.nextDouble())));
    }

    private double exponential(double mean) {
        return -mean * Math.log(1 - random.nextDouble());
    }
}

package io.kvasir.opstreams.kvops;

import java.io.IOException;
import java.util.List;

/** The child process of {@link KvopsBench}: one plan, its figures on standard output. */
final class KvopsFork {
    private KvopsFork() {}

    /**
     * Carries out a plan.
     *
     * @param args pairs, blocks and last pairs of the live maximum, then the words of the plan
     */
    public static void main(String[] args) throws IOException {
        final List<String> words = List.of(args);
        final LiveMaximum live =
                new LiveMaximum(
                        Long.parseLong(words.get(0)),
                        Long.parseLong(words.get(1)),
                        Long.parseLong(words.get(2)));
        Replays.run(ReplayPlan.parse(words.subList(3, words.size())), live)
                .lines()
                .forEach(System.out::println);
    }

    static List<String> liveWords(LiveMaximum live) {
        return List.of(
                Long.toString(live.pairs()),
                Long.toString(live.blocks()),
                Long.toString(live.lastPairs()));
    }
}

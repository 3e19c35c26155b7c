package io.kvasir.opstreams.kvops;

import java.io.IOException;
import java.io.OutputStream;
import java.util.List;

/**
 * The child process of {@link KvopsBench}: one plan, its figures on standard output. It ends with
 * its parent, however that ends: its standard input, on which nothing comes, is closed then.
 */
final class KvopsFork {
    private KvopsFork() {}

    /**
     * Carries out a plan.
     *
     * @param args pairs, blocks and last pairs of the live maximum, then the words of the plan
     */
    public static void main(String[] args) throws IOException {
        Thread.ofPlatform().daemon().name("parent").start(KvopsFork::endWithParent);
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

    private static void endWithParent() {
        try {
            var _ = System.in.transferTo(OutputStream.nullOutputStream());
        } catch (IOException _) {
            // no parent to be read from either
        }
        Runtime.getRuntime().halt(1);
    }

    static List<String> liveWords(LiveMaximum live) {
        return List.of(
                Long.toString(live.pairs()),
                Long.toString(live.blocks()),
                Long.toString(live.lastPairs()));
    }
}

package io.kvasir.cli.demo;

import io.kvasir.cli.load.LoadClient;
import io.kvasir.cli.load.RunStats;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.sim.state.HandoffState;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/**
 * Two kinds of users at once: some chat in short turns, others ask one question about a long text.
 *
 * @param chats shape of the chats
 * @param contexts shape of the long questions
 */
public record MixedTraffic(ChatWorkload.Shape chats, ChatWorkload.Shape contexts) {
    private static final Duration TIMEOUT = Duration.ofMinutes(1);

    /**
     * What became of one run.
     *
     * @param all requests of both kinds
     * @param pulls prompts whose blocks a decode engine has fetched
     * @param movedBytes bytes of those blocks
     */
    public record Result(
            Division division,
            long seed,
            RunStats.Result all,
            RunStats.Result chats,
            RunStats.Result contexts,
            long pulls,
            long movedBytes) {}

    /** Requests of both kinds. */
    public int requests() {
        return chats.requests() + contexts.requests();
    }

    /**
     * Plays both and waits for the last answer.
     *
     * @param cluster of that division, just started
     * @param seed of what is said and when
     * @param all takes the outcomes of both kinds
     */
    public Result play(Cluster cluster, Division division, long seed, RunStats all)
            throws InterruptedException {
        final RunStats chatStats = new RunStats(1);
        final RunStats contextStats = new RunStats(1);
        final CompletableFuture<Long> questions =
                CompletableFuture.supplyAsync(
                        () -> uninterrupted(cluster, ~seed, contextStats, all),
                        task -> Thread.ofVirtual().name("long-contexts").start(task));
        final long chatsNs = play(cluster, chats, seed, chatStats, all);
        final long contextsNs = questions.join();
        final int engines = cluster.engines().size();
        final List<HandoffState> handoffs =
                cluster.engines().stream().map(engine -> engine.handoffs(0)).toList();
        return new Result(
                division,
                seed,
                all.result("all", engines, Math.max(chatsNs, contextsNs)),
                chatStats.result("chats", engines, chatsNs),
                contextStats.result("long contexts", engines, contextsNs),
                handoffs.stream().mapToLong(HandoffState::pulls).sum(),
                handoffs.stream().mapToLong(HandoffState::transferredBytes).sum());
    }

    private long uninterrupted(Cluster cluster, long seed, RunStats own, RunStats all) {
        try {
            return play(cluster, contexts, seed, own, all);
        } catch (InterruptedException e) {
            throw new CompletionException(e);
        }
    }

    private static long play(
            Cluster cluster, ChatWorkload.Shape shape, long seed, RunStats own, RunStats all)
            throws InterruptedException {
        try (LoadClient client =
                new LoadClient(
                        cluster.url(),
                        TIMEOUT,
                        gapNs -> {
                            own.recordGap(gapNs);
                            all.recordGap(gapNs);
                        })) {
            final ChatDriver driver =
                    new ChatDriver(
                            client,
                            SimModel.NAME,
                            outcome -> {
                                own.record(outcome);
                                all.record(outcome);
                            });
            return driver.play(new ChatWorkload(shape, seed));
        }
    }
}

package io.kvasir.cli.doctor;

import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.pipeline.source.IndexCause;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.pipeline.source.SourceStatus;
import io.kvasir.router.Decision;
import io.kvasir.router.KvRouter;
import io.kvasir.router.RouteRequest;
import io.kvasir.router.Worker;
import io.kvasir.router.WorkerSpec;
import io.kvasir.router.settings.RouterSettings;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;

/**
 * What one rank's events say of a prompt that it is sent: followed by a router of its own, which
 * subscribes, asks for replays, hashes and matches as the gateway's does.
 */
final class EventChecks {
    private static final String PROMPT = "probe prompt";
    private static final String EVENTS = "events arrive";
    private static final String NUMBERS = "events are numbered";
    private static final String BLOCK_SIZE = "block size";
    private static final String CHAIN = "hash chain";
    private static final String REPLAY = "replay";
    private static final String CACHED = "cached tokens";
    private static final String NONE_ARRIVED = "no event has arrived";
    private static final long MOST_BLOCKS = 1 << 18;
    private static final int RING = 1 << 10;
    private static final int ATTEMPTS = 2;
    private static final int PROBES = 3;
    private static final long POLL_MS = 10;
    private static final String EVENT_FLAGS =
            "start the engine with KV events on (vLLM: --kv-events-config with"
                + " enable_kv_cache_events, publisher zmq, endpoint and replay_endpoint; SGLang:"
                + " the same flag) and --enable-prefix-caching";

    private final TestedEngine tested;
    private final WorkerConfig worker;
    private final EngineApi api;
    private final String modelOrNull;
    private final int rank;
    private final int statedBlockSize;
    private final int blockSize;
    private final Duration limit;
    private final SplittableRandom random;
    private final List<Check> checks;

    private Worker follower; // null where there are no events to follow
    private KvRouter router;
    private Probe probe;
    private int matched;
    private long gapsBefore = -1; // as of the first live message

    /**
     * @param statedBlockSize by the engine's metrics; 0 where they do not say
     * @param limit of each thing that is waited for
     * @param checks where outcomes are added
     */
    EventChecks(
            TestedEngine tested,
            EngineApi api,
            String modelOrNull,
            int rank,
            int statedBlockSize,
            Duration limit,
            SplittableRandom random,
            List<Check> checks) {
        this.tested = tested;
        this.worker = tested.worker();
        this.api = api;
        this.modelOrNull = modelOrNull;
        this.rank = rank;
        this.statedBlockSize = statedBlockSize;
        this.blockSize =
                tested.blockSize() > 0
                        ? tested.blockSize()
                        : statedBlockSize > 0 ? statedBlockSize : RouterSettings.BLOCK_SIZE.usual();
        this.limit = limit;
        this.random = random;
        this.checks = checks;
    }

    /** Runs them. */
    void run() throws InterruptedException {
        final String unfollowed = whyNotFollowed();
        if (!unfollowed.isEmpty()) {
            test(unfollowed);
            return;
        }
        try (KvRouter following =
                KvRouter.builder()
                        .blockSize(blockSize)
                        .maxWorkers(1)
                        .maxBlocks(MOST_BLOCKS, MOST_BLOCKS)
                        .set(RouterSettings.EVENT_RING_SIZE, RING)
                        .set(RouterSettings.REPLAY_TIMEOUT, limit.dividedBy(2L * ATTEMPTS))
                        .set(RouterSettings.REPLAY_ATTEMPTS, ATTEMPTS)
                        .build()) {
            router = following;
            follower =
                    router.addWorker(
                            new WorkerSpec(
                                    0, worker.name(), worker.url().toString(), rank, source()));
            router.awaitReady(limit.dividedBy(PROBES));
            test("");
        }
    }

    private String whyNotFollowed() {
        if (worker.planeOrNull() != null) {
            return "its events come over the event plane: see kvasir status of a gateway on it";
        }
        if (worker.events() == null) {
            return "no events= is named";
        }
        return worker.eventsBind()
                ? "bind=true: the engine connects to the gateway, which has the address"
                : "";
    }

    private SourceConfig source() {
        return SourceConfig.of(worker.name(), 0, blockSize, worker.events(rank))
                .withDpRank(worker.eventRank() + rank)
                .withReplayEndpoint(worker.replay(rank))
                .withTopic(worker.topic())
                .withRemovals(worker.removals());
    }

    private void test(String unfollowed) throws InterruptedException {
        final Probe.Usage first;
        try {
            first = askAndFollow();
        } catch (IOException | EngineApi.AnswerException e) {
            checks.add(
                    Check.fail(
                            PROMPT,
                            String.valueOf(e.getMessage()),
                            "an answer to a prompt of token ids",
                            "see the engine's log"));
            skipped(unfollowed.isEmpty() ? "the probe prompt is not answered" : unfollowed);
            return;
        }
        checks.add(counted(first));
        if (unfollowed.isEmpty()) {
            final SourceStatus status = follower.sourceStatus();
            final boolean arrived = status.lastEventAgeNs() >= 0;
            checks.add(arrived(status));
            checks.add(arrived ? numbered(status) : Check.skip(NUMBERS, NONE_ARRIVED, ""));
            checks.add(blockSize(status.learnedBlockSize()));
            checks.add(chain(status));
            checks.add(replay());
        } else {
            final String remedy =
                    worker.events() == null && worker.planeOrNull() == null
                            ? "name events=tcp://host:port, or the worker is routed by load alone"
                            : "";
            checks.add(Check.skip(EVENTS, unfollowed, remedy));
            checks.add(Check.skip(NUMBERS, unfollowed, ""));
            checks.add(blockSize(0));
            checks.add(Check.skip(CHAIN, unfollowed, ""));
            checks.add(Check.skip(REPLAY, unfollowed, ""));
        }
        checks.add(cached());
    }

    private void skipped(String why) {
        for (String name : List.of(EVENTS, NUMBERS, BLOCK_SIZE, CHAIN, REPLAY, CACHED)) {
            checks.add(Check.skip(name, why, ""));
        }
    }

    /** Sends prompts until one is in the index: the subscription may come after the first. */
    private Probe.Usage askAndFollow()
            throws IOException, InterruptedException, EngineApi.AnswerException {
        for (int sent = 1; ; sent++) {
            probe = new Probe(blockSize, random);
            final Probe.Usage usage =
                    probe.send(api, modelOrNull, rank, worker.dataParallelSize() > 1);
            if (follower == null || isSettled(limit.dividedBy(PROBES)) || sent == PROBES) {
                return usage;
            }
        }
    }

    /** Waits until more prompts would say no more. */
    private boolean isSettled(Duration time) throws InterruptedException {
        final long endNs = System.nanoTime() + time.toNanos();
        while (true) {
            final SourceStatus status = follower.sourceStatus();
            final boolean arrived = status.lastEventAgeNs() >= 0;
            if (gapsBefore < 0 && arrived) {
                gapsBefore = status.gaps();
            }
            matched = match();
            if (arrived && (matched >= blocks() || isOtherSize(status))) {
                return true;
            }
            if (System.nanoTime() > endNs) {
                return false;
            }
            TimeUnit.MILLISECONDS.sleep(POLL_MS);
        }
    }

    private boolean isOtherSize(SourceStatus status) {
        return status.learnedBlockSize() != 0 && status.learnedBlockSize() != blockSize;
    }

    private int blocks() {
        return probe.tokens().length / blockSize;
    }

    private int match() {
        final RouteRequest request = router.newRequest();
        return router.findMatches(request.tokens(probe.tokens(), probe.tokens().length)).max();
    }

    private Check counted(Probe.Usage usage) {
        final int expected = probe.tokens().length;
        if (usage.promptTokens() < 0) {
            return Check.pass(PROMPT, "answered without usage", expected + " prompt tokens");
        }
        return usage.promptTokens() == expected
                ? Check.pass(PROMPT, expected + " prompt tokens", expected + " prompt tokens")
                : Check.fail(
                        PROMPT,
                        usage.promptTokens() + " prompt tokens",
                        expected + " prompt tokens",
                        "the engine changes prompts of token ids; its cache cannot be predicted");
    }

    private Check arrived(SourceStatus status) {
        final String expected = "a message within " + limit.toSeconds() + " s of a prompt";
        if (status.lastEventAgeNs() >= 0) {
            return Check.pass(
                    EVENTS, status.messages() + " messages from " + status.endpoint(), expected);
        }
        if (status.cause() != IndexCause.NO_CONNECTION && status.replays() > 0) {
            return Check.fail(
                    EVENTS,
                    "none from " + status.endpoint() + ", while the replay answers",
                    expected,
                    "check the address, events=" + status.endpoint() + ", and the topic" + topic());
        }
        return Check.fail(
                EVENTS,
                status.problem().isEmpty()
                        ? "none from " + status.endpoint()
                        : "none: " + status.problem(),
                expected,
                EVENT_FLAGS + "; events= is the address of the publisher as seen from here");
    }

    private String topic() {
        return worker.topic().isEmpty()
                ? ": none is named, and all are subscribed"
                : ", topic=" + worker.topic() + ": other ones are not subscribed";
    }

    private Check numbered(SourceStatus status) {
        if (status.lastSequence() < 0) {
            return Check.skip(NUMBERS, "messages wait for a replay that has not ended", "");
        }
        final long gaps = status.gaps() - Math.max(0, gapsBefore);
        final String seen = "number " + status.lastSequence() + ", " + gaps + " gaps since";
        return gaps == 0
                ? Check.pass(NUMBERS, seen, "consecutive numbers")
                : Check.fail(
                        NUMBERS,
                        seen,
                        "consecutive numbers",
                        "messages are lost on their way, or the publisher does not number them;"
                                + " name replay= so that they can be had again");
    }

    private Check blockSize(int learned) {
        final List<String> seen = new ArrayList<>();
        if (statedBlockSize > 0) {
            seen.add(statedBlockSize + " by its metrics");
        }
        if (learned > 0) {
            seen.add(learned + " by its events");
        }
        if (seen.isEmpty()) {
            return Check.skip(BLOCK_SIZE, "the engine has not said", "");
        }
        final int actual = learned > 0 ? learned : statedBlockSize;
        final String expected =
                tested.blockSize() > 0 ? blockSize + " tokens" : blockSize + " tokens, as it says";
        return actual == blockSize && (statedBlockSize == 0 || statedBlockSize == actual)
                ? Check.pass(BLOCK_SIZE, String.join(", ", seen), expected)
                : Check.fail(
                        BLOCK_SIZE,
                        String.join(", ", seen),
                        expected,
                        "set block-size to " + actual);
    }

    private Check chain(SourceStatus status) {
        final String expected = blocks() + " blocks of the probe prompt in the index";
        if (status.learnedBlockSize() == 0) {
            return Check.skip(CHAIN, "no block has been announced", "");
        }
        if (isOtherSize(status)) {
            return Check.skip(CHAIN, "the blocks are of another size", "");
        }
        if (status.lastEventAgeNs() < 0 && matched < blocks()) {
            return Check.skip(CHAIN, NONE_ARRIVED, "");
        }
        return matched >= blocks()
                ? Check.pass(CHAIN, matched + " blocks", expected)
                : Check.fail(
                        CHAIN,
                        matched
                                + " blocks; stored "
                                + status.blocksStored()
                                + ", unknown parents "
                                + status.unknownParents()
                                + ", invalid "
                                + status.invalidStores()
                                + ", dropped "
                                + status.drops()
                                + (status.problem().isEmpty() ? "" : "; " + status.problem()),
                        expected,
                        "the events announce other tokens, or the same with an adapter or salt that"
                                + " seeds their hashes: kvasir hash prints what was expected");
    }

    private Check replay() throws InterruptedException {
        final String address = worker.replay(rank);
        if (address == null) {
            return Check.skip(
                    REPLAY,
                    "no replay= is named",
                    "name replay=tcp://host:port: a gateway that starts late or misses a message"
                            + " cannot have it again otherwise");
        }
        final long endNs = System.nanoTime() + limit.toNanos();
        SourceStatus status = follower.sourceStatus();
        while (isAwaited(status) && System.nanoTime() < endNs) {
            TimeUnit.MILLISECONDS.sleep(POLL_MS);
            status = follower.sourceStatus();
        }
        if (isUnasked(status)) {
            return Check.skip(REPLAY, "no events connection", "");
        }
        final String expected = "an answer of " + address + " to its end";
        return status.replays() > 0
                ? Check.pass(REPLAY, status.replays() + " answered to the end", expected)
                : Check.fail(
                        REPLAY,
                        status.problem().isEmpty()
                                ? "no answer in " + limit.toSeconds() + " s"
                                : status.problem(),
                        expected,
                        "replay= is the engine's replay_endpoint as seen from here");
    }

    private static boolean isAwaited(SourceStatus status) {
        return status.replays() == 0 && status.replayFailures() == 0 && !isUnasked(status);
    }

    /** A replay is asked for when there is a connection for events. */
    private static boolean isUnasked(SourceStatus status) {
        return status.replays() == 0
                && status.replayFailures() == 0
                && status.cause() == IndexCause.NO_CONNECTION;
    }

    private Check cached() throws InterruptedException {
        final int length = probe.tokens().length;
        final int size = actualBlockSize();
        final int predicted = Decision.cachedTokens(length / size, length, size);
        final Probe.Usage again;
        try {
            again = probe.send(api, modelOrNull, rank, worker.dataParallelSize() > 1);
        } catch (IOException | EngineApi.AnswerException e) {
            return Check.fail(
                    CACHED,
                    String.valueOf(e.getMessage()),
                    predicted + " of " + length,
                    "see the engine's log");
        }
        if (again.cachedTokens() < 0) {
            return Check.skip(
                    CACHED,
                    "the engine does not say how many tokens were cached",
                    "vLLM says it with --enable-prompt-tokens-details, SGLang with"
                            + " --enable-cache-report; predictions are checked by it");
        }
        return again.cachedTokens() == predicted
                ? Check.pass(CACHED, predicted + " of " + length, predicted + " of " + length)
                : Check.fail(
                        CACHED,
                        again.cachedTokens() + " of " + length,
                        predicted + " of " + length,
                        "is prefix caching on, and is the cache large enough for what runs?");
    }

    private int actualBlockSize() {
        final int learned = follower == null ? 0 : follower.sourceStatus().learnedBlockSize();
        return learned > 0 ? learned : statedBlockSize > 0 ? statedBlockSize : blockSize;
    }
}

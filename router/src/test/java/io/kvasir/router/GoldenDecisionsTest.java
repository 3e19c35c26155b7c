package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.core.load.PredictedPrefixesConfig;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.policy.CostModel;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvFileSource;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;

/**
 * Every field of many decisions, by digest as recorded: what is meant to leave decisions as they
 * are, must leave each of their bits. A difference is found by {@code -Dkvasir.golden=print} on
 * both sides.
 */
class GoldenDecisionsTest {
    private static final int BLOCK_SIZE = 16;
    private static final int MOST_BLOCKS = 40;
    private static final int PROMPTS = 12;
    private static final int LEASES = 24;
    private static final String OWN_COST = "cost by selection-policy=custom";
    private static final List<RoutingMode> MODES =
            List.of(
                    RoutingMode.KV,
                    RoutingMode.ROUND_ROBIN,
                    RoutingMode.RANDOM,
                    RoutingMode.DIRECT);

    /** Where overlaps come from, and what they cost. */
    enum Story {
        /** Overlaps of the caller, at the linear cost. */
        GIVEN,
        /** Overlaps of the caller, at a cost with infinities and none. */
        MODEL,
        /** Events, predictions and bookings, at the linear cost. */
        INDEX
    }

    private final Random random = new Random(20_26);
    private final Decision decision = new Decision();
    private final List<Worker> workers = new ArrayList<>();
    private final int[][] prompts = new int[PROMPTS][];
    private final Deque<Lease> leases = new ArrayDeque<>();
    private final StringBuilder text = new StringBuilder();
    private OverlapScores cached;
    private OverlapScores active;
    private KvRouter router;

    private void build(int fleet, Story story) {
        cached = new OverlapScores(fleet);
        active = new OverlapScores(fleet);
        final RouterConfig.Builder builder =
                KvRouter.builder()
                        .blockSize(BLOCK_SIZE)
                        .maxWorkers(fleet)
                        .maxBlocks(4_096, 1 << 17)
                        .maxActiveRequests(64)
                        .set(RouterSettings.HASH_SEED, 1337L)
                        .set(RouterSettings.STALE_AFTER, Duration.ofHours(1))
                        .random(RandomSource.seeded(1337))
                        .tickedBy(() -> 0);
        if (story == Story.MODEL) {
            builder.costModel(
                    CostModel.each(
                            (all, one) ->
                                    cost(
                                            all.overlapWeight(),
                                            one.prefillBlocks(),
                                            one.decodeBlocks(),
                                            one.activeRequests())));
        } else if (story == Story.INDEX) {
            builder.routedPrefixes(PredictedPrefixesConfig.of(fleet));
        }
        router = builder.build();
        fillPrompts();
        for (int i = 0; i < fleet; i++) {
            workers.add(router.addWorker(WorkerSpec.of(i, "w" + i, "http://w" + i)));
            if (i % 3 != 0) {
                openEvents(workers.get(i), i % 3 == 1, story);
            }
        }
        for (int i = 7; i < fleet; i += 29) {
            router.removeWorker(workers.get(i));
        }
        // a decision beside a writer may see fewer blocks, which is no other decision by design
        Eventually.holds(
                "empty rings",
                () -> router.bookingPipeline().backlog() + router.indexPipeline().backlog() == 0);
    }

    /** As recorded: explanations of a cost of one's own named the linear one. */
    private static String linear(double weight) {
        return "cost = "
                + (weight == Math.rint(weight) ? Long.toString((long) weight) : "" + weight)
                + " · prefill + decode";
    }

    private static double cost(double weight, double prefill, long decode, long requests) {
        if (requests % 11 == 10) {
            return Double.NaN;
        }
        return requests % 11 == 9 ? Double.POSITIVE_INFINITY : weight * prefill - 3 * decode;
    }

    /** Prompts with a common beginning; some are as long as the blocks, others end within one. */
    private void fillPrompts() {
        final int[] common = random.ints(12L * BLOCK_SIZE, 0, 150_000).toArray();
        for (int p = 0; p < PROMPTS; p++) {
            final int tail = random.nextInt(4) == 0 ? 0 : random.nextInt(BLOCK_SIZE);
            prompts[p] = random.ints((long) MOST_BLOCKS * BLOCK_SIZE + tail, 0, 150_000).toArray();
            if (p % 4 != 3) {
                System.arraycopy(common, 0, prompts[p], 0, common.length);
            }
        }
    }

    /** Opens a stream that is exact, or stays without a message. */
    private void openEvents(Worker worker, boolean exact, Story story) {
        final EngineStream stream =
                router.openDirect(worker, EngineMessages.source(worker.name(), BLOCK_SIZE));
        if (!exact) {
            return;
        }
        final int messages = story == Story.INDEX ? 3 : 1;
        for (int i = 0; i < messages; i++) {
            final int[] prompt = prompts[(worker.slot() / 3 + 5 * i) % PROMPTS];
            final int blocks = story == Story.INDEX ? 2 + random.nextInt(MOST_BLOCKS - 2) : 0;
            stream.onMessage(
                    i, EngineMessages.stored(prompt, blocks, BLOCK_SIZE, 1_000_000L * (i + 1)));
        }
        Eventually.holds(
                () -> "events of " + worker,
                () -> worker.state() == IndexState.EXACT && worker.eventSequence() == messages - 1);
    }

    @AfterEach
    void close() {
        router.close();
    }

    @ParameterizedTest
    @CsvFileSource(resources = "golden-decisions.csv", numLinesToSkip = 1)
    void decisionsAreThoseRecorded(int fleet, Story story, int decisions, String sha256)
            throws Exception {
        build(fleet, story);
        final MessageDigest digest = MessageDigest.getInstance("SHA-256");
        for (int i = 0; i < decisions; i++) {
            changeSomething(story);
            decide(story);
            describe(i % 8 == 0);
            if ("print".equals(System.getProperty("kvasir.golden"))) {
                System.out.print(text);
            }
            digest.update(text.toString().getBytes(StandardCharsets.UTF_8));
        }
        assertEquals(sha256, HexFormat.of().formatHex(digest.digest()));
    }

    private void changeSomething(Story story) {
        for (int i = random.nextInt(4); story != Story.INDEX && i > 0; i--) {
            final Worker worker = anyWorker();
            router.board()
                    .add(worker.slot(), random.nextInt(64), random.nextInt(4), random.nextInt(2));
        }
        if (random.nextInt(10) == 0) {
            anyWorker().available(random.nextInt(3) > 0);
        }
    }

    private Worker anyWorker() {
        return workers.get(random.nextInt(workers.size()));
    }

    private void decide(Story story) {
        final RouteRequest request = request();
        text.setLength(0);
        try {
            if (story != Story.INDEX) {
                match(request.tokenCount() / BLOCK_SIZE);
                router.select(request, cached, active, decision);
            } else if (random.nextInt(3) > 0) {
                router.select(request, decision);
            } else {
                reserve(request);
            }
        } catch (RouteException e) {
            text.append(e.kind()).append(' ').append(e.getMessage()).append('\n');
        }
    }

    private RouteRequest request() {
        final int[] prompt = prompts[random.nextInt(PROMPTS)];
        final int length = random.nextInt(3) == 0 ? random.nextInt(prompt.length) : prompt.length;
        final RouteRequest request = router.newRequest().tokens(prompt, length);
        if (random.nextInt(3) == 0) {
            request.mode(MODES.get(random.nextInt(4)));
        }
        if (random.nextInt(4) == 0) {
            request.overlapWeight(random.nextInt(5) * 0.5);
        }
        if (random.nextInt(4) == 0) {
            request.temperature(random.nextInt(3) * 0.25);
        }
        if (random.nextInt(6) == 0) {
            request.pin(anyWorker());
        }
        for (int i = random.nextInt(8) - 4; i > 0; i--) {
            request.exclude(anyWorker());
        }
        return request;
    }

    private void match(int blocks) {
        cached.clear();
        active.clear();
        if (blocks == 0) {
            return;
        }
        final int slots = workers.size();
        for (int i = random.nextInt(4) == 0 ? random.nextInt(2 * slots) : 4; i > 0; i--) {
            addTo(cached, random.nextInt(slots), 1 + random.nextInt(blocks));
            addTo(active, random.nextInt(slots), 1 + random.nextInt(blocks));
        }
        for (int i = random.nextInt(4); i > 0; i--) {
            addSet(random.nextBoolean() ? cached : active, 1 + random.nextInt(blocks));
        }
    }

    private static void addTo(OverlapScores scores, int slot, int depth) {
        if (scores.depth(slot) == 0) {
            scores.add(slot, depth);
        }
    }

    private void addSet(OverlapScores scores, int depth) {
        final long[] slots = new long[(workers.size() + Long.SIZE - 1) / Long.SIZE];
        final int share = 1 + random.nextInt(8);
        for (int slot = 0; slot < workers.size(); slot++) {
            if (scores.depth(slot) == 0 && random.nextInt(share) == 0) {
                slots[slot / Long.SIZE] |= 1L << slot;
            }
        }
        scores.addSet(slots, depth);
    }

    private void reserve(RouteRequest request) throws RouteException {
        if (leases.size() == LEASES) {
            leases.removeFirst().close();
            awaitBookings();
        }
        leases.addLast(router.reserve(request, decision));
        if (random.nextBoolean()) {
            leases.getLast().prefillComplete();
            leases.getLast().outputTokens(random.nextInt(100));
        }
        awaitBookings();
    }

    private void awaitBookings() {
        Eventually.holds("bookings applied", () -> router.bookingPipeline().backlog() == 0);
    }

    private void describe(boolean explained) {
        final Decision d = decision;
        line(d.worker(), d.overlapBlocks(), d.predictedCachedTokens(), d.requestBlocks());
        line(d.requestTokens(), d.cost(), d.eventSequence(), d.mode(), d.overlapWeight());
        line(d.temperature(), d.candidateCount());
        for (int i = 0; i < d.candidateCount(); i++) {
            line(d.candidate(i), d.exclusion(i), d.state(i), d.overlapBlocks(i));
            line(d.activePrefixBlocks(i), d.prefillBlocks(i), d.decodeBlocks(i));
            line(d.activeRequests(i), d.eventSequence(i), d.cost(i));
        }
        if (explained) {
            text.append(
                    d.explain().replace("\r\n", "\n").replace(OWN_COST, linear(d.overlapWeight())));
        }
    }

    private void line(Object... fields) {
        for (Object field : fields) {
            text.append(field).append(' ');
        }
        text.append('\n');
    }
}

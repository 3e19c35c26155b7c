package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.router.client.RoutedClient;
import io.kvasir.router.journal.DecisionJournal;
import io.kvasir.router.journal.JournalRecord;
import io.kvasir.router.journal.WhatIf;
import io.kvasir.router.policy.CostModel;
import io.kvasir.router.policy.Eligibility;
import io.kvasir.router.policy.Picker;
import io.kvasir.router.policy.SelectionPolicy;
import io.kvasir.router.queue.QueueRank;
import io.kvasir.router.queue.RouterQueue;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.SubmissionPublisher;

/** The examples of docs/embedding.md: the lines between the marks stand there, word for word. */
class RoutingExamplesTest {
    private static final int BLOCK_SIZE = 16;

    private final KvRouter router =
            KvRouter.builder().tickedBy(() -> 0).blockSize(BLOCK_SIZE).build();
    private final int[] prompt = new int[8 * BLOCK_SIZE];
    private final Worker idle = router.addWorker(WorkerSpec.of(1, "idle", "http://idle"));
    private final Worker warm = router.addWorker(WorkerSpec.of(2, "warm", "http://warm"));
    private final List<String> sent = new ArrayList<>();

    /** Takes an answer's parts. */
    private static final class Parts implements Flow.Subscriber<String> {
        final List<String> all = new ArrayList<>();
        volatile boolean ended;

        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            subscription.request(Long.MAX_VALUE);
        }

        @Override
        public void onNext(String part) {
            all.add(part);
        }

        @Override
        public void onError(Throwable why) {
            all.add(why.toString());
            ended = true;
        }

        @Override
        public void onComplete() {
            ended = true;
        }
    }

    @BeforeEach
    void theWarmWorkerHoldsHalfOfThePrompt() {
        announce(router, warm, 4);
    }

    private void announce(KvRouter routers, Worker worker, int blocks) {
        final EngineStream stream =
                routers.openDirect(worker, EngineMessages.source(worker.name(), BLOCK_SIZE));
        stream.onMessage(0, EngineMessages.stored(prompt, blocks, BLOCK_SIZE, 1_000));
        Eventually.holds("event 0 of " + worker, worker::ready);
    }

    @AfterEach
    void close() {
        router.close();
    }

    private RouteRequest request() {
        return router.newRequest().tokens(prompt, prompt.length);
    }

    /** An engine's answer of two parts. */
    private Flow.Publisher<String> send(String url, String request) {
        sent.add(url + " " + request);
        return subscriber -> {
            try (SubmissionPublisher<String> parts =
                    new SubmissionPublisher<>(Runnable::run, Flow.defaultBufferSize())) {
                parts.subscribe(subscriber);
                parts.submit("hello");
                parts.submit("world");
            }
        };
    }

    @Test
    void aClientChoosesSendsCountsAndReleases() {
        final String request = "a request";
        final Parts answer = new Parts();
        // example
        RoutedClient<String, String> client =
                new RoutedClient<>(router, (worker, body) -> send(worker.url(), body), part -> 1);
        client.generate(router.newRequest().tokens(prompt, prompt.length), request, answer);
        // example ends
        Eventually.holds("the answer", () -> answer.ended);
        assertEquals(List.of("hello", "world"), answer.all);
        assertEquals(List.of("http://warm a request"), sent);
        assertEquals(0, router.activeLeases());
    }

    @Test
    void theBestWorkerIsAskedForOrBooked() throws RouteException {
        final RouteRequest request = request();
        // example
        BestWorker best = router.bestWorker(request); // books nothing
        router.bestWorker(request, "request-7"); // books under the caller's id
        router.markPrefillComplete("request-7"); // at the first token
        router.free("request-7"); // at the end, whatever it is
        // example ends
        assertSame(warm, best.worker());
        assertEquals(4, best.overlapBlocks());
        assertFalse(router.free("request-7"));
    }

    @Test
    void ofSeveralRoutersTheOneIsAskedThatHoldsMost() throws RouteException {
        try (KvRouter near = KvRouter.builder().blockSize(BLOCK_SIZE).build();
                KvRouter far = KvRouter.builder().blockSize(BLOCK_SIZE).build()) {
            near.addWorker(WorkerSpec.of(1, "near", "http://near"));
            final Worker holder = far.addWorker(WorkerSpec.of(1, "far", "http://far"));
            announce(far, holder, 6);
            final List<KvRouter> routers = List.of(near, far);
            // example
            KvRouter chosen = routers.getFirst();
            int most = -1;
            for (KvRouter each : routers) {
                int held = each.findMatches(each.newRequest().tokens(prompt, prompt.length)).max();
                if (held > most) {
                    most = held;
                    chosen = each;
                }
            }
            BestWorker best = chosen.bestWorker(chosen.newRequest().tokens(prompt, prompt.length));
            // example ends
            assertSame(far, chosen);
            assertSame(holder, best.worker());
        }
    }

    @Test
    void theFirstTokenIsSoonest() throws RouteException {
        final RouteRequest request = request();
        final Decision decision = new Decision();
        router.reserve("other", router.newRequest().tokens(prompt, 96).pin(warm), decision);
        EngineMessages.awaitLoad(router, warm, 1, 6);
        // example
        PotentialLoad soonest =
                router.potentialLoads(request).stream()
                        .min(Comparator.comparingDouble(PotentialLoad::potentialPrefillTokens))
                        .orElseThrow();
        Lease lease = router.reserve(request.pin(soonest.worker()), decision);
        // example ends
        // warm: 32 before it and 64 that it does not hold; idle: all 128
        assertEquals(96, soonest.potentialPrefillTokens());
        assertSame(warm, lease.worker());
        lease.close();
    }

    @Test
    void reuseIsGreatestOrLoadIsBalanced() throws RouteException {
        final Decision decision = new Decision();
        final RouteRequest request = request();
        for (int i = 0; i < 3; i++) {
            final int[] other = new int[96];
            Arrays.fill(other, 7 + i);
            router.reserve("other" + i, router.newRequest().tokens(other, 96).pin(warm), decision);
            router.markPrefillComplete("other" + i);
        }
        EngineMessages.awaitLoad(router, warm, 3, 18);
        // example
        router.select(request.overlapWeight(100), decision); // a cached block outweighs any load
        Worker reuse = decision.worker();
        router.select(request.overlapWeight(0), decision); // blocks in use alone
        Worker balance = decision.worker();
        // example ends
        assertSame(warm, reuse);
        assertSame(idle, balance);
    }

    @Test
    void aPolicyOfOnesOwnDecides() throws RouteException {
        // example
        Eligibility nearby =
                one ->
                        one.worker().labels().getOrDefault("zone", "a").equals("a")
                                ? Eligibility.Verdict.ELIGIBLE
                                : Eligibility.Verdict.INELIGIBLE;
        CostModel tokens = // what is waiting there, and what of this prompt is not cached
                CostModel.each(
                        (all, one) ->
                                one.prefillTokens() + all.requestTokens() - one.cachedTokens());
        Picker steady = // the first of the cheapest, instead of any of them
                (all, costs, random) -> {
                    int best = 0;
                    for (int n = 1; n < all.count(); n++) {
                        best = costs[n] < costs[best] ? n : best;
                    }
                    return best;
                };
        SelectionPolicy policy = new SelectionPolicy("nearby-tokens", nearby, tokens, steady);
        KvRouter own = KvRouter.builder().blockSize(BLOCK_SIZE).selectionPolicy(policy).build();
        // example ends
        try (own) {
            own.addWorker(WorkerSpec.of(1, "far", "http://far").labelled(Map.of("zone", "b")));
            final Worker first = own.addWorker(WorkerSpec.of(2, "first", "http://first"));
            own.addWorker(WorkerSpec.of(3, "second", "http://second"));
            final Decision decision = new Decision();
            own.select(own.newRequest().tokens(prompt, prompt.length), decision);
            assertSame(first, decision.worker());
            assertEquals(prompt.length, decision.cost());
            assertEquals(Decision.Exclusion.INELIGIBLE, decision.exclusion(0));
        }
    }

    @Test
    void aSessionStaysWithItsWorker() throws RouteException {
        try (KvRouter router =
                KvRouter.builder()
                        .tickedBy(() -> 0)
                        .blockSize(BLOCK_SIZE)
                        .set(RouterSettings.SESSION_TTL, Duration.ofMinutes(5))
                        .build()) {
            router.addWorker(WorkerSpec.of(1, "one", "http://one"));
            router.addWorker(WorkerSpec.of(2, "two", "http://two"));
            final RouteRequest request = router.newRequest().tokens(prompt, prompt.length);
            final Decision decision = new Decision();
            // example
            Lease first = router.reserve(request.session("conversation-7"), decision);
            Lease next = router.reserve(request.session("conversation-7"), decision);
            // example ends
            assertSame(first.worker(), next.worker());
            assertTrue(decision.bySession());
            first.close();
            next.close();
        }
    }

    @Test
    void aRequestWaitsUntilAWorkerHasRoom() throws Exception {
        try (KvRouter router =
                KvRouter.builder()
                        .blockSize(BLOCK_SIZE)
                        .set(RouterSettings.QUEUE_PREFILL_TOKENS, 0L)
                        .build()) {
            router.addWorker(WorkerSpec.of(1, "one", "http://one"));
            final Lease first =
                    router.reserve(
                            router.newRequest().tokens(prompt, prompt.length), new Decision());
            // example
            try (RouterQueue queue = RouterQueue.start(router)) {
                QueueRank urgent = new QueueRank(5, 0, QueueRank.NO_DEADLINE);
                CompletableFuture<Lease> booked =
                        queue.admit(request -> request.tokens(prompt, prompt.length), urgent);
                first.prefillComplete(); // of the one before it; on any thread
                booked.thenAccept(lease -> sent.add(lease.worker().url())).get();
                booked.get().close();
            }
            // example ends
            assertEquals(List.of("http://one"), sent);
            first.close();
        }
    }

    @Test
    void theJournalSaysWhy() throws RouteException {
        final RouteRequest request = request();
        final Decision decision = new Decision();
        final StringBuilder out = new StringBuilder();
        // example
        Lease lease = router.reserve(request.id("request-7"), decision);
        DecisionJournal journal = router.journal();
        JournalRecord record = journal.newRecord(); // reusable, as the decision is
        journal.find("request-7", journal.end(), record);
        out.append(record.worker(0) + " costs " + record.cost(0) + ", then " + record.worker(1));
        WhatIf alternative = new WhatIf(WhatIf.linear(4), journal.blockSize()); // weight 4
        alternative.add(record);
        // example ends
        assertTrue(out.toString().startsWith(decision.worker().name() + " costs "), out.toString());
        assertEquals(1, alternative.decisions());
        lease.close();
    }

    @Test
    void anEnginesOwnHitsSayWhatTheIndexIsWorth() throws RouteException {
        final Lease lease = router.reserve(request(), new Decision());
        final int cached = 0;
        final StringBuilder out = new StringBuilder();
        // example
        lease.engineCachedTokens(cached); // by the usage of the whole answer
        Worker worker = lease.worker();
        out.append(worker.state() + " by " + worker.cause() + ", credit " + worker.indexCredit());
        // example ends
        assertEquals(
                worker.state() + " by " + worker.cause() + ", credit " + worker.indexCredit(),
                out.toString());
        assertTrue(worker.indexCredit() > 0, out.toString());
        lease.close();
    }

    @Test
    void whatTheIndexHoldsIsShown() throws Exception {
        final RouteRequest request = request();
        final StringBuilder out = new StringBuilder();
        // example
        PrefixMatches matches = router.findMatches(request);
        matches.matches().forEach(match -> out.append(match.worker() + ": " + match.blocks()));
        router.dumpEvents(out); // JSON, one event a line
        // example ends
        assertEquals(4, matches.max());
        assertTrue(out.toString().startsWith("warm/0: 4[\n{\"worker_id\":2,"), out.toString());
    }
}

package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.load.EngineLoad;
import io.kvasir.core.load.OthersLoad;
import io.kvasir.router.journal.JournalRecord;
import io.kvasir.router.journal.WhatIf;
import io.kvasir.router.load.BusyState;
import io.kvasir.router.load.LoadOutcome;
import io.kvasir.router.load.LoadReading;
import io.kvasir.router.load.LoadSource;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.SessionMode;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

/**
 * Every mode, sessions, busy limits, leases of full workers and reports of engines against a plain
 * account of the fleet: which workers may be chosen, which one is, why a request is refused, what
 * is booked, what the journal has of it.
 */
class ModesModelTest {
    private static final int BLOCK = 16;
    private static final int STEPS = 100;
    private static final int SLOTS = 6;
    private static final long LEASE_NS = 1_000_000_000;
    private static final long TTL_NS = 5_000_000_000L;
    private static final long MOST_WAITING = 4;
    private static final double MOST_USAGE = 0.75;
    private static final double CLOSE = 1e-9;

    @Tag("trials")
    @Test
    void choicesAreThoseOfThePlainAccount() throws RouteException {
        final long seed = Seeds.next("ModesModelTest");
        for (int trial = 0; trial < Trials.of(2, 30); trial++) {
            final Model model = new Model(seed + trial);
            try {
                model.run();
            } catch (RuntimeException | AssertionError e) {
                throw new AssertionError(
                        "seed=" + (seed + trial) + ", step " + model.step + ": " + e.getMessage(),
                        e);
            } finally {
                model.router.close();
            }
        }
    }

    /** A report that counts. */
    private record Report(EngineLoad load, OthersLoad others, long order, long atNs) {}

    /** What is to be known of a worker. */
    private static final class Truth {
        private final Worker worker;
        private final Map<LoadSource, Report> reports = new EnumMap<>(LoadSource.class);
        private boolean available = true;
        private long saidBlocks;
        private long saidTokens;
        private long reportedBlocks;
        private long reportedTokens;
        private long mark; // 0 for none
        private long untilNs;

        Truth(Worker worker) {
            this.worker = worker;
        }

        long kvBlocks() {
            return saidBlocks > 0 ? saidBlocks : reportedBlocks;
        }

        long batchTokens() {
            return saidTokens > 0 ? saidTokens : reportedTokens;
        }

        boolean isFull(long nowNs) {
            return mark != 0 && untilNs > nowNs;
        }

        void mark(long number, long endNs) {
            untilNs = mark == 0 ? endNs : Math.max(untilNs, endNs);
            mark = number;
        }

        private Report latest(Predicate<EngineLoad> says) {
            return reports.values().stream()
                    .filter(each -> says.test(each.load))
                    .max(Comparator.comparingLong(Report::atNs))
                    .orElse(null);
        }

        long othersTokens() {
            final Report by = latest(load -> load.waiting() >= 0 || load.waitingTokens() >= 0);
            return by == null ? 0 : by.others.prefillTokens();
        }

        long othersBlocks() {
            final Report by = latest(load -> load.usedBlocks() >= 0);
            return by == null ? 0 : by.others.blocks();
        }

        long othersRequests() {
            final Report by = latest(load -> load.running() >= 0 || load.waiting() >= 0);
            return by == null ? 0 : by.others.requests();
        }
    }

    /** A booking. */
    private static final class Booked {
        private final Lease lease;
        private final Truth at;
        private final int tokens;
        private final int blocks;
        private boolean prefilled;
        private long probe; // mark that it was let in by; 0 for none
        private final long claimedNs;

        Booked(Lease lease, Truth at, int tokens, int blocks, long probe, long claimedNs) {
            this.lease = lease;
            this.at = at;
            this.tokens = tokens;
            this.blocks = blocks;
            this.probe = probe;
            this.claimedNs = claimedNs;
        }
    }

    /** What a session is bound to. */
    private record Bound(Truth to, long endNs) {}

    /** One run. */
    private static final class Model {
        private final Random random;
        private final KvRouter router;
        private final Decision decision = new Decision();
        private final List<Truth> fleet = new ArrayList<>(); // in order of registration
        private final List<Booked> booked = new ArrayList<>();
        private final List<Booked> ended = new ArrayList<>(); // their leases may be called on
        private final Map<String, Bound> bound = new HashMap<>();
        private long nowNs;
        private long marks;
        private long turn;
        private int names;
        private int prompts;

        // settings
        private long mostPrefill;
        private double decodeShare;
        private double prefillShare;
        private long room;
        private double factor;
        private SessionMode sessions;
        private RoutingMode usualMode;
        private long sessionNs;

        private int step;

        // of one request
        private Truth pin;
        private boolean anyRank;
        private Set<Worker> excluded;
        private RoutingMode mode;
        private String session;
        private boolean onlyWithRoom;

        Model(long seed) {
            random = new Random(seed);
            nowNs = random.nextInt(3) == 0 ? -LEASE_NS : random.nextInt(1_000_000);
            router =
                    KvRouter.builder()
                            .tickedBy(() -> nowNs)
                            .blockSize(BLOCK)
                            .maxWorkers(SLOTS)
                            .maxBlocks(1_024, 1_024)
                            .random(RandomSource.seeded(seed))
                            .set(RouterSettings.BUSY_LEASE, Duration.ofNanos(LEASE_NS))
                            .set(RouterSettings.ENGINE_LOAD, true)
                            .set(RouterSettings.ENGINE_LOAD_TTL, Duration.ofNanos(TTL_NS))
                            .set(RouterSettings.ENGINE_WAITING_LIMIT, MOST_WAITING)
                            .set(RouterSettings.ENGINE_USAGE_LIMIT, MOST_USAGE)
                            .set(RouterSettings.DECISION_JOURNAL, 4)
                            .set(RouterSettings.DECISION_JOURNAL_CANDIDATES, 3)
                            .build();
            set();
        }

        /** Changes what may be changed while it runs. */
        private void set() {
            mostPrefill = random.nextInt(3) * 1_000L;
            decodeShare = random.nextInt(3) * 0.25;
            prefillShare = random.nextInt(3);
            room = random.nextBoolean() ? -1 : 800;
            factor = 1 + random.nextInt(4) * 0.25;
            sessions = random.nextBoolean() ? SessionMode.HARD : SessionMode.SOFT;
            usualMode = random.nextBoolean() ? RoutingMode.KV : RoutingMode.LEAST_LOADED;
            final int sessionS = random.nextInt(6) == 0 ? 0 : 1 + random.nextInt(10);
            sessionNs = TimeUnit.SECONDS.toNanos(sessionS);
            if (sessionS == 0) {
                bound.clear();
            }
            router.change(
                    router.settings()
                            .with(RouterSettings.MODE, usualMode)
                            .with(RouterSettings.BUSY_PREFILL_TOKENS, mostPrefill)
                            .with(RouterSettings.BUSY_DECODE_BLOCKS, decodeShare)
                            .with(RouterSettings.BUSY_PREFILL_SHARE, prefillShare)
                            .with(RouterSettings.QUEUE_PREFILL_TOKENS, room)
                            .with(RouterSettings.HASH_LOAD_FACTOR, factor)
                            .with(RouterSettings.SESSION_TTL, Duration.ofSeconds(sessionS))
                            .with(RouterSettings.SESSION_MODE, sessions));
        }

        private void run() throws RouteException {
            for (step = 0; step < STEPS; step++) {
                switch (random.nextInt(16)) {
                    case 0 -> add();
                    case 1 -> change();
                    case 2 -> report();
                    case 3 -> pass();
                    case 4, 5, 6 -> carryOn();
                    case 7 -> full();
                    case 8 -> {
                        if (random.nextInt(3) == 0) {
                            set();
                        }
                    }
                    default -> ask();
                }
                check();
            }
            nowNs += 2 * TTL_NS;
            router.tick(nowNs);
            booked.forEach(each -> each.lease.close());
            awaitApplied();
            for (Truth each : fleet) {
                assertEquals(0, each.worker.activeRequests());
                assertEquals(0, each.worker.activeBlocks());
                assertEquals(0, each.worker.prefillTokens());
                assertEquals(null, each.worker.reportedLoadOrNull());
            }
            assertEquals(0, router.activeLeases());
        }

        private void awaitApplied() {
            Eventually.holds("an empty ring", () -> router.bookingPipeline().backlog() == 0);
        }

        private void add() {
            if (fleet.size() < SLOTS) {
                final int rank = names++; // a server has several
                final int id = rank % 4;
                fleet.add(
                        new Truth(
                                router.addWorker(
                                        new WorkerSpec(id, "w" + id, "http://w", rank, null))));
            }
        }

        private Truth any() {
            return fleet.get(random.nextInt(fleet.size()));
        }

        private void change() {
            if (fleet.isEmpty()) {
                return;
            }
            final Truth one = any();
            switch (random.nextInt(4)) {
                case 0 -> {
                    fleet.remove(one);
                    router.removeWorker(one.worker);
                    awaitApplied();
                    booked.removeIf(each -> each.at == one && ended.add(each));
                }
                case 1 -> {
                    one.available = !one.available;
                    one.worker.available(one.available);
                }
                default -> {
                    one.saidBlocks = random.nextInt(3) * 60L;
                    one.saidTokens = random.nextInt(3) * 500L;
                    one.worker.capacity(one.saidBlocks, one.saidTokens);
                }
            }
        }

        private void full() {
            if (fleet.isEmpty()) {
                return;
            }
            final Truth one = any();
            final long askedNs = random.nextLong(-LEASE_NS, 4 * LEASE_NS);
            one.worker.full("test", Duration.ofNanos(askedNs));
            one.mark(++marks, nowNs + Math.max(LEASE_NS, askedNs));
        }

        private void pass() {
            nowNs +=
                    switch (random.nextInt(4)) {
                        case 0 -> LEASE_NS;
                        case 1 -> random.nextLong(TTL_NS);
                        default -> random.nextLong(LEASE_NS);
                    };
            if (random.nextBoolean()) {
                router.tick(nowNs);
                awaitApplied();
                fleet.forEach(this::expire);
            }
        }

        private void expire(Truth one) {
            one.reports.values().removeIf(each -> nowNs - each.atNs > TTL_NS);
        }

        private double number(int bound) {
            return switch (random.nextInt(40)) {
                case 0 -> Double.NaN;
                case 1 -> -1;
                case 2 -> Double.POSITIVE_INFINITY;
                case 3 -> 1e18;
                default -> random.nextInt(bound) + random.nextInt(2) * 0.5;
            };
        }

        private void report() {
            if (fleet.isEmpty()) {
                return;
            }
            nowNs++; // no two reports at once
            final Truth one = any();
            final LoadSource source = List.of(LoadSource.values()).get(random.nextInt(4));
            final LoadReading reading = new LoadReading();
            if (random.nextBoolean()) {
                reading.running(number(6));
            }
            if (random.nextBoolean()) {
                reading.waiting(number(6));
            }
            if (random.nextInt(3) == 0) {
                reading.waitingTokens(number(600));
            }
            if (random.nextBoolean()) {
                reading.usedBlocks(number(60));
            } else if (random.nextBoolean()) {
                reading.usage(number(1));
            }
            if (random.nextInt(3) == 0) {
                reading.blocks(number(100));
            }
            if (random.nextInt(3) == 0) {
                reading.batchTokens(number(1_000));
            }
            final long order = random.nextInt(5);
            final LoadOutcome expected;
            final Report before = one.reports.get(source);
            if (reading.problemOrNull() != null) {
                expected = LoadOutcome.BAD_VALUE;
            } else if (reading.isEmpty()) {
                expected = LoadOutcome.EMPTY;
            } else if (before != null && nowNs - before.atNs <= TTL_NS && order < before.order) {
                expire(one);
                expected = LoadOutcome.OLDER;
            } else {
                expire(one);
                expected = LoadOutcome.TAKEN;
                take(one, source, reading, order);
            }
            assertEquals(expected, one.worker.reportLoad(source, order, reading));
        }

        private void take(Truth one, LoadSource source, LoadReading reading, long order) {
            final EngineLoad load = reading.load(one.kvBlocks());
            one.reports.put(
                    source,
                    new Report(
                            load,
                            OthersLoad.of(
                                    load,
                                    bookedTokens(one),
                                    bookedBlocks(one),
                                    bookedRequests(one),
                                    BLOCK),
                            order,
                            nowNs));
            final boolean used =
                    load.usedBlocks() >= 0
                            && load.blocks() > 0
                            && load.usedBlocks() > MOST_USAGE * load.blocks();
            if (load.waiting() > MOST_WAITING || used) {
                one.mark(++marks, nowNs + LEASE_NS);
            }
            final EngineLoad stated = reading.load(0);
            one.reportedBlocks = stated.blocks() > 0 ? stated.blocks() : one.reportedBlocks;
            one.reportedTokens =
                    stated.batchTokens() > 0 ? stated.batchTokens() : one.reportedTokens;
        }

        private long bookedTokens(Truth one) {
            return booked.stream()
                    .filter(each -> each.at == one && !each.prefilled)
                    .mapToLong(each -> each.tokens)
                    .sum();
        }

        private long bookedBlocks(Truth one) {
            return booked.stream()
                    .filter(each -> each.at == one)
                    .mapToLong(each -> each.blocks)
                    .sum();
        }

        private long bookedRequests(Truth one) {
            return booked.stream().filter(each -> each.at == one).count();
        }

        private long tokens(Truth one) {
            return bookedTokens(one) + one.othersTokens();
        }

        private long blocks(Truth one) {
            return bookedBlocks(one) + one.othersBlocks();
        }

        private long requests(Truth one) {
            return bookedRequests(one) + one.othersRequests();
        }

        private double load(Truth one) {
            return (double) tokens(one) / BLOCK + blocks(one);
        }

        private void carryOn() {
            final List<Booked> from = random.nextInt(8) == 0 ? ended : booked;
            if (from.isEmpty()) {
                return;
            }
            final Booked one = from.get(random.nextInt(from.size()));
            switch (random.nextInt(5)) {
                case 0, 1 -> {
                    one.lease.prefillComplete();
                    if (one.probe != 0 && one.probe == one.at.mark && !one.prefilled) {
                        one.at.mark = 0;
                    }
                    one.prefilled = true;
                }
                case 2 -> {
                    one.lease.workerFailed();
                    one.probe = 0;
                }
                default -> {
                    one.lease.close();
                    if (one.probe != 0
                            && one.probe == one.at.mark
                            && one.at.untilNs == one.claimedNs + LEASE_NS) {
                        one.at.untilNs = one.claimedNs;
                    }
                    one.probe = 0;
                    if (booked.remove(one)) {
                        ended.add(one);
                    }
                }
            }
        }

        private boolean isMeant(Truth one) {
            return pin == null
                    || pin == one
                    || (anyRank && pin.worker.name().equals(one.worker.name()));
        }

        private boolean isUsable(Truth one) {
            return one.available && isMeant(one) && !excluded.contains(one.worker);
        }

        private boolean isBusy(Truth one) {
            return (mostPrefill > 0 && tokens(one) > mostPrefill)
                    || isBeyond(blocks(one), decodeShare, one.kvBlocks())
                    || isBeyond(tokens(one), prefillShare, one.batchTokens())
                    || one.isFull(nowNs);
        }

        private static boolean isBeyond(long load, double share, long capacity) {
            return share > 0 && capacity > 0 && load > share * capacity;
        }

        private RouteRequest request() {
            final int[] prompt = new int[1 + random.nextInt(400)];
            prompt[0] = ++prompts;
            final RouteRequest request = router.newRequest().tokens(prompt, prompt.length);
            pin = null;
            anyRank = false;
            if (!fleet.isEmpty() && random.nextInt(5) == 0) {
                pin = any();
                anyRank = random.nextBoolean();
                var _ = anyRank ? request.pinAnyRank(pin.worker) : request.pin(pin.worker);
            }
            excluded = new HashSet<>();
            while (!fleet.isEmpty() && random.nextInt(3) == 0) {
                final Worker out = any().worker;
                request.exclude(out);
                excluded.add(out);
            }
            final int wanted = random.nextInt(RoutingMode.values().length + 1);
            mode = wanted == 0 ? null : List.of(RoutingMode.values()).get(wanted - 1);
            request.mode(mode);
            mode = mode == null ? usualMode : mode;
            mode = mode == RoutingMode.DIRECT && anyRank ? RoutingMode.KV : mode;
            session = random.nextBoolean() ? "s" + random.nextInt(6) : null;
            request.session(session);
            onlyWithRoom = random.nextInt(6) == 0;
            request.onlyWithRoom(onlyWithRoom);
            return request;
        }

        private void ask() throws RouteException {
            awaitApplied();
            final RouteRequest request = request();
            final List<Truth> usable = fleet.stream().filter(this::isUsable).toList();
            final List<Truth> open = usable.stream().filter(each -> !isBusy(each)).toList();
            final RouteException.Kind refusal = refusalOrNull(usable, open);
            final int how = random.nextInt(4);
            Lease lease = null;
            try {
                switch (how) {
                    case 0 -> router.select(request, decision);
                    case 1 -> router.peek(request, decision);
                    default -> lease = router.reserve(request, decision);
                }
            } catch (RouteException e) {
                assertEquals(refusal, e.kind(), e::getMessage);
                assertFalse(decision.explain().isEmpty());
                if (refusal == RouteException.Kind.ALL_WORKERS_BUSY) {
                    final long retryNs =
                            usable.stream()
                                    .filter(each -> each.isFull(nowNs))
                                    .mapToLong(each -> each.untilNs - nowNs)
                                    .min()
                                    .orElse(0);
                    assertEquals(retryNs, e.retryNs());
                }
                return;
            }
            assertEquals(null, refusal, () -> "chosen: " + decision.worker());
            checkExclusions(open);
            final Truth chosen =
                    fleet.stream()
                            .filter(each -> each.worker == decision.worker())
                            .findFirst()
                            .orElseThrow();
            assertTrue(open.contains(chosen), () -> chosen.worker + " is not open");
            checkChoice(request, open, chosen, how == 1);
            if (lease != null) {
                journaled(open, chosen);
                booked(lease, request, chosen);
            }
        }

        private RouteException.Kind refusalOrNull(List<Truth> usable, List<Truth> open) {
            if (open.isEmpty()) {
                final long failed =
                        fleet.stream()
                                .filter(each -> isMeant(each) && excluded.contains(each.worker))
                                .count();
                return !usable.isEmpty()
                        ? RouteException.Kind.ALL_WORKERS_BUSY
                        : pin != null
                                ? RouteException.Kind.PINNED_UNAVAILABLE
                                : failed > 0
                                        ? RouteException.Kind.ALL_EXCLUDED
                                        : RouteException.Kind.NO_WORKERS;
            }
            if (onlyWithRoom && room >= 0 && open.stream().allMatch(each -> tokens(each) > room)) {
                return RouteException.Kind.NO_ROOM;
            }
            return mode == RoutingMode.DIRECT && pin == null ? RouteException.Kind.INVALID : null;
        }

        private void checkExclusions(List<Truth> open) {
            assertEquals(fleet.size(), decision.candidateCount());
            for (Truth each : fleet) {
                assertEquals(
                        open.contains(each),
                        decision.exclusion(each.worker) == Decision.Exclusion.NONE,
                        () -> each.worker + ": " + decision.exclusion(each.worker));
            }
            assertTrue(decision.explain().contains(decision.worker().toString()));
        }

        private void checkChoice(
                RouteRequest request, List<Truth> open, Truth chosen, boolean peeked) {
            final Bound stays = session == null ? null : bound.get(session);
            final double least = open.stream().mapToDouble(this::load).min().orElseThrow();
            final boolean bySession =
                    mode != RoutingMode.DIRECT
                            && mode != RoutingMode.CONSISTENT_HASH
                            && stays != null
                            && stays.endNs > nowNs
                            && open.contains(stays.to)
                            && (sessions == SessionMode.HARD
                                    || load(stays.to) - decision.requestBlocks() <= least);
            assertEquals(bySession, decision.bySession(), "by its session");
            if (bySession) {
                assertSame(stays.to, chosen);
                return;
            }
            switch (mode) {
                case KV -> {
                    for (Truth each : open) {
                        assertTrue(cost(request, chosen) <= cost(request, each) + CLOSE);
                    }
                }
                case ROUND_ROBIN -> {
                    final List<Truth> inTurn =
                            open.stream()
                                    .sorted(Comparator.comparingInt(each -> each.worker.slot()))
                                    .toList();
                    assertSame(inTurn.get((int) (turn % inTurn.size())), chosen);
                    turn += peeked ? 0 : 1;
                }
                case LEAST_LOADED -> assertEquals(least, load(chosen), CLOSE);
                case LEAST_CONNECTIONS ->
                        assertEquals(
                                open.stream().mapToLong(this::requests).min().orElseThrow(),
                                requests(chosen));
                case POWER_OF_TWO ->
                        assertTrue(
                                open.size() == 1
                                        || open.stream()
                                                .anyMatch(
                                                        each ->
                                                                each != chosen
                                                                        && isNoBetter(
                                                                                each, chosen)),
                                "the worst of all");
                case CONSISTENT_HASH -> assertSame(hashed(request, open), chosen);
                case DIRECT -> assertSame(pin, chosen);
                case RANDOM -> {}
            }
        }

        private boolean isNoBetter(Truth one, Truth than) {
            final int order = Long.compare(requests(one), requests(than));
            return order > 0 || (order == 0 && load(one) >= load(than));
        }

        private Truth hashed(RouteRequest request, List<Truth> open) {
            final long running = open.stream().mapToLong(this::requests).sum();
            final double most = Math.ceil(factor * (running + 1) / open.size());
            return open.stream()
                    .filter(each -> requests(each) < most)
                    .max(
                            (a, b) ->
                                    Long.compareUnsigned(
                                            HashSelector.weight(request.affinityKey(), a.worker),
                                            HashSelector.weight(request.affinityKey(), b.worker)))
                    .orElseThrow();
        }

        private double cost(RouteRequest request, Truth one) {
            final double cost =
                    (double) (tokens(one) + request.tokenCount()) / BLOCK
                            + blocks(one)
                            + decision.requestBlocks();
            assertEquals(
                    cost, decision.cost(fleet.indexOf(one)), CLOSE, () -> "cost of " + one.worker);
            return cost;
        }

        private void journaled(List<Truth> open, Truth chosen) {
            final JournalRecord record = router.journal().newRecord();
            assertTrue(router.journal().read(router.journal().end() - 1, record));
            assertEquals(chosen.worker.name(), record.worker(0));
            assertEquals(chosen.worker.dpRank(), record.dpRank(0));
            assertEquals(open.size(), record.candidates());
            assertEquals(Math.min(3, open.size()), record.listed());
            assertEquals(decision.bySession(), record.isBySession());
            for (int i = 2; i < record.listed(); i++) {
                assertTrue(record.cost(i - 1) <= record.cost(i));
            }
            for (int i = 0; i < record.listed(); i++) {
                final int listed = i;
                assertTrue(
                        open.stream()
                                .anyMatch(
                                        each ->
                                                each.worker.name().equals(record.worker(listed))
                                                        && each.worker.dpRank()
                                                                == record.dpRank(listed)));
            }
            if (mode == RoutingMode.KV) {
                final WhatIf same = new WhatIf(WhatIf.linear(record.weight()), BLOCK);
                same.add(record);
                assertEquals(0, same.changed(), "by the same configuration");
            }
        }

        private void booked(Lease lease, RouteRequest request, Truth chosen) {
            final long probe = chosen.mark;
            if (probe != 0) {
                chosen.untilNs = nowNs + LEASE_NS;
            }
            booked.add(
                    new Booked(
                            lease,
                            chosen,
                            request.tokenCount(),
                            decision.requestBlocks(),
                            probe,
                            nowNs));
            if (session != null && sessionNs > 0 && mode != RoutingMode.CONSISTENT_HASH) {
                bound.put(session, new Bound(chosen, nowNs + sessionNs));
            }
        }

        private void check() {
            awaitApplied();
            assertEquals(booked.size(), router.activeLeases());
            for (Truth each : fleet) {
                final Worker worker = each.worker;
                assertEquals(bookedTokens(each), worker.prefillTokens(), worker::toString);
                assertEquals(bookedBlocks(each), worker.activeBlocks(), worker::toString);
                assertEquals(bookedRequests(each), worker.activeRequests(), worker::toString);
                assertEquals(
                        each.mark == 0
                                ? BusyState.OPEN
                                : each.isFull(nowNs) ? BusyState.FULL : BusyState.HALF_OPEN,
                        worker.busyState(),
                        worker::toString);
            }
            assertEquals(
                    bound.values().stream().filter(each -> each.endNs > nowNs).count(),
                    router.sessions());
        }
    }
}

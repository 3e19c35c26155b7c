package io.kvasir.sim.batch;

import io.kvasir.sim.cache.BlockPool;
import io.kvasir.sim.config.HandoffFault;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.events.EventBatch;
import io.kvasir.sim.events.EventPublisher;
import io.kvasir.sim.state.HandoffState;
import io.kvasir.sim.state.SimState;

import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.function.LongConsumer;

/**
 * Scheduler of one data-parallel rank, step by step as vLLM V1: running requests first, then
 * waiting ones in arrival order while there are slots, tokens and blocks; prompts in chunks.
 *
 * <p>Blocks are looked up, evicted, taken and named when a step begins; its events are published
 * when it ends, before its tokens are handed out. Time is simulated and comes in as data; the clock
 * only stamps messages. Owned by the thread of the step loop.
 */
public final class RankScheduler {
    public static final long NOTHING_TO_DO = Long.MAX_VALUE;
    private static final int MUST_WAIT = -1;

    private final int index;
    private final SimConfig config;
    private final InstantSource stamps;
    private final List<Gate> touched;
    private final EventBatch events = new EventBatch(true);
    private final ArrayDeque<SimRequest> waiting = new ArrayDeque<>();
    private final List<SimRequest> running = new ArrayList<>();
    private final double stepNs;
    private final double prefillTokenNs;
    private final int[] hits;
    private final HeldPrefills held = new HeldPrefills();
    private final PullQueue pulls;
    private final InjectedFaults faults;
    private final KvMemory memory; // null for blocks without bytes

    private BlockPool pool;
    private RankStats stats;
    private EventPublisher publisher;
    private long life;
    private long nextSequence;
    private int messagesToDrop;
    private long droppedMessages;
    private boolean stepping;
    private long stepEndNs;

    /** Makes an idle rank of blocks without bytes; {@link #begin} must follow. */
    public RankScheduler(
            int index,
            SimConfig config,
            InstantSource stamps,
            List<Gate> touched,
            KvPull.Carrier carrier,
            InjectedFaults faults) {
        this(index, config, stamps, touched, carrier, faults, null);
    }

    /**
     * Makes an idle rank; {@link #begin} must follow.
     *
     * @param stamps when event messages were made
     * @param touched receives the gates of requests that made progress
     * @param carrier brings blocks from other engines
     * @param faults what goes wrong
     * @param memory bytes of the blocks, or null
     */
    public RankScheduler(
            int index,
            SimConfig config,
            InstantSource stamps,
            List<Gate> touched,
            KvPull.Carrier carrier,
            InjectedFaults faults,
            KvMemory memory) {
        this.index = index;
        this.config = config;
        this.stamps = stamps;
        this.touched = touched;
        this.stepNs = config.interTokenMillis() * 1e6;
        this.prefillTokenNs = 1e9 / config.prefillTokensPerSecond();
        this.hits = new int[config.blocks()];
        this.pulls = new PullQueue(carrier, config);
        this.faults = faults;
        this.memory = memory;
    }

    /** Begins a life with an empty pool; requests of the former one are broken. */
    public void begin(long newLife, EventPublisher newPublisher) {
        for (SimRequest request : running) {
            tell(request, SimRequest.Phase.BROKEN);
        }
        for (SimRequest request : waiting) {
            tell(request, SimRequest.Phase.BROKEN);
        }
        pulls.forEach(request -> tell(request, SimRequest.Phase.BROKEN));
        for (SimRequest request : held.clear()) {
            if (request.phase != SimRequest.Phase.FINISHED) {
                tell(request, SimRequest.Phase.BROKEN);
            }
        }
        running.clear();
        waiting.clear();
        pulls.clear();
        events.clear();
        pool = new BlockPool(config.blocks(), events::removed);
        stats = new RankStats();
        publisher = newPublisher;
        life = newLife;
        nextSequence = 0;
        droppedMessages = 0;
        stepping = false;
    }

    /** Queues a request; one of a former life is broken at once. */
    public void submit(SimRequest request) {
        if (request.life != life) {
            tell(request, SimRequest.Phase.BROKEN);
            return;
        }
        final int tokens = request.script.tokens().length;
        request.blocks = new int[blocksFor(tokens)];
        request.readyNs = request.arrivalNs;
        waiting.addLast(request);
    }

    void abort(SimRequest request, long nowNs) {
        if (request.life != life) {
            return;
        }
        final boolean hasBlocks =
                running.remove(request)
                        || (request.pull != null && pulls.remove(request))
                        || (request.hold != null && held.remove(request));
        if (hasBlocks || waiting.remove(request)) {
            free(request);
            roomSince(nowNs);
            stats.aborted++;
        }
    }

    /** Those that wait begin no earlier than there is room for them. */
    private void roomSince(long nowNs) {
        if (!stepping) {
            stepEndNs = Math.max(stepEndNs, nowNs);
        }
    }

    /** Offers what is held under a key, see {@link HeldPrefills#offer}. */
    void offer(String key, boolean wait, CompletableFuture<PullOffer> answer) {
        held.offer(key, wait, answer);
    }

    /** Forgets decodes that do not wait any more, see {@link HeldPrefills#withdraw}. */
    void withdraw(String key) {
        held.withdraw(key);
    }

    /** Whether a prefill is held under a key. */
    boolean holds(String key) {
        return held.contains(key);
    }

    /** Frees a held prefill; false when nothing is held under the key. */
    boolean free(String key, KvHold.End end, long nowNs) {
        final SimRequest request = held.remove(key);
        if (request == null) {
            return false;
        }
        freed(request, end, nowNs);
        return true;
    }

    /** Counts an end for a prefill that is not held by any rank. */
    void countLateNotification() {
        stats.handoff.lateNotifications++;
    }

    private void freed(SimRequest request, KvHold.End end, long nowNs) {
        free(request);
        roomSince(nowNs);
        switch (end) {
            case PULLED -> stats.handoff.freedByPull++;
            case NOTIFIED -> stats.handoff.freedByNotification++;
            case LEASE_END -> stats.handoff.freedByLeaseEnd++;
        }
        if (!request.hold.answeredAfterPull) {
            return;
        }
        if (end == KvHold.End.PULLED) {
            tell(request, SimRequest.Phase.FINISHED);
        } else {
            fail(request, "no decode pulled the blocks of " + request.hold.key);
        }
    }

    /** The bytes that a request has pulled are not those of its prompt. */
    void spoiled(SimRequest request, long nowNs) {
        stats.handoff.spoiledPulls++;
        pulls.undeliverable(request, "the bytes of the blocks are not those of the prompt", nowNs);
    }

    private void fail(SimRequest request, String why) {
        request.failure = why;
        tell(request, SimRequest.Phase.FAILED);
    }

    PullQueue pulls() {
        return pulls;
    }

    /** Pulls whose blocks are on the way. */
    public int movingPulls() {
        return pulls.moving();
    }

    /**
     * Forgets the cache.
     *
     * @param preemptRunning takes the blocks of running requests first, which then begin again
     * @return false when blocks are in use
     */
    public boolean resetCache(boolean preemptRunning) {
        if (preemptRunning) {
            while (!running.isEmpty()) {
                preempt(running.getLast());
            }
            stepping = false;
        }
        if (!pool.reset()) {
            return false;
        }
        events.cleared(); // lazy as in vLLM: published when the next step ends
        return true;
    }

    /** Loses so many further event messages on the wire. */
    public void dropMessages(int count) {
        messagesToDrop += count;
    }

    /**
     * Ends and begins steps up to a moment.
     *
     * @return when the running step ends, or {@link #NOTHING_TO_DO}
     */
    public long advance(long nowNs) {
        while (true) {
            advanceHandoffs(stepping ? Math.min(nowNs, stepEndNs) : nowNs);
            if (stepping) {
                if (stepEndNs > nowNs) {
                    return Math.min(stepEndNs, nextHandoffNs());
                }
                endStep();
            }
            if (!beginStep()) {
                final long next = nextHandoffNs();
                if (next > nowNs) {
                    return next;
                }
            }
        }
    }

    private long nextHandoffNs() {
        return Math.min(held.nextEndNs(), pulls.nextDueNs());
    }

    private void advanceHandoffs(long nowNs) {
        for (SimRequest request = held.nextExpired(nowNs);
                request != null;
                request = held.nextExpired(nowNs)) {
            freed(request, KvHold.End.LEASE_END, request.hold.endNs);
        }
        for (SimRequest request = pulls.next(nowNs); request != null; request = pulls.next(nowNs)) {
            pulled(request);
        }
    }

    /** Uses the blocks that a request has received, or fails it. */
    private void pulled(SimRequest request) {
        final KvPull pull = request.pull;
        if (pull.problem == null && pull.stale != null) {
            stats.handoff.stalePulls++;
            if (config.handoff().strict()) {
                pull.problem = pull.stale;
            } else {
                request.spoil();
                request.blocks =
                        Arrays.copyOf(
                                request.blocks,
                                Math.max(
                                        request.blockCount,
                                        blocksFor(request.script.tokens().length)));
            }
        }
        if (pull.problem != null) {
            stats.handoff.failedPulls++;
            free(request);
            roomSince(pull.dueNs);
            fail(request, pull.problem);
            return;
        }
        stats.handoff.pulls++;
        stats.handoff.transferredBlocks += pull.blocks;
        stats.handoff.transferredBytes += pulls.bytes(pull.blocks);
        stats.handoff.receivedTokens += request.script.promptTokens() - request.computed;
        request.computed = request.script.promptTokens();
        cacheFull(request, request.computed);
        request.computed--; // the last token is computed for its output
        request.readyNs = pull.dueNs;
        waiting.addFirst(request);
    }

    private boolean beginStep() {
        if (running.isEmpty()) {
            if (waiting.isEmpty()) {
                return false;
            }
            stepEndNs = Math.max(stepEndNs, waiting.peekFirst().readyNs);
        }
        final long beginNs = stepEndNs;
        int budget = config.maxBatchedTokens();
        int prefill = 0;
        final long preemptions = stats.preemptions;
        for (int i = 0; i < running.size() && budget > 0; i++) {
            final SimRequest request = running.get(i);
            final int tokens = Math.min(request.known() - request.computed, budget);
            if (!makeRoom(request, tokens)) {
                break;
            }
            schedule(request, tokens);
            budget -= tokens;
            prefill += request.produced == 0 || tokens > 1 ? tokens : 0;
        }
        while (stats.preemptions == preemptions && budget > 0 && mayAdmit(beginNs)) {
            final int tokens = admit(beginNs, budget);
            if (tokens == MUST_WAIT) {
                break;
            }
            budget -= tokens;
            prefill += tokens;
        }
        if (budget == config.maxBatchedTokens()) {
            // what was preempted has left room; else all wait for blocks of other engines, or held
            // ones
            return stats.preemptions > preemptions && beginStep();
        }
        stepEndNs = beginNs + Math.round(Math.max(stepNs, prefill * prefillTokenNs));
        stepping = true;
        stats.steps++;
        return true;
    }

    private boolean mayAdmit(long nowNs) {
        return running.size() < config.slots()
                && !waiting.isEmpty()
                && waiting.peekFirst().readyNs <= nowNs;
    }

    /**
     * Makes blocks free for a running request by preempting the youngest; false: it was the
     * youngest.
     */
    private boolean makeRoom(SimRequest request, int tokens) {
        while (blocksFor(request.computed + tokens) - request.blockCount > pool.freeBlocks()) {
            final SimRequest youngest = running.getLast();
            preempt(youngest);
            if (youngest == request) {
                return false;
            }
        }
        return true;
    }

    private void preempt(SimRequest request) {
        running.remove(request);
        free(request);
        stats.preemptions++;
        putBack(request);
    }

    /**
     * Has a request wait ahead of all that have no blocks. Those that have received theirs need
     * nothing but a slot, and it may need their blocks: behind it, both would wait for ever.
     */
    private void putBack(SimRequest request) {
        final ArrayDeque<SimRequest> received = new ArrayDeque<>();
        while (!waiting.isEmpty() && waiting.peekFirst().blockCount > 0) {
            received.addLast(waiting.pollFirst());
        }
        waiting.addFirst(request);
        while (!received.isEmpty()) {
            waiting.addFirst(received.pollLast());
        }
    }

    private void free(SimRequest request) {
        writeScheduled(request); // its blocks have their names since the step began
        pool.release(request.blocks, request.blockCount);
        request.blockCount = 0;
        request.cachedBlocks = 0;
        request.computed = 0;
        request.scheduled = 0;
    }

    /**
     * Admits the first waiting request; returns the tokens it computes now, none when it waits for
     * blocks of another engine, or {@link #MUST_WAIT}.
     */
    private int admit(long nowNs, int budget) {
        final SimRequest request = waiting.peekFirst();
        final int known = request.known();
        if (request.blockCount > 0) { // received, and waits for a slot only
            waiting.removeFirst();
            running.add(request);
            count(request, nowNs);
            return begin(request, budget);
        }
        final int found = pool.lookup(request.names, (known - 1) / config.blockSize(), hits);
        // the whole sequence must fit, else chunks of many prompts would starve each other
        if (blocksFor(known) - found + pool.countFree(hits, found) > pool.freeBlocks()) {
            return MUST_WAIT;
        }
        waiting.removeFirst();
        pool.use(hits, found);
        System.arraycopy(hits, 0, request.blocks, 0, found);
        request.blockCount = found;
        request.cachedBlocks = found;
        request.computed = found * config.blockSize();
        if (request.announceHits && found > 0) {
            announce(request, 0, found);
        }
        if (request.awaitsPull()) {
            lookedUp(request);
            pull(request, nowNs);
            return 0;
        }
        running.add(request);
        if (!request.counted) {
            lookedUp(request);
            count(request, nowNs);
        }
        return begin(request, budget);
    }

    private int begin(SimRequest request, int budget) {
        final int tokens = Math.min(request.known() - request.computed, budget);
        schedule(request, tokens);
        return tokens;
    }

    private void pull(SimRequest request, long nowNs) {
        final int found = request.blockCount;
        final int more = blocksFor(request.known()) - found;
        pool.take(more, request.blocks, found);
        request.blockCount += more;
        stats.handoff.queriedTokens += request.known() - request.computed;
        pulls.add(request, more, faults.nextPull(), nowNs);
    }

    private void lookedUp(SimRequest request) {
        // what this step has changed already goes out with the next message
        request.eventSequence = events.count() == 0 ? nextSequence - 1 : nextSequence;
        stats.queriedTokens += request.known();
        stats.hitTokens += request.computed;
    }

    private void count(SimRequest request, long nowNs) {
        request.counted = true;
        request.cachedTokens = request.computed;
        stats.admitted++;
        stats.queueTime.record(seconds(nowNs - request.arrivalNs));
        tell(request, SimRequest.Phase.ADMITTED);
    }

    /** Takes and names the blocks for the tokens that a request computes in this step. */
    private void schedule(SimRequest request, int tokens) {
        final int total = request.computed + tokens;
        final int more = blocksFor(total) - request.blockCount;
        if (more > 0) {
            pool.take(more, request.blocks, request.blockCount);
            request.blockCount += more;
        }
        cacheFull(request, total);
        request.scheduled = tokens;
    }

    /** Names and announces the blocks that some computed tokens fill. */
    private void cacheFull(SimRequest request, int tokens) {
        final int full = tokens / config.blockSize();
        if (full > request.cachedBlocks) {
            for (int i = request.cachedBlocks; i < full; i++) {
                pool.cache(request.blocks[i], request.names[i]);
            }
            announce(request, request.cachedBlocks, full);
            request.cachedBlocks = full;
        }
    }

    private void announce(SimRequest request, int from, int to) {
        events.stored(
                request.names,
                from,
                to,
                request.script.tokens(),
                config.blockSize(),
                request.labels);
    }

    private void endStep() {
        stepping = false;
        publish();
        int kept = 0;
        for (int i = 0; i < running.size(); i++) {
            final SimRequest request = running.get(i);
            if (!endStepOf(request)) {
                running.set(kept++, request);
            }
        }
        running.subList(kept, running.size()).clear();
    }

    /** Counts what a request computed; true when it is finished. */
    private boolean endStepOf(SimRequest request) {
        if (request.scheduled == 0) {
            return false;
        }
        writeScheduled(request);
        request.computed += request.scheduled;
        request.scheduled = 0;
        if (request.computed < request.known()) {
            return false;
        }
        request.produced++;
        stats.generationTokens++;
        if (request.produced == 1) {
            stats.promptTokens += request.script.promptTokens();
            stats.promptTokensCached += request.cachedTokens;
            stats.timeToFirstToken.record(seconds(stepEndNs - request.arrivalNs));
        } else {
            stats.interTokenLatency.record(seconds(stepEndNs - request.lastTokenNs));
        }
        request.lastTokenNs = stepEndNs;
        final boolean finished = request.produced == request.script.outputTokens();
        request.generated = request.produced;
        if (finished) {
            finish(request);
        } else {
            tell(request, SimRequest.Phase.ADMITTED);
        }
        return finished;
    }

    /** Writes the bytes of the tokens that a request computes in this step. */
    private void writeScheduled(SimRequest request) {
        if (memory != null && request.scheduled > 0) {
            memory.write(request, request.computed, request.computed + request.scheduled);
        }
    }

    private void finish(SimRequest request) {
        if (!leavesBlocks(request)) {
            free(request);
            tell(request, SimRequest.Phase.FINISHED);
        } else if (!hold(request)) {
            free(request);
            fail(request, request.hold.key + " is in use");
        } else if (!request.hold.answeredAfterPull) {
            tell(request, SimRequest.Phase.FINISHED);
        }
        stats.endToEnd.record(seconds(stepEndNs - request.arrivalNs));
        if (request.script.finishReason().equals("stop")) {
            stats.stopped++;
        } else {
            stats.reachedLength++;
        }
    }

    private static boolean leavesBlocks(SimRequest request) {
        return request.hold != null
                && (!request.hold.onlyAtLength || request.script.finishReason().equals("length"));
    }

    private boolean hold(SimRequest request) {
        request.hold.blocks = Arrays.stream(request.blocks, 0, request.blockCount).boxed().toList();
        request.hold.endNs =
                stepEndNs + Math.round(faults.nextLease().toNanos() * config.speedUp());
        if (memory != null) {
            request.hold.record = Base64.getEncoder().encodeToString(memory.record());
            request.hold.firstBlock = memory.firstBlock(index);
            if (faults.next(HandoffFault.SPOILS_BYTES)) {
                memory.spoil(request, request.script.promptTokens() - 1);
            }
        }
        return held.add(request);
    }

    private void publish() {
        if (events.count() == 0) {
            return;
        }
        final Instant now = stamps.instant();
        final byte[] payload = events.finish(now.getEpochSecond() + now.getNano() / 1e9, index);
        final boolean lost = messagesToDrop > 0;
        if (lost) {
            messagesToDrop--;
            droppedMessages++;
        }
        publisher.publish(index, nextSequence++, payload, lost);
    }

    private void tell(SimRequest request, SimRequest.Phase phase) {
        request.phase = phase;
        if (request.gate.mark()) {
            touched.add(request.gate);
        }
    }

    private int blocksFor(int tokens) {
        return (tokens + config.blockSize() - 1) / config.blockSize();
    }

    /** Seconds as a client sees them. */
    private double seconds(long simulatedNs) {
        return simulatedNs / config.speedUp() / 1e9;
    }

    /** What the rank holds and does now. */
    public SimState state() {
        return new SimState(
                index,
                life,
                nextSequence - 1,
                events.count(),
                pool.blocks(),
                pool.freeBlocks(),
                pool.cachedBlocks(),
                pool.distinctHashes(),
                running.size(),
                waiting.size() + pulls.size(),
                stats.admitted,
                stats.stopped + stats.reachedLength,
                stats.aborted,
                stats.preemptions,
                droppedMessages);
    }

    /** What is true of hand-offs now. */
    public HandoffState handoffs() {
        final HandoffStats counts = stats.handoff;
        return new HandoffState(
                held.size(),
                held.blocks(),
                pulls.size(),
                counts.freedByPull,
                counts.freedByNotification,
                counts.freedByLeaseEnd,
                counts.lateNotifications,
                counts.pulls,
                counts.stalePulls,
                counts.failedPulls,
                counts.spoiledPulls,
                counts.transferredBlocks,
                counts.transferredBytes);
    }

    /** Copies per block name, names in unsigned order. */
    public Map<Long, Integer> heldBlocks() {
        final Map<Long, Integer> copies = new TreeMap<>(Long::compareUnsigned);
        pool.forEachCached(name -> copies.merge(name, 1, Integer::sum));
        return copies;
    }

    /** Leading blocks of a chain that are cached now. */
    public int cachedBlocks(long[] names) {
        return pool.lookup(names, names.length, new int[names.length]);
    }

    /** Prompt tokens that are still to be computed; cached ones of those that wait left out. */
    public long tokensToPrefill() {
        long tokens = 0;
        for (SimRequest request : running) {
            tokens += Math.max(0, request.script.promptTokens() - request.computed);
        }
        for (SimRequest request : waiting) {
            final int most = (request.script.promptTokens() - 1) / config.blockSize();
            final int found = pool.lookup(request.names, most, hits);
            tokens += request.script.promptTokens() - found * config.blockSize();
        }
        return tokens;
    }

    /** Visits the names of the cached blocks among the next that would be taken. */
    public void forEachNextEvicted(int blocks, LongConsumer visitor) {
        pool.forEachNextEvicted(blocks, visitor);
    }

    RankStats stats() {
        return stats;
    }
}

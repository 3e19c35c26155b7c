package io.kvasir.router;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.index.LowerTiers;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.StorageTier;
import io.kvasir.core.load.EngineLoad;
import io.kvasir.core.load.LoadBoard;
import io.kvasir.pipeline.source.EventSource;
import io.kvasir.pipeline.source.IndexCause;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.IndexView;
import io.kvasir.pipeline.source.SourceStatus;
import io.kvasir.pipeline.wire.LoadStat;
import io.kvasir.pipeline.wire.LoraNumbers;
import io.kvasir.router.disagg.LearnedLine;
import io.kvasir.router.journal.JournalRecord;
import io.kvasir.router.load.BusyMarks;
import io.kvasir.router.load.BusyState;
import io.kvasir.router.load.EngineLoads;
import io.kvasir.router.load.LoadOutcome;
import io.kvasir.router.load.LoadReading;
import io.kvasir.router.load.LoadSource;
import io.kvasir.router.load.ReportedLoad;
import io.kvasir.router.policy.CandidateWorker;
import io.kvasir.router.settings.RouterSettings;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * One registered (worker, dp rank): its identity, live load and the state of its events. Its slot
 * of the load board is open while it may be chosen. Thread-safe.
 */
public final class Worker implements CandidateWorker {
    private static final Logger LOG = LoggerFactory.getLogger(Worker.class);

    private final WorkerSpec spec;
    private final int slot;
    private final int slotGeneration;
    private final long nameHash;
    private final LoadBoard board;
    private final EngineLoads engineLoads;
    private final BusyMarks marks;
    private final LongSupplier clock;
    private final PrefixIndex index;
    private final LowerTiers lowerOrNull; // null where no tier is followed
    private final IndexState withoutEvents;
    private final WorkerMarks workerMarks;
    private final String[] taintNames; // an array, so that looking at them allocates nothing
    private final long[] journalName;
    private final EngineHits hits;
    private final LearnedLine promptTimes = new LearnedLine();
    private volatile EventSource source;
    private volatile IndexView view; // of the source; null where there is none
    private volatile boolean available = true;
    private volatile boolean removed;
    private volatile boolean slotLeft; // its slot may be another's; not where the router is closed
    private final LoadReading reading = new LoadReading(); // guarded by this
    private volatile Set<String> adapters = Set.of(); // written under the lock of the marks
    private volatile Map<Long, String> loraNumbers = Map.of();
    private volatile boolean onPlane;
    private volatile long kvBlocks; // 0 where it is not known
    private volatile long batchTokens; // likewise
    private volatile long requestSlots; // likewise
    private volatile int engineBlockSize; // likewise
    private volatile long reportedBlocks; // what the engine has last said; 0 where it has not
    private volatile long reportedTokens; // likewise

    Worker(
            WorkerSpec spec,
            int slot,
            int slotGeneration,
            RouterParts parts,
            LongSupplier clock,
            IndexState withoutEvents,
            EngineHits hits) {
        this.spec = spec;
        this.slot = slot;
        this.slotGeneration = slotGeneration;
        nameHash = BlockHasher.seed(spec.dpRank(), spec.name(), null);
        board = parts.board;
        index = parts.index;
        engineLoads = parts.engineLoads;
        marks = parts.marks;
        this.clock = clock;
        lowerOrNull = parts.lowerOrNull;
        this.withoutEvents = withoutEvents;
        this.hits = hits;
        workerMarks = parts.workerMarks;
        taintNames = spec.namedTaints().toArray(String[]::new);
        journalName = JournalRecord.name(spec.name());
        board.open(slot, true);
    }

    @Override
    public long id() {
        return spec.id();
    }

    @Override
    public String name() {
        return spec.name();
    }

    @Override
    public String url() {
        return spec.url();
    }

    @Override
    public int dpRank() {
        return spec.dpRank();
    }

    @Override
    public long taints() {
        return spec.taints();
    }

    @Override
    public Map<String, String> labels() {
        return spec.labels();
    }

    /**
     * Names of what keeps requests from it that do not tolerate that.
     *
     * @return as registered; immutable
     */
    public Set<String> namedTaints() {
        return spec.namedTaints();
    }

    /** Whether none of its named taints keeps a request away. */
    boolean isTolerated(Constraints constraints) {
        for (String taint : taintNames) {
            if (!constraints.isTolerated(taint)) {
                return false;
            }
        }
        return true;
    }

    /**
     * Says which LoRA adapters it has from now on, for {@link RouterSettings#LORA_MODE}. Costs one
     * bit for each adapter that comes or goes. Nothing for a worker that was removed.
     *
     * @param names of at most 512 characters each; 4,096 at most, 65,536 of all workers of the
     *     router
     * @throws IllegalArgumentException if they are too many, or a name is none; then nothing has
     *     changed
     */
    public void adapters(Set<String> names) {
        for (String name : Objects.requireNonNull(names, "names")) {
            Objects.requireNonNull(name, "the name of an adapter is null");
        }
        workerMarks.adapters(this, Set.copyOf(names));
    }

    /**
     * The LoRA adapters that it is said to have.
     *
     * @return immutable
     */
    public Set<String> adapters() {
        return adapters;
    }

    void tookAdapters(Set<String> names) {
        adapters = names;
    }

    @Override
    public int slot() {
        return slot;
    }

    /** Hash of name and rank, the same in every router. */
    long nameHash() {
        return nameHash;
    }

    /** The name as decision journals have it. */
    long[] journalName() {
        return journalName;
    }

    /** How many workers had the slot before. */
    int slotGeneration() {
        return slotGeneration;
    }

    /**
     * The source of this worker's events.
     *
     * @return null when it has none
     */
    public EventSource source() {
        return source;
    }

    void source(EventSource opened) {
        source = opened;
        view = opened == null ? null : opened.view();
        final Map<Long, String> names = loraNumbers;
        if (opened != null && !names.isEmpty()) {
            opened.loraNumbers(names);
        }
        tellBlockSize();
        if (opened != null && engineLoads.isOn()) {
            opened.onLoad(this::reportLoad);
        }
    }

    /** A report among the events of its engine. */
    private synchronized void reportLoad(long sequence, LoadStat load) {
        reportLoad(
                LoadSource.EVENT_SOCKET,
                sequence,
                reading.reset()
                        .running((double) load.running())
                        .waiting((double) load.waiting())
                        .usedBlocks(engineLoads.blocks(load.usedTokens()))
                        .blocks(engineLoads.blocks(load.tokens())));
    }

    /**
     * Says which adapters its engine, as it runs now, gives which numbers in its events; see {@link
     * EventSource#loraNumbers}. Kept for a source that is opened later.
     *
     * @param names by number
     * @throws IllegalArgumentException if they are too many, a number is 0 or a name is empty
     */
    public void loraNumbers(Map<Long, String> names) {
        LoraNumbers.check(Objects.requireNonNull(names, "names"));
        loraNumbers = Map.copyOf(names);
        final EventSource events = source;
        if (events != null) {
            events.loraNumbers(names);
        }
    }

    /** The event plane passes its events on from now on. */
    void joinedPlane() {
        onPlane = true;
    }

    /** Whether the event plane passes its events on. */
    boolean isOnPlane() {
        return onPlane;
    }

    /**
     * How far the index can be trusted for this worker.
     *
     * @return {@link IndexState#GONE} once removed; without an event source {@link
     *     IndexState#PREDICTED} where the router predicts, else {@link IndexState#DEGRADED}
     */
    public IndexState state() {
        if (removed) {
            return IndexState.GONE;
        }
        final IndexView events = view;
        return events == null ? withoutEvents : events.state();
    }

    /**
     * Why {@link #state} is what it is.
     *
     * @return {@link IndexCause#NONE} while the view is exact
     */
    public IndexCause cause() {
        if (removed) {
            return IndexCause.CLOSED;
        }
        final EventSource events = source;
        if (events != null) {
            return events.status().cause();
        }
        return hits.ofPredicted().isWrong() ? IndexCause.FORECASTS : IndexCause.NO_EVENTS;
    }

    /**
     * What is wrong with what is known of its cache, in words; empty where nothing is.
     *
     * @return of its events the last thing that went wrong, which may be over
     */
    public String indexProblem() {
        final EventSource events = source;
        if (events != null) {
            return events.status().problem();
        }
        final String why = hits.ofPredicted().why();
        return why == null ? "" : why;
    }

    /**
     * Whether waiting would not make the index know more of this worker: its events are loaded and
     * applied, or it has none. See {@link KvRouter#awaitReady}.
     *
     * @return false while events are loaded, asked for again or waiting to be applied, and while
     *     none of them come
     */
    public boolean ready() {
        final EventSource events = source;
        return removed || events == null || events.ready();
    }

    /**
     * What a block that the index believes in counts for this worker now.
     *
     * @param degradedCredit what it counts while events are known to be missing, 0..1
     * @return 0 (nothing) to 1 (in full)
     */
    double credit(double degradedCredit) {
        if (removed) {
            return 0;
        }
        final IndexView events = view;
        if (events != null) {
            return events.credit(degradedCredit);
        }
        return withoutEvents == IndexState.PREDICTED && !hits.ofPredicted().isWrong()
                ? 1
                : degradedCredit;
    }

    /**
     * What a block that is believed to be cached counts now.
     *
     * @return 0 (nothing) to 1 (in full)
     */
    public double indexCredit() {
        return credit(hits.degradedCredit());
    }

    /**
     * The engine has stated its cache hit of a request that was booked here.
     *
     * @param decided the state that the request was decided by
     * @param promptTokens of the request
     * @param believed of them the engine was taken to have cached, in full
     * @param inUse of them that running requests used
     * @param stated of them the engine says it had
     * @param alone whether no other request was here from the decision to the answer
     * @param activityBefore the mark of the worker's events as it was booked
     */
    void engineHit(
            IndexState decided,
            int promptTokens,
            int onDevice,
            int believed,
            int inUse,
            int stated,
            boolean alone,
            long activityBefore) {
        final EventSource events = source;
        if (events == null) {
            if (decided == IndexState.PREDICTED && hits.compare(believed, inUse, stated, alone)) {
                lastBlockJudged();
            }
            return;
        }
        if ((decided == IndexState.EXACT || decided == IndexState.DEGRADED)
                && hits.report(events, onDevice, believed, inUse, stated, alone)) {
            lastBlockJudged();
        }
        if (events.state() == IndexState.DEGRADED && hits.hasComputed(promptTokens, stated)) {
            events.reportServed(activityBefore);
        }
    }

    private void lastBlockJudged() {
        workerMarks.judgedLastBlock(this);
        LOG.info(
                lacksLastBlock()
                        ? "{}: the engine computes the last block of each cache hit anew, as with"
                                + " EAGLE or MTP: a block less is expected of it"
                        : "{}: the engine's cache hits have their last block again",
                this);
    }

    /**
     * Whether its engine computes the last block of each cache hit anew, as vLLM does where it
     * drafts with EAGLE or MTP: a hit is a block less than the blocks that it holds. Concluded from
     * the hits that it states.
     */
    public boolean lacksLastBlock() {
        return hits.lacksLastBlock();
    }

    /** What was predicted to be here is forgotten, and so is how right it was. */
    void forgetHits() {
        hits.ofPredicted().forget();
    }

    /** What was concluded from them is over if its engine has stated none for long. */
    void expireHits() {
        hits.expire();
    }

    /** What was concluded from its engine's cache hits counts no more. */
    void forgetForecasts() {
        forgetHits();
        final EventSource events = source;
        if (events != null) {
            events.forgetForecasts();
        }
    }

    /** Seconds from a booking to the first token, by the tokens to compute until then. */
    LearnedLine promptTimes() {
        return promptTimes;
    }

    /** How much has come of its events so far, for {@link #served}; 0 where it has none. */
    long activityMark() {
        final EventSource events = source;
        return events == null ? 0 : events.activityMark();
    }

    /**
     * The engine has computed a prompt with blocks that it had not before, and must say so.
     *
     * @param activityBefore the mark of its events as the prompt was booked
     */
    void served(long activityBefore) {
        final EventSource events = source;
        // where events are missing, the engine may have had the blocks
        if (events != null && events.state() != IndexState.DEGRADED) {
            events.reportServed(activityBefore);
        }
    }

    /**
     * Counters of this worker's event source.
     *
     * @return null when it has none
     */
    public SourceStatus sourceStatus() {
        final EventSource events = source;
        return events == null ? null : events.status();
    }

    /**
     * Tokens that requests booked here still have to prefill.
     *
     * @return tokens, &ge; 0 when no booking is in flight between threads; 0 once the worker is
     *     removed
     */
    public long prefillTokens() {
        return own(board.prefillTokens(slot), 0);
    }

    /**
     * Blocks in use by requests booked here; a prefix that several share counts once.
     *
     * @return blocks; 0 once the worker is removed
     */
    public long activeBlocks() {
        return own(board.activeBlocks(slot), 0);
    }

    /**
     * Requests booked here and not yet released.
     *
     * @return requests; 0 once the worker is removed
     */
    public long activeRequests() {
        return own(board.activeRequests(slot), 0);
    }

    /**
     * Takes what the worker's engine says of its load, by the embedder's own means. A later call
     * takes the place of an earlier one; what is not repeated within {@link
     * RouterSettings#ENGINE_LOAD_TTL} counts no more. Any thread; takes a lock of this worker.
     *
     * @param reading its numbers
     * @return {@link LoadOutcome#TAKEN}, or why it was not
     */
    public LoadOutcome reportLoad(LoadReading reading) {
        return reportLoad(LoadSource.EMBEDDER, clock.getAsLong(), reading);
    }

    /**
     * The same of another source.
     *
     * @param source each is ordered by itself
     * @param order the source's own; where it is lower than before, the report is an older one,
     *     which is left out as long as the later one counts
     * @param reading its numbers
     * @return {@link LoadOutcome#TAKEN}, or why it was not
     */
    public synchronized LoadOutcome reportLoad(LoadSource source, long order, LoadReading reading) {
        Objects.requireNonNull(source, "source");
        Objects.requireNonNull(reading, "reading");
        if (removed) {
            return engineLoads.counts().add(source, LoadOutcome.UNKNOWN_WORKER);
        }
        final boolean wasMarked = marks.isMarked(slot);
        final LoadOutcome outcome = engineLoads.report(slot, source, order, reading, kvBlocks());
        logIfFull(wasMarked);
        if (outcome == LoadOutcome.TAKEN) {
            final EngineLoad stated = reading.load(0);
            reportedBlocks = stated.blocks() > 0 ? stated.blocks() : reportedBlocks;
            reportedTokens = stated.batchTokens() > 0 ? stated.batchTokens() : reportedTokens;
        }
        return outcome;
    }

    /**
     * What its engine reports of its load.
     *
     * @return what counts now; null where there is nothing, or reports do not count ({@link
     *     RouterSettings#ENGINE_LOAD})
     */
    public ReportedLoad reportedLoadOrNull() {
        return removed ? null : engineLoads.reportedOrNull(slot);
    }

    /**
     * How long a source of reports is silent.
     *
     * @return ns; -1 where it has never spoken of this worker
     */
    public long loadSilentNs(LoadSource source) {
        return removed ? -1 : engineLoads.silentNs(slot, source);
    }

    /**
     * The worker has refused a request because it has too much to do: it is left out for {@link
     * RouterSettings#BUSY_LEASE}, then tried with one request. Any thread, any number of times.
     *
     * @param cause limit and value, for people
     */
    public void full(String cause) {
        full(cause, Duration.ZERO);
    }

    /**
     * The same of a worker that has said when to try again ({@code Retry-After}): it is left out
     * for as long, where that is longer than {@link RouterSettings#BUSY_LEASE}, but for a minute at
     * most or for the lease.
     *
     * @param cause limit and value, for people
     * @param retryAfter zero or less where it has not
     */
    public synchronized void full(String cause, Duration retryAfter) {
        Objects.requireNonNull(retryAfter, "retryAfter");
        if (!removed) {
            final boolean wasMarked = marks.isMarked(slot);
            marks.mark(slot, clock.getAsLong(), askedNs(retryAfter), cause);
            logIfFull(wasMarked);
        }
    }

    /** Of one that is longer than a mark can be the longest. */
    private static long askedNs(Duration retryAfter) {
        if (retryAfter.isNegative()) {
            return 0;
        }
        return retryAfter.toSeconds() < TimeUnit.NANOSECONDS.toSeconds(BusyMarks.MOST_ASKED_NS)
                ? retryAfter.toNanos()
                : BusyMarks.MOST_ASKED_NS;
    }

    /** Says it once until the worker gets all requests again. */
    private void logIfFull(boolean wasMarked) {
        if (!wasMarked && marks.isMarked(slot)) {
            LOG.warn(
                    "worker {} is full and left out for {} ms ({}): {}",
                    this,
                    TimeUnit.NANOSECONDS.toMillis(marks.leftNs(slot, clock.getAsLong())),
                    RouterSettings.BUSY_LEASE,
                    marks.whyOrNull(slot));
        }
    }

    /**
     * Whether it is left out because it is full, or waits to be tried.
     *
     * @return what it is, and for how long
     */
    public BusyState busyState() {
        if (removed || !marks.isMarked(slot)) {
            return BusyState.OPEN;
        }
        return marks.isFull(slot, clock.getAsLong()) ? BusyState.FULL : BusyState.HALF_OPEN;
    }

    /**
     * Why it was marked last as full.
     *
     * @return null where it never was, or was removed
     */
    public String whyFullOrNull() {
        return removed ? null : marks.whyOrNull(slot);
    }

    /**
     * Blocks that the index holds for this worker.
     *
     * @return distinct engine hashes held; 0 once the worker is removed
     */
    public long indexedBlocks() {
        return own(index.heldBlocks(slot), 0);
    }

    /**
     * Blocks that the index holds for this worker in a tier; of shared storage, all that are there.
     *
     * @return distinct engine hashes; 0 where the tier is not followed, or once the worker is
     *     removed
     */
    public long indexedBlocks(StorageTier tier) {
        Objects.requireNonNull(tier, "tier");
        if (tier == StorageTier.DEVICE) {
            return indexedBlocks();
        }
        return lowerOrNull == null ? 0 : own(lowerOrNull.heldBlocks(tier, slot), 0);
    }

    /**
     * Number of the last event message whose events are all in the index.
     *
     * @return the engine's own number, -1 before the first, or once the worker is removed
     */
    public long eventSequence() {
        return own(index.appliedSequence(slot), -1);
    }

    /**
     * What was read of its slot, if that was still its own then; the flag is read after the value,
     * and written before another worker gets the slot.
     */
    private long own(long read, long none) {
        return slotLeft ? none : read;
    }

    /**
     * Says how much the engine of this rank can take, as far as it is known; where it is not, what
     * the engine has reported counts ({@link #reportLoad}). For {@link
     * RouterSettings#BUSY_DECODE_BLOCKS} and {@link RouterSettings#BUSY_PREFILL_SHARE}.
     *
     * @param blocks KV blocks of its cache; 0 or less: not known
     * @param tokens most tokens of one step; 0 or less: not known
     */
    public void capacity(long blocks, long tokens) {
        capacity(blocks, tokens, 0);
    }

    /**
     * The same with the requests that it runs at once, which a selection policy may ask for.
     *
     * @param blocks KV blocks of its cache; 0 or less: not known
     * @param tokens most tokens of one step; 0 or less: not known
     * @param requests most requests that it runs at once; 0 or less: not known
     */
    public void capacity(long blocks, long tokens, long requests) {
        kvBlocks = Math.max(0, blocks);
        batchTokens = Math.max(0, tokens);
        requestSlots = Math.max(0, requests);
        board.roomMayBe(slot);
    }

    /**
     * Says how many tokens a block of the engine has by its own word, beside its events.
     *
     * @param tokens 0 or less: not known
     */
    public void engineBlockSize(int tokens) {
        engineBlockSize = Math.max(0, tokens);
        tellBlockSize();
    }

    private void tellBlockSize() {
        final EventSource events = source;
        if (events != null) {
            events.reportBlockSize(engineBlockSize);
        }
    }

    @Override
    public long requestSlots() {
        return requestSlots;
    }

    @Override
    public long kvBlocks() {
        final long said = kvBlocks;
        return said > 0 ? said : reportedBlocks;
    }

    @Override
    public long batchTokens() {
        final long said = batchTokens;
        return said > 0 ? said : reportedTokens;
    }

    /**
     * Says whether requests may be sent here; set by the owner of its health checks.
     *
     * @return true unless marked unavailable
     */
    public boolean available() {
        return available && !removed;
    }

    /**
     * Marks the worker as (un)available for selection. Its index and bookings stay, and what it is
     * predicted to hold: see {@link KvRouter#forgetPredicted}.
     *
     * @param canServe false to take it out of the candidates
     */
    public synchronized void available(boolean canServe) {
        available = canServe;
        if (!removed) {
            board.open(slot, canServe);
        }
    }

    /**
     * What it is called on the event plane.
     *
     * @return null where it is not there
     */
    public EventPlaneWorker planeOrNull() {
        return spec.planeOrNull();
    }

    /** Whether its events come from an endpoint that was registered with it. */
    boolean hasEventEndpoint() {
        return spec.events() != null;
    }

    boolean isRemoved() {
        return removed;
    }

    /** Another worker may get its slot from now on. */
    void leaveSlot() {
        slotLeft = true;
        markRemoved();
    }

    synchronized void markRemoved() {
        removed = true;
        board.open(slot, false);
        engineLoads.forget(slot);
        marks.clear(slot);
    }

    @Override
    public String toString() {
        return spec.name() + "/" + spec.dpRank();
    }
}

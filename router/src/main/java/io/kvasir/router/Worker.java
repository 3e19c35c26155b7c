package io.kvasir.router;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.index.LowerTiers;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.StorageTier;
import io.kvasir.core.load.LoadBoard;
import io.kvasir.pipeline.source.EventSource;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.SourceStatus;
import io.kvasir.router.disagg.LearnedLine;
import io.kvasir.router.journal.JournalRecord;
import io.kvasir.router.policy.CandidateWorker;
import io.kvasir.router.settings.RouterSettings;

import java.util.Map;

/**
 * One registered (worker, dp rank): its identity, live load and the state of its events. Its slot
 * of the load board is open while it may be chosen. Thread-safe.
 */
public final class Worker implements CandidateWorker {
    private final WorkerSpec spec;
    private final int slot;
    private final int slotGeneration;
    private final long nameHash;
    private final LoadBoard board;
    private final PrefixIndex index;
    private final LowerTiers lowerOrNull; // null where no tier is followed
    private final IndexState withoutEvents;
    private final long[] journalName;
    private final LearnedLine promptTimes = new LearnedLine();
    private volatile EventSource source;
    private volatile boolean available = true;
    private volatile boolean removed;
    private volatile boolean onPlane;
    private volatile long kvBlocks; // 0 where it is not known
    private volatile long batchTokens; // likewise
    private volatile long requestSlots; // likewise

    Worker(
            WorkerSpec spec,
            int slot,
            int slotGeneration,
            LoadBoard board,
            PrefixIndex index,
            LowerTiers lowerOrNull,
            IndexState withoutEvents) {
        this.spec = spec;
        this.slot = slot;
        this.slotGeneration = slotGeneration;
        nameHash = BlockHasher.seed(spec.dpRank(), spec.name(), null);
        this.board = board;
        this.index = index;
        this.lowerOrNull = lowerOrNull;
        this.withoutEvents = withoutEvents;
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
        final EventSource events = source;
        return events == null ? withoutEvents : events.state();
    }

    /**
     * Whether waiting would not make the index know more of this worker: its events are loaded and
     * applied, or it has none. See {@link KvRouter#awaitReady}.
     *
     * @return false while events are loaded, asked for again or waiting to be applied, and while
     *     nothing is heard of them
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
        final EventSource events = source;
        if (events != null) {
            return events.credit(degradedCredit);
        }
        return withoutEvents == IndexState.PREDICTED ? 1 : degradedCredit;
    }

    /** Seconds from a booking to the first token, by the tokens to compute until then. */
    LearnedLine promptTimes() {
        return promptTimes;
    }

    /** The engine has computed a prompt with blocks that it had not before, and must say so. */
    void served() {
        final EventSource events = source;
        // where events are missing, the engine may have had the blocks
        if (events != null && events.state() != IndexState.DEGRADED) {
            events.reportServed();
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
     * @return tokens, &ge; 0 when no booking is in flight between threads
     */
    public long prefillTokens() {
        return board.prefillTokens(slot);
    }

    /**
     * Blocks in use by requests booked here; a prefix that several share counts once.
     *
     * @return blocks
     */
    public long activeBlocks() {
        return board.activeBlocks(slot);
    }

    /**
     * Requests booked here and not yet released.
     *
     * @return requests
     */
    public long activeRequests() {
        return board.activeRequests(slot);
    }

    /**
     * Blocks that the index holds for this worker.
     *
     * @return distinct engine hashes held
     */
    public long indexedBlocks() {
        return index.heldBlocks(slot);
    }

    /**
     * Blocks that the index holds for this worker in a tier; of shared storage, all that are there.
     *
     * @return distinct engine hashes; 0 where the tier is not followed
     */
    public long indexedBlocks(StorageTier tier) {
        if (tier == StorageTier.DEVICE) {
            return indexedBlocks();
        }
        return lowerOrNull == null ? 0 : lowerOrNull.heldBlocks(tier, slot);
    }

    /**
     * Number of the last event message whose events are all in the index.
     *
     * @return the engine's own number, -1 before the first
     */
    public long eventSequence() {
        return index.appliedSequence(slot);
    }

    /**
     * Says how much the engine of this rank can take, as far as it is known; for {@link
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
    }

    @Override
    public long requestSlots() {
        return requestSlots;
    }

    @Override
    public long kvBlocks() {
        return kvBlocks;
    }

    @Override
    public long batchTokens() {
        return batchTokens;
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

    synchronized void markRemoved() {
        removed = true;
        board.open(slot, false);
    }

    @Override
    public String toString() {
        return spec.name() + "/" + spec.dpRank();
    }
}

package io.kvasir.pipeline.source;

import io.kvasir.pipeline.source.ReplayRequest.Wanted;
import io.kvasir.pipeline.wire.LoraNumbers;

/**
 * What one stream says of itself: state, credit, counters, the last problem.
 *
 * <p>{@link #state}, {@link #isReady} and {@link #credit} are for any thread and take no lock. All
 * else is guarded by the stream's lock. What readers rely on:
 *
 * <ul>
 *   <li>{@link BatchProgress} counts a batch before it is offered, and again after it is applied. A
 *       reader reads the applied ones first; where both are equal, all that was offered when it
 *       read the second is in the index.
 *   <li>{@link #lose} publishes before the next batch is offered: a reader that finds in the index
 *       what follows a gap does not read {@link IndexState#EXACT} any more.
 *   <li>{@code incomplete} is stored before {@code state}: a reader of a new state reads the value
 *       that belongs to it, or a later one.
 * </ul>
 */
final class StreamStatus implements IndexView {
    final MessageCounts counts = new MessageCounts();
    private final StreamParts parts;
    private final SourceConfig config;
    private final SourceFreshness freshness;
    private final StreamCounters counters;
    private final LoraNumbers loraNumbers;
    private final ForecastWatch forecasts;
    private final BatchProgress progress;
    private final CountedSink sink;
    private String problem = "";
    private String beforeLoad = ""; // the problem that ends with a load
    private String loss; // why the view is not exact, null if it is
    private boolean endUnseen; // the loss is that messages may have come after the last one
    private IndexCause lossCause = IndexCause.LOST_MESSAGES; // of the loss
    private int statedBlockSize; // by the engine beside its events; 0 if it does not say
    private boolean loaded;
    private boolean closed;
    private volatile long loadedAtBatch; // batches that the load consists of
    private volatile boolean incomplete; // loss, foreign rank or block size
    private volatile IndexState state = IndexState.LOADING;

    StreamStatus(StreamParts parts, CountedSink sink) {
        this.parts = parts;
        this.config = parts.config;
        this.freshness = parts.freshness;
        this.counters = parts.counters;
        this.loraNumbers = parts.loraNumbers;
        this.forecasts = parts.forecasts;
        this.progress = parts.progress;
        this.sink = sink;
    }

    /** Shows a problem until there is another one, or it is {@link #over}. */
    void problem(String what) {
        problem = what;
    }

    /** Shows a problem until the slot has been loaded, or nothing is missing from it. */
    void problemUntilLoaded(String what) {
        problem = what;
        beforeLoad = what;
    }

    /** A problem has ended: it is shown no longer. */
    void over(String what) {
        if (problem.equals(what)) {
            problem = "";
        }
    }

    /** Why the view is not exact; null if it is. */
    String loss() {
        return loss;
    }

    /** The view is not exact from now on. */
    void lost(String why) {
        lost(IndexCause.LOST_MESSAGES, why);
    }

    /** The same, for another cause than lost messages. */
    void lost(IndexCause cause, String why) {
        loss = why;
        lossCause = cause;
        endUnseen = false;
    }

    /**
     * The view is right up to its last message, which may not be the newest one.
     *
     * @param why in words
     */
    void endUnseen(String why) {
        lostWithWarning(why);
        endUnseen = true;
    }

    /** Whether that is all that is wrong with the view. */
    boolean isEndUnseen() {
        return endUnseen;
    }

    /** The last message was the newest one. */
    void endSeen() {
        if (endUnseen) {
            complete();
        }
    }

    /** The same, as a warning as well. */
    void lostWithWarning(String why) {
        lost(why);
        parts.warn(StreamLog.Kind.LOST, why);
    }

    /** Nothing is missing from the view any more. */
    void complete() {
        over(beforeLoad);
        if (loss != null) {
            over(loss);
        }
        loss = null;
        endUnseen = false;
    }

    /** Messages are lost: published before the next one is seen in the index. */
    void lose(long from, long to, String why) {
        if (to >= from) {
            counts.lost(from, to);
        }
        lost("messages " + from + ".." + to + " are lost: " + why);
        problem = loss;
        publish();
        parts.warn(StreamLog.Kind.LOST, loss);
    }

    /** Tokens per block by the engine's word beside its events; 0 if it does not say. */
    void statedBlockSize(int tokens) {
        statedBlockSize = tokens;
    }

    /** Whether the engine says another block size, and its events none that would be believed. */
    private boolean isOfOtherSize() {
        return statedBlockSize > 0
                && statedBlockSize != config.blockSize()
                && parts.decoder.learnedBlockSize() == 0;
    }

    /** Whether the slot was loaded, from whatever there was. */
    boolean isLoaded() {
        return loaded;
    }

    void loaded() {
        loaded = true;
        over(beforeLoad);
        loadedAtBatch = progress.offered();
    }

    void unloaded() {
        loaded = false;
    }

    void closed() {
        closed = true;
    }

    boolean isClosed() {
        return closed;
    }

    /** Shows readers the state that follows from all parts now. */
    void publish() {
        final IndexState before = state;
        incomplete = loss != null || parts.rank.isForeign() || isOfOtherSize();
        state = currentState();
        if (before != state
                && state != IndexState.GONE
                && (before == IndexState.STALE || state == IndexState.STALE)) {
            logStale();
        }
    }

    private void logStale() {
        parts.warn(
                StreamLog.Kind.STALE,
                state == IndexState.STALE
                        ? "stale: " + freshness.why()
                        : "no longer stale: " + state);
    }

    private IndexState currentState() {
        final boolean mute = freshness.isMute();
        return stateOf(streamCause(mute), mute);
    }

    private IndexState stateOf(IndexCause cause, boolean mute) {
        return mute && !closed ? IndexState.STALE : cause.state();
    }

    /** The cause by what the stream knows, which is not all that the index does. */
    private IndexCause streamCause(boolean mute) {
        if (closed) {
            return IndexCause.CLOSED;
        }
        if (!freshness.isConnected()) {
            return IndexCause.NO_CONNECTION;
        }
        if (freshness.isSilent()) {
            return IndexCause.SILENT;
        }
        if (mute) {
            return muteCause();
        }
        if (freshness.isDoubted() && parts.replay.isIdle()) {
            return IndexCause.UNPROVEN_ENGINE;
        }
        if (parts.rank.isForeign() && !loaded) {
            return IndexCause.FOREIGN_RANK;
        }
        if (parts.replay.is(Wanted.LOAD) || (parts.tracker.last() < 0 && !loaded)) {
            return IndexCause.NOT_LOADED;
        }
        if (parts.rank.isForeign()) {
            return IndexCause.FOREIGN_RANK;
        }
        if (loss != null) {
            return lossCause;
        }
        if (isOfOtherSize()) {
            return IndexCause.BLOCK_SIZE;
        }
        final boolean asks =
                (parts.replay.is(Wanted.VERIFY) && !parts.checksOnly())
                        || parts.replay.is(Wanted.HEAL);
        return asks || !parts.early.isEmpty() ? IndexCause.GAP : IndexCause.NONE;
    }

    /** Why messages store nothing, where that is known. */
    private IndexCause muteCause() {
        if (parts.rank.isForeign()) {
            return IndexCause.FOREIGN_RANK;
        }
        final boolean otherSize = loss != null && lossCause == IndexCause.BLOCK_SIZE;
        return otherSize || isOfOtherSize() ? IndexCause.BLOCK_SIZE : IndexCause.NO_STORES;
    }

    /** Why the state is what it is. */
    private IndexCause cause(boolean mute) {
        final IndexCause ofStream = streamCause(mute);
        if (ofStream != IndexCause.NONE && ofStream != IndexCause.GAP) {
            return ofStream;
        }
        if (!counters.impairment().isEmpty()) {
            return counters.hasFailed() ? IndexCause.INDEX_ERROR : IndexCause.REFUSED_STORES;
        }
        if (counters.missing() > 0) {
            return IndexCause.INDEX_FULL;
        }
        if (loraNumbers.missing() > 0) {
            return IndexCause.UNNAMED_ADAPTERS;
        }
        if (forecasts.isWrong()) {
            return IndexCause.FORECASTS;
        }
        if (ofStream == IndexCause.GAP || isApplied()) {
            return ofStream;
        }
        return progress.applied() < loadedAtBatch ? IndexCause.NOT_LOADED : IndexCause.NOT_APPLIED;
    }

    @Override
    public IndexState state() {
        final IndexState current = state;
        if (current != IndexState.GONE && (freshness.isSilent() || freshness.isMute())) {
            return IndexState.STALE;
        }
        if (current != IndexState.EXACT && current != IndexState.RESYNC) {
            return current;
        }
        if (isImpaired() || forecasts.isWrong()) {
            return IndexState.DEGRADED;
        }
        if (current == IndexState.RESYNC) {
            return current;
        }
        final long applied = progress.applied(); // before the offered ones
        if (applied == progress.offered()) {
            return IndexState.EXACT;
        }
        return applied < loadedAtBatch ? IndexState.LOADING : IndexState.RESYNC;
    }

    /** Whether the index does not hold all that it was offered. Any thread. */
    boolean isImpaired() {
        return counters.missing() > 0
                || loraNumbers.missing() > 0
                || !counters.impairment().isEmpty();
    }

    /** Whether the index has refused stores of a view that lacks nothing else. */
    boolean hasRefusedStores() {
        return isApplied() && cause(freshness.isMute()) == IndexCause.REFUSED_STORES;
    }

    /** Whether all that was offered is applied. Any thread. */
    boolean isApplied() {
        return progress.isApplied();
    }

    /** Batches handed on and not applied yet. Any thread. */
    long behind() {
        return Math.max(0, progress.offered() - progress.applied());
    }

    /** Batches that the sink had no room for. Any thread. */
    long refusedBatches() {
        return sink.refused();
    }

    /** See {@link EventSource#ready}. Any thread. */
    boolean isReady() {
        final IndexState current = state();
        return current == IndexState.EXACT || (current == IndexState.DEGRADED && isApplied());
    }

    @Override
    public double credit(double degradedCredit) {
        final IndexState current = state();
        if (current == IndexState.GONE) {
            return 0;
        }
        final boolean whole =
                current != IndexState.LOADING
                        && !incomplete
                        && counters.impairment().isEmpty()
                        && !forecasts.isWrong();
        return (whole ? 1 : degradedCredit) * freshness.left();
    }

    /**
     * Everything, as of now.
     *
     * @param endpoint address that the events come from
     * @param waitingBefore messages that wait before they reach the stream
     */
    SourceStatus snapshot(String endpoint, int waitingBefore) {
        final boolean mute = freshness.isMute();
        final IndexCause cause = cause(mute);
        return new SourceStatus(
                config.name(),
                config.slot(),
                config.dpRank(),
                endpoint,
                stateOf(cause, mute),
                cause,
                currentProblem(),
                parts.tracker.last(),
                counts.ageNs(parts.nanoClock.getAsLong()),
                counts.messages,
                counts.events,
                counters.applied.get(),
                counters.blocksStored.get(),
                counters.blocksRemoved.get(),
                counters.unknownRemovals.get(),
                counters.unknownParents.get(),
                counters.capacityRefusals.get(),
                counters.missingParents.get(),
                counters.missing(),
                counters.evictedBlocks.get(),
                counters.invalidStores.get(),
                counts.duplicates,
                counts.late,
                counts.gaps,
                counts.lostMessages,
                counts.replays,
                counts.replayFailures,
                counts.restarts,
                counts.reconnects,
                counts.disconnects,
                counts.connectFailures,
                sink.refused(),
                (long) waitingBefore + parts.held.size() + (parts.early.isEmpty() ? 0 : 1),
                behind(),
                counters.failures.get(),
                parts.decoder.drops().nonZero(),
                config.blockSize(),
                parts.decoder.learnedBlockSize(),
                parts.rank.learned(),
                parts.decoder.learnedEagle(),
                parts.decoder.multimodalStores(),
                parts.removals.inUse(),
                parts.removals.switches());
    }

    private String currentProblem() {
        final String stale = freshness.why();
        final String missing = whyMissing();
        if (stale != null) {
            return freshness.isMute() ? stale + whyNoStores(missing) : stale;
        }
        if (missing != null) {
            return missing;
        }
        final String impairment = counters.impairment();
        if (!impairment.isEmpty()) {
            return impairment;
        }
        final String shortage = counters.shortage();
        if (!shortage.isEmpty()) {
            return shortage;
        }
        final String unnamed = loraNumbers.problem();
        if (!unnamed.isEmpty()) {
            return unnamed;
        }
        final String wrong = wrongForecasts();
        return wrong == null ? problem : wrong;
    }

    private String whyNoStores(String missing) {
        if (missing != null) {
            return "; " + missing;
        }
        final String other = parts.decoder.otherGroups();
        return other.isEmpty()
                ? ""
                : "; the blocks are of kind "
                        + other
                        + ", which is not indexed: register the worker without events and set"
                        + " approximate";
    }

    /** Why forecasts are wrong; null while they are not. */
    String wrongForecasts() {
        final String wrong = forecasts.why();
        final String other = parts.decoder.otherGroups();
        return wrong == null || other.isEmpty()
                ? wrong
                : "the model has layers of kind "
                        + other
                        + ", whose blocks bound the engine's hits and are not indexed: "
                        + wrong;
    }

    /** Why events are known to be missing; null where they are not. */
    private String whyMissing() {
        if (parts.rank.isForeign()) {
            return parts.rank.problem();
        }
        if (loss != null || !isOfOtherSize()) {
            return loss;
        }
        return "the engine states blocks of "
                + statedBlockSize
                + " tokens, configured are "
                + config.blockSize()
                + ": its events cannot match; set block-size="
                + statedBlockSize;
    }
}

package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.LoraNumbers;
import io.kvasir.pipeline.wire.MessageDecoder;

import java.util.function.LongSupplier;

/**
 * The parts of one stream that several of its steps work with. Each says itself which threads may
 * use it; what does not is guarded by the stream's lock.
 */
final class StreamParts {
    /** Live messages of a direct stream that wait for a replay; a ZMQ source keeps its own. */
    private static final int MOST_HELD = 1_024;

    private static final long MOST_HELD_BYTES = 16L << 20;

    final SourceConfig config;
    final LongSupplier nanoClock;
    final LoraNumbers loraNumbers;
    final MessageDecoder decoder;
    final RankFilter rank;
    final RemovalRuleDetector removals;
    final ForecastWatch forecasts;
    final SourceFreshness freshness;
    final BatchProgress progress = new BatchProgress();
    final StreamCounters counters = new StreamCounters(progress);
    final SequenceTracker tracker;
    final ReplayRequest replay = new ReplayRequest();
    final RetryTimer retry = new RetryTimer();

    /** A message that waits for the one before it. */
    final HeldMessage early = new HeldMessage();

    /** Live messages that wait for a replay. */
    final LiveBuffer held;

    private final StreamLog log;
    private boolean queryable; // a local indexer of the worker may be asked
    private long position; // of the last live message in a stream that many share
    private long earlyPosition; // of the message that waits

    StreamParts(SourceConfig config, LongSupplier nanoClock, StreamLog log) {
        this.config = config;
        this.nanoClock = nanoClock;
        this.log = log;
        this.loraNumbers = new LoraNumbers(config.loraNumbers());
        this.decoder = config.form().newDecoder(config, loraNumbers);
        this.tracker = new SequenceTracker(config.form().firstNumber());
        this.rank = new RankFilter(config, decoder, this::warn);
        this.removals = new RemovalRuleDetector(config.removals());
        this.forecasts = new ForecastWatch(config.blockSize(), nanoClock);
        this.freshness = new SourceFreshness(config.freshness(), nanoClock);
        this.held = new LiveBuffer(MOST_HELD, MOST_HELD_BYTES);
    }

    /**
     * Old messages can be asked for at the worker's local indexer.
     *
     * @param heldOfAll counts the messages that wait for answers in all streams of the plane
     */
    void queryable(HeldBytes heldOfAll) {
        queryable = true;
        held.countIn(heldOfAll);
    }

    /** Whether old messages can be asked for there. */
    boolean isQueryable() {
        return queryable;
    }

    /** Whether old messages can be asked for. */
    boolean isReplayable() {
        return queryable || config.isReplayable();
    }

    /**
     * Whether it is of use to ask for old messages now: what has just not answered would only hold
     * up the live ones again.
     */
    boolean mayAsk() {
        return isReplayable() && !retry.isInVain(nanoClock.getAsLong());
    }

    /**
     * Whether a local indexer is asked only whether something is missing: nothing shows it, and the
     * worker is in the life that is known. Live messages go on meanwhile.
     */
    boolean checksOnly() {
        return queryable
                && replay.is(ReplayRequest.Wanted.VERIFY)
                && held.isEmpty()
                && !tracker.isBehind()
                && !freshness.isDoubted();
    }

    /**
     * The engine may be another one than before, or events of it may be missing.
     *
     * @param why in words
     */
    void doubt(String why) {
        tracker.doubt();
        freshness.doubt(why);
    }

    /** The engine is the same, or nothing of the other one is left. */
    void believe() {
        tracker.believe();
        freshness.believe();
    }

    /** Whether what comes now may be of another life of the engine than what came before. */
    boolean isUnproven() {
        return freshness.isDoubted() && freshness.isConnected();
    }

    /** What is asked for old messages. */
    String replayName() {
        return queryable
                ? "the worker's local indexer"
                : "replay endpoint " + config.replayEndpoint();
    }

    /**
     * Logs a warning, unless there were too many of its kind.
     *
     * @return whether it was written
     */
    boolean warn(StreamLog.Kind kind, String what) {
        return log.warn(kind, config.label(), what, nanoClock.getAsLong());
    }

    /** The same for what is no fault of anything. */
    void info(StreamLog.Kind kind, String what) {
        log.info(kind, config.label(), what, nanoClock.getAsLong());
    }

    /** A live message has this number in a stream that many share; 0 where there is none. */
    void at(long inStream) {
        position = inStream;
    }

    /** Number of the last live message in that stream. */
    long position() {
        return position;
    }

    /** The live message waits for the one before it. */
    void holdsEarly() {
        earlyPosition = position;
    }

    /** Up to where all messages in that stream have been handed on, the one of now included. */
    long handedOn() {
        return early.isEmpty() ? position : Math.min(position, Math.max(0, earlyPosition - 1));
    }
}

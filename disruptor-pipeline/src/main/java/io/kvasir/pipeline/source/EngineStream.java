package io.kvasir.pipeline.source;

import io.kvasir.pipeline.source.ReplayCoordinator.Wanted;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.BatchRank;
import io.kvasir.pipeline.wire.DropReason;
import io.kvasir.pipeline.wire.EngineBatchDecoder;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.KvEventSink;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/**
 * The event stream of one (worker, rank): decodes messages, follows their numbers, notices gaps and
 * restarts, and hands each message on as one batch. Knows no transport: whatever owns one calls
 * {@link #onMessage} for what arrives and, when {@link #replayFrom()} says so, asks the engine to
 * send old messages again and passes them to {@link #onReplayed}.
 *
 * <table>
 * <caption>What happens when</caption>
 * <tr><th>seen</th><th>then</th><th>state</th><th>ends by</th></tr>
 * <tr><td>nothing yet, or the first load</td><td>replay from 0</td><td>LOADING</td><td>all of it
 * applied</td></tr>
 * <tr><td>number = last + 1</td><td>applied</td><td>EXACT; RESYNC until the index has it</td>
 * <td></td></tr>
 * <tr><td>number = last + 2</td><td>kept for 100 ms: the missing one may have been overtaken</td>
 * <td>RESYNC</td><td>the missing one; else a gap</td></tr>
 * <tr><td>a gap, replay</td><td>replay, beginning with the last message itself, whose bytes must be
 * the same</td><td>RESYNC</td><td>the end of the replay</td></tr>
 * <tr><td>a gap, no replay, or not all of it</td><td>applied; what is known is kept; with a replay
 * endpoint everything is asked for again and again, ever more rarely</td><td>DEGRADED</td><td>a
 * replay from the engine's first message, its clear or its restart</td></tr>
 * <tr><td>a message that is known, or whose number has passed</td><td>counted and dropped</td>
 * <td>as before</td><td></td></tr>
 * <tr><td>proof of a restart ({@link SequenceTracker})</td><td>the slot is cleared, replay from
 * 0</td><td>LOADING; without replay EXACT from number 0, else DEGRADED</td><td>as above</td></tr>
 * <tr><td>connection lost, or none made</td><td>what is known is kept, its credit falls</td>
 * <td>STALE</td><td>connected: next row</td></tr>
 * <tr><td>connection came back, replay</td><td>the last message is asked for: other bytes or
 * nothing mean a restart</td><td>RESYNC; STALE if it is not answered</td><td>the answer; it is
 * asked for again and again</td></tr>
 * <tr><td>connection came back, no replay</td><td>the next message decides: last + 1, or a repeat,
 * is the same engine; anything else is taken for a restart</td><td>STALE; then DEGRADED where an
 * engine that has just started may be as far</td><td>the next message; a clear or restart</td>
 * </tr>
 * <tr><td>prompts with new blocks were served and no message came</td><td>the credit falls</td>
 * <td>STALE</td><td>the next message</td></tr>
 * <tr><td>another block size than configured</td><td>its stores are dropped</td><td>DEGRADED</td>
 * <td>a restart with the right one</td></tr>
 * <tr><td>another rank than configured</td><td>the message is dropped</td><td>DEGRADED</td><td>a
 * message of the right rank</td></tr>
 * <tr><td>the sink has no room</td><td>the message counts as missing</td><td>as a gap</td><td></td>
 * </tr>
 * <tr><td>the index refused stores as unknown or invalid</td><td>everything is asked for again
 * and again</td><td>DEGRADED</td><td>a load that is not refused, or a clear</td></tr>
 * <tr><td>the index had no room: stores were refused, or blocks evicted</td><td>what is known is
 * true, so its credit stays; with a replay endpoint everything is asked for when there is room,
 * beside the live messages, and what is missing is added</td>
 * <td>DEGRADED</td><td>the last of it; without replay when the missing blocks are removed, or as
 * many as were announced when it last had no room; a clear</td></tr>
 * <tr><td>the engine often has less than predicted</td><td>the slot is cleared, replay from 0</td>
 * <td>LOADING; without replay DEGRADED</td><td>as above</td></tr>
 * </table>
 *
 * <p>Any thread may call any method; a lock of its own orders them. Messages must come in the order
 * in which they were received, so one thread should deliver them.
 */
public final class EngineStream implements EventSource {
    /** Answer of {@link #replayFrom()} when nothing is wanted. */
    public static final long NO_REPLAY = -1;

    /** What to do after a replayed message. */
    public enum ReplayStep {
        /** Go on with the next message. */
        CONTINUE,
        /** The sink has no room: wait a little and pass the same message again. */
        RETRY,
        /** Drop this replay; {@link EngineStream#replayFrom()} says what to do instead. */
        STOP
    }

    /**
     * So many messages cannot have been published unseen between the start of an engine and a
     * connection that was waiting for it.
     */
    static final long MOST_UNSEEN_AT_START = 1_024;

    /** How long a message is kept for the one before it. */
    static final long OVERTAKEN_NS = TimeUnit.MILLISECONDS.toNanos(100);

    private static final Logger LOG = LoggerFactory.getLogger(EngineStream.class);
    private static final int RETAINED_WORDS = 1 << 14;

    /** Parts of a refill that are handed on at once. */
    private static final int REFILL_PARTS = 16;

    /** Replays of one refill: each brings what the one before has missed. */
    private static final int REFILL_REPLAYS = 8;

    /** Blocks that an engine may have held beyond what the index has room for, some time ago. */
    private static final int REFILL_SLACK = 1024;

    /** Lines about streams that become stale, or are not any more, in a period of time. */
    static final int STALE_LINES = 20;

    static final long STALE_LINES_PERIOD_NS = TimeUnit.SECONDS.toNanos(10);

    private static final long NO_RANK = -1;

    private final SourceConfig config;
    private final KvEventSink sink;
    private final LongSupplier nanoClock;
    private final LogLimit staleLines;
    private final EngineBatchDecoder decoder;
    private final BatchRank ranks = new BatchRank();
    private final StreamCounters counters = new StreamCounters();
    private final StreamStatus status = new StreamStatus();
    private final SequenceTracker tracker = new SequenceTracker();
    private final ReplayCoordinator replay = new ReplayCoordinator();
    private final RemovalRuleDetector removals;
    private final SourceFreshness freshness;
    private final KvBatch batch = new KvBatch();
    private final KvBatch replayed = new KvBatch();
    private final HeldMessage held = new HeldMessage(); // the newest live one during a replay
    private final HeldMessage early = new HeldMessage(); // waits for the one before it
    private final AtomicLong offered = new AtomicLong();

    private String endpoint;
    private long earlySinceNs;
    private Refill refill; // null when none is under way
    private boolean askedForRefill; // the replay under way is of one
    private int view; // of the slot; a refill is of use for one
    private boolean clearPending;
    private boolean closed;
    private boolean everConnected;
    private boolean loaded;
    private String loss; // why the view is not exact, null if it is
    private long foreignRank = NO_RANK;
    private long learnedRank = BatchRank.NONE;
    private int warnedBlockSize;
    private long failuresSeen;
    private long reloadAtNs;
    private long reloadDelayNs;
    private volatile long loadedAtBatch; // batches that the load consists of
    private volatile boolean incomplete; // loss or foreign rank
    private volatile IndexState state = IndexState.LOADING;

    /**
     * Creates a stream.
     *
     * @param config whose events these are; with a replay endpoint, replays are asked for through
     *     {@link #replayFrom()}
     * @param sink takes the batches
     */
    public EngineStream(SourceConfig config, KvEventSink sink) {
        this(config, sink, System::nanoTime);
    }

    EngineStream(SourceConfig config, KvEventSink sink, LongSupplier nanoClock) {
        this(config, sink, nanoClock, new LogLimit(STALE_LINES, STALE_LINES_PERIOD_NS));
    }

    /** With a limit of lines about becoming stale that it shares with others. */
    EngineStream(SourceConfig config, KvEventSink sink, LogLimit staleLines) {
        this(config, sink, System::nanoTime, staleLines);
    }

    private EngineStream(
            SourceConfig config, KvEventSink sink, LongSupplier nanoClock, LogLimit staleLines) {
        this.staleLines = staleLines;
        this.config = Objects.requireNonNull(config);
        this.sink = Objects.requireNonNull(sink);
        this.nanoClock = Objects.requireNonNull(nanoClock);
        this.decoder = new EngineBatchDecoder(config.blockSize(), config.hashSeed());
        this.removals = new RemovalRuleDetector(config.removals());
        this.freshness = new SourceFreshness(config.freshness(), nanoClock);
        this.endpoint = config.endpoint();
    }

    /** The configuration that the stream was made with. */
    public SourceConfig config() {
        return config;
    }

    /** Whether live messages have to wait for a replay that is wanted. */
    synchronized boolean holdsLive() {
        return replay.holdsLive();
    }

    synchronized void endpoint(String boundAddress) {
        endpoint = boundAddress;
    }

    /**
     * Takes a live message.
     *
     * @param sequence the engine's number of it
     * @param payload the event batch; not kept
     */
    public void onMessage(long sequence, byte[] payload) {
        onMessage(sequence, payload, 0, payload.length);
    }

    /**
     * Takes a live message that is a part of an array.
     *
     * @param sequence the engine's number of it
     * @param payload holds the event batch; not kept
     * @param offset its first byte
     * @param length its bytes
     * @throws IndexOutOfBoundsException if the range does not lie in {@code payload}
     */
    public synchronized void onMessage(long sequence, byte[] payload, int offset, int length) {
        Objects.checkFromIndexSize(offset, length, payload.length);
        if (closed) {
            return;
        }
        status.messages++;
        housekeeping();
        if (isUsable(sequence, payload, offset, length)) {
            freshness.heard();
            status.heard(nanoClock.getAsLong());
            live(sequence, payload, offset, length);
        }
        publishState();
    }

    private boolean isUsable(long sequence, byte[] payload, int offset, int length) {
        if (sequence < 0) {
            drop(DropReason.BAD_SEQUENCE_FRAME, "message number " + sequence + " is negative");
            return false;
        }
        return switch (decoder.shapeOf(payload, offset, length)) {
            case BATCH -> isOwnRank(payload, offset, length);
            case OTHER -> {
                decoder.drops().add(DropReason.IGNORED_MESSAGE);
                yield false;
            }
            case UNDECODABLE -> {
                // neither the content nor the number of such a message is believed
                drop(
                        DropReason.UNDECODABLE_MESSAGE,
                        length + " bytes under number " + sequence + " are no event batch");
                yield false;
            }
        };
    }

    /** A message of another rank has other numbers, too: it is not read any further. */
    private boolean isOwnRank(byte[] payload, int offset, int length) {
        final long rank = ranks.of(payload, offset, length);
        learnedRank = rank < 0 ? learnedRank : rank;
        if (rank < 0 || rank == config.dpRank()) {
            foreignRank = rank < 0 ? foreignRank : NO_RANK;
            return true;
        }
        decoder.drops().add(DropReason.FOREIGN_RANK);
        if (foreignRank != rank) {
            foreignRank = rank;
            LOG.warn("{}: {}", name(), foreignRankText());
        }
        return false;
    }

    private String foreignRankText() {
        return "the engine's events are of rank "
                + foreignRank
                + ", configured is "
                + config.dpRank()
                + ": they are dropped; set dpRank="
                + foreignRank
                + ", or the address of rank "
                + config.dpRank();
    }

    private void live(long sequence, byte[] payload, int offset, int length) {
        final SequenceTracker.Verdict verdict =
                tracker.judge(sequence, tracker.contentOf(payload, offset, length));
        // what arrives without a connection has come by the one that is lost
        if (freshness.isDoubted() && freshness.isConnected() && !settleDoubt(verdict, sequence)) {
            firstOfNewLife(sequence, payload, offset, length);
            return;
        }
        switch (verdict) {
            case NEXT -> next(sequence, payload, offset, length);
            case AHEAD -> ahead(sequence, payload, offset, length);
            case DUPLICATE -> status.duplicates++;
            case LATE -> late(sequence);
            case RESTART -> {
                restarted("message " + sequence + " came after " + tracker.last());
                firstOfNewLife(sequence, payload, offset, length);
            }
        }
    }

    /**
     * Judges by the first message after a reconnect whether the engine is the one that was heard
     * before; false if its view was dropped because it may be another.
     */
    private boolean settleDoubt(SequenceTracker.Verdict verdict, long sequence) {
        final boolean next = verdict == SequenceTracker.Verdict.NEXT;
        if (verdict == SequenceTracker.Verdict.DUPLICATE
                || (next && sequence > MOST_UNSEEN_AT_START)) {
            if (replay.isIdle()) {
                freshness.believe();
            }
            return true;
        }
        if (isReplayable() || verdict == SequenceTracker.Verdict.RESTART) {
            return true; // the replay tells, or the message has
        }
        if (next) {
            loss =
                    "after a reconnect the numbers go on at "
                            + sequence
                            + ", which another life of the engine may do so early; a replay"
                            + " endpoint would tell";
            LOG.warn("{}: {}", name(), loss);
            freshness.believe();
            return true;
        }
        restarted(
                "after a reconnect message "
                        + sequence
                        + " came, the last one was "
                        + tracker.last()
                        + "; it may be another life of the engine, and there is no replay endpoint"
                        + " to tell");
        return false;
    }

    private void late(long sequence) {
        status.late++;
        if (isReplayable() && !replay.holdsLive()) {
            replay.verify(true); // the engine says whether it has begun anew
        }
        LOG.debug("{}: message {} came after {}", name(), sequence, tracker.last());
    }

    private void next(long sequence, byte[] payload, int offset, int length) {
        if (replay.holdsLive()) {
            held.hold(sequence, payload, offset, length);
            return;
        }
        apply(sequence, payload, offset, length);
        if (!early.isEmpty()) {
            takeEarly();
        }
    }

    private void ahead(long sequence, byte[] payload, int offset, int length) {
        if (!early.isEmpty()) {
            takeEarly();
        }
        if (replay.holdsLive()) {
            held.hold(sequence, payload, offset, length);
        } else if (sequence == tracker.last() + 1) {
            apply(sequence, payload, offset, length);
        } else if (tracker.last() >= 0 && sequence == tracker.last() + 2) {
            early.hold(sequence, payload, offset, length);
            earlySinceNs = nanoClock.getAsLong();
        } else {
            gap(sequence, payload, offset, length);
        }
    }

    /** Uses the early message, behind the missing one or without it. */
    private void takeEarly() {
        final long sequence = early.number();
        final int length = early.length();
        final byte[] payload = early.take();
        if (sequence == tracker.last() + 1) {
            apply(sequence, payload, 0, length);
        } else if (sequence > tracker.last()) {
            gap(sequence, payload, 0, length);
        }
    }

    private void firstOfNewLife(long sequence, byte[] payload, int offset, int length) {
        tracker.judge(sequence, tracker.contentOf(payload, offset, length));
        if (sequence == 0) {
            apply(sequence, payload, offset, length);
        } else {
            gap(sequence, payload, offset, length);
        }
    }

    private void gap(long sequence, byte[] payload, int offset, int length) {
        final boolean first = tracker.last() < 0;
        if (!first) {
            status.gaps++;
        }
        if (isReplayable()) {
            held.hold(sequence, payload, offset, length);
            wantMissing(first);
            return;
        }
        // publishers that connect to us have sent us everything; some of them count from 1
        if (!(first && sequence == 1 && config.bind())) {
            lose(tracker.last() + 1, sequence - 1, "there is no replay endpoint; configure one");
        }
        apply(sequence, payload, offset, length);
    }

    private void wantMissing(boolean first) {
        if (first) {
            replay.load();
        } else {
            replay.verify(false);
        }
    }

    private void apply(long sequence, byte[] payload, int offset, int length) {
        if (offer(sequence, payload, offset, length)) {
            return;
        }
        status.gaps++;
        if (isReplayable()) {
            held.hold(sequence, payload, offset, length);
            wantMissing(tracker.last() < 0);
        } else {
            lose(sequence, sequence, "the event ring is full; raise event-ring-size");
            advance(sequence, payload, offset, length);
        }
    }

    /** Decodes a message and offers it; false if the sink has no room, then nothing has changed. */
    private boolean offer(long sequence, byte[] payload, int offset, int length) {
        batch.reset(config.slot(), sequence, removals.rule(), config.rootStoresRefresh(), counters);
        if (clearPending) {
            batch.addCleared();
        }
        final int before = batch.operations();
        decoder.decode(payload, offset, length, batch);
        if (!offerBatch()) {
            status.problem = "the event ring is full; raise event-ring-size";
            return false;
        }
        clearPending = false;
        if (refill != null && !refill.live(sequence, batch) && refill.isReporting()) {
            refill = null;
        }
        status.events += decoder.eventCount();
        if (sequence == 0 || containsClear(before)) {
            loss = null;
        }
        if (decoder.lostBlocks()) {
            eventsLost(sequence);
        }
        batch.trim(RETAINED_WORDS);
        advance(sequence, payload, offset, length);
        return true;
    }

    private boolean offerBatch() {
        return offer(batch);
    }

    private boolean offer(KvBatch filled) {
        offered.getAndIncrement(); // before: it may be applied before the call returns
        if (sink.offer(filled)) {
            return true;
        }
        offered.getAndDecrement();
        status.refused++;
        return false;
    }

    private boolean containsClear(int operationsBefore) {
        int operation = 0;
        for (int at = batch.first(); at >= 0; at = batch.next(at)) {
            if (operation++ >= operationsBefore && batch.kind(at) == KvBatch.Kind.CLEARED) {
                return true;
            }
        }
        return false;
    }

    private void eventsLost(long sequence) {
        final int learned = decoder.learnedBlockSize();
        if (learned != 0 && learned != config.blockSize()) {
            loss =
                    "the engine's block size is "
                            + learned
                            + ", configured is "
                            + config.blockSize()
                            + ": its stores are dropped; set blockSize="
                            + learned;
            if (warnedBlockSize != learned) {
                warnedBlockSize = learned;
                LOG.warn("{}: {}", name(), loss);
            }
        } else {
            if (loss == null) {
                LOG.warn(
                        "{}: message {} held events that could not be used: {}",
                        name(),
                        sequence,
                        decoder.drops().nonZero());
            }
            loss = "message " + sequence + " held events that could not be used; see the drops";
        }
        status.problem = loss;
    }

    private void advance(long sequence, byte[] payload, int offset, int length) {
        tracker.advance(sequence, tracker.contentOf(payload, offset, length));
        if (!loaded) {
            loaded();
        }
    }

    private void loaded() {
        loaded = true;
        loadedAtBatch = offered.get();
    }

    private void lose(long from, long to, String why) {
        view++;
        if (to >= from) {
            status.lostMessages += to - from + 1;
        }
        loss = "messages " + from + ".." + to + " are lost: " + why;
        status.problem = loss;
        publishState(); // before the next message is seen in the index
        LOG.warn("{}: {}", name(), loss);
    }

    private void drop(DropReason reason, String what) {
        decoder.drops().add(reason);
        status.problem = what;
        LOG.debug("{}: {}", name(), what);
    }

    /** Counts a malformed message and drops it. */
    synchronized void dropped(DropReason reason, String what) {
        status.messages++;
        drop(reason, what);
    }

    private void restarted(String how) {
        view++;
        status.restarts++;
        status.problem = "the engine has restarted: " + how;
        LOG.info("{}: {}; its blocks are cleared", name(), status.problem);
        tracker.forget();
        forgetMessages();
        loss = null;
        decoder.forget();
        removals.forget();
        freshness.believe();
        clearPending = true;
        flushClear();
    }

    private void forgetMessages() {
        held.drop();
        early.drop();
        replay.nothing();
        loaded = false;
    }

    private void flushClear() {
        batch.reset(
                config.slot(),
                tracker.last(),
                removals.rule(),
                config.rootStoresRefresh(),
                counters);
        batch.addCleared();
        if (offerBatch()) {
            clearPending = false;
        }
    }

    /**
     * Says that the transport is connected, for the first time or again. With a replay endpoint the
     * stream then wants to load, or to find out whether the engine is still the same.
     */
    public synchronized void onConnected() {
        if (closed) {
            return;
        }
        freshness.connected();
        if (loaded) {
            status.reconnects++;
        }
        // a message may be faster than the news of the first connection
        if (tracker.last() >= 0 && (everConnected || config.endpoint().isEmpty())) {
            freshness.doubt();
        }
        everConnected = true;
        if (isReplayable()) {
            if (tracker.last() < 0) {
                replay.load();
            } else {
                replay.verify(true);
            }
        }
        publishState();
    }

    /**
     * Says that the transport has lost its connection: what the engine announces from now on is
     * missed until {@link #onConnected()}.
     *
     * @param why the transport's words for it, with the address
     */
    public synchronized void onDisconnected(String why) {
        if (!closed) {
            status.disconnects++;
            freshness.unconnected(why);
            if (tracker.last() >= 0) {
                freshness.doubt();
            }
            publishState();
        }
    }

    /**
     * Says that the transport could not connect; it goes on trying.
     *
     * @param why the transport's words for it, with the address
     */
    public synchronized void onConnectFailed(String why) {
        if (!closed) {
            status.connectFailures++;
            freshness.unconnected(why);
            publishState();
        }
    }

    /**
     * Wants the messages behind the last one, if nothing else is wanted: for a transport that may
     * have missed the newest ones without noticing.
     */
    public synchronized void checkTail() {
        if (!closed && isReplayable() && replay.isIdle()) {
            wantMissing(tracker.last() < 0);
            publishState();
        }
    }

    /**
     * Number of the first message that the engine should send again, {@link #NO_REPLAY} if none.
     * Nothing is wanted from a source without a replay endpoint.
     */
    public synchronized long replayFrom() {
        askedForRefill = replay.is(Wanted.REFILL);
        return replay.from(tracker.last());
    }

    /**
     * Takes a message that was asked for.
     *
     * @param sequence the engine's number of it
     * @param payload the event batch; not kept
     * @return how to go on
     */
    public synchronized ReplayStep onReplayed(long sequence, byte[] payload) {
        if (closed || replay.isIdle()) {
            return ReplayStep.STOP;
        }
        status.messages++;
        if (askedForRefill) {
            return refilled(sequence, payload);
        }
        final ReplayStep step = replayed(sequence, payload);
        publishState();
        return step;
    }

    /** Shows the shadow a message; what is live goes on meanwhile. */
    private ReplayStep refilled(long sequence, byte[] payload) {
        if (!replay.is(Wanted.REFILL) || refill == null || refill.view() != view) {
            endRefillReplay();
            return ReplayStep.STOP;
        }
        replayed.reset(
                config.slot(),
                sequence,
                removals.rule(),
                config.rootStoresRefresh(),
                ApplyListener.NONE);
        final boolean usable =
                decoder.shapeOf(payload, 0, payload.length) == EngineBatchDecoder.Shape.BATCH;
        if (usable && !isOwnRank(payload, 0, payload.length)) {
            return ReplayStep.CONTINUE;
        }
        if (!usable
                || !refill.replayed(sequence, payload, replayed)
                || refill.blocks() - REFILL_SLACK > sink.mostBlocks()) {
            refill = null; // its start, or something between, is not there, or it is too much
            endRefillReplay();
            return ReplayStep.STOP;
        }
        return ReplayStep.CONTINUE;
    }

    private void endRefillReplay() {
        askedForRefill = false;
        if (replay.is(Wanted.REFILL)) {
            replay.nothing();
            replay.retryLater(nanoClock.getAsLong());
        }
    }

    private ReplayStep replayed(long sequence, byte[] payload) {
        if (replay.is(Wanted.HEAL)) {
            if (sequence > 1) {
                replay.nothing(); // the start is not there
                replay.retryLater(nanoClock.getAsLong());
                applyHeld();
                return ReplayStep.STOP;
            }
            reload();
        }
        final long last = tracker.last();
        if (replay.is(Wanted.VERIFY) && !replay.isVerified()) {
            if (sequence < last) {
                return ReplayStep.CONTINUE;
            }
            final boolean same =
                    tracker.isLast(sequence, tracker.contentOf(payload, 0, payload.length));
            if (sequence == last && !same) {
                return loadNewLife("message " + last + " has other content now");
            }
            if (sequence > last && replay.isStrict()) {
                return loadNewLife("message " + last + " is not there any more");
            }
            replay.verified();
            freshness.believe();
        }
        if (sequence <= last) {
            return ReplayStep.CONTINUE;
        }
        if (!takeReplayed(sequence, payload)) {
            return ReplayStep.RETRY;
        }
        if (sequence > last + 1 && !(last < 0 && sequence == 1)) {
            lose(last + 1, sequence - 1, "the engine's replay buffer no longer holds them");
        }
        return ReplayStep.CONTINUE;
    }

    private boolean takeReplayed(long sequence, byte[] payload) {
        if (decoder.shapeOf(payload, 0, payload.length) == EngineBatchDecoder.Shape.BATCH) {
            return !isOwnRank(payload, 0, payload.length)
                    || offer(sequence, payload, 0, payload.length);
        }
        drop(DropReason.UNDECODABLE_MESSAGE, "replayed message " + sequence + " is no event batch");
        loss = status.problem;
        advance(sequence, payload, 0, payload.length);
        return true;
    }

    private ReplayStep loadNewLife(String how) {
        restarted(how);
        replay.load();
        return ReplayStep.STOP;
    }

    /** Says that the engine has sent everything it was asked for. */
    public synchronized void replayEnded() {
        if (closed || replay.isIdle()) {
            return;
        }
        status.replays++;
        if (askedForRefill) {
            askedForRefill = false;
            if (replay.is(Wanted.REFILL)) {
                replay.nothing();
                goOnRefilling();
            }
        } else if (replay.is(Wanted.VERIFY) && !replay.isVerified() && replay.isStrict()) {
            loadNewLife("it knows of no message " + tracker.last());
        } else if (replay.is(Wanted.HEAL)) {
            replay.nothing(); // nothing is there
            replay.retryLater(nanoClock.getAsLong());
            applyHeld();
        } else {
            finishReplay("the engine's replay did not contain them");
        }
        publishState();
    }

    /**
     * Says that the engine did not answer, after all tries: what is known is kept and loses credit,
     * and later tries may mend it.
     */
    public void replayFailed() {
        replayFailed("");
    }

    /**
     * The same, with a reason.
     *
     * @param detail why there was no answer; may be empty
     */
    public synchronized void replayFailed(String detail) {
        if (closed || replay.isIdle()) {
            return;
        }
        status.replayFailures++;
        final String why =
                "replay endpoint "
                        + config.replayEndpoint()
                        + " does not answer"
                        + (detail.isEmpty() ? "" : ": " + detail);
        status.problem = why;
        if (askedForRefill) {
            refill = null;
            endRefillReplay();
            publishState();
            return;
        }
        if (replay.is(Wanted.HEAL)) {
            replay.nothing();
            applyHeld();
        } else {
            final boolean nothingLoaded = tracker.last() < 0;
            finishReplay(why);
            if (nothingLoaded && loss == null) {
                loss = why + ": messages may be missing";
                LOG.warn("{}: {}", name(), loss);
            }
        }
        replay.retryLater(nanoClock.getAsLong());
        publishState();
    }

    private void finishReplay(String whyMissing) {
        replay.nothing();
        loaded();
        final long last = tracker.last();
        if (held.number() > last + 1) {
            lose(last + 1, held.number() - 1, whyMissing);
        }
        applyHeld();
    }

    private void applyHeld() {
        final long sequence = held.number();
        if (sequence > tracker.last()) {
            final int length = held.length();
            apply(sequence, held.take(), 0, length); // which may hold it again
        } else {
            held.drop();
        }
    }

    /** Empties the slot and wants everything from message 0. */
    private void reload() {
        if (!early.isEmpty() && !isReplayable()) {
            takeEarly();
        }
        early.drop();
        view++;
        final long last = tracker.last();
        tracker.rewind();
        loaded = false;
        loss = null;
        clearPending = true;
        flushClear();
        if (isReplayable()) {
            replay.load();
        } else {
            tracker.skipTo(last);
            loaded();
            loss = "the slot was cleared and there is no replay endpoint to load it from";
        }
    }

    /**
     * Does what is due: clears that found no room, gaps that were not filled, tries to mend a view
     * that lost messages. A transport calls it some times per second; {@link #onMessage} does so
     * too.
     */
    public synchronized void tick() {
        if (!closed) {
            housekeeping();
            publishState();
        }
    }

    private void housekeeping() {
        final long now = nanoClock.getAsLong();
        if (clearPending) {
            flushClear();
        }
        if (!early.isEmpty() && now - earlySinceNs >= OVERTAKEN_NS) {
            takeEarly();
        }
        freshness.look();
        if (!replay.holdsLive()) {
            reloadAfterFailure(now);
        }
        if (refill != null) {
            goOnRefilling();
        }
        if (isReplayable() && replay.isIdle()) {
            mend(now);
        }
    }

    /** Loads the slot again after an error in the index: at once, then ever more rarely. */
    private void reloadAfterFailure(long now) {
        final long failures = counters.failures.get();
        if (failures == failuresSeen || (reloadDelayNs > 0 && now - reloadAtNs < 0)) {
            return;
        }
        final boolean longAgo = now - reloadAtNs > ReplayCoordinator.LAST_DELAY_NS;
        failuresSeen = failures;
        reloadDelayNs =
                reloadDelayNs == 0 || longAgo
                        ? ReplayCoordinator.FIRST_DELAY_NS
                        : Math.min(2 * reloadDelayNs, ReplayCoordinator.LAST_DELAY_NS);
        reloadAtNs = now + reloadDelayNs;
        reload();
    }

    private void mend(long now) {
        final boolean doubtful =
                freshness.isDoubted() || loss != null || !counters.impairment().isEmpty();
        if (doubtful || (counters.missing() > 0 && refill == null)) {
            if (!replay.isRetrying()) {
                replay.retryLater(now);
            } else if ((doubtful || sink.hasRoom(config.slot()))
                    && (replay.takeRetry(now)
                            || (counters.hasRoomAgain() && replay.takeFirstRetry()))) {
                if (freshness.isDoubted()) {
                    replay.verify(true);
                } else if (doubtful) {
                    replay.heal();
                } else {
                    refill = new Refill(config, view);
                    replay.refill(0);
                }
            }
        } else if (!isIncomplete() && isApplied()) {
            replay.settled();
        }
    }

    /** Reports the shadow when it has caught up; asks for more, or drops it, when it has not. */
    private void goOnRefilling() {
        if (refill == null || refill.view() != view || loss != null || freshness.isDoubted()) {
            refill = null;
        } else if (replay.isIdle() && refill.last() < tracker.last()) {
            if (refill.isReporting() || refill.replays() == REFILL_REPLAYS) {
                refill = null;
                replay.retryLater(nanoClock.getAsLong());
            } else {
                replay.refill(refill.ask());
            }
        } else if (replay.isIdle() && refill.last() == tracker.last()) {
            report();
        }
    }

    private void report() {
        for (int i = 0; i < REFILL_PARTS && !refill.isComplete(); i++) {
            if (!refill.report(this::offer, counters)) {
                return;
            }
        }
        if (refill.isComplete()) {
            refill = null;
        }
    }

    @Override
    public synchronized void clear() {
        if (!closed) {
            clearPending = true;
            flushClear();
        }
    }

    @Override
    public void reportServed() {
        freshness.served();
    }

    @Override
    public synchronized void reportEngineHit(int predictedCachedTokens, int engineCachedTokens) {
        if (closed || !loaded || !replay.isIdle()) {
            return;
        }
        final RemovalRuleDetector.Finding finding =
                removals.report(predictedCachedTokens - engineCachedTokens >= config.blockSize());
        if (finding == RemovalRuleDetector.Finding.NOTHING) {
            return;
        }
        reload();
        final String often =
                "the engine had less cached than predicted "
                        + RemovalRuleDetector.OVER_PREDICTIONS
                        + " times in "
                        + RemovalRuleDetector.WINDOW
                        + " requests";
        status.problem =
                finding == RemovalRuleDetector.Finding.RULE_CHANGED
                        ? "removals mean the last copy here: " + often + "; set removals=last-copy"
                        : often + ": its blocks are cleared";
        LOG.warn("{}: {}", name(), status.problem);
        publishState();
    }

    private void publishState() {
        final IndexState before = state;
        incomplete = loss != null || foreignRank != NO_RANK;
        state = currentState();
        if (before != state
                && state != IndexState.GONE
                && (before == IndexState.STALE || state == IndexState.STALE)) {
            logStale();
        }
    }

    private void logStale() {
        final int left = staleLines.take(nanoClock.getAsLong());
        if (left < 0) {
            return;
        }
        final String more =
                left == 0
                        ? " (of further ones nothing is said for "
                                + TimeUnit.NANOSECONDS.toSeconds(STALE_LINES_PERIOD_NS)
                                + " s)"
                        : "";
        if (state == IndexState.STALE) {
            LOG.warn("{}: stale: {}{}", name(), freshness.why(), more);
        } else {
            LOG.warn("{}: no longer stale: {}{}", name(), state, more);
        }
    }

    private IndexState currentState() {
        if (closed) {
            return IndexState.GONE;
        }
        if (!freshness.isConnected()
                || freshness.isSilent()
                || (freshness.isDoubted() && replay.isIdle())) {
            return IndexState.STALE;
        }
        if (foreignRank != NO_RANK && !loaded) {
            return IndexState.DEGRADED;
        }
        if (replay.is(Wanted.LOAD) || (tracker.last() < 0 && !loaded)) {
            return IndexState.LOADING;
        }
        if (replay.is(Wanted.VERIFY) || !early.isEmpty()) {
            return IndexState.RESYNC;
        }
        return incomplete ? IndexState.DEGRADED : IndexState.EXACT;
    }

    @Override
    public IndexState state() {
        final IndexState current = state;
        if (current != IndexState.GONE && freshness.isSilent()) {
            return IndexState.STALE;
        }
        if (current != IndexState.EXACT) {
            return current;
        }
        if (isIncomplete()) {
            return IndexState.DEGRADED;
        }
        final long applied = counters.batches.get();
        if (applied == offered.get()) {
            return IndexState.EXACT;
        }
        return applied < loadedAtBatch ? IndexState.LOADING : IndexState.RESYNC;
    }

    private boolean isIncomplete() {
        return counters.missing() > 0 || !counters.impairment().isEmpty();
    }

    private boolean isApplied() {
        return counters.batches.get() == offered.get();
    }

    @Override
    public boolean ready() {
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
                current != IndexState.LOADING && !incomplete && counters.impairment().isEmpty();
        return (whole ? 1 : degradedCredit) * freshness.left();
    }

    @Override
    public synchronized SourceStatus status() {
        return new SourceStatus(
                config.name(),
                config.slot(),
                config.dpRank(),
                endpoint,
                state(),
                problem(),
                tracker.last(),
                status.ageNs(nanoClock.getAsLong()),
                status.messages,
                status.events,
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
                status.duplicates,
                status.late,
                status.gaps,
                status.lostMessages,
                status.replays,
                status.replayFailures,
                status.restarts,
                status.reconnects,
                status.disconnects,
                status.connectFailures,
                status.refused,
                Math.max(0, offered.get() - counters.batches.get()),
                counters.failures.get(),
                decoder.drops().nonZero(),
                config.blockSize(),
                decoder.learnedBlockSize(),
                learnedRank,
                decoder.learnedEagle(),
                decoder.multimodalStores(),
                removals.inUse(),
                removals.switches());
    }

    private String problem() {
        final String stale = freshness.why();
        if (stale != null) {
            return stale;
        }
        if (foreignRank != NO_RANK) {
            return foreignRankText();
        }
        if (loss != null) {
            return loss;
        }
        final String impairment = counters.impairment();
        if (!impairment.isEmpty()) {
            return impairment;
        }
        final String shortage = counters.shortage();
        return shortage.isEmpty() ? status.problem : shortage;
    }

    @Override
    public synchronized void close() {
        closed = true;
        publishState();
    }

    private boolean isReplayable() {
        return config.replayEndpoint() != null;
    }

    private String name() {
        return config.name() + "/" + config.dpRank();
    }
}

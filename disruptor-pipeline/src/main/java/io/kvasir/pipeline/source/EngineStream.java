package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.DropReason;
import io.kvasir.pipeline.wire.KvEventSink;
import io.kvasir.pipeline.wire.LoadStat;
import io.kvasir.pipeline.wire.LoraNumbers;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.Map;
import java.util.Objects;
import java.util.function.LongSupplier;

/**
 * The event stream of one (worker, rank): decodes messages, follows their numbers, detects gaps and
 * restarts, and hands each message on as one batch. Knows no transport: the owner of one calls
 * {@link #onMessage} for what arrives and, when {@link #replayFrom()} says so, asks the engine to
 * send old messages again and passes them to {@link #onReplayed}.
 *
 * <table>
 * <caption>What happens when</caption>
 * <tr><th>seen</th><th>then</th><th>state</th><th>ends by</th></tr>
 * <tr><td>nothing yet, or the first load</td><td>replay from 0; where an answer breaks off the next
 * begins with the last message, whose bytes must be the same</td><td>LOADING</td><td>all of it
 * applied</td></tr>
 * <tr><td>number = last + 1</td><td>applied</td><td>EXACT; RESYNC until the index has it</td>
 * <td></td></tr>
 * <tr><td>number = last + 2</td><td>kept for 100 ms: the missing one may have been overtaken</td>
 * <td>RESYNC</td><td>the missing one; else a gap</td></tr>
 * <tr><td>a gap, replay</td><td>replay, beginning with the last message itself, whose bytes must be
 * the same</td><td>RESYNC</td><td>the end of the replay</td></tr>
 * <tr><td>a gap, or nothing yet, of an event plane with local indexers</td><td>the worker's is asked
 * for events or a dump; later messages wait; the dump takes the place of what is known when all of
 * it is there</td><td>RESYNC, LOADING</td><td>the end of the answer; none: next row</td></tr>
 * <tr><td>another publisher goes on with the numbers, of an event plane with local indexers</td>
 * <td>the worker's is asked for all; later messages wait</td><td>RESYNC</td><td>the end of the
 * answer; none: the publisher is believed</td></tr>
 * <tr><td>a gap, no replay, or not all of it</td><td>applied; what is known is kept; with a replay
 * endpoint everything is asked for again and again, ever more rarely; until then, where it did not
 * answer, it is not asked for further gaps</td><td>DEGRADED</td><td>a replay from the engine's
 * first message, its clear or its restart</td></tr>
 * <tr><td>a message that is known, or whose number has passed</td><td>counted and dropped</td>
 * <td>as before</td><td></td></tr>
 * <tr><td>proof of a restart ({@link SequenceTracker})</td><td>the slot is cleared, replay from
 * 0</td><td>LOADING; without replay EXACT from number 0, else DEGRADED</td><td>as above</td></tr>
 * <tr><td>connection lost, or none made</td><td>what is known is kept, its credit falls</td>
 * <td>STALE</td><td>connected: next row</td></tr>
 * <tr><td>connection came back, replay</td><td>live messages that wait are dropped; the last message
 * before the connection was lost is asked for, anew where a replay is under way: other bytes or
 * nothing mean a restart</td><td>RESYNC; STALE if it is not answered</td><td>the answer; it is asked
 * for again and again, and live messages are applied meanwhile</td></tr>
 * <tr><td>connection came back, no replay</td><td>the next message decides: last + 1, or a repeat,
 * is the same engine; a higher one clears the slot, and what is between is lost; a lower one is
 * taken for a restart</td><td>STALE; then DEGRADED where the number is higher, or an engine that
 * has just started may be as far</td><td>the next message; a clear or restart</td>
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
 * <tr><td>blocks of an adapter whose number has no name</td><td>they are left out, what is known is
 * true, so its credit stays; with a replay endpoint everything is asked for when the name is
 * known</td><td>DEGRADED</td><td>the end of that; without replay when the blocks are removed; a
 * clear</td></tr>
 * <tr><td>a number that means another adapter than blocks were stored under</td><td>the slot is
 * cleared, replay from 0; the number's blocks are left out from then on</td><td>LOADING, DEGRADED
 * </td><td>a clear or restart of the engine</td></tr>
 * <tr><td>the slot was restored from a snapshot</td><td>as if the connection had just come back:
 * the last message of the snapshot is asked for, or the next message decides</td><td>STALE</td>
 * <td>as above; DEGRADED stays where the snapshot was</td></tr>
 * <tr><td>the engine often has less than predicted</td><td>the slot is cleared, replay from 0</td>
 * <td>LOADING; without replay DEGRADED</td><td>as above</td></tr>
 * <tr><td>the index refused stores by a meaning of removals that was concluded from that</td>
 * <td>as before that, until a restart; the slot is cleared, replay from 0</td><td>LOADING; without
 * replay DEGRADED</td><td>as above</td></tr>
 * <tr><td>the engine's cache hits are persistently other ones than predicted ({@link
 * ForecastWatch})</td><td>everything is asked for again, once</td><td>DEGRADED</td><td>forecasts
 * that are right</td></tr>
 * <tr><td>prompts with new blocks were served, messages came and stored nothing</td><td>the credit
 * falls</td><td>STALE</td><td>the next store</td></tr>
 * <tr><td>the engine states another block size beside its events</td><td>what it announces counts
 * less</td><td>DEGRADED</td><td>a store of the right size, or another word of the engine</td></tr>
 * </table>
 *
 * <p>A view that is DEGRADED stays so in a row that says RESYNC: it lacks something all the while.
 *
 * <p>The steps are a class each: {@link MessageSequencer} (order and gaps), {@link
 * ReplayCoordinator} (answers to replays, mending), {@link RefillCoordinator} (what the index had
 * no room for), {@link StreamOutput} (decode and offer), {@link StreamStatus} (what readers see).
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

    private static final Logger LOG = LoggerFactory.getLogger(EngineStream.class);
    private static final String RESTORED =
            "it was restored and nothing says whether the engine is still the same";
    private static final String RECONNECTED =
            "the connection came back and nothing says whether the engine has restarted";

    private final SourceConfig config;
    private final LongSupplier nanoClock;
    private final StreamParts parts;
    private final ReplayRequest replay;
    private final SequenceTracker tracker;
    private final SourceFreshness freshness;
    private final StreamStatus status;
    private final StreamOutput output;
    private final MessageSequencer sequencer;
    private final ReplayCoordinator replays;
    private final RefillCoordinator refills;
    private final FailureWatch failures = new FailureWatch();
    private final WaitingSink waiting; // null for messages that can be sent again
    private final LoadStat load = new LoadStat();
    private LoadListener loadListener; // null where reports are not wanted
    private String endpoint;
    private boolean everConnected;
    private int waitingBefore; // live messages that have not reached the stream

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
        this(config, sink, nanoClock, new StreamLog());
    }

    /** With a log that it shares with others. */
    EngineStream(SourceConfig config, KvEventSink sink, StreamLog log) {
        this(config, sink, System::nanoTime, log);
    }

    EngineStream(SourceConfig config, KvEventSink sink, LongSupplier nanoClock, StreamLog log) {
        this.config = Objects.requireNonNull(config);
        this.nanoClock = Objects.requireNonNull(nanoClock);
        this.parts = new StreamParts(config, nanoClock, log);
        this.replay = parts.replay;
        this.tracker = parts.tracker;
        this.freshness = parts.freshness;
        this.waiting =
                config.form() == MessageForm.ROUTER_EVENT
                        ? new WaitingSink(Objects.requireNonNull(sink))
                        : null;
        final CountedSink counted =
                new CountedSink(
                        waiting == null ? Objects.requireNonNull(sink) : waiting, parts.progress);
        this.status = new StreamStatus(parts, counted);
        this.refills = new RefillCoordinator(parts, status, counted);
        this.output = new StreamOutput(parts, status, refills, counted);
        this.sequencer = new MessageSequencer(parts, status, output, refills);
        this.replays = new ReplayCoordinator(parts, status, output, sequencer, refills);
        this.endpoint = config.endpoint();
    }

    /** The configuration that the stream was made with. */
    public SourceConfig config() {
        return config;
    }

    /**
     * Says that old messages can be asked for at the local indexer of the worker. Before the first
     * message.
     *
     * @param heldOfAll counts the messages that wait for answers in all streams of the plane
     */
    synchronized void queryable(HeldBytes heldOfAll) {
        parts.queryable(heldOfAll);
    }

    /** Whether old messages are wanted now. */
    synchronized boolean wantsReplay() {
        return !status.isClosed() && !replay.isIdle();
    }

    /** Whether live messages have to wait for a replay that is wanted. */
    synchronized boolean holdsLive() {
        return replay.holdsLive();
    }

    /**
     * Goes on after the last message of a snapshot, which the slot was restored from. Before the
     * first message.
     */
    synchronized void startAfter(StreamStart start) {
        tracker.startAfter(start.sequence(), start.content());
        parts.decoder.recall(start.memory().decoder());
        parts.removals.recall(start.memory().removals());
        parts.counters.missing(start.missingBlocks());
        if (!start.complete()) {
            status.lost("what was restored had not been complete when it was saved");
        }
        status.loaded();
        parts.doubt(RESTORED);
        status.publish();
        output.listen(); // what others have taken from the slot since it was restored counts, too
    }

    /**
     * Goes on from blocks of another index that were put into the slot; nothing says how far it was
     * in the engine's messages. They are cleared at once where the engine sends old messages again,
     * else when its message 0 is the first that comes: then it has begun anew. Before the first
     * message.
     */
    synchronized void startOnLoaded() {
        if (parts.isReplayable()) {
            output.clear();
        } else {
            output.startOnLoaded();
        }
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
    public void onMessage(long sequence, byte[] payload, int offset, int length) {
        onMessage(sequence, 0, payload, offset, length);
    }

    /**
     * Takes a live message out of a stream that many share.
     *
     * @param sequence the engine's number of it
     * @param inStream its number in that stream, above those of this engine's messages before it; 0
     *     where there is no such stream
     * @param payload holds the event batch; not kept
     * @param offset its first byte
     * @param length its bytes
     * @throws IndexOutOfBoundsException if the range does not lie in {@code payload}
     */
    synchronized void onMessage(
            long sequence, long inStream, byte[] payload, int offset, int length) {
        Objects.checkFromIndexSize(offset, length, payload.length);
        if (status.isClosed()) {
            return;
        }
        parts.at(inStream);
        status.counts.messages++;
        housekeeping();
        if (isUsable(sequence, payload, offset, length)) {
            freshness.received();
            status.counts.received(nanoClock.getAsLong());
            sequencer.live(sequence, payload, offset, length);
            if (replay.holdsLive() || !parts.early.isEmpty()) {
                freshness.stored(); // it waits, and may do so
            }
            reloadIfSpoiled();
        }
        status.publish();
    }

    /**
     * Whether a message may change anything. Its shape is read before it is decoded, though that is
     * a second walk over it: a message that is refused must not have changed a part of the state.
     */
    private boolean isUsable(long sequence, byte[] payload, int offset, int length) {
        if (sequence < 0) {
            output.drop(
                    DropReason.BAD_SEQUENCE_FRAME, "message number " + sequence + " is negative");
            return false;
        }
        return switch (parts.decoder.shapeOf(payload, offset, length)) {
            case BATCH -> parts.rank.accepts(payload, offset, length);
            case OTHER -> {
                if (loadListener != null && load.read(payload, offset, length)) {
                    loadListener.reported(sequence, load);
                } else {
                    parts.decoder.drops().add(DropReason.IGNORED_MESSAGE);
                }
                yield false;
            }
            case UNDECODABLE -> {
                // neither the content nor the number of such a message is believed
                output.drop(
                        DropReason.UNDECODABLE_MESSAGE,
                        length + " bytes under number " + sequence + " are no event batch");
                yield false;
            }
        };
    }

    @Override
    public synchronized void onLoad(LoadListener listener) {
        loadListener = listener;
    }

    /** Counts a malformed message and drops it. */
    synchronized void dropped(DropReason reason, String what) {
        status.counts.messages++;
        output.drop(reason, what);
    }

    /**
     * Says that the transport is connected, for the first time or again. With a replay endpoint the
     * stream then wants to load, or to find out whether the engine is still the same.
     */
    public synchronized void onConnected() {
        if (status.isClosed()) {
            return;
        }
        if (!parts.isReplayable()) {
            sequencer.connectionOver();
        }
        freshness.connected();
        if (status.isLoaded()) {
            status.counts.reconnects++;
        }
        // a message may be faster than the news of the first connection
        if (everConnected || config.endpoint().isEmpty()) {
            reconnected();
        }
        everConnected = true;
        if (parts.isReplayable()) {
            if (tracker.last() < 0) {
                replay.load();
            } else {
                replay.verify(true);
            }
        }
        status.publish();
    }

    private void reconnected() {
        if (tracker.last() >= 0) {
            parts.doubt(RECONNECTED);
        } else if (config.isReplayable()) {
            tracker.forget(); // this life may have the numbers of the messages that wait
        }
        if (config.isReplayable()) {
            sequencer.dropWaiting(); // they may be of another life, and are asked for
        }
    }

    /**
     * Says that the transport has lost its connection: what the engine announces from now on is
     * missed until {@link #onConnected()}.
     *
     * @param why the transport's words for it, with the address
     */
    public synchronized void onDisconnected(String why) {
        if (!status.isClosed()) {
            status.counts.disconnects++;
            freshness.unconnected(why);
            if (tracker.last() >= 0) {
                parts.doubt(RECONNECTED);
            }
            status.publish();
        }
    }

    /**
     * Says that the transport is connected and has passed on all that there was meanwhile: no
     * message is missing because of it.
     */
    public void onCaughtUp() {
        onCaughtUp("");
    }

    /**
     * The same where other messages may be missing: the view is stale until the next one, as by
     * {@link #onMissed}.
     *
     * @param missed why, in words; empty where none is
     */
    synchronized void onCaughtUp(String missed) {
        if (!status.isClosed()) {
            if (!freshness.isConnected()) {
                status.counts.reconnects++;
            }
            freshness.connected();
            if (missed.isEmpty()) {
                parts.believe();
            } else {
                onMissed(missed);
            }
            everConnected = true;
            status.publish();
        }
    }

    /**
     * Says that messages may be missing: the view is stale until the next one, whose number decides
     * it.
     *
     * @param why in words
     */
    public synchronized void onMissed(String why) {
        if (!status.isClosed() && tracker.last() >= 0) {
            parts.doubt(why);
            status.problem(why);
            if (parts.isQueryable() && replay.isIdle()) {
                replay.verify(true);
            }
            status.publish();
        }
    }

    /**
     * Says that the engine has begun a new life, whatever the numbers of its messages: its blocks
     * are cleared. For transports that tell one publisher from the next.
     *
     * @param how in words, after "the engine has restarted: "
     */
    public synchronized void onRestart(String how) {
        if (!status.isClosed()) {
            sequencer.restarted(how);
            status.publish();
        }
    }

    /**
     * Says that another publisher goes on with the numbers, which one in a new life may do by
     * chance where its first events are lost: what a local indexer of it has takes the place of
     * what is known.
     */
    synchronized void onTakenOver() {
        if (!status.isClosed() && parts.isQueryable() && tracker.last() >= 0) {
            replay.heal();
            status.publish();
        }
    }

    /**
     * Says that the transport could not connect; it keeps trying.
     *
     * @param why the transport's words for it, with the address
     */
    public synchronized void onConnectFailed(String why) {
        if (!status.isClosed()) {
            status.counts.connectFailures++;
            freshness.unconnected(why);
            status.publish();
        }
    }

    /**
     * Wants the messages after the last one, if nothing else is wanted: for a transport that may
     * have missed the newest ones without noticing.
     */
    public synchronized void checkTail() {
        if (!status.isClosed() && parts.mayAsk() && replay.isIdle()) {
            replay.missing(tracker.last());
            status.publish();
        }
    }

    /**
     * Number of the first message that the engine should send again, {@link #NO_REPLAY} if none.
     * Nothing is wanted from a source without a replay endpoint. What is replayed after this call
     * is taken for the answer to it.
     */
    public synchronized long replayFrom() {
        replay.answering();
        replays.asked();
        refills.replayAsked();
        // a local indexer says itself which life it is of
        return replay.from(parts.isQueryable() ? tracker.last() + 1 : Math.max(0, tracker.proof()));
    }

    /** Whether the answer to the last {@link #replayFrom()} has brought something new. */
    synchronized boolean hasReplayed() {
        return replays.hasBrought();
    }

    /**
     * Takes a message that was asked for.
     *
     * @param sequence the engine's number of it
     * @param payload the event batch; not kept
     * @return how to go on
     */
    public synchronized ReplayStep onReplayed(long sequence, byte[] payload) {
        if (status.isClosed() || replay.isIdle() || replay.isOutdated()) {
            replay.answerOver();
            return ReplayStep.STOP;
        }
        status.counts.messages++;
        replays.answers();
        final ReplayStep step = takeReplayed(sequence, payload);
        if (step == ReplayStep.STOP) {
            replay.answerOver();
        } else {
            replay.answering(); // also where it has made a load of a mend
        }
        return step;
    }

    private ReplayStep takeReplayed(long sequence, byte[] payload) {
        if (refills.isAsked()) {
            return refills.replayed(sequence, payload);
        }
        final ReplayStep step = replays.replayed(sequence, payload);
        final boolean again = reloadIfSpoiled();
        status.publish();
        return again ? ReplayStep.STOP : step;
    }

    /**
     * Says that a local indexer begins to answer.
     *
     * @param same whether it is the one of the life that the worker was known in; if not the slot
     *     is cleared and everything is wanted
     * @param how in words, what shows that it is another one
     */
    synchronized void answerBegins(boolean same, String how) {
        if (!status.isClosed() && !replay.isIdle()) {
            replays.answers();
            replays.answerBegins(same, how);
            replay.answering();
            status.publish();
        }
    }

    /** Whether a message with this number can be next in an answer. */
    synchronized boolean goesOnAt(long number) {
        return refills.isAsked() || number <= 1 || parts.tracker.last() >= number - 1;
    }

    /** Begins a dump of what the worker holds, to be filled by the caller. */
    PlaneDump newDump(long lastNumber, long lostNumber) {
        return new PlaneDump(config.slot(), lastNumber, lostNumber, parts.counters);
    }

    /**
     * Takes all that the worker holds in place of messages that were asked for.
     *
     * @return false if it is of no use, or there was no room for it
     */
    synchronized boolean onDump(PlaneDump dump) {
        if (status.isClosed() || replay.isIdle()) {
            return true;
        }
        replay.answerOver();
        final boolean taken = replays.dumped(dump);
        status.publish();
        return taken;
    }

    /**
     * Says that the engine has sent everything it was asked for. Where something else is wanted by
     * now, {@link #replayFrom()} says it.
     */
    public synchronized void replayEnded() {
        final boolean outdated = replay.isOutdated();
        replay.answerOver();
        if (!status.isClosed() && !replay.isIdle() && !outdated) {
            replays.ended();
            status.publish();
        }
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
        replay.answerOver();
        if (!status.isClosed() && !replay.isIdle()) {
            replays.failed(detail);
            status.publish();
        }
    }

    /**
     * Does what is due: clears that found no room, gaps that were not filled, tries to mend a view
     * that lost messages. A transport calls it some times per second; {@link #onMessage} does so
     * too.
     */
    public synchronized void tick() {
        if (!status.isClosed()) {
            housekeeping();
            status.publish();
        }
    }

    private void housekeeping() {
        final long now = nanoClock.getAsLong();
        output.flushClear();
        sequencer.tick(now);
        freshness.look();
        if (parts.forecasts.expire()) {
            LOG.info(
                    "{}: nothing was compared with the engine's cache hits for long: forecasts are"
                            + " believed again",
                    config.label());
        }
        if (!replay.holdsLive() && failures.take(parts.counters.failures.get(), now)) {
            sequencer.reload();
        }
        if (refills.isUnderWay()) {
            refills.goOn();
        }
        if (parts.removals.isConcluded() && replay.isIdle() && status.hasRefusedStores()) {
            takeBackRemovals();
        }
        replays.mend(now);
    }

    /** By the rule that was concluded the index lacks blocks that the engine goes on from. */
    private void takeBackRemovals() {
        parts.removals.takeBack();
        parts.forecasts.forget(); // they were made by the rule before
        sequencer.reload();
        final String why =
                "removals mean one copy here after all (physical): stores after blocks of which"
                        + " copies were left were refused";
        status.problemUntilLoaded(why);
        LOG.warn("{}: {}", config.label(), why);
    }

    @Override
    public synchronized void clear() {
        if (!status.isClosed()) {
            refills.drop();
            output.clear();
        }
    }

    @Override
    public long activityMark() {
        return freshness.activityMark();
    }

    @Override
    public void reportServed(long activityBefore) {
        freshness.served(activityBefore);
    }

    @Override
    public synchronized void reportEngineHit(
            int believedTokens, int statedTokens, boolean hadWorkerAlone) {
        // what is known to be missing explains a difference, too
        if (status.isClosed()
                || !status.isLoaded()
                || !replay.isIdle()
                || status.loss() != null
                || !parts.counters.impairment().isEmpty()) {
            return;
        }
        if (parts.counters.missing() == 0
                && parts.forecasts.compare(believedTokens, statedTokens, hadWorkerAlone)) {
            forecastsJudged();
        }
        if (!parts.decoder.otherGroups().isEmpty()) {
            leaveRemovals();
        } else if (hadWorkerAlone) {
            judgeRemovals(parts.forecasts.isTooHigh(believedTokens, statedTokens));
        }
        status.publish();
    }

    @Override
    public synchronized void forgetForecasts() {
        if (!status.isClosed()) {
            parts.forecasts.forget();
            status.publish();
        }
    }

    @Override
    public synchronized void judgeHitsAnew() {
        if (!status.isClosed()) {
            parts.forecasts.forget();
            judgeRemovalsAnew();
            status.publish();
        }
    }

    private void forecastsJudged() {
        final String why = status.wrongForecasts();
        if (why == null) {
            LOG.info("{}: the engine's cache hits are as predicted again", config.label());
        } else {
            LOG.warn("{}: {}", config.label(), why);
        }
    }

    /** Where other cache groups bound the hits, these say nothing of blocks that are held. */
    private void leaveRemovals() {
        parts.forecasts.resynced(); // what is held is true: to load it again changes nothing
        judgeRemovalsAnew();
    }

    private void judgeRemovalsAnew() {
        if (parts.removals.beginAnew()) {
            sequencer.reload();
        }
    }

    private void judgeRemovals(boolean over) {
        final RemovalRuleDetector.Finding finding = parts.removals.report(over);
        if (finding == RemovalRuleDetector.Finding.NOTHING) {
            return;
        }
        if (finding == RemovalRuleDetector.Finding.RULE_CHANGED) {
            parts.forecasts.forget(); // they were made by the rule before
        } else {
            parts.forecasts.resynced(); // the slot is loaded again at once
        }
        sequencer.reload();
        final String why = RemovalRuleDetector.explain(finding);
        status.problem(why);
        LOG.warn("{}: {}", config.label(), why);
    }

    @Override
    public synchronized void reportBlockSize(int tokens) {
        if (!status.isClosed()) {
            status.statedBlockSize(tokens);
            status.publish();
        }
    }

    @Override
    public synchronized void loraNumbers(Map<Long, String> names) {
        LoraNumbers.check(names);
        if (status.isClosed()) {
            return;
        }
        parts.loraNumbers.give(names, tracker.last());
        if (!reloadIfSpoiled()
                && parts.loraNumbers.isMendable()
                && parts.mayAsk()
                && replay.isIdle()) {
            replay.heal();
        }
        status.publish();
    }

    /** Drops a view in which blocks may be those of another adapter than it says. */
    private boolean reloadIfSpoiled() {
        if (!parts.loraNumbers.isSpoiled()) {
            return false;
        }
        final long last = tracker.last();
        final String what =
                "a lora_id that blocks were stored by means another adapter now: they are dropped"
                        + " and loaded again";
        parts.warn(StreamLog.Kind.LOST, what);
        status.problem(what);
        sequencer.reload();
        parts.loraNumbers.reloading(last);
        return true;
    }

    @Override
    public synchronized StreamMemory memory() {
        return new StreamMemory(parts.removals.inUse(), parts.decoder.memory());
    }

    @Override
    public IndexView view() {
        return status;
    }

    @Override
    public IndexState state() {
        return status.state();
    }

    @Override
    public boolean ready() {
        return status.isReady();
    }

    /**
     * Whether all that the stream has taken is applied, messages that wait for the ones before them
     * too; nothing is left to be of a closed one.
     */
    synchronized boolean isApplied() {
        return status.isClosed()
                || (parts.early.isEmpty() && parts.held.isEmpty() && status.isApplied());
    }

    /** Operations that the index was changed by. */
    long appliedOperations() {
        return parts.counters.applied.get();
    }

    /** Messages that found no room, and stores that the index refused. */
    long refusedEvents() {
        return status.refusedBatches() + parts.counters.refusedStores();
    }

    /** Messages handed on and not applied yet. */
    long behind() {
        return status.behind();
    }

    /** Number of the last message that was handed on, −1 before the first. */
    synchronized long lastNumber() {
        return parts.tracker.last();
    }

    /** Batches that found no room. */
    long refusedBatches() {
        return status.refusedBatches();
    }

    @Override
    public double credit(double degradedCredit) {
        return status.credit(degradedCredit);
    }

    @Override
    public synchronized SourceStatus status() {
        return status.snapshot(endpoint, waitingBefore);
    }

    /**
     * Says that a live message has come and waits until a replay is over: of the engine it is seen
     * now.
     *
     * @param messages that wait so by now
     */
    synchronized void waitsBefore(int messages) {
        waitingBefore = messages;
        freshness.received();
        freshness.stored(); // it may do so
        status.counts.received(nanoClock.getAsLong());
        status.publish();
    }

    /** Says how many of these messages wait still. */
    synchronized void waitStill(int messages) {
        waitingBefore = messages;
    }

    @Override
    public void close() {
        if (waiting != null) {
            waiting.close(); // which may hold the lock
        }
        synchronized (this) {
            status.closed();
            parts.held.clear();
            status.publish();
        }
    }
}

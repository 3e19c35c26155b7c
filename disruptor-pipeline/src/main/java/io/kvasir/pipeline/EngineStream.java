package io.kvasir.pipeline;

import io.kvasir.core.index.CopyRule;
import io.kvasir.pipeline.wire.DropReason;
import io.kvasir.pipeline.wire.EngineBatchDecoder;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.KvEventSink;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * The event stream of one (worker, rank): decodes messages, follows their numbers, notices gaps and
 * restarts, and hands each message on as one batch. Knows no transport: whoever owns one calls
 * {@link #onMessage} for what arrives and, when {@link #replayFrom()} says so, asks the engine to
 * send old messages again and passes them to {@link #onReplayed}.
 *
 * <table>
 * <caption>What happens when</caption>
 * <tr><th>seen</th><th>then</th></tr>
 * <tr><td>number = last + 1</td><td>applied</td></tr>
 * <tr><td>number beyond last + 1</td><td>gap: replay, beginning with the last message itself, whose
 * bytes must be the same; without replay: applied, what is known is kept, DEGRADED</td></tr>
 * <tr><td>first number above 0</td><td>replay from 0</td></tr>
 * <tr><td>number falls back</td><td>the engine has restarted: the slot is cleared, replay from
 * 0</td></tr>
 * <tr><td>connection came back</td><td>the last message is asked for: other bytes or nothing mean a
 * restart</td></tr>
 * <tr><td>the sink has no room</td><td>the message counts as missing: replay</td></tr>
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

    private enum Pending {
        NONE,
        /** Everything from message 0. */
        LOAD,
        /** The last message, to be compared, and everything behind it. */
        VERIFY,
        /** Everything from message 0, but only if the engine still has all of it. */
        HEAL
    }

    private static final Logger LOG = LoggerFactory.getLogger(EngineStream.class);
    private static final byte[] NOTHING = {};
    private static final int RETAINED_BYTES = 1 << 16;
    private static final int RETAINED_WORDS = 1 << 14;
    private static final int REPORT_WINDOW = 32;
    private static final int OVER_PREDICTIONS_TO_SWITCH = 8;
    private static final int MAX_RELOADS_AFTER_FAILURES = 3;
    private static final long FIRST_HEAL_DELAY_NS = TimeUnit.SECONDS.toNanos(30);
    private static final long LAST_HEAL_DELAY_NS = TimeUnit.MINUTES.toNanos(10);

    private final SourceConfig config;
    private final KvEventSink sink;
    private final LongSupplier nanoClock;
    private final EngineBatchDecoder decoder;
    private final StreamCounters counters = new StreamCounters();
    private final KvBatch batch = new KvBatch();

    private CopyRule rule;
    private String endpoint;
    private Pending pending = Pending.NONE;
    private boolean reconnected;
    private boolean verified;
    private boolean clearPending;
    private boolean closed;
    private long last = -1;
    private long lastLive = -1;
    private byte[] watermark = NOTHING;
    private int watermarkLength = -1;
    private byte[] held = NOTHING;
    private int heldLength;
    private long heldSequence = -1;
    private boolean loaded;
    private String loss; // why the view is not exact, null if it is
    private String problem = "";
    private long healAtNs;
    private long healDelayNs = FIRST_HEAL_DELAY_NS;
    private long hitReports;
    private long failuresSeen;
    private int reloadsAfterFailures;
    private int warnedBlockSize;

    private long lastMessageNs;
    private long messages;
    private long events;
    private long duplicates;
    private long gaps;
    private long lostMessages;
    private long replays;
    private long replayFailures;
    private long restarts;
    private long reconnects;
    private long disconnects;
    private long connectFailures;
    private String unconnected; // why there is no connection, null while there is one
    private long refused;
    private int ruleSwitches;
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
        this.config = Objects.requireNonNull(config);
        this.sink = Objects.requireNonNull(sink);
        this.nanoClock = Objects.requireNonNull(nanoClock);
        this.decoder = new EngineBatchDecoder(config.blockSize());
        this.rule =
                config.removals() == RemovalRule.LAST_COPY ? CopyRule.LAST_COPY : CopyRule.PHYSICAL;
        this.endpoint = config.endpoint();
    }

    /** The configuration that the stream was made with. */
    public SourceConfig config() {
        return config;
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
        messages++;
        lastMessageNs = nanoClock.getAsLong();
        housekeeping();
        live(sequence, payload, offset, length);
        publishState();
    }

    private void live(long sequence, byte[] payload, int offset, int length) {
        if (sequence < 0) {
            drop(DropReason.BAD_SEQUENCE_FRAME, "message number " + sequence + " is negative");
            return;
        }
        switch (decoder.shapeOf(payload, offset, length)) {
            case OTHER -> {
                decoder.drops().add(DropReason.IGNORED_MESSAGE);
                return;
            }
            case UNDECODABLE -> {
                // neither the content nor the number of such a message is believed
                drop(
                        DropReason.UNDECODABLE_MESSAGE,
                        length + " bytes under number " + sequence + " are no event batch");
                return;
            }
            case BATCH -> {}
        }
        if (sequence <= lastLive) {
            if (isWatermark(sequence, payload, offset, length)
                    || isHeld(sequence, payload, offset, length)) {
                duplicates++;
            } else {
                restarted("message numbers fell back from " + lastLive + " to " + sequence);
                firstOfNewLife(sequence, payload, offset, length);
            }
            return;
        }
        lastLive = sequence;
        if (pending != Pending.NONE) {
            hold(sequence, payload, offset, length);
        } else if (sequence > last + 1) {
            gap(sequence, payload, offset, length);
        } else if (sequence == last + 1) {
            apply(sequence, payload, offset, length);
        } else if (sequence < last || isWatermark(sequence, payload, offset, length)) {
            duplicates++; // already had it from a replay
        } else {
            restarted("message " + sequence + " came again with other content");
            firstOfNewLife(sequence, payload, offset, length);
        }
    }

    private void firstOfNewLife(long sequence, byte[] payload, int offset, int length) {
        lastLive = sequence;
        if (sequence == 0) {
            apply(sequence, payload, offset, length);
        } else {
            gap(sequence, payload, offset, length);
        }
    }

    private void gap(long sequence, byte[] payload, int offset, int length) {
        final boolean first = last < 0;
        if (!first) {
            gaps++;
        }
        if (isReplayable()) {
            hold(sequence, payload, offset, length);
            pending = first ? Pending.LOAD : Pending.VERIFY;
            reconnected = false;
            return;
        }
        // publishers that connect to us have sent us everything; some of them count from 1
        if (!(first && sequence == 1 && config.bind())) {
            lose(last + 1, sequence - 1, "there is no replay endpoint; configure one");
        }
        apply(sequence, payload, offset, length);
    }

    private void apply(long sequence, byte[] payload, int offset, int length) {
        if (offer(sequence, payload, offset, length)) {
            return;
        }
        gaps++;
        if (isReplayable()) {
            hold(sequence, payload, offset, length);
            pending = last < 0 ? Pending.LOAD : Pending.VERIFY;
            reconnected = false;
        } else {
            lose(sequence, sequence, "the event ring is full; raise pipeline.ringSize");
            advance(sequence, payload, offset, length);
        }
    }

    /** Decodes a message and offers it; false if the sink has no room, then nothing has changed. */
    private boolean offer(long sequence, byte[] payload, int offset, int length) {
        batch.reset(config.slot(), sequence, rule, config.rootStoresRefresh(), counters);
        if (clearPending) {
            batch.addCleared();
        }
        final int before = batch.operations();
        decoder.decode(payload, offset, length, batch);
        if (!sink.offer(batch)) {
            refused++;
            problem = "the event ring is full; raise pipeline.ringSize";
            return false;
        }
        clearPending = false;
        events += decoder.eventCount();
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
        problem = loss;
    }

    private void advance(long sequence, byte[] payload, int offset, int length) {
        last = sequence;
        loaded = true;
        watermark = copy(watermark, payload, offset, length);
        watermarkLength = length;
    }

    private void hold(long sequence, byte[] payload, int offset, int length) {
        held = copy(held, payload, offset, length);
        heldLength = length;
        heldSequence = sequence;
    }

    private static byte[] copy(byte[] into, byte[] payload, int offset, int length) {
        final byte[] target =
                into.length < length || (into.length > RETAINED_BYTES && length <= RETAINED_BYTES)
                        ? new byte[length]
                        : into;
        System.arraycopy(payload, offset, target, 0, length);
        return target;
    }

    private boolean isWatermark(long sequence, byte[] payload, int offset, int length) {
        return sequence == last
                && length == watermarkLength
                && Arrays.equals(watermark, 0, length, payload, offset, offset + length);
    }

    private boolean isHeld(long sequence, byte[] payload, int offset, int length) {
        return sequence == heldSequence
                && length == heldLength
                && Arrays.equals(held, 0, length, payload, offset, offset + length);
    }

    private void lose(long from, long to, String why) {
        if (to >= from) {
            lostMessages += to - from + 1;
        }
        loss = "messages " + from + ".." + to + " are lost: " + why;
        problem = loss;
        publishState(); // before the next message is seen in the index
        LOG.warn("{}: {}", name(), loss);
    }

    private void drop(DropReason reason, String what) {
        decoder.drops().add(reason);
        problem = what;
        LOG.debug("{}: {}", name(), what);
    }

    /** A message that never was one: counted, nothing else changes. */
    synchronized void dropped(DropReason reason, String what) {
        messages++;
        drop(reason, what);
    }

    private void restarted(String how) {
        restarts++;
        problem = "the engine has restarted: " + how;
        LOG.info("{}: {}; its blocks are cleared", name(), problem);
        forgetMessages();
        lastLive = -1;
        loss = null;
        decoder.forget();
        clearPending = true;
        flushClear();
    }

    private void forgetMessages() {
        last = -1;
        watermarkLength = -1;
        heldSequence = -1;
        pending = Pending.NONE;
        verified = false;
        loaded = false;
    }

    private void flushClear() {
        batch.reset(config.slot(), last, rule, config.rootStoresRefresh(), counters);
        batch.addCleared();
        if (sink.offer(batch)) {
            clearPending = false;
        } else {
            refused++;
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
        unconnected = null;
        if (loaded) {
            reconnects++;
        }
        if (isReplayable()) {
            if (last < 0) {
                pending = Pending.LOAD;
            } else {
                pending = Pending.VERIFY;
                reconnected = true;
                verified = false;
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
            disconnects++;
            unconnected(why);
        }
    }

    /**
     * Says that the transport could not connect; it goes on trying.
     *
     * @param why the transport's words for it, with the address
     */
    public synchronized void onConnectFailed(String why) {
        if (!closed) {
            connectFailures++;
            unconnected(why);
        }
    }

    private void unconnected(String why) {
        if (unconnected == null) {
            LOG.warn("{}: no connection for events: {}", name(), why);
        }
        unconnected = why;
        publishState();
    }

    /**
     * Wants the messages behind the last one, if nothing else is wanted: for a transport that may
     * have missed the newest ones without noticing.
     */
    public synchronized void checkTail() {
        if (!closed && isReplayable() && pending == Pending.NONE) {
            pending = last < 0 ? Pending.LOAD : Pending.VERIFY;
            reconnected = false;
            verified = false;
            publishState();
        }
    }

    /**
     * Number of the first message that the engine should send again, {@link #NO_REPLAY} if none.
     * Nothing is wanted from a source without a replay endpoint.
     */
    public synchronized long replayFrom() {
        return switch (pending) {
            case NONE -> NO_REPLAY;
            case LOAD -> last + 1;
            case HEAL -> 0;
            case VERIFY -> verified ? last + 1 : last;
        };
    }

    /**
     * Takes a message that was asked for.
     *
     * @param sequence the engine's number of it
     * @param payload the event batch; not kept
     * @return how to go on
     */
    public synchronized ReplayStep onReplayed(long sequence, byte[] payload) {
        if (closed || pending == Pending.NONE) {
            return ReplayStep.STOP;
        }
        messages++;
        final ReplayStep step = replayed(sequence, payload);
        publishState();
        return step;
    }

    private ReplayStep replayed(long sequence, byte[] payload) {
        if (pending == Pending.HEAL) {
            if (sequence > 1) {
                pending = Pending.NONE; // the start is gone for good: no use trying again
                healAtNs = 0;
                return ReplayStep.STOP;
            }
            final long live = heldSequence;
            reload();
            heldSequence = live;
        }
        if (pending == Pending.VERIFY && !verified) {
            if (sequence < last) {
                return ReplayStep.CONTINUE;
            }
            final boolean same = isWatermark(sequence, payload, 0, payload.length);
            if (sequence == last && !same) {
                return loadNewLife("message " + last + " has other content now");
            }
            if (sequence > last && reconnected) {
                return loadNewLife("after a reconnect, message " + last + " is not there any more");
            }
            verified = true;
        }
        if (sequence <= last) {
            return ReplayStep.CONTINUE;
        }
        final long expected = last + 1;
        if (!takeReplayed(sequence, payload)) {
            return ReplayStep.RETRY;
        }
        if (sequence > expected && !(expected == 0 && sequence == 1)) {
            lose(expected, sequence - 1, "the engine's replay buffer no longer holds them");
        }
        return ReplayStep.CONTINUE;
    }

    private boolean takeReplayed(long sequence, byte[] payload) {
        if (decoder.shapeOf(payload, 0, payload.length) == EngineBatchDecoder.Shape.BATCH) {
            return offer(sequence, payload, 0, payload.length);
        }
        drop(DropReason.UNDECODABLE_MESSAGE, "replayed message " + sequence + " is no event batch");
        loss = problem;
        advance(sequence, payload, 0, payload.length);
        return true;
    }

    private ReplayStep loadNewLife(String how) {
        restarted(how);
        pending = Pending.LOAD;
        return ReplayStep.STOP;
    }

    /** Says that the engine has sent everything it was asked for. */
    public synchronized void replayEnded() {
        if (closed || pending == Pending.NONE) {
            return;
        }
        replays++;
        if (pending == Pending.VERIFY && !verified && reconnected) {
            loadNewLife("after a reconnect, it knows of no message " + last);
        } else if (pending == Pending.HEAL) {
            pending = Pending.NONE;
            retryHealLater();
            applyHeld();
        } else {
            finishReplay("the engine's replay did not contain them");
        }
        publishState();
    }

    /**
     * Says that the engine did not answer, after all tries: what is known is kept, the state
     * becomes DEGRADED, and a later try may heal it.
     */
    public synchronized void replayFailed() {
        if (closed || pending == Pending.NONE) {
            return;
        }
        replayFailures++;
        final String why = "replay endpoint " + config.replayEndpoint() + " does not answer";
        if (pending == Pending.HEAL) {
            pending = Pending.NONE;
            problem = why;
            retryHealLater();
            applyHeld();
        } else {
            final boolean anyLost = heldSequence > last + 1 || last < 0 || reconnected;
            finishReplay(why);
            if (anyLost && loss == null) {
                loss = why + ": messages may be missing";
                problem = loss;
                LOG.warn("{}: {}", name(), loss);
            }
            retryHealLater();
        }
        publishState();
    }

    private void finishReplay(String whyMissing) {
        pending = Pending.NONE;
        verified = false;
        loaded = true;
        final boolean missing = heldSequence > last + 1;
        if (missing) {
            lose(last + 1, heldSequence - 1, whyMissing);
        }
        applyHeld();
    }

    private void applyHeld() {
        final long sequence = heldSequence;
        heldSequence = -1;
        if (sequence > last) {
            final byte[] payload = held;
            held = NOTHING; // apply may hold it again
            apply(sequence, payload, 0, heldLength);
        }
    }

    private void retryHealLater() {
        healAtNs = nanoClock.getAsLong() + healDelayNs;
        healDelayNs = Math.min(2 * healDelayNs, LAST_HEAL_DELAY_NS);
    }

    /** Empties the slot and wants everything from message 0. */
    private void reload() {
        forgetMessages();
        loss = null;
        clearPending = true;
        flushClear();
        if (isReplayable()) {
            pending = Pending.LOAD;
        } else {
            loaded = true;
            loss = "the slot was cleared and there is no replay endpoint to load it from";
        }
    }

    /**
     * Does what is due: clears that found no room, healing of a view that lost messages. A
     * transport calls it some times per second; {@link #onMessage} does so too.
     */
    public synchronized void tick() {
        if (!closed) {
            housekeeping();
            publishState();
        }
    }

    private void housekeeping() {
        if (clearPending) {
            flushClear();
        }
        final long failures = counters.failures.get();
        if (failures != failuresSeen && pending == Pending.NONE) {
            failuresSeen = failures;
            if (reloadsAfterFailures < MAX_RELOADS_AFTER_FAILURES) {
                reloadsAfterFailures++;
                final long live = last;
                reload();
                if (pending == Pending.NONE) {
                    last = live; // nothing to load from: go on behind what was seen
                }
            }
        }
        if (loss == null) {
            healAtNs = 0;
            healDelayNs = FIRST_HEAL_DELAY_NS;
        } else if (healAtNs != 0
                && pending == Pending.NONE
                && nanoClock.getAsLong() - healAtNs >= 0) {
            pending = Pending.HEAL;
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
    public synchronized void reportEngineHit(int predictedCachedTokens, int engineCachedTokens) {
        if (closed
                || config.removals() != RemovalRule.AUTO
                || rule == CopyRule.LAST_COPY
                || state() != IndexState.EXACT) {
            return;
        }
        final boolean over = predictedCachedTokens - engineCachedTokens >= config.blockSize();
        hitReports = (hitReports << 1 | (over ? 1 : 0)) & ((1L << REPORT_WINDOW) - 1);
        if (Long.bitCount(hitReports) < OVER_PREDICTIONS_TO_SWITCH) {
            return;
        }
        rule = CopyRule.LAST_COPY;
        ruleSwitches++;
        hitReports = 0;
        problem =
                "removals mean the last copy here: the engine had less cached than predicted "
                        + OVER_PREDICTIONS_TO_SWITCH
                        + " times in "
                        + REPORT_WINDOW
                        + " requests; set removals=last-copy";
        LOG.warn("{}: {}", name(), problem);
        final long live = last;
        reload();
        if (pending == Pending.NONE) {
            last = live;
        }
        publishState();
    }

    private void publishState() {
        if (closed) {
            state = IndexState.GONE;
        } else if (pending == Pending.LOAD || (last < 0 && !loaded)) {
            state = IndexState.LOADING;
        } else if (pending == Pending.VERIFY) {
            state = IndexState.RESYNC;
        } else {
            state = loss == null ? IndexState.EXACT : IndexState.DEGRADED;
        }
    }

    @Override
    public IndexState state() {
        final IndexState current = state;
        return current == IndexState.EXACT && !counters.impairment().isEmpty()
                ? IndexState.DEGRADED
                : current;
    }

    @Override
    public synchronized SourceStatus status() {
        final String impairment = counters.impairment();
        final long age = messages == 0 ? -1 : nanoClock.getAsLong() - lastMessageNs;
        return new SourceStatus(
                config.name(),
                config.slot(),
                config.dpRank(),
                endpoint,
                state(),
                currentProblem(impairment),
                last,
                age,
                messages,
                events,
                counters.applied.get(),
                counters.blocksStored.get(),
                counters.blocksRemoved.get(),
                counters.unknownRemovals.get(),
                counters.unknownParents.get(),
                counters.capacityRefusals.get(),
                counters.invalidStores.get(),
                duplicates,
                gaps,
                lostMessages,
                replays,
                replayFailures,
                restarts,
                reconnects,
                disconnects,
                connectFailures,
                refused,
                counters.failures.get(),
                decoder.drops().nonZero(),
                config.blockSize(),
                decoder.learnedBlockSize(),
                decoder.learnedRank(),
                rule == CopyRule.PHYSICAL ? RemovalRule.PHYSICAL : RemovalRule.LAST_COPY,
                ruleSwitches);
    }

    private String currentProblem(String impairment) {
        if (unconnected != null) {
            return "no connection for events: " + unconnected;
        }
        if (loss != null) {
            return loss;
        }
        return impairment.isEmpty() ? problem : impairment;
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

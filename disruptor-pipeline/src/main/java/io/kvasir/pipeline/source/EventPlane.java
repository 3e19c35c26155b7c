package io.kvasir.pipeline.source;

import io.kvasir.pipeline.log.LogLimit;
import io.kvasir.pipeline.wire.DropReason;
import io.kvasir.pipeline.wire.RouterMessage;

import org.agrona.collections.Int2ObjectHashMap;
import org.agrona.collections.Long2ObjectHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.LongPredicate;
import java.util.function.LongSupplier;

/**
 * Takes the messages of one subscription to an event plane, in which many publishers speak of many
 * workers, and passes each event to the stream of its worker and rank. Knows no transport: the
 * owner of one calls {@link #onMessage} for what arrives, and says when the connection is lost.
 *
 * <p>A stream follows the numbers of its events; a plane follows the numbers of each publisher's
 * messages, so that a message lost at the end of a worker's events is noticed when the publisher
 * speaks of another. Where messages are missing, the streams of that publisher are stale until
 * their next event, whose number says whether any was theirs. When another publisher takes a worker
 * over and does not go on with its numbers, the worker has begun a new life. Up to {@value
 * PlanePublishers#MOST_LATE} events of the publisher before it are taken for late ones and left
 * out; more of them mean that it has the worker again.
 *
 * <p>Events of workers without a stream are counted, and offered to the {@link Registrar} each
 * time. A transport that keeps messages says so ({@link #keepsMessages}) and passes each with its
 * number ({@link #onKept}). When a worker gets a stream that has spoken before, such a transport is
 * asked to begin again ({@link #beginsAgainAfter}); what a stream has had is not passed to it
 * twice.
 *
 * <p>Where the transport has a way to the local indexers of workers ({@link #recoverOver}), streams
 * ask them for what they miss, and everything when they are new or another publisher goes on with
 * their numbers; else what is missed is lost.
 *
 * <p>Any thread may call any method; a lock orders them. Messages must come in the order in which
 * they were received, so one thread should deliver them. It waits while the index's ring is full.
 * {@link #status} takes no lock.
 */
public final class EventPlane {
    /** Is asked for the stream of a worker that speaks and has none. */
    @FunctionalInterface
    public interface Registrar {
        /**
         * Called with the plane's lock held: must be short, and must not wait for another thread.
         *
         * @param workerId the worker, 64 unsigned bits
         * @param dpRank its data-parallel rank
         * @return its stream, which is then registered; null to leave the event out
         */
        EngineStream unknown(long workerId, int dpRank);
    }

    /**
     * Takes how far the kept messages are in the index, so that it is found again with the index
     * after a restart. Called with the plane's lock held: must not wait.
     */
    @FunctionalInterface
    public interface PositionKeeper {
        /**
         * Takes a position; one that is lower than that before it takes what was said back.
         *
         * @param position up to it each worker that has a stream, or is {@link #expect expected},
         *     has all that came for it
         */
        void keep(PlanePosition position);
    }

    /** Registers nothing: only workers that are known beforehand are followed. */
    public static final Registrar KNOWN_ONLY = (workerId, dpRank) -> null;

    /** Answer of {@link #beginsAgainAfter} where nothing is wanted. */
    public static final long NOT_AGAIN = -1;

    /** Answer of {@link #heldUpTo} where that is not known. */
    public static final long NOT_KNOWN = -1;

    /** In place of a publisher that is not known. */
    public static final long NO_PUBLISHER = 0;

    private static final Logger LOG = LoggerFactory.getLogger(EventPlane.class);
    private static final int LINES = 10;
    private static final long LINES_PERIOD_NS = TimeUnit.SECONDS.toNanos(10);
    private static final long NONE = PlaneFeed.NONE;
    private static final String KEPT_OR_RECOVERED =
            "an event plane has messages that its transport keeps, or asks local indexers, not"
                    + " both";
    private static final long NOT_KEPT = PlaneFeed.NOT_KEPT;

    private final Registrar registrar;
    private final RouterMessage message = new RouterMessage();
    private final Long2ObjectHashMap<Int2ObjectHashMap<PlaneFeed>> workers =
            new Long2ObjectHashMap<>();
    private final LogLimit lines = new LogLimit(LINES, LINES_PERIOD_NS);
    private final DetachedWorkers detached = new DetachedWorkers();
    private final List<PlaneFeed> unsettled = new ArrayList<>();
    private final EventPlaneCounters counters = new EventPlaneCounters();
    private final PlaneProgress progress = new PlaneProgress();
    private final PlanePublishers publishers;
    private final PositionKeeper keeper;
    private final PlanePosition keptBeforeOrNull;
    private final LongSupplier nanoClock;
    private PlaneRecovery recovery; // null where nothing can be asked for
    private volatile List<EngineStream> streams = List.of(); // written under the lock
    private volatile String unconnected = ""; // likewise
    private volatile String unfit = "";
    private volatile boolean keeping;
    private long againAfter = NOT_AGAIN; // what is to be passed again begins after this message
    private long unreadUpTo; // messages up to it were not passed here: nothing is known of them
    private long store; // in which kept messages have their numbers; 0 where that was not said
    private String missed = ""; // why messages of whatever worker may be; empty while none is
    private long highestKept;
    private long taken; // messages so far
    private volatile PlanePosition positionOrNull; // what was kept last; written under the lock

    /**
     * Creates a plane without streams.
     *
     * @param registrar asked about unknown workers
     */
    public EventPlane(Registrar registrar) {
        this(registrar, _ -> {}, null);
    }

    /**
     * The same for an index that outlives the process.
     *
     * @param registrar asked about unknown workers
     * @param keeper takes how far the index is
     * @param keptBeforeOrNull how far an earlier process was; null where nothing is left of it
     */
    public EventPlane(Registrar registrar, PositionKeeper keeper, PlanePosition keptBeforeOrNull) {
        this(registrar, keeper, keptBeforeOrNull, System::nanoTime);
    }

    EventPlane(Registrar registrar, LongSupplier nanoClock) {
        this(registrar, _ -> {}, null, nanoClock);
    }

    private EventPlane(
            Registrar registrar,
            PositionKeeper keeper,
            PlanePosition keptBeforeOrNull,
            LongSupplier nanoClock) {
        this.registrar = Objects.requireNonNull(registrar);
        this.keeper = Objects.requireNonNull(keeper);
        this.keptBeforeOrNull = keptBeforeOrNull;
        this.positionOrNull = keptBeforeOrNull;
        this.nanoClock = nanoClock;
        this.publishers = new PlanePublishers(counters, lines, nanoClock);
    }

    /**
     * How far an earlier process was: a transport that keeps its messages in the same store
     * continues after that one ({@link #onResumed}).
     *
     * @return null where nothing is left of one
     */
    public PlanePosition keptBeforeOrNull() {
        return keptBeforeOrNull;
    }

    /**
     * How far the index is, as it was kept last; takes no lock.
     *
     * @return null before the first {@link #keep}, where nothing was left of an earlier process
     */
    public PlanePosition positionOrNull() {
        return positionOrNull;
    }

    /**
     * Says that an earlier process has left the blocks of a worker, which is expected to be
     * registered: what is left out of its events keeps the position back. Takes no lock.
     *
     * @param workerId the worker, 64 unsigned bits
     * @param dpRank its data-parallel rank
     */
    public void expect(long workerId, int dpRank) {
        progress.expect(workerId, dpRank);
    }

    /** Takes {@link #expect} back, once what was left of the worker is given up. Takes no lock. */
    public void expectNoMore(long workerId, int dpRank) {
        progress.expectNoMore(workerId, dpRank);
    }

    /**
     * Has streams that miss something, and new ones, ask the local indexers of their workers.
     * Before the transport is connected, and once. Not for a transport that keeps messages: it has
     * itself what a stream misses, and an answer would overtake messages that its position is to be
     * moved past.
     *
     * @param transport carries the queries
     * @throws IllegalStateException if the plane's transport keeps messages, or has been given a
     *     way to local indexers before
     */
    public void recoverOver(RecoveryTransport transport) {
        recoverOver(transport, RecoveryLimits.DEFAULT);
    }

    synchronized void recoverOver(RecoveryTransport transport, RecoveryLimits limits) {
        if (recovery != null) {
            throw new IllegalStateException("the event plane asks local indexers already");
        }
        if (keeping) {
            throw new IllegalStateException(KEPT_OR_RECOVERED);
        }
        recovery = new PlaneRecovery(transport, limits, nanoClock, counters, publishers::adopt);
        forEachFeed(recovery::add);
    }

    /**
     * Has a stream get the events of a worker and rank from now on.
     *
     * @param workerId the worker, 64 unsigned bits
     * @param dpRank its data-parallel rank
     * @param stream of {@link MessageForm#ROUTER_EVENT}; not closed by this class
     * @throws IllegalArgumentException if the worker and rank have a stream that is not closed, or
     *     the stream takes other messages
     */
    public void register(long workerId, int dpRank, EngineStream stream) {
        register(workerId, dpRank, stream, null);
    }

    /**
     * The same for a stream whose slot was restored.
     *
     * @param workerId the worker, 64 unsigned bits
     * @param dpRank its data-parallel rank
     * @param stream of {@link MessageForm#ROUTER_EVENT}; not closed by this class
     * @param seenOrNull kept messages up to this one hold nothing for the stream that it has not.
     *     Means nothing where the transport keeps its messages in another store by now, or, where
     *     it has not said yet in which, in another one than it says first
     * @throws IllegalArgumentException if the worker and rank have a stream that is not closed, or
     *     the stream takes other messages
     */
    public synchronized void register(
            long workerId, int dpRank, EngineStream stream, PlanePosition seenOrNull) {
        final long seen =
                seenOrNull == null || seenOrNull.store() != store ? NOT_KEPT : seenOrNull.upTo();
        if (stream.config().form() != MessageForm.ROUTER_EVENT) {
            throw new IllegalArgumentException(
                    stream.config().label() + " takes messages of another form than router events");
        }
        final Int2ObjectHashMap<PlaneFeed> ranks =
                workers.computeIfAbsent(workerId, id -> new Int2ObjectHashMap<>());
        final PlaneFeed before = ranks.get(dpRank);
        if (before != null && before.stream.state() != IndexState.GONE) {
            throw new IllegalArgumentException(
                    "worker "
                            + text(workerId, dpRank)
                            + " of the event plane has a stream already");
        }
        if (before != null) {
            drop(before);
        }
        final PlaneFeed feed = new PlaneFeed(workerId, dpRank, stream);
        feed.lastKept = seen;
        feed.restoredKept = seen;
        feed.renumbered = seenOrNull != null && seenOrNull.store() != store;
        feed.restoredOrNull = store == 0 ? seenOrNull : null;
        feed.restoredEvent = stream.lastNumber();
        feed.missed = missed;
        if (keeping && (seen < unreadUpTo || detached.contains(workerId, dpRank))) {
            feed.waits = true;
            final long after = Math.min(seen, progress.position()); // a snapshot may be ahead
            againAfter = againAfter == NOT_AGAIN ? after : Math.min(againAfter, after);
        }
        final boolean allLeftOut = seen >= unreadUpTo && !detached.hasDeparted(workerId, dpRank);
        detached.forget(workerId, dpRank);
        progress.registered(workerId, dpRank, feed.waits, seen, allLeftOut);
        if (feed.waits) {
            takeBack(seen);
        }
        ranks.put(dpRank, feed);
        final List<EngineStream> more = new ArrayList<>(streams);
        more.add(stream);
        streams = List.copyOf(more);
        stream.endpoint("worker " + text(workerId, dpRank) + " of the event plane");
        if (recovery != null) {
            recovery.add(feed);
        }
        if (!unconnected.isEmpty()) {
            stream.onConnectFailed(unconnected);
        } else if (seen != NOT_KEPT && !feed.waits && missed.isEmpty()) {
            stream.onCaughtUp(); // all that came after the snapshot has been passed on
        } else if (recovery != null) {
            stream.onConnected();
        }
    }

    /** Until all has come again, the position is not what a stream has that has just come. */
    private void takeBack(long seen) {
        final PlanePosition kept = positionOrNull;
        if (kept != null && kept.upTo() > seen) {
            keep(new PlanePosition(kept.store(), seen));
        }
    }

    private void keep(PlanePosition position) {
        positionOrNull = position;
        keeper.keep(position);
    }

    /**
     * Ends what {@link #register} began; the stream is left open.
     *
     * @param workerId the worker
     * @param dpRank its rank
     */
    public synchronized void remove(long workerId, int dpRank) {
        final Int2ObjectHashMap<PlaneFeed> ranks = workers.get(workerId);
        final PlaneFeed feed = ranks == null ? null : ranks.remove(dpRank);
        if (feed != null) {
            drop(feed);
            if (feed.lastEventId != NONE || feed.lastKept != NOT_KEPT || feed.waits) {
                detached.departed(workerId, dpRank, feed.waits ? highestKept : feed.lastKept);
            }
            if (ranks.isEmpty()) {
                workers.remove(workerId);
            }
        }
    }

    private void drop(PlaneFeed feed) {
        publishers.detach(feed);
        if (recovery != null) {
            recovery.remove(feed);
        }
        counters.ended(feed.stream);
        progress.removed(feed.stream);
        final List<EngineStream> fewer = new ArrayList<>(streams);
        fewer.remove(feed.stream);
        streams = List.copyOf(fewer);
    }

    /**
     * Takes a message: an envelope or a single event.
     *
     * @param bytes holds the message; not kept
     * @param offset its first byte
     * @param length its bytes
     * @throws IndexOutOfBoundsException if the range does not lie in {@code bytes}
     */
    public synchronized void onMessage(byte[] bytes, int offset, int length) {
        take(bytes, offset, length, NOT_KEPT, NO_PUBLISHER);
    }

    /**
     * Takes a message that the transport keeps and may pass again, with all that came after it.
     *
     * @param bytes holds the message; not kept
     * @param offset its first byte
     * @param length its bytes
     * @param number the transport's number of it, above 0 and greater than those before it unless
     *     the transport has begun again
     * @param publisherId its publisher, where the transport says; {@value #NO_PUBLISHER} where it
     *     does not
     * @throws IndexOutOfBoundsException if the range does not lie in {@code bytes}
     */
    public synchronized void onKept(
            byte[] bytes, int offset, int length, long number, long publisherId) {
        progress.at(number);
        take(bytes, offset, length, number, publisherId);
        highestKept = Math.max(highestKept, number);
    }

    private void take(byte[] bytes, int offset, int length, long number, long publisherId) {
        final boolean first = number == NOT_KEPT || number > highestKept;
        counters.received(first);
        taken++;
        if (!message.wrap(bytes, offset, length)) {
            unreadable(length + " bytes are no message of an event plane");
            return;
        }
        if (message.isEnveloped()) {
            publishers.follow(message);
        }
        while (message.next()) {
            if (message.isAddressed()) {
                deliver(bytes, number, publisherId, first);
            } else {
                unreadable("an event does not say which worker, rank and number it has");
            }
        }
        if (message.isTruncated()) {
            unreadable("a message ends in the middle of an event");
            publishers.missed(message, "the end of a message of the event plane is missing");
        }
    }

    private void unreadable(String what) {
        counters.unreadable();
        final String more = lines.take(nanoClock.getAsLong());
        if (more != null) {
            LOG.warn("event plane: {}; it is dropped{}", what, more);
        }
    }

    private void deliver(byte[] bytes, long number, long publisherId, boolean first) {
        final PlaneFeed feed = feed(message.workerId(), message.dpRank());
        if (feed == null) {
            detached.leftOut(message.workerId(), message.dpRank(), number, first);
            if (first) {
                leftOut();
            }
            if (number != NOT_KEPT) {
                progress.leftOut(message.workerId(), message.dpRank());
            }
            return;
        }
        if (number != NOT_KEPT) {
            final boolean passedBefore = number <= feed.lastKept && feed.lastTaken != taken;
            if (feed.waits || (passedBefore && !isRestOfRestored(feed, number))) {
                return; // it comes again, or has come
            }
            feed.restoredKept = NOT_KEPT;
            feed.lastKept = number;
            if (feed.firstKept == NOT_KEPT) {
                feed.firstKept = number;
            }
            feed.lastTaken = taken;
        }
        if (!publishers.accept(feed, message, publisherId)) {
            counters.late();
            return;
        }
        counters.passed();
        if (recovery != null) {
            recovery.received(feed);
        }
        if (!feed.unsettled) {
            feed.unsettled = true;
            unsettled.add(feed);
        }
        feed.stream.onMessage(
                message.eventId(), number, bytes, message.eventOffset(), message.eventLength());
        feed.missed = ""; // its number has said whether any is
        feed.lastEventId = message.eventId();
    }

    private void leftOut() {
        counters.unknownEvent();
        final String more = lines.take(nanoClock.getAsLong());
        if (more != null) {
            LOG.warn(
                    "event plane: worker {} is not registered; its events are left out{}",
                    text(message.workerId(), message.dpRank()),
                    more);
        }
    }

    /** Whether the event of now is after those that a snapshot has of the same message. */
    private boolean isRestOfRestored(PlaneFeed feed, long number) {
        return number == feed.restoredKept && message.eventId() > feed.restoredEvent;
    }

    private PlaneFeed feed(long workerId, int dpRank) {
        final Int2ObjectHashMap<PlaneFeed> ranks = workers.get(workerId);
        final PlaneFeed known = ranks == null ? null : ranks.get(dpRank);
        if (known != null && known.stream.state() != IndexState.GONE) {
            return known;
        }
        final EngineStream stream = registrar.unknown(workerId, dpRank);
        if (stream == null) {
            return null;
        }
        register(workerId, dpRank, stream);
        return workers.get(workerId).get(dpRank);
    }

    private static String text(long workerId, int dpRank) {
        return Long.toUnsignedString(workerId) + "/" + dpRank;
    }

    /**
     * Says that the transport is connected, for the first time or again; what was published
     * meanwhile was missed.
     */
    public synchronized void onConnected() {
        unconnected = "";
        forEachStream(EngineStream::onConnected);
    }

    /**
     * Says that a part of the transport is connected, for the first time or again, while the rest
     * of it was: what some publishers have published meanwhile was missed.
     *
     * @param publishers which; asked with {@value #NO_PUBLISHER} for streams whose publisher is not
     *     known
     */
    public synchronized void onConnected(LongPredicate publishers) {
        forEachFeed(
                feed -> {
                    if (publishers.test(feed.publisherOrNone())) {
                        feed.stream.onConnected();
                    }
                });
    }

    /**
     * Says that a part of the transport has lost its connection, and the rest of it has not.
     *
     * @param why in words, with the address
     * @param publishers which send nothing now; asked as by {@link #onConnected(LongPredicate)}
     */
    public synchronized void onDisconnected(String why, LongPredicate publishers) {
        forEachFeed(
                feed -> {
                    if (publishers.test(feed.publisherOrNone())) {
                        feed.stream.onDisconnected(why);
                    }
                });
    }

    /** Says that the transport is connected and has passed on all that there was meanwhile. */
    public synchronized void onCaughtUp() {
        unconnected = "";
        forEachFeed(feed -> feed.stream.onCaughtUp(feed.missed));
    }

    /**
     * Says that the transport has lost its connection.
     *
     * @param why in words, with the address
     */
    public synchronized void onDisconnected(String why) {
        unconnected = Objects.requireNonNull(why);
        if (recovery != null) {
            recovery.cancelAll();
        }
        forEachStream(stream -> stream.onDisconnected(why));
    }

    /**
     * Says whether what the transport is connected to can carry all events.
     *
     * @param why in words why it cannot; empty where it can
     */
    public void onFit(String why) {
        unfit = Objects.requireNonNull(why);
    }

    /**
     * Says that messages may be missing, of whatever publisher: each worker is stale until its next
     * event, also where the transport has caught up ({@link #onCaughtUp}) before that.
     *
     * @param why in words
     */
    public synchronized void onMissed(String why) {
        missed = Objects.requireNonNull(why);
        forEachFeed(feed -> feed.missed(why));
    }

    /**
     * Says that the transport keeps messages and can pass them again from the first one; before
     * {@link #onKept}.
     *
     * @throws IllegalStateException if streams ask local indexers ({@link #recoverOver})
     */
    public synchronized void keepsMessages() {
        if (recovery != null) {
            throw new IllegalStateException(KEPT_OR_RECOVERED);
        }
        keeping = true;
    }

    /** Whether the transport keeps messages; takes no lock. */
    public boolean isKeeping() {
        return keeping;
    }

    /**
     * Whether a worker was registered that has spoken before, so that the transport should pass
     * again what it keeps.
     */
    public synchronized boolean isAgainWanted() {
        return againAfter != NOT_AGAIN;
    }

    /**
     * Says that the transport begins again, if that is wanted: what comes from now on is what it
     * keeps after the message that this gives.
     *
     * @return number of a message, 0 for before the first; {@value #NOT_AGAIN} if nothing is wanted
     */
    public synchronized long beginsAgainAfter() {
        final long after = againAfter;
        if (after != NOT_AGAIN) {
            againAfter = NOT_AGAIN;
            unreadUpTo = Math.min(unreadUpTo, after);
            progress.again(after);
            forEachFeed(feed -> feed.waits = false);
        }
        return after;
    }

    /**
     * Says that the numbers of kept messages begin anew, because their store was made anew; what
     * was passed before is in the index.
     *
     * @param made the store now
     */
    public synchronized void onRenumbered(long made) {
        store = made;
        highestKept = 0;
        unreadUpTo = 0;
        againAfter = NOT_AGAIN; // all that there is comes now
        progress.renumbered();
        detached.renumbered();
        forEachFeed(this::renumbered);
    }

    private void renumbered(PlaneFeed feed) {
        final PlanePosition restored = feed.restoredOrNull;
        final boolean isRestored = restored != null && restored.store() == store;
        feed.restoredOrNull = null;
        feed.waits = false;
        feed.lastKept = isRestored ? restored.upTo() : NOT_KEPT;
        feed.restoredKept = feed.lastKept;
        feed.renumbered = !isRestored;
        feed.firstKept = NOT_KEPT;
    }

    /**
     * Says that the kept messages begin after this one, where an earlier process was, or a snapshot
     * is. Workers that have not been restored as far may have spoken before.
     *
     * @param position of a message
     */
    public synchronized void onResumed(PlanePosition position) {
        unreadUpTo = position.upTo();
        store = position.store();
        progress.startAfter(position.upTo());
    }

    /**
     * Has the keeper take how far the index is now, if that has changed; after {@link #onResumed}
     * or {@link #onRenumbered}.
     */
    public synchronized void keep() {
        final PlanePosition now = new PlanePosition(store, progress.followedUpTo());
        if (!now.equals(positionOrNull)) {
            keep(now);
        }
    }

    /** Checks whether all kept messages that were passed on so far are in the index. */
    public synchronized void settle() {
        if (isApplied()) {
            progress.settled();
        }
    }

    /**
     * Up to which kept message the index has all that the transport has. Workers that have no
     * stream here, and messages that the index could not take, keep it back.
     *
     * @param of the store in which the transport has them
     * @param first number of the oldest message that the transport still has
     * @return number of a message, at least {@code first - 1}; 0 where the messages that were
     *     passed here have their numbers in another store
     */
    public synchronized long vouchesUpTo(long of, long first) {
        if (of != store) {
            return 0;
        }
        keptFrom(first);
        return progress.vouchesUpTo(first, streams);
    }

    /**
     * Up to which kept message a worker's slot has all that came for it.
     *
     * @param workerId the worker, 64 unsigned bits
     * @param dpRank its data-parallel rank
     * @param marked number of the message that the slot was at, by its mark
     * @param vouched what {@link #vouchesUpTo} gave, before the mark was taken
     * @return number of a message, at least {@code vouched}; {@value #NOT_KNOWN} where the mark may
     *     be of the store before this one
     */
    public synchronized long heldUpTo(long workerId, int dpRank, long marked, long vouched) {
        final Int2ObjectHashMap<PlaneFeed> ranks = workers.get(workerId);
        final PlaneFeed feed = ranks == null ? null : ranks.get(dpRank);
        if (feed != null && feed.renumbered && feed.firstKept == NOT_KEPT) {
            return vouched; // nothing has come for it since
        }
        return feed == null || (feed.renumbered && feed.firstKept > vouched)
                ? NOT_KNOWN
                : Math.max(marked, vouched);
    }

    /**
     * Whether all that a worker has said up to {@link #vouchesUpTo} came up to this message, so
     * that what was saved of it then is whole.
     *
     * @param workerId the worker, 64 unsigned bits
     * @param dpRank its data-parallel rank
     * @param number of a kept message
     * @return false where that is not known, because the messages after it were not read here
     */
    public synchronized boolean isSilentAfter(long workerId, int dpRank, long number) {
        final Int2ObjectHashMap<PlaneFeed> ranks = workers.get(workerId);
        final PlaneFeed feed = ranks == null ? null : ranks.get(dpRank);
        return number >= unreadUpTo
                && (feed == null || (!feed.waits && feed.lastKept <= number))
                && detached.isSilentAfter(workerId, dpRank, number);
    }

    /**
     * Says what the transport still has: workers that have spoken only before that are as those
     * that have not spoken.
     *
     * @param first number of its oldest message
     */
    public synchronized void keptFrom(long first) {
        detached.keptFrom(first);
    }

    /**
     * Says how many messages wait in the transport.
     *
     * @param count as far as it knows
     */
    public void onWaiting(long count) {
        counters.waiting(count);
    }

    /** Counts a message that the transport could not pass on, such as one with missing frames. */
    synchronized void dropped(DropReason reason, String what) {
        counters.received(true);
        unreadable(reason.label() + ": " + what);
    }

    /** Does what is due in all streams; the owner calls it some times per second. */
    public synchronized void tick() {
        forEachStream(EngineStream::tick);
        if (recovery != null && unconnected.isEmpty()) {
            recovery.tick();
        }
    }

    /**
     * Takes a message of a local indexer's answer.
     *
     * @param queryId of the query, see {@link RecoveryTransport#ask}
     * @param message not kept
     */
    public synchronized void onAnswer(long queryId, byte[] message) {
        if (recovery != null) {
            recovery.onAnswer(queryId, message);
        }
    }

    /**
     * Says that nothing takes the query: there is no local indexer for the worker.
     *
     * @param queryId of the query
     */
    public synchronized void onNoAnswerer(long queryId) {
        if (recovery != null) {
            recovery.onNoAnswerer(queryId);
        }
    }

    /** Counts the live messages that wait for answers; after {@link #recoverOver}. */
    synchronized HeldBytes waitingForAnswers() {
        return recovery.held();
    }

    /** Whether all that was passed on so far is in the index. */
    public synchronized boolean isApplied() {
        while (!unsettled.isEmpty()) {
            final PlaneFeed last = unsettled.getLast();
            if (!last.stream.isApplied()) {
                return false;
            }
            last.unsettled = false;
            unsettled.removeLast();
        }
        return true;
    }

    private void forEachStream(Consumer<EngineStream> action) {
        streams.forEach(action);
    }

    private void forEachFeed(Consumer<PlaneFeed> action) {
        for (Int2ObjectHashMap<PlaneFeed> ranks : workers.values()) {
            for (PlaneFeed feed : ranks.values()) {
                action.accept(feed);
            }
        }
    }

    /** Counters, as of now; waits for nothing. */
    public EventPlaneStatus status() {
        return counters.status(streams, unconnected, unfit);
    }

    /**
     * Workers whose events were left out because they have no stream, those with the most events
     * first.
     *
     * @return at most {@value DetachedWorkers#MOST}
     */
    public synchronized List<UnknownWorker> unknownWorkers() {
        return detached.unknown();
    }
}

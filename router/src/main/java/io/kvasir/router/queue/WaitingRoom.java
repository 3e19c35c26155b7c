package io.kvasir.router.queue;

import io.kvasir.router.Reach;
import io.kvasir.router.queue.QueueException.Kind;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * What waits, in order, and within its bounds. Any thread; a method holds the lock of this object
 * for a step in trees of all that waits, and calls nothing of the caller's meanwhile.
 */
final class WaitingRoom {
    /** An entry that has left, with its outcome. */
    record Left(Entry entry, QueueException why) {}

    private static final int ANY_SLOT = -1;

    private volatile QueueRules rules; // written under the lock
    private final Map<Reach, Lane> lanes = new HashMap<>(); // those that have entries
    private final Map<Integer, Set<Lane>> bySlot = new HashMap<>(); // the same by pinned worker
    private final TreeSet<Lane> ready = new TreeSet<>(Lane::order);
    private final TreeSet<Entry> byClass = new TreeSet<>(Entry::standing); // all that wait
    private final TreeSet<Entry> byExpiry = new TreeSet<>(Entry::expiry);
    private final TreeSet<Entry> following = new TreeSet<>(WaitingRoom::release);
    private final List<Flight> followed = new ArrayList<>(); // those that have followers
    private final Map<Kind, Long> refused = new EnumMap<>(Kind.class);
    private final DeparturePace pace = new DeparturePace();
    private final AtomicInteger count = new AtomicInteger(); // changed under the lock
    private long tokens;
    private long numbers;
    private long cancelled;
    private boolean closed;

    WaitingRoom(QueueRules rules) {
        this.rules = rules;
        for (Kind kind : Kind.values()) {
            refused.put(kind, 0L);
        }
    }

    private static int release(Entry a, Entry b) {
        final int order = Long.compare(a.followsUntilNs, b.followsUntilNs);
        return order == 0 ? Long.compare(a.number, b.number) : order;
    }

    QueueRules rules() {
        return rules;
    }

    /**
     * Takes other rules: limits hold for what comes from now on, and what waits stands in the new
     * order; where prompts are not waited for any more, those that do wait for a worker.
     */
    synchronized void change(QueueRules wanted) {
        final boolean orders = wanted.ordersAs(rules);
        rules = wanted;
        if (!orders) {
            byClass.clear(); // none is sorted by two rules
            ready.clear();
            lanes.clear();
            bySlot.clear();
            byExpiry.forEach(this::order);
            byClass.stream().filter(entry -> entry.following == null).forEach(this::line);
        }
        if (!wanted.flights().isWaiting()) {
            List.copyOf(following).forEach(this::land);
        }
        lanes.values().forEach(this::wake);
    }

    /** Number of the next entry. */
    synchronized long nextNumber() {
        return numbers++;
    }

    /** How many wait, by whatever. */
    int count() {
        return count.get();
    }

    /** Whether a request of a reach would be the first to wait. */
    boolean isFree(Reach reach) {
        return count.get() == 0 || !isTaken(reach);
    }

    private synchronized boolean isTaken(Reach reach) {
        return lanes.containsKey(rules.lane(reach));
    }

    /**
     * Lets an entry wait for a worker.
     *
     * @param gaveWay takes those that give way to it
     * @return why it may not; null where it waits
     */
    synchronized QueueException enter(Entry entry, List<Left> gaveWay) {
        final QueueException full = admit(entry, gaveWay);
        if (full == null) {
            line(entry);
        }
        return full;
    }

    /**
     * Lets an entry wait for a prompt that is being computed; for a worker where such prompts are
     * not waited for any more since it was tried.
     *
     * @param uncachedTokens that are left of it once that prompt is computed
     * @return as {@link #enter}
     */
    synchronized QueueException follow(
            Entry entry, Flight flight, int uncachedTokens, long nowNs, List<Left> gaveWay) {
        if (!entry.entered) {
            entry.measured(uncachedTokens);
            final QueueException full = admit(entry, gaveWay);
            if (full != null) {
                return full;
            }
        } else if (byExpiry.contains(entry)) {
            unline(entry);
            byClass.remove(entry);
            entry.measured(uncachedTokens);
            order(entry);
        } else {
            return null; // it has left meanwhile
        }
        if (!rules.flights().isWaiting()) {
            line(entry);
            return null;
        }
        if (entry.followsUntilNs == 0) {
            entry.followsUntilNs = nowNs + rules.flights().waitNs();
        }
        entry.following = flight;
        if (flight.followers.isEmpty()) {
            followed.add(flight);
        }
        flight.followers.add(entry);
        following.add(entry);
        return null;
    }

    private QueueException admit(Entry entry, List<Left> gaveWay) {
        if (closed) {
            return refuse(Kind.CLOSED, count.get(), 0, 1);
        }
        final List<Entry> victims = victimsOrNull(entry);
        if (victims == null) {
            return tokens + entry.tokens > rules.maxTokens()
                    ? refuse(Kind.QUEUE_TOKENS_FULL, tokens + entry.tokens, rules.maxTokens(), 1)
                    : refuse(Kind.QUEUE_FULL, count.get(), rules.maxRequests(), 1);
        }
        final int before = count.get();
        final boolean manyRequests = before >= rules.maxRequests();
        final long tokensBefore = tokens;
        for (Entry victim : victims) {
            if (victim.settle()) {
                gaveWay.add(new Left(victim, displaced(manyRequests, before, tokensBefore)));
            }
            remove(victim);
        }
        entry.entered = true;
        order(entry);
        tokens += entry.tokens;
        byExpiry.add(entry);
        count.incrementAndGet();
        return null;
    }

    /**
     * The last ones, of the lowest classes, that make the room that an entry needs; null for none.
     * What waits beyond a limit that has become lower stays: no more leaves than comes.
     */
    private List<Entry> victimsOrNull(Entry entry) {
        long excessTokens = Math.min(entry.tokens, tokens + entry.tokens - rules.maxTokens());
        int excess = Math.min(1, count.get() + 1 - rules.maxRequests());
        final List<Entry> victims = new ArrayList<>();
        for (Entry last : byClass.descendingSet()) {
            if (excess <= 0 && excessTokens <= 0) {
                break;
            }
            if (last.rank.priority() >= entry.rank.priority()) {
                return null;
            }
            victims.add(last);
            excess--;
            excessTokens -= last.tokens;
        }
        return excess <= 0 && excessTokens <= 0 ? victims : null;
    }

    private void order(Entry entry) {
        entry.orderBy(rules);
        byClass.add(entry);
    }

    private void line(Entry entry) {
        final Lane lane = lanes.computeIfAbsent(rules.lane(entry.reach), this::open);
        entry.lane = lane;
        leave(lane); // its first one may be another now
        lane.entries.add(entry);
        lookAt(lane); // room that came before it was in line is found now
    }

    /** Lets a lane be until something has changed. */
    private void leave(Lane lane) {
        if (lane.ready) {
            ready.remove(lane);
            lane.ready = false;
        }
    }

    private void lookAt(Lane lane) {
        lane.ready = true;
        ready.add(lane);
    }

    private Lane open(Reach reach) {
        final Lane lane = new Lane(reach);
        bySlot.computeIfAbsent(slot(reach), _ -> new HashSet<>()).add(lane);
        return lane;
    }

    private void close(Lane lane) {
        lanes.remove(lane.reach);
        final Set<Lane> same = bySlot.get(slot(lane.reach));
        same.remove(lane);
        if (same.isEmpty()) {
            bySlot.remove(slot(lane.reach));
        }
    }

    private static int slot(Reach reach) {
        return reach.pinnedOrNull() == null || reach.anyRank()
                ? ANY_SLOT
                : reach.pinnedOrNull().slot();
    }

    private void unline(Entry entry) {
        final Lane lane = entry.lane;
        if (lane == null || !lane.contains(entry)) {
            return;
        }
        final boolean ready = lane.ready;
        leave(lane);
        lane.remove(entry);
        if (lane.isEmpty()) {
            close(lane);
        } else if (ready && !lane.entries.isEmpty()) {
            lookAt(lane);
        }
    }

    private void unfollow(Entry entry) {
        final Flight flight = entry.following;
        if (flight != null) {
            following.remove(entry);
            flight.followers.remove(entry);
            if (flight.followers.isEmpty()) {
                followed.remove(flight);
            }
            entry.following = null;
        }
    }

    private void remove(Entry entry) {
        if (byExpiry.remove(entry)) {
            unfollow(entry);
            unline(entry);
            byClass.remove(entry);
            tokens -= entry.tokens;
            count.decrementAndGet();
        }
    }

    /** The next one that may find room; it stays. Null for none. */
    synchronized Entry nextOrNull() {
        return ready.isEmpty() ? null : ready.first().first();
    }

    /**
     * An entry has found no room.
     *
     * @param own whether others of its lane may find some
     */
    synchronized void noRoom(Entry entry, boolean own) {
        final Lane lane = entry.lane;
        if (lane == null || !lane.ready || (own && !lane.entries.contains(entry))) {
            return; // it has left meanwhile, and what it met is not the others'
        }
        leave(lane);
        if (own && lane.setAside(entry) && !lane.entries.isEmpty()) {
            lookAt(lane);
        }
    }

    /** An entry that is settled leaves for a worker. */
    synchronized void departed(Entry entry, long nowNs) {
        remove(entry);
        pace.left(nowNs);
    }

    /** An entry with an outcome leaves, without a booking. */
    synchronized void failed(Entry entry) {
        remove(entry);
    }

    synchronized void cancelled(Entry entry) {
        remove(entry);
        cancelled++;
    }

    /** A worker may have room: lanes that may use it are looked at again. */
    synchronized void roomAt(int slot) {
        bySlot.getOrDefault(ANY_SLOT, Set.of()).forEach(this::wake);
        bySlot.getOrDefault(slot, Set.of()).forEach(this::wake);
    }

    /** Whatever has changed, all are looked at again. */
    synchronized void roomAnywhere(long nowNs) {
        lanes.values().forEach(this::wake);
        for (Flight flight : List.copyOf(followed)) {
            landAt(flight.worker.slot(), nowNs);
        }
    }

    private void wake(Lane lane) {
        leave(lane); // its first one may be another now
        lane.takeBack();
        lookAt(lane);
    }

    /** Lets those wait for a worker that have followed as long as they may. */
    synchronized void land(long nowNs) {
        while (!following.isEmpty() && nowNs - following.first().followsUntilNs >= 0) {
            land(following.first());
        }
        for (Flight flight : List.copyOf(followed)) {
            if (nowNs - flight.endsNs >= 0) {
                landAll(flight);
            }
        }
    }

    /** Lets those wait for a worker whose flight on a slot is not computed any more. */
    synchronized void landAt(int slot, long nowNs) {
        for (Flight flight : List.copyOf(followed)) {
            if (flight.worker.slot() == slot && flight.phase(nowNs) != Flight.Phase.COMPUTING) {
                landAll(flight);
            }
        }
    }

    private void landAll(Flight flight) {
        List.copyOf(flight.followers).forEach(this::land);
    }

    private void land(Entry entry) {
        unfollow(entry);
        line(entry);
    }

    /** Takes out what has waited too long. */
    synchronized List<Left> expired(long nowNs) {
        if (byExpiry.isEmpty() || byExpiry.first().expiresNs > nowNs) {
            return List.of();
        }
        final List<Left> left = new ArrayList<>();
        while (!byExpiry.isEmpty() && byExpiry.first().expiresNs <= nowNs) {
            final Entry entry = byExpiry.first();
            if (entry.settle()) {
                left.add(new Left(entry, expiry(entry, nowNs)));
            }
            remove(entry);
        }
        return left;
    }

    /** Why an entry that may not wait longer is refused. */
    synchronized QueueException expiry(Entry entry, long nowNs) {
        return entry.expiresNs == entry.rank.deadlineNs()
                ? refuse(Kind.DEADLINE, millis(lateNs(entry, nowNs)), 0, count.get())
                : refuse(
                        Kind.WAITED_TOO_LONG,
                        millis(nowNs - entry.arrivedNs),
                        millis(entry.expiresNs - entry.arrivedNs), // of its admission
                        count.get());
    }

    /** How long an entry has been over; no more than can be said. */
    private static long lateNs(Entry entry, long nowNs) {
        final long late = nowNs - entry.expiresNs;
        return late < 0 ? Long.MAX_VALUE : late;
    }

    private static long millis(long ns) {
        return TimeUnit.NANOSECONDS.toMillis(ns);
    }

    /** Why an entry gave way: as many requests wait as may, or else their tokens are too many. */
    private QueueException displaced(boolean manyRequests, int requests, long tokensOfThem) {
        return manyRequests
                ? refuse(Kind.DISPLACED, Kind.QUEUE_FULL, requests, rules.maxRequests(), requests)
                : refuse(
                        Kind.DISPLACED,
                        Kind.QUEUE_TOKENS_FULL,
                        tokensOfThem,
                        rules.maxTokens(),
                        requests);
    }

    private QueueException refuse(Kind kind, long observed, long limit, int ahead) {
        return refuse(kind, kind, observed, limit, ahead);
    }

    private QueueException refuse(Kind kind, Kind measure, long observed, long limit, int ahead) {
        refused.merge(kind, 1L, Long::sum);
        return new QueueException(
                kind, measure, observed, limit, pace.timeFor(ahead, rules.maxWaitNs()));
    }

    /** Lets nothing in from now on, and takes all out. */
    synchronized List<Left> close() {
        closed = true;
        final List<Left> left = new ArrayList<>();
        while (!byExpiry.isEmpty()) {
            final Entry entry = byExpiry.first();
            if (entry.settle()) {
                left.add(new Left(entry, refuse(Kind.CLOSED, count.get(), 0, 1)));
            }
            remove(entry);
        }
        return left;
    }

    /** When something is due; {@link Long#MAX_VALUE} where nothing waits. */
    synchronized long nextDueNs() {
        if (byExpiry.isEmpty()) {
            return Long.MAX_VALUE;
        }
        long due = byExpiry.first().expiresNs;
        if (!following.isEmpty()) {
            due = Math.min(due, following.first().followsUntilNs);
        }
        for (Flight flight : followed) {
            due = Math.min(due, flight.endsNs);
        }
        return due;
    }

    /** What there is, and what became of it. */
    synchronized QueueStatus status(
            long nowNs, long admitted, long waited, long led, long followedSoFar, long notLed) {
        long oldest = nowNs;
        for (Entry entry : byExpiry) {
            oldest = Math.min(oldest, entry.arrivedNs);
        }
        return new QueueStatus(
                count.get(),
                tokens,
                following.size(),
                nowNs - oldest,
                admitted,
                waited,
                cancelled,
                refused,
                led,
                followedSoFar,
                notLed);
    }
}

package io.kvasir.router.queue;

import io.kvasir.router.Reach;

import java.util.concurrent.atomic.AtomicReference;

/**
 * One request of a queue. Its state says whose its outcome is: exactly one of {@link #settle} and
 * {@link #cancel} succeeds. All other fields that change are guarded by the {@link WaitingRoom}.
 */
final class Entry implements QueueTicket {
    private enum State {
        OPEN,
        SETTLED,
        CANCELLED
    }

    final QueuedRequest request;
    final QueueRank rank;
    final Reach reach;
    final int tokens;
    final long arrivedNs;
    final long expiresNs; // its own deadline or the end of the longest wait
    final long number; // in order of arrival
    private final WaitingRoom room;
    private final AtomicReference<State> state = new AtomicReference<>(State.OPEN);

    private int uncachedTokens; // written before it waits, or while it is in no line
    private long tier; // smaller goes first
    private double score; // likewise, within a tier and deadline
    boolean entered; // written before others see it
    Lane lane; // null before it has waited in one
    Flight following; // null while it does not wait for one
    long followsUntilNs; // 0 before it has followed one

    Entry(
            WaitingRoom room,
            QueuedRequest request,
            QueueRank rank,
            Reach reach,
            int tokens,
            long arrivedNs,
            long number) {
        this.room = room;
        this.request = request;
        this.rank = rank;
        this.reach = reach;
        this.tokens = tokens;
        this.arrivedNs = arrivedNs;
        this.number = number;
        expiresNs = Math.min(rank.deadlineNs(), arrivedNs + room.rules().maxWaitNs());
        uncachedTokens = tokens;
    }

    /** Takes how much of it is to be computed, before it waits or while it is in no line. */
    void measured(int tokensToCompute) {
        uncachedTokens = tokensToCompute;
    }

    /** Takes what orders it, while it is in no line. */
    void orderBy(QueueRules rules) {
        tier = rules.tier(rank, arrivedNs);
        score = rules.score(rank, arrivedNs, uncachedTokens);
    }

    /** Takes the outcome; false if the caller has given it up, or it has one. */
    boolean settle() {
        return state.compareAndSet(State.OPEN, State.SETTLED);
    }

    @Override
    public boolean cancel() {
        if (!state.compareAndSet(State.OPEN, State.CANCELLED)) {
            return false;
        }
        room.cancelled(this);
        return true;
    }

    @Override
    public boolean isWaiting() {
        return state.get() == State.OPEN;
    }

    /** Next first. Static by the same rules: what ages does so for all alike. */
    static int order(Entry a, Entry b) {
        int order = Long.compare(a.tier, b.tier);
        order = order == 0 ? Long.compare(a.rank.deadlineNs(), b.rank.deadlineNs()) : order;
        order = order == 0 ? Double.compare(a.score, b.score) : order;
        return order == 0 ? Long.compare(a.number, b.number) : order;
    }

    /** The last ones give way first: they are of the lowest class. */
    static int standing(Entry a, Entry b) {
        final int order = Integer.compare(b.rank.priority(), a.rank.priority());
        return order == 0 ? order(a, b) : order;
    }

    static int expiry(Entry a, Entry b) {
        final int order = Long.compare(a.expiresNs, b.expiresNs);
        return order == 0 ? Long.compare(a.number, b.number) : order;
    }
}

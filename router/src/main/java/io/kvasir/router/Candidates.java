package io.kvasir.router;

import io.kvasir.core.load.LoadBoard;
import io.kvasir.core.load.LoadSnapshot;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.load.BusyMarks;
import io.kvasir.router.policy.Eligibility.Verdict;
import io.kvasir.router.settings.LoraMode;
import io.kvasir.router.settings.RouterSettings;

import java.util.Arrays;
import java.util.concurrent.TimeUnit;

/**
 * The workers at one moment, their loads, and which of them may be chosen for one request. Owned by
 * a {@link Selection}; reused, so that a further selection copies only loads that have changed.
 */
final class Candidates {
    private static final long[] NO_GROUPS = {};
    private static final long MS = TimeUnit.MILLISECONDS.toNanos(1);

    private WorkerSet workers = WorkerSet.EMPTY;
    private LoadSnapshot loads = new LoadSnapshot(1);
    private double degradedCredit;
    private Worker pinned; // null for any
    private boolean anyRank; // of the pinned worker's server
    private long excludedTaints;
    private int failed; // excluded by name
    private final SlotMarks unreached = new SlotMarks(); // out of reach for the request
    private final SlotMarks busy = new SlotMarks(); // beyond a limit of load, or full
    private final SlotMarks ineligible = new SlotMarks(); // by the selection policy
    private int unjudged; // of the ineligible: the selection policy failed for them
    private final SlotMarks passedOver = new SlotMarks(); // for those with the adapter
    private final Suitability suitability = new Suitability();
    private BusyLimits limits;
    private long latestNs; // of a first token
    private double fastestNs; // the first token of the fastest that was taken out for it
    private Worker fastest; // null where none was
    private BusyMarks marks;
    private long nowNs; // where a worker is marked
    private long[] barred = NO_GROUPS; // by group of 64 slots: excluded, or not the pinned one
    private long[] slots = NO_GROUPS; // by group: slots that may be chosen
    private int count;
    private int leftOut; // by what this prompt costs there, which may be less for another

    /** Takes a set of workers, of which none may be chosen yet. */
    void begin(WorkerSet registered) {
        workers = registered;
        count = 0;
    }

    /** Takes what the request asks of its worker, and what the workers are marked with. */
    void marks(RouteRequest request, WorkerMarks marks, LoraMode loraMode) {
        suitability.fill(request, marks, workers, loraMode);
    }

    /**
     * Takes the loads and what the request allows; from here on the numbers stand still.
     *
     * @param tokenWeight blocks that a token to prefill counts
     * @param creditWhenDegraded what a cached block counts while events are known to be missing
     * @param busyLimits from which load on a worker is no candidate
     */
    void fill(
            RouteRequest request,
            LoadBoard board,
            double tokenWeight,
            double creditWhenDegraded,
            BusyLimits busyLimits) {
        if (loads.slots() != board.slots()) {
            loads = new LoadSnapshot(board.slots());
        }
        loads.refresh(board, tokenWeight);
        degradedCredit = creditWhenDegraded;
        bar(request);
        count = 0;
        unreached.clear(workers.groups());
        busy.clear(workers.groups());
        ineligible.clear(workers.groups());
        unjudged = 0;
        passedOver.clear(workers.groups());
        for (int group = 0; group < workers.groups(); group++) {
            slots[group] = usable(group) & ~suitability.out(group);
            count += Long.bitCount(slots[group]);
        }
        leftOut = 0;
        fastest = null;
        limits = busyLimits;
        if (!limits.isNone()) {
            takeOutBusy();
        }
    }

    /** Slots of a group that may be chosen but for what the request asks of marks and load. */
    private long usable(int group) {
        return workers.slots(group) & loads.openSlots(group) & ~barred[group];
    }

    /**
     * Leaves those with the request's adapter, where it prefers them and one of them has room.
     *
     * @param room without limits where a request does not wait for it
     */
    void preferAdapter(RoomLimits room) {
        if (!suitability.prefersAdapter() || !isRoom(room, true)) {
            return;
        }
        for (int group = 0; group < workers.groups(); group++) {
            for (long rest = slots[group] & ~suitability.serving(group);
                    rest != 0;
                    rest &= rest - 1) {
                takeOut(group * Long.SIZE + Long.numberOfTrailingZeros(rest), passedOver);
            }
        }
    }

    /** Whether a candidate has room, of all or of those with the request's adapter. */
    private boolean isRoom(RoomLimits room, boolean withAdapter) {
        for (int group = 0; group < workers.groups(); group++) {
            for (long rest = slots[group] & (withAdapter ? suitability.serving(group) : -1);
                    rest != 0;
                    rest &= rest - 1) {
                final int slot = group * Long.SIZE + Long.numberOfTrailingZeros(rest);
                if (room.hasRoom(workers.at(slot), loads)) {
                    return true;
                }
            }
        }
        return false;
    }

    private void takeOutBusy() {
        for (int group = 0; group < workers.groups(); group++) {
            for (long rest = slots[group]; rest != 0; rest &= rest - 1) {
                final int slot = group * Long.SIZE + Long.numberOfTrailingZeros(rest);
                if (limits.isBusy(workers.at(slot), loads)) {
                    takeOut(slot, busy);
                }
            }
        }
    }

    /** Takes out the workers that are full; with the limits, which are asked before. */
    void takeOutFull(BusyMarks full, long atNs) {
        marks = full;
        nowNs = atNs;
        if (!full.any()) {
            return;
        }
        for (int group = 0; group < workers.groups(); group++) {
            for (long rest = slots[group]; rest != 0; rest &= rest - 1) {
                final int slot = group * Long.SIZE + Long.numberOfTrailingZeros(rest);
                if (full.isFull(slot, atNs)) {
                    takeOut(slot, busy);
                }
            }
        }
    }

    /**
     * Refuses where none of the candidates, of which there are some, has room.
     *
     * @throws RouteException that no worker has room
     */
    void checkRoom(RoomLimits room) throws RouteException {
        if (isRoom(room, false)) {
            return;
        }
        throw refused(
                new RouteException(
                        RouteException.Kind.NO_ROOM,
                        "none of "
                                + count
                                + " workers has room for a further prompt: "
                                + room.explain()
                                + "; add workers, or raise the threshold"));
    }

    private void takeOut(int slot, SlotMarks why) {
        why.add(slot);
        slots[slot / Long.SIZE] &= ~(1L << slot);
        count--;
    }

    /** Takes out the workers that have been removed: their slots may be another's by now. */
    void dropRemoved() {
        count = 0;
        for (int group = 0; group < workers.groups(); group++) {
            for (long rest = slots[group]; rest != 0; rest &= rest - 1) {
                final int slot = group * Long.SIZE + Long.numberOfTrailingZeros(rest);
                if (workers.at(slot).isRemoved()) {
                    slots[group] &= ~(1L << slot);
                }
            }
            count += Long.bitCount(slots[group]);
        }
    }

    /** Takes out a candidate of which the first token is expected too late. */
    void takeOutSlow(int slot, long latestFirstTokenNs, double expectedNs) {
        leaveOut(slot, busy);
        latestNs = latestFirstTokenNs;
        if (fastest == null || expectedNs < fastestNs) {
            fastest = workers.at(slot);
            fastestNs = expectedNs;
        }
    }

    /** Takes out a candidate whose cost the request says is infinite. */
    void drop(int slot) {
        leaveOut(slot, unreached);
    }

    /** Takes out a candidate that the selection policy does not allow. */
    void reject(int slot, Verdict verdict) {
        leaveOut(slot, verdict == Verdict.BUSY ? busy : ineligible);
    }

    /** Takes out a candidate for which the selection policy failed. */
    void rejectUnjudged(int slot) {
        leaveOut(slot, ineligible);
        unjudged++;
    }

    private void leaveOut(int slot, SlotMarks why) {
        takeOut(slot, why);
        leftOut++;
    }

    private RouteException refused(RouteException why) {
        return leftOut > 0 ? why.asOwn() : why;
    }

    private void bar(RouteRequest request) {
        pinned = request.pinned();
        anyRank = request.isAnyRank();
        if (barred.length < workers.groups()) {
            barred = new long[workers.groups()];
            slots = new long[workers.groups()];
        }
        Arrays.fill(barred, pinned == null ? 0 : -1);
        excludedTaints = request.excludedTaints();
        failed = 0;
        if (anyRank) {
            for (int i = 0; i < workers.size(); i++) {
                allow(workers.worker(i));
            }
        } else if (pinned != null && workers.at(pinned.slot()) == pinned) {
            allow(pinned);
        }
        for (int i = 0; i < request.excludedCount(); i++) {
            final Worker worker = request.excluded(i);
            if (workers.at(worker.slot()) == worker) {
                failed += isBarred(worker.slot()) ? 0 : 1;
                barred[worker.slot() / Long.SIZE] |= 1L << worker.slot();
            }
        }
        for (int group = 0; excludedTaints != 0 && group < workers.groups(); group++) {
            barred[group] |= workers.tainted(excludedTaints, group);
        }
    }

    private void allow(Worker worker) {
        if (!isPinnedElsewhere(worker)) {
            barred[worker.slot() / Long.SIZE] &= ~(1L << worker.slot());
        }
    }

    WorkerSet workers() {
        return workers;
    }

    LoadSnapshot loads() {
        return loads;
    }

    /** Number of groups of 64 slots. */
    int groups() {
        return workers.groups();
    }

    /** How many may be chosen. */
    int count() {
        return count;
    }

    /** Slots of a group that may be chosen, one bit each. */
    long slots(int group) {
        return slots[group];
    }

    /** Whether the worker of a slot may be chosen. */
    boolean contains(int slot) {
        return (slots[slot / Long.SIZE] >>> slot & 1) != 0;
    }

    /** Slot of the n-th candidate in order of slots, counted from 0. */
    int nth(int n) {
        int left = n;
        for (int group = 0; group < workers.groups(); group++) {
            final int here = Long.bitCount(slots[group]);
            if (left < here) {
                return group * Long.SIZE + nthBit(slots[group], left);
            }
            left -= here;
        }
        throw new IndexOutOfBoundsException("candidate " + n + " of " + count);
    }

    /** Index of the n-th set bit, counted from 0. */
    static int nthBit(long bits, int n) {
        long rest = bits;
        for (int i = 0; i < n; i++) {
            rest &= rest - 1;
        }
        return Long.numberOfTrailingZeros(rest);
    }

    /** The slot of the pinned worker, which is a candidate. */
    int pinnedSlot() throws RouteException {
        if (pinned == null) {
            throw new RouteException(
                    RouteException.Kind.INVALID,
                    "mode direct needs a pinned worker and the request names none");
        }
        return pinned.slot();
    }

    /** Whether the request is pinned to another worker. */
    boolean isPinnedElsewhere(Worker worker) {
        return pinned != null
                && pinned != worker
                && !(anyRank && worker.name().equals(pinned.name()));
    }

    /** Whether a worker has a taint that the request excludes. */
    boolean isTainted(Worker worker) {
        return (worker.taints() & excludedTaints) != 0 || suitability.isRepelled(worker.slot());
    }

    /** What the request asks of its worker beside its load. */
    Suitability suitability() {
        return suitability;
    }

    /** Whether a slot is none for want of the request's adapter. */
    boolean lacksAdapter(int slot) {
        return passedOver.contains(slot) || suitability.lacksAdapter(slot);
    }

    /** Whether the request excludes the worker of a slot, or is pinned to another one. */
    boolean isBarred(int slot) {
        return (barred[slot / Long.SIZE] >>> slot & 1) != 0;
    }

    /** Whether a slot was a candidate until its cost was found to be infinite. */
    boolean isDropped(int slot) {
        return unreached.contains(slot);
    }

    /** Whether a slot was a candidate but for its load. */
    boolean isBusy(int slot) {
        return busy.contains(slot);
    }

    /** Whether a slot was a candidate but for the selection policy. */
    boolean isIneligible(int slot) {
        return ineligible.contains(slot);
    }

    /** How far the index can be trusted now for the worker of a slot. */
    IndexState state(int slot) {
        return workers.at(slot).state();
    }

    /** What a cached block counts now on the worker of a slot. */
    double credit(int slot) {
        return workers.at(slot).credit(degradedCredit);
    }

    /**
     * Why there is no candidate.
     *
     * @param policy name of the selection policy
     */
    RouteException none(String policy) {
        return refused(why(policy));
    }

    private RouteException why(String policy) {
        if (fastest != null) {
            return tooLate();
        }
        if (busy.count() > 0) {
            return new RouteException(
                    RouteException.Kind.ALL_WORKERS_BUSY, allBusy(policy), retryNs());
        }
        if (pinned != null) {
            return new RouteException(
                    RouteException.Kind.PINNED_UNAVAILABLE,
                    "the pinned worker "
                            + (anyRank ? pinned.name() : pinned)
                            + " "
                            + whyPinned(policy));
        }
        final Suitability.Losses losses = losses();
        if (failed == 0 && losses.isByAdapter()) {
            return new RouteException(RouteException.Kind.NO_ADAPTER, losses.adapterText());
        }
        if (failed == 0 && unreached.count() + ineligible.count() == 0 && losses.isByMarks()) {
            return new RouteException(RouteException.Kind.NONE_SUITABLE, losses.marksText());
        }
        int tainted = 0;
        for (int group = 0; group < workers.groups(); group++) {
            tainted += Long.bitCount(workers.tainted(excludedTaints, group));
        }
        if (failed > 0) {
            return new RouteException(
                    RouteException.Kind.ALL_EXCLUDED,
                    "no worker left: "
                            + failed
                            + " failed this request before, "
                            + (workers.size() - failed)
                            + " are unavailable"
                            + (tainted == 0 ? "" : " or excluded by their taints")
                            + some(unreached, " of them by their cost")
                            + some(ineligible, " of them by selection-policy=" + policy)
                            + unjudged()
                            + losses.more());
        }
        return new RouteException(
                ineligible.count() > 0
                        ? RouteException.Kind.NONE_ELIGIBLE
                        : RouteException.Kind.NO_WORKERS,
                workers.size() == 0
                        ? "no worker is registered; name one with --worker or addWorker"
                        : "none of "
                                + workers.size()
                                + " registered workers is available"
                                + (tainted == 0
                                        ? ""
                                        : ", " + tainted + " are excluded by their taints")
                                + some(unreached, " cost the request infinitely much")
                                + some(
                                        ineligible,
                                        " are not eligible by selection-policy=" + policy)
                                + unjudged()
                                + losses.more());
    }

    private RouteException tooLate() {
        final long expectedMs = Math.ceilDiv((long) fastestNs, MS);
        final long limitMs = latestNs / MS;
        return new RouteException(
                RouteException.Kind.ALL_WORKERS_BUSY,
                busy.count()
                        + " of "
                        + workers.size()
                        + " workers could be used and are busy; the first token is expected"
                        + " soonest at "
                        + fastest
                        + ": expected ms="
                        + expectedMs
                        + ", "
                        + RouterSettings.BUSY_TTFT
                        + "="
                        + limitMs
                        + "; add workers, or raise the limit",
                Math.max(MS, (long) fastestNs - latestNs),
                new RouteException.Limit(RouterSettings.BUSY_TTFT.name(), limitMs, expectedMs));
    }

    private Suitability.Losses losses() {
        final long[] usable = new long[workers.groups()];
        for (int group = 0; group < usable.length; group++) {
            usable[group] = usable(group);
        }
        return suitability.losses(workers, usable);
    }

    private static String some(SlotMarks slots, String what) {
        return slots.count() == 0 ? "" : ", " + slots.count() + what;
    }

    private String unjudged() {
        return unjudged == 0 ? "" : ", " + unjudged + " of them because it failed";
    }

    private String whyPinned(String policy) {
        if (workers.at(pinned.slot()) == pinned) {
            if (suitability.lacksAdapter(pinned.slot())) {
                return "has not the adapter that the request needs";
            }
            if (suitability.lacksLabel(pinned.slot())) {
                return "has not all labels that the request requires";
            }
            if (suitability.isRepelled(pinned.slot())) {
                return "has a taint that the request does not tolerate";
            }
        }
        if (unreached.count() > 0) {
            return "costs the request infinitely much";
        }
        return ineligible.count() > 0
                ? "is not eligible by selection-policy="
                        + policy
                        + (unjudged == 0 ? "" : ", which failed")
                : "is gone or unavailable";
    }

    /** When the first of the busy workers is tried again; 0 where that depends on load alone. */
    private long retryNs() {
        long first = 0;
        for (int group = 0; group < workers.groups(); group++) {
            for (long rest = busy.of(group); rest != 0; rest &= rest - 1) {
                final int slot = group * Long.SIZE + Long.numberOfTrailingZeros(rest);
                final long left = marks.leftNs(slot, nowNs);
                if (left > 0 && (first == 0 || left < first)) {
                    first = left;
                }
            }
        }
        return first;
    }

    private String whyFull(Worker worker) {
        return worker
                + ": "
                + marks.whyOrNull(worker.slot())
                + ", is tried again in "
                + TimeUnit.NANOSECONDS.toMillis(marks.leftNs(worker.slot(), nowNs))
                + " ms, "
                + RouterSettings.BUSY_LEASE.name()
                + ";";
    }

    private String allBusy(String policy) {
        int least = -1;
        for (int group = 0; group < workers.groups(); group++) {
            for (long rest = busy.of(group); rest != 0; rest &= rest - 1) {
                final int slot = group * Long.SIZE + Long.numberOfTrailingZeros(rest);
                least = least < 0 || loads.weighted(slot) < loads.weighted(least) ? slot : least;
            }
        }
        final Worker worker = workers.at(least);
        return busy.count()
                + " of "
                + workers.size()
                + " workers could be used and are busy; the one with the least load is "
                + (limits.isBusy(worker, loads)
                        ? limits.explain(worker, loads)
                        : marks.isFull(least, nowNs)
                                ? whyFull(worker)
                                : worker
                                        + ": full by selection-policy="
                                        + policy
                                        + ", blocks in use="
                                        + loads.activeBlocks(least)
                                        + " of "
                                        + worker.kvBlocks()
                                        + ", requests="
                                        + loads.activeRequests(least)
                                        + ";")
                + " add workers, or raise the limit";
    }
}

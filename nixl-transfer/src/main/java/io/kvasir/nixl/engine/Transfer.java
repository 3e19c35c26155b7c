package io.kvasir.nixl.engine;

import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.KvTransport.Operation;

import java.util.Arrays;
import java.util.Objects;

/**
 * Blocks to move between own memory and a peer's: pairs of indices, in stages. Caller-owned and
 * reusable; from {@link TransferEngine#submit} until its end it belongs to the engine.
 *
 * <p>Stages end in order: {@link #completedStages} counts those whose bytes are all there, so that
 * a caller that needs the first layers first can begin while the others still move. A stage may
 * carry a notification, which reaches the peer after the last byte of the stage and of all before
 * it; its last request waits for theirs to end, so where that costs too much only the last stage
 * has one.
 *
 * <p>All of a transfer is filled before it is submitted. A caller that has the bytes one stage
 * after the other, such as a prefill that computes layer by layer, makes it {@link #gated} and
 * {@linkplain #openStages opens} a stage when it is computed: one deadline, one end and one failure
 * for all layers, and one notification when the peer has them all.
 */
public final class Transfer {
    /** Where it is. */
    public enum State {
        /** Being filled; the caller's. */
        NEW,
        /** Submitted, nothing posted yet. */
        WAITING,
        /** Something is posted. */
        RUNNING,
        /** All bytes are there. */
        DONE,
        /** The peer or the transport failed; {@link Transfer#failure} says why. */
        FAILED,
        /** Its deadline passed. */
        EXPIRED,
        /** Cancelled before its end. */
        CANCELLED;

        /**
         * Whether it has ended: nothing of it moves any more, the blocks of both sides are free.
         *
         * @return true for the last four
         */
        public boolean isEnd() {
            return this == DONE || this == FAILED || this == EXPIRED || this == CANCELLED;
        }
    }

    /** Which waiting transfer goes first. */
    public enum Priority {
        /** A first token waits for it. */
        HIGH,
        /** The usual. */
        NORMAL,
        /** Prefetches and the like. */
        LOW
    }

    /** Notified on the engine's thread; must not block or throw. What it throws ends nothing. */
    public interface Listener {
        /**
         * A stage is complete.
         *
         * @param transfer the transfer
         * @param stage its number, from 0
         */
        default void onStage(Transfer transfer, int stage) {}

        /**
         * The transfer has ended, one way or another; it may be filled and submitted again.
         *
         * @param transfer the transfer
         */
        void onEnd(Transfer transfer);
    }

    /** Without a deadline. */
    public static final long NEVER = Long.MAX_VALUE;

    private static final Listener NONE = transfer -> {};
    private static final int FIRST_CAPACITY = 64;

    // the request, written by the caller
    Operation operation;
    LocalBlocks local;
    KvLink link;
    int[] localIndices = new int[FIRST_CAPACITY];
    int[] remoteIndices = new int[FIRST_CAPACITY];
    int count;
    int[] stageEnds = new int[1];
    byte[][] notifications = new byte[1][];
    int stages;
    Priority priority;
    long deadlineNs;
    Listener listener;

    // its progress, written by the engine's thread
    int posted; // descriptors
    int stagePosted; // stage of the next descriptor to post
    int inFlight; // requests
    int[] stageInFlight = new int[1]; // requests
    long[] stageStartNs = new long[1]; // when its first request was made
    long submittedNs;
    boolean queued;
    boolean awaitsItself; // the next request notifies: all before it must have ended
    boolean stopping; // nothing more is posted; ends when nothing is in flight
    State ending;

    private volatile State state = State.NEW;
    private volatile int completedStages;
    private volatile int openStages; // those that may be posted
    private volatile boolean cancelled;
    private String failure;

    /** Empty. */
    public Transfer() {
        clear();
    }

    private void clear() {
        operation = null;
        local = null;
        link = null;
        count = 0;
        stages = 0;
        priority = Priority.NORMAL;
        deadlineNs = NEVER;
        listener = NONE;
        openStages = Integer.MAX_VALUE;
        Arrays.fill(notifications, null);
        failure = null;
        completedStages = 0;
        cancelled = false;
        state = State.NEW;
    }

    /**
     * Makes it a pull: from the peer into own memory.
     *
     * @param own where to
     * @param from where from
     * @return this, emptied
     * @throws IllegalStateException if the engine has it
     */
    public Transfer pull(LocalBlocks own, KvLink from) {
        return begin(Operation.READ, own, from);
    }

    /**
     * Makes it a push: from own memory to the peer.
     *
     * @param own where from
     * @param to where to
     * @return this, emptied
     * @throws IllegalStateException if the engine has it
     */
    public Transfer push(LocalBlocks own, KvLink to) {
        return begin(Operation.WRITE, own, to);
    }

    private Transfer begin(Operation way, LocalBlocks own, KvLink other) {
        if (state != State.NEW && !state.isEnd()) {
            throw new IllegalStateException("the transfer is " + state + "; wait for its end");
        }
        Objects.requireNonNull(own, "own blocks");
        Objects.requireNonNull(other, "link");
        clear();
        operation = way;
        local = own;
        link = other;
        return this;
    }

    /**
     * Adds a pair of descriptors to the present stage.
     *
     * @param localIndex index in the own list
     * @param remoteIndex index in the peer's
     * @return this
     * @throws IllegalStateException if it is neither a pull nor a push yet
     * @throws IndexOutOfBoundsException naming the index and the list that does not have it
     * @throws IllegalArgumentException if the descriptors differ in length
     */
    public Transfer add(int localIndex, int remoteIndex) {
        if (operation == null) {
            throw new IllegalStateException(
                    "the transfer has no direction: push or pull comes before add");
        }
        checkIndices(localIndex, remoteIndex);
        if (local.descriptors().length(localIndex) != link.descriptors().length(remoteIndex)) {
            throw new IllegalArgumentException(
                    "own descriptor "
                            + localIndex
                            + " has "
                            + local.descriptors().length(localIndex)
                            + " bytes, descriptor "
                            + remoteIndex
                            + " of "
                            + link.peer()
                            + " has "
                            + link.descriptors().length(remoteIndex));
        }
        if (count == localIndices.length) {
            localIndices = Arrays.copyOf(localIndices, 2 * count);
            remoteIndices = Arrays.copyOf(remoteIndices, 2 * count);
        }
        localIndices[count] = localIndex;
        remoteIndices[count++] = remoteIndex;
        return this;
    }

    private void checkIndices(int localIndex, int remoteIndex) {
        final int locals = local.descriptors().count();
        final int remotes = link.descriptors().count();
        if (localIndex < 0 || localIndex >= locals) {
            throw outside("the own blocks", locals, localIndex);
        }
        if (remoteIndex < 0 || remoteIndex >= remotes) {
            throw outside("the blocks of " + link.peer(), remotes, remoteIndex);
        }
    }

    private static IndexOutOfBoundsException outside(String whose, int count, int index) {
        return new IndexOutOfBoundsException(
                whose + " have indices 0.." + (count - 1) + ", not " + index);
    }

    /**
     * Ends the present stage; what is added from here on is the next one.
     *
     * @param notification sent to the peer when the stage is complete, at most {@link
     *     KvTransport#MAX_MESSAGE} bytes; null for none; not copied
     * @return this
     * @throws IllegalArgumentException if the stage is empty or the notification too long
     */
    public Transfer endStage(byte[] notification) {
        if (count == stageFirst(stages)) {
            throw new IllegalArgumentException("stage " + stages + " is empty");
        }
        if (notification != null && notification.length > KvTransport.MAX_MESSAGE) {
            throw new IllegalArgumentException(
                    "notification of stage "
                            + stages
                            + " has "
                            + notification.length
                            + " bytes, at most "
                            + KvTransport.MAX_MESSAGE);
        }
        if (stages == stageEnds.length) {
            stageEnds = Arrays.copyOf(stageEnds, 2 * stages);
            notifications = Arrays.copyOf(notifications, 2 * stages);
            stageInFlight = new int[2 * stages];
            stageStartNs = new long[2 * stages];
        }
        stageEnds[stages] = count;
        notifications[stages++] = notification;
        return this;
    }

    /**
     * Sets the priority; {@link Priority#NORMAL} at first.
     *
     * @param which its priority
     * @return this
     */
    public Transfer priority(Priority which) {
        priority = Objects.requireNonNull(which, "priority");
        return this;
    }

    /**
     * Sets when it is given up.
     *
     * @param nanoTime on the engine's clock; {@link #NEVER} at first
     * @return this
     */
    public Transfer deadlineNs(long nanoTime) {
        deadlineNs = nanoTime;
        return this;
    }

    /**
     * Sets the listener; none at first.
     *
     * @param next called on the engine's thread
     * @return this
     */
    public Transfer listener(Listener next) {
        listener = Objects.requireNonNull(next, "listener");
        return this;
    }

    /**
     * Keeps every stage back until {@link #openStages} lets it go. While it waits for that, it is
     * in no other's way: transfers after it go first. It counts as waiting in the engine's queue.
     *
     * @return this
     */
    public Transfer gated() {
        openStages = 0;
        return this;
    }

    /**
     * Lets the first stages of a {@link #gated} transfer go; one that is not gated goes anyway. The
     * bytes that the calling thread wrote before are those that move. One thread at a time, before
     * or after the submission; once the transfer has ended it changes nothing, unless the caller
     * fills it again meanwhile.
     *
     * @param count stages from the first one; fewer than before changes nothing
     */
    public void openStages(int count) {
        if (count > openStages) {
            openStages = count;
        }
    }

    /** Whether what is to be posted next may be: its stage is open, and it waits for no other. */
    boolean mayGoOn() {
        return stagePosted < openStages && !(awaitsItself && inFlight > 0);
    }

    /** Gives it up. It ends later, when nothing of it moves any more. Any thread. */
    public void cancel() {
        cancelled = true;
    }

    boolean isCancelled() {
        return cancelled;
    }

    /**
     * Where it is. Any thread.
     *
     * @return its state
     */
    public State state() {
        return state;
    }

    /**
     * Stages whose bytes are all there. Any thread; a thread that reads the number sees the bytes.
     *
     * @return 0..number of stages
     */
    public int completedStages() {
        return completedStages;
    }

    /**
     * Why it failed, expired or was cancelled.
     *
     * @return null if it was not
     */
    public String failure() {
        return failure;
    }

    // -- the engine's

    void submitted(long nowNs) {
        submittedNs = nowNs;
        posted = 0;
        stagePosted = 0;
        inFlight = 0;
        Arrays.fill(stageInFlight, 0);
        queued = true;
        awaitsItself = false;
        stopping = false;
        ending = State.DONE;
        state = State.WAITING;
    }

    void running() {
        state = State.RUNNING;
    }

    /** First descriptor of a stage. */
    int stageFirst(int stage) {
        return stage == 0 ? 0 : stageEnds[stage - 1];
    }

    /** No more is posted; when nothing is in flight any more, it ends like that. */
    void stop(State how, String why) {
        if (!stopping) {
            stopping = true;
            ending = how;
            failure = why;
        }
    }

    boolean isAllPosted() {
        return posted == count;
    }

    boolean isOver() {
        return !queued && inFlight == 0;
    }

    boolean isNextStageComplete() {
        final int next = completedStages;
        return !stopping && next < stages && posted >= stageEnds[next] && stageInFlight[next] == 0;
    }

    /** Publishes that one more stage is complete. */
    void completeStage() {
        final int stage = completedStages;
        completedStages = stage + 1;
        listener.onStage(this, stage);
    }

    void end() {
        final Listener notified = listener; // from here on it is the caller's again
        state = ending;
        notified.onEnd(this);
    }

    /** Hands it back unsubmitted. */
    void refused() {
        state = State.NEW;
    }
}

package io.kvasir.nixl.link;

import io.kvasir.nixl.engine.KvLink;
import io.kvasir.nixl.exchange.ExchangeException;
import io.kvasir.nixl.exchange.MetadataExchange;
import io.kvasir.nixl.exchange.MetadataExchange.Change;
import io.kvasir.nixl.exchange.PeerRecord;
import io.kvasir.nixl.transport.KvTransportException;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A link to a named peer that a {@link LinkManager} keeps up. Any thread may ask it; the manager's
 * thread moves it.
 *
 * <pre>
 *              record known               linked
 *   CONNECTING ----------&gt; CONNECTING ---------&gt; UP
 *       ^                      |                 |  transfer failed, peer gone, newer record
 *       |  pause over,         v  refused        v
 *       +--- record known ---- LOST(why) &lt;---------+        close: CLOSED once nothing is left of it
 * </pre>
 */
public final class ManagedLink implements AutoCloseable {
    /** How it stands with the peer. */
    public enum State {
        /** Its record is looked for, or the link is being made. */
        CONNECTING,
        /** {@link ManagedLink#linked} gives the link. */
        UP,
        /**
         * It is tried again after a pause, or as soon as the peer is back; or it was closed while
         * it was up, and the engine still lets go of it.
         */
        LOST,
        /**
         * Given up by {@link ManagedLink#close} or with its manager, and nothing is left of it: the
         * peer may be kept again.
         */
        CLOSED
    }

    /**
     * Notified on the manager's thread; must not block or throw. What it throws is logged and ends
     * nothing.
     */
    @FunctionalInterface
    public interface Listener {
        /**
         * The state has changed.
         *
         * @param link whose
         * @param state the new one
         * @param why for people; empty when it is up
         */
        void onState(ManagedLink link, State state, String why);
    }

    /**
     * A link that is up.
     *
     * @param link for transfers
     * @param record what it was made from: says where the peer's blocks lie
     */
    public record Linked(KvLink link, PeerRecord record) {}

    /** State, reason and link change together. */
    private record Standing(State state, String why, Linked linked, long sinceNs) {}

    private enum Step {
        /** Waits for a record, and for the pause to be over. */
        WAITING,
        /** The engine makes a link. */
        LINKING,
        /** The link is handed out. */
        LINKED,
        /** The engine gives a link up. */
        UNLINKING,
        /** It could not: blocks are still in use. Waits for the pause to be over. */
        STUCK,
        /** Nothing is left. */
        ENDED
    }

    private final LinkManager manager;
    private final String peer;
    private final String digest;
    private final Listener listener;
    private final AtomicLong handshakes = new AtomicLong();
    private final AtomicLong failures = new AtomicLong();
    private volatile Standing standing;
    private volatile PeerRecord latest; // null while the peer is gone; written by the exchange
    private volatile boolean closed;
    private MetadataExchange.Watch watch;

    // the manager's thread's
    private Step step = Step.WAITING;
    private PeerRecord used; // of the link, or of the last attempt
    private KvLink link;
    private CompletableFuture<KvLink> linking;
    private CompletableFuture<Void> unlinking;
    private boolean lastTry; // to unlink; the manager was closed before
    private int failuresInARow;
    private long notBeforeNs;

    ManagedLink(LinkManager manager, String peer, String digest, Listener listener, long nowNs) {
        this.manager = manager;
        this.peer = peer;
        this.digest = digest;
        this.listener = listener;
        notBeforeNs = nowNs;
        standing = new Standing(State.CONNECTING, "no record of " + peer + " yet", null, nowNs);
    }

    void watch(MetadataExchange exchange) {
        watch =
                exchange.watch(
                        peer,
                        (change, record) -> {
                            latest = change == Change.GONE ? null : record;
                            manager.wake();
                        });
    }

    // -- any thread

    /**
     * The peer that it leads to.
     *
     * @return the name that its record is published under
     */
    public String peer() {
        return peer;
    }

    /**
     * How it stands.
     *
     * @return now
     */
    public State state() {
        return standing.state;
    }

    /**
     * Why it is not up.
     *
     * @return for people; empty when it is up
     */
    public String why() {
        return standing.why;
    }

    /**
     * The link and the record that it was made from, for transfers. A transfer over a link that is
     * lost meanwhile fails with a reason.
     *
     * @return what was up a moment ago
     * @throws KvTransportException of kind {@code PEER_LOST} if it is not up, saying why; at once
     */
    public Linked linked() {
        final Standing now = standing;
        if (now.state != State.UP) {
            throw new KvTransportException(
                    KvTransportException.Kind.PEER_LOST,
                    "no link to " + peer + ": " + now.state + ", " + now.why);
        }
        return now.linked;
    }

    /**
     * The link alone.
     *
     * @return as {@link #linked}
     * @throws KvTransportException as {@link #linked}
     */
    public KvLink link() {
        return linked().link;
    }

    /**
     * Links that were made.
     *
     * @return since it is kept
     */
    public long handshakes() {
        return handshakes.get();
    }

    /**
     * Links that were lost or could not be made.
     *
     * @return since it is kept
     */
    public long failures() {
        return failures.get();
    }

    /**
     * How long it has been up.
     *
     * @return nanoseconds on the manager's clock; 0 while it is not
     */
    public long upForNs() {
        final Standing now = standing;
        return now.state == State.UP ? manager.nowNs() - now.sinceNs : 0;
    }

    /** Gives it up; the engine lets go of the peer soon. Does not block; idempotent. */
    @Override
    public void close() {
        closed = true;
        manager.wake();
    }

    @Override
    public String toString() {
        final Standing now = standing;
        return "ManagedLink[" + peer + ", " + now.state + ", " + now.why + "]";
    }

    // -- the manager's thread

    /** Moves it on; returns how much there was to do. */
    int move(long nowNs) {
        final Step before = step;
        switch (step) {
            case WAITING -> connectIfDue(nowNs);
            case LINKING -> handOutIfDone(nowNs);
            case LINKED -> loseIfDue(nowNs);
            case UNLINKING -> forgetIfDone(nowNs);
            case STUCK -> unlinkAgainIfDue(nowNs);
            case ENDED -> {}
        }
        return step == before ? 0 : 1;
    }

    private void connectIfDue(long nowNs) {
        if (closed) {
            watch.close();
            step = Step.ENDED;
            manager.ended(this); // before the listener is notified: it may keep the peer again
            stand(State.CLOSED, "closed", nowNs);
            return;
        }
        final PeerRecord record = latest;
        if (record == null) {
            return;
        }
        final boolean fresh = !record.equals(used);
        if (!fresh && nowNs - notBeforeNs < 0) {
            return;
        }
        used = record;
        failuresInARow = fresh ? 0 : failuresInARow;
        try {
            record.requireCompatible(digest);
            stand(State.CONNECTING, "makes a link of " + record, nowNs);
            linking = manager.engine().link(record.metadata(), record.memory().descriptors());
            step = Step.LINKING;
        } catch (ExchangeException | IllegalArgumentException e) {
            fail(e.getMessage(), nowNs);
        }
    }

    private void handOutIfDone(long nowNs) {
        if (!linking.isDone()) {
            return;
        }
        if (linking.isCompletedExceptionally()) {
            step = Step.WAITING;
            fail(linking.exceptionNow().getMessage(), nowNs);
            return;
        }
        link = linking.resultNow();
        handshakes.incrementAndGet();
        step = Step.LINKED;
        standing = new Standing(State.UP, "", new Linked(link, used), nowNs);
        notify(State.UP, "");
    }

    private void loseIfDue(long nowNs) {
        final PeerRecord record = latest;
        if (closed) {
            stand(State.LOST, "closed", nowNs);
        } else if (!link.isUp()) {
            lose(link.lostBecause(), nowNs);
        } else if (record == null) {
            lose(peer + " is gone from the exchange", nowNs);
        } else if (!record.equals(used)) {
            lose(record + " has replaced " + used, nowNs);
        } else {
            return;
        }
        unlink();
    }

    private void lose(String why, long nowNs) {
        if (link.transfers() > 0) {
            failuresInARow = 0; // the link was good, so this is the first failure
        }
        fail(why, nowNs);
    }

    /** Whether too many calls waited for the engine. */
    private boolean isUnknownToEngine() {
        return unlinking.exceptionNow() instanceof IllegalStateException
                && !manager.engine().isClosed();
    }

    private void unlink() {
        lastTry = manager.isClosed();
        unlinking = manager.engine().unlink(link);
        step = Step.UNLINKING;
    }

    private void forgetIfDone(long nowNs) {
        if (!unlinking.isDone()) {
            return;
        }
        if (unlinking.isCompletedExceptionally()) {
            if (!manager.isClosed()) {
                fail(unlinking.exceptionNow().getMessage(), nowNs);
                step = Step.STUCK;
                return;
            }
            if (!lastTry || isUnknownToEngine()) {
                unlink();
                return;
            }
        }
        link = null;
        step = Step.WAITING;
    }

    private void unlinkAgainIfDue(long nowNs) {
        if (manager.isClosed() || nowNs - notBeforeNs >= 0) {
            unlink();
        }
    }

    private void fail(String why, long nowNs) {
        failures.incrementAndGet();
        failuresInARow++;
        notBeforeNs = nowNs + manager.backoffNs(failuresInARow);
        stand(State.LOST, why == null ? "no reason given" : why, nowNs);
    }

    private void stand(State state, String why, long nowNs) {
        standing = new Standing(state, why, null, nowNs);
        notify(state, why);
    }

    private void notify(State state, String why) {
        try {
            listener.onState(this, state, why);
        } catch (Throwable e) {
            manager.listenerFailed(e);
        }
    }
}

package io.kvasir.router.replica;

import io.kvasir.core.closing.Closing;
import io.kvasir.pipeline.booking.ReplicaPort;

import org.agrona.ErrorHandler;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;

/**
 * Keeps one router in step with its replicas: sends what becomes of its bookings, and has those of
 * the others count in its load. {@link #step} is called by one thread at a time: its own once
 * {@link #start}ed, or the embedder's that ticks.
 */
public final class ReplicaSync implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ReplicaSync.class);
    private static final int INBOX_MESSAGES = 65_536;
    private static final int MESSAGES_PER_STEP = 4_096;
    private static final int OUTPUTS_PER_DIGEST = 4;
    private static final long MAX_WAIT_NS = TimeUnit.MILLISECONDS.toNanos(10);
    private static final long RETRY_NS = TimeUnit.MILLISECONDS.toNanos(200);

    private final ReplicaConfig config;
    private final ReplicaLink link;
    private final ReplicaPort port;
    private final ReplicaFleet fleet;
    private final ReplicaCounts counts = new ReplicaCounts();
    private final ReplicaInbox inbox = new ReplicaInbox(INBOX_MESSAGES);
    private final PeerTable peers;
    private final ReplicaPublisher publisher;
    private Object fleetSeen;
    private boolean begun;
    private boolean asked; // the others, for their digests
    private long digestNs; // when the last one was asked for
    private long outputsNs; // when totals of outputs were sent last
    private Thread thread; // null where the embedder steps
    private volatile boolean closed;

    /**
     * Begins to listen.
     *
     * @param config identity of this router, and its times
     * @param link to the others; closed by {@link #close}
     * @param port of the router's bookings
     * @param fleet the router's workers
     */
    public ReplicaSync(
            ReplicaConfig config, ReplicaLink link, ReplicaPort port, ReplicaFleet fleet) {
        this.config = config;
        this.link = link;
        this.port = port;
        this.fleet = fleet;
        peers = new PeerTable(config, port, fleet, counts, this::send);
        publisher = new ReplicaPublisher(config, port, fleet, this::send);
        link.start(this::received);
    }

    private void received(ReplicaMessage message) {
        inbox.add(message);
        port.outbox().wake();
    }

    private void send(ReplicaMessage message) {
        final boolean wasConnected =
                link.wasConnected(); // before a connection that comes meanwhile
        if (link.send(message)) {
            counts.published.add(1);
        } else if (wasConnected) {
            counts.sendsRefused.add(1); // a change among them is repaired by digest
        }
    }

    /**
     * Applies what has come, sends what there is, and drops what is overdue. Never waits.
     *
     * @param nowNs time by one clock
     */
    public synchronized void step(long nowNs) {
        if (closed) {
            return;
        }
        final Object workers = fleet.version();
        if (!workers.equals(fleetSeen)) {
            fleetSeen = workers;
            peers.fleetChanged();
        }
        receive(nowNs);
        peers.expire(nowNs);
        if (!begun) {
            begun = true;
            digestNs = nowNs - config.digestNs();
            outputsNs = nowNs;
        }
        if (!asked) {
            ask();
        }
        if (nowNs - digestNs >= config.digestNs()) {
            digestNs = nowNs;
            port.digest();
        }
        final boolean outputsDue = nowNs - outputsNs >= config.digestNs() / OUTPUTS_PER_DIGEST;
        if (outputsDue) {
            outputsNs = nowNs;
        }
        publisher.step(outputsDue);
    }

    /** Asks all others for their digests; again with each step until the link takes it. */
    private void ask() {
        asked =
                link.send(
                        new ReplicaMessage.Ask(
                                config.origin(), ReplicaMessage.Ask.ALL, List.of(), new long[0]));
        if (asked) {
            counts.published.add(1);
        }
    }

    private void receive(long nowNs) {
        for (int i = 0; i < MESSAGES_PER_STEP && !port.isBusy(); i++) {
            final ReplicaMessage message = inbox.poll();
            if (message == null) {
                return;
            }
            if (message.origin().routerId() == config.origin().routerId()) {
                counts.ownIgnored.add(1);
                continue;
            }
            peers.receive(message, nowNs);
            if (message instanceof ReplicaMessage.Ask ask && isAsked(ask)) {
                publisher.asked(ask);
            }
        }
    }

    private boolean isAsked(ReplicaMessage.Ask ask) {
        return ask.routerId() == ReplicaMessage.Ask.ALL
                || ask.routerId() == config.origin().routerId();
    }

    /**
     * Starts a thread that steps whenever there is something to do.
     *
     * @param clock the time of its steps
     * @param errors takes what goes wrong on it, beside the log
     */
    public synchronized void start(LongSupplier clock, ErrorHandler errors) {
        thread =
                Thread.ofPlatform()
                        .daemon()
                        .name("kvasir-replica")
                        .start(() -> keepStepping(clock, errors));
    }

    private void keepStepping(LongSupplier clock, ErrorHandler errors) {
        boolean failed = false;
        while (!closed) {
            try {
                step(clock.getAsLong());
                failed = false;
                port.outbox().await(MAX_WAIT_NS, () -> closed || !inbox.isEmpty());
            } catch (Throwable error) { // the next one may succeed: the load depends on it
                if (!failed) {
                    LOG.error("a step of replica sync failed", error);
                }
                failed = true;
                errors.onError(error);
                LockSupport.parkNanos(this, RETRY_NS);
            }
        }
    }

    /** What has been done; any thread. */
    public ReplicaStatus status() {
        return counts.status(link, inbox.dropped() + port.outbox().dropped());
    }

    /** Says that this router ends, ends the thread, and closes the link. Idempotent. */
    @Override
    public void close() {
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
            if (thread != null) {
                LockSupport.unpark(thread);
            }
        }
        Closing.all(() -> link.send(new ReplicaMessage.Leaving(config.origin())), link);
    }
}

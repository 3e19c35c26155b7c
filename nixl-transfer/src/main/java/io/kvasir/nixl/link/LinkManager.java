package io.kvasir.nixl.link;

import io.kvasir.nixl.engine.TransferEngine;
import io.kvasir.nixl.exchange.ExchangeException;
import io.kvasir.nixl.exchange.ExchangeException.Kind;
import io.kvasir.nixl.exchange.MetadataExchange;
import io.kvasir.nixl.log.FaultLog;

import org.agrona.concurrent.NanoClock;

import java.util.List;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;
import java.util.random.RandomGenerator;

/**
 * Keeps links to named peers up: waits for their records, links, and when a link is lost gives it
 * up and links again from the newest record, with pauses that grow to a cap, until it is closed.
 *
 * <p>A link is lost when a transfer over it has failed, when the peer is gone from the exchange,
 * and when a newer record of it has come. The peer's record is tried again even if it is the same:
 * not every failure is a death. Pauses begin anew with another record, and after a link that has
 * moved something.
 *
 * <p>One thread does it for all links: that of {@link #start}, or the embedder's. It never waits
 * for the engine.
 */
public final class LinkManager implements AutoCloseable {
    private static final long CLOSE_PATIENCE_NS = 10_000_000_000L;

    private final MetadataExchange exchange;
    private final TransferEngine engine;
    private final LinkConfig config;
    private final NanoClock clock;
    private final RandomGenerator random;
    private final List<ManagedLink> links = new CopyOnWriteArrayList<>();
    private final FaultLog faults = new FaultLog("a listener of managed links");
    private volatile Thread thread; // null if the caller runs it
    private volatile boolean closed;

    /**
     * Makes a manager that the caller runs: call {@link #doWork} over and over from one thread, not
     * that of the engine.
     *
     * @param exchange knows the peers' records; stays the caller's
     * @param engine makes links; stays the caller's, and outlives this
     * @param config limits
     * @param clock time of pauses
     * @param random of their jitter
     */
    public LinkManager(
            MetadataExchange exchange,
            TransferEngine engine,
            LinkConfig config,
            NanoClock clock,
            RandomGenerator random) {
        this.exchange = Objects.requireNonNull(exchange, "exchange");
        this.engine = Objects.requireNonNull(engine, "engine");
        this.config = Objects.requireNonNull(config, "config");
        this.clock = Objects.requireNonNull(clock, "clock");
        this.random = Objects.requireNonNull(random, "random");
    }

    /**
     * Makes a manager with a daemon thread of its own.
     *
     * @param exchange knows the peers' records; stays the caller's
     * @param engine makes links; stays the caller's, and outlives this
     * @param config limits
     * @return running
     */
    public static LinkManager start(
            MetadataExchange exchange, TransferEngine engine, LinkConfig config) {
        final RandomGenerator random = new SplittableRandom(ThreadLocalRandom.current().nextLong());
        final LinkManager manager =
                new LinkManager(exchange, engine, config, System::nanoTime, random);
        manager.thread = Thread.ofPlatform().daemon().name("kvasir-links").unstarted(manager::run);
        manager.thread.start();
        return manager;
    }

    private void run() {
        while (!closed || !links.isEmpty()) {
            if (moveAll() == 0) {
                LockSupport.parkNanos(config.pollNs());
            }
        }
    }

    /**
     * Keeps a link to a peer, whether it runs already or not. One link a peer: a transport knows a
     * peer once.
     *
     * @param peer name of its record
     * @param digest what its record's digest must be; empty accepts all
     * @param listener notified of states
     * @return connecting
     * @throws IllegalArgumentException if a link to it is kept already
     * @throws ExchangeException of kind {@code CAPACITY} if {@code maxLinks} are kept; {@code
     *     UNAVAILABLE} if this is closed
     */
    public synchronized ManagedLink keep(
            String peer, String digest, ManagedLink.Listener listener) {
        Objects.requireNonNull(peer, "peer");
        Objects.requireNonNull(digest, "digest");
        Objects.requireNonNull(listener, "listener");
        if (closed) {
            throw new ExchangeException(Kind.UNAVAILABLE, "the link manager is closed");
        }
        if (links.stream().anyMatch(link -> link.peer().equals(peer))) {
            throw new IllegalArgumentException("a link to " + peer + " is kept already");
        }
        if (links.size() >= config.maxLinks()) {
            throw new ExchangeException(
                    Kind.CAPACITY,
                    links.size()
                            + " links are kept, no room for "
                            + peer
                            + "; raise LinkConfig.maxLinks");
        }
        final ManagedLink link = new ManagedLink(this, peer, digest, listener, clock.nanoTime());
        link.watch(exchange);
        links.add(link);
        wake();
        return link;
    }

    /**
     * Moves all links on. Of the one thread that runs this.
     *
     * @return how much there was to do; once this is closed, above 0 until nothing is left of the
     *     links
     */
    public int doWork() {
        final int work = moveAll();
        return closed ? work + links.size() : work;
    }

    private int moveAll() {
        int work = 0;
        for (ManagedLink link : links) {
            work += link.move(clock.nanoTime());
        }
        return work;
    }

    /** Nothing is left of a link: its peer may be kept again. */
    void ended(ManagedLink link) {
        links.remove(link);
    }

    void wake() {
        LockSupport.unpark(thread); // does nothing for null
    }

    long nowNs() {
        return clock.nanoTime();
    }

    TransferEngine engine() {
        return engine;
    }

    long backoffNs(int failures) {
        return config.backoffNs(failures, random);
    }

    void listenerFailed(Throwable fault) {
        faults.add(fault, clock.nanoTime());
    }

    boolean isClosed() {
        return closed;
    }

    /**
     * Gives all links up. Waits up to 10 s for the engine to let go of them; if the caller runs
     * this, call {@link #doWork} until it returns 0 instead. A listener may call it too: then it
     * does not wait. Idempotent.
     */
    @Override
    public void close() {
        synchronized (this) {
            closed = true;
        }
        links.forEach(ManagedLink::close);
        wake();
        final Thread runner = thread;
        if (runner == null || Thread.currentThread().equals(runner)) {
            return;
        }
        try {
            runner.join(CLOSE_PATIENCE_NS / 1_000_000);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}

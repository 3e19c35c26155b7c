package io.kvasir.nats;

import io.kvasir.nixl.exchange.ExchangeException;
import io.kvasir.nixl.exchange.ExchangeException.Kind;
import io.kvasir.nixl.exchange.PeerRecord;
import io.kvasir.nixl.exchange.PublishedRecords;
import io.kvasir.nixl.exchange.ViewedExchange;
import io.nats.client.Connection;
import io.nats.client.ConnectionListener;
import io.nats.client.api.KeyValueEntry;
import io.nats.client.api.KeyValueWatcher;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Exchanges records through a bucket of NATS's key-value store (JetStream), renewed three times in
 * {@link NatsConfig#ttl}: a record that is not seen for that long is removed. An update with the
 * revision that was read keeps an older record from replacing a newer one. A bucket that is there
 * keeps its own TTL, which counts then.
 *
 * <p>While NATS cannot be reached, records known before stay; when it is back, even without its
 * bucket, that is made anew and own records are put into it again.
 *
 * <p>One daemon thread renews and forgets; NATS's own ones call listeners.
 */
public final class NatsExchange extends ViewedExchange {
    private static final Logger LOG = LoggerFactory.getLogger(NatsExchange.class);
    private static final String SOURCE = "nats";
    private static final int RENEWALS_PER_TTL = 3;
    private static final long MAX_PAUSE_MS = 200;
    private static final long CLOSE_PATIENCE_MS = 10_000;

    private final NatsConfig config;
    private final ServerErrors errors = new ServerErrors();
    private final LastingConnection connection;
    private final PublishedRecords own = new PublishedRecords();
    private final AtomicLong unreachable = new AtomicLong();
    private final Thread thread;
    private RecordBucket bucket; // null: to be opened; under the lock, as all that writes to NATS
    private KvWatch watching;
    private volatile Duration bucketTtl;
    private volatile boolean reconnected;
    private volatile boolean closed;

    /**
     * Connects; later it connects again by itself.
     *
     * @param config where NATS is
     * @throws ExchangeException of kind {@code UNAVAILABLE} if it cannot be reached now
     */
    public NatsExchange(NatsConfig config) {
        this.config = config;
        bucketTtl = config.ttl();
        final NatsAccess access = config.access();
        try {
            connection =
                    LastingConnection.make(
                            access.options("kvasir-exchange").errorListener(errors),
                            this::onConnection);
        } catch (IOException e) {
            throw RecordBucket.unavailable("connecting to " + access.address(), e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw RecordBucket.unavailable("connecting to " + access.address(), e);
        }
        thread = Thread.ofPlatform().daemon().name("kvasir-nats-cards").start(this::run);
    }

    private void onConnection(Connection which, ConnectionListener.Events event) {
        switch (event) {
            case RECONNECTED -> reconnected = true;
            case DISCONNECTED -> unreachable.incrementAndGet();
            default -> {}
        }
    }

    @Override
    public synchronized void publish(PeerRecord record) {
        requireOpen();
        own.check(record);
        open();
        put(record);
        own.put(record);
    }

    private void put(PeerRecord record) {
        try {
            bucket.put(record);
        } catch (ExchangeException e) {
            if (e.kind() != Kind.STALE) {
                bucket = null; // open it again before the next
            }
            throw e;
        }
    }

    @Override
    public synchronized void withdraw(String name) {
        final PeerRecord record = own.remove(name);
        if (record != null && bucket != null) {
            bucket.delete(record);
        }
    }

    private void requireOpen() {
        if (closed) {
            throw new ExchangeException(Kind.UNAVAILABLE, "the exchange is closed");
        }
    }

    /**
     * Connections that were lost, and renewals that failed.
     *
     * @return count since the start
     */
    public long unreachable() {
        return unreachable.get();
    }

    // -- the thread

    private void run() {
        long renewedNs = System.nanoTime();
        boolean answers = true;
        while (!closed) {
            final long nowNs = System.nanoTime();
            try {
                final boolean anew = reopenAfterLoss();
                if (anew || nowNs - renewedNs >= bucketTtl.toNanos() / RENEWALS_PER_TTL) {
                    renew();
                    renewedNs = nowNs;
                    answers = true;
                }
            } catch (RuntimeException | Error e) { // an Error too is of this renewal alone
                LOG.debug("own records are not renewed; it is tried again", e);
                unreachable.incrementAndGet();
                answers = false;
            }
            forgetTheSilent(answers);
            pause();
        }
    }

    /** True if the bucket has been opened now. */
    private synchronized boolean reopenAfterLoss() {
        if (reconnected) {
            reconnected = false;
            bucket = null; // it may be another, or none
        }
        return open();
    }

    private boolean open() {
        if (bucket != null || closed) {
            return false;
        }
        final RecordBucket opened = RecordBucket.open(connection, errors, config);
        endWatching();
        watching = opened.watch(new Hearing());
        bucket = opened;
        bucketTtl = opened.ttl(config.ttl());
        return true;
    }

    private void endWatching() {
        if (watching != null) {
            watching.end();
            watching = null;
        }
    }

    private synchronized void renew() {
        if (bucket == null) {
            return; // closed
        }
        if (!bucket.isSame()) {
            bucket = null; // it was deleted, and the watch with it
            open();
        }
        for (PeerRecord record : own.all()) {
            try {
                put(record);
            } catch (ExchangeException e) {
                if (e.kind() != Kind.STALE) {
                    throw e;
                }
                own.remove(record.name()); // superseded
            }
        }
    }

    /** Only while they could arrive: a server that hangs keeps its connections. */
    private void forgetTheSilent(boolean answers) {
        final long nowNs = System.nanoTime();
        if (answers && connection.isConnected() && isOpen()) {
            view.expire(SOURCE, nowNs - bucketTtl.toNanos());
        } else {
            view.refresh(nowNs);
        }
    }

    private synchronized boolean isOpen() {
        return bucket != null && !reconnected;
    }

    private void pause() {
        try {
            Thread.sleep(Math.min(MAX_PAUSE_MS, bucketTtl.toMillis() / RENEWALS_PER_TTL));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closing
        }
    }

    /** Hears what happens in the bucket; on a thread of NATS. */
    private final class Hearing implements KeyValueWatcher {
        @Override
        public void watch(KeyValueEntry entry) {
            if (!KvBucket.isPut(entry)) {
                view.removed(RecordBucket.name(entry.getKey()), SOURCE);
                return;
            }
            final PeerRecord record = RecordBucket.decoded(entry);
            if (record == null) {
                countMalformed();
            } else {
                view.offer(record, SOURCE, System.nanoTime());
            }
        }

        @Override
        public void endOfData() {}
    }

    @Override
    public void close() {
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
            try {
                own.all().forEach(record -> withdraw(record.name()));
            } catch (ExchangeException e) {
                unreachable.incrementAndGet(); // they go away by themselves
            }
        }
        view.close();
        thread.interrupt();
        try {
            thread.join(CLOSE_PATIENCE_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        connection.close();
    }
}

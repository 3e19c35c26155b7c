package io.kvasir.nixl.exchange;

import io.kvasir.nixl.exchange.ExchangeException.Kind;
import io.kvasir.nixl.exchange.MetadataExchange.Change;
import io.kvasir.nixl.exchange.MetadataExchange.Listener;
import io.kvasir.nixl.exchange.MetadataExchange.Watch;
import io.kvasir.nixl.log.FaultLog;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

/**
 * The records that an exchange knows, and the listeners to them: keeps the newest of each name. For
 * implementations of {@link MetadataExchange}. Any thread; one lock.
 */
public final class PeerDirectory {
    /** A record, where it came from, and when it was last seen. */
    private static final class Known {
        private PeerRecord record;
        private Object source;
        private long lastSeenNs;
    }

    /** Equal to itself alone: a listener may watch twice. */
    private static final class Registration {
        private final String name;
        private final Listener listener;
        private boolean ended;

        private Registration(String name, Listener listener) {
            this.name = name;
            this.listener = listener;
        }
    }

    private final Map<String, Known> records = new HashMap<>();
    private final List<Registration> registrations = // a listener may end one
            new CopyOnWriteArrayList<>();
    private final FaultLog faults = new FaultLog("a listener to peer records");
    private long refused;
    private boolean closed;

    /**
     * Hears a record. One that is older than the known one, or beyond {@value
     * MetadataExchange#MAX_RECORDS}, is ignored.
     *
     * @param record what was received
     * @param source origin of the record, compared by {@link Object#equals}; may be the same for
     *     all
     * @param nowNs when
     * @return false if it was ignored
     */
    public synchronized boolean offer(PeerRecord record, Object source, long nowNs) {
        final Known known = records.get(record.name());
        if (known == null) {
            if (records.size() >= MetadataExchange.MAX_RECORDS) {
                refused++;
                return false;
            }
            final Known first = new Known();
            first.record = record;
            first.source = source;
            first.lastSeenNs = nowNs;
            records.put(record.name(), first);
            tell(Change.UP, record);
            return true;
        }
        final boolean same = record.equals(known.record);
        if (!same && !record.isNewerThan(known.record)) {
            return false;
        }
        known.source = source;
        known.lastSeenNs = nowNs;
        if (!same) {
            known.record = record;
            tell(Change.CHANGED, record);
        }
        return true;
    }

    /**
     * Forgets a record.
     *
     * @param name its name; unknown ones are ignored
     * @param source only if the record came from there
     */
    public synchronized void removed(String name, Object source) {
        final Known known = records.get(name);
        if (known != null && known.source.equals(source)) {
            records.remove(name);
            tell(Change.GONE, known.record);
        }
    }

    /**
     * Forgets records of one source.
     *
     * @param source where they came from
     * @param which by their names
     */
    public synchronized void goneFrom(Object source, Predicate<String> which) {
        final List<String> names =
                records.keySet().stream().filter(which).toList(); // a copy: the map changes
        names.forEach(name -> removed(name, source));
    }

    /**
     * Forgets records that were not seen any more.
     *
     * @param source where they came from
     * @param beforeNs those last seen before it
     */
    public synchronized void expire(Object source, long beforeNs) {
        goneFrom(source, name -> records.get(name).lastSeenNs - beforeNs < 0);
    }

    /**
     * Takes all records for seen now: after a time in which none could be seen.
     *
     * @param nowNs now
     */
    public synchronized void refresh(long nowNs) {
        records.values().forEach(known -> known.lastSeenNs = nowNs);
    }

    /**
     * A record that is known.
     *
     * @param name its name
     * @return null if there is none
     */
    public synchronized PeerRecord get(String name) {
        final Known known = records.get(name);
        return known == null ? null : known.record;
    }

    /**
     * Refuses a record that must not be published.
     *
     * @param record to be published
     * @param present of its name; null if there is none
     * @throws ExchangeException of kind {@code STALE}
     */
    public static void requireNewer(PeerRecord record, PeerRecord present) {
        if (present != null && !record.equals(present) && !record.isNewerThan(present)) {
            throw new ExchangeException(
                    Kind.STALE,
                    record
                            + " cannot replace "
                            + present
                            + ": a start takes a larger incarnation, a registration a larger"
                            + " generation");
        }
    }

    /**
     * As {@link MetadataExchange#find}.
     *
     * @param name its name
     * @param patience how long at most
     */
    public synchronized PeerRecord find(String name, Duration patience) {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(patience, "patience");
        if (patience.isNegative()) {
            throw new IllegalArgumentException("patience=" + patience + ", at least 0");
        }
        final long patienceNs = TimeUnit.NANOSECONDS.convert(patience); // the longest for longer
        final long deadlineNs = System.nanoTime() + patienceNs;
        while (true) {
            if (closed) {
                throw new ExchangeException(
                        Kind.UNAVAILABLE, "the exchange is closed: " + name + " is not looked for");
            }
            final PeerRecord record = get(name);
            if (record != null) {
                return record;
            }
            final long leftNs = deadlineNs - System.nanoTime();
            if (leftNs <= 0) {
                throw new ExchangeException(
                        Kind.NOT_FOUND,
                        "no record of "
                                + name
                                + " within "
                                + TimeUnit.NANOSECONDS.toMillis(patienceNs)
                                + " ms; known are "
                                + records.size()
                                + " others. Does it run, and publish here?");
            }
            try {
                wait(leftNs / 1_000_000, (int) (leftNs % 1_000_000));
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new ExchangeException(
                        Kind.UNAVAILABLE, "interrupted while looking for " + name, e);
            }
        }
    }

    /** Ends {@link #find}: calls that wait are refused, and later ones. Idempotent. */
    public synchronized void close() {
        closed = true;
        notifyAll();
    }

    /**
     * As {@link MetadataExchange#watch}.
     *
     * @param name null for all
     * @param listener notified
     */
    public synchronized Watch watch(String name, Listener listener) {
        Objects.requireNonNull(listener, "listener");
        if (registrations.size() >= MetadataExchange.MAX_RECORDS) {
            throw new ExchangeException(
                    Kind.CAPACITY,
                    registrations.size()
                            + " watches, the limit is "
                            + MetadataExchange.MAX_RECORDS);
        }
        final Registration registration = new Registration(name, listener);
        registrations.add(registration);
        for (Known known : records.values()) {
            if (name == null || name.equals(known.record.name())) {
                notify(listener, Change.UP, known.record);
            }
        }
        return () -> remove(registration);
    }

    private synchronized void remove(Registration registration) {
        registration.ended = true;
        registrations.remove(registration);
    }

    private void tell(Change change, PeerRecord record) {
        for (Registration registration : registrations) {
            final boolean named =
                    registration.name == null || registration.name.equals(record.name());
            if (named && !registration.ended) {
                notify(registration.listener, change, record);
            }
        }
        notifyAll();
    }

    private void notify(Listener listener, Change change, PeerRecord record) {
        try {
            listener.onRecord(change, record);
        } catch (Throwable e) {
            faults.add(e, System.nanoTime()); // the others are notified, and the exchange goes on
        }
    }

    /**
     * Records that were ignored because {@value MetadataExchange#MAX_RECORDS} are known.
     *
     * @return since the start
     */
    public synchronized long refused() {
        return refused;
    }
}

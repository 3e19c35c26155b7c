package io.kvasir.nixl.exchange;

import java.time.Duration;

/**
 * Where ends of transfers leave their records and find those of others.
 *
 * <p>A record goes away by itself some time after its owner has died or hangs (each implementation
 * says when), and while a record is there, an older incarnation or generation of its name never
 * replaces it. An owner that is superseded by a newer incarnation stops publishing; it sees that in
 * a watch of its own name. While whatever holds the records cannot be reached, the records known
 * before stay, and own ones are published again as soon as it is back.
 *
 * <p>All methods are for any thread but that of a transfer engine: {@link #publish}, {@link
 * #withdraw}, {@link #find} and {@link #close} may block for a bounded time; {@link #watch} does
 * not.
 */
public interface MetadataExchange extends AutoCloseable {
    /** Most records that an exchange knows; as many watches. */
    int MAX_RECORDS = 4096;

    /** Most records that one exchange publishes. */
    int MAX_OWN = 64;

    /** What happened to a name. */
    enum Change {
        /** Its first record came, or the first since it was removed. */
        UP,
        /** A newer record replaced the one before. */
        CHANGED,
        /** Its record was withdrawn, or its owner died or hangs. */
        GONE
    }

    /** Notified of records, in the order of each name. */
    @FunctionalInterface
    interface Listener {
        /**
         * Something happened. Called while the exchange holds its lock, on its thread, or on that
         * which called {@code watch}, {@code publish} or {@code withdraw}: must not block, throw or
         * call the exchange. What it throws is logged and ends nothing.
         *
         * @param change what
         * @param record the new record; of {@link Change#GONE} the last one known
         */
        void onRecord(Change change, PeerRecord record);
    }

    /** A listener's registration. */
    @FunctionalInterface
    interface Watch extends AutoCloseable {
        /**
         * Ends it; afterwards the listener is not called any more. A listener may do it too.
         * Idempotent.
         */
        @Override
        void close();
    }

    /**
     * Lets peers find a record, instead of an older one of its name. Publishing the same record
     * again does nothing.
     *
     * @param record of this process, its name not used by another
     * @throws ExchangeException of kind {@code STALE} if a newer record of its name is there, or
     *     one of the same generation with other content; {@code CAPACITY} if {@value #MAX_OWN}
     *     others are published here; {@code UNAVAILABLE}
     */
    void publish(PeerRecord record);

    /**
     * Takes back a record that was published here.
     *
     * @param name its name; unknown ones are ignored
     * @throws ExchangeException of kind {@code UNAVAILABLE}: then it goes away by itself later
     */
    void withdraw(String name);

    /**
     * Waits for a record.
     *
     * @param name its name
     * @param patience how long at most; zero only checks
     * @return the newest one known
     * @throws ExchangeException of kind {@code NOT_FOUND}, or {@code UNAVAILABLE} if the calling
     *     thread is interrupted or the exchange is closed, also while it waits
     * @throws IllegalArgumentException if the patience is negative
     */
    PeerRecord find(String name, Duration patience);

    /**
     * Tells of a name's records from now on; of one that is known at once, as {@link Change#UP}.
     *
     * @param name its name; null for all
     * @param listener notified
     * @return ends it
     * @throws ExchangeException of kind {@code CAPACITY} if there are {@value #MAX_RECORDS} already
     */
    Watch watch(String name, Listener listener);

    /** Takes back all records that were published here, as far as it can, and ends. Idempotent. */
    @Override
    void close();
}

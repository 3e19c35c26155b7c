package io.kvasir.nixl.exchange;

import java.time.Duration;

/**
 * Where ends of transfers leave their cards and find those of others.
 *
 * <p>A card goes away by itself some time after its owner has died or hangs (each implementation
 * says when), and while a card is there, an older incarnation or generation of its name never
 * replaces it. An owner that is superseded by a newer incarnation stops publishing; it sees that in
 * a watch of its own name. While whatever holds the cards cannot be reached, the cards known before
 * stay, and own ones are published again as soon as it is back.
 *
 * <p>All methods are for any thread but that of a transfer engine: {@link #publish}, {@link
 * #withdraw}, {@link #find} and {@link #close} may block for a bounded time; {@link #watch} does
 * not.
 */
public interface MetadataExchange extends AutoCloseable {
    /** Most cards that an exchange knows; as many watches. */
    int MAX_CARDS = 4096;

    /** Most cards that one exchange publishes. */
    int MAX_OWN = 64;

    /** What happened to a name. */
    enum Change {
        /** Its first card came, or the first since it was gone. */
        UP,
        /** A newer card replaced the one before. */
        CHANGED,
        /** Its card was withdrawn, or its owner died or hangs. */
        GONE
    }

    /** Told of cards, in the order of each name. */
    @FunctionalInterface
    interface Listener {
        /**
         * Something happened. Called while the exchange holds its lock, on its thread, or on that
         * which called {@code watch}, {@code publish} or {@code withdraw}: must not block, throw or
         * call the exchange.
         *
         * @param change what
         * @param card the new card; of {@link Change#GONE} the last one known
         */
        void onCard(Change change, PeerRecord card);
    }

    /** A listener's registration. */
    @FunctionalInterface
    interface Watch extends AutoCloseable {
        /** Ends it; afterwards the listener is not called any more. Idempotent. */
        @Override
        void close();
    }

    /**
     * Lets peers find a card, instead of an older one of its name. Publishing the same card again
     * does nothing.
     *
     * @param card of this process, its name not used by another
     * @throws ExchangeException of kind {@code STALE} if a newer card of its name is there, or one
     *     of the same generation with other content; {@code CAPACITY} if {@value #MAX_OWN} others
     *     are published here; {@code UNAVAILABLE}
     */
    void publish(PeerRecord card);

    /**
     * Takes back a card that was published here.
     *
     * @param name its name; unknown ones are ignored
     * @throws ExchangeException of kind {@code UNAVAILABLE}: then it goes away by itself later
     */
    void withdraw(String name);

    /**
     * Waits for a card.
     *
     * @param name its name
     * @param patience how long at most; zero only looks
     * @return the newest one known
     * @throws ExchangeException of kind {@code NOT_FOUND}, or {@code UNAVAILABLE} if the calling
     *     thread is interrupted
     */
    PeerRecord find(String name, Duration patience);

    /**
     * Tells of a name's cards from now on; of one that is known at once, as {@link Change#UP}.
     *
     * @param name its name; null for all
     * @param listener told
     * @return ends it
     * @throws ExchangeException of kind {@code CAPACITY} if there are {@value #MAX_CARDS} already
     */
    Watch watch(String name, Listener listener);

    /** Takes back all cards that were published here, as far as it can, and ends. Idempotent. */
    @Override
    void close();
}

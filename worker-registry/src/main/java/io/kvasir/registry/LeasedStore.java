package io.kvasir.registry;

import java.time.Duration;
import java.util.List;

/**
 * Keys that end when they are not renewed for {@link #ttl}, in a store that all see. Writes are
 * conditional on the revision that was read. Any thread may call; calls block for a round trip and
 * throw {@link RegistryException} of kind {@code UNAVAILABLE} or {@code DENIED} where the store
 * does not answer or refuses.
 */
public interface LeasedStore extends AutoCloseable {
    /** In place of a revision: another one wrote the key. */
    long CONFLICT = -1;

    /** Revision of a key that is not there. */
    long ABSENT = 0;

    /**
     * Is notified of keys, by one thread at a time. It first gets a {@link #view}; after a {@link
     * #lost} too, as soon as the store answers again.
     */
    interface Watcher {
        /** All keys that are there now; others are no more. */
        void view(List<Stored> all);

        /** A key is there, or has been written anew, maybe with the same value. */
        void put(Stored stored);

        /** A key has been deleted, or was not renewed in time. */
        void deleted(String key);

        /** The store does not answer. What was read before may be true still. */
        void lost(String cause);
    }

    /** Name of the kind of store, for logs and metrics: {@code etcd}, {@code nats}. */
    String kind();

    /** How long a key outlives its last renewal. */
    Duration ttl();

    /**
     * Whether each renewal gives its key another revision, so that a revision that stays is one
     * that is not renewed.
     *
     * @return false where that is not so, or not known
     */
    default boolean renewsRevisions() {
        return false;
    }

    /** Reads a key; null if it is not there. */
    Stored get(String key);

    /**
     * Writes a key under this store's lease.
     *
     * @param revision at which the key must be, or {@link #ABSENT}
     * @return its new revision, or {@link #CONFLICT}
     */
    long put(String key, byte[] value, long revision);

    /** Prolongs what all keys of this store share; call before renewing them one by one. */
    void keepAlive();

    /**
     * Has a key outlive another {@link #ttl}.
     *
     * @param value as it was put
     * @param revision at which it must be
     * @return its revision from now on, or {@link #CONFLICT}
     */
    long renew(String key, byte[] value, long revision);

    /**
     * Deletes a key.
     *
     * @param revision at which it must be
     * @return false if it is at another
     */
    boolean delete(String key, long revision);

    /**
     * Tells a watcher of all keys that begin with a prefix, until the store is closed. At most one
     * watcher a store; does not block.
     *
     * @param prefix ends with a slash
     */
    void watch(String prefix, Watcher watcher);

    /** Ends the watch and gives back connections and leases. Safe to call twice. */
    @Override
    void close();
}

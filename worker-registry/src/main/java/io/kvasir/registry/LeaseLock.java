package io.kvasir.registry;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/**
 * A lock that one of many processes has: the process that has made a key of a {@link LeasedStore}
 * has it, until the key is deleted or was not renewed for the store's TTL. A daemon thread renews
 * it three times in that time.
 *
 * <p>A holder that was stopped for longer than the TTL does not know that another has the lock now.
 * So each step that only the holder may do comes right after a {@link #check}, which renews the key
 * under the revision that this holder has written last, so it fails once another has made the key
 * anew, or the key has ended. A step must be harmless where the process is stopped for longer than
 * the TTL between the check and the step.
 *
 * <p>Any thread; a lock orders the calls, which wait for the store.
 */
public final class LeaseLock implements AutoCloseable {
    private static final int RENEWALS_PER_TTL = 3;

    private final LeasedStore store;
    private final String key;
    private final byte[] holder;
    private long revision = LeasedStore.CONFLICT; // of the key; without the lock CONFLICT
    private Thread renewing; // null where the lock is not held
    private RegistryException lastFailure; // of a renewal; null for none
    private boolean closed;

    /**
     * Takes nothing yet.
     *
     * @param store where the key is; closed with this
     * @param key of the lock
     */
    public LeaseLock(LeasedStore store, String key) {
        this.store = store;
        this.key = key;
        holder = UUID.randomUUID().toString().getBytes(StandardCharsets.US_ASCII);
    }

    /**
     * Takes the lock unless another has it. Does not wait for it.
     *
     * @return whether this has it, now or since earlier
     * @throws RegistryException if the store does not answer or refuses
     */
    public synchronized boolean take() {
        if (closed) {
            return false;
        }
        if (renewing != null) {
            return renew();
        }
        revision = own(store.put(key, holder, LeasedStore.ABSENT));
        if (revision == LeasedStore.CONFLICT) {
            return false;
        }
        renewing = Thread.ofPlatform().daemon().name("kvasir-lock").start(this::renewAlways);
        return true;
    }

    /** What was made by a write whose answer was lost is one's own. */
    private long own(long written) {
        if (written != LeasedStore.CONFLICT) {
            return written;
        }
        final Stored there = store.get(key);
        return there != null && Arrays.equals(there.value(), holder)
                ? there.revision()
                : LeasedStore.CONFLICT;
    }

    /** Whether this has the lock as far as it knows; see {@link #check}. */
    public synchronized boolean isHeld() {
        return renewing != null;
    }

    /**
     * Makes sure that this has the lock, for the store's TTL from now on.
     *
     * @throws IllegalStateException if it has it not, or no longer
     * @throws RegistryException if the store does not answer: it may have it or not
     */
    public synchronized void check() {
        checkHeld();
        if (!renew()) {
            throw new IllegalStateException("the lock " + this + " was lost", lastFailure);
        }
    }

    private void checkHeld() {
        if (renewing == null) {
            throw new IllegalStateException("the lock " + this + " is not held");
        }
    }

    private synchronized boolean renew() {
        store.keepAlive();
        revision = own(store.renew(key, holder, revision));
        if (revision == LeasedStore.CONFLICT) {
            stopRenewing();
            return false;
        }
        return true;
    }

    private void stopRenewing() {
        if (renewing != null) {
            renewing.interrupt();
            renewing = null;
        }
    }

    private void renewAlways() {
        final long pauseNs = store.ttl().toNanos() / RENEWALS_PER_TTL;
        try {
            while (true) {
                TimeUnit.NANOSECONDS.sleep(pauseNs);
                renewOnce();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // it is given back, or lost
        }
    }

    private synchronized void renewOnce() throws InterruptedException {
        if (!Thread.currentThread().equals(renewing)) {
            throw new InterruptedException();
        }
        try {
            renew();
        } catch (RegistryException e) {
            lastFailure = e; // the next check renews it, or says it
        }
    }

    /** Gives the lock back, if this has it. It may be taken again. */
    public synchronized void release() {
        if (renewing == null) {
            return;
        }
        stopRenewing();
        final long last = revision;
        revision = LeasedStore.CONFLICT;
        try {
            store.delete(key, last);
        } catch (RegistryException e) {
            lastFailure = e; // the key ends by itself
        }
    }

    /** Gives the lock back, and the store. */
    @Override
    public synchronized void close() {
        if (!closed) {
            release();
            closed = true;
            store.close();
        }
    }

    @Override
    public String toString() {
        return store.kind() + ":" + key;
    }
}

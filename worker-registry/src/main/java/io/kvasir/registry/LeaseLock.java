package io.kvasir.registry;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

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
 * <p>A store whose keys do not end, as a bucket that others have made without a TTL, would keep the
 * lock of a killed holder for ever. Where renewals give a key another revision, a key whose
 * revision has been the same for three TTLs by this process' own monotonic clock is taken over, on
 * condition that it has that revision still, whatever its value is.
 *
 * <p>Any thread; a lock orders the calls, which wait for the store.
 */
public final class LeaseLock implements AutoCloseable {
    private static final int RENEWALS_PER_TTL = 3;
    private static final int SILENT_TTLS = 3;
    private static final long LONG_NS = TimeUnit.MINUTES.toNanos(1);

    private final LeasedStore store;
    private final String key;
    private final byte[] holder;
    private final Consumer<String> warnings;
    private final LongSupplier clock;
    private long revision = LeasedStore.CONFLICT; // of the key; without the lock CONFLICT
    private Thread renewing; // null where the lock is not held
    private Throwable lastFailure; // of a renewal; null for none
    private long othersRevision = LeasedStore.CONFLICT; // that another's key had last
    private long othersSinceNs; // when it was read first
    private boolean longSaid; // of that revision
    private boolean closed;

    /**
     * Takes nothing yet.
     *
     * @param store where the key is; closed with this
     * @param key of the lock
     */
    public LeaseLock(LeasedStore store, String key) {
        this(store, key, _ -> {});
    }

    /**
     * Takes nothing yet.
     *
     * @param store where the key is; closed with this
     * @param key of the lock
     * @param warnings gets, in words, a lock that is not renewed; called by {@link #take}
     */
    public LeaseLock(LeasedStore store, String key, Consumer<String> warnings) {
        this(store, key, warnings, System::nanoTime);
    }

    /** The same by another clock, in ns. */
    LeaseLock(LeasedStore store, String key, Consumer<String> warnings, LongSupplier clock) {
        this.store = store;
        this.key = key;
        this.warnings = warnings;
        this.clock = clock;
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
        if (revision == LeasedStore.CONFLICT && store.renewsRevisions()) {
            revision = takenOver();
        }
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

    /** The revision of what nothing renews, once it is this one's, else CONFLICT. */
    private long takenOver() {
        final Stored there = store.get(key);
        if (there == null || !isSilent(there.revision())) {
            return LeasedStore.CONFLICT;
        }
        final long taken = store.put(key, holder, there.revision());
        if (taken != LeasedStore.CONFLICT) {
            warnings.accept(
                    "the lock "
                            + this
                            + " was taken over: nothing has renewed it for "
                            + seconds(SILENT_TTLS * store.ttl().toNanos())
                            + ", and its store does not end it; make the store with a TTL of "
                            + seconds(store.ttl().toNanos()));
        }
        return taken;
    }

    private boolean isSilent(long now) {
        final long nowNs = clock.getAsLong();
        if (now != othersRevision) {
            othersRevision = now;
            othersSinceNs = nowNs;
            longSaid = false;
        }
        final long silentNs = nowNs - othersSinceNs;
        if (silentNs >= LONG_NS && !longSaid) {
            longSaid = true;
            warnings.accept(
                    "the lock "
                            + this
                            + " is another's, which has not renewed it for "
                            + seconds(silentNs)
                            + "; with a TTL of "
                            + seconds(store.ttl().toNanos())
                            + " it is taken over after three times that");
        }
        return silentNs > SILENT_TTLS * store.ttl().toNanos();
    }

    private static String seconds(long ns) {
        return TimeUnit.NANOSECONDS.toSeconds(ns) + " s";
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
        } catch (RuntimeException | Error e) { // an Error too is of this renewal alone
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

package io.kvasir.registry;

import io.kvasir.registry.RegistryException.Kind;

import java.time.Clock;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Registers instances of an engine or host, and renews them three times in the store's {@link
 * LeasedStore#ttl}: one that is not seen for that long is removed. What others deleted or overwrote
 * with an older generation is put again; what a newer generation has taken is left to it.
 *
 * <p>Any thread may call; one daemon thread renews.
 */
public final class Registrar implements AutoCloseable {
    private static final int MAX_TRIES = 8;
    private static final int RENEWALS_PER_TTL = 3;
    private static final long RETRY_MS = 200;
    private static final long CLOSE_PATIENCE_MS = 5_000;
    private static final int RANDOM_BITS = 20;

    /** Hears what becomes of registrations; throws nothing and does not wait. */
    public interface Listener {
        /**
         * The store did not take a renewal, which is tried again; once for each reason until all is
         * renewed. Renewing thread.
         */
        default void notRenewed(RegistryException cause) {}

        /** Nothing was renewed for the time of the lease: gateways drop it. Renewing thread. */
        default void lapsed(Duration ttl) {}

        /**
         * All is renewed again. Renewing thread.
         *
         * @param lapsed whether it had lapsed before
         */
        default void renewed(boolean lapsed) {}

        /** The store did not remove one: it ends with its lease. The thread that closes it. */
        default void notRemoved(InstanceId id, RegistryException cause) {}
    }

    private static final Listener NONE = new Listener() {};

    private final LeasedStore store;
    private final Clock clock;
    private final Listener listener;
    private final Set<ModelRegistration> own = new LinkedHashSet<>(); // guarded by this
    private final AtomicLong unreachable = new AtomicLong();
    private final Thread renewer;
    private volatile boolean closed;

    /**
     * Registers with a store.
     *
     * @param store closed with this; nothing else renews its keys
     */
    public Registrar(LeasedStore store) {
        this(store, NONE);
    }

    /**
     * Registers with a store.
     *
     * @param store closed with this; nothing else renews its keys
     * @param listener learns what becomes of registrations
     */
    public Registrar(LeasedStore store, Listener listener) {
        this(store, Clock.systemUTC(), listener);
    }

    /** The same with a clock for generations. */
    Registrar(LeasedStore store, Clock clock, Listener listener) {
        this.store = store;
        this.clock = clock;
        this.listener = listener;
        renewer = Thread.ofPlatform().daemon().name("kvasir-registrar").start(this::renewAll);
    }

    /**
     * Registers an instance. Without a generation it is given one that is greater than that of any
     * run before, so that it takes the place of what a crashed run has left.
     *
     * @param described what it says of itself, ready
     * @param drainTime between the word that it drains and its removal, when it is closed
     * @return what it is renewed under until it is closed
     * @throws RegistryException of kind {@code STALE} if the given generation is not newer than
     *     what is registered, {@code UNAVAILABLE} or {@code DENIED} by the store
     */
    public synchronized ModelRegistration registerModel(
            Registration described, Duration drainTime) {
        if (closed) {
            throw new RegistryException(Kind.UNAVAILABLE, "the registrar is closed");
        }
        final ModelRegistration registration = new ModelRegistration(this, described, drainTime);
        for (int i = 0; i < MAX_TRIES; i++) {
            final Stored present = store.get(described.id().key());
            final long before = generation(present);
            final long generation =
                    described.generation() == 0
                            ? Math.max(newGeneration(), before + 1)
                            : described.generation();
            if (generation <= before) {
                throw stale(described.id(), generation, before);
            }
            registration.describe(described.withGeneration(generation));
            if (putOver(present, registration)) {
                own.add(registration);
                return registration;
            }
        }
        throw busy(described.id());
    }

    /** Milliseconds of the clock, then random bits: two runs that begin at once differ. */
    private long newGeneration() {
        return clock.millis() << RANDOM_BITS
                | ThreadLocalRandom.current().nextInt(1 << RANDOM_BITS);
    }

    /** 0 of what is not there or cannot be read. */
    private static long generation(Stored stored) {
        final Registration there = decodedOrNull(stored);
        return there == null ? 0 : there.generation();
    }

    private static Registration decodedOrNull(Stored stored) {
        try {
            return stored == null ? null : Registration.decode(stored.value());
        } catch (RegistryException e) {
            return null;
        }
    }

    /** A newer run's, or of one that was given the same generation: the one that is there stays. */
    private static boolean isAnothers(Stored present, Registration own) {
        final Registration there = decodedOrNull(present);
        return there != null
                && (there.generation() > own.generation()
                        || (there.generation() == own.generation()
                                && !there.url().equals(own.url())));
    }

    private static RegistryException stale(InstanceId id, long generation, long present) {
        return new RegistryException(
                Kind.STALE,
                "generation "
                        + generation
                        + " of "
                        + id
                        + " is not newer than "
                        + present
                        + ", which is registered");
    }

    private static RegistryException busy(InstanceId id) {
        return new RegistryException(
                Kind.UNAVAILABLE,
                "others wrote " + id + " each of " + MAX_TRIES + " times; is the name unique?");
    }

    /** False if another one has written what was read. */
    private boolean putOver(Stored present, ModelRegistration registration) {
        final long revision =
                store.put(
                        registration.described().id().key(),
                        registration.document(),
                        present == null ? LeasedStore.ABSENT : present.revision());
        if (revision == LeasedStore.CONFLICT) {
            return false;
        }
        registration.stored(revision);
        return true;
    }

    /** Puts what is registered over what is older, or another's by mistake. */
    private void restore(ModelRegistration registration) {
        final Registration described = registration.described();
        for (int i = 0; i < MAX_TRIES; i++) {
            final Stored present = store.get(described.id().key());
            if (isAnothers(present, described)) {
                registration.supersede();
                own.remove(registration);
                throw stale(described.id(), described.generation(), generation(present));
            }
            if (putOver(present, registration)) {
                return;
            }
        }
        throw busy(described.id());
    }

    synchronized void drain(ModelRegistration registration) {
        if (!own.contains(registration)
                || (registration.described().state() == InstanceState.DRAINING
                        && registration.isStored())) {
            return;
        }
        registration.describe(registration.described().withState(InstanceState.DRAINING));
        try {
            restore(registration);
        } catch (RegistryException e) {
            if (e.kind() != Kind.STALE) {
                throw e; // the next renewal says it
            }
        }
    }

    synchronized void remove(ModelRegistration registration) {
        if (!own.remove(registration)) {
            return;
        }
        final Registration own = registration.described();
        final InstanceId id = own.id();
        try {
            for (int i = 0; i < MAX_TRIES; i++) {
                final Stored present = store.get(id.key());
                if (generation(present) != own.generation()
                        || isAnothers(present, own)
                        || store.delete(id.key(), present.revision())) {
                    return;
                }
            }
        } catch (RegistryException e) {
            countUnreachable();
            listener.notRemoved(id, e);
        }
    }

    void countUnreachable() {
        unreachable.incrementAndGet();
    }

    /**
     * Renewals and removals that failed because the store did not answer.
     *
     * @return count since the start
     */
    public long unreachable() {
        return unreachable.get();
    }

    // -- the renewing thread

    private void renewAll() {
        final RenewalReport report = new RenewalReport(listener, System.nanoTime());
        while (!closed) {
            final long everyMs = store.ttl().toMillis() / RENEWALS_PER_TTL;
            try {
                if (renew()) {
                    report.renewed(System.nanoTime());
                } else {
                    report.nothing(System.nanoTime());
                }
                pause(everyMs);
            } catch (RuntimeException | Error e) { // an Error too is of this renewal alone
                if (closed) {
                    return;
                }
                countUnreachable();
                report.failed(refusal(e), System.nanoTime(), store.ttl());
                pause(Math.min(RETRY_MS, everyMs));
            }
        }
    }

    private static RegistryException refusal(Throwable e) {
        return e instanceof RegistryException refusal
                ? refusal
                : new RegistryException(
                        Kind.UNAVAILABLE, "the renewal failed: " + FailureText.of(e), e);
    }

    /** False if there is nothing to renew. */
    boolean renew() {
        final List<ModelRegistration> all;
        synchronized (this) {
            all = List.copyOf(own);
        }
        if (!all.isEmpty()) {
            store.keepAlive();
        }
        for (ModelRegistration each : all) {
            renew(each);
        }
        return !all.isEmpty();
    }

    private synchronized void renew(ModelRegistration registration) {
        if (closed || !own.contains(registration)) {
            return; // closed in between
        }
        try {
            final long revision = renewed(registration);
            if (revision == LeasedStore.CONFLICT) {
                restore(registration);
            } else {
                registration.stored(revision);
            }
        } catch (RegistryException e) {
            if (e.kind() != Kind.STALE) {
                throw e;
            }
        }
    }

    /** A store may renew the key alone: what it has not taken yet is to be put. */
    private long renewed(ModelRegistration registration) {
        return registration.isStored()
                ? store.renew(
                        registration.described().id().key(),
                        registration.document(),
                        registration.revision())
                : LeasedStore.CONFLICT;
    }

    private static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closing
        }
    }

    /** Removes all registrations at once, those that drain included, and closes the store. */
    @Override
    public void close() {
        final List<ModelRegistration> rest;
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
            rest = List.copyOf(own);
        }
        renewer.interrupt();
        try {
            renewer.join(CLOSE_PATIENCE_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        rest.forEach(this::remove);
        store.close();
    }
}

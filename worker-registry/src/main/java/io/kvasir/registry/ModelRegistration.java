package io.kvasir.registry;

import java.time.Duration;

/**
 * One instance that is registered; its {@link Registrar} renews it. Any thread.
 *
 * @see Registrar#registerModel
 */
public final class ModelRegistration implements AutoCloseable {
    private final Registrar registrar;
    private final Duration drainTime;

    // guarded by the registrar
    private Registration described;
    private byte[] document;
    private long revision;
    private boolean stored; // the document, as it is

    private volatile boolean superseded;
    private boolean closed; // guarded by this

    ModelRegistration(Registrar registrar, Registration described, Duration drainTime) {
        this.registrar = registrar;
        this.described = described;
        this.drainTime = drainTime;
    }

    // -- for the registrar

    Registration described() {
        return described;
    }

    byte[] document() {
        return document;
    }

    long revision() {
        return revision;
    }

    void describe(Registration now) {
        described = now;
        document = now.encode();
        stored = false;
    }

    boolean isStored() {
        return stored;
    }

    void stored(long newRevision) {
        revision = newRevision;
        stored = true;
    }

    void supersede() {
        superseded = true;
    }

    // -- for its owner

    /** What is registered, with its generation. */
    public Registration registration() {
        synchronized (registrar) {
            return described;
        }
    }

    /** Whether a newer generation of the instance has taken its place; this never ends. */
    public boolean superseded() {
        return superseded;
    }

    /**
     * Has no new request sent to the instance; it stays registered.
     *
     * @throws RegistryException if the store does not take it, which is tried again with renewals
     */
    public void drain() {
        registrar.drain(this);
    }

    /**
     * Drains, waits for the drain time, in which the requests that run can end, and removes the
     * registration. An interrupt ends the wait. Where the store does not answer, the registration
     * ends with its lease. A newer generation stays. Safe to call twice.
     */
    @Override
    public synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        try {
            registrar.drain(this);
            Thread.sleep(drainTime);
        } catch (RegistryException e) {
            registrar.countUnreachable();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        registrar.remove(this);
    }
}

package io.kvasir.registry;

import java.time.Duration;
import java.util.function.BooleanSupplier;

/**
 * Keeps a server registered while it answers, for an engine that does not register itself: it is
 * registered when it answers for the first time, taken back when it has not answered several times
 * in a row, and registered anew, as a newer generation, when it is back.
 *
 * <p>One thread calls {@link #run}; any thread may close.
 */
public final class WatchedRegistration implements AutoCloseable {
    /** Questions without an answer after which the server counts as dead. */
    public static final int FAILURES = 3;

    /** What becomes of the registration; called by the thread that runs. */
    public interface Listener {
        /** The server answers and is registered. */
        void registered(Registration described);

        /** It does not answer any more, and is not registered any more. */
        void lost();

        /** The store does not take the registration now; it is tried again. */
        void refused(RegistryException cause);
    }

    private final Registrar registrar;
    private final Registration described;
    private final BooleanSupplier answers;
    private final Duration period;
    private final Listener listener;
    private ModelRegistration current; // null while it is not registered; guarded by this
    private volatile boolean closed;

    /**
     * @param registrar stays the caller's
     * @param described without a generation
     * @param answers asks the server; bounded in time
     * @param period between two questions
     */
    public WatchedRegistration(
            Registrar registrar,
            Registration described,
            BooleanSupplier answers,
            Duration period,
            Listener listener) {
        if (described.generation() != 0) {
            throw new IllegalArgumentException(
                    "generation="
                            + described.generation()
                            + " must not be given: each return of the server is a newer one");
        }
        this.registrar = registrar;
        this.described = described;
        this.answers = answers;
        this.period = period;
        this.listener = listener;
    }

    /**
     * Watches the server until this is closed or the thread is interrupted.
     *
     * @return whether a newer run of the instance has registered elsewhere: this one ends
     */
    public boolean run() throws InterruptedException {
        int failures = 0;
        while (!closed) {
            if (isSuperseded()) {
                return true;
            }
            failures = answers.getAsBoolean() ? 0 : failures + 1;
            if (failures == 0) {
                register();
            } else if (failures == FAILURES) {
                takeBack();
            }
            Thread.sleep(period);
        }
        return false;
    }

    private synchronized boolean isSuperseded() {
        return current != null && current.superseded();
    }

    private synchronized void register() {
        if (current != null || closed) {
            return;
        }
        try {
            // no drain: a dead server has nothing to end, and at the end the caller waits itself
            current = registrar.registerModel(described, Duration.ZERO);
            listener.registered(current.registration());
        } catch (RegistryException e) {
            listener.refused(e);
        }
    }

    private synchronized void takeBack() {
        if (current != null) {
            current.close();
            current = null;
            listener.lost();
        }
    }

    /**
     * Has no new request sent to the server; it stays registered. Does nothing to one that is not.
     */
    public synchronized void drain() {
        if (current != null) {
            try {
                current.drain();
            } catch (RegistryException e) {
                listener.refused(e);
            }
        }
    }

    /** Takes the registration back at once, and ends {@link #run} after its present step. */
    @Override
    public synchronized void close() {
        closed = true;
        if (current != null) {
            current.close();
            current = null;
        }
    }
}

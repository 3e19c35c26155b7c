package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.PlaneLoad;

import java.util.Objects;

/**
 * Takes the load reports of one subscription to an event plane and passes each on with its worker
 * and rank. Knows no transport. Any thread may call any method; a lock orders them. Nothing is kept
 * between two reports, so one that is lost costs no more than itself.
 */
public final class LoadPlane {
    /** Takes the reports; called with the plane's lock held, so it must not wait. */
    public interface Listener {
        /**
         * A report.
         *
         * @param order rises with each report of one publisher, and among publishers with the time
         * @param load valid during the call
         */
        void reported(long order, PlaneLoad load);

        /** A message that is no report. */
        void unreadable();
    }

    private final Listener listener;
    private final PlaneLoad load = new PlaneLoad();
    private long unstamped; // reports without a time

    /** Passes reports on. */
    public LoadPlane(Listener listener) {
        this.listener = Objects.requireNonNull(listener);
    }

    /**
     * Takes a message.
     *
     * @param bytes holds it; not kept
     * @param offset its first byte
     * @param length its bytes
     * @throws IndexOutOfBoundsException if the range does not lie in {@code bytes}
     */
    public synchronized void onMessage(byte[] bytes, int offset, int length) {
        Objects.checkFromIndexSize(offset, length, bytes.length);
        if (!load.read(bytes, offset, length)) {
            listener.unreadable();
            return;
        }
        final boolean stamped = load.publishedAt() != PlaneLoad.MISSING;
        listener.reported(stamped ? load.publishedAt() : ++unstamped, load);
    }

    /** Counts a message that the transport could not take apart. */
    synchronized void dropped() {
        listener.unreadable();
    }
}

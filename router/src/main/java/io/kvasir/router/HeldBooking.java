package io.kvasir.router;

import io.kvasir.pipeline.booking.BookingPipeline;

import java.lang.ref.Cleaner;
import java.lang.ref.WeakReference;

/**
 * Which booking a {@link Lease} holds: what outlives the lease when it is collected without having
 * been closed. Its booking is released then, on the thread of a cleaner that all routers share.
 *
 * <p>Written by the thread that books with the lease; it is registered once per lease, so that a
 * further booking costs nothing. The cleaner has it until it knows that the lease is collected: it
 * must not keep the router of the last booking until then, which may be closed.
 */
final class HeldBooking implements Runnable {
    static final Cleaner CLEANER =
            Cleaner.create(
                    task ->
                            Thread.ofPlatform()
                                    .daemon()
                                    .name("kvasir-lease-cleaner")
                                    .unstarted(task));

    private WeakReference<Bookings> bookings; // null before the first booking
    private long number = BookingPipeline.NONE;

    /** What the lease holds from now on. */
    static HeldBooking of(Lease lease) {
        final HeldBooking held = new HeldBooking();
        CLEANER.register(lease, held);
        return held;
    }

    /** The lease has taken a booking. */
    void hold(WeakReference<Bookings> in, long booked) {
        bookings = in;
        number = booked;
    }

    /** Number of the booking. */
    long number() {
        return number;
    }

    /** The lease has been collected. */
    @Override
    public void run() {
        final Bookings in = bookings == null ? null : bookings.get();
        if (in != null) {
            in.releaseForgotten(number);
        }
    }
}

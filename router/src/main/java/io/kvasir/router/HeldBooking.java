package io.kvasir.router;

import io.kvasir.pipeline.booking.BookingPipeline;

import java.lang.ref.Cleaner;

/**
 * Which booking a {@link Lease} holds: what outlives the lease when it is collected without having
 * been closed. Its booking is released then, on the thread of a cleaner that all routers share.
 *
 * <p>Written by the thread that books with the lease; it is registered once per lease, so that a
 * further booking costs nothing.
 */
final class HeldBooking implements Runnable {
    private static final Cleaner CLEANER =
            Cleaner.create(
                    task ->
                            Thread.ofPlatform()
                                    .daemon()
                                    .name("kvasir-lease-cleaner")
                                    .unstarted(task));

    Bookings bookings; // null before the first booking
    long number = BookingPipeline.NONE;

    /** What the lease holds from now on. */
    static HeldBooking of(Lease lease) {
        final HeldBooking held = new HeldBooking();
        CLEANER.register(lease, held);
        return held;
    }

    /** The lease has been collected. */
    @Override
    public void run() {
        if (bookings != null) {
            bookings.releaseForgotten(number);
        }
    }
}

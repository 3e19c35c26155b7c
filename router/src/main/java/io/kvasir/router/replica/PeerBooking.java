package io.kvasir.router.replica;

/** A booking of another router, as it is booked here. Replica thread only. */
final class PeerBooking {
    final long booking; // the other router's number
    final long number; // in the table of active requests here
    final PeerWorker worker;
    final long bookedNs;
    long sequence; // of the latest message that it is by
    long prefillTokens;
    int ownBlocks; // as the other router counts them

    PeerBooking(
            long booking,
            long number,
            PeerWorker worker,
            long bookedNs,
            long sequence,
            long prefillTokens,
            int ownBlocks) {
        this.booking = booking;
        this.number = number;
        this.worker = worker;
        this.bookedNs = bookedNs;
        this.sequence = sequence;
        this.prefillTokens = prefillTokens;
        this.ownBlocks = ownBlocks;
    }
}

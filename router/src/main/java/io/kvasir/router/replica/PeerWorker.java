package io.kvasir.router.replica;

import io.kvasir.pipeline.booking.ReplicaRecord;

import org.agrona.collections.Long2ObjectHashMap;
import org.agrona.collections.LongHashSet;

import java.util.BitSet;

/** What one other router has booked on one worker. Replica thread only. */
final class PeerWorker {
    final ReplicaFleet.Slot slot;
    final Long2ObjectHashMap<PeerBooking> bookings = new Long2ObjectHashMap<>();
    private long prefillTokens;
    private long ownBlocks;
    private long numbers;
    private long statedNs; // when the other router last said that it has bookings here, or none

    // the list that is being received, or was last
    private long listSequence = ReplicaMessage.NO_SEQUENCE;
    private final BitSet listParts = new BitSet();
    private final LongHashSet listed = new LongHashSet();
    private final LongHashSet asked = new LongHashSet();
    private boolean listComplete;

    PeerWorker(ReplicaFleet.Slot slot) {
        this.slot = slot;
    }

    void add(PeerBooking booking) {
        stated(booking.bookedNs);
        bookings.put(booking.booking, booking);
        prefillTokens += booking.prefillTokens;
        ownBlocks += booking.ownBlocks;
        numbers += ReplicaRecord.mix(booking.booking);
    }

    void remove(PeerBooking booking) {
        bookings.remove(booking.booking);
        prefillTokens -= booking.prefillTokens;
        ownBlocks -= booking.ownBlocks;
        numbers -= ReplicaRecord.mix(booking.booking);
    }

    void change(PeerBooking booking, long prefill, int own) {
        prefillTokens += prefill - booking.prefillTokens;
        ownBlocks += own - booking.ownBlocks;
        booking.prefillTokens = prefill;
        booking.ownBlocks = own;
    }

    /** A digest, or a new booking, says what is booked here. */
    void stated(long nowNs) {
        statedNs = nowNs;
    }

    /**
     * Whether something is booked here that the other router has not stated for a while. Its
     * digests name every worker with bookings, so they have ended, or that many digests were lost.
     */
    boolean isUnstated(long nowNs, long forNs) {
        return !bookings.isEmpty() && nowNs - statedNs > forNs;
    }

    /** Whether what is booked here is what the other router says. */
    boolean sumsUpTo(ReplicaMessage.WorkerSum sum) {
        return bookings.size() == sum.bookings()
                && prefillTokens == sum.prefillTokens()
                && ownBlocks == sum.ownBlocks()
                && numbers == sum.numbers();
    }

    /**
     * Whether a booking that is unknown had ended already when the last complete list was made.
     *
     * @param sequence of the message that adds it
     */
    boolean isOutdated(long booking, long sequence) {
        return listComplete && sequence <= listSequence && !asked.contains(booking);
    }

    /** Takes a part of a list; false if it is older than another one. */
    boolean take(ReplicaMessage.Bookings list) {
        if (list.sequence() < listSequence) {
            return false;
        }
        if (list.sequence() > listSequence) {
            listSequence = list.sequence();
            listParts.clear();
            listed.clear();
            asked.clear();
            listComplete = false;
        }
        listParts.set(list.part());
        for (long booking : list.bookings()) {
            listed.add(booking);
        }
        listComplete = listParts.cardinality() == list.parts();
        return true;
    }

    /** Whether all parts of the last list have come. */
    boolean isListComplete() {
        return listComplete;
    }

    /** Whether a booking has ended by the last list, which is complete. */
    boolean isMissing(PeerBooking booking) {
        return booking.sequence <= listSequence && !listed.contains(booking.booking);
    }

    void ask(long booking) {
        asked.add(booking);
    }

    /** Whether a booking was asked for; it is not from now on. */
    boolean wasAsked(long booking) {
        return asked.remove(booking);
    }
}

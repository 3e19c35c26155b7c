package io.kvasir.router.replica;

import java.util.List;

/**
 * What routers over the same workers tell each other. Immutable; arrays are not copied and must not
 * be changed.
 *
 * <p>Messages with a {@code sequence} are in the order in which the sender's bookings changed: the
 * number of a digest or list says which changes are in it. A booking is named by the sender's
 * number, which is never given twice.
 */
@SuppressWarnings("ArrayRecordComponent") // never compared
public sealed interface ReplicaMessage {
    /** Sequence of messages that have none. */
    long NO_SEQUENCE = 0;

    /** Its sender. */
    ReplicaOrigin origin();

    /** Position in the order of the sender's changes; {@link #NO_SEQUENCE} where it has none. */
    default long sequence() {
        return NO_SEQUENCE;
    }

    /** A message about one booking. */
    sealed interface OfBooking extends ReplicaMessage {
        /** The booking's number. */
        long booking();

        /** Where it is booked. */
        ReplicaWorker worker();
    }

    /**
     * A request is booked; or, sent again because a replica lacks it, still is.
     *
     * @param pathBlocks blocks of its prompt that it may share with others
     * @param localHashes local hashes of the first of them; none where they are not known
     * @param hashCheck the local hash that the sender gives to a block of zeros: by it hashes of
     *     another seed are recognized
     * @param ownBlocks blocks beside these, which it shares with no other
     * @param prefillTokens tokens that the worker has still to prefill
     * @param expectedOutputTokens -1 where it is not known
     */
    record Added(
            ReplicaOrigin origin,
            long sequence,
            long booking,
            ReplicaWorker worker,
            int pathBlocks,
            long[] localHashes,
            long hashCheck,
            int ownBlocks,
            long prefillTokens,
            int expectedOutputTokens)
            implements OfBooking {}

    /** Its prompt is computed. */
    record Prefilled(ReplicaOrigin origin, long sequence, long booking, ReplicaWorker worker)
            implements OfBooking {}

    /** It has ended. */
    record Freed(ReplicaOrigin origin, long sequence, long booking, ReplicaWorker worker)
            implements OfBooking {}

    /**
     * What bookings have come to by their output: totals, so that one that is lost or comes twice
     * does no harm.
     *
     * @param sequence of the last numbered change before them
     * @param bookings their numbers
     * @param ownBlocks of each, what it shares with no other
     */
    record Output(ReplicaOrigin origin, long sequence, long[] bookings, int[] ownBlocks)
            implements ReplicaMessage {}

    /**
     * Sums over the sender's own bookings, of some workers. Without any it says that the sender is
     * there.
     */
    record Digest(ReplicaOrigin origin, long sequence, List<WorkerSum> workers)
            implements ReplicaMessage {
        /** Copies the list. */
        public Digest {
            workers = List.copyOf(workers);
        }
    }

    /**
     * Sums over the bookings of one worker.
     *
     * @param bookings how many
     * @param prefillTokens tokens still to be prefilled
     * @param ownBlocks blocks that they share with no other
     * @param numbers sum of {@link io.kvasir.pipeline.booking.ReplicaRecord#mix} over their numbers
     */
    record WorkerSum(
            ReplicaWorker worker, int bookings, long prefillTokens, long ownBlocks, long numbers) {}

    /**
     * All bookings of the sender on one worker, in {@code parts} messages with one sequence.
     *
     * @param part number of this part, from 0
     * @param bookings their numbers
     * @param prefillTokens of each
     * @param ownBlocks of each
     */
    record Bookings(
            ReplicaOrigin origin,
            long sequence,
            ReplicaWorker worker,
            int part,
            int parts,
            long[] bookings,
            long[] prefillTokens,
            int[] ownBlocks)
            implements ReplicaMessage {}

    /**
     * Asks a router for its digest, for lists, or for single bookings.
     *
     * @param routerId the router that is asked; {@link #ALL} for every router's digest
     * @param workers whose {@link Bookings} are wanted
     * @param bookings which are to be {@link Added} again
     */
    record Ask(ReplicaOrigin origin, long routerId, List<ReplicaWorker> workers, long[] bookings)
            implements ReplicaMessage {
        /** Asks all. */
        public static final long ALL = 0;

        /** Copies the list. */
        public Ask {
            workers = List.copyOf(workers);
        }
    }

    /** The sender ends, and with it all its bookings. */
    record Leaving(ReplicaOrigin origin) implements ReplicaMessage {}
}

package io.kvasir.pipeline.booking;

import io.kvasir.core.load.ActiveRequests;
import io.kvasir.core.load.PredictedPrefixes;
import io.kvasir.core.load.RunningRequest;

import java.util.Arrays;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.LongConsumer;

/**
 * The booking writer's part in replica sync: says in the {@link ReplicaOutbox} what becomes of the
 * router's own bookings, and applies the {@link Step}s that the replica thread leaves. Writer
 * thread only, but for the queue.
 *
 * <p>Own bookings and those of other routers are in one table of active requests and differ by
 * their index: own ones are below {@link #ownEntries}.
 */
final class ReplicaWriter {
    /**
     * Digests after the end of a booking in which its slot is named, so that a loss is repaired.
     */
    private static final byte QUIET_DIGESTS = 8;

    /** Of the slots without bookings, every so manieth is named in a digest, in turn. */
    private static final int QUIET_STRIDE = 16;

    /** Hashes of one booking that are sent; what comes after them counts for each by itself. */
    private static final int MAX_HASHES = 1 << 15;

    private static final int SLOTS_PER_RECORD = 256;
    private static final long[] NO_ITEMS = {};

    /** What the replica thread wants done. */
    interface Step {
        void apply(ReplicaWriter on);
    }

    // left before the flag is set (full order), as the queues of BookingWriter
    final Queue<Step> steps = new ConcurrentLinkedQueue<>();
    final AtomicInteger stepsQueued = new AtomicInteger();
    final AtomicBoolean queued = new AtomicBoolean();

    private final ActiveRequests table;
    private final PredictedPrefixes routed; // null when nothing is predicted
    private final int[] slotGenerations;
    private final int ownEntries;
    private final boolean countsBlocks;
    private final ReplicaOutbox outbox;
    private final RunningRequest request = new RunningRequest();
    private final LongConsumer sum = this::sum;
    private final LongConsumer list = this::list;
    private final byte[] quiet;
    private long[] items = new long[SLOTS_PER_RECORD * ReplicaRecord.DIGEST_ITEMS];
    private int itemCount;
    private long sequence;
    private int round;
    private boolean offered;
    private long predictionNs; // the booking writer's time of predictions

    // sums over the bookings of one slot
    private long bookings;
    private long prefillTokens;
    private long ownBlocks;
    private long numbers;

    ReplicaWriter(
            ActiveRequests table,
            PredictedPrefixes routed,
            int[] slotGenerations,
            BookingPipelineConfig config,
            ReplicaOutbox outbox) {
        this.table = table;
        this.routed = routed;
        this.slotGenerations = slotGenerations;
        this.ownEntries = config.entries();
        this.countsBlocks = config.countsBlocks();
        this.outbox = outbox;
        this.quiet = new byte[slotGenerations.length];
    }

    /** Whether a number is that of a booking of this router. */
    boolean isOwn(long number) {
        return (int) number < ownEntries;
    }

    /**
     * Applies the steps that wait.
     *
     * @param failed takes what goes wrong in one of them; the others have no record of their own
     */
    void applySteps(Consumer<Throwable> failed) {
        // cleared (volatile) before the queue is read: a step added after the read finds the flag
        // clear and publishes a record of its own, so none is left without a record
        queued.set(false);
        for (Step step = steps.poll(); step != null; step = steps.poll()) {
            stepsQueued.getAndDecrement();
            try {
                step.apply(this);
            } catch (Throwable error) {
                failed.accept(error);
            }
        }
    }

    // -- what becomes of own bookings --------------------------------------------------------

    /**
     * @param hashes of the prompt's full blocks, [count]; those that the table does not follow are
     *     among the booking's own blocks
     */
    void added(
            long number,
            int slot,
            int slotGeneration,
            long[] hashes,
            int count,
            int unknownBlocks,
            long tokens) {
        if (table.read(number, false, request)) {
            final int own = request.ownBlocks();
            offerAdded(
                    number,
                    slot,
                    slotGeneration,
                    tokens,
                    own,
                    hashes,
                    countsBlocks ? count + unknownBlocks - own : count);
        }
    }

    private void offerAdded(
            long number,
            int slot,
            int slotGeneration,
            long tokens,
            int own,
            long[] path,
            int pathBlocks) {
        sequence++;
        offered = true;
        outbox.offer(
                ReplicaRecord.Kind.ADDED,
                sequence,
                number,
                slot,
                slotGeneration,
                tokens,
                own,
                pathBlocks,
                path,
                Math.min(pathBlocks, MAX_HASHES));
    }

    void prefilled(long number, int slot, int slotGeneration) {
        offer(ReplicaRecord.Kind.PREFILLED, number, slot, slotGeneration, 0, NO_ITEMS, 0);
    }

    void output(long number, int slot, int slotGeneration) {
        if (table.read(number, false, request)) {
            offer(
                    ReplicaRecord.Kind.OUTPUT,
                    number,
                    slot,
                    slotGeneration,
                    request.ownBlocks(),
                    NO_ITEMS,
                    0);
        }
    }

    void freed(long number, int slot, int slotGeneration) {
        quiet[slot] = QUIET_DIGESTS; // no digest may have found the booking: it was short
        offer(ReplicaRecord.Kind.FREED, number, slot, slotGeneration, 0, NO_ITEMS, 0);
    }

    private void offer(
            ReplicaRecord.Kind kind,
            long number,
            int slot,
            int slotGeneration,
            int own,
            long[] from,
            int count) {
        // totals of outputs are sent together, not each, and so have no numbers of their own
        sequence += kind == ReplicaRecord.Kind.OUTPUT ? 0 : 1;
        offered = true;
        outbox.offer(kind, sequence, number, slot, slotGeneration, 0, own, 0, from, count);
    }

    /** Wakes the replica thread if there is something new for it; at the end of a batch. */
    void endOfBatch() {
        if (offered) {
            offered = false;
            outbox.wake();
        }
    }

    // -- steps of the replica thread ---------------------------------------------------------

    /** Books a request of another router; nothing if the slot has another tenant meanwhile. */
    void book(
            long number,
            int slot,
            int slotGeneration,
            long[] hashes,
            int count,
            int unshared,
            long tokens,
            boolean predicted) {
        if (slotGenerations[slot] != slotGeneration) {
            return;
        }
        table.announce(slot, tokens, 0); // counted like a caller's, so that it can be compared
        table.book(
                number,
                slot,
                hashes,
                countsBlocks ? count : 0,
                countsBlocks ? unshared : 0,
                tokens,
                0,
                ActiveRequests.NO_DEADLINE);
        if (predicted && routed != null && count > 0) {
            routed.visit(slot, hashes, count, predictionNs);
        }
    }

    /** The time that predictions are made at from now on. */
    void predictionTime(long elapsedNs) {
        predictionNs = elapsedNs;
    }

    void prefillComplete(long number) {
        table.prefillComplete(number);
    }

    void outputBlocks(long number, int blocks) {
        if (countsBlocks) {
            table.outputBlocks(number, blocks);
        }
    }

    void free(long number) {
        table.free(number);
    }

    /** Says of each slot with own bookings what they sum up to. */
    void digest() {
        round = (round + 1) % QUIET_STRIDE;
        itemCount = 0;
        for (int slot = 0; slot < quiet.length; slot++) {
            bookings = 0;
            prefillTokens = 0;
            ownBlocks = 0;
            numbers = 0;
            table.forEachRunning(slot, sum);
            if (bookings > 0) {
                quiet[slot] = QUIET_DIGESTS;
            } else if (quiet[slot] > 0) {
                quiet[slot]--;
            } else if (slot % QUIET_STRIDE != round) {
                continue;
            }
            item(slotAndGeneration(slot));
            item(bookings);
            item(prefillTokens);
            item(ownBlocks);
            item(numbers);
            if (itemCount == SLOTS_PER_RECORD * ReplicaRecord.DIGEST_ITEMS) {
                offerDigest();
            }
        }
        offerDigest(); // an empty one, too: it says that this router is there
    }

    private void offerDigest() {
        offer(ReplicaRecord.Kind.DIGEST, 0, 0, 0, 0, items, itemCount);
        itemCount = 0;
    }

    private long slotAndGeneration(int slot) {
        return (long) slotGenerations[slot] << Integer.SIZE | slot;
    }

    private void sum(long number) {
        if (isOwn(number) && table.read(number, false, request)) {
            bookings++;
            prefillTokens += request.prefillTokens();
            ownBlocks += request.ownBlocks();
            numbers += ReplicaRecord.mix(number);
        }
    }

    /** Names all own bookings of a slot; nothing if they are too many for one record. */
    void list(int slot, int slotGeneration) {
        if (slotGenerations[slot] != slotGeneration) {
            return;
        }
        itemCount = 0;
        table.forEachRunning(slot, list);
        offer(ReplicaRecord.Kind.LIST, 0, slot, slotGeneration, 0, items, itemCount);
    }

    private void list(long number) {
        if (isOwn(number) && table.read(number, false, request)) {
            item(number);
            item(request.prefillTokens());
            item(request.ownBlocks());
        }
    }

    private void item(long value) {
        if (items.length == itemCount) {
            items = Arrays.copyOf(items, 2 * itemCount);
        }
        items[itemCount++] = value;
    }

    /** Says again that an own booking is there, as it is now; nothing if it has ended. */
    void resend(long number) {
        if (isOwn(number) && table.read(number, true, request)) {
            offerAdded(
                    number,
                    request.slot(),
                    slotGenerations[request.slot()],
                    request.prefillTokens(),
                    request.ownBlocks(),
                    request.path(),
                    request.pathBlocks());
        }
    }
}

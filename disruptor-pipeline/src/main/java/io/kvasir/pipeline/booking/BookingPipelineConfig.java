package io.kvasir.pipeline.booking;

import io.kvasir.pipeline.ring.WaitMode;

import java.util.Objects;

/**
 * Sizes of a {@link BookingPipeline}.
 *
 * @param maxRequests requests that may be booked at the same time
 * @param waitMode how the booking writer waits
 * @param pendingHashes block hashes that may be on their way to the writer; a booking beyond them
 *     is made without a path, which counts all its blocks as its own
 * @param countsBlocks whether the blocks of requests are load; if not, a booking has prefill tokens
 *     alone, and no path
 * @param replicaRequests requests of other routers over the same workers that may be booked beside
 *     them; 0 = they are not followed, and nothing is said to them
 */
public record BookingPipelineConfig(
        int maxRequests,
        WaitMode waitMode,
        int pendingHashes,
        boolean countsBlocks,
        int replicaRequests) {
    private static final int MAX_REQUESTS = 1 << 27;
    private static final int MAX_PENDING_HASHES = 1 << 29;
    private static final int USUAL_PENDING_HASHES = 1 << 18;
    private static final int CONTROL_RECORDS = 128;

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if one is out of range
     */
    public BookingPipelineConfig {
        Objects.requireNonNull(waitMode, "waitMode");
        check("maxRequests", maxRequests, 1, MAX_REQUESTS);
        check("pendingHashes", pendingHashes, 0, MAX_PENDING_HASHES);
        check("replicaRequests", replicaRequests, 0, MAX_REQUESTS);
    }

    /** Sizes of a pipeline that counts blocks, of a router alone. */
    public BookingPipelineConfig(int maxRequests, WaitMode waitMode, int pendingHashes) {
        this(maxRequests, waitMode, pendingHashes, true, 0);
    }

    private static void check(String name, int value, int min, int max) {
        if (value < min || value > max) {
            throw new IllegalArgumentException(
                    name + "=" + value + " is not in " + min + ".." + max);
        }
    }

    /**
     * Usual sizes: 2 MiB for hashes, which are four prompts of a million tokens at 16 tokens a
     * block.
     *
     * @param maxRequests requests that may be booked at the same time
     */
    public static BookingPipelineConfig of(int maxRequests) {
        return new BookingPipelineConfig(maxRequests, WaitMode.BLOCKING, USUAL_PENDING_HASHES);
    }

    /** The same with another way to wait. */
    public BookingPipelineConfig withWaitMode(WaitMode mode) {
        return new BookingPipelineConfig(
                maxRequests, mode, pendingHashes, countsBlocks, replicaRequests);
    }

    /** The same for a pipeline that counts blocks, or does not. */
    public BookingPipelineConfig withCountsBlocks(boolean counts) {
        return new BookingPipelineConfig(
                maxRequests, waitMode, pendingHashes, counts, replicaRequests);
    }

    /** The same for a pipeline that takes so many bookings of other routers, too. */
    public BookingPipelineConfig withReplicaRequests(int requests) {
        return new BookingPipelineConfig(
                maxRequests, waitMode, pendingHashes, countsBlocks, requests);
    }

    /**
     * Bookings that the tables of the pipeline have room for: half as many again as may be open,
     * for those that have ended and wait for the writer. The low 32 bits of a booking's number are
     * below it.
     */
    public int entries() {
        return maxRequests + Math.max(64, maxRequests / 2);
    }

    /**
     * Requests that the table of active requests has room for: {@link #entries}, and after them
     * those of other routers.
     */
    public int tableEntries() {
        return entries() + replicaRequests;
    }

    /** Control records that may be in the ring besides those that are there once at most. */
    int maxForgets() {
        return CONTROL_RECORDS / 2;
    }

    /**
     * Records of the ring: one of each entry at most, those of control, and those that the writer
     * has applied and not yet given back.
     */
    public int ringSize() {
        return Integer.highestOneBit(entries() + CONTROL_RECORDS - 1) << 1;
    }
}

package io.kvasir.bench.transfer;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * NIXL's calls through one language, some of one kind at a time. Both sides make the same calls in
 * the same order; what a round prepares and gives back is not timed. One thread.
 */
interface Rounds {
    /** Bytes of a page. */
    int PAGE = 4096;

    /** Requests of a round. */
    int BATCH = 256;

    /** Calls of a round of a kind that needs no request of its own. */
    int REPEATS = 4096;

    /** What is timed; the argument of {@link #run} in brackets. */
    enum Kind {
        /** One more list of the peer's memory (all its descriptors). */
        PREPARE,
        /** Requests (descriptors of each). */
        MAKE,
        /** Requests that send a notification of 16 bytes (descriptors of each). */
        MAKE_NOTIFIED,
        /** Released requests (descriptors of each). */
        RELEASE,
        /** Posted requests (descriptors of each). */
        POST,
        /** Questions after the held request (the status expected, 0 or 1). */
        STATUS,
        /** Questions after notifications (how many are expected). */
        NOTIFICATIONS,
        /** One request, made, posted and polled to its end (descriptors). */
        TRANSFER
    }

    /**
     * Makes a round.
     *
     * @return nanoseconds of what is timed
     */
    long run(Kind kind, int argument);

    /** Posts the request that {@code STATUS} asks about, to its end unless it hangs. */
    void hold(boolean hangs);

    /** Releases that request. */
    void drop();

    /**
     * Prepares what requests are made of, in place of the lists before.
     *
     * @param descriptors that follow each other at both ends
     * @param descriptorBytes bytes of each
     * @param indices of a list that requests take, so many from the start as they have descriptors
     */
    void lists(int descriptors, long descriptorBytes, int[] indices);

    /**
     * Indices that both sides find at the same offset of a page, for as long as the process lives.
     */
    static MemorySegment inNativeMemory(int[] indices) {
        final MemorySegment memory =
                Arena.global().allocate((long) indices.length * Integer.BYTES, PAGE);
        MemorySegment.copy(indices, 0, memory, ValueLayout.JAVA_INT, 0, indices.length);
        return memory;
    }
}

package io.kvasir.sim.state;

/**
 * The truth about one rank at one moment between two steps, or in the middle of one.
 *
 * @param rank data-parallel rank
 * @param life 0 for the first life, one more after each restart
 * @param lastSequence number of the last event message published, -1 when there was none
 * @param pendingEvents events that happened but are published only when the running step ends
 * @param blocks size of the pool
 * @param freeBlocks blocks that no request uses, cached or not
 * @param cachedBlocks blocks that can be hit, copies included
 * @param distinctBlocks different blocks among them
 * @param running requests that hold a slot
 * @param waiting requests in the queue
 * @param admitted requests that ever got a slot in this life
 * @param finished requests that ended by themselves in this life
 * @param aborted requests whose client went away in this life
 * @param preemptions requests that lost their blocks to older ones and began again
 * @param droppedMessages event messages that a fault kept off the wire in this life
 */
public record SimState(
        int rank,
        long life,
        long lastSequence,
        int pendingEvents,
        int blocks,
        int freeBlocks,
        int cachedBlocks,
        int distinctBlocks,
        int running,
        int waiting,
        long admitted,
        long finished,
        long aborted,
        long preemptions,
        long droppedMessages) {}

package io.kvasir.opstreams.kvops;

import java.util.Locale;

/** How a stream is replayed. */
public enum ReplayMode {
    /** One thread, all operations in the stream's order; every answer is checked. */
    INORDER,
    /** Like INORDER, with a clock for each event; the least of several passes counts. */
    EVENTS,
    /** A writer applies events as fast as it can or at a given rate; a reader queries meanwhile. */
    BESIDE,
    /** Events and queries at the stream's times, whether or not the index keeps up. */
    OPENLOOP;

    /** Name on the command line and in results. */
    public String label() {
        return name().toLowerCase(Locale.ROOT);
    }
}

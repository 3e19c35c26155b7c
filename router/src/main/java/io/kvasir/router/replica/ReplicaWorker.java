package io.kvasir.router.replica;

import java.util.Objects;

/**
 * Which worker a message is about.
 *
 * @param id the worker's number, by which routers find it that know no names
 * @param name the worker's name, the same on all replicas; empty from routers that have none
 * @param dpRank data-parallel rank
 */
public record ReplicaWorker(long id, String name, int dpRank) {
    /** Checks the values. */
    public ReplicaWorker {
        Objects.requireNonNull(name, "name");
    }

    /** Whether it is found by its name; else by its number. */
    public boolean isNamed() {
        return !name.isEmpty();
    }

    /** The same worker however it was numbered: two are equal if their names and ranks are. */
    ReplicaWorker key() {
        return isNamed() ? new ReplicaWorker(0, name, dpRank) : this;
    }
}

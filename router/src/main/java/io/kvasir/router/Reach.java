package io.kvasir.router;

import java.util.Set;

/**
 * Which workers a request may go to, as far as it says so itself: of requests with an equal reach,
 * either all find a worker with room or none.
 *
 * @param pinnedOrNull the only one; null for any
 * @param excludedTaints taints of those that are left out
 * @param excluded those that are left out by name
 */
public record Reach(Worker pinnedOrNull, long excludedTaints, Set<Worker> excluded) {}

package io.kvasir.router;

import java.util.Set;

/**
 * Which workers a request may go to, as far as it says so itself: of requests with an equal reach,
 * either all find a worker with room or none. Those apart of which a refusal {@linkplain
 * RouteException#isOwn is their own}.
 *
 * @param pinnedOrNull the only one; null for any
 * @param anyRank whether others of its name are allowed too
 * @param excludedTaints taints of those that are left out
 * @param excluded those that are left out by name
 * @param required labels that a worker has to have
 * @param tolerated named taints that a worker may have, beside those labels
 * @param adapterOrNull that a worker has, or is to have; null for none
 */
public record Reach(
        Worker pinnedOrNull,
        boolean anyRank,
        long excludedTaints,
        Set<Worker> excluded,
        Set<String> required,
        Set<String> tolerated,
        String adapterOrNull) {
    /**
     * The same where adapters do not matter.
     *
     * @return this, if it names none
     */
    public Reach withoutAdapter() {
        return adapterOrNull == null
                ? this
                : new Reach(
                        pinnedOrNull, anyRank, excludedTaints, excluded, required, tolerated, null);
    }
}

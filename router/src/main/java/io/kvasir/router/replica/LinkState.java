package io.kvasir.router.replica;

/**
 * What a link says of itself. An embedder's own may fail to: its last counts stand then, and that
 * it failed is its problem until it answers again. Any thread.
 */
final class LinkState {
    private final ReplicaLink link;
    private Reading last = new Reading("", 0, 0); // guarded by this

    /**
     * One answer.
     *
     * @param problem empty if nothing is known to be wrong
     * @param dropped see {@link ReplicaLink#dropped}
     * @param unreadable see {@link ReplicaLink#unreadable}
     */
    record Reading(String problem, long dropped, long unreadable) {}

    LinkState(ReplicaLink link) {
        this.link = link;
    }

    synchronized Reading read() {
        try {
            final String problem = link.problem();
            last = new Reading(problem == null ? "" : problem, link.dropped(), link.unreadable());
        } catch (Throwable e) { // else no status of the router could be read
            last =
                    new Reading(
                            "the replica link failed when it was asked for its state: " + why(e),
                            last.dropped,
                            last.unreadable);
        }
        return last;
    }

    private static String why(Throwable failure) {
        final String said = failure.getMessage();
        return said == null || said.isBlank() ? "it failed without a reason" : said;
    }
}

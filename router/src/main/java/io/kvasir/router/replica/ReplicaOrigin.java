package io.kvasir.router.replica;

/**
 * Who has sent a message.
 *
 * @param routerId the router's number, unsigned; that of a router which is named otherwise is a
 *     hash of its name
 * @param incarnation which run of that router, a later one having a greater number; {@link
 *     #FOREIGN} of a router that is not Kvasir, and sends neither numbers nor digests
 */
public record ReplicaOrigin(long routerId, long incarnation) {
    /** The incarnation of routers that have none. */
    public static final long FOREIGN = 0;

    /** Whether it is not Kvasir. */
    public boolean isForeign() {
        return incarnation == FOREIGN;
    }
}

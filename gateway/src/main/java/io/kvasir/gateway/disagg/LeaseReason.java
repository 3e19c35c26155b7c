package io.kvasir.gateway.disagg;

/** Why blocks that no decode worker will fetch are left to the end of their engine's lease. */
public enum LeaseReason {
    /** No library can be loaded that notifies engines. */
    NO_LIBRARY("no-library"),
    /** The engine's side channel did not answer before the lease ended. */
    HANDSHAKE_FAILED("handshake-failed"),
    /** The engine's parameters, or what it says of itself, are of a form that is not known. */
    UNSUPPORTED("unsupported"),
    /** More prefills are held than are watched. */
    TOO_MANY("too-many"),
    /** The engine has ended or cannot be reached any more. */
    ENGINE_LOST("engine-lost"),
    /** The lease was over when the blocks were to be freed. */
    EXPIRED("expired"),
    /** The gateway ends. */
    CLOSING("closing");

    private final String spelling;

    LeaseReason(String spelling) {
        this.spelling = spelling;
    }

    /**
     * As metrics and logs write it.
     *
     * @return lower case
     */
    public String spelling() {
        return spelling;
    }
}

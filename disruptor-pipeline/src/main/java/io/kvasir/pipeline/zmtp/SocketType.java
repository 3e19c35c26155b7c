package io.kvasir.pipeline.zmtp;

import java.util.Set;

/** The sides that we take in ZMQ's patterns. */
public enum SocketType {
    /** Subscribes to a publisher. */
    SUB(Set.of("PUB", "XPUB")),
    /** Asks for replays. */
    DEALER(Set.of("ROUTER", "REP", "DEALER")),
    /** Publishes to subscribers. */
    PUB(Set.of("SUB", "XSUB")),
    /** Answers requests for replays. */
    ROUTER(Set.of("DEALER", "REQ"));

    @SuppressWarnings("ImmutableEnumChecker") // of Set.of: it cannot change
    private final Set<String> peers;

    SocketType(Set<String> peers) {
        this.peers = peers;
    }

    boolean fits(String peer) {
        return peers.contains(peer);
    }

    /** Whether this side says that it is ready before it knows what the peer is. */
    boolean isReadyFirst() {
        return this == PUB || this == ROUTER;
    }

    String expected() {
        return switch (this) {
            case SUB -> "PUB or XPUB";
            case DEALER -> "ROUTER";
            case PUB -> "SUB or XSUB";
            case ROUTER -> "DEALER or REQ";
        };
    }
}

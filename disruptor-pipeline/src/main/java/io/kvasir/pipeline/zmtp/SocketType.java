package io.kvasir.pipeline.zmtp;

import java.util.Set;

/** The sides that we take in ZMQ's patterns. */
public enum SocketType {
    /** Subscribes to a publisher. */
    SUB(Set.of("PUB", "XPUB")),
    /** Asks for replays. */
    DEALER(Set.of("ROUTER", "REP", "DEALER"));

    @SuppressWarnings("ImmutableEnumChecker") // of Set.of: it cannot change
    private final Set<String> peers;

    SocketType(Set<String> peers) {
        this.peers = peers;
    }

    boolean fits(String peer) {
        return peers.contains(peer);
    }

    String expected() {
        return this == SUB ? "PUB or XPUB" : "ROUTER";
    }
}

package io.kvasir.nixl.exchange.zmq;

import io.kvasir.registry.HostPort;

import java.util.Objects;

/** Where a peer's side channel listens: its host by name or address, and its port. */
record SideAddress(String host, int port) {
    SideAddress {
        Objects.requireNonNull(host, "host");
    }

    /** As ZMQ writes it. */
    String endpoint() {
        return "tcp://" + HostPort.of(host, port);
    }
}

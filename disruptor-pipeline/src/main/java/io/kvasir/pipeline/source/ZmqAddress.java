package io.kvasir.pipeline.source;

import io.kvasir.pipeline.zmtp.Endpoint;

/** Check of ZMQ addresses before they are used: says of one that is none why. Stateless. */
public final class ZmqAddress {
    private ZmqAddress() {}

    /**
     * An address to connect to.
     *
     * @throws IllegalArgumentException if it is none, or names no single host and port
     */
    public static void checkConnectable(String address) {
        Endpoint.parse(address).connectable();
    }

    /**
     * An address to bind to; its host may be {@code *} and its port 0.
     *
     * @throws IllegalArgumentException if it is none
     */
    public static void checkBindable(String address) {
        Endpoint.parse(address);
    }
}

package io.kvasir.gateway.config;

/** Where events come from of workers that have no endpoint for them. */
public enum EventPlaneKind {
    /** From nowhere. */
    OFF,
    /** From core NATS, which keeps nothing. */
    NATS,
    /** From a stream of JetStream, which keeps an hour. */
    JETSTREAM,
    /** From publishers or brokers over ZMQ, which keep nothing. */
    ZMQ
}

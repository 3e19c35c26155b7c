package io.kvasir.nats.events;

/** How events are written to a stream of JetStream; every form is read. */
public enum StreamForm {
    /** Each in a message of its own, in JSON. */
    EVENTS,
    /** The same under the subject of publishers up to 0.7. */
    OLD_EVENTS,
    /**
     * Those that are published together in one message, in an envelope: a round trip for all of
     * them. Routers that read single events do not know them.
     */
    ENVELOPES
}

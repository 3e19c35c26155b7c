package io.kvasir.registry;

/** What an instance is to be used for now. */
public enum InstanceState {
    /** New requests. */
    READY,
    /** The requests that it has; it is about to go. */
    DRAINING
}

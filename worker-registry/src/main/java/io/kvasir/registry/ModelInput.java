package io.kvasir.registry;

/** What a worker is sent. */
public enum ModelInput {
    /** Token ids: the router tokenizes. */
    TOKENS,
    /** The client's text: the engine tokenizes. */
    TEXT
}

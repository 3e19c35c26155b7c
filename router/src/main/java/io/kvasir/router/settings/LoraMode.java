package io.kvasir.router.settings;

/** What it means for a request with an adapter that a worker has it. */
public enum LoraMode {
    /** Nothing: any worker is taken to serve it. */
    OFF,
    /** Workers that have it go before all others; where none of them may be chosen, any may. */
    PREFERRED,
    /** No other worker may be chosen. */
    REQUIRED
}

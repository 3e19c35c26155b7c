package io.kvasir.router.settings;

/** Whether a router keeps an index of what its workers hold. */
public enum IndexUse {
    /** It does, unless cached blocks count nothing: {@code overlap-weight} 0. */
    AUTO,
    /** It does: requests override the weight, or it is asked which workers hold what. */
    ON,
    /** It does not: no memory, no events, no threads for them. */
    OFF
}

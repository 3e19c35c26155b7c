package io.kvasir.router.load;

import java.util.Locale;

/** Where a report of an engine's load comes from. Each source is ordered by itself. */
public enum LoadSource {
    /** The engine's page of metrics. */
    METRICS,
    /** The socket of the engine's KV events. */
    EVENT_SOCKET,
    /** The event plane of a fleet. */
    EVENT_PLANE,
    /** The program that the router is part of. */
    EMBEDDER;

    /** As metrics and status write it. */
    public String spelling() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}

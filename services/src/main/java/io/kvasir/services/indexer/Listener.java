package io.kvasir.services.indexer;

import io.kvasir.pipeline.source.EventSource;

import java.util.Locale;

/** The events of one rank of an instance. */
final class Listener {
    final Tenant tenant;
    final String endpoint;
    final EventSource source;

    Listener(Tenant tenant, String endpoint, EventSource source) {
        this.tenant = tenant;
        this.endpoint = endpoint;
        this.source = source;
    }

    /** One of the words that there are for it. */
    String status() {
        return switch (source.state()) {
            case STALE -> "pending";
            case GONE -> "failed";
            default -> "active";
        };
    }

    /** The exact state, in the words of the router. */
    String state() {
        return source.state().name().toLowerCase(Locale.ROOT);
    }
}

package io.kvasir.services.indexer;

import io.kvasir.pipeline.source.EventSource;
import io.kvasir.pipeline.source.IndexState;

import java.util.Locale;

/** The events of one rank of an instance. */
final class Listener {
    final Tenant tenant;
    final String endpoint;
    final EventSource source;

    /** Whether the slot had blocks of a peer's dump when the source was opened. */
    private boolean onRecovered;

    Listener(Tenant tenant, String endpoint, EventSource source, boolean onRecovered) {
        this.tenant = tenant;
        this.endpoint = endpoint;
        this.source = source;
        this.onRecovered = onRecovered;
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

    /**
     * Empties the slot once if its engine was heard from its first message on: it has begun anew
     * after the peer had seen it, and its cache is another. An engine that was heard in the middle
     * of its life continues from what the peer knew.
     *
     * @return whether it did
     */
    synchronized boolean settleRecovered() {
        if (!onRecovered || source.state() == IndexState.LOADING) {
            return false;
        }
        if (source.state() == IndexState.EXACT) {
            onRecovered = false;
            source.clear();
            return true;
        }
        onRecovered = source.state() == IndexState.STALE;
        return false;
    }
}

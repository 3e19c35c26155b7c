package io.kvasir.nixl.engine;

import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.KvTransportException;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * Links that are being given up: each is forgotten once the transport has let go of all requests to
 * its peer, or stays known if that takes too long. One thread, which polls the requests.
 */
final class LeavingLinks {
    private record Leaving(KvLink link, long deadlineNs, CompletableFuture<Void> end) {}

    private final KvTransport transport;
    private final InFlight inFlight;
    private final List<Leaving> all = new ArrayList<>();

    LeavingLinks(KvTransport transport, InFlight inFlight) {
        this.transport = transport;
        this.inFlight = inFlight;
    }

    /** Adds a lost one; its future ends in {@link #forget} or {@link #close}. */
    void add(KvLink link, long deadlineNs, CompletableFuture<Void> end) {
        all.add(new Leaving(link, deadlineNs, end));
    }

    /** Forgets those without requests, and refuses those whose time is over; returns how many. */
    int forget(long nowNs) {
        int ended = 0;
        for (int i = all.size() - 1; i >= 0; i--) {
            final Leaving leaving = all.get(i);
            final boolean used = inFlight.isUsed(leaving.link);
            if (!used || nowNs - leaving.deadlineNs >= 0) {
                all.remove(i);
                end(leaving, used);
                ended++;
            }
        }
        return ended;
    }

    /** Waits for none any longer. */
    void close() {
        all.forEach(leaving -> end(leaving, inFlight.isUsed(leaving.link)));
        all.clear();
    }

    private void end(Leaving leaving, boolean used) {
        try {
            if (used) {
                throw new KvTransportException(
                        KvTransportException.Kind.FAILED,
                        "requests to "
                                + leaving.link.peer()
                                + " could not be given up; try again later");
            }
            if (!leaving.link.isForgotten()) { // it may have been given up twice meanwhile
                letGo(leaving.link);
            }
            leaving.end.complete(null);
        } catch (Throwable e) {
            leaving.end.completeExceptionally(e);
        }
    }

    /** Has the transport forget a link; what it throws ends nothing: this can be called again. */
    void letGo(KvLink link) {
        try {
            if (link.takeList()) {
                transport.releaseList(link.list());
            }
        } finally {
            transport.disconnect(link.peer());
        }
        link.forget();
    }
}

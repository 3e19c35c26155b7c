package io.kvasir.gateway.upstream;

import java.nio.ByteBuffer;

/**
 * Decides which worker the failures of one request count against: one at most, and none where the
 * request is what failed. One per exchange and leg; thread-safe.
 */
public final class FaultAttribution {
    private final ByteBuffer body;
    private Upstream first;
    private String cause;
    private int key;
    private boolean several;
    private boolean settled;

    /**
     * @param body of the request; requests with the same one say the same
     */
    public FaultAttribution(ByteBuffer body) {
        this.body = body;
    }

    /**
     * A worker that is there failed the request.
     *
     * @param shared what has failed, where that is one fault of all requests that it failed with;
     *     null for the request itself
     */
    public synchronized void failed(Upstream worker, String description, Object shared) {
        if (first == null) {
            first = worker;
            cause = description;
            key = shared == null ? body.hashCode() : System.identityHashCode(shared);
        } else if (first != worker) {
            several = true;
        }
    }

    /**
     * An attempt at a worker failed: has it count where it tells of the worker.
     *
     * @param sent the worker had the whole request
     * @param lostConnection what all requests of one connection failed with; null for the request
     *     itself
     */
    public void failed(
            Upstream worker,
            UpstreamFault fault,
            String description,
            boolean sent,
            Object lostConnection) {
        switch (fault) {
            case CONNECT -> worker.refused(description);
            case STATUS, CLOSED, PROTOCOL, HEAD_TOO_LARGE, TOO_MANY_INTERIM ->
                    failed(worker, description, lostConnection);
            case TIMEOUT -> {
                if (!sent) {
                    failed(worker, description, null); // it takes no requests
                }
            }
            case DESCRIPTORS -> Descriptors.reportLack();
            case DEAD, BUSY, REFUSED, LOCAL, UNSENDABLE, MEMORY -> {}
        }
    }

    /** A worker answered the request: it is fine, so what failed before was the worker. */
    public synchronized void answered() {
        settle();
    }

    /** No further attempt follows. */
    public synchronized void ended() {
        if (!several) {
            settle();
        }
    }

    private void settle() {
        if (first != null && !settled) {
            settled = true;
            first.faulted(key, cause);
        }
    }
}

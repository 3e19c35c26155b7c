package io.kvasir.router;

import io.kvasir.pipeline.source.SourceConfig;

import java.util.Objects;

/**
 * What an embedder says of one (worker, dp rank) when it registers it.
 *
 * @param id the worker's number, unsigned 64-bit; the same for all of its ranks
 * @param name for people: logs, metrics, decisions; unique per router together with the rank
 * @param url where requests go; opaque to the router
 * @param dpRank data-parallel rank, 0 without data parallelism
 * @param events where the rank's KV events come from; its slot is set by the router; null for a
 *     worker without events, which is routed by load alone, or by what was routed to it with {@link
 *     RouterConfig.Builder#routedPrefixes}
 * @param taints what keeps requests from it that do not tolerate that, one bit each; their meaning
 *     is the embedder's. See {@link RouteRequest#excludeTainted}
 */
public record WorkerSpec(
        long id, String name, String url, int dpRank, SourceConfig events, long taints) {
    /** Checks the values. */
    public WorkerSpec {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(url, "url");
        if (name.isBlank()) {
            throw new IllegalArgumentException("worker id=" + id + " has no name; give it one");
        }
        if (dpRank < 0) {
            throw new IllegalArgumentException(
                    "dpRank=" + dpRank + " of worker " + name + " is negative");
        }
    }

    /** A worker without taints. */
    public WorkerSpec(long id, String name, String url, int dpRank, SourceConfig events) {
        this(id, name, url, dpRank, events, 0);
    }

    /**
     * A worker without data parallelism and without an event endpoint of its own; events may be
     * pushed through {@link KvRouter#openDirect}.
     *
     * @param id the worker's number
     * @param name for people
     * @param url where requests go
     * @return the spec
     */
    public static WorkerSpec of(long id, String name, String url) {
        return new WorkerSpec(id, name, url, 0, null);
    }
}

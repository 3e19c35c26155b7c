package io.kvasir.router;

import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.router.policy.CostModel;
import io.kvasir.router.policy.Eligibility;

import java.util.Map;
import java.util.Objects;
import java.util.Set;

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
 * @param planeOrNull the rank on the router's event plane, see {@link
 *     RouterConfig.Builder#eventPlane}; null for a worker that is not there
 * @param labels what requests may ask for ({@link RouteRequest#require}, {@link
 *     RouteRequest#prefer}) and an embedder's {@link Eligibility} or {@link CostModel} goes by: a
 *     zone, a kind of machine
 * @param namedTaints names of what keeps requests from it that do not ask for it or tolerate it:
 *     {@link RouteRequest#tolerate}
 */
public record WorkerSpec(
        long id,
        String name,
        String url,
        int dpRank,
        SourceConfig events,
        long taints,
        EventPlaneWorker planeOrNull,
        Map<String, String> labels,
        Set<String> namedTaints) {
    /** Checks the values, and copies the labels. */
    public WorkerSpec {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(url, "url");
        Objects.requireNonNull(labels, "labels").forEach(WorkerSpec::checkLabel);
        for (String taint : Objects.requireNonNull(namedTaints, "namedTaints")) {
            Objects.requireNonNull(taint, "a named taint is null");
        }
        labels = Map.copyOf(labels);
        namedTaints = Set.copyOf(namedTaints);
        if (name.isBlank()) {
            throw new IllegalArgumentException("worker id=" + id + " has no name; give it one");
        }
        if (dpRank < 0) {
            throw new IllegalArgumentException(
                    "dpRank=" + dpRank + " of worker " + name + " is negative");
        }
        if (events != null && planeOrNull != null) {
            throw new IllegalArgumentException(
                    "worker "
                            + name
                            + " has events of its own and is "
                            + planeOrNull
                            + " on the event plane; name one of both");
        }
    }

    private static void checkLabel(String label, String value) {
        Objects.requireNonNull(label, "the name of a label is null");
        Objects.requireNonNull(value, () -> "the value of label " + label + " is null");
    }

    /** A worker without named taints. */
    public WorkerSpec(
            long id,
            String name,
            String url,
            int dpRank,
            SourceConfig events,
            long taints,
            EventPlaneWorker planeOrNull,
            Map<String, String> labels) {
        this(id, name, url, dpRank, events, taints, planeOrNull, labels, Set.of());
    }

    /** A worker without labels. */
    public WorkerSpec(
            long id,
            String name,
            String url,
            int dpRank,
            SourceConfig events,
            long taints,
            EventPlaneWorker planeOrNull) {
        this(id, name, url, dpRank, events, taints, planeOrNull, Map.of());
    }

    /** A worker that is on no event plane. */
    public WorkerSpec(
            long id, String name, String url, int dpRank, SourceConfig events, long taints) {
        this(id, name, url, dpRank, events, taints, null);
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

    /**
     * The same worker, whose events come from the router's event plane.
     *
     * @param worker what it is called there
     */
    public WorkerSpec onEventPlane(EventPlaneWorker worker) {
        return new WorkerSpec(id, name, url, dpRank, null, taints, worker, labels, namedTaints);
    }

    /** The same worker without events of any kind. */
    WorkerSpec withoutEvents() {
        return new WorkerSpec(id, name, url, dpRank, null, taints, null, labels, namedTaints);
    }

    /**
     * The same worker with labels.
     *
     * @param all of them
     */
    public WorkerSpec labelled(Map<String, String> all) {
        return new WorkerSpec(id, name, url, dpRank, events, taints, planeOrNull, all, namedTaints);
    }

    /**
     * The same worker with named taints.
     *
     * @param all of them
     */
    public WorkerSpec tainted(Set<String> all) {
        return new WorkerSpec(id, name, url, dpRank, events, taints, planeOrNull, labels, all);
    }
}

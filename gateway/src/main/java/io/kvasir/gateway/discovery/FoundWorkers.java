package io.kvasir.gateway.discovery;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.upstream.Discovery;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reports to a listener which workers there are and which of them are about to go. One that is
 * about to go when it is first seen is not reported. One thread.
 */
final class FoundWorkers {
    /**
     * A worker at this moment.
     *
     * @param ready false: it gets no new request
     */
    record Found(DiscoveredWorker worker, boolean ready) {}

    private final Discovery.Listener listener;
    private Map<String, Found> reported = Map.of();

    FoundWorkers(Discovery.Listener listener) {
        this.listener = listener;
    }

    /**
     * Publishes all that is there.
     *
     * @param now names are unique
     */
    void publish(Collection<Found> now) {
        final Map<String, Found> next = new LinkedHashMap<>();
        for (Found found : now) {
            final Found before = reported.get(found.worker.name());
            if (found.ready || (before != null && before.worker.equals(found.worker))) {
                next.put(found.worker.name(), found);
            }
        }
        final List<DiscoveredWorker> view = new ArrayList<>(next.size());
        next.values().forEach(found -> view.add(found.worker));
        // before a view, which may wait for successors: those that are ready again are some
        next.values().forEach(this::report);
        listener.view(view);
        reported = next;
    }

    private void report(Found found) {
        final Found before = reported.get(found.worker.name());
        final boolean wasReady =
                before == null || !before.worker.equals(found.worker) || before.ready;
        if (found.ready != wasReady) {
            listener.draining(found.worker.name(), !found.ready);
        }
    }
}

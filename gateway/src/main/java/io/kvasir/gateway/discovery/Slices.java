package io.kvasir.gateway.discovery;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.discovery.EndpointSlices.Condition;
import io.kvasir.gateway.discovery.EndpointSlices.Entry;
import io.kvasir.gateway.discovery.FoundWorkers.Found;
import io.kvasir.registry.kubernetes.ResourceWatch;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;

/** The EndpointSlices that a watch reports. Any thread may ask. */
final class Slices implements ResourceWatch.Listener {
    private final EndpointSlices slices;
    private final Runnable onChange;
    private final Consumer<String> onLoss;
    private final Map<String, JsonNode> known = new TreeMap<>(); // by name; guarded by this
    private final Map<String, DiscoveredWorker> used = new HashMap<>(); // by name; guarded by this
    private boolean isSettled; // guarded by this

    /**
     * @param slices what they mean
     * @param onChange on the watch's thread, as is
     * @param onLoss which gets the cause
     */
    Slices(EndpointSlices slices, Runnable onChange, Consumer<String> onLoss) {
        this.slices = slices;
        this.onChange = onChange;
        this.onLoss = onLoss;
    }

    @Override
    public void view(List<JsonNode> all) {
        synchronized (this) {
            known.clear();
            all.forEach(slice -> known.put(EndpointSlices.name(slice), slice));
            isSettled = true;
        }
        onChange.run();
    }

    @Override
    public void changed(JsonNode slice) {
        synchronized (this) {
            known.put(EndpointSlices.name(slice), slice);
        }
        onChange.run();
    }

    @Override
    public void deleted(JsonNode slice) {
        synchronized (this) {
            known.remove(EndpointSlices.name(slice));
        }
        onChange.run();
    }

    @Override
    public void lost(String cause) {
        synchronized (this) {
            isSettled = true;
        }
        onLoss.accept(cause);
    }

    /** Slices have no leases that would go on. */
    @Override
    public void unlisted() {
        // what was listed last holds
    }

    /** Whether they have been listed, or cannot be now. */
    synchronized boolean isSettled() {
        return isSettled;
    }

    /** What the control plane says of pods, by UID; where a pod is twice, the better counts. */
    synchronized Map<String, Condition> conditions() {
        final Map<String, Condition> all = new HashMap<>();
        known.values().forEach(slice -> EndpointSlices.conditions(slice, all));
        return all;
    }

    /**
     * The workers by their names. A pod is in several slices where its service has addresses of
     * both families, or where it moves between them.
     *
     * @param problems gets what cannot be used, and why
     */
    synchronized Map<String, Found> workers(Map<String, String> problems) {
        final Map<String, Map<Long, Entry>> pods = new TreeMap<>(); // by name, then generation
        for (JsonNode slice : known.values()) {
            for (Entry entry : slices.workers(slice, used, problems)) {
                pods.computeIfAbsent(entry.worker().name(), _ -> new LinkedHashMap<>())
                        .merge(entry.worker().generation(), entry, this::ofOnePod);
            }
        }
        final Map<String, Entry> all = new TreeMap<>();
        pods.forEach((name, each) -> each.values().forEach(e -> all.merge(name, e, this::ofTwo)));
        all.values().removeIf(entry -> entry.condition() == Condition.GONE);
        used.clear();
        final Map<String, Found> workers = new TreeMap<>();
        all.forEach(
                (name, entry) -> {
                    used.put(name, entry.worker());
                    workers.put(
                            name, new Found(entry.worker(), entry.condition() == Condition.READY));
                });
        return workers;
    }

    /**
     * One pod is one worker, in the better condition, at the address that it was used at while a
     * slice has that: at another one it would be a new worker.
     */
    private Entry ofOnePod(Entry a, Entry b) {
        final Entry better = b.condition().isBetterThan(a.condition()) ? b : a;
        final Entry kept = isUsed(a) ? a : isUsed(b) ? b : better;
        return new Entry(kept.worker(), better.condition());
    }

    /** Of two pods of one name the better one counts, and of two equal ones that which is used. */
    private Entry ofTwo(Entry a, Entry b) {
        if (a.condition() == b.condition()) {
            return isOfUsedPod(b) ? b : a;
        }
        return b.condition().isBetterThan(a.condition()) ? b : a;
    }

    private boolean isUsed(Entry entry) {
        return isOfUsedPod(entry)
                && used.get(entry.worker().name())
                        .worker()
                        .url()
                        .equals(entry.worker().worker().url());
    }

    private boolean isOfUsedPod(Entry entry) {
        final DiscoveredWorker before = used.get(entry.worker().name());
        return before != null && before.generation() == entry.worker().generation();
    }
}

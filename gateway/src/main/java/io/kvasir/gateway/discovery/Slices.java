package io.kvasir.gateway.discovery;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.discovery.EndpointSlices.Condition;
import io.kvasir.gateway.discovery.FoundWorkers.Found;
import io.kvasir.registry.kubernetes.ResourceWatch;

import java.util.HashMap;
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

    /** Whether they have been listed, or cannot be now. */
    synchronized boolean isSettled() {
        return isSettled;
    }

    /** What the control plane says of pods, by UID; where a pod is twice, the better counts. */
    synchronized Map<String, Condition> conditions() {
        final Map<String, Condition> all = new HashMap<>();
        for (JsonNode slice : known.values()) {
            EndpointSlices.conditions(slice)
                    .forEach(
                            (uid, now) ->
                                    all.merge(uid, now, (a, b) -> a.compareTo(b) <= 0 ? a : b));
        }
        return all;
    }

    /**
     * The workers by their names. An endpoint that moves between slices may be in both: where it is
     * ready it counts.
     *
     * @param problems gets what is left out, and why
     */
    synchronized Map<String, Found> workers(Map<String, String> problems) {
        final Map<String, Found> all = new TreeMap<>();
        for (JsonNode slice : known.values()) {
            slices.workers(slice, problems)
                    .forEach((name, w) -> all.merge(name, w, (a, b) -> a.ready() ? a : b));
        }
        return all;
    }
}

package io.kvasir.gateway.discovery;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.registry.Registration;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

/** What a registration says, as a worker of the gateway. */
public final class RegisteredWorkers {
    private RegisteredWorkers() {}

    /**
     * The worker of a registration; its name is the instance's.
     *
     * @param onPlane whether the gateway is on an event plane; then a worker's events come from
     *     there if it is there, too
     * @throws IllegalArgumentException if the gateway cannot use it; the message says why
     */
    public static DiscoveredWorker of(Registration r, boolean onPlane) {
        final Map<String, String> texts = new LinkedHashMap<>();
        texts.put("url", r.url().toString());
        texts.put("name", r.id().instance());
        texts.put("dp", Integer.toString(r.dpRanks()));
        texts.put("role", r.role().name().toLowerCase(Locale.ROOT));
        texts.put("input", r.input().name().toLowerCase(Locale.ROOT));
        texts.put("kv-blocks", Long.toString(Math.max(0, r.limits().kvBlocks())));
        texts.put("max-batched-tokens", Long.toString(Math.max(0, r.limits().maxBatchedTokens())));
        texts.put("generation", Long.toString(r.generation()));
        if (onPlane && r.plane() != null) {
            texts.put("event-worker", Long.toString(r.plane().workerId()));
            texts.put("event-rank", Integer.toString(r.plane().rank()));
        } else if (r.events() != null) {
            texts.put("events", r.events().endpoint());
            texts.put("bind", Boolean.toString(r.events().bind()));
            texts.put("topic", r.events().topic());
            texts.put("removals", r.events().removals());
            texts.put("event-rank", Integer.toString(r.events().rank()));
            if (r.events().replay() != null) {
                texts.put("replay", r.events().replay());
            }
        }
        if (r.handoff() != null) {
            texts.put("handoff", r.handoff().protocol());
            if (r.handoff().bootstrap() != null) {
                texts.put("bootstrap", r.handoff().bootstrap());
            }
        }
        texts.put(
                "labels",
                r.labels().entrySet().stream()
                        .map(label -> label.getKey() + ":" + label.getValue())
                        .collect(Collectors.joining(";")));
        texts.put("lora", String.join(";", r.adapters().names()));
        texts.put(
                "lora-ids",
                r.adapters().numbers().entrySet().stream()
                        .map(adapter -> adapter.getKey() + ":" + adapter.getValue())
                        .collect(Collectors.joining(";")));
        texts.put("taints", String.join(";", r.taints()));
        return DiscoveredWorker.of(r.model(), texts);
    }
}

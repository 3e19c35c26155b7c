package io.kvasir.gateway.discovery;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.discovery.FoundWorkers.Found;
import io.kvasir.registry.InstanceState;
import io.kvasir.registry.InstanceView;
import io.kvasir.registry.Registration;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.BiConsumer;

/**
 * The registrations of the gateway's models, as workers. A run whose registration changes so that
 * it cannot be used stays as it was while it is at the same URL. One thread.
 */
final class Registrations {
    private final InstanceView instances;
    private final Set<String> models;
    private final boolean onPlane;
    private Map<String, Usable> before = Map.of(); // by key

    /** A registration and what it is to the gateway. */
    private record Usable(Registration registration, DiscoveredWorker worker) {
        boolean isSameRun(Registration other) {
            return registration.generation() == other.generation()
                    && registration.url().equals(other.url());
        }
    }

    /**
     * @param instances of one namespace
     * @param models other models' instances are left to other gateways
     * @param onPlane whether the gateway is on an event plane
     */
    Registrations(InstanceView instances, Set<String> models, boolean onPlane) {
        this.instances = instances;
        this.models = Set.copyOf(models);
        this.onPlane = onPlane;
    }

    /**
     * Reports those that are there now.
     *
     * @param each gets registrations, of unique names, and what they are to the gateway
     * @param problems gets what cannot be used, and why
     */
    void collect(BiConsumer<Registration, Found> each, Map<String, String> problems) {
        final Map<String, Registration> chosen = new TreeMap<>();
        for (Registration registration : instances.instances()) {
            if (models.contains(registration.model())) {
                choose(registration, chosen, problems);
            }
        }
        final Map<String, Usable> next = new HashMap<>();
        for (Registration r : chosen.values()) {
            final Usable usable = usableOrNull(r, problems);
            if (usable != null) {
                next.put(r.id().key(), usable);
                each.accept(r, new Found(usable.worker, r.state() == InstanceState.READY));
            }
        }
        before = next;
    }

    private Usable usableOrNull(Registration r, Map<String, String> problems) {
        final Usable former = before.get(r.id().key());
        if (former != null && former.registration.equals(r)) {
            return former;
        }
        try {
            return new Usable(r, RegisteredWorkers.of(r, onPlane));
        } catch (IllegalArgumentException e) {
            final boolean stays = former != null && former.isSameRun(r);
            problems.put(
                    r.id().key(),
                    r.id() + (stays ? " stays as it was: " : " is left out: ") + e.getMessage());
            return stays ? former : null;
        }
    }

    /** Of two components' instances of one name, the later one counts. */
    private static void choose(
            Registration each, Map<String, Registration> chosen, Map<String, String> problems) {
        final String name = each.id().instance();
        final Registration other = chosen.get(name);
        if (other == null) {
            chosen.put(name, each);
            return;
        }
        final boolean isLater = each.generation() > other.generation();
        final Registration left = isLater ? other : each;
        chosen.put(name, isLater ? each : other);
        problems.put(
                left.id().key(),
                left.id() + " is left out: " + chosen.get(name).id() + " has its name");
    }
}

package io.kvasir.gateway.discovery;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.discovery.FoundWorkers.Found;
import io.kvasir.registry.InstanceState;
import io.kvasir.registry.InstanceView;
import io.kvasir.registry.Registration;

import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.BiConsumer;

/** The registrations of the gateway's models, as workers. One thread. */
final class Registrations {
    private final InstanceView instances;
    private final Set<String> models;
    private final boolean onPlane;
    private IdentityHashMap<Registration, DiscoveredWorker> workers =
            new IdentityHashMap<>(); // of what was there before

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
     * @param problems gets what is left out, and why
     */
    void collect(BiConsumer<Registration, Found> each, Map<String, String> problems) {
        final Map<String, Registration> chosen = new TreeMap<>();
        for (Registration registration : instances.instances()) {
            if (models.contains(registration.model())) {
                choose(registration, chosen, problems);
            }
        }
        final IdentityHashMap<Registration, DiscoveredWorker> next = new IdentityHashMap<>();
        for (Registration r : chosen.values()) {
            try {
                final DiscoveredWorker before = workers.get(r);
                final DiscoveredWorker worker =
                        before == null ? RegisteredWorkers.of(r, onPlane) : before;
                next.put(r, worker);
                each.accept(r, new Found(worker, r.state() == InstanceState.READY));
            } catch (IllegalArgumentException e) {
                problems.put(r.id().key(), r.id() + " is left out: " + e.getMessage());
            }
        }
        workers = next;
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

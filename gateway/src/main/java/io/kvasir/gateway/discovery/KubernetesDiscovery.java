package io.kvasir.gateway.discovery;

import io.kvasir.gateway.config.EventPlaneKind;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.discovery.EndpointSlices.Condition;
import io.kvasir.gateway.discovery.FoundWorkers.Found;
import io.kvasir.gateway.upstream.Discovery;
import io.kvasir.registry.kubernetes.KubernetesAccess;
import io.kvasir.registry.kubernetes.KubernetesClient;
import io.kvasir.registry.kubernetes.KubernetesResources;
import io.kvasir.registry.kubernetes.KubernetesStore;
import io.kvasir.registry.kubernetes.ResourceWatch;

import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Workers of Kubernetes: endpoints of EndpointSlices with certain labels, or registrations in
 * custom resources. Where both are followed, a registration says what a worker is, and the slices
 * whether its pod is ready: a pod that is in no slice is ready by its registration alone, and one
 * that has not registered is no worker. While the API server does not answer, those known last
 * stay.
 *
 * <p>A watch each; one thread publishes, nothing before each has been listed or has failed.
 */
final class KubernetesDiscovery implements Discovery {
    private final Publication publication =
            new Publication("kubernetes", (all, problems) -> collect(all, problems));
    private final Slices slices; // null: no slices are watched
    private final ResourceWatch watch; // likewise
    private final KubernetesStore store; // null: no registrations are
    private final WatchedRegistrations registrations; // likewise

    /**
     * What the slices are.
     *
     * @param selector labels that they have
     * @param meaning of them
     */
    record Endpoints(String selector, EndpointSlices meaning) {}

    /**
     * Which registrations count.
     *
     * @param namespace theirs
     * @param models other models' are left to other gateways
     * @param onPlane whether the gateway is on an event plane
     */
    record Registered(
            KubernetesStore store, String namespace, Set<String> models, boolean onPlane) {}

    /**
     * Asks nothing before {@link #start}.
     *
     * @param endpointsOrNull null: no slices are watched
     * @param registeredOrNull null: no registrations are; its store is closed with this
     */
    KubernetesDiscovery(
            KubernetesAccess access, Endpoints endpointsOrNull, Registered registeredOrNull) {
        slices =
                endpointsOrNull == null
                        ? null
                        : new Slices(
                                endpointsOrNull.meaning, this::publishSoon, publication::failed);
        watch =
                endpointsOrNull == null
                        ? null
                        : new ResourceWatch(
                                new KubernetesClient(access),
                                KubernetesResources.endpointSlices(endpointsOrNull.selector),
                                "kvasir-kubernetes-slices",
                                slices);
        store = registeredOrNull == null ? null : registeredOrNull.store;
        registrations =
                registeredOrNull == null
                        ? null
                        : new WatchedRegistrations(
                                store,
                                registeredOrNull.namespace,
                                registeredOrNull.models,
                                registeredOrNull.onPlane,
                                publication,
                                this::publishSoon);
    }

    /**
     * The source that a configuration describes.
     *
     * @throws IllegalArgumentException if server or namespace are not known
     */
    static KubernetesDiscovery of(GatewayConfig config) {
        final KubernetesAccess access =
                KubernetesAccess.of(
                        config.get(GatewaySettings.DISCOVERY_KUBERNETES_SERVER),
                        config.get(GatewaySettings.DISCOVERY_KUBERNETES_ACCOUNT),
                        config.get(GatewaySettings.DISCOVERY_KUBERNETES_NAMESPACE));
        final String selector = config.get(GatewaySettings.DISCOVERY_KUBERNETES_SELECTOR);
        return new KubernetesDiscovery(
                access,
                selector == null
                        ? null
                        : new Endpoints(selector, new EndpointSlices(EndpointSlices.ports(config))),
                config.get(GatewaySettings.DISCOVERY_KUBERNETES_RESOURCES)
                        ? new Registered(
                                new KubernetesStore(
                                        access, config.get(GatewaySettings.DISCOVERY_TTL), null),
                                config.get(GatewaySettings.DISCOVERY_NAMESPACE),
                                config.models().stream()
                                        .map(model -> model.get(GatewaySettings.MODEL))
                                        .collect(Collectors.toSet()),
                                config.get(GatewaySettings.EVENT_PLANE) != EventPlaneKind.OFF)
                        : null);
    }

    private void startRegistrations() {
        store.onOwner(this::publishSoon);
        registrations.start();
    }

    @Override
    public String source() {
        return "kubernetes";
    }

    @Override
    public void start(Listener to) {
        publication.start(
                to,
                () -> {
                    if (watch != null) {
                        watch.start();
                    }
                    if (registrations != null) {
                        startRegistrations();
                    }
                });
    }

    private boolean isSettled() {
        return (slices == null || slices.isSettled())
                && (registrations == null || registrations.isSettled());
    }

    private void publishSoon() {
        if (isSettled()) {
            publication.soon();
        }
    }

    private void collect(Map<String, Found> all, Map<String, String> problems) {
        if (!isSettled()) {
            return; // something has failed, and is said
        }
        if (registrations == null) {
            all.putAll(slices.workers(problems));
            return;
        }
        final Map<String, Condition> conditions = slices == null ? Map.of() : slices.conditions();
        registrations.collect(
                (r, found) -> {
                    final Condition condition =
                            conditions.getOrDefault(store.podUid(r.id().key()), Condition.READY);
                    if (condition != Condition.GONE) {
                        all.put(
                                found.worker().name(),
                                new Found(
                                        found.worker(),
                                        found.ready() && condition == Condition.READY));
                    }
                },
                problems);
    }

    /** The API server tells of changes by itself. */
    @Override
    public void reload() {
        // watched
    }

    @Override
    public void close() {
        publication.close();
        if (watch != null) {
            watch.close();
        }
        if (registrations != null) {
            registrations.close();
        }
    }
}

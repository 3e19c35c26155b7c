package io.kvasir.gateway.discovery;

import io.kvasir.gateway.discovery.FoundWorkers.Found;
import io.kvasir.gateway.upstream.Discovery;
import io.kvasir.registry.LeasedStore;

import java.util.Map;
import java.util.Set;

/**
 * The workers that register themselves in a store ({@link LeasedStore}) under the gateway's models,
 * in one namespace. While the store does not answer, those known last stay; nothing is published
 * before it has been read or has failed.
 *
 * <p>The store's thread marks that something has changed; one thread of this source publishes.
 */
final class RegistryDiscovery implements Discovery {
    private final String source;
    private final Publication publication;
    private final WatchedRegistrations registrations;

    /**
     * Watches from {@link #start} on.
     *
     * @param store closed with this
     * @param namespace whose instances count
     * @param models other models' instances are left to other gateways
     * @param onPlane whether the gateway is on an event plane
     */
    RegistryDiscovery(LeasedStore store, String namespace, Set<String> models, boolean onPlane) {
        source = store.kind();
        publication = new Publication(source, this::collect);
        registrations =
                new WatchedRegistrations(
                        store, namespace, models, onPlane, publication, this::publishSoon);
    }

    private void collect(Map<String, Found> all, Map<String, String> problems) {
        registrations.collect((_, found) -> all.put(found.worker().name(), found), problems);
    }

    private void publishSoon() {
        if (registrations.isSettled()) {
            publication.soon();
        }
    }

    @Override
    public String source() {
        return source;
    }

    @Override
    public void start(Listener to) {
        publication.start(to, registrations::start);
    }

    /** Publishes again; the store tells of changes by itself. */
    @Override
    public void reload() {
        publishSoon();
    }

    @Override
    public void close() {
        publication.close();
        registrations.close();
    }
}

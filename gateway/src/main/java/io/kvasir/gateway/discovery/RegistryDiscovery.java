package io.kvasir.gateway.discovery;

import io.kvasir.gateway.upstream.Discovery;
import io.kvasir.registry.InstanceId;
import io.kvasir.registry.InstanceView;
import io.kvasir.registry.LeasedStore;

import java.util.Set;

/**
 * The workers that register themselves in a store ({@link LeasedStore}) under the gateway's models,
 * in one namespace. While the store does not answer, those known last stay; nothing is published
 * before it has been read or has failed.
 *
 * <p>The store's thread marks that something has changed; one thread of this source publishes.
 */
final class RegistryDiscovery implements Discovery {
    private final LeasedStore store;
    private final String namespace;
    private final Publication publication;
    private final InstanceView instances;
    private volatile boolean isSettled;

    /**
     * Watches from {@link #start} on.
     *
     * @param store closed with this
     * @param namespace whose instances count
     * @param models other models' instances are left to other gateways
     * @param onPlane whether the gateway is on an event plane
     */
    RegistryDiscovery(LeasedStore store, String namespace, Set<String> models, boolean onPlane) {
        this.store = store;
        this.namespace = namespace;
        instances = new InstanceView(new Heard());
        final Registrations registrations = new Registrations(instances, models, onPlane);
        publication =
                new Publication(
                        store.kind(),
                        (all, problems) ->
                                registrations.collect(
                                        (r, found) -> all.put(found.worker().name(), found),
                                        problems));
    }

    /** Takes what the store says; its thread must not wait. */
    private final class Heard implements InstanceView.Listener {
        @Override
        public void changed() {
            publishSoon();
        }

        @Override
        public void refused(String cause) {
            publication.refused(cause);
            publishSoon();
        }

        @Override
        public void lost(String cause) {
            isSettled = true;
            publication.failed(cause);
        }

        @Override
        public void found() {
            isSettled = true;
            publishSoon();
        }
    }

    private void publishSoon() {
        if (isSettled) {
            publication.soon();
        }
    }

    @Override
    public String source() {
        return store.kind();
    }

    @Override
    public void start(Listener to) {
        publication.start(to, () -> store.watch(InstanceId.prefix(namespace), instances));
    }

    /** Publishes again; the store tells of changes by itself. */
    @Override
    public void reload() {
        publishSoon();
    }

    @Override
    public void close() {
        publication.close();
        store.close();
    }
}

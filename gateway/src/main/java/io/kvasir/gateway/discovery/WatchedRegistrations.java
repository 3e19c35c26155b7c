package io.kvasir.gateway.discovery;

import io.kvasir.gateway.discovery.FoundWorkers.Found;
import io.kvasir.registry.InstanceId;
import io.kvasir.registry.InstanceView;
import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.Registration;

import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;

/**
 * The registrations of one namespace in a store, as the store's thread sees them change. They count
 * as {@link #isSettled settled} once the store has been read or has failed; what it says is passed
 * on without waiting.
 */
final class WatchedRegistrations implements AutoCloseable {
    private final LeasedStore store;
    private final String namespace;
    private final Publication publication;
    private final Runnable changed;
    private final InstanceView instances;
    private final Registrations registrations;
    private volatile boolean isSettled;

    /**
     * Watches from {@link #start} on.
     *
     * @param store closed with this
     * @param namespace whose instances count
     * @param models other models' instances are left to other gateways
     * @param onPlane whether the gateway is on an event plane
     * @param publication gets failures and refusals
     * @param changed called by the store's thread after each change; does not wait
     */
    WatchedRegistrations(
            LeasedStore store,
            String namespace,
            Set<String> models,
            boolean onPlane,
            Publication publication,
            Runnable changed) {
        this.store = store;
        this.namespace = namespace;
        this.publication = publication;
        this.changed = changed;
        instances = new InstanceView(new Changes());
        registrations = new Registrations(instances, models, onPlane);
    }

    /** Takes what the store says; its thread must not wait. */
    private final class Changes implements InstanceView.Listener {
        @Override
        public void changed() {
            changed.run();
        }

        @Override
        public void refused(String cause) {
            publication.refused(cause);
            changed.run();
        }

        @Override
        public void lost(String cause) {
            isSettled = true;
            publication.failed(cause);
        }

        @Override
        public void found(Duration away) {
            isSettled = true;
            if (!away.isZero()) {
                publication.recovered(away);
            }
            changed.run();
        }
    }

    void start() {
        store.watch(InstanceId.prefix(namespace), instances);
    }

    boolean isSettled() {
        return isSettled;
    }

    /** As {@link Registrations#collect}, for the one thread that publishes. */
    void collect(BiConsumer<Registration, Found> each, Map<String, String> problems) {
        registrations.collect(each, problems);
    }

    @Override
    public void close() {
        store.close();
    }
}

package io.kvasir.gateway.discovery;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.discovery.FoundWorkers.Found;
import io.kvasir.gateway.upstream.Discovery;
import io.kvasir.registry.InstanceId;
import io.kvasir.registry.InstanceState;
import io.kvasir.registry.InstanceView;
import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.Registration;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * The workers that register themselves in a store ({@link LeasedStore}) under the gateway's model,
 * in one namespace. While the store does not answer, those known last stay.
 *
 * <p>The store's thread marks that something has changed; one thread of this source publishes: what
 * comes while it does is published together.
 */
final class RegistryDiscovery implements Discovery {
    private static final Logger LOG = LoggerFactory.getLogger(RegistryDiscovery.class);
    private static final long FIRST_VIEW_MS = 5_000;

    private final LeasedStore store;
    private final String namespace;
    private final String model;
    private final InstanceView instances;
    private final Queue<String> causes = new ConcurrentLinkedQueue<>();
    private final CountDownLatch first = new CountDownLatch(1);
    private final Set<String> saidCauses = new HashSet<>(); // of the publishing thread
    private final Thread thread;
    private IdentityHashMap<Registration, DiscoveredWorker> workers =
            new IdentityHashMap<>(); // likewise; by registration
    private Listener listener;
    private FoundWorkers found;
    private boolean isDirty; // guarded by this
    private boolean closed; // guarded by this

    /**
     * Watches from {@link #start} on.
     *
     * @param store closed with this
     * @param namespace whose instances count
     * @param model other models' instances are left to other gateways
     */
    RegistryDiscovery(LeasedStore store, String namespace, String model) {
        this.store = store;
        this.namespace = namespace;
        this.model = model;
        instances = new InstanceView(new Heard());
        thread =
                Thread.ofPlatform()
                        .daemon()
                        .name("kvasir-discovery-" + store.kind())
                        .unstarted(this::run);
    }

    /** Notes what the store says; its thread must not wait. */
    private final class Heard implements InstanceView.Listener {
        @Override
        public void changed() {
            publishSoon();
        }

        @Override
        public void refused(String cause) {
            causes.add(cause);
            publishSoon();
        }

        @Override
        public void lost(String cause) {
            causes.add(cause);
            publishSoon();
            first.countDown();
        }

        @Override
        public void found() {
            publishSoon();
        }
    }

    @Override
    public String source() {
        return store.kind();
    }

    @Override
    public void start(Listener to) {
        listener = to;
        found = new FoundWorkers(to);
        thread.start();
        store.watch(InstanceId.prefix(namespace), instances);
        try {
            if (!first.await(FIRST_VIEW_MS, TimeUnit.MILLISECONDS)) {
                to.failed("no answer of " + store.kind() + " yet");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private synchronized void publishSoon() {
        isDirty = true;
        notifyAll();
    }

    /** False once it is closed. */
    private synchronized boolean awaitChange() throws InterruptedException {
        while (!isDirty && !closed) {
            wait();
        }
        isDirty = false;
        return !closed;
    }

    private void run() {
        try {
            while (awaitChange()) {
                publish();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closing
        }
    }

    private void publish() {
        for (String cause = causes.poll(); cause != null; cause = causes.poll()) {
            listener.failed(cause);
        }
        final Map<String, Registration> chosen = new TreeMap<>();
        final Map<String, String> problems = new HashMap<>();
        for (Registration each : instances.instances()) {
            if (each.model().equals(model)) {
                choose(each, chosen, problems);
            }
        }
        final Map<String, Found> all = new TreeMap<>();
        final IdentityHashMap<Registration, DiscoveredWorker> next = new IdentityHashMap<>();
        chosen.forEach(
                (name, r) -> {
                    try {
                        final DiscoveredWorker before = workers.get(r);
                        final DiscoveredWorker worker =
                                before == null ? RegisteredWorkers.of(r) : before;
                        next.put(r, worker);
                        all.put(name, new Found(worker, r.state() == InstanceState.READY));
                    } catch (IllegalArgumentException e) {
                        problems.put(r.id().key(), r.id() + " is left out: " + e.getMessage());
                    }
                });
        workers = next;
        saidCauses.retainAll(problems.values());
        problems.values().stream().filter(saidCauses::add).forEach(listener::failed);
        try {
            found.publish(all.values());
        } catch (RuntimeException e) {
            LOG.error("the workers of {} could not be applied", source(), e);
            listener.failed(e.toString());
        }
        first.countDown();
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

    /** Publishes again; the store tells of changes by itself. */
    @Override
    public void reload() {
        publishSoon();
    }

    @Override
    public void close() {
        synchronized (this) {
            closed = true;
            notifyAll();
        }
        thread.interrupt();
        store.close();
    }
}

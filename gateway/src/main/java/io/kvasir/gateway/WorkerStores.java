package io.kvasir.gateway;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.discovery.Discoveries;
import io.kvasir.gateway.discovery.RegisteredWorkers;
import io.kvasir.gateway.upstream.Discovery;
import io.kvasir.gateway.upstream.FileDiscovery;
import io.kvasir.gateway.upstream.NatsAccesses;
import io.kvasir.registry.FailureText;
import io.kvasir.registry.Registration;

import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/**
 * The stores in which a gateway of a configuration finds workers, read once as the gateway reads
 * them, without one.
 */
public final class WorkerStores {
    private WorkerStores() {}

    /**
     * What one store has said.
     *
     * @param source file, nats, etcd or kubernetes
     * @param place where it is, without passwords
     * @param failures why it could not be read, or not all of it; empty where it was
     * @param refusals what it holds that cannot be used, by key, and why
     * @param workers those that a gateway would use
     */
    public record View(
            String source,
            String place,
            List<String> failures,
            List<String> refusals,
            List<DiscoveredWorker> workers) {
        /** Keeps copies. */
        public View {
            failures = List.copyOf(failures);
            refusals = List.copyOf(refusals);
            workers = List.copyOf(workers);
        }
    }

    /**
     * Reads them all at once, and closes them without being waited for.
     *
     * @param limit how long the first view of each is waited for
     * @return one for each, in the order in which a gateway starts them; empty where the
     *     configuration names none
     * @throws GatewayException if a source cannot be made of the configuration
     */
    public static List<View> read(GatewayConfig config, Duration limit)
            throws InterruptedException {
        final List<Look> looks = new ArrayList<>();
        final Path file = config.get(GatewaySettings.WORKERS_FILE);
        if (file != null) {
            looks.add(
                    new Look(
                            file.toString(),
                            new FileDiscovery(
                                    file,
                                    config.get(GatewaySettings.MODEL),
                                    config.get(GatewaySettings.WORKERS_FILE_INTERVAL))));
        }
        for (Discovery each : Discoveries.of(config)) {
            looks.add(new Look(place(each.source(), config), each));
        }
        final long endNs = System.nanoTime() + limit.toNanos();
        looks.forEach(Look::begin);
        final List<View> views = new ArrayList<>();
        for (Look look : looks) {
            views.add(look.end(endNs));
        }
        return views;
    }

    /**
     * Checks a registration before it is stored.
     *
     * @throws IllegalArgumentException if no gateway can use it: each would leave the worker out
     */
    public static void check(Registration registration) {
        var _ = RegisteredWorkers.of(registration, false);
    }

    private static String place(String source, GatewayConfig config) {
        return switch (source) {
            case "nats" ->
                    NatsAccesses.of(config).address()
                            + " bucket "
                            + config.get(GatewaySettings.DISCOVERY_NATS_BUCKET);
            case "etcd" ->
                    config.get(GatewaySettings.DISCOVERY_ETCD_ENDPOINTS).stream()
                                    .map(String::valueOf)
                                    .collect(Collectors.joining(","))
                            + " prefix "
                            + config.get(GatewaySettings.DISCOVERY_ETCD_PREFIX);
            default -> {
                final URI server = config.get(GatewaySettings.DISCOVERY_KUBERNETES_SERVER);
                yield server == null ? "the cluster of this pod" : server.toString();
            }
        };
    }

    /** One store; its source is started and closed by a thread of its own. */
    private static final class Look implements Discovery.Listener {
        private final String place;
        private final Discovery source;
        private final CountDownLatch answered = new CountDownLatch(1);
        private final CountDownLatch left = new CountDownLatch(1);
        private final List<String> failures = new ArrayList<>(); // guarded by this
        private final List<String> refusals = new ArrayList<>(); // likewise
        private List<DiscoveredWorker> workers; // likewise; null before the first view

        Look(String place, Discovery source) {
            this.place = place;
            this.source = source;
        }

        void begin() {
            Thread.ofPlatform()
                    .daemon()
                    .name("kvasir-worker-store-" + source.source())
                    .start(this::run);
        }

        private void run() {
            try (source) {
                source.start(this);
                left.await();
            } catch (RuntimeException | Error e) {
                failed(FailureText.of(e));
                answered.countDown();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt(); // the process ends
            }
        }

        /** Waits for the first view. */
        View end(long endNs) throws InterruptedException {
            try {
                if (!answered.await(endNs - System.nanoTime(), TimeUnit.NANOSECONDS)) {
                    failed("no answer");
                }
                return view();
            } finally {
                left.countDown();
            }
        }

        private synchronized View view() {
            return new View(
                    source.source(),
                    place,
                    failures,
                    refusals,
                    workers == null ? List.of() : workers);
        }

        @Override
        public synchronized void view(List<DiscoveredWorker> all) {
            if (workers == null) {
                workers = List.copyOf(all);
                answered.countDown();
            }
        }

        @Override
        public boolean added(DiscoveredWorker worker) {
            return false; // these sources publish views
        }

        @Override
        public boolean removed(String worker) {
            return false;
        }

        @Override
        public void draining(String worker, boolean draining) {
            // of workers in the view
        }

        @Override
        public synchronized void failed(String cause) {
            if (workers == null) {
                failures.add(cause);
            }
        }

        @Override
        public synchronized void refused(String cause) {
            if (workers == null) {
                refusals.add(cause);
            }
        }
    }
}

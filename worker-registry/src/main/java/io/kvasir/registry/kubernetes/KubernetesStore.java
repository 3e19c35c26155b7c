package io.kvasir.registry.kubernetes;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.registry.LeaseTtl;
import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.RegistryException;
import io.kvasir.registry.RegistryException.Kind;
import io.kvasir.registry.Stored;

import java.time.Clock;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;

/**
 * Registrations in custom resources of Kubernetes ({@code KvasirWorker}), an object each, renewed
 * by being written again. Values of other kinds are refused. The API server itself refuses an older
 * generation in place of a newer one, and a document that is no registration.
 *
 * <p>Kubernetes ends no lease by itself: readers see by it that the object is no longer renewed;
 * the next run of the instance replaces it, and where a pod owns it Kubernetes deletes it with the
 * pod.
 *
 * <p>With a watch, two daemon threads: one watches, one looks for leases that are due and asks now
 * and then whether the API server answers, since a watch is silent when nothing happens.
 */
public final class KubernetesStore implements LeasedStore {
    private static final int CHECKS_PER_TTL = 3;
    private static final long DUE_CHECK_NS = 500_000_000L;
    private static final long CLOSE_PATIENCE_MS = 5_000;

    private final KubernetesAccess access;
    private final Duration ttl;
    private final OwnerPod podOrNull;
    private final KubernetesResources resources;
    private final KubernetesClient client;
    private final Clock clock = Clock.systemUTC();
    private WatchedWorkers watched; // null without a watch; guarded by this
    private ResourceWatch watch; // likewise
    private Thread checking; // likewise
    private volatile Runnable onOwner = () -> {};
    private volatile boolean closed;

    /**
     * Connects with the first call.
     *
     * @param access where the API server is
     * @param ttl of leases, 1 s..1 h; full seconds, else the next
     * @param podOrNull owner of what is put; null for none
     */
    public KubernetesStore(KubernetesAccess access, Duration ttl, OwnerPod podOrNull) {
        LeaseTtl.check(ttl);
        this.access = access;
        this.ttl = ttl;
        this.podOrNull = podOrNull;
        resources =
                new KubernetesResources(
                        WorkerResource.GROUP, WorkerResource.VERSION, WorkerResource.PLURAL, "");
        client = new KubernetesClient(access);
    }

    @Override
    public String kind() {
        return "kubernetes";
    }

    @Override
    public Duration ttl() {
        return ttl;
    }

    /**
     * UID of the pod that owns the resource of a key, as far as the watch knows.
     *
     * @return empty where that is not known, or none does
     */
    public String podUid(String key) {
        final WatchedWorkers in;
        synchronized (this) {
            in = watched;
        }
        return in == null ? "" : in.podUid(key);
    }

    /**
     * Has what depends on {@link #podUid} be looked at again where a pod becomes the owner of a
     * resource that says the same as before. Call before {@link #watch}.
     *
     * @param changed runs on the watch's thread; does not block
     */
    public void onOwner(Runnable changed) {
        onOwner = changed;
    }

    // -- one key

    @Override
    public Stored get(String key) {
        try {
            final WorkerResource there = read(key);
            return there == null || there.hasEnded(clock.instant()) ? null : there.stored();
        } catch (KubernetesException e) {
            throw failure(e);
        }
    }

    private WorkerResource read(String key) throws KubernetesException {
        final JsonNode object = client.get(resources, WorkerResource.name(key));
        return object == null ? null : new WorkerResource(object);
    }

    private JsonNode object(String key, byte[] value, String version) {
        return WorkerResource.of(key, value, version, clock.instant(), ttl, podOrNull);
    }

    @Override
    public long put(String key, byte[] value, long revision) {
        return revision == ABSENT ? make(key, value) : write(key, value, revision);
    }

    private long make(String key, byte[] value) {
        final JsonNode object = object(key, value, null);
        try {
            final long made = create(object);
            return made == CONFLICT && deleteEnded(key) ? create(object) : made;
        } catch (KubernetesException e) {
            throw failure(e);
        }
    }

    private long create(JsonNode object) throws KubernetesException {
        try {
            return revision(client.create(resources, object));
        } catch (KubernetesException e) {
            return conflictOrThrow(e);
        }
    }

    /** An object whose lease has ended leaves its name to the next; true if there is none now. */
    private boolean deleteEnded(String key) throws KubernetesException {
        final WorkerResource there = read(key);
        return there == null
                || (there.hasEnded(clock.instant()) && deleted(there.name(), there.version()));
    }

    private long write(String key, byte[] value, long revision) {
        try {
            return revision(
                    client.replace(
                            resources,
                            WorkerResource.name(key),
                            object(key, value, Long.toString(revision))));
        } catch (KubernetesException e) {
            if (e.isNotFound()) {
                return CONFLICT;
            }
            try {
                return conflictOrThrow(e);
            } catch (KubernetesException other) {
                throw failure(other);
            }
        }
    }

    private static long conflictOrThrow(KubernetesException e) throws KubernetesException {
        if (e.isConflict()) {
            return CONFLICT;
        }
        throw e;
    }

    private static long revision(JsonNode object) {
        return new WorkerResource(object).stored().revision();
    }

    /** Nothing is shared: each object has its own lease. */
    @Override
    public void keepAlive() {
        // renew does it
    }

    @Override
    public long renew(String key, byte[] value, long revision) {
        return write(key, value, revision);
    }

    @Override
    public boolean delete(String key, long revision) {
        try {
            return deleted(WorkerResource.name(key), Long.toString(revision));
        } catch (KubernetesException e) {
            throw failure(e);
        }
    }

    private boolean deleted(String name, String version) throws KubernetesException {
        try {
            client.delete(resources, name, version);
            return true;
        } catch (KubernetesException e) {
            if (e.isNotFound() || e.isConflict()) {
                return false;
            }
            throw e;
        }
    }

    private static RegistryException failure(KubernetesException e) {
        final Kind kind =
                e.isDenied()
                        ? Kind.DENIED
                        : e.isRefusedBySchema() ? Kind.MALFORMED : Kind.UNAVAILABLE;
        return new RegistryException(kind, "Kubernetes: " + e.getMessage(), e);
    }

    // -- the watch

    @Override
    public synchronized void watch(String keys, Watcher watcher) {
        if (watch != null || closed) {
            throw new IllegalStateException("watched already, or closed: " + resources);
        }
        watched = new WatchedWorkers(keys, watcher, clock, System::nanoTime, onOwner);
        watch =
                new ResourceWatch(
                        new KubernetesClient(access),
                        resources,
                        "kvasir-kubernetes-workers",
                        watched);
        watch.start();
        checking =
                Thread.ofPlatform()
                        .daemon()
                        .name("kvasir-kubernetes-check")
                        .unstarted(new Check(watched, watch));
        checking.start();
    }

    /** Has all be listed where a lease is due, and where the API server does not answer. */
    private final class Check implements Runnable {
        private final WatchedWorkers in;
        private final ResourceWatch of;

        Check(WatchedWorkers in, ResourceWatch of) {
            this.in = in;
            this.of = of;
        }

        @Override
        public void run() {
            final long everyNs = ttl.toNanos() / CHECKS_PER_TTL;
            final long pauseNs = Math.min(DUE_CHECK_NS, everyNs);
            long checkedNs = System.nanoTime();
            while (!closed) {
                LockSupport.parkNanos(pauseNs);
                final boolean isTime = System.nanoTime() - checkedNs > everyNs;
                if (isTime) {
                    checkedNs = System.nanoTime();
                }
                if (!closed && (in.isOneDue() || (isTime && !answers()))) {
                    of.listAnew();
                }
            }
        }

        private boolean answers() {
            try {
                client.check(resources);
                return true;
            } catch (KubernetesException | RuntimeException | Error e) { // all is listed then
                return false;
            }
        }
    }

    @Override
    public void close() {
        final ResourceWatch watching;
        final Thread check;
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
            watching = watch;
            check = checking;
        }
        if (watching != null) {
            check.interrupt();
            watching.close();
        }
        client.close();
        join(check);
    }

    private static void join(Thread thread) {
        try {
            if (thread != null) {
                thread.join(CLOSE_PATIENCE_MS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}

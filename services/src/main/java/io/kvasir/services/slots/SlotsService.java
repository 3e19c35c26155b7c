package io.kvasir.services.slots;

import io.kvasir.core.closing.Closing;
import io.kvasir.router.replica.ReplicaConfig;
import io.kvasir.router.replica.ReplicaOrigin;
import io.kvasir.router.replica.ReplicaStatus;
import io.kvasir.router.replica.ReplicaSync;
import io.kvasir.services.http.Housekeeping;
import io.kvasir.services.http.RequestObserver;
import io.kvasir.services.http.ServiceServer;

import java.io.IOException;
import java.time.Clock;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The slot tracker as a program of its own: callers register workers, say over HTTP which requests
 * run where, and ask for loads. One object is one service; all methods may be called by any thread.
 */
public final class SlotsService implements AutoCloseable {
    private static final int MOST_BODY_BYTES = 8 << 20;
    private static final Duration EXPIRY_INTERVAL = Duration.ofSeconds(1);

    /**
     * In place of the hash of a block of zeros, by which replicas know each other's hashes: those
     * of callers are sequence hashes, whatever their seed.
     */
    private static final long CALLERS_HASHES = 0x736c6f7473L;

    private final SlotTracker tracker;
    private final ServiceServer server;
    private final SlotsReplication replicationOrNull;
    private final AtomicReference<ReplicaSync> replica = new AtomicReference<>(); // once started
    private volatile Housekeeping expiry; // null before the start

    /**
     * Makes a service that does nothing yet.
     *
     * @throws IllegalArgumentException if a size is out of range
     * @throws OutOfMemoryError if the operating system refuses the memory
     */
    public SlotsService(SlotsConfig config) {
        this(config, null);
    }

    /**
     * Makes a service that shares its requests with other trackers, and does nothing yet.
     *
     * @param replicationOrNull how; its link is closed if this fails. Null for not at all
     * @throws IllegalArgumentException if a size is out of range
     * @throws OutOfMemoryError if the operating system refuses the memory
     */
    public SlotsService(SlotsConfig config, SlotsReplication replicationOrNull) {
        this.replicationOrNull = replicationOrNull;
        try {
            this.tracker =
                    new SlotTracker(
                            config,
                            System::nanoTime,
                            replicationOrNull == null ? 0 : replicationOrNull.maxRequests());
            this.server =
                    new ServiceServer(
                            "slots",
                            config.host(),
                            config.port(),
                            MOST_BODY_BYTES,
                            new SlotsApi(tracker, replicationOrNull != null, this::replicaStatus)
                                    .endpoints(),
                            RequestObserver.NONE);
        } catch (Throwable t) { // refused memory is an Error
            closeLink();
            throw t;
        }
    }

    /**
     * Opens the port.
     *
     * @throws IOException if it cannot be listened on
     */
    public void start() throws IOException {
        try {
            server.start();
            expiry = Housekeeping.start("kvasir-slots-expiry", EXPIRY_INTERVAL, tracker::expire);
            if (replicationOrNull != null) {
                share(replicationOrNull);
            }
        } catch (IOException | RuntimeException e) {
            close();
            throw e;
        }
    }

    private void share(SlotsReplication how) {
        final ReplicaConfig config =
                new ReplicaConfig(
                        ReplicaOrigin.ofNewRun(how.idOrNull(), Clock.systemUTC().instant()),
                        CALLERS_HASHES,
                        how.digest().toNanos(),
                        how.lease().toNanos(),
                        () -> 0); // other makes name no model, so that none of theirs is counted
        final ReplicaSync sync =
                new ReplicaSync(config, how.link(), tracker.replicaPortOrNull(), tracker.fleet());
        replica.set(sync);
        sync.start(System::nanoTime, _ -> {});
    }

    private ReplicaStatus replicaStatus() {
        final ReplicaSync sync = replica.get();
        return sync == null ? ReplicaStatus.NONE : sync.status();
    }

    private void closeLink() {
        final ReplicaSync sync = replica.get(); // has the link
        if (sync != null) {
            sync.close();
        } else if (replicationOrNull != null) {
            replicationOrNull.link().close();
        }
    }

    /** Port that is listened on. */
    public int port() {
        return server.port();
    }

    /** Closes the port and forgets everything. A second call does nothing. */
    @Override
    public void close() {
        Closing.all(server, this::closeLink, expiry, tracker);
    }
}

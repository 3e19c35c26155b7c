package io.kvasir.services.select;

import io.kvasir.core.closing.Closing;
import io.kvasir.services.http.Housekeeping;
import io.kvasir.services.http.RequestObserver;
import io.kvasir.services.http.ServiceServer;
import io.kvasir.services.indexer.DumpEndpoint;
import io.kvasir.services.indexer.IndexRegistry;
import io.kvasir.services.indexer.IndexSizes;
import io.kvasir.services.slots.SlotTracker;

import java.io.IOException;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.SplittableRandom;

/**
 * The selection service as a program of its own: callers name workers over HTTP, ask where a prompt
 * should go, and say which requests run where. One object is one service; all methods may be called
 * by any thread.
 */
public final class SelectService implements AutoCloseable {
    private static final int MOST_BODY_BYTES = 8 << 20;
    private static final int MOST_SESSIONS = 65_536;
    private static final Duration EXPIRY_INTERVAL = Duration.ofSeconds(1);

    private final IndexRegistry registry;
    private final SlotTracker tracker;
    private final ServiceServer server;
    private volatile Housekeeping expiry; // null before the start

    /**
     * Makes a service that does nothing yet.
     *
     * @throws IllegalArgumentException if a size is out of range
     */
    public SelectService(SelectConfig config) {
        registry =
                new IndexRegistry(
                        IndexSizes.of(config.slots().maxWorkers(), config.indexBytes()),
                        config.maxModels());
        tracker = new SlotTracker(config.slots(), System::nanoTime);
        final WorkerCatalogue workers =
                new WorkerCatalogue(registry, tracker, config.slots().maxWorkers());
        server =
                new ServiceServer(
                        "select",
                        config.slots().host(),
                        config.slots().port(),
                        MOST_BODY_BYTES,
                        new SelectApi(
                                        workers,
                                        tracker,
                                        new Chooser(
                                                registry,
                                                tracker,
                                                workers,
                                                new SplittableRandom(new SecureRandom().nextLong()),
                                                new Sessions(
                                                        config.sessionTtl(),
                                                        config.sessionMode(),
                                                        MOST_SESSIONS,
                                                        System::nanoTime)),
                                        new PendingSelections(
                                                config.maxSelections(),
                                                config.selectionTtl().toNanos()),
                                        new DumpEndpoint(registry),
                                        System::nanoTime)
                                .endpoints(),
                        RequestObserver.NONE);
    }

    /**
     * Opens the port.
     *
     * @throws IOException if it cannot be listened on
     */
    public void start() throws IOException {
        try {
            server.start();
            expiry = Housekeeping.start("kvasir-select-expiry", EXPIRY_INTERVAL, tracker::expire);
        } catch (IOException | RuntimeException e) {
            close();
            throw e;
        }
    }

    /** Port that is listened on. */
    public int port() {
        return server.port();
    }

    /** Closes the port, ends all sources and forgets everything. A second call does nothing. */
    @Override
    public void close() {
        Closing.all(server, expiry, registry, tracker);
    }
}

package io.kvasir.services.slots;

import io.kvasir.services.http.Housekeeping;
import io.kvasir.services.http.RequestObserver;
import io.kvasir.services.http.ServiceServer;

import org.agrona.CloseHelper;

import java.io.IOException;
import java.time.Duration;

/**
 * The slot tracker as a program of its own: callers register workers, say over HTTP which requests
 * run where, and ask for loads. One object is one service; all methods may be called by any thread.
 */
public final class SlotsService implements AutoCloseable {
    private static final int MOST_BODY_BYTES = 8 << 20;
    private static final Duration EXPIRY_INTERVAL = Duration.ofSeconds(1);

    private final SlotTracker tracker;
    private final ServiceServer server;
    private volatile Housekeeping expiry; // null before the start

    /**
     * Makes a service that does nothing yet.
     *
     * @throws IllegalArgumentException if a size is out of range
     */
    public SlotsService(SlotsConfig config) {
        this.tracker = new SlotTracker(config, System::nanoTime);
        this.server =
                new ServiceServer(
                        "slots",
                        config.host(),
                        config.port(),
                        MOST_BODY_BYTES,
                        new SlotsApi(tracker).endpoints(),
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
            expiry = Housekeeping.start("kvasir-slots-expiry", EXPIRY_INTERVAL, tracker::expire);
        } catch (IOException | RuntimeException e) {
            close();
            throw e;
        }
    }

    /** Port that is listened on. */
    public int port() {
        return server.port();
    }

    /** Closes the port and forgets everything. A second call does nothing. */
    @Override
    public void close() {
        CloseHelper.closeAll(server, expiry, tracker);
    }
}

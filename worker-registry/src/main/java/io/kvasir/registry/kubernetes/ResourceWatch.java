package io.kvasir.registry.kubernetes;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.registry.FailureText;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Follows the objects of a kind: they are listed once and watched from there, and listed again
 * where the API server no longer knows the version, or did not answer. One daemon thread.
 */
public final class ResourceWatch implements AutoCloseable {
    private static final long RETRY_MS = 200;
    private static final long MAX_RETRY_MS = 5_000;

    /** A watch that lasts so long is a good one, though nothing happened. */
    private static final long LASTING_NS = 10_000_000_000L;

    private static final long CLOSE_PATIENCE_MS = 5_000;

    /** Hears of objects, on the watch's thread. It first gets a view; after a loss, too. */
    public interface Listener {
        /** All objects that are there; others are no more. */
        void view(List<JsonNode> all);

        /** An object is there, or has been written anew. */
        void changed(JsonNode object);

        /** An object has been deleted. */
        void deleted(JsonNode object);

        /**
         * The API server does not answer, or refuses. Once an outage, which ends with a watch that
         * tells something or lasts a while.
         */
        void lost(String cause);

        /** All could not be listed: others may not have reached the API server, either. */
        void unlisted();
    }

    private final KubernetesClient client;
    private final KubernetesResources resources;
    private final Listener listener;
    private final Thread thread;
    private volatile boolean isToBeListed;
    private volatile boolean closed;
    private long retryMs = RETRY_MS; // of the thread, as isLost
    private boolean isLost;

    /**
     * Asks nothing before {@link #start}.
     *
     * @param client for this watch alone; closed with it
     */
    public ResourceWatch(
            KubernetesClient client,
            KubernetesResources resources,
            String threadName,
            Listener listener) {
        this.client = client;
        this.resources = resources;
        this.listener = listener;
        thread = Thread.ofPlatform().daemon().name(threadName).unstarted(this::run);
    }

    /** Begins. */
    public void start() {
        thread.start();
    }

    /** Has all objects listed anew, soon. */
    public void listAnew() {
        isToBeListed = true;
        client.endWatch();
    }

    private void run() {
        String version = null; // null: list first
        while (!closed) {
            try {
                if (version == null || isToBeListed) {
                    isToBeListed = false;
                    version = listed();
                }
                version = watched(version);
            } catch (KubernetesException | RuntimeException | Error e) {
                version = null;
                lose(e);
            }
            pause();
        }
    }

    private void lose(Throwable e) {
        if (isLost || closed || isGone(e)) {
            return;
        }
        isLost = true;
        listener.lost(
                e instanceof KubernetesException
                        ? e.getMessage()
                        : resources + " could not be applied: " + FailureText.of(e));
    }

    /** Longer each time, until a watch is a good one; an end by {@link #listAnew} is none. */
    private void pause() {
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(retryMs));
        if (!isToBeListed) {
            retryMs = Math.min(2 * retryMs, MAX_RETRY_MS);
        }
    }

    private void recover() {
        retryMs = RETRY_MS;
        isLost = false;
    }

    private static boolean isGone(Throwable e) {
        return e instanceof KubernetesException refusal && refusal.isGone();
    }

    /** The version to go on from; null where all are to be listed. */
    private String watched(String version) throws KubernetesException {
        final long beganNs = System.nanoTime();
        try {
            return client.watch(resources, version, this::tell);
        } catch (KubernetesException e) {
            if (isToBeListed || e.isGone()) {
                return null; // ended by this process, or too old: no loss
            }
            throw e;
        } finally {
            if (System.nanoTime() - beganNs > LASTING_NS) {
                recover();
            }
        }
    }

    private String listed() throws KubernetesException {
        final List<JsonNode> all = new ArrayList<>();
        final String version;
        try {
            version = client.list(resources, all::add);
        } catch (KubernetesException e) {
            if (!e.isGone()) {
                listener.unlisted();
            }
            throw e;
        }
        listener.view(all);
        return version;
    }

    private void tell(JsonNode event) {
        final JsonNode object = event.path("object");
        switch (event.path("type").asText()) {
            case "BOOKMARK" -> {} // nothing has changed
            case "DELETED" -> listener.deleted(object);
            default -> listener.changed(object);
        }
        recover();
    }

    @Override
    public void close() {
        closed = true;
        thread.interrupt();
        client.close();
        try {
            thread.join(CLOSE_PATIENCE_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}

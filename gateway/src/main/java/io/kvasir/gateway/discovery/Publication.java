package io.kvasir.gateway.discovery;

import io.kvasir.gateway.discovery.FoundWorkers.Found;
import io.kvasir.gateway.upstream.Discovery;
import io.kvasir.registry.FailureText;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Publishes the view of a source from one daemon thread: other threads say that something has
 * changed, or has failed, and what comes while it publishes is published together. What cannot be
 * used is said once while it holds.
 */
final class Publication implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Publication.class);
    private static final long FIRST_VIEW_MS = 5_000;

    /** What there is now; called by the publishing thread. */
    interface Source {
        /**
         * Collects the workers.
         *
         * @param all gets them, by their names
         * @param problems gets what cannot be used, and why, by any key
         */
        void collect(Map<String, Found> all, Map<String, String> problems);
    }

    private final String name;
    private final Source source;
    private final Queue<String> causes = new ConcurrentLinkedQueue<>(); // of failures
    private final Queue<String> refusals = new ConcurrentLinkedQueue<>();
    private final CountDownLatch first = new CountDownLatch(1);
    private final Set<String> said = new HashSet<>(); // of the publishing thread
    private final Thread thread;
    private Discovery.Listener listener;
    private FoundWorkers found;
    private boolean isDirty; // guarded by this
    private boolean closed; // guarded by this

    /**
     * Publishes nothing before {@link #start}.
     *
     * @param name of the source
     */
    Publication(String name, Source source) {
        this.name = name;
        this.source = source;
        thread = Thread.ofPlatform().daemon().name("kvasir-discovery-" + name).unstarted(this::run);
    }

    /**
     * Begins, and waits a while for the first view or the first failure.
     *
     * @param sources starts what says that something has changed
     */
    void start(Discovery.Listener to, Runnable sources) {
        listener = to;
        found = new FoundWorkers(to);
        thread.start();
        sources.run();
        try {
            if (!first.await(FIRST_VIEW_MS, TimeUnit.MILLISECONDS)) {
                to.failed("no answer of " + name + " yet");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Something has changed. Does not wait. */
    synchronized void soon() {
        isDirty = true;
        notifyAll();
    }

    /** Something failed, which is said. Does not wait. */
    void failed(String cause) {
        causes.add(cause);
        soon();
    }

    /** Something cannot be used, which is said with the next view. Does not wait. */
    void refused(String cause) {
        refusals.add(cause);
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
        try {
            for (String cause = causes.poll(); cause != null; cause = causes.poll()) {
                listener.failed(cause);
            }
            for (String cause = refusals.poll(); cause != null; cause = refusals.poll()) {
                listener.refused(cause);
            }
            final Map<String, String> problems = new HashMap<>();
            final Map<String, Found> all = new TreeMap<>();
            source.collect(all, problems);
            said.retainAll(problems.values());
            problems.values().stream().filter(said::add).forEach(listener::refused);
            found.publish(all.values());
        } catch (RuntimeException | Error e) { // an Error too is of this view alone
            LOG.error("the workers of {} could not be applied", name, e);
            listener.failed("the workers could not be applied: " + FailureText.of(e));
        }
        first.countDown();
    }

    @Override
    public void close() {
        synchronized (this) {
            closed = true;
            notifyAll();
        }
        thread.interrupt();
    }
}

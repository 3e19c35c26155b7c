package io.kvasir.cli.demo;

import io.kvasir.cli.console.Shutdown;
import io.kvasir.router.policy.RoutingMode;

/**
 * Runs one cluster at a time. When the JVM is asked to end, the work with the one that runs is
 * interrupted, the cluster is closed without waiting for its requests, and none is started any
 * more. Used by one thread, which the JVM's shutdown thread interrupts.
 */
public final class ClusterHolder {
    private final Shutdown shutdown = Shutdown.of(this::end);
    private final Object lock = new Object();
    private Cluster running; // all three guarded by lock
    private Thread worker;
    private boolean isEnding;

    /** Something to do with a cluster. */
    @FunctionalInterface
    public interface Work<T> {
        /** Does it; the cluster runs meanwhile. */
        T run(Cluster cluster) throws InterruptedException;
    }

    /**
     * Starts a cluster, does the work on the calling thread and closes the cluster.
     *
     * @throws InterruptedException when the JVM is asked to end before the work is done
     */
    public <T> T during(Cluster.Plan plan, RoutingMode mode, Work<T> work)
            throws InterruptedException {
        begin();
        try {
            final Cluster cluster = Cluster.start(plan, mode);
            hold(cluster);
            return work.run(cluster);
        } finally {
            final Cluster left = release();
            if (left != null) {
                left.close();
            }
        }
    }

    /** Blocks until the JVM is asked to end. */
    public int await() throws InterruptedException {
        synchronized (lock) {
            worker = null; // to wait for the end is no work that it breaks off
        }
        return shutdown.await();
    }

    /** Ends what runs, for good. */
    void end() {
        final Cluster cluster;
        synchronized (lock) {
            isEnding = true;
            if (worker != null) {
                worker.interrupt();
            }
            cluster = running;
            running = null;
        }
        if (cluster != null) {
            cluster.cut();
        }
    }

    private void begin() throws InterruptedException {
        synchronized (lock) {
            if (isEnding) {
                throw new InterruptedException();
            }
            worker = Thread.currentThread();
        }
    }

    private void hold(Cluster cluster) throws InterruptedException {
        synchronized (lock) {
            if (!isEnding) {
                running = cluster;
                return;
            }
        }
        cluster.cut();
        throw new InterruptedException();
    }

    private Cluster release() {
        synchronized (lock) {
            final Cluster cluster = running;
            running = null;
            worker = null;
            return cluster;
        }
    }
}

package io.kvasir.cli.demo;

import io.kvasir.cli.console.Shutdown;
import io.kvasir.router.policy.RoutingMode;

import java.util.concurrent.atomic.AtomicReference;

/** Runs one cluster at a time and closes the one that runs when the JVM is asked to end. */
public final class ClusterHolder {
    private final AtomicReference<Cluster> running = new AtomicReference<>();
    private final Shutdown shutdown = Shutdown.of(this::close);

    /** Something to do with a cluster. */
    @FunctionalInterface
    public interface Work<T> {
        /** Does it; the cluster runs meanwhile. */
        T run(Cluster cluster) throws InterruptedException;
    }

    /** Starts a cluster, does the work on the calling thread and closes the cluster. */
    public <T> T during(Cluster.Plan plan, RoutingMode mode, Work<T> work)
            throws InterruptedException {
        final Cluster cluster = Cluster.start(plan, mode);
        running.set(cluster);
        try {
            return work.run(cluster);
        } finally {
            close();
        }
    }

    /** Blocks until the JVM is asked to end. */
    public int await() throws InterruptedException {
        return shutdown.await();
    }

    private void close() {
        final Cluster cluster = running.getAndSet(null);
        if (cluster != null) {
            cluster.close();
        }
    }
}

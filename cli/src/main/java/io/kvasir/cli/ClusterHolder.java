package io.kvasir.cli;

import io.kvasir.router.RoutingMode;

import java.util.concurrent.atomic.AtomicReference;

/** Runs one cluster at a time and closes the one that runs when the JVM is told to end. */
final class ClusterHolder {
    private final AtomicReference<Cluster> running = new AtomicReference<>();
    private final Shutdown shutdown = Shutdown.of(this::close);

    /** Something to do with a cluster. */
    @FunctionalInterface
    interface Work<T> {
        T run(Cluster cluster) throws InterruptedException;
    }

    /** Starts a cluster, does the work on the calling thread and closes the cluster. */
    <T> T during(Cluster.Plan plan, RoutingMode mode, Work<T> work) throws InterruptedException {
        final Cluster cluster = Cluster.start(plan, mode);
        running.set(cluster);
        try {
            return work.run(cluster);
        } finally {
            close();
        }
    }

    /** Blocks until the JVM is told to end. */
    int await() throws InterruptedException {
        return shutdown.await();
    }

    private void close() {
        final Cluster cluster = running.getAndSet(null);
        if (cluster != null) {
            cluster.close();
        }
    }
}

package io.kvasir.cli.demo;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.sim.config.SimConfig;

import org.junit.jupiter.api.Test;

import java.net.ConnectException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** What becomes of a cluster, and of the work with it, when the JVM is asked to end. */
class ClusterHolderTest {
    private static final long LIMIT_S = 120;

    private final Cluster.Plan plan =
            new Cluster.Plan(
                    "127.0.0.1",
                    0,
                    Cluster.Plan.same(1, () -> SimConfig.builder().build()),
                    GatewayConfig::builder);

    @Test
    void workIsInterruptedItsClusterClosedAndNoneStartedAfterThat() throws Exception {
        final ClusterHolder holder = new ClusterHolder();
        final CompletableFuture<URI> running = new CompletableFuture<>();
        final CompletableFuture<Throwable> ended = new CompletableFuture<>();
        Thread.ofVirtual()
                .start(
                        () ->
                                ended.complete(
                                        assertThrows(
                                                InterruptedException.class,
                                                () ->
                                                        holder.during(
                                                                plan,
                                                                RoutingMode.KV,
                                                                cluster ->
                                                                        waits(cluster, running)))));
        final URI url = running.get(LIMIT_S, TimeUnit.SECONDS);
        holder.end();
        assertEquals(InterruptedException.class, ended.get(LIMIT_S, TimeUnit.SECONDS).getClass());
        assertThrows(
                ConnectException.class,
                () -> new Socket(InetAddress.getLoopbackAddress(), url.getPort()).close());
        assertThrows(
                InterruptedException.class,
                () ->
                        holder.during(
                                plan,
                                RoutingMode.KV,
                                _ -> {
                                    throw new AssertionError("started after the end");
                                }));
    }

    private static int waits(Cluster cluster, CompletableFuture<URI> running)
            throws InterruptedException {
        running.complete(cluster.url());
        new CountDownLatch(1).await();
        return 0;
    }
}

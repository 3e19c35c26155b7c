package io.kvasir.gateway.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.core.memory.ClosedException;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.router.Lease;
import io.kvasir.router.queue.QueueException;
import io.kvasir.router.queue.QueueRank;
import io.kvasir.router.queue.RouterQueue;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/**
 * Settings that begin or end to have requests wait, pools whose routers are made, and the ends of
 * queues and routers, in any order: a pool has a queue from the first settings on that need one,
 * and once the queues are closed nothing waits any more, whichever queue it is.
 */
class PoolRoutersModelTest {
    private static final int TRIALS = Trials.of(3, 30);
    private static final int STEPS = 14;

    @Tag("trials")
    @Test
    void nothingWaitsOnceTheQueuesAreClosed() {
        final long seed = Seeds.next("PoolRoutersModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            final List<String> trace = new ArrayList<>();
            final GatewayConfig config = config(trial % 2 == 0).running();
            try (PoolRouters routers = new PoolRouters(config)) {
                run(new Random(seed + trial), config, routers, trace);
            } catch (RuntimeException | AssertionError e) {
                throw new AssertionError("trial " + trial + " of " + seed + ": " + trace, e);
            }
        }
    }

    private static GatewayConfig config(boolean waits) {
        final GatewayConfig.Builder config = Gateways.config();
        if (waits) {
            config.set(RouterSettings.QUEUE_THRESHOLD, 1.0);
        }
        return config.build();
    }

    private static void run(
            Random random, GatewayConfig config, PoolRouters routers, List<String> trace) {
        boolean queuesClosed = false;
        boolean closed = false;
        long version = 1;
        for (int step = 0; step < STEPS; step++) {
            switch (random.nextInt(8)) {
                case 0, 1, 2, 3 -> {
                    final boolean waits = random.nextBoolean();
                    trace.add(waits ? "wait" : "do not wait");
                    config.take(config(waits));
                    routers.settingsChanged(++version);
                }
                case 4, 5 -> {
                    trace.add("make the prefill router");
                    if (closed) {
                        assertThrows(
                                ClosedException.class, () -> routers.ready(WorkerPool.PREFILL));
                    } else {
                        routers.ready(WorkerPool.PREFILL);
                    }
                }
                case 6 -> {
                    trace.add("close the queues");
                    routers.closeQueues();
                    queuesClosed = true;
                }
                default -> {
                    if (random.nextInt(3) == 0) {
                        trace.add("close");
                        routers.close();
                        queuesClosed = true;
                        closed = true;
                    }
                }
            }
            for (WorkerPool pool : WorkerPool.values()) {
                final RouterQueue queue = routers.queueOrNull(pool);
                if (queuesClosed) {
                    assertRefuses(queue);
                } else if (routers.of(pool) != null
                        && RouterQueue.isNeeded(routers.of(pool).settings())) {
                    assertNotNull(queue, () -> "no queue of " + pool);
                }
            }
        }
    }

    private static void assertRefuses(RouterQueue queueOrNull) {
        if (queueOrNull != null) {
            final CompletableFuture<Lease> admitted =
                    queueOrNull.admit(request -> request.tokens(new int[16], 16), QueueRank.USUAL);
            final Throwable why =
                    assertThrows(CompletionException.class, () -> admitted.getNow(null)).getCause();
            assertEquals(
                    QueueException.Kind.CLOSED, assertInstanceOf(QueueException.class, why).kind());
        }
    }
}

package io.kvasir.cli;

import io.kvasir.pipeline.source.RemovalRule;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.router.KvRouter;
import io.kvasir.router.RouterConfig;
import io.kvasir.router.WorkerSpec;
import io.kvasir.router.settings.RouterSettings;

import java.nio.file.Path;
import java.time.Duration;

/** A router that follows engines and saves what they hold; run on its own, until it is killed. */
final class FollowingRouter {
    private static final Duration READY = Duration.ofMinutes(1);

    private FollowingRouter() {}

    /** Interval for an index in a mapped file instead of snapshots. */
    static final int MAPPED = -1;

    /** A router with a folder of state, and a worker for each pair of endpoints. */
    static KvRouter start(Path state, int intervalMs, String... endpoints) {
        final RouterConfig.Builder builder =
                KvRouter.builder().blockSize(16).maxBlocks(50_000, 100_000);
        if (intervalMs == MAPPED) {
            builder.set(RouterSettings.STATE_MAPPED_DIR, state);
        } else {
            builder.set(RouterSettings.STATE_DIR, state)
                    .set(RouterSettings.SNAPSHOT_INTERVAL, Duration.ofMillis(intervalMs));
        }
        final KvRouter router = builder.build();
        for (int i = 0; i < endpoints.length; i += 2) {
            router.addWorker(
                    new WorkerSpec(
                            i,
                            "w-" + i / 2,
                            "http://w",
                            0,
                            SourceConfig.of("w-" + i / 2, 0, 16, endpoints[i])
                                    .withReplayEndpoint(endpoints[i + 1])
                                    .withRemovals(RemovalRule.PHYSICAL)));
        }
        return router;
    }

    /**
     * Folder, interval in ms or {@link #MAPPED}, then endpoints; says when it is ready and goes on
     * for ever.
     */
    public static void main(String[] args) throws InterruptedException {
        final String[] endpoints = new String[args.length - 2];
        System.arraycopy(args, 2, endpoints, 0, endpoints.length);
        final KvRouter router = start(Path.of(args[0]), Integer.parseInt(args[1]), endpoints);
        router.awaitReady(READY);
        System.out.println("ready");
        Thread.sleep(READY.multipliedBy(10));
        router.close();
    }
}

package io.kvasir.cli;

import io.kvasir.pipeline.source.RemovalRule;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.router.KvRouter;
import io.kvasir.router.RouterSettings;
import io.kvasir.router.WorkerSpec;

import java.nio.file.Path;
import java.time.Duration;

/** A router that follows engines and saves what they hold; run on its own, until it is killed. */
final class FollowingRouter {
    private static final Duration READY = Duration.ofMinutes(1);

    private FollowingRouter() {}

    /** A router with a folder of state, and a worker for each pair of endpoints. */
    static KvRouter start(Path state, int intervalMs, String... endpoints) {
        final KvRouter router =
                KvRouter.builder()
                        .blockSize(16)
                        .maxBlocks(50_000, 100_000)
                        .set(RouterSettings.STATE_DIR, state)
                        .set(RouterSettings.SNAPSHOT_INTERVAL, Duration.ofMillis(intervalMs))
                        .build();
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

    /** Folder, interval in ms, then endpoints; says when it is ready and goes on for ever. */
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

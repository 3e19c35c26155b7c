package io.kvasir.cli.cluster;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.config.EventPlaneKind;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Worker;
import io.kvasir.router.settings.RouterSettings;

import java.time.Duration;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

/** A gateway among replicas on an event plane, run on its own until it is killed. */
final class ReplicaProcess {
    /** Asks for what the index holds: {@code NAME:STATE:HASH,HASH NAME:...}. */
    static final String INDEX = "index";

    /** Asks for the load: {@code peers=N NAME=REQUESTS/TOKENS/BLOCKS NAME=...}. */
    static final String LOADS = "loads";

    /** Asks for counters, for people. */
    static final String STATUS = "status";

    private static final int AT_ONCE = 4_096;

    private ReplicaProcess() {}

    /** Port, addresses of NATS, number among the replicas, then workers. */
    public static void main(String[] args) throws Exception {
        final GatewayConfig.Builder config =
                GatewayConfig.builder()
                        .set(GatewaySettings.HOST, "127.0.0.1")
                        .set(GatewaySettings.PORT, Integer.parseInt(args[0]))
                        .set(GatewaySettings.ADMIN_PORT, 0L)
                        .set(GatewaySettings.MODEL, "m")
                        .set(GatewaySettings.NIXL_LIBRARY, GatewaySettings.NIXL_OFF)
                        .set(GatewaySettings.HEALTH_INTERVAL, Duration.ofMillis(200))
                        .set(GatewaySettings.NATS_URL, args[1])
                        .set(GatewaySettings.EVENT_PLANE, EventPlaneKind.JETSTREAM)
                        .set(GatewaySettings.EVENT_STREAM_REPLICAS, 3)
                        .set(GatewaySettings.REPLICA_SYNC, true)
                        .set(RouterSettings.ROUTER_ID, Long.parseLong(args[2]))
                        .set(RouterSettings.REPLICA_DIGEST, Duration.ofMillis(200))
                        .set(RouterSettings.REPLICA_LEASE, Duration.ofSeconds(3))
                        .set(RouterSettings.BLOCK_SIZE, EngineProcess.BLOCK)
                        .set(RouterSettings.MAX_BLOCKS, 16_384L)
                        .set(RouterSettings.MAX_HELD_BLOCKS, 32_768L)
                        .set(RouterSettings.MAX_ACTIVE_REQUESTS, 1_024)
                        .set(RouterSettings.MAX_WORKERS, 8);
        for (int i = 3; i < args.length; i++) {
            config.worker(WorkerConfig.parse(args[i]));
        }
        final GatewayServer gateway = GatewayServer.start(config.build());
        Child.serve(
                question ->
                        switch (question) {
                            case INDEX -> index(gateway.router());
                            case LOADS -> loads(gateway.router());
                            default -> gateway.router().status().toString();
                        });
    }

    private static String index(KvRouter router) throws InterruptedException {
        final StringBuilder out = new StringBuilder();
        for (Worker worker : router.workers()) {
            final Set<Long> names = new TreeSet<>();
            for (int from = 0; from != PrefixIndex.NO_MORE_RUNS; ) {
                from =
                        router.indexPipeline()
                                .visitRuns(
                                        worker.slot(),
                                        from,
                                        AT_ONCE,
                                        (_, _, engineHashes, _, count) -> {
                                            for (int i = 0; i < count; i++) {
                                                names.add(engineHashes[i]);
                                            }
                                        });
            }
            out.append(worker.name()).append(':').append(worker.state()).append(':');
            out.append(names.stream().map(String::valueOf).collect(Collectors.joining(",")));
            out.append(' ');
        }
        return out.toString();
    }

    private static String loads(KvRouter router) {
        return "peers="
                + router.status().replicaOrNull().peers()
                + " "
                + router.workers().stream()
                        .map(
                                w ->
                                        w.name()
                                                + "="
                                                + w.activeRequests()
                                                + "/"
                                                + w.prefillTokens()
                                                + "/"
                                                + w.activeBlocks())
                        .collect(Collectors.joining(" "));
    }
}

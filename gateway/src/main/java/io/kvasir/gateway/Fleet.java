package io.kvasir.gateway;

import io.kvasir.pipeline.SourceConfig;
import io.kvasir.router.KvRouter;
import io.kvasir.router.RouterSettings;
import io.kvasir.router.Worker;
import io.kvasir.router.WorkerSpec;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;

/**
 * The configured servers and the router's workers that they are. Fixed at start; safe from any
 * thread.
 */
final class Fleet {
    private final EjectionLimit ejections;
    private final List<Upstream> upstreams;
    private final List<Worker> workers;
    private final IdentityHashMap<Worker, Upstream> byWorker = new IdentityHashMap<>();

    /** Registers every rank of every configured worker. */
    Fleet(GatewayConfig config, KvRouter router) {
        final BreakerRules rules = BreakerRules.of(config);
        ejections = new EjectionLimit(config.get(GatewaySettings.PANIC_PERCENT));
        final List<Upstream> servers = new ArrayList<>();
        final List<Worker> all = new ArrayList<>();
        for (int id = 0; id < config.get(GatewaySettings.WORKERS).size(); id++) {
            final WorkerConfig worker = config.get(GatewaySettings.WORKERS).get(id);
            final List<Worker> ranks = new ArrayList<>();
            for (int rank = 0; rank < worker.dataParallelSize(); rank++) {
                ranks.add(
                        router.addWorker(
                                new WorkerSpec(
                                        id,
                                        worker.name(),
                                        worker.url().toString(),
                                        rank,
                                        source(
                                                worker,
                                                rank,
                                                config.get(RouterSettings.BLOCK_SIZE)))));
            }
            final Upstream upstream =
                    new Upstream(worker, ranks, router, rules, this::healthChanged);
            servers.add(upstream);
            all.addAll(ranks);
            ranks.forEach(w -> byWorker.put(w, upstream));
        }
        upstreams = List.copyOf(servers);
        workers = List.copyOf(all);
    }

    private static SourceConfig source(WorkerConfig worker, int rank, int blockSize) {
        if (worker.events() == null) {
            return null;
        }
        return SourceConfig.of(worker.name(), 0, blockSize, worker.events(rank))
                .withDpRank(rank)
                .withBind(worker.eventsBind())
                .withReplayEndpoint(worker.replay(rank))
                .withTopic(worker.topic())
                .withRemovals(worker.removals());
    }

    /** Most tokens of a prompt that some worker takes, unknown until all have said it. */
    int maxModelLength() {
        int most = AnswerReader.UNKNOWN;
        for (Upstream upstream : upstreams()) {
            if (upstream.maxModelLength() == AnswerReader.UNKNOWN) {
                return AnswerReader.UNKNOWN;
            }
            most = Math.max(most, upstream.maxModelLength());
        }
        return most;
    }

    private synchronized void healthChanged() {
        ejections.apply(upstreams);
    }

    List<Upstream> upstreams() {
        return upstreams;
    }

    /** Every rank, in order of configuration. */
    List<Worker> workers() {
        return workers;
    }

    Upstream of(Worker worker) {
        return byWorker.get(worker);
    }
}

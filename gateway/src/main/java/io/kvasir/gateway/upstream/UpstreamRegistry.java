package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.EventPlaneKind;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.HandoffProtocol;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.config.WorkerRole;
import io.kvasir.gateway.log.LogText;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.prompt.chat.PromptRules;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Worker;
import io.kvasir.router.WorkerSpec;
import io.kvasir.router.policy.CandidateWorker;
import io.kvasir.router.queue.RouterQueue;
import io.kvasir.router.settings.RouterSettings;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The servers of one model and the workers of its routers that they are, in two pools. The {@link
 * Fleet} adds and removes them while requests run. A request holds its {@link Upstream} and ends on
 * it, also after its removal. Readers, of any thread, take no lock; the fleet's lock guards all
 * that changes.
 */
public final class UpstreamRegistry {
    private static final Logger LOG = LoggerFactory.getLogger(UpstreamRegistry.class);

    private final GatewayConfig config;
    private final PoolRouters routers;
    private volatile BreakerRules rules;
    private final UsableServers usable; // guarded by itself
    private final LearnedModels learned = new LearnedModels(); // guarded by usable
    private final ConcurrentHashMap<Long, Upstream> byId = new ConcurrentHashMap<>();
    private volatile View view = View.EMPTY; // written under the fleet's lock
    private final AtomicInteger takingTokens = new AtomicInteger(); // servers that do
    private volatile Capabilities capabilities = Capabilities.NONE; // written under usable
    private volatile LearnedModels.Together learnedTogether =
            LearnedModels.Together.NOTHING; // likewise

    /** What readers see. One server more costs no copy of the others. */
    private record View(
            AppendedList<Upstream> upstreams,
            Map<WorkerPool, AppendedList<Upstream>> byPool,
            Map<WorkerPool, AppendedList<Worker>> workers) {
        static final View EMPTY = new View(new AppendedList<>(), emptyPools(), emptyPools());

        private static <E> Map<WorkerPool, AppendedList<E>> emptyPools() {
            final Map<WorkerPool, AppendedList<E>> pools = new EnumMap<>(WorkerPool.class);
            for (WorkerPool pool : WorkerPool.values()) {
                pools.put(pool, new AppendedList<>());
            }
            return pools;
        }

        View with(Upstream upstream) {
            final WorkerPool pool = upstream.pool();
            AppendedList<Worker> ranks = workers.get(pool);
            for (Worker rank : upstream.ranks()) {
                ranks = ranks.with(rank);
            }
            return new View(
                    upstreams.with(upstream),
                    changed(byPool, pool, byPool.get(pool).with(upstream)),
                    changed(workers, pool, ranks));
        }

        View without(Upstream upstream) {
            final WorkerPool pool = upstream.pool();
            AppendedList<Worker> ranks = workers.get(pool);
            for (Worker rank : upstream.ranks()) {
                ranks = ranks.without(rank);
            }
            return new View(
                    upstreams.without(upstream),
                    changed(byPool, pool, byPool.get(pool).without(upstream)),
                    changed(workers, pool, ranks));
        }

        private static <E> Map<WorkerPool, AppendedList<E>> changed(
                Map<WorkerPool, AppendedList<E>> pools, WorkerPool pool, AppendedList<E> now) {
            final Map<WorkerPool, AppendedList<E>> all = new EnumMap<>(pools);
            all.put(pool, now);
            return all;
        }
    }

    /**
     * Registers servers with the routers of their pools.
     *
     * @param config of the model
     */
    public UpstreamRegistry(GatewayConfig config, PoolRouters routers) {
        this.config = config;
        this.routers = routers;
        rules = BreakerRules.of(config);
        usable =
                new UsableServers(
                        new EjectionLimit(() -> config.get(GatewaySettings.PANIC_PERCENT)));
    }

    /** Name of the model that the servers have. */
    public String model() {
        return config.get(GatewaySettings.MODEL);
    }

    /** Overlap weight of the model's shadow policy; below 0 for none. */
    public double shadowOverlapWeight() {
        return config.get(GatewaySettings.SHADOW_OVERLAP_WEIGHT);
    }

    /** The configuration has other values. */
    public void settingsChanged() {
        rules = BreakerRules.of(config);
        recount(usable::limitChanged);
    }

    private void serverChanged(Upstream upstream) {
        recount(
                () -> {
                    usable.changed(upstream);
                    learned.changed(upstream);
                });
    }

    private void recount(Runnable change) {
        synchronized (usable) {
            final boolean before = canSplit();
            change.run();
            capabilities = usable.capabilities();
            learnedTogether = learned.together();
            if (canSplit() != before) {
                LOG.info(
                        "requests for {} are {} between prefill and decode workers",
                        LogText.of(model()),
                        before ? "no longer split" : "split");
            }
        }
    }

    /**
     * The router of a pool, made if there is none.
     *
     * @throws IllegalArgumentException if it cannot be made
     */
    KvRouter readyRouter(WorkerPool pool) {
        try {
            return routers.ready(pool);
        } catch (GatewayException e) {
            throw new IllegalArgumentException(e.getMessage(), e);
        }
    }

    /**
     * Checks that a worker fits into its pool.
     *
     * @param formerOrNull the one that it is to replace
     * @throws IllegalArgumentException if not
     */
    void checkRoom(DiscoveredWorker described, Upstream formerOrNull) {
        final WorkerPool pool = WorkerPool.of(described.role());
        final boolean isReplaced =
                formerOrNull != null
                        && formerOrNull.pool() == pool
                        && formerOrNull.model().equals(model());
        final int ranks =
                workers(pool).size()
                        - (isReplaced ? formerOrNull.ranks().size() : 0)
                        + described.worker().dataParallelSize();
        if (ranks > config.get(RouterSettings.MAX_WORKERS)) {
            // without the number of those that are there, which changes with each other worker
            final int own = described.worker().dataParallelSize();
            throw new IllegalArgumentException(
                    "the "
                            + pool.spelling()
                            + " pool has no room for "
                            + (own == 1 ? "another worker" : own + " workers more")
                            + " (dp ranks counted), max-workers="
                            + config.get(RouterSettings.MAX_WORKERS)
                            + "; raise it or remove a worker");
        }
    }

    /**
     * Checks what can be known of a server before it is registered.
     *
     * @param router of its pool
     * @throws IllegalArgumentException if the router would not take it
     */
    void check(DiscoveredWorker described, KvRouter router) {
        final WorkerConfig worker = described.worker();
        for (int rank = 0; rank < worker.dataParallelSize(); rank++) {
            router.checkWorker(spec(worker, 0, rank), worker.adapters().names());
        }
    }

    /**
     * A server that can be probed, and is none of these: it has no worker in the router.
     *
     * @param id as of those
     * @param router of its pool
     */
    Upstream unregistered(DiscoveredWorker described, long id, KvRouter router) {
        return new Upstream(described.worker(), "", id, router, false, () -> rules, upstream -> {});
    }

    /**
     * Registers a server.
     *
     * @param id greater than all before
     * @param router of its pool
     * @param admitted whether it may be used before it has answered
     * @throws IllegalArgumentException if the router does not take it
     */
    Upstream register(
            DiscoveredWorker described, String source, long id, KvRouter router, boolean admitted) {
        final WorkerConfig worker = described.worker();
        if (worker.planeOrNull() != null
                && config.get(GatewaySettings.KV_EVENTS)
                && config.get(GatewaySettings.EVENT_PLANE) == EventPlaneKind.OFF) {
            LOG.warn(
                    "worker {} has event-worker={}, and event-plane is off: it has no events here",
                    described.name(),
                    worker.planeOrNull());
        }
        final Upstream upstream =
                new Upstream(
                        worker, source, id, router, admitted, () -> rules, this::serverChanged);
        byId.put(id, upstream); // before the router can choose one of its ranks
        countTakingTokens(upstream, 1); // likewise: requests are read so that it can be sent them
        final List<Worker> ranks = new ArrayList<>();
        try {
            for (int rank = 0; rank < worker.dataParallelSize(); rank++) {
                ranks.add(router.addWorker(spec(worker, id, rank)));
                upstream.ranks(ranks);
            }
        } catch (IllegalStateException | IllegalArgumentException e) {
            ranks.forEach(router::removeWorker);
            byId.remove(id);
            countTakingTokens(upstream, -1);
            throw new IllegalArgumentException(e.getMessage(), e);
        }
        view = view.with(upstream); // the newest of all, so the order is that of their ids
        recount(
                () -> {
                    usable.added(upstream);
                    learned.added(upstream);
                });
        return upstream;
    }

    private WorkerSpec spec(WorkerConfig worker, long id, int rank) {
        final WorkerSpec spec =
                new WorkerSpec(
                        id,
                        worker.name(),
                        worker.url().toString(),
                        rank,
                        config.get(GatewaySettings.KV_EVENTS)
                                ? source(worker, rank, config.get(RouterSettings.BLOCK_SIZE))
                                : null,
                        WorkerTaints.of(worker),
                        config.get(GatewaySettings.EVENT_PLANE) == EventPlaneKind.OFF
                                ? null
                                : worker.plane(rank),
                        worker.labels());
        return spec.tainted(worker.taints());
    }

    private static SourceConfig source(WorkerConfig worker, int rank, int blockSize) {
        if (worker.events() == null) {
            return null;
        }
        return SourceConfig.of(worker.name(), 0, blockSize, worker.events(rank))
                .withDpRank(worker.eventRank() + rank)
                .withBind(worker.eventsBind())
                .withReplayEndpoint(worker.replay(rank))
                .withTopic(worker.topic())
                .withRemovals(worker.removals())
                .withLoraNumbers(worker.adapters().numbers());
    }

    /** Has a registered server be none any more. */
    void remove(Upstream upstream) {
        upstream.ranks().forEach(routers.of(upstream.pool())::removeWorker);
        byId.remove(upstream.id());
        countTakingTokens(upstream, -1);
        view = view.without(upstream);
        recount(
                () -> {
                    usable.removed(upstream);
                    learned.removed(upstream);
                });
    }

    private void countTakingTokens(Upstream upstream, int more) {
        if (upstream.takesTokens()) {
            takingTokens.addAndGet(more);
        }
    }

    /** Whether a server is registered that is sent token ids. One volatile read. */
    public boolean hasTokensWorkers() {
        return takingTokens.get() > 0;
    }

    /** Whether a server is registered that answers requests and is sent text. */
    public boolean hasTextWorkers() {
        for (Upstream upstream : upstreams(WorkerPool.MAIN)) {
            if (!upstream.takesTokens()) {
                return true;
            }
        }
        return false;
    }

    /** Whether a server of the model is, or was, there to compute prompts or to take them over. */
    public boolean handsBlocksOver() {
        return routerOrNull(WorkerPool.PREFILL) != null
                || upstreams(WorkerPool.MAIN).stream()
                        .anyMatch(upstream -> upstream.role() == WorkerRole.DECODE);
    }

    /** Whether the gateway can turn texts of the model into token ids. */
    boolean hasTokenizer() {
        return config.get(GatewaySettings.TOKENIZER) != null;
    }

    /**
     * Most tokens of a prompt that some worker of the main pool takes, unknown until all have said
     * it. One volatile read.
     */
    public int maxModelLength() {
        return learnedTogether.maxModelLength();
    }

    /**
     * By whose rules prompts are made of chats: SGLang's where servers are known to be that, and
     * none to be another engine. One volatile read.
     */
    public PromptRules promptRules() {
        return learnedTogether.promptRules();
    }

    /** Of all pools, in order of registration. */
    public List<Upstream> upstreams() {
        return view.upstreams;
    }

    /** Of one pool, in order of registration. */
    public List<Upstream> upstreams(WorkerPool pool) {
        return view.byPool.get(pool);
    }

    /** Every rank of a pool, in order of registration. */
    public List<Worker> workers(WorkerPool pool) {
        return view.workers.get(pool);
    }

    /** The router of a pool; null as long as the pool has never had a worker. */
    public KvRouter routerOrNull(WorkerPool pool) {
        return routers.of(pool);
    }

    /** Where requests wait for workers of a pool; null where they do not. */
    public RouterQueue queueOrNull(WorkerPool pool) {
        return routers.queueOrNull(pool);
    }

    /**
     * What the servers that requests are sent to can do at this moment. One volatile read; changes
     * with health, drains and registrations.
     */
    public Capabilities capabilities() {
        return capabilities;
    }

    /**
     * Whether a request can be split: a prefill worker and a decode worker of one protocol can be
     * used. As cheap as {@link #capabilities}.
     */
    public boolean canSplit() {
        return capabilities.canSplit();
    }

    /**
     * Whether a worker is registered that answers a whole request, also one that cannot be used at
     * this moment.
     */
    public boolean hasWhole() {
        return registered().whole();
    }

    /** Whether a pair of a protocol is registered, likewise. */
    public boolean hasPair(HandoffProtocol protocol) {
        return registered().canSplit(protocol);
    }

    private Capabilities registered() {
        return Capabilities.of(view.upstreams, _ -> true);
    }

    /**
     * Taints of prefill workers to which no request must be sent: no decode worker that can be used
     * takes what they hand over.
     */
    public long prefillsWithoutDecode() {
        return WorkerTaints.allProtocolsBut(capabilities.splits());
    }

    /** Whether a worker, of any pool, is known to have an adapter. Two lookups in tables. */
    public boolean hasAdapter(String name) {
        return workersWith(WorkerPool.MAIN, name) + workersWith(WorkerPool.PREFILL, name) > 0;
    }

    /** Workers of a pool that are known to have an adapter. */
    public int workersWith(WorkerPool pool, String adapter) {
        final KvRouter router = routers.of(pool);
        return router == null ? 0 : router.workersWith(adapter);
    }

    /** Whether every server of a pool has said which adapters it has. */
    public boolean listsAdapters(WorkerPool pool) {
        for (Upstream upstream : upstreams(pool)) {
            if (!upstream.listsAdapters()) {
                return false;
            }
        }
        return true;
    }

    /** Names of the adapters that workers of any pool are known to have, sorted. */
    public SortedSet<String> adapters() {
        final SortedSet<String> names = new TreeSet<>();
        for (Upstream upstream : upstreams()) {
            for (Worker rank : upstream.ranks()) {
                names.addAll(rank.adapters());
            }
        }
        return names;
    }

    /** The server of a worker; null once that is removed. */
    public Upstream of(CandidateWorker worker) {
        return byId.get(worker.id());
    }
}

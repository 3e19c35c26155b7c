package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.log.LogText;
import io.kvasir.gateway.openai.UsageReader;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.router.KvRouter;
import io.kvasir.router.RouterSettings;
import io.kvasir.router.Worker;
import io.kvasir.router.WorkerSpec;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;

/**
 * The servers behind the gateway and the workers of its routers that they are, in two pools. {@link
 * Discovery} sources add and remove them while requests run; the last word on a name counts, and
 * may move it to the other pool. A request holds its {@link Upstream} and ends on it, also after
 * its removal. Safe from any thread; readers take no lock.
 */
public final class UpstreamRegistry {
    private static final Logger LOG = LoggerFactory.getLogger(UpstreamRegistry.class);

    private static final long REPLACEMENT_WAIT_NS = 5_000_000_000L;
    private static final long POLL_MS = 5;

    private final GatewayConfig config;
    private final PoolRouters routers;
    private final BreakerRules rules;
    private final UsableServers usable; // guarded by itself
    private final Map<String, Entry> entries = new LinkedHashMap<>(); // guarded by this
    private final Map<String, AtomicLong> failures = new ConcurrentHashMap<>(); // by source
    private final ConcurrentHashMap<Long, Upstream> byId = new ConcurrentHashMap<>();
    private long lastId; // guarded by this
    private boolean closed; // guarded by this
    private Function<Upstream, Runnable> watcher; // guarded by this; null before #watch
    private volatile View view = View.EMPTY;
    private volatile Capabilities capabilities = Capabilities.NONE; // written under usable
    private volatile Runnable onRemoval = () -> {};

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

        long copied() {
            long copied = upstreams.copied();
            for (WorkerPool pool : WorkerPool.values()) {
                copied += byPool.get(pool).copied() + workers.get(pool).copied();
            }
            return copied;
        }
    }

    /** A registered server and what ends its watch. */
    private record Entry(DiscoveredWorker described, Upstream upstream, Runnable endWatch) {}

    /** Registers servers with the routers of their pools. */
    public UpstreamRegistry(GatewayConfig config, PoolRouters routers) {
        this.config = config;
        this.routers = routers;
        rules = BreakerRules.of(config);
        usable = new UsableServers(new EjectionLimit(config.get(GatewaySettings.PANIC_PERCENT)));
    }

    private void healthChanged(Upstream upstream) {
        recount(() -> usable.changed(upstream));
    }

    private void recount(Runnable change) {
        synchronized (usable) {
            final boolean before = canSplit();
            change.run();
            capabilities = usable.capabilities();
            if (canSplit() != before) {
                LOG.info(
                        "requests are {} between prefill and decode workers",
                        before ? "no longer split" : "split");
            }
        }
    }

    /** What a source tells its findings to. */
    public Discovery.Listener listener(String source) {
        failures.put(source, new AtomicLong());
        return new FromSource(source);
    }

    /**
     * Has every server watched that is or will be registered. Those that come from now on are used
     * once they answer.
     *
     * @param begin begins to watch one; gives what ends it
     */
    public synchronized void watch(Function<Upstream, Runnable> begin) {
        watcher = begin;
        entries.replaceAll(
                (name, e) -> new Entry(e.described, e.upstream, begin.apply(e.upstream)));
    }

    /**
     * Has something done after each removal.
     *
     * @param action quick; runs under the registry's lock
     */
    public void onRemoval(Runnable action) {
        onRemoval = action;
    }

    /** One thread a source. */
    private void view(String source, List<DiscoveredWorker> all) {
        final List<DiscoveredWorker> wanted = all.stream().filter(this::isServed).toList();
        final Set<String> names = new HashSet<>();
        boolean changed = false;
        for (DiscoveredWorker worker : wanted) {
            names.add(worker.name());
            try {
                changed |= add(source, worker);
            } catch (IllegalArgumentException e) {
                failed(source, "worker " + worker.name() + " is left out: " + e.getMessage());
            }
        }
        final List<Upstream> obsolete = obsolete(source, names);
        if (changed) {
            awaitSuccessors(obsolete, names);
        }
        obsolete.forEach(upstream -> remove(upstream.name()));
    }

    private synchronized List<Upstream> obsolete(String source, Set<String> wanted) {
        return entries.values().stream()
                .map(Entry::upstream)
                .filter(u -> u.source().equals(source) && !wanted.contains(u.name()))
                .toList();
    }

    /**
     * Where all servers of a pool are replaced, the former ones serve until one of the new ones
     * can.
     */
    private void awaitSuccessors(List<Upstream> obsolete, Set<String> names) {
        final Set<WorkerPool> pools = EnumSet.noneOf(WorkerPool.class);
        obsolete.forEach(upstream -> pools.add(upstream.pool()));
        pools.removeIf(pool -> upstreams(pool).stream().noneMatch(u -> names.contains(u.name())));
        final long startNs = System.nanoTime();
        try {
            while (!pools.stream().allMatch(pool -> isOneInUse(pool, names))
                    && System.nanoTime() - startNs < REPLACEMENT_WAIT_NS) {
                Thread.sleep(POLL_MS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private boolean isOneInUse(WorkerPool pool, Set<String> names) {
        return upstreams(pool).stream().anyMatch(u -> names.contains(u.name()) && u.inUse());
    }

    private boolean isServed(DiscoveredWorker worker) {
        final boolean served = worker.model().equals(config.get(GatewaySettings.MODEL));
        if (!served) {
            LOG.info("not used: {}", otherService(worker));
        }
        return served;
    }

    private String otherService(DiscoveredWorker worker) {
        return "worker "
                + worker.name()
                + " serves "
                + worker.model()
                + ", this gateway routes to workers of "
                + config.get(GatewaySettings.MODEL);
    }

    private synchronized boolean add(String source, DiscoveredWorker described) {
        if (closed) {
            throw new IllegalArgumentException("the gateway is closing");
        }
        if (!isServed(described)) {
            throw new IllegalArgumentException(otherService(described));
        }
        final Entry before = entries.get(described.name());
        if (before != null && before.described.equals(described)) {
            before.upstream.source(source);
            return false;
        }
        final WorkerPool pool = WorkerPool.of(described.role());
        checkRoom(described.worker(), pool);
        final KvRouter router = router(pool); // before the former one of its name is removed
        if (before != null) {
            remove(described.name());
        }
        register(source, described, router);
        return true;
    }

    private KvRouter router(WorkerPool pool) {
        try {
            return routers.ready(pool);
        } catch (GatewayException e) {
            throw new IllegalArgumentException(e.getMessage(), e);
        }
    }

    private void checkRoom(WorkerConfig worker, WorkerPool pool) {
        final Entry before = entries.get(worker.name());
        final boolean isReplaced = before != null && before.upstream.pool() == pool;
        final int ranks =
                workers(pool).size()
                        - (isReplaced ? before.upstream.ranks().size() : 0)
                        + worker.dataParallelSize();
        if (ranks > config.get(RouterSettings.MAX_WORKERS)) {
            throw new IllegalArgumentException(
                    ranks
                            + " workers (dp ranks counted) of the "
                            + pool.spelling()
                            + " pool exceed max-workers="
                            + config.get(RouterSettings.MAX_WORKERS)
                            + "; raise it or remove a worker");
        }
    }

    private void register(String source, DiscoveredWorker described, KvRouter router) {
        final WorkerConfig worker = described.worker();
        final long id = lastId++;
        final Upstream upstream =
                new Upstream(
                        worker, source, id, router, watcher == null, rules, this::healthChanged);
        byId.put(id, upstream); // before the router can choose one of its ranks
        final List<Worker> ranks = new ArrayList<>();
        try {
            for (int rank = 0; rank < worker.dataParallelSize(); rank++) {
                ranks.add(router.addWorker(spec(worker, id, rank)));
                upstream.ranks(ranks);
            }
        } catch (IllegalStateException | IllegalArgumentException e) {
            ranks.forEach(router::removeWorker);
            byId.remove(id);
            throw new IllegalArgumentException(e.getMessage(), e);
        }
        final Runnable endWatch = watcher == null ? () -> {} : watcher.apply(upstream);
        entries.put(worker.name(), new Entry(described, upstream, endWatch));
        view = view.with(upstream); // the newest of all, so the order is that of their ids
        recount(() -> usable.added(upstream));
        LOG.info(
                "worker {} at {} is registered by {}, role {}",
                worker.name(),
                worker.url(),
                source,
                described.role().spelling());
    }

    private WorkerSpec spec(WorkerConfig worker, long id, int rank) {
        return new WorkerSpec(
                id,
                worker.name(),
                worker.url().toString(),
                rank,
                source(worker, rank, config.get(RouterSettings.BLOCK_SIZE)),
                WorkerTaints.of(worker.disaggregation()));
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

    private synchronized boolean remove(String name) {
        final Entry entry = entries.remove(name);
        if (entry == null) {
            return false;
        }
        entry.endWatch.run();
        entry.upstream.ranks().forEach(routers.of(entry.upstream.pool())::removeWorker);
        byId.remove(entry.upstream.id());
        view = view.without(entry.upstream);
        recount(() -> usable.removed(entry.upstream));
        onRemoval.run();
        LOG.info("worker {} at {} is removed", name, entry.upstream.url());
        return true;
    }

    private void failed(String source, String cause) {
        failures.get(source).incrementAndGet();
        LOG.warn("workers from {}: {}", source, LogText.of(cause));
    }

    /**
     * Sends no new request to a server, or does again.
     *
     * @return false if there is none of that name
     */
    public synchronized boolean drain(String name, boolean draining) {
        final Entry entry = entries.get(name);
        if (entry == null) {
            return false;
        }
        entry.upstream.drain(draining);
        LOG.info("worker {} {}", name, draining ? "is drained" : "is used again");
        return true;
    }

    /** Ends all watches, and takes no further server; those that are registered stay. */
    public synchronized void close() {
        closed = true;
        entries.values().forEach(e -> e.endWatch.run());
    }

    /**
     * Most tokens of a prompt that some worker of the main pool takes, unknown until all have said
     * it.
     */
    public int maxModelLength() {
        int most = UsageReader.UNKNOWN;
        for (Upstream upstream : upstreams(WorkerPool.MAIN)) {
            if (upstream.maxModelLength() == UsageReader.UNKNOWN) {
                return UsageReader.UNKNOWN;
            }
            most = Math.max(most, upstream.maxModelLength());
        }
        return most;
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
        return Capabilities.of(view.upstreams, _ -> true).whole();
    }

    /**
     * Taints of prefill workers to which no request must be sent: no decode worker that can be used
     * takes what they hand over.
     */
    public long prefillsWithoutDecode() {
        return WorkerTaints.allProtocolsBut(capabilities.splits());
    }

    /** The server of a worker; null once that is removed. */
    public Upstream of(Worker worker) {
        return byId.get(worker.id());
    }

    /**
     * Elements of what readers see that were copied for those registered since the last removal.
     */
    synchronized long copied() {
        return view.copied();
    }

    /** How often a server was counted as one that can be used or cannot. */
    long counted() {
        synchronized (usable) {
            return usable.changes();
        }
    }

    /** How often a source could not be read or named a worker that cannot be used, by source. */
    public Map<String, AtomicLong> failures() {
        return failures;
    }

    private final class FromSource implements Discovery.Listener {
        private final String source;

        FromSource(String source) {
            this.source = source;
        }

        @Override
        public void view(List<DiscoveredWorker> workers) {
            UpstreamRegistry.this.view(source, workers);
        }

        @Override
        public boolean added(DiscoveredWorker worker) {
            return add(source, worker);
        }

        @Override
        public boolean removed(String name) {
            return remove(name);
        }

        @Override
        public void draining(String name, boolean draining) {
            drain(name, draining);
        }

        @Override
        public void failed(String cause) {
            UpstreamRegistry.this.failed(source, cause + "; what was there before stays");
        }
    }
}

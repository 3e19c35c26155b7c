package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.GatewayConfig;
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
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;

/**
 * The servers behind the gateway and the router's workers that they are. {@link Discovery} sources
 * add and remove them while requests run; the last word on a name counts. A request holds its
 * {@link Upstream} and ends on it, also after its removal. Safe from any thread; readers take no
 * lock.
 */
public final class UpstreamRegistry {
    private static final Logger LOG = LoggerFactory.getLogger(UpstreamRegistry.class);

    private static final long REPLACEMENT_WAIT_NS = 5_000_000_000L;
    private static final long POLL_MS = 5;

    private final GatewayConfig config;
    private final KvRouter router;
    private final BreakerRules rules;
    private final EjectionLimit ejections; // guarded by itself
    private final Map<String, Entry> entries = new LinkedHashMap<>(); // guarded by this
    private final Map<String, AtomicLong> failures = new ConcurrentHashMap<>(); // by source
    private final ConcurrentHashMap<Long, Upstream> byId = new ConcurrentHashMap<>();
    private long lastId; // guarded by this
    private Function<Upstream, Runnable> watcher; // guarded by this; null before #watch
    private volatile View view = new View(List.of(), List.of());
    private volatile Runnable onRemoval = () -> {};

    /** What readers see. */
    private record View(List<Upstream> upstreams, List<Worker> workers) {}

    /** A registered server and what ends its watch. */
    private record Entry(DiscoveredWorker described, Upstream upstream, Runnable endWatch) {}

    /** Registers servers with a router. */
    public UpstreamRegistry(GatewayConfig config, KvRouter router) {
        this.config = config;
        this.router = router;
        rules = BreakerRules.of(config);
        ejections = new EjectionLimit(config.get(GatewaySettings.PANIC_PERCENT));
    }

    private void healthChanged() {
        synchronized (ejections) {
            ejections.apply(upstreams());
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
        final List<String> obsolete = obsolete(source, names);
        if (changed && !obsolete.isEmpty()) {
            awaitOneOf(names);
        }
        obsolete.forEach(this::remove);
    }

    private synchronized List<String> obsolete(String source, Set<String> wanted) {
        return entries.values().stream()
                .filter(
                        e ->
                                e.upstream.source().equals(source)
                                        && !wanted.contains(e.upstream.name()))
                .map(e -> e.upstream.name())
                .toList();
    }

    /** Where all servers are replaced, the former ones serve until one of the new ones can. */
    private void awaitOneOf(Set<String> names) {
        final long startNs = System.nanoTime();
        try {
            while (upstreams().stream().noneMatch(u -> names.contains(u.name()) && u.inUse())
                    && System.nanoTime() - startNs < REPLACEMENT_WAIT_NS) {
                Thread.sleep(POLL_MS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private boolean isServed(DiscoveredWorker worker) {
        final boolean served =
                worker.model().equals(config.get(GatewaySettings.MODEL))
                        && worker.role() == DiscoveredWorker.Role.BOTH;
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
                + " in the role "
                + worker.role().spelling()
                + ", this gateway routes to workers of "
                + config.get(GatewaySettings.MODEL)
                + " in the role both";
    }

    private synchronized boolean add(String source, DiscoveredWorker described) {
        if (!isServed(described)) {
            throw new IllegalArgumentException(otherService(described));
        }
        final Entry before = entries.get(described.name());
        if (before != null && before.described.equals(described)) {
            before.upstream.source(source);
            return false;
        }
        checkRoom(described.worker());
        if (before != null) {
            remove(described.name());
        }
        register(source, described);
        return true;
    }

    private void checkRoom(WorkerConfig worker) {
        int ranks = worker.dataParallelSize();
        for (Entry entry : entries.values()) {
            final boolean isReplaced = entry.upstream.name().equals(worker.name());
            ranks += isReplaced ? 0 : entry.upstream.ranks().size();
        }
        if (ranks > config.get(RouterSettings.MAX_WORKERS)) {
            throw new IllegalArgumentException(
                    ranks
                            + " workers (dp ranks counted) exceed max-workers="
                            + config.get(RouterSettings.MAX_WORKERS)
                            + "; raise it or remove a worker");
        }
    }

    private void register(String source, DiscoveredWorker described) {
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
        publish();
        LOG.info("worker {} at {} is registered by {}", worker.name(), worker.url(), source);
    }

    private WorkerSpec spec(WorkerConfig worker, long id, int rank) {
        return new WorkerSpec(
                id,
                worker.name(),
                worker.url().toString(),
                rank,
                source(worker, rank, config.get(RouterSettings.BLOCK_SIZE)));
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
        entry.upstream.ranks().forEach(router::removeWorker);
        byId.remove(entry.upstream.id());
        publish();
        onRemoval.run();
        LOG.info("worker {} at {} is removed", name, entry.upstream.url());
        return true;
    }

    private void publish() {
        final List<Upstream> upstreams = new ArrayList<>();
        final List<Worker> workers = new ArrayList<>();
        for (Entry entry : entries.values()) {
            upstreams.add(entry.upstream);
            workers.addAll(entry.upstream.ranks());
        }
        upstreams.sort(Comparator.comparingLong(Upstream::id));
        view = new View(List.copyOf(upstreams), List.copyOf(workers));
        healthChanged();
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

    /** Ends all watches; the servers stay. */
    public synchronized void close() {
        entries.values().forEach(e -> e.endWatch.run());
    }

    /** Most tokens of a prompt that some worker takes, unknown until all have said it. */
    public int maxModelLength() {
        int most = UsageReader.UNKNOWN;
        for (Upstream upstream : upstreams()) {
            if (upstream.maxModelLength() == UsageReader.UNKNOWN) {
                return UsageReader.UNKNOWN;
            }
            most = Math.max(most, upstream.maxModelLength());
        }
        return most;
    }

    /** In order of registration. */
    public List<Upstream> upstreams() {
        return view.upstreams;
    }

    /** Every rank, in order of registration. */
    public List<Worker> workers() {
        return view.workers;
    }

    /** The server of a worker; null once that is removed. */
    public Upstream of(Worker worker) {
        return byId.get(worker.id());
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
        public void failed(String cause) {
            UpstreamRegistry.this.failed(source, cause + "; what was there before stays");
        }
    }
}

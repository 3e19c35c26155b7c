package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.log.LogText;
import io.kvasir.router.KvRouter;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.function.Predicate;

/**
 * The servers behind the gateway, those of all its models. {@link Discovery} sources add and remove
 * them while requests run. A name is that of one server, whatever its model; the last word on a
 * name counts, and may move it to another pool or another model. Safe from any thread; readers take
 * no lock.
 */
public final class Fleet {
    private static final Logger LOG = LoggerFactory.getLogger(Fleet.class);

    private static final long REPLACEMENT_WAIT_NS = 5_000_000_000L;
    private static final long POLL_MS = 5;

    private final Map<String, UpstreamRegistry> registries = new LinkedHashMap<>(); // by model
    private final Map<String, Entry> entries = new LinkedHashMap<>(); // guarded by this
    private final Map<String, AtomicLong> failures = new ConcurrentHashMap<>(); // by source
    private final Set<DiscoveredWorker> answered = ConcurrentHashMap.newKeySet(); // to scouts
    private long lastId; // guarded by this
    private boolean closed; // guarded by this
    private Function<Upstream, Runnable> watcher; // guarded by this; null before #watch
    private volatile AppendedList<Upstream> upstreams = new AppendedList<>();
    private volatile Runnable onRemoval = () -> {};

    /** A registered server, where it is registered and what ends its watch. */
    private record Entry(
            DiscoveredWorker described,
            UpstreamRegistry registry,
            Upstream upstream,
            Runnable endWatch) {}

    /** A server under its former description. */
    private record SameEngine(Upstream upstream, boolean wasInUse) {}

    /** A server that is probed before it is registered in place of another one of its name. */
    private record Scout(
            ModelPool pool, DiscoveredWorker described, Upstream upstream, Runnable endWatch) {}

    /** The pool of a model. */
    private record ModelPool(UpstreamRegistry registry, WorkerPool pool) {
        List<Upstream> upstreams() {
            return registry.upstreams(pool);
        }
    }

    /**
     * @param models where the servers of each model are registered; the models differ
     */
    public Fleet(List<UpstreamRegistry> models) {
        models.forEach(registry -> registries.put(registry.model(), registry));
    }

    /** Where the servers of each model are, in the order of the models. */
    public List<UpstreamRegistry> registries() {
        return List.copyOf(registries.values());
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
                (name, e) ->
                        new Entry(e.described, e.registry, e.upstream, begin.apply(e.upstream)));
    }

    /**
     * Has something done after each removal.
     *
     * @param action quick; runs under the fleet's lock
     */
    public void onRemoval(Runnable action) {
        onRemoval = action;
    }

    /**
     * One thread a source.
     *
     * @param isDrained which of them get no new request from their registration on
     * @return those that are left out, and why
     */
    private Map<DiscoveredWorker, String> view(
            String source, List<DiscoveredWorker> wanted, Predicate<DiscoveredWorker> isDrained) {
        final Set<String> names = new HashSet<>();
        wanted.forEach(worker -> names.add(worker.name()));
        final Map<DiscoveredWorker, String> refused = new LinkedHashMap<>();
        final List<Scout> scouts = scouts(wanted);
        boolean changed;
        try {
            awaitScouts(scouts);
            changed = addAll(source, wanted, isDrained, refused);
            if (changed) {
                awaitSuccessors(obsolete(source, names), names);
            }
        } finally {
            scouts.forEach(scout -> answered.remove(scout.described));
        }
        changed |= removeObsolete(source, names);
        while (changed && !refused.isEmpty()) { // others may have had what they lacked
            final List<DiscoveredWorker> again = List.copyOf(refused.keySet());
            refused.clear();
            changed = addAll(source, again, isDrained, refused);
        }
        return refused;
    }

    /**
     * @param refused gets those that cannot be added, and why
     * @return whether any was added
     */
    private boolean addAll(
            String source,
            List<DiscoveredWorker> wanted,
            Predicate<DiscoveredWorker> isDrained,
            Map<DiscoveredWorker, String> refused) {
        boolean changed = false;
        for (DiscoveredWorker worker : wanted) {
            try {
                changed |= add(source, worker, isDrained.test(worker));
            } catch (IllegalArgumentException e) {
                refused.put(worker, e.getMessage());
            }
        }
        return changed;
    }

    /**
     * Where all servers in use of a model's pool are other engines now, under their names, the
     * former ones serve until one of the new ones answers.
     *
     * @return asks each of the new ones; empty where others are in use
     */
    private synchronized List<Scout> scouts(List<DiscoveredWorker> wanted) {
        if (watcher == null || closed) {
            return List.of();
        }
        final Map<ModelPool, List<DiscoveredWorker>> moved = new LinkedHashMap<>();
        for (DiscoveredWorker worker : wanted) {
            final Entry former = entries.get(worker.name());
            if (former != null && former.upstream.inUse() && isMoved(former, worker)) {
                moved.computeIfAbsent(
                                new ModelPool(former.registry, former.upstream.pool()),
                                pool -> new ArrayList<>())
                        .add(worker);
            }
        }
        final List<Scout> scouts = new ArrayList<>();
        moved.forEach(
                (pool, workers) -> {
                    if (pool.upstreams().stream().filter(Upstream::inUse).count()
                            == workers.size()) {
                        workers.forEach(worker -> scouts.add(scout(pool, worker)));
                    }
                });
        return scouts;
    }

    /** Whether it is another engine of the same pool. */
    private static boolean isMoved(Entry former, DiscoveredWorker described) {
        return !isSameEngine(former, described)
                && former.described.model().equals(described.model())
                && former.upstream.pool() == WorkerPool.of(described.role());
    }

    private Scout scout(ModelPool pool, DiscoveredWorker described) {
        final Upstream upstream =
                pool.registry.unregistered(
                        described, lastId++, pool.registry.readyRouter(pool.pool));
        return new Scout(pool, described, upstream, watcher.apply(upstream));
    }

    private void awaitScouts(List<Scout> scouts) {
        final Set<ModelPool> pools = new HashSet<>();
        scouts.forEach(scout -> pools.add(scout.pool));
        await(() -> pools.stream().allMatch(pool -> hasAnswered(pool, scouts)));
        scouts.forEach(scout -> scout.endWatch.run());
        scouts.stream()
                .filter(scout -> scout.upstream.inUse())
                .forEach(scout -> answered.add(scout.described));
    }

    private static boolean hasAnswered(ModelPool pool, List<Scout> scouts) {
        return scouts.stream().anyMatch(scout -> scout.pool.equals(pool) && scout.upstream.inUse());
    }

    /**
     * Those that are the source's own still: another one may have registered them meanwhile.
     *
     * @return false if there were none
     */
    private synchronized boolean removeObsolete(String source, Set<String> wanted) {
        final List<Entry> obsolete = obsolete(source, wanted);
        obsolete.forEach(entry -> remove(entry.upstream.name()));
        return !obsolete.isEmpty();
    }

    private synchronized List<Entry> obsolete(String source, Set<String> wanted) {
        return entries.values().stream()
                .filter(
                        e ->
                                e.upstream.source().equals(source)
                                        && !wanted.contains(e.upstream.name()))
                .toList();
    }

    /**
     * Where all servers of a model's pool are replaced, the former ones serve until one of the new
     * ones can.
     */
    private static void awaitSuccessors(List<Entry> obsolete, Set<String> names) {
        final Set<ModelPool> pools = new HashSet<>();
        obsolete.forEach(entry -> pools.add(new ModelPool(entry.registry, entry.upstream.pool())));
        pools.removeIf(pool -> pool.upstreams().stream().noneMatch(u -> names.contains(u.name())));
        await(() -> pools.stream().allMatch(pool -> isOneInUse(pool, names)));
    }

    /** Waits until it is so, but not for long. */
    private static void await(BooleanSupplier isSo) {
        final long startNs = System.nanoTime();
        try {
            while (!isSo.getAsBoolean() && System.nanoTime() - startNs < REPLACEMENT_WAIT_NS) {
                Thread.sleep(POLL_MS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static boolean isOneInUse(ModelPool pool, Set<String> names) {
        return pool.upstreams().stream().anyMatch(u -> names.contains(u.name()) && u.inUse());
    }

    private String otherService(DiscoveredWorker worker) {
        return "worker "
                + worker.name()
                + " serves "
                + worker.model()
                + ", this gateway routes to workers of "
                + String.join(", ", registries.keySet());
    }

    /**
     * @param isDrained by the source
     */
    private synchronized boolean add(String source, DiscoveredWorker described, boolean isDrained) {
        if (closed) {
            throw new IllegalArgumentException("the gateway is closing");
        }
        final UpstreamRegistry registry = registries.get(described.model());
        if (registry == null) {
            throw new IllegalArgumentException(otherService(described));
        }
        final Entry before = entries.get(described.name());
        if (before != null && before.described.equals(described)) {
            if (!before.upstream.source().equals(source)) {
                before.upstream.source(source);
                drain(source, described.name(), described, isDrained);
            }
            return false;
        }
        registry.checkRoom(described, before == null ? null : before.upstream);
        final KvRouter router = // before the former one of its name is removed
                registry.readyRouter(WorkerPool.of(described.role()));
        if (before == null) {
            register(source, described, registry, router, null);
        } else {
            replace(before, source, described, registry, router);
        }
        drain(source, described.name(), described, isDrained);
        return true;
    }

    /**
     * Where the new server is refused the former one stays, or is registered again. Where it is the
     * same engine it need not answer first, as many may be described anew at once.
     */
    private void replace(
            Entry former,
            String source,
            DiscoveredWorker described,
            UpstreamRegistry registry,
            KvRouter router) {
        if (!former.described.worker().eventsBind()) { // else it may have what is to be bound
            registry.check(described, router);
        }
        final boolean wasInUse = former.upstream.inUse();
        remove(described.name());
        try {
            register(
                    source,
                    described,
                    registry,
                    router,
                    isSameEngine(former, described)
                            ? new SameEngine(former.upstream, wasInUse)
                            : null);
        } catch (Throwable t) {
            registerAgain(former, wasInUse);
            throw t;
        }
    }

    private static boolean isSameEngine(Entry former, DiscoveredWorker described) {
        return former.described.model().equals(described.model())
                && former.described.generation() == described.generation()
                && former.upstream.url().equals(described.worker().url());
    }

    private void registerAgain(Entry former, boolean wasInUse) {
        final Upstream before = former.upstream;
        try {
            register(
                    before.source(),
                    former.described,
                    former.registry,
                    former.registry.readyRouter(before.pool()),
                    new SameEngine(before, wasInUse));
            entries.get(before.name()).upstream.takeDrains(before);
        } catch (IllegalArgumentException e) {
            failed(
                    before.source(),
                    "worker " + before.name() + " cannot be registered again: " + e.getMessage());
        }
    }

    /**
     * @param sameOrNull what it was before
     */
    private void register(
            String source,
            DiscoveredWorker described,
            UpstreamRegistry registry,
            KvRouter router,
            SameEngine sameOrNull) {
        final boolean wasInUse = sameOrNull != null && sameOrNull.wasInUse;
        final boolean hasAnswered = answered.contains(described);
        final boolean admitted = watcher == null || wasInUse || hasAnswered;
        final Upstream upstream = registry.register(described, source, lastId++, router, admitted);
        if (sameOrNull != null) {
            upstream.takeLearned(sameOrNull.upstream);
        }
        if (hasAnswered
                || (wasInUse
                        && sameOrNull.upstream.health().state() != UpstreamHealth.State.UNKNOWN)) {
            upstream.health().knownToAnswer();
        }
        final Runnable endWatch = watcher == null ? () -> {} : watcher.apply(upstream);
        entries.put(described.name(), new Entry(described, registry, upstream, endWatch));
        upstreams = upstreams.with(upstream);
        LOG.info(
                "worker {} at {} is registered by {}, role {}",
                upstream.name(),
                upstream.url(),
                source,
                described.role().spelling());
        if (upstream.takesTokens() && !registry.hasTokenizer()) {
            failed(
                    source,
                    "worker "
                            + upstream.name()
                            + " has input=tokens, and tokenizer is not set for "
                            + registry.model()
                            + ": only prompts that are token ids are sent to it");
        }
    }

    private synchronized boolean remove(String name) {
        final Entry entry = entries.remove(name);
        if (entry == null) {
            return false;
        }
        entry.endWatch.run();
        entry.registry.remove(entry.upstream);
        upstreams = upstreams.without(entry.upstream);
        onRemoval.run();
        LOG.info("worker {} at {} is removed", name, entry.upstream.url());
        return true;
    }

    private void failed(String source, String cause) {
        failures.get(source).incrementAndGet();
        LOG.warn("workers from {}: {}", source, LogText.of(cause));
    }

    /**
     * Sends no new request to a server, as operators want it, or does again, also where a source
     * wants none.
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

    /**
     * Sends no new request to a server while a source wants it so.
     *
     * @param meantOrNull what the source describes: another one, which another source has
     *     registered, is not meant. Null where it has not said
     */
    private synchronized void drain(
            String source, String name, DiscoveredWorker meantOrNull, boolean draining) {
        final Entry entry = entries.get(name);
        if (entry != null
                && (!draining || isMeant(entry, source, meantOrNull))
                && entry.upstream.drain(source, draining)) {
            LOG.info(
                    "worker {} {} by {}", name, draining ? "is drained" : "is not drained", source);
        }
    }

    private static boolean isMeant(Entry entry, String source, DiscoveredWorker meantOrNull) {
        return meantOrNull == null
                || entry.described.equals(meantOrNull)
                || entry.upstream.source().equals(source);
    }

    /** Ends all watches, and takes no further server; those that are registered stay. */
    public synchronized void close() {
        closed = true;
        entries.values().forEach(e -> e.endWatch.run());
    }

    /** Of all models and pools, in order of registration. */
    public List<Upstream> upstreams() {
        return upstreams;
    }

    /** How often a source could not be read or named a worker that cannot be used, by source. */
    public Map<String, AtomicLong> failures() {
        return failures;
    }

    private final class FromSource implements Discovery.Listener {
        private final String source;
        // all four by the last view, and of the source's thread
        private Set<DiscoveredWorker> unserved = Set.of();
        private final LeftOutWorkers leftOut = new LeftOutWorkers();
        private final Map<String, DiscoveredWorker> viewed = new HashMap<>(); // by name
        private final Map<String, DiscoveredWorker> drained = new HashMap<>(); // likewise

        FromSource(String source) {
            this.source = source;
        }

        @Override
        public void view(List<DiscoveredWorker> workers) {
            viewed.clear();
            workers.forEach(worker -> viewed.put(worker.name(), worker));
            final Map<DiscoveredWorker, String> refused =
                    Fleet.this.view(
                            source,
                            served(workers),
                            worker -> worker.equals(drained.get(worker.name())));
            endDrains();
            leftOut.news(refused).forEach(text -> Fleet.this.failed(source, text));
        }

        /** Of those that it describes so no more: another source may have them still. */
        private void endDrains() {
            for (DiscoveredWorker worker : List.copyOf(drained.values())) {
                if (!worker.equals(viewed.get(worker.name()))) {
                    drained.remove(worker.name());
                    drain(source, worker.name(), worker, false);
                }
            }
        }

        /** Says of each of the others once that it is not used. */
        private List<DiscoveredWorker> served(List<DiscoveredWorker> workers) {
            final List<DiscoveredWorker> served = new ArrayList<>();
            final Set<DiscoveredWorker> others = new HashSet<>();
            for (DiscoveredWorker worker : workers) {
                if (registries.containsKey(worker.model())) {
                    served.add(worker);
                } else if (others.add(worker) && !unserved.contains(worker)) {
                    LOG.info("not used: {}", LogText.of(otherService(worker)));
                }
            }
            unserved = others;
            return served;
        }

        @Override
        public boolean added(DiscoveredWorker worker) {
            return add(source, worker, false);
        }

        @Override
        public boolean removed(String name) {
            return remove(name);
        }

        @Override
        public void draining(String name, boolean draining) {
            final DiscoveredWorker worker = viewed.get(name);
            if (draining && worker != null) {
                drained.put(name, worker); // also for when it is registered later, or again
            } else {
                drained.remove(name);
            }
            drain(source, name, worker, draining);
        }

        @Override
        public void failed(String cause) {
            Fleet.this.failed(source, cause + "; what was there before stays");
        }

        @Override
        public void recovered(Duration away) {
            LOG.warn("workers from {}: can be read again, after {} ms", source, away.toMillis());
        }

        @Override
        public void refused(String cause) {
            Fleet.this.failed(source, cause);
        }
    }
}

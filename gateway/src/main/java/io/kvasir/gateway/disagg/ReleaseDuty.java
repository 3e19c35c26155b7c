package io.kvasir.gateway.disagg;

import io.kvasir.nixl.TransferException;
import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.nixl.vllm.LeaseTerms;
import io.kvasir.nixl.vllm.VllmEngine;
import io.kvasir.nixl.vllm.VllmPeerException;
import io.kvasir.nixl.vllm.VllmPrefillReleaser;
import io.kvasir.protocol.handoff.KvTransferParams;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;

/**
 * Keeps the leases of finished prefills alive and frees their blocks, over one transport. {@link
 * #watch} and what it returns are for any thread; all else belongs to one thread, the transport's
 * owner, never blocks, and takes the time as an argument.
 *
 * <pre>
 *   prefill   watched ----------------&gt; its engine's lease is kept alive by heartbeats
 *               | fetched                 forgotten
 *               | free, connected         notified: released
 *               | free, not connected     waits for the contact; left to the lease when that ends
 *   engine    NONE --ask--&gt; ASKED ----&gt; CONNECTED --not reached--&gt; NONE
 *               ^-- pause ---/ \--- another engine answers: has ended, its prefills with it
 * </pre>
 */
final class ReleaseDuty implements AutoCloseable {
    /**
     * What is bounded.
     *
     * @param prefills watched at once, at least 1
     * @param engines known at once, at least 1
     * @param handshakes under way at once, of different engines, at least 1
     */
    record Limits(int prefills, int engines, int handshakes) {
        static final Limits DEFAULT = new Limits(65_536, 256, 8);
    }

    private static final Logger LOG = LoggerFactory.getLogger(BlockRelease.class);

    /** Time between two checks of all that is watched. */
    static final long TICK_NS = TimeUnit.MILLISECONDS.toNanos(250);

    /** A prefill whose end is not said for so long is left to its lease. */
    static final long LONGEST_NS = TimeUnit.HOURS.toNanos(1);

    /** An engine that holds nothing for so long is forgotten. */
    static final long UNUSED_NS = TimeUnit.MINUTES.toNanos(10);

    private static final KvTransport.NotificationHandler DROP = (peer, message) -> {};

    /** How the side channel of an engine answered. */
    private record Handshake(PrefillEngine of, VllmEngine answer, RuntimeException failure) {}

    private final KvTransport transport;
    private final VllmPrefillReleaser releaser;
    private final Function<KvTransferParams, VllmEngine> ask;
    private final Executor asking;
    private final LeaseTerms terms;
    private final Limits limits;
    private final ReleaseCounters counters;
    private final Runnable wakeUp;
    private final Queue<WatchedPrefill> changed = new ConcurrentLinkedQueue<>();
    private final Queue<Handshake> handshakes = new ConcurrentLinkedQueue<>();
    private final AtomicInteger held = new AtomicInteger();
    private final Map<String, PrefillEngine> engines = new HashMap<>();
    private final Set<WatchedPrefill> withoutEngine = new LinkedHashSet<>();
    private int asked;
    private long nextTickNs;
    private boolean ticked;

    /**
     * Makes one.
     *
     * @param transport closed by this
     * @param ask asks all ranks of an engine; blocks
     * @param asking runs that; must not run it on the owner's thread
     * @param terms the engines' lease terms
     * @param limits what is bounded
     * @param counters counts what becomes of prefills
     * @param wakeUp called by any thread when {@link #doWork} has something to do
     */
    ReleaseDuty(
            KvTransport transport,
            Function<KvTransferParams, VllmEngine> ask,
            Executor asking,
            LeaseTerms terms,
            Limits limits,
            ReleaseCounters counters,
            Runnable wakeUp) {
        this.transport = transport;
        this.releaser = new VllmPrefillReleaser(transport, terms, limits.prefills());
        this.ask = ask;
        this.asking = asking;
        this.terms = terms;
        this.limits = limits;
        this.counters = counters;
        this.wakeUp = wakeUp;
    }

    /**
     * Watches a prefill. Any thread.
     *
     * @param params what the prefill worker answered
     * @param receivedNs when
     * @return empty if too many are watched
     */
    Optional<WatchedPrefill> watch(KvTransferParams params, long receivedNs) {
        if (held.incrementAndGet() > limits.prefills()) {
            held.decrementAndGet();
            return Optional.empty();
        }
        final WatchedPrefill prefill = new WatchedPrefill(params, receivedNs, this::changed);
        changed(prefill);
        return Optional.of(prefill);
    }

    private void changed(WatchedPrefill prefill) {
        changed.add(prefill);
        wakeUp.run();
    }

    /** Prefills that are watched and whose blocks their engine holds. Any thread. */
    int held() {
        return held.get();
    }

    /**
     * Does what is due.
     *
     * @param nowNs current time
     */
    void doWork(long nowNs) {
        for (Handshake ended = handshakes.poll(); ended != null; ended = handshakes.poll()) {
            ended(ended, nowNs);
        }
        for (WatchedPrefill next = changed.poll(); next != null; next = changed.poll()) {
            take(next, nowNs);
        }
        if (!ticked || nowNs - nextTickNs >= 0) {
            ticked = true;
            nextTickNs = nowNs + TICK_NS;
            tick(nowNs);
        }
        askThoseThatAreDue(nowNs);
    }

    private void take(WatchedPrefill prefill, long nowNs) {
        if (prefill.take()) {
            begin(prefill, nowNs);
        }
        if (prefill.isCounted()) {
            return;
        }
        switch (prefill.end()) {
            case OPEN -> {}
            case FETCHED -> fetched(prefill);
            case FREE -> free(prefill, nowNs);
        }
    }

    private void begin(WatchedPrefill prefill, long nowNs) {
        final Optional<String> engineId = prefill.params().remoteEngineId();
        if (engineId.isEmpty() || prefill.params().remoteRequestId().isEmpty()) {
            withoutEngine.add(prefill);
            prefill.lose(LeaseReason.UNSUPPORTED);
            return;
        }
        PrefillEngine engine = engines.get(engineId.get());
        if (engine == null) {
            if (engines.size() >= limits.engines()) {
                withoutEngine.add(prefill);
                prefill.lose(LeaseReason.TOO_MANY);
                return;
            }
            engine = new PrefillEngine(engineId.get(), prefill.params(), nowNs);
            engines.put(engine.id(), engine);
        }
        engine.add(prefill, nowNs);
        if (engine.isConnected()) {
            lease(engine, prefill);
        }
    }

    private void lease(PrefillEngine engine, WatchedPrefill prefill) {
        try {
            prefill.leased(releaser.hold(prefill.params(), prefill.receivedNs()));
        } catch (VllmPeerException e) {
            LOG.debug("blocks of {} are left to their lease: {}", engine.id(), e.getMessage());
            engine.prefills().remove(prefill);
            withoutEngine.add(prefill);
            prefill.lose(LeaseReason.UNSUPPORTED);
        }
    }

    private void fetched(WatchedPrefill prefill) {
        prefill.count();
        counters.fetched.increment();
        forget(prefill);
    }

    /** Forgets a prefill whose blocks are not held any more, or was forgotten before. */
    private void forget(WatchedPrefill prefill) {
        final PrefillEngine engine =
                prefill.params().remoteEngineId().map(engines::get).orElse(null);
        final boolean known = engine != null && engine.prefills().remove(prefill);
        if (known && prefill.lost() == null) {
            releaser.fetched(prefill.engineId(), prefill.requestId());
        }
        if (known || withoutEngine.remove(prefill)) {
            held.decrementAndGet();
        }
    }

    /** Notifies the engine, or leaves it for when the engine can be notified. */
    private void free(WatchedPrefill prefill, long nowNs) {
        if (prefill.lost() != null) {
            left(prefill, prefill.lost());
            return;
        }
        final PrefillEngine engine = engines.get(prefill.engineId());
        if (!engine.isConnected()) {
            return;
        }
        final boolean released;
        try {
            released = releaser.release(engine.id(), prefill.requestId(), nowNs);
        } catch (KvTransportException e) {
            unreached(engine, e.getMessage(), nowNs);
            return;
        } catch (VllmPeerException e) { // heartbeats have not reached the engine for too long
            left(prefill, LeaseReason.EXPIRED);
            forget(prefill);
            return;
        }
        if (released) {
            engine.reached();
            prefill.count();
            counters.released.increment();
        } else {
            left(prefill, LeaseReason.EXPIRED);
        }
        forget(prefill);
    }

    private void left(WatchedPrefill prefill, LeaseReason why) {
        if (prefill.count()) {
            counters.leave(why);
        }
    }

    private static void unreached(PrefillEngine engine, String why, long nowNs) {
        if (engine.failed(LeaseReason.ENGINE_LOST, nowNs)) {
            LOG.warn("prefill engine {} is not reached: {}", engine.id(), why);
        }
    }

    private void askThoseThatAreDue(long nowNs) {
        if (asked >= limits.handshakes()) {
            return;
        }
        for (PrefillEngine engine : engines.values()) {
            if (asked < limits.handshakes() && engine.isDue(nowNs)) {
                engine.asked();
                asked++;
                asking.execute(() -> ask(engine));
            }
        }
    }

    private void ask(PrefillEngine engine) {
        Handshake ended;
        try {
            ended = new Handshake(engine, ask.apply(engine.params()), null);
        } catch (RuntimeException e) {
            ended = new Handshake(engine, null, e);
        }
        handshakes.add(ended);
        wakeUp.run();
    }

    private void ended(Handshake handshake, long nowNs) {
        asked--;
        final PrefillEngine engine = handshake.of();
        if (handshake.failure() != null) {
            failed(engine, handshake.failure(), nowNs);
            return;
        }
        try {
            releaser.connect(handshake.answer());
        } catch (RuntimeException e) {
            failed(engine, e, nowNs);
            return;
        }
        connected(engine, nowNs);
    }

    private void failed(PrefillEngine engine, RuntimeException failure, long nowNs) {
        final boolean lasting = failure instanceof TransferException e && !e.retryable();
        if (failure instanceof VllmPeerException e
                && e.kind() == VllmPeerException.Kind.OTHER_ENGINE) {
            LOG.info("prefill engine {} has ended: {}", engine.id(), e.getMessage());
            lose(engine);
        } else if (engine.failed(
                lasting ? LeaseReason.UNSUPPORTED : LeaseReason.HANDSHAKE_FAILED, nowNs)) {
            LOG.warn("no contact with prefill engine {}: {}", engine.id(), failure.getMessage());
        }
    }

    private void connected(PrefillEngine engine, long nowNs) {
        engine.connected();
        for (PrefillEngine other : List.copyOf(engines.values())) {
            if (other != engine && other.isConnected() && other.sharesAddressWith(engine)) {
                lose(other);
            }
        }
        for (WatchedPrefill prefill : List.copyOf(engine.prefills())) {
            if (!engine.isConnected()) {
                return; // lost again by the first message
            }
            if (!prefill.isLeased()) {
                lease(engine, prefill);
            }
            take(prefill, nowNs);
        }
    }

    /** The engine has ended, and what it held with it. */
    private void lose(PrefillEngine engine) {
        releaser.disconnect(engine.id());
        engines.remove(engine.id());
        for (WatchedPrefill prefill : engine.prefills()) {
            prefill.lose(LeaseReason.ENGINE_LOST);
            if (prefill.end() == WatchedPrefill.End.FREE) {
                left(prefill, LeaseReason.ENGINE_LOST);
            }
            held.decrementAndGet();
        }
        engine.prefills().clear();
    }

    private void tick(long nowNs) {
        transport.notifications(DROP); // no engine has a message for this end
        heartbeat(nowNs);
        endLeases(withoutEngine, LeaseReason.UNSUPPORTED, nowNs);
        for (Iterator<PrefillEngine> all = engines.values().iterator(); all.hasNext(); ) {
            final PrefillEngine engine = all.next();
            endLeases(
                    engine.prefills(),
                    engine.isConnected() ? LeaseReason.EXPIRED : engine.failure(),
                    nowNs);
            if (engine.isUnused(nowNs, UNUSED_NS)) {
                releaser.disconnect(engine.id());
                all.remove();
            }
        }
    }

    private void heartbeat(long nowNs) {
        final List<String> unreached = new ArrayList<>();
        counters.heartbeats.add(releaser.heartbeat(nowNs, unreached));
        for (String id : unreached) {
            final PrefillEngine engine = engines.get(id);
            if (engine.isConnected()) {
                unreached(engine, "it takes no heartbeat", nowNs);
            }
        }
    }

    /** Forgets prefills whose lease is over, or whose end has not been said for too long. */
    private void endLeases(Set<WatchedPrefill> of, LeaseReason why, long nowNs) {
        for (Iterator<WatchedPrefill> all = of.iterator(); all.hasNext(); ) {
            final WatchedPrefill prefill = all.next();
            if (nowNs - prefill.expiresAtNs(terms.leaseNs()) < 0
                    && nowNs - prefill.receivedNs() < LONGEST_NS) {
                continue;
            }
            all.remove();
            held.decrementAndGet();
            if (prefill.lost() == null) {
                releaser.fetched(prefill.engineId(), prefill.requestId());
                prefill.lose(why);
            }
            if (prefill.end() == WatchedPrefill.End.FREE) {
                left(prefill, prefill.lost());
            }
        }
    }

    /** Whether nothing is watched and no handshake is under way: only a call can bring work. */
    boolean isIdle() {
        return held.get() == 0 && asked == 0;
    }

    /** Whether prefills are to be freed whose engines cannot be notified yet. */
    boolean isFreeing() {
        for (PrefillEngine engine : engines.values()) {
            for (WatchedPrefill prefill : engine.prefills()) {
                if (prefill.end() == WatchedPrefill.End.FREE) {
                    return true;
                }
            }
        }
        return false;
    }

    /** Leaves all that is watched to its lease, and closes the transport. */
    @Override
    public void close() {
        for (WatchedPrefill next = changed.poll(); next != null; next = changed.poll()) {
            close(next);
        }
        engines.values().forEach(engine -> engine.prefills().forEach(this::close));
        withoutEngine.forEach(this::close);
        engines.clear();
        withoutEngine.clear();
        held.set(0);
        releaser.close();
        transport.close();
    }

    private void close(WatchedPrefill prefill) {
        if (prefill.end() == WatchedPrefill.End.FETCHED) {
            if (prefill.count()) {
                counters.fetched.increment();
            }
        } else {
            left(prefill, LeaseReason.CLOSING);
        }
    }
}

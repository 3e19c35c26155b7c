package io.kvasir.nixl.vllm;

import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.protocol.handoff.KvTransferParams;

import java.util.Collection;
import java.util.HashMap;
import java.util.Map;

/**
 * The prefill servers of vLLM whose blocks are kept alive and freed from here, but never read: for
 * the router of a hand-off. No memory is registered for it. Belongs to the transport's owner
 * thread; never blocks. The handshake does, so it is made elsewhere and its answer brought here.
 *
 * <pre>
 *   VllmHandshake.ask(params)         any thread that may block
 *   connect(engine)                   once per engine, again where it is not reached any more
 *   hold(params, now)                 as soon as a prefill has answered
 *   heartbeat(now, unreached)         every second or so, until all are fetched
 *   fetched(...)                      a decode engine has read the blocks
 *   release(...)                      none will
 * </pre>
 *
 * <p>Blocks are to be released only when no decode engine reads or will read them: the server frees
 * them at the first message and gives them to other prompts.
 */
public final class VllmPrefillReleaser implements AutoCloseable {
    /**
     * A request is one of an engine: two engines may give one name, as where one is tried again.
     */
    private record Prefill(String engineId, String requestId) {
        static Prefill of(PrefillLease lease) {
            return new Prefill(lease.engineId(), lease.requestId());
        }

        @Override
        public String toString() {
            return requestId + " of engine " + engineId;
        }
    }

    private final KvTransport transport;
    private final LeaseTerms terms;
    private final HeldLeases<Prefill> leases;
    private final Map<String, EngineRanks> engines = new HashMap<>();

    /**
     * Makes one without engines.
     *
     * @param transport not closed by this
     * @param terms the servers' lease terms
     * @param maxLeases leases held at the same time, at least 1
     */
    public VllmPrefillReleaser(KvTransport transport, LeaseTerms terms, int maxLeases) {
        this.transport = transport;
        this.terms = terms;
        this.leases = new HeldLeases<>(maxLeases, Prefill::of);
    }

    /**
     * Connects all ranks of an engine; one that is connected is connected anew and keeps its
     * leases.
     *
     * @param engine from a handshake with all of its ranks
     * @throws VllmPeerException of kind {@code UNKNOWN_RANK} if a rank was not asked
     * @throws KvTransportException if the transport refuses it; then none of its ranks is connected
     */
    public void connect(VllmEngine engine) {
        if (engine.ranks().size() != engine.tensorSize()) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.UNKNOWN_RANK,
                    engine.ranks().size()
                            + " of "
                            + engine.tensorSize()
                            + " ranks of engine "
                            + engine.engineId()
                            + " were asked: shake hands with all");
        }
        final EngineRanks ranks =
                engines.computeIfAbsent(
                        engine.engineId(),
                        _ -> new EngineRanks(transport, engine, engine.tensorSize(), 1));
        ranks.close();
        try {
            engine.ranks().forEach(ranks::connect);
        } catch (RuntimeException e) {
            ranks.close();
            throw e;
        }
    }

    /**
     * Forgets an engine and all its leases, such as one that has ended.
     *
     * @param engineId its identifier; an unknown one is ignored
     */
    public void disconnect(String engineId) {
        final EngineRanks ranks = engines.remove(engineId);
        if (ranks != null) {
            leases.removeAllOf(engineId);
            ranks.close();
        }
    }

    /**
     * Takes over the lease of a finished prefill.
     *
     * @param params the prefill's answer
     * @param receivedNs when it arrived
     * @return the lease
     * @throws VllmPeerException of kind {@code NOT_CONNECTED}, {@code MALFORMED}, {@code
     *     UNSUPPORTED}, {@code CAPACITY}, {@code OTHER_ENGINE} if it has another number of ranks,
     *     {@code ALREADY_HELD} if the request of that engine is held
     */
    public PrefillLease hold(KvTransferParams params, long receivedNs) {
        final String engineId = HandoffFields.engineId(params);
        final EngineRanks ranks = engines.get(engineId);
        if (ranks == null) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.NOT_CONNECTED,
                    "engine " + engineId + " is not connected: shake hands and connect it first");
        }
        final PrefillLease lease =
                PrefillLease.of(params, ranks.engine(), ranks.consumers(), terms, receivedNs);
        leases.add(lease, ranks);
        return lease;
    }

    /**
     * Forgets a lease: its blocks have been fetched, or it is not to be kept alive any more.
     *
     * @param engineId whose; an unknown one is ignored
     * @param requestId of a held lease; an unknown one is ignored
     */
    public void fetched(String engineId, String requestId) {
        leases.remove(new Prefill(engineId, requestId));
    }

    /**
     * Has the server free the blocks of a prefill. The message is not acknowledged.
     *
     * @param engineId whose
     * @param requestId of a held lease
     * @param nowNs current time
     * @return false if the lease had expired: the server has freed them or is about to
     * @throws VllmPeerException of kind {@code UNKNOWN_REQUEST}
     * @throws KvTransportException if the transport cannot send it; the lease stays: connect the
     *     engine anew
     */
    public boolean release(String engineId, String requestId, long nowNs) {
        return leases.release(new Prefill(engineId, requestId), nowNs);
    }

    /**
     * Keeps leases alive: one heartbeat to each engine's ranks for the leases in need of it.
     * Forgets leases that have expired.
     *
     * @param nowNs current time
     * @param unreached takes the identifiers of engines that could not be sent it: connect them
     *     anew; their leases are due again at the next call
     * @return leases extended
     */
    public int heartbeat(long nowNs, Collection<String> unreached) {
        return leases.heartbeat(nowNs, unreached);
    }

    /**
     * Leases that are held.
     *
     * @return count
     */
    public int leases() {
        return leases.size();
    }

    /** Forgets all engines and leases; the servers' leases run out. Idempotent. */
    @Override
    public void close() {
        leases.clear();
        engines.values().forEach(EngineRanks::close);
        engines.clear();
    }
}

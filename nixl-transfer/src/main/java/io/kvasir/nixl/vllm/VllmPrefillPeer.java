package io.kvasir.nixl.vllm;

import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.protocol.handoff.KvTransferParams;

import org.agrona.CloseHelper;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The prefill servers of vLLM that a rank here pulls blocks from, over one transport. Belongs to
 * the transport's owner thread; never blocks. The handshake does, so it is made elsewhere and its
 * answer brought here.
 *
 * <pre>
 *   VllmHandshake.ask(params, rank)   any thread that may block
 *   connect(engine)                   once per engine
 *   hold(params, now)                 as soon as a prefill has answered
 *   heartbeat(now)                    every second or so, until all are fetched
 *   pull(...)                         then post and poll each request, pullEnded, release it
 *   release(...)                      instead of pull, if no decode follows
 * </pre>
 *
 * <p>Engine and rank here may share the model between different numbers of ranks: then a pull reads
 * from several ranks of the engine, or a part of the blocks of one. Each of the ranks here has a
 * peer of its own and pulls, or releases; the engine frees the blocks when all have.
 *
 * <p>One lease serves one decode: a second pull of the same request would read another prompt's
 * blocks, so it is refused.
 */
public final class VllmPrefillPeer implements AutoCloseable {
    /**
     * What is accepted.
     *
     * @param expectedHash the only compatibility hash that is accepted; empty accepts all
     * @param terms the servers' lease terms
     * @param maxLeases leases held at the same time, at least 1
     */
    public record Options(Optional<String> expectedHash, LeaseTerms terms, int maxLeases) {
        /** Every hash, vLLM's default lease, 65,536 leases. */
        public static final Options DEFAULT =
                new Options(Optional.empty(), LeaseTerms.DEFAULT, 65_536);

        /**
         * Checks the values.
         *
         * @throws IllegalArgumentException naming the value that cannot be
         */
        public Options {
            if (maxLeases < 1) {
                throw new IllegalArgumentException("maxLeases cannot be " + maxLeases);
            }
        }
    }

    private final KvTransport transport;
    private final VllmCache cache;
    private final LocalLists lists;
    private final Options options;
    private final Map<String, ConnectedEngine> engines = new HashMap<>();
    private final HeldLeases<String> leases; // by request

    /**
     * Makes one without engines.
     *
     * @param transport not closed by this
     * @param cache where blocks go; its regions are registered with the transport
     * @param options what is accepted
     */
    public VllmPrefillPeer(KvTransport transport, VllmCache cache, Options options) {
        this.transport = transport;
        this.cache = cache;
        this.lists = new LocalLists(transport, cache);
        this.options = options;
        this.leases = new HeldLeases<>(options.maxLeases(), PrefillLease::requestId);
    }

    /**
     * Makes an engine's blocks reachable: connects its agents and prepares the lists of its blocks.
     * An engine that is connected already stays as it is.
     *
     * @param engine from a handshake for the cache's rank
     * @throws VllmPeerException of kind {@code INCOMPATIBLE}, {@code UNSUPPORTED} or {@code
     *     UNKNOWN_RANK}
     * @throws KvTransportException if the transport refuses it
     */
    public void connect(VllmEngine engine) {
        if (engines.containsKey(engine.engineId())) {
            return;
        }
        for (VllmAgent rank : engine.ranks()) {
            VllmHandshake.requireCompatible(
                    "engine " + engine.engineId(),
                    rank.compatibilityHash(),
                    options.expectedHash());
        }
        engines.put(engine.engineId(), ConnectedEngine.of(transport, engine, cache, lists));
    }

    /**
     * Whether an engine is connected.
     *
     * @param engineId its identifier
     * @return whether its blocks can be pulled
     */
    public boolean isConnected(String engineId) {
        return engines.containsKey(engineId);
    }

    /**
     * Forgets an engine and all its leases, such as one that has ended. Requests made of its blocks
     * must be released before.
     *
     * @param engineId its identifier; an unknown one is ignored
     * @throws VllmPeerException of kind {@code READING} if a pull has not ended
     * @throws KvTransportException if a request was not released: its lists stay with the
     *     transport, all else of the engine is forgotten
     */
    public void disconnect(String engineId) {
        final ConnectedEngine engine = engines.get(engineId);
        if (engine == null) {
            return;
        }
        leases.removeAllOf(engineId);
        engines.remove(engineId).close();
    }

    /**
     * Takes over the blocks of a finished prefill: from now on they are kept alive by {@link
     * #heartbeat} until they are pulled or released.
     *
     * @param params the prefill's answer
     * @param receivedNs when it arrived
     * @return the lease
     * @throws VllmPeerException of kind {@code NOT_CONNECTED}, {@code MALFORMED}, {@code
     *     UNSUPPORTED}, {@code CAPACITY}, {@code OTHER_ENGINE} if it has another number of ranks,
     *     {@code BAD_BLOCKS} if blocks do not exist, {@code ALREADY_HELD} if the request is held
     */
    public PrefillLease hold(KvTransferParams params, long receivedNs) {
        final ConnectedEngine engine = engine(HandoffFields.engineId(params));
        final EngineRanks ranks = engine.ranks();
        final PrefillLease lease =
                PrefillLease.of(
                        params, ranks.engine(), ranks.consumers(), options.terms(), receivedNs);
        engine.requireBlocks(lease.requestId(), lease.blocks());
        leases.add(lease, ranks);
        return lease;
    }

    private ConnectedEngine engine(String engineId) {
        final ConnectedEngine engine = engines.get(engineId);
        if (engine == null) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.NOT_CONNECTED,
                    "engine " + engineId + " is not connected: shake hands and connect it first");
        }
        return engine;
    }

    /**
     * Makes the requests that read all blocks of a prefill and then give them back. Post and poll
     * them, then call {@link #pullEnded} for each.
     *
     * @param requestId of a held lease
     * @param localIndices where each block goes, of the cache's {@link VllmCache#blocks}, in the
     *     order of {@link VllmBlocks#indices}
     * @param nowNs current time
     * @return the transport's requests, one for each rank that is read
     * @throws VllmPeerException of kind {@code UNKNOWN_REQUEST}, {@code EXPIRED}, {@code READING},
     *     {@code BAD_BLOCKS}, or {@code RELEASED} if a rank has been notified already and only
     *     others could not be
     * @throws KvTransportException if the transport refuses it
     */
    public long[] pull(String requestId, int[] localIndices, long nowNs) {
        final HeldLeases.Held held = leases.get(requestId);
        held.requireNoRead();
        held.lease.requireHeld(nowNs);
        held.requireNoneNotified();
        final ConnectedEngine engine = engine(held.lease.engineId());
        final byte[] completion = engine.isToldByRead() ? held.lease.completion().encode() : null;
        final long[] requests = read(held, localIndices, completion);
        held.failed = false;
        return requests;
    }

    /** Makes one request for each rank that is read; all or none. */
    private long[] read(HeldLeases.Held held, int[] localIndices, byte[] notification) {
        final List<ConnectedEngine.Source> sources = engine(held.lease.engineId()).sources();
        final long[] requests = new long[sources.size()];
        int made = 0;
        try {
            for (ConnectedEngine.Source source : sources) {
                requests[made] = read(held, source, localIndices, notification);
                made++;
            }
        } catch (RuntimeException e) {
            for (int i = 0; i < made; i++) {
                transport.release(requests[i]); // never posted, so nothing holds it
            }
            throw e;
        }
        held.reads += requests.length;
        return requests;
    }

    private long read(
            HeldLeases.Held held,
            ConnectedEngine.Source source,
            int[] localIndices,
            byte[] notification) {
        final int[] indices = source.blocks().indices(held.lease.requestId(), held.lease.blocks());
        if (indices.length != localIndices.length || indices.length == 0) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.BAD_BLOCKS,
                    "request "
                            + held.lease.requestId()
                            + " has "
                            + indices.length
                            + " blocks to read and "
                            + localIndices.length
                            + " local indices"
                            + (indices.length == 0 ? "; release it instead" : ""));
        }
        return transport.request(
                KvTransport.Operation.READ,
                source.localList(),
                localIndices,
                source.remoteList(),
                indices,
                indices.length,
                notification);
    }

    /**
     * Records how one request of a pull ended. When the last of a pull is done, and none has
     * failed, the blocks have been given back. After a failed one they are still held: pull again,
     * or release them.
     *
     * @param requestId whose blocks were read
     * @param progress {@code DONE} or {@code FAILED}; {@code FAILED} also for a request that was
     *     never posted
     * @param endedNs when that was seen
     * @throws VllmPeerException of kind {@code UNKNOWN_REQUEST}, or {@code EXPIRED} if it was read
     *     but ended too late for its lease: its bytes must not be used
     * @throws KvTransportException if all was read, but a rank cannot be notified: the bytes are
     *     good; the lease stays, release it
     * @throws IllegalArgumentException if it is still running
     * @throws IllegalStateException if no pull of it is under way
     */
    public void pullEnded(String requestId, KvTransport.Progress progress, long endedNs) {
        final HeldLeases.Held held = leases.get(requestId);
        if (progress == KvTransport.Progress.RUNNING) {
            throw new IllegalArgumentException("request " + requestId + " is still being read");
        }
        if (held.reads == 0) {
            throw new IllegalStateException("request " + requestId + " is not being read");
        }
        held.reads--;
        final boolean done = progress == KvTransport.Progress.DONE;
        final ConnectedEngine engine = engine(held.lease.engineId());
        if (done && engine.isToldByRead()) {
            leases.remove(requestId);
        }
        try {
            if (done) {
                held.lease.requireReadInTime(endedNs);
            }
            held.failed |= !done;
        } catch (VllmPeerException e) {
            held.failed = true;
            throw e;
        }
        if (held.reads == 0 && !held.failed) {
            leases.giveBack(held);
        }
    }

    /**
     * Gives the blocks of a prefill back without reading them.
     *
     * @param requestId of a held lease
     * @param nowNs current time
     * @return false if the lease had expired: the server has freed them or is about to
     * @throws VllmPeerException of kind {@code UNKNOWN_REQUEST} or {@code READING}
     * @throws KvTransportException if the transport cannot send it; the lease stays
     */
    public boolean release(String requestId, long nowNs) {
        return leases.release(requestId, nowNs);
    }

    /**
     * Keeps leases alive: one heartbeat to each engine's ranks for the leases in need of it.
     * Forgets leases that have expired, unless their blocks are being read.
     *
     * @param nowNs current time
     * @return leases extended
     */
    public int heartbeat(long nowNs) {
        return leases.heartbeat(nowNs, new ArrayList<>());
    }

    /**
     * Leases that are held.
     *
     * @return count
     */
    public int leases() {
        return leases.size();
    }

    /**
     * Leases that ended before their blocks were fetched or released.
     *
     * @return count since the start
     */
    public long expired() {
        return leases.expired();
    }

    /**
     * Heartbeats that the transport could not send: the peer may be lost.
     *
     * @return count since the start
     */
    public long failedHeartbeats() {
        return leases.failedHeartbeats();
    }

    /**
     * Forgets all engines and leases; the servers' leases run out. Requests must have been released
     * before. Idempotent.
     *
     * @throws KvTransportException if one was not: its lists stay with the transport, all else is
     *     forgotten
     */
    @Override
    public void close() {
        leases.clear();
        final List<AutoCloseable> all = new ArrayList<>(engines.values());
        engines.clear();
        all.add(lists);
        CloseHelper.closeAll(all);
    }
}

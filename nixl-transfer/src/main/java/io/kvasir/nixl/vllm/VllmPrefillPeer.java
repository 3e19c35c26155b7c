package io.kvasir.nixl.vllm;

import io.kvasir.nixl.KvTransferParams;
import io.kvasir.nixl.transfer.KvTransport;
import io.kvasir.nixl.transfer.KvTransportException;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The prefill servers of vLLM that this process pulls blocks from, over one transport. Belongs to
 * the transport's owner thread; never blocks. The handshake does, so it is made elsewhere and its
 * answer brought here.
 *
 * <pre>
 *   VllmHandshake.ask(params)   any thread that may block
 *   connect(agent)              once per engine
 *   hold(params, now)           as soon as a prefill has answered
 *   heartbeat(now)              every second or so, until all are fetched
 *   pull(...)                   then post and poll the request, pullEnded, release the request
 *   release(...)                instead of pull, if nobody will decode
 * </pre>
 *
 * <p>One lease serves one decode: a second pull of the same request would read another prompt's
 * blocks, so it is refused.
 */
public final class VllmPrefillPeer implements AutoCloseable {
    /** Notifications stay well below the 8 KiB that a transport promises. */
    private static final int MAX_HEARTBEAT_BYTES = 4_096;

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

    private record Engine(VllmAgent agent, VllmBlocks blocks, String peer, long list) {}

    private static final class Held {
        private final PrefillLease lease;
        private int reads; // requests made that have not ended
        private boolean completing; // one of them gives the blocks back when it is done

        private Held(PrefillLease lease) {
            this.lease = lease;
        }
    }

    private final KvTransport transport;
    private final Options options;
    private final Map<String, Engine> engines = new HashMap<>();
    private final Map<String, Held> leases = new LinkedHashMap<>();
    private long expired;
    private long failedHeartbeats;

    /**
     * Makes one without engines.
     *
     * @param transport not closed by this
     * @param options what is accepted
     */
    public VllmPrefillPeer(KvTransport transport, Options options) {
        this.transport = transport;
        this.options = options;
    }

    /**
     * Makes an engine's blocks reachable: connects its agent and prepares the list of all blocks.
     * An engine that is connected already stays as it is.
     *
     * @param agent from a handshake
     * @return places of its blocks
     * @throws VllmPeerException of kind {@code INCOMPATIBLE} or {@code UNSUPPORTED}
     * @throws KvTransportException if the transport refuses it
     */
    public VllmBlocks connect(VllmAgent agent) {
        final Engine known = engines.get(agent.engineId());
        if (known != null) {
            return known.blocks();
        }
        VllmHandshake.requireCompatible(
                "engine " + agent.engineId(), agent.compatibilityHash(), options.expectedHash());
        final VllmBlocks blocks = VllmBlocks.of(agent);
        final String peer = transport.connect(agent.metadata().agent().toArray());
        try {
            final long list = transport.prepare(peer, blocks.descriptors());
            engines.put(agent.engineId(), new Engine(agent, blocks, peer, list));
        } catch (KvTransportException e) {
            transport.disconnect(peer);
            throw e;
        }
        return blocks;
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
     */
    public void disconnect(String engineId) {
        final Engine engine = engines.get(engineId);
        if (engine == null) {
            return;
        }
        for (Held held : leases.values()) {
            if (held.lease.engineId().equals(engineId)) {
                requireNoRead(held);
            }
        }
        leases.values().removeIf(held -> held.lease.engineId().equals(engineId));
        forget(engines.remove(engineId));
    }

    private void forget(Engine engine) {
        transport.releaseList(engine.list());
        transport.disconnect(engine.peer());
    }

    /**
     * Takes over the blocks of a finished prefill: from now on they are kept alive by {@link
     * #heartbeat} until they are pulled or released.
     *
     * @param params the prefill's answer
     * @param receivedNs when it arrived
     * @return the lease
     * @throws VllmPeerException of kind {@code NOT_CONNECTED}, {@code MALFORMED}, {@code
     *     UNSUPPORTED}, {@code CAPACITY}, or {@code BAD_BLOCKS} if blocks do not exist, {@code
     *     ALREADY_HELD} if the request is held
     */
    public PrefillLease hold(KvTransferParams params, long receivedNs) {
        final Engine engine = engine(HandoffFields.engineId(params));
        final PrefillLease lease =
                PrefillLease.of(params, engine.agent(), options.terms(), receivedNs);
        engine.blocks().places(lease.requestId(), lease.blocks());
        if (leases.containsKey(lease.requestId())) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.ALREADY_HELD,
                    "request " + lease.requestId() + " is held already; an answer serves once");
        }
        if (leases.size() >= options.maxLeases()) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.CAPACITY,
                    leases.size() + " leases are held; pull or release some, or raise maxLeases");
        }
        leases.put(lease.requestId(), new Held(lease));
        return lease;
    }

    private Engine engine(String engineId) {
        final Engine engine = engines.get(engineId);
        if (engine == null) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.NOT_CONNECTED,
                    "engine " + engineId + " is not connected: shake hands and connect it first");
        }
        return engine;
    }

    private Held held(String requestId) {
        final Held held = leases.get(requestId);
        if (held == null) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.UNKNOWN_REQUEST,
                    "no lease of request "
                            + requestId
                            + ": never held here, or pulled, released or expired since");
        }
        return held;
    }

    private static void requireNoRead(Held held) {
        if (held.reads > 0) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.READING,
                    "blocks of request "
                            + held.lease.requestId()
                            + " are being read by "
                            + held.reads
                            + " requests; report their end by pullEnded first");
        }
    }

    /**
     * Makes the request that reads all blocks of a prefill and then gives them back. Post and poll
     * it, then call {@link #pullEnded}.
     *
     * @param requestId of a held lease
     * @param localList list of own memory
     * @param localPlaces where each block goes, in the order of {@link VllmBlocks#places}
     * @param nowNs current time
     * @return the transport's request
     * @throws VllmPeerException of kind {@code UNKNOWN_REQUEST}, {@code EXPIRED}, {@code READING}
     *     or {@code BAD_BLOCKS}
     * @throws KvTransportException if the transport refuses it
     */
    public long pull(String requestId, long localList, int[] localPlaces, long nowNs) {
        final Held held = held(requestId);
        requireNoRead(held);
        held.lease.requireHeld(nowNs);
        final Engine engine = engine(held.lease.engineId());
        final int[] places = engine.blocks().places(requestId, held.lease.blocks());
        final long request =
                read(engine, held, localList, localPlaces, places, held.lease.completion());
        held.completing = true;
        return request;
    }

    /**
     * Makes a request that reads the blocks of some regions, such as those of a layer, and gives
     * nothing back: requests of several ranges may end in any order, so {@link #release} is to be
     * called once all have ended.
     *
     * @param requestId of a held lease
     * @param fromRegion first region
     * @param toRegion region after the last
     * @param localList list of own memory
     * @param localPlaces where each block goes, in the order of {@link VllmBlocks#places}
     * @param nowNs current time
     * @return the transport's request
     * @throws VllmPeerException of kind {@code UNKNOWN_REQUEST}, {@code EXPIRED}, {@code
     *     BAD_BLOCKS} or, beside a {@link #pull} of all regions, {@code READING}
     * @throws KvTransportException if the transport refuses it
     */
    public long pullRegions(
            String requestId,
            int fromRegion,
            int toRegion,
            long localList,
            int[] localPlaces,
            long nowNs) {
        final Held held = held(requestId);
        if (held.completing) {
            requireNoRead(held);
        }
        held.lease.requireHeld(nowNs);
        final Engine engine = engine(held.lease.engineId());
        final int[] places =
                engine.blocks().places(requestId, held.lease.blocks(), fromRegion, toRegion);
        return read(engine, held, localList, localPlaces, places, null);
    }

    private long read(
            Engine engine,
            Held held,
            long localList,
            int[] localPlaces,
            int[] places,
            VllmNotification completion) {
        if (places.length != localPlaces.length || places.length == 0) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.BAD_BLOCKS,
                    "request "
                            + held.lease.requestId()
                            + " has "
                            + places.length
                            + " blocks to read and "
                            + localPlaces.length
                            + " local places"
                            + (places.length == 0 ? "; release it instead" : ""));
        }
        final long request =
                transport.request(
                        KvTransport.Operation.READ,
                        localList,
                        localPlaces,
                        engine.list(),
                        places,
                        places.length,
                        completion == null ? null : completion.encode());
        held.reads++;
        return request;
    }

    /**
     * Notes how a pull's request ended. A whole pull that is done has given the blocks back. After
     * a failed one they are still held: pull again, or release them.
     *
     * @param requestId whose blocks were read
     * @param progress {@code DONE} or {@code FAILED}; {@code FAILED} also for a request that was
     *     never posted
     * @param endedNs when that was seen
     * @throws VllmPeerException of kind {@code UNKNOWN_REQUEST}, or {@code EXPIRED} if it was read
     *     but ended too late for its lease: its bytes must not be used
     * @throws IllegalArgumentException if it is still running
     * @throws IllegalStateException if no pull of it is under way
     */
    public void pullEnded(String requestId, KvTransport.Progress progress, long endedNs) {
        final Held held = held(requestId);
        if (progress == KvTransport.Progress.RUNNING) {
            throw new IllegalArgumentException("request " + requestId + " is still being read");
        }
        if (held.reads == 0) {
            throw new IllegalStateException("request " + requestId + " is not being read");
        }
        held.reads--;
        final boolean completed = held.completing && progress == KvTransport.Progress.DONE;
        held.completing = false;
        if (completed) {
            leases.remove(requestId);
        }
        if (progress == KvTransport.Progress.DONE) {
            held.lease.requireReadInTime(endedNs);
        }
        if (completed) {
            held.lease.released();
        }
    }

    /**
     * Gives the blocks of a prefill back without reading them, or after reading them by {@link
     * #pullRegions}.
     *
     * @param requestId of a held lease
     * @param nowNs current time
     * @return false if the lease had expired: the server has freed them or is about to
     * @throws VllmPeerException of kind {@code UNKNOWN_REQUEST} or {@code READING}
     * @throws KvTransportException if the transport cannot send it; the lease stays
     */
    public boolean release(String requestId, long nowNs) {
        final Held held = held(requestId);
        requireNoRead(held);
        final boolean inTime = held.lease.state(nowNs) == PrefillLease.State.HELD;
        if (inTime) {
            transport.send(engine(held.lease.engineId()).peer(), held.lease.completion().encode());
            held.lease.released();
        } else {
            expired++;
        }
        leases.remove(requestId);
        return inTime;
    }

    /**
     * Keeps leases alive: one heartbeat to each engine that has a lease in need of it. Forgets
     * leases that have expired, unless their blocks are being read.
     *
     * @param nowNs current time
     * @return leases extended
     */
    public int heartbeat(long nowNs) {
        final Map<String, List<PrefillLease>> due = new LinkedHashMap<>();
        for (Iterator<Held> all = leases.values().iterator(); all.hasNext(); ) {
            final Held held = all.next();
            if (held.lease.state(nowNs) == PrefillLease.State.EXPIRED && held.reads == 0) {
                expired++;
                all.remove();
            } else if (held.lease.heartbeatDue(nowNs)) {
                due.computeIfAbsent(held.lease.engineId(), id -> new ArrayList<>()).add(held.lease);
            }
        }
        int extended = 0;
        for (Map.Entry<String, List<PrefillLease>> engine : due.entrySet()) {
            extended += extend(engine(engine.getKey()).peer(), engine.getValue(), nowNs);
        }
        return extended;
    }

    private int extend(String peer, List<PrefillLease> due, long nowNs) {
        int extended = 0;
        int from = 0;
        while (from < due.size()) {
            int to = from;
            int bytes = 0;
            final List<String> ids = new ArrayList<>();
            do {
                final String id = due.get(to++).requestId();
                bytes += id.getBytes(StandardCharsets.UTF_8).length + 1;
                ids.add(id);
            } while (to < due.size() && bytes < MAX_HEARTBEAT_BYTES);
            try {
                transport.send(peer, new VllmNotification.Heartbeat(ids).encode());
            } catch (KvTransportException e) {
                failedHeartbeats++; // due again at the next call
                return extended;
            }
            due.subList(from, to).forEach(lease -> lease.heartbeatSent(nowNs));
            extended += to - from;
            from = to;
        }
        return extended;
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
        return expired;
    }

    /**
     * Heartbeats that the transport could not send: the peer may be lost.
     *
     * @return count since the start
     */
    public long failedHeartbeats() {
        return failedHeartbeats;
    }

    /**
     * Forgets all engines and leases; the servers' leases run out. Requests must have been released
     * before. Idempotent.
     */
    @Override
    public void close() {
        leases.clear();
        engines.values().forEach(this::forget);
        engines.clear();
    }
}

package io.kvasir.nixl.vllm;

import io.kvasir.nixl.transport.KvTransportException;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * The leases that one owner holds of prefill servers: what prolongs and ends them. Not thread-safe:
 * of the transport's owner.
 *
 * @param <K> by which the owner finds a lease
 */
final class HeldLeases<K> {
    /**
     * Heartbeats of several leases stay well below the 8 KiB that a transport promises; a longer
     * identifier has one of its own.
     */
    private static final int MAX_HEARTBEAT_BYTES = 4_096;

    /** A lease, and how far its blocks are from being given back. */
    static final class Held {
        final PrefillLease lease;
        final EngineRanks ranks;
        int reads; // requests of a pull that have not ended
        boolean failed; // one of them did: the blocks are not given back
        private int notified; // ranks that know the blocks are not needed any more

        private Held(PrefillLease lease, EngineRanks ranks) {
            this.lease = lease;
            this.ranks = ranks;
        }

        /** Refuses what cannot be done while blocks are being read. */
        void requireNoRead() {
            if (reads > 0) {
                throw new VllmPeerException(
                        VllmPeerException.Kind.READING,
                        "blocks of request "
                                + lease.requestId()
                                + " are being read by "
                                + reads
                                + " requests; report their end by pullEnded first");
            }
        }

        /** Refuses blocks that a rank was notified of as not needed any more. */
        void requireNoneNotified() {
            if (notified > 0) {
                throw new VllmPeerException(
                        VllmPeerException.Kind.RELEASED,
                        "blocks of request "
                                + lease.requestId()
                                + " were given back to "
                                + notified
                                + " of "
                                + ranks.count()
                                + " ranks, which may have reused them; release it");
            }
        }
    }

    private final int maxLeases;
    private final Function<PrefillLease, K> key;
    private final Map<K, Held> leases = new LinkedHashMap<>();
    private long expired;
    private long failedHeartbeats;

    HeldLeases(int maxLeases, Function<PrefillLease, K> key) {
        this.maxLeases = maxLeases;
        this.key = key;
    }

    /**
     * Adds one.
     *
     * @throws VllmPeerException of kind {@code ALREADY_HELD} or {@code CAPACITY}
     */
    void add(PrefillLease lease, EngineRanks ranks) {
        if (leases.containsKey(key.apply(lease))) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.ALREADY_HELD,
                    "request " + lease.requestId() + " is held already; an answer serves once");
        }
        if (leases.size() >= maxLeases) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.CAPACITY,
                    leases.size() + " leases are held; pull or release some, or raise maxLeases");
        }
        leases.put(key.apply(lease), new Held(lease, ranks));
    }

    /**
     * Finds one.
     *
     * @throws VllmPeerException of kind {@code UNKNOWN_REQUEST}
     */
    Held get(K wanted) {
        final Held held = leases.get(wanted);
        if (held == null) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.UNKNOWN_REQUEST,
                    "no lease of request "
                            + wanted
                            + ": never held here, or pulled, released or expired since");
        }
        return held;
    }

    /** Forgets one; an unknown one is ignored. */
    void remove(K ended) {
        leases.remove(ended);
    }

    /**
     * Forgets all of an engine, or none.
     *
     * @throws VllmPeerException of kind {@code READING} if a pull has not ended
     */
    void removeAllOf(String engineId) {
        final Collection<Held> all = leases.values();
        for (Held held : all) {
            if (held.lease.engineId().equals(engineId)) {
                held.requireNoRead();
            }
        }
        all.removeIf(held -> held.lease.engineId().equals(engineId));
    }

    /**
     * Notifies the ranks that are not notified yet, and forgets the lease; where that has been done
     * with a read, it only ends it. A rank that was notified counts a second message too.
     *
     * @throws KvTransportException if one cannot be sent; the lease stays
     */
    void giveBack(Held held) {
        final K ended = key.apply(held.lease);
        if (leases.containsKey(ended)) {
            while (held.notified < held.ranks.count()) {
                held.ranks.tell(held.notified, held.lease.completion());
                held.notified++;
            }
            leases.remove(ended);
        }
        held.lease.released();
    }

    /**
     * Gives blocks back that are not read, or forgets a lease that has expired.
     *
     * @return false if it had expired
     * @throws VllmPeerException of kind {@code UNKNOWN_REQUEST} or {@code READING}
     * @throws KvTransportException if it cannot be sent; the lease stays
     */
    boolean release(K unread, long nowNs) {
        final Held held = get(unread);
        held.requireNoRead();
        if (held.lease.state(nowNs) == PrefillLease.State.HELD) {
            giveBack(held);
            return true;
        }
        expired++;
        leases.remove(unread);
        return false;
    }

    /**
     * Sends one heartbeat to each engine's ranks for the leases in need of it, and forgets leases
     * that have expired, unless their blocks are being read.
     *
     * @param unreached takes the identifiers of engines that could not be sent it; due again at the
     *     next call
     * @return leases extended
     */
    int heartbeat(long nowNs, Collection<String> unreached) {
        final Map<EngineRanks, List<PrefillLease>> due = new LinkedHashMap<>();
        for (Iterator<Held> all = leases.values().iterator(); all.hasNext(); ) {
            final Held held = all.next();
            if (held.lease.state(nowNs) == PrefillLease.State.EXPIRED && held.reads == 0) {
                expired++;
                all.remove();
            } else if (held.lease.heartbeatDue(nowNs)) {
                due.computeIfAbsent(held.ranks, _ -> new ArrayList<>()).add(held.lease);
            }
        }
        int extended = 0;
        for (Map.Entry<EngineRanks, List<PrefillLease>> engine : due.entrySet()) {
            final int of = extend(engine.getKey(), engine.getValue(), nowNs);
            extended += of;
            if (of < engine.getValue().size()) {
                failedHeartbeats++;
                unreached.add(engine.getKey().engine().engineId());
            }
        }
        return extended;
    }

    /** Returns how many were extended: all, or those before the first message that failed. */
    private static int extend(EngineRanks ranks, List<PrefillLease> due, long nowNs) {
        int from = 0;
        while (from < due.size()) {
            int to = from;
            int bytes = 0;
            final List<String> ids = new ArrayList<>();
            while (to < due.size()) {
                final String id = due.get(to).requestId();
                bytes += id.getBytes(StandardCharsets.UTF_8).length + 1;
                if (to > from && bytes > MAX_HEARTBEAT_BYTES) {
                    break;
                }
                ids.add(id);
                to++;
            }
            try {
                for (int rank = 0; rank < ranks.count(); rank++) {
                    ranks.tell(rank, new VllmNotification.Heartbeat(ids));
                }
            } catch (KvTransportException e) {
                return from;
            }
            due.subList(from, to).forEach(lease -> lease.heartbeatSent(nowNs));
            from = to;
        }
        return from;
    }

    int size() {
        return leases.size();
    }

    long expired() {
        return expired;
    }

    long failedHeartbeats() {
        return failedHeartbeats;
    }

    void clear() {
        leases.clear();
    }
}

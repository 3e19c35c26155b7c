package io.kvasir.router.replica;

import io.kvasir.pipeline.booking.ReplicaPort;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * The bookings of other routers: applies their messages to the load, compares it with their
 * digests, and asks for what is missing. Replica thread only.
 *
 * <p>A booking is here exactly while its worker is registered in the slot that it was booked on;
 * what is dropped because a worker went, or never was there, the next digest brings back when the
 * worker is there. Of a worker that its router has removed no digest speaks any more: what is
 * booked there ends once it has not been stated for a lease.
 */
final class PeerTable {
    private static final int MAX_PEERS = 1_024;
    private static final int BOOKINGS_PER_ASK = 512;
    private static final long[] NO_HASHES = {};

    private final ReplicaConfig config;
    private final ReplicaPort port;
    private final ReplicaFleet fleet;
    private final ReplicaCounts counts;
    private final Consumer<ReplicaMessage> send;
    private final Map<Long, Peer> peers = new HashMap<>(); // by router id
    private final BookingNumbers numbers;

    PeerTable(
            ReplicaConfig config,
            ReplicaPort port,
            ReplicaFleet fleet,
            ReplicaCounts counts,
            Consumer<ReplicaMessage> send) {
        this.config = config;
        this.port = port;
        this.fleet = fleet;
        this.counts = counts;
        this.send = send;
        this.numbers = new BookingNumbers(port.firstIndex(), port.capacity());
    }

    /** Applies a message of another router. */
    void receive(ReplicaMessage message, long nowNs) {
        final Peer peer = seen(message.origin(), nowNs);
        if (peer == null) {
            return;
        }
        if (message.sequence() != ReplicaMessage.NO_SEQUENCE) {
            counts.lost.add(peer.gaps.take(message.sequence()));
        }
        switch (message) {
            case ReplicaMessage.Added added -> add(peer, added, nowNs);
            case ReplicaMessage.Prefilled prefilled -> prefilled(peer, prefilled);
            case ReplicaMessage.Freed freed -> freed(peer, freed);
            case ReplicaMessage.Output output -> output(peer, output);
            case ReplicaMessage.Digest digest -> compare(peer, digest, nowNs);
            case ReplicaMessage.Bookings list -> reconcile(peer, list);
            case ReplicaMessage.Leaving _ -> forget(peer);
            case ReplicaMessage.Ask _ -> {} // the publisher's
        }
    }

    /** The router that has sent something; null for a former run of one, or one too many. */
    private Peer seen(ReplicaOrigin origin, long nowNs) {
        Peer peer = peers.get(origin.routerId());
        if (peer != null && origin.incarnation() < peer.origin.incarnation()) {
            return null;
        }
        if (peer != null && origin.incarnation() > peer.origin.incarnation()) {
            forget(peer); // it was restarted: its former bookings are no load any more
            peer = null;
        }
        if (peer == null) {
            if (peers.size() >= MAX_PEERS) {
                counts.refused.add(1);
                return null;
            }
            peer = new Peer(origin);
            peers.put(origin.routerId(), peer);
            counts.peers.add(1);
        }
        peer.lastSeenNs = nowNs;
        return peer;
    }

    private void add(Peer peer, ReplicaMessage.Added added, long nowNs) {
        final PeerBooking known = peer.bookings.get(added.booking());
        if (known != null) {
            update(peer, known, added.sequence(), added.prefillTokens(), added.ownBlocks());
            return;
        }
        if (peer.hasEnded(added.booking())) {
            return; // it comes late
        }
        final PeerWorker worker = worker(peer, added.worker());
        if (worker == null || worker.isOutdated(added.booking(), added.sequence())) {
            return;
        }
        final long number = numbers.take();
        if (number == BookingNumbers.NONE) {
            counts.refused.add(1);
            return;
        }
        book(added, number, worker.slot);
        final PeerBooking booking =
                new PeerBooking(
                        added.booking(),
                        number,
                        worker,
                        nowNs,
                        added.sequence(),
                        added.prefillTokens(),
                        added.ownBlocks());
        peer.bookings.put(added.booking(), booking);
        worker.add(booking);
        counts.peerBookings.add(1);
        counts.applied.add(1);
        if (worker.wasAsked(added.booking())) {
            counts.repairedAdds.add(1);
        }
    }

    /** Blocks whose hashes are missing, or of another seed, count for this booking alone. */
    private void book(ReplicaMessage.Added added, long number, ReplicaFleet.Slot slot) {
        final boolean shares = added.hashCheck() == config.hashCheck();
        final long[] hashes = shares ? added.localHashes() : NO_HASHES;
        if (hashes.length < added.pathBlocks()) {
            counts.otherHashes.add(1);
        }
        port.book(
                number,
                slot.slot(),
                slot.slotGeneration(),
                hashes,
                added.ownBlocks() + added.pathBlocks() - hashes.length,
                added.prefillTokens(),
                fleet.isPredicted(slot));
    }

    /** What a peer has on a worker; null where that is not registered here. */
    private PeerWorker worker(Peer peer, ReplicaWorker named) {
        final ReplicaWorker key = named.key();
        PeerWorker worker = peer.workers.get(key);
        if (worker == null) {
            final ReplicaFleet.Slot slot = fleet.find(named);
            if (slot == null) {
                counts.unknownWorkers.add(1);
                return null;
            }
            worker = new PeerWorker(slot);
            peer.workers.put(key, worker);
        }
        return worker;
    }

    /** Has a booking weigh what a later message says. */
    private void update(Peer peer, PeerBooking booking, long sequence, long prefill, int own) {
        if (sequence <= booking.sequence) {
            return;
        }
        if (prefill > booking.prefillTokens) {
            end(peer, booking); // cannot be; so it is added again from the start
            return;
        }
        booking.sequence = sequence;
        if (prefill == booking.prefillTokens && own == booking.ownBlocks) {
            return;
        }
        if (prefill < booking.prefillTokens) {
            port.prefillComplete(booking.number); // a prompt is computed as a whole
        }
        if (own != booking.ownBlocks) {
            port.outputBlocks(booking.number, own - booking.ownBlocks);
        }
        booking.worker.change(booking, prefill, own);
        counts.applied.add(1);
    }

    private void prefilled(Peer peer, ReplicaMessage.Prefilled prefilled) {
        final PeerBooking booking = peer.bookings.get(prefilled.booking());
        if (booking == null) {
            return;
        }
        booking.sequence = Math.max(booking.sequence, prefilled.sequence());
        if (booking.prefillTokens > 0) {
            port.prefillComplete(booking.number);
            booking.worker.change(booking, 0, booking.ownBlocks);
            counts.applied.add(1);
        }
    }

    private void freed(Peer peer, ReplicaMessage.Freed freed) {
        peer.end(freed.booking());
        final PeerBooking booking = peer.bookings.get(freed.booking());
        if (booking != null) {
            end(peer, booking);
            counts.applied.add(1);
        }
    }

    private void output(Peer peer, ReplicaMessage.Output output) {
        for (int i = 0; i < output.bookings().length; i++) {
            final PeerBooking booking = peer.bookings.get(output.bookings()[i]);
            // totals only grow: one that is not more is late
            if (booking != null && output.ownBlocks()[i] > booking.ownBlocks) {
                final int own = output.ownBlocks()[i];
                port.outputBlocks(booking.number, own - booking.ownBlocks);
                booking.worker.change(booking, booking.prefillTokens, own);
                counts.applied.add(1);
            }
        }
    }

    /** Takes a booking out of the load. */
    private void end(Peer peer, PeerBooking booking) {
        port.free(booking.number);
        numbers.give(booking.number);
        peer.bookings.remove(booking.booking);
        booking.worker.remove(booking);
        counts.peerBookings.add(-1);
    }

    // -- repair ------------------------------------------------------------------------------

    private void compare(Peer peer, ReplicaMessage.Digest digest, long nowNs) {
        final List<ReplicaWorker> differing = new ArrayList<>();
        for (ReplicaMessage.WorkerSum sum : digest.workers()) {
            final PeerWorker worker =
                    sum.bookings() == 0
                            ? peer.workers.get(sum.worker().key())
                            : worker(peer, sum.worker());
            if (worker == null) {
                continue; // nothing to end, or not registered here: asked for when it is
            }
            worker.stated(nowNs);
            if (!worker.sumsUpTo(sum)) {
                differing.add(sum.worker());
            }
        }
        if (!differing.isEmpty()) {
            send.accept(
                    new ReplicaMessage.Ask(
                            config.origin(), peer.origin.routerId(), differing, new long[0]));
        }
        for (PeerWorker worker : peer.workers.values()) {
            if (worker.isUnstated(nowNs, config.leaseNs())) {
                counts.repairedFrees.add(worker.bookings.size());
                drop(peer, worker);
            }
        }
    }

    private void reconcile(Peer peer, ReplicaMessage.Bookings list) {
        final PeerWorker worker = worker(peer, list.worker());
        if (worker == null || !worker.take(list)) {
            return;
        }
        final long[] missing = new long[list.bookings().length];
        int count = 0;
        for (int i = 0; i < list.bookings().length; i++) {
            final long number = list.bookings()[i];
            final PeerBooking booking = peer.bookings.get(number);
            if (booking != null) {
                update(
                        peer,
                        booking,
                        list.sequence(),
                        list.prefillTokens()[i],
                        list.ownBlocks()[i]);
            } else if (!peer.hasEnded(number)) {
                missing[count++] = number;
                worker.ask(number);
            }
        }
        if (worker.isListComplete()) {
            endMissing(peer, worker);
        }
        if (!numbers.isEmpty()) { // else there is no room for them
            ask(peer, missing, count);
        }
    }

    private void endMissing(Peer peer, PeerWorker worker) {
        for (PeerBooking booking : worker.bookings.values().toArray(new PeerBooking[0])) {
            if (worker.isMissing(booking)) {
                peer.end(booking.booking);
                end(peer, booking);
                counts.repairedFrees.add(1);
            }
        }
    }

    private void ask(Peer peer, long[] bookings, int count) {
        for (int from = 0; from < count; from += BOOKINGS_PER_ASK) {
            send.accept(
                    new ReplicaMessage.Ask(
                            config.origin(),
                            peer.origin.routerId(),
                            List.of(),
                            Arrays.copyOfRange(
                                    bookings, from, Math.min(count, from + BOOKINGS_PER_ASK))));
        }
    }

    // -- what ends -----------------------------------------------------------------------------

    private void forget(Peer peer) {
        peer.workers.values().forEach(worker -> drop(peer, worker));
        peers.remove(peer.origin.routerId());
        counts.peers.add(-1);
    }

    /** Drops what routers have booked that fell silent, and what is too old of foreign ones. */
    void expire(long nowNs) {
        for (Peer peer : peers.values().toArray(new Peer[0])) {
            if (peer.origin.isForeign()) {
                expireForeign(peer, nowNs);
            } else if (nowNs - peer.lastSeenNs > config.leaseNs()) {
                forget(peer);
                counts.droppedPeers.add(1);
            }
        }
    }

    private void expireForeign(Peer peer, long nowNs) {
        final long mostNs = config.foreignNs().getAsLong();
        for (PeerBooking booking : peer.bookings.values().toArray(new PeerBooking[0])) {
            if (mostNs > 0 && nowNs - booking.bookedNs > mostNs) {
                end(peer, booking);
            }
        }
        if (peer.bookings.isEmpty() && nowNs - peer.lastSeenNs > config.leaseNs()) {
            forget(peer);
        }
    }

    /** Drops what is booked on workers that are not registered any more, or in another slot. */
    void fleetChanged() {
        for (Peer peer : peers.values()) {
            final Iterator<PeerWorker> workers = peer.workers.values().iterator();
            while (workers.hasNext()) {
                final PeerWorker worker = workers.next();
                if (!isThere(worker)) {
                    workers.remove();
                    drop(peer, worker);
                }
            }
        }
    }

    /** Takes what a router has on a worker out of the load; a digest that names it restores it. */
    private void drop(Peer peer, PeerWorker worker) {
        for (PeerBooking booking : worker.bookings.values().toArray(new PeerBooking[0])) {
            end(peer, booking);
        }
    }

    private boolean isThere(PeerWorker worker) {
        return fleet.at(worker.slot.slot(), worker.slot.slotGeneration()) != null;
    }
}

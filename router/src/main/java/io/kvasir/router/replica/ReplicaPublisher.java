package io.kvasir.router.replica;

import io.kvasir.pipeline.booking.ReplicaPort;
import io.kvasir.pipeline.booking.ReplicaRecord;

import org.agrona.collections.Long2LongHashMap;
import org.agrona.collections.LongHashSet;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

/**
 * Sends what becomes of the router's own bookings, and answers what other routers ask. Replica
 * thread only.
 *
 * <p>Answers are paced: lists and bookings are taken from the booking writer a few at a time, and
 * only while the outbox has room, so that they do not push out what happens meanwhile.
 */
final class ReplicaPublisher {
    private static final int RECORDS_PER_STEP = 4_096;
    private static final int BOOKINGS_PER_LIST = 4_096;
    private static final int MAX_ASKED = 65_536;
    private static final int LISTS_PER_STEP = 16;
    private static final int RESENDS_PER_STEP = 128;
    private static final int MAX_PENDING_OUTPUTS = 1_024;
    private static final int MAX_REMEMBERED = 8_192;
    private static final long NO_OUTPUT = -1;
    private static final ReplicaWorker NAMELESS = new ReplicaWorker(0, "", 0);

    private final ReplicaConfig config;
    private final ReplicaPort port;
    private final ReplicaFleet fleet;
    private final Consumer<ReplicaMessage> send;
    private final ReplicaRecord record = new ReplicaRecord();
    private final Long2LongHashMap outputs = new Long2LongHashMap(NO_OUTPUT);
    private long outputSequence;
    private final Set<ReplicaFleet.Slot> askedSlots = new LinkedHashSet<>();
    private final LongHashSet askedBookings = new LongHashSet();
    private boolean digestAsked;

    /** Whose a slot was, for ends of bookings of workers that have just been removed. */
    private final Map<Long, ReplicaWorker> tenants =
            new LinkedHashMap<>() {
                private static final long serialVersionUID = 1L;

                @Override
                protected boolean removeEldestEntry(Map.Entry<Long, ReplicaWorker> eldest) {
                    return size() > MAX_REMEMBERED;
                }
            };

    ReplicaPublisher(
            ReplicaConfig config,
            ReplicaPort port,
            ReplicaFleet fleet,
            Consumer<ReplicaMessage> send) {
        this.config = config;
        this.port = port;
        this.fleet = fleet;
        this.send = send;
    }

    /** Records what another router asks of this one. */
    void asked(ReplicaMessage.Ask ask) {
        if (ask.routerId() == ReplicaMessage.Ask.ALL) {
            digestAsked = true;
            return;
        }
        for (ReplicaWorker worker : ask.workers()) {
            final ReplicaFleet.Slot slot = fleet.find(worker);
            if (slot != null && askedSlots.size() < MAX_ASKED) {
                askedSlots.add(slot);
            }
        }
        for (long booking : ask.bookings()) {
            if (askedBookings.size() < MAX_ASKED) {
                askedBookings.add(booking);
            }
        }
    }

    /**
     * Sends what is there, and has the booking writer say what was asked for.
     *
     * @param outputsDue whether totals of outputs are to be sent that wait for others
     */
    void step(boolean outputsDue) {
        for (int i = 0; i < RECORDS_PER_STEP && port.outbox().poll(record); i++) {
            publish();
        }
        if (outputsDue) {
            sendOutputs();
        }
        if (digestAsked) {
            digestAsked = false;
            port.digest();
        }
        if (port.outbox().fill() < 0.5 && !port.isBusy()) {
            answer();
        }
    }

    private void answer() {
        final var slots = askedSlots.iterator();
        for (int i = 0; i < LISTS_PER_STEP && slots.hasNext(); i++) {
            final ReplicaFleet.Slot slot = slots.next();
            slots.remove();
            port.list(slot.slot(), slot.slotGeneration());
        }
        final var bookings = askedBookings.iterator();
        final long[] taken = new long[Math.min(RESENDS_PER_STEP, askedBookings.size())];
        for (int i = 0; i < taken.length; i++) {
            taken[i] = bookings.nextValue();
            port.resend(taken[i]);
        }
        for (long booking : taken) {
            askedBookings.remove(booking);
        }
    }

    private void publish() {
        final ReplicaOrigin from = config.origin();
        final long sequence = record.sequence();
        final long booking = record.booking();
        switch (record.kind()) {
            case ADDED -> send.accept(added(tenantOrNull()));
            case PREFILLED ->
                    send.accept(new ReplicaMessage.Prefilled(from, sequence, booking, tenant()));
            case FREED -> {
                outputs.remove(booking);
                send.accept(freed());
            }
            case OUTPUT -> {
                outputs.put(booking, record.ownBlocks());
                outputSequence = sequence;
                if (outputs.size() >= MAX_PENDING_OUTPUTS) {
                    sendOutputs();
                }
            }
            case DIGEST -> {
                sendOutputs(); // they are in the sums
                send.accept(new ReplicaMessage.Digest(from, sequence, sums()));
            }
            case LIST -> {
                sendOutputs();
                final ReplicaWorker worker = tenantOrNull();
                if (worker != null) {
                    sendList(worker);
                } else { // its number would count as lost
                    send.accept(new ReplicaMessage.Digest(from, sequence, List.of()));
                }
            }
        }
    }

    /** Of a worker that was removed before anything of it was sent: that the booking has ended. */
    private ReplicaMessage added(ReplicaWorker worker) {
        return worker == null
                ? freed()
                : new ReplicaMessage.Added(
                        config.origin(),
                        record.sequence(),
                        record.booking(),
                        worker,
                        record.pathBlocks(),
                        Arrays.copyOf(record.items(), record.itemCount()),
                        config.hashCheck(),
                        record.ownBlocks(),
                        record.prefillTokens(),
                        -1);
    }

    private ReplicaMessage freed() {
        return new ReplicaMessage.Freed(
                config.origin(), record.sequence(), record.booking(), tenant());
    }

    private void sendOutputs() {
        if (outputs.isEmpty()) {
            return;
        }
        final long[] bookings = new long[outputs.size()];
        final int[] blocks = new int[bookings.length];
        final var entries = outputs.entrySet().iterator();
        for (int i = 0; i < bookings.length; i++) {
            entries.next();
            bookings[i] = entries.getLongKey();
            blocks[i] = (int) entries.getLongValue();
        }
        outputs.clear();
        send.accept(new ReplicaMessage.Output(config.origin(), outputSequence, bookings, blocks));
    }

    private List<ReplicaMessage.WorkerSum> sums() {
        final List<ReplicaMessage.WorkerSum> sums = new ArrayList<>();
        final long[] items = record.items();
        for (int i = 0; i < record.itemCount(); i += ReplicaRecord.DIGEST_ITEMS) {
            final ReplicaWorker worker =
                    fleet.at((int) items[i], (int) (items[i] >>> Integer.SIZE));
            if (worker != null) {
                sums.add(
                        new ReplicaMessage.WorkerSum(
                                worker,
                                (int) items[i + 1],
                                items[i + 2],
                                items[i + 3],
                                items[i + 4]));
            }
        }
        return sums;
    }

    private void sendList(ReplicaWorker worker) {
        final int count = record.itemCount() / ReplicaRecord.LIST_ITEMS;
        final int parts = Math.max(1, (count + BOOKINGS_PER_LIST - 1) / BOOKINGS_PER_LIST);
        for (int part = 0; part < parts; part++) {
            final int from = part * BOOKINGS_PER_LIST;
            final int length = Math.min(BOOKINGS_PER_LIST, count - from);
            final long[] bookings = new long[length];
            final long[] prefill = new long[length];
            final int[] own = new int[length];
            for (int i = 0; i < length; i++) {
                final int at = (from + i) * ReplicaRecord.LIST_ITEMS;
                bookings[i] = record.items()[at];
                prefill[i] = record.items()[at + 1];
                own[i] = (int) record.items()[at + 2];
            }
            send.accept(
                    new ReplicaMessage.Bookings(
                            config.origin(),
                            record.sequence(),
                            worker,
                            part,
                            parts,
                            bookings,
                            prefill,
                            own));
        }
    }

    /**
     * The same for what is found by its booking: a nameless one where it is not known any more. It
     * could be taken for another worker, which has that number.
     */
    private ReplicaWorker tenant() {
        final ReplicaWorker worker = tenantOrNull();
        return worker == null ? NAMELESS : worker;
    }

    /** The worker that the record is about; null where it is not known any more. */
    private ReplicaWorker tenantOrNull() {
        final long key = (long) record.slotGeneration() << Integer.SIZE | record.slot();
        final ReplicaWorker now = fleet.at(record.slot(), record.slotGeneration());
        if (now != null) {
            tenants.putIfAbsent(key, now);
            return now;
        }
        return tenants.get(key);
    }
}

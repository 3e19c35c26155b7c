package io.kvasir.pipeline.publish;

import io.kvasir.core.index.CopyRule;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.RecoveryAnswer;
import io.kvasir.pipeline.wire.RecoveryQuery;
import io.kvasir.pipeline.wire.RouterEventWriter;

import java.security.SecureRandom;
import java.util.AbstractList;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;

/**
 * Remembers what one worker and rank has published, beside its {@link KvEventPublisher}, for
 * routers that have missed some of it: the last events, and which blocks the worker holds. Answers
 * a {@link RecoveryQuery} with the events that are wanted if all of them are remembered, else with
 * a dump: all blocks, exact after one event.
 *
 * <p>Bounded: by events and bytes of them, and by blocks. A worker that holds more blocks gives no
 * dumps until it clears its cache. A dump is made once for all that ask before the events after it
 * are forgotten; publishing waits while it is made, 10 to 35 ms of CPU time for 100,000 blocks.
 *
 * <p>Any thread may call any method; a lock orders them.
 */
public final class LocalIndexer {
    /** Events that are remembered. */
    public static final int EVENTS = 1_024;

    /** Bytes of these events. */
    public static final long EVENT_BYTES = 16L << 20;

    /** Blocks and holes that a dump may have. */
    public static final int BLOCKS = 1 << 20;

    private static final int BYTES_PER_BLOCK = 57;
    private static final int BYTES_PER_EVENT = 224;
    private static final byte[] NO_EVENT = {};

    private final long workerId;
    private final int dpRank;
    private final long publisherId;
    private final int maxBlocks;
    private final ReplayBuffer events; // event 1 has number 0; empty where there was none
    private final HeldBlocks blocks;
    private boolean eagle; // blocks are hashed for it
    private long lastEventId;
    private long lostEventId; // since the last clear; 0 for none
    private Dump dumpOrNull; // of the last query that wanted one
    private long eventAnswers;
    private long dumpAnswers;
    private long dumpsMade;
    private long refusals;

    /** All blocks, exact after one event. */
    private record Dump(long lastEventId, long lostEventId, int mostBytes, List<byte[]> payloads) {}

    /**
     * What was asked and answered so far.
     *
     * @param eventAnswers answers with events
     * @param dumpAnswers answers with a dump
     * @param dumpsMade dumps that were made for them
     * @param refusals queries that were answered with neither
     */
    public record Counts(long eventAnswers, long dumpAnswers, long dumpsMade, long refusals) {}

    /** Remembers {@value #EVENTS} events and {@value #BLOCKS} blocks. */
    public LocalIndexer(long workerId, int dpRank, long publisherId) {
        this(workerId, dpRank, publisherId, EVENTS, EVENT_BYTES, BLOCKS);
    }

    /**
     * Begins with an empty cache, before event 1.
     *
     * @param workerId the worker, 64 unsigned bits
     * @param dpRank its data-parallel rank
     * @param publisherId as the transport of the events names their publisher; not 0
     * @param maxEvents most events that are remembered
     * @param maxEventBytes most bytes of them
     * @param maxBlocks most blocks and holes that are remembered
     * @throws IllegalArgumentException if a number is out of range
     */
    public LocalIndexer(
            long workerId,
            int dpRank,
            long publisherId,
            int maxEvents,
            long maxEventBytes,
            int maxBlocks) {
        if (publisherId == 0) {
            throw new IllegalArgumentException(
                    "publisherId=0: the transport does not name the publisher of its events, so"
                            + " that readers could not tell one life of it from the next");
        }
        if (dpRank < 0 || maxEvents < 1 || maxEventBytes < 1 || maxBlocks < 1) {
            throw new IllegalArgumentException(
                    "dpRank="
                            + dpRank
                            + " must not be negative, events="
                            + maxEvents
                            + ", bytes="
                            + maxEventBytes
                            + " and blocks="
                            + maxBlocks
                            + " must be positive");
        }
        this.workerId = workerId;
        this.dpRank = dpRank;
        this.publisherId = publisherId;
        this.maxBlocks = maxBlocks;
        this.events = new ReplayBuffer(maxEvents, maxEventBytes);
        this.blocks = new HeldBlocks(maxBlocks);
    }

    /** The worker, 64 unsigned bits. */
    public long workerId() {
        return workerId;
    }

    /** The worker's data-parallel rank. */
    public int dpRank() {
        return dpRank;
    }

    /**
     * Remembers consecutive events. Before they are published: a reader that has seen one may ask.
     *
     * @param firstEventId number of the first one: the next one
     * @param batch stores, removals of last copies, clears; not kept
     */
    synchronized void record(long firstEventId, KvBatch batch) {
        long eventId = firstEventId;
        eagle |= batch.eagle();
        for (int at = batch.first(); at >= 0; at = batch.next(at)) {
            events.add(RouterEventWriter.event(workerId, dpRank, eventId++, batch, at));
            blocks.apply(batch, at);
            if (batch.kind(at) == KvBatch.Kind.CLEARED) {
                lostEventId = 0;
            }
        }
        lastEventId = eventId - 1;
        forgetOldDump();
    }

    /** There is no event under the next number, but a change of the cache that is not known. */
    synchronized void skip(long eventId) {
        events.add(NO_EVENT);
        lostEventId = eventId;
        forgetOldDump();
    }

    /** A dump is of no use without all events after it. */
    private void forgetOldDump() {
        if (dumpOrNull != null && dumpOrNull.lastEventId + 1 < firstEvent()) {
            dumpOrNull = null;
        }
    }

    private long firstEvent() {
        return events.available(0) + 1;
    }

    /** Number of the last event, 0 before the first. */
    public synchronized long lastEventId() {
        return lastEventId;
    }

    /** Blocks that the worker holds. */
    public synchronized int blocks() {
        return blocks.size();
    }

    /** What was asked and answered so far. */
    public synchronized Counts counts() {
        return new Counts(eventAnswers, dumpAnswers, dumpsMade, refusals);
    }

    /**
     * Answers a query.
     *
     * @param query the message; malformed ones are answered too
     * @param mostBytes most bytes of each message of the answer, at least {@value
     *     RecoveryAnswer#HEAD_BYTES} and what one block takes
     * @return the messages, in order; at least one. Each is made when it is asked for, so that an
     *     answer takes no more memory than the events or the dump that all have in common
     */
    public synchronized List<byte[]> answer(byte[] query, int mostBytes) {
        final RecoveryQuery wanted = RecoveryQuery.read(query);
        if (wanted == null) {
            return refused("the query cannot be read");
        }
        if (wanted.workerId() != workerId || wanted.dpRank() != dpRank) {
            return refused(
                    "worker "
                            + Long.toUnsignedString(wanted.workerId())
                            + "/"
                            + wanted.dpRank()
                            + " was asked for, this is "
                            + Long.toUnsignedString(workerId)
                            + "/"
                            + dpRank);
        }
        final long start = Math.max(1, wanted.startEventId());
        if (wanted.endEventId() < start) {
            return refused(
                    "invalid range: start_event_id="
                            + start
                            + ", end_event_id="
                            + wanted.endEventId());
        }
        if (start > lastEventId + 1) {
            refusals++;
            return List.of(message(RecoveryAnswer.Kind.TOO_NEW, 0, 1, NO_EVENT));
        }
        final int mostPayload = mostBytes - RecoveryAnswer.HEAD_BYTES;
        if (start < firstEvent()) {
            return dump(mostPayload, start - 1);
        }
        final long end = Math.min(wanted.endEventId(), lastEventId);
        final List<List<byte[]>> lists = events(start, end, mostPayload);
        if (lists == null) {
            return dump(mostPayload, lastEventId);
        }
        eventAnswers++;
        return messages(
                RecoveryAnswer.Kind.EVENTS,
                lists,
                RouterEventWriter::payload,
                lastEventId,
                lastWithout(start, end));
    }

    /** Highest number of a range under which there was no event; 0 for none. */
    private long lastWithout(long first, long last) {
        for (long id = last; id >= first; id--) {
            if (events.get(id - 1).length == 0) {
                return id;
            }
        }
        return 0;
    }

    private List<byte[]> refused(String why) {
        refusals++;
        return List.of(
                new RecoveryAnswer(
                                RecoveryAnswer.Kind.ERROR,
                                publisherId,
                                workerId,
                                dpRank,
                                lastEventId,
                                lostEventId,
                                0,
                                1,
                                why,
                                NO_EVENT)
                        .toBytes());
    }

    private byte[] message(RecoveryAnswer.Kind kind, int part, int parts, byte[] payload) {
        return message(kind, part, parts, payload, lastEventId, lostEventId);
    }

    private byte[] message(
            RecoveryAnswer.Kind kind, int part, int parts, byte[] payload, long last, long lost) {
        return new RecoveryAnswer(
                        kind, publisherId, workerId, dpRank, last, lost, part, parts, "", payload)
                .toBytes();
    }

    private <T> List<byte[]> messages(
            RecoveryAnswer.Kind kind,
            List<T> parts,
            Function<T, byte[]> payload,
            long last,
            long lost) {
        return new AbstractList<>() {
            @Override
            public byte[] get(int part) {
                return message(
                        kind, part, parts.size(), payload.apply(parts.get(part)), last, lost);
            }

            @Override
            public int size() {
                return parts.size();
            }
        };
    }

    /** Lists of events up to a size; null if one does not fit. */
    private List<List<byte[]>> events(long first, long last, int mostBytes) {
        final List<List<byte[]>> lists = new ArrayList<>();
        List<byte[]> list = new ArrayList<>();
        int bytes = BYTES_PER_EVENT;
        for (long id = first; id <= last; id++) {
            final byte[] event = events.get(id - 1);
            if (event.length + BYTES_PER_EVENT > mostBytes) {
                return null;
            }
            if (bytes + event.length > mostBytes) {
                lists.add(list);
                list = new ArrayList<>();
                bytes = BYTES_PER_EVENT;
            }
            if (event.length > 0) {
                list.add(event);
                bytes += event.length;
            }
        }
        lists.add(list);
        return lists;
    }

    /** A dump, exact after this event or a later one. */
    private List<byte[]> dump(int mostBytes, long atLeast) {
        if (blocks.hasOverflowed()) {
            return refused(
                    "the worker has held more than "
                            + maxBlocks
                            + " blocks: no dump before its"
                            + " next clear; raise the blocks of its local indexer");
        }
        if (dumpOrNull == null
                || dumpOrNull.mostBytes != mostBytes
                || dumpOrNull.lastEventId < atLeast) {
            dumpsMade++;
            dumpOrNull =
                    new Dump(lastEventId, lostEventId, mostBytes, new Payloads(mostBytes).all());
        }
        dumpAnswers++;
        return messages(
                RecoveryAnswer.Kind.DUMP,
                dumpOrNull.payloads,
                Function.identity(),
                dumpOrNull.lastEventId,
                dumpOrNull.lostEventId);
    }

    /** Cuts a dump into lists of events, which are numbered from 1. */
    private final class Payloads implements HeldBlocks.Visitor {
        private final List<byte[]> payloads = new ArrayList<>();
        private final KvBatch batch = new KvBatch();
        private final int mostBytes;
        private final long[] hole = new long[1];
        private long nextId = 1;
        private int bytes = BYTES_PER_EVENT;

        private Payloads(int mostBytes) {
            this.mostBytes = mostBytes;
            begin();
        }

        private void begin() {
            batch.reset(0, KvBatch.NO_SEQUENCE, CopyRule.LAST_COPY, false, ApplyListener.NONE);
            if (eagle) {
                batch.markEagle();
            }
        }

        private List<byte[]> all() {
            blocks.show(new SecureRandom().nextLong(), this);
            end();
            return List.copyOf(payloads);
        }

        private void end() {
            payloads.add(RouterEventWriter.payload(workerId, dpRank, nextId, batch));
            nextId += batch.operations();
            bytes = BYTES_PER_EVENT;
            begin();
        }

        /** Makes room for an event, if the list has any. */
        private void need(int more) {
            if (bytes + more > mostBytes && batch.operations() > 0) {
                end();
            }
            bytes += more;
        }

        @Override
        public void stored(boolean root, long parent, long[] names, long[] locals, int count) {
            final int most = Math.max(1, (mostBytes - 2 * BYTES_PER_EVENT) / BYTES_PER_BLOCK);
            if (count <= most) {
                need(BYTES_PER_EVENT + count * BYTES_PER_BLOCK);
                batch.addStored(root, parent, names, locals, count);
                return;
            }
            boolean atRoot = root;
            long before = parent;
            for (int from = 0; from < count; from += most) {
                final int part = Math.min(most, count - from);
                final long[] someNames = Arrays.copyOfRange(names, from, from + part);
                need(BYTES_PER_EVENT + part * BYTES_PER_BLOCK);
                batch.addStored(
                        atRoot,
                        before,
                        someNames,
                        Arrays.copyOfRange(locals, from, from + part),
                        part);
                atRoot = false;
                before = someNames[part - 1];
            }
        }

        @Override
        public void hole(long name) {
            hole[0] = name;
            need(BYTES_PER_EVENT);
            batch.addRemoved(hole, 1);
        }
    }
}

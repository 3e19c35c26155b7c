package io.kvasir.pipeline.publish;

import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.RouterEventWriter;

import java.io.IOException;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Keeps what is published, as one line an event; fails when it shall, and beyond its limit. */
final class RecordedTransport implements RouterEventTransport {
    private final List<String> lines = new ArrayList<>();
    private final Envelopes envelopes = new Envelopes("kv-events", InstantSource.system());
    private int messages;
    private int failures;
    private long maxMessageBytes = Long.MAX_VALUE;
    private int maxBlocks = Integer.MAX_VALUE;
    private int longestMessage;
    private boolean closed;

    synchronized void failNext(int times) {
        failures = times;
    }

    synchronized void limitMessages(long bytes) {
        maxMessageBytes = bytes;
    }

    /** Has events of more blocks refused for good. */
    synchronized void limitBlocks(int blocks) {
        maxBlocks = blocks;
    }

    /** Bytes of the longest message, in the longest of the forms. */
    synchronized int longestMessage() {
        return longestMessage;
    }

    @Override
    public synchronized long maxMessageBytes() {
        return maxMessageBytes;
    }

    synchronized List<String> lines() {
        return List.copyOf(lines);
    }

    synchronized int messages() {
        return messages;
    }

    synchronized boolean isClosed() {
        return closed;
    }

    @Override
    public synchronized void publish(long workerId, int dpRank, long firstEventId, KvBatch events)
            throws IOException {
        if (failures > 0) {
            failures--;
            throw new IOException("refused");
        }
        messages++;
        long id = firstEventId;
        longestMessage =
                Math.max(
                        longestMessage,
                        envelopes.next(workerId, dpRank, firstEventId, events).length);
        for (int at = events.first(); at >= 0; at = events.next(at)) {
            if (events.count(at) > maxBlocks) {
                throw new UnpublishableException("beyond " + maxBlocks, null);
            }
            longestMessage =
                    Math.max(
                            longestMessage,
                            RouterEventWriter.json(workerId, dpRank, id, events, at).length);
            lines.add(workerId + "/" + dpRank + " " + id++ + " " + describe(events, at));
        }
    }

    private static String describe(KvBatch events, int at) {
        final long[] names = new long[events.count(at)];
        return switch (events.kind(at)) {
            case STORED -> {
                events.engineHashes(at, names);
                yield "stored "
                        + (events.isRoot(at) ? "root" : "behind " + events.parent(at))
                        + " "
                        + shortened(names);
            }
            case REMOVED -> {
                events.engineHashes(at, names);
                yield "removed " + shortened(names);
            }
            case CLEARED -> "cleared";
            case REMOVED_TO, REFILL, NAMED, TIER_CLEARED ->
                    throw new AssertionError(events.kind(at));
        };
    }

    private static String shortened(long[] names) {
        return names.length <= 4
                ? Arrays.toString(names)
                : names[0] + ".." + names[names.length - 1];
    }

    @Override
    public synchronized void close() {
        closed = true;
    }
}

package io.kvasir.services.indexer;

import com.fasterxml.jackson.core.JsonGenerator;

import io.kvasir.core.index.HeldRunVisitor;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.memory.ClosedException;
import io.kvasir.gateway.openai.Json;

import org.agrona.collections.LongHashSet;

import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/**
 * Writes what indexes hold as router events that would build it: per group from event 0 on, one
 * rank after the other, of each rank parents before children, with the engine hashes of the rank.
 *
 * <p>A rank's blocks are collected in parts, between which its events are applied; then what is not
 * reached through its parents any more is left out. Blocks behind a hole are left out, too: nothing
 * could be stored there. One rank's hashes are in memory at a time.
 */
final class DumpWriter {
    /** The index writer is held up for so many blocks at a time: some hundred microseconds. */
    private static final int BLOCKS_PER_PART = 8_192;

    /** Blocks behind each other of one rank. */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Run(int depth, long parent, long[] names, long[] locals) {}

    private DumpWriter() {}

    /**
     * Writes {@code {"model:group": {"block_size": n, "events": […]}}}.
     *
     * @throws IOException if the caller is not there any more
     * @throws ClosedException if a group ends meanwhile
     */
    static void write(List<IndexGroup> groups, OutputStream out) throws IOException {
        final JsonGenerator json = Json.FACTORY.createGenerator(out);
        json.writeStartObject();
        for (IndexGroup group : groups) {
            json.writeObjectFieldStart(group.key.dumpName());
            json.writeNumberField("block_size", group.blockSize);
            json.writeArrayFieldStart("events");
            long eventId = 0;
            for (Tenant tenant : group.tenants()) {
                final List<Run> runs = collect(group, tenant);
                if (group.has(tenant)) { // else some may be its successor's
                    eventId = write(tenant, runs, eventId, json);
                }
            }
            json.writeEndArray();
            json.writeEndObject();
        }
        json.writeEndObject();
        json.flush();
    }

    private static List<Run> collect(IndexGroup group, Tenant tenant) {
        final List<Run> runs = new ArrayList<>();
        final HeldRunVisitor keep =
                (depth, parent, names, locals, count) -> {
                    if (depth != HeldRunVisitor.BEHIND_HOLE) {
                        runs.add(
                                new Run(
                                        depth,
                                        parent,
                                        Arrays.copyOf(names, count),
                                        Arrays.copyOf(locals, count)));
                    }
                };
        try {
            int from = 0;
            while (from != PrefixIndex.NO_MORE_RUNS) {
                from = group.visitRuns(tenant, from, BLOCKS_PER_PART, keep);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new ClosedException("the indexer");
        }
        runs.sort(Comparator.comparingInt(Run::depth));
        return runs;
    }

    private static long write(Tenant tenant, List<Run> runs, long firstId, JsonGenerator json)
            throws IOException {
        final LongHashSet reached = new LongHashSet();
        long eventId = firstId;
        for (Run run : runs) {
            if (run.depth() == 0 || reached.contains(run.parent())) {
                for (long name : run.names()) {
                    reached.add(name);
                }
                write(tenant, run, eventId++, json);
            }
        }
        return eventId;
    }

    private static void write(Tenant tenant, Run run, long eventId, JsonGenerator json)
            throws IOException {
        json.writeStartObject();
        writeUnsigned("worker_id", tenant.instance, json);
        json.writeStringField("storage_tier", "device");
        json.writeStringField("residency_domain", "worker");
        json.writeObjectFieldStart("event");
        json.writeNumberField("event_id", eventId);
        json.writeObjectFieldStart("data");
        json.writeObjectFieldStart("stored");
        if (run.depth() == 0) {
            json.writeNullField("parent_hash");
        } else {
            writeUnsigned("parent_hash", run.parent(), json);
        }
        json.writeNullField("start_position");
        json.writeArrayFieldStart("blocks");
        for (int i = 0; i < run.names().length; i++) {
            json.writeStartObject();
            writeUnsigned("block_hash", run.names()[i], json);
            writeUnsigned("tokens_hash", run.locals()[i], json);
            json.writeNullField("mm_extra_info");
            json.writeEndObject();
        }
        json.writeEndArray();
        json.writeEndObject();
        json.writeEndObject();
        json.writeNumberField("dp_rank", tenant.dpRank);
        json.writeEndObject();
        json.writeEndObject();
    }

    private static void writeUnsigned(String name, long value, JsonGenerator json)
            throws IOException {
        json.writeFieldName(name);
        json.writeNumber(Long.toUnsignedString(value));
    }
}

package io.kvasir.services.indexer;

import com.fasterxml.jackson.core.JsonGenerator;

import io.kvasir.core.memory.ClosedException;
import io.kvasir.gateway.openai.Json;
import io.kvasir.pipeline.events.SlotRuns;
import io.kvasir.pipeline.events.SlotRuns.Run;

import java.io.IOException;
import java.io.OutputStream;
import java.util.List;

/**
 * Writes what indexes hold as router events that would build it: per group from event 0 on, one
 * rank after the other, with the engine hashes of the rank in the order of {@link SlotRuns}. One
 * rank's hashes are in memory at a time.
 */
final class DumpWriter {
    private DumpWriter() {}

    /**
     * Writes {@code {"model:group": {"block_size": n, "events": […]}}}; with {@code
     * "routing_group"} first where the name alone would be read as another group's.
     *
     * @throws IOException if the caller is not there any more
     * @throws ClosedException if a group ends meanwhile
     */
    static void write(List<IndexGroup> groups, OutputStream out) throws IOException {
        final JsonGenerator json = Json.FACTORY.createGenerator(out);
        json.writeStartObject();
        for (IndexGroup group : groups) {
            json.writeObjectFieldStart(group.key.dumpName());
            if (!group.key.isMeantByDumpName()) {
                json.writeStringField("routing_group", group.key.routingGroup());
            }
            json.writeNumberField("block_size", group.blockSize);
            json.writeArrayFieldStart("events");
            long eventId = 0;
            for (Tenant tenant : group.tenants()) {
                final List<Run> runs = collect(group, tenant);
                if (group.has(tenant)) { // else some may be its successor's
                    for (Run run : runs) {
                        write(tenant, run, group.hasEagleBlocks(), eventId++, json);
                    }
                }
            }
            json.writeEndArray();
            json.writeEndObject();
        }
        json.writeEndObject();
        json.flush();
    }

    private static List<Run> collect(IndexGroup group, Tenant tenant) {
        try {
            return SlotRuns.collect(
                    (from, most, keep) -> group.visitRuns(tenant, from, most, keep));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new ClosedException("the indexer");
        }
    }

    private static void write(
            Tenant tenant, Run run, boolean eagle, long eventId, JsonGenerator json)
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
        for (int i = 0; i < run.engineHashes().length; i++) {
            json.writeStartObject();
            writeUnsigned("block_hash", run.engineHashes()[i], json);
            writeUnsigned("tokens_hash", run.localHashes()[i], json);
            json.writeNullField("mm_extra_info");
            json.writeEndObject();
        }
        json.writeEndArray();
        if (eagle) {
            json.writeNumberField("eagle", 1);
        }
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

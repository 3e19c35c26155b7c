package io.kvasir.services.indexer;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.openai.Json;
import io.kvasir.services.http.GroupKey;
import io.kvasir.services.http.ServiceException;

import java.io.IOException;
import java.io.InputStream;
import java.util.concurrent.locks.LockSupport;

/**
 * Loads a dump into the indexes of a registry, as it is read. Only what engines hold on their
 * devices is used; an event that is something else, or not of the known shape, is left out and
 * counted.
 */
final class DumpReader {
    private static final long FULL_RING_PAUSE_NS = 1_000_000;
    private static final String DEVICE = "device";
    private static final String WORKER = "worker";

    private final IndexRegistry registry;
    private long loaded;
    private long leftOut;

    DumpReader(IndexRegistry registry) {
        this.registry = registry;
    }

    /** Events loaded. */
    long loaded() {
        return loaded;
    }

    /** Events that were not used. */
    long leftOut() {
        return leftOut;
    }

    /**
     * Reads all of a dump. What was loaded before something goes wrong stays.
     *
     * @throws IOException if it is not JSON of a dump's shape, or ends early
     * @throws ServiceException if there is no room for it
     */
    void read(InputStream in) throws IOException, ServiceException {
        try (JsonParser json = Json.FACTORY.createParser(in)) {
            expect(json.nextToken(), JsonToken.START_OBJECT);
            while (next(json) == JsonToken.FIELD_NAME) {
                final GroupKey key = GroupKey.ofDump(json.currentName());
                expect(json.nextToken(), JsonToken.START_OBJECT);
                readGroup(key, json);
            }
        }
    }

    private void readGroup(GroupKey key, JsonParser json) throws IOException, ServiceException {
        int blockSize = 0;
        while (next(json) == JsonToken.FIELD_NAME) {
            final String name = json.currentName();
            json.nextToken();
            if (name.equals("block_size")) {
                blockSize = json.getValueAsInt();
            } else if (name.equals("events")) {
                expect(json.currentToken(), JsonToken.START_ARRAY);
                while (next(json) != JsonToken.END_ARRAY) {
                    if (load(key, blockSize, Json.MAPPER.readTree(json))) {
                        loaded++;
                    } else {
                        leftOut++;
                    }
                }
            } else {
                json.skipChildren();
            }
        }
    }

    private static JsonToken next(JsonParser json) throws IOException {
        final JsonToken token = json.nextToken();
        if (token == null) {
            throw new IOException("the dump ends early");
        }
        return token;
    }

    private static void expect(JsonToken found, JsonToken wanted) throws IOException {
        if (found != wanted) {
            throw new IOException("no dump: " + found + " where " + wanted + " should be");
        }
    }

    private boolean load(GroupKey key, int blockSize, JsonNode routerEvent)
            throws ServiceException {
        final JsonNode event = routerEvent.path("event");
        final JsonNode stored = event.path("data").path("stored");
        final JsonNode worker = routerEvent.path("worker_id");
        final JsonNode blocks = stored.path("blocks");
        final JsonNode parent = stored.path("parent_hash");
        final JsonNode position = stored.path("start_position");
        final int dpRank = event.path("dp_rank").asInt(0);
        if (blockSize < 1
                || dpRank < 0
                || !worker.isIntegralNumber()
                || blocks.isEmpty()
                || !routerEvent.path("storage_tier").asText(DEVICE).equals(DEVICE)
                || !routerEvent.path("residency_domain").asText(WORKER).equals(WORKER)
                || !(position.isMissingNode() || position.isNull() || position.asInt(-1) == 0)) {
            return false;
        }
        final boolean root = parent.isMissingNode() || parent.isNull();
        final long[] names = new long[blocks.size()];
        final long[] locals = new long[names.length];
        for (int i = 0; i < names.length; i++) {
            final JsonNode name = blocks.get(i).path("block_hash");
            final JsonNode local = blocks.get(i).path("tokens_hash");
            if (!name.isIntegralNumber() || !local.isIntegralNumber()) {
                return false;
            }
            names[i] = bits(name);
            locals[i] = bits(local);
        }
        final Tenant tenant = registry.recover(key, blockSize, bits(worker), dpRank);
        if (tenant == null) {
            return false;
        }
        final IndexGroup group = registry.group(key);
        if (stored.path("eagle").asInt() == 1) {
            group.expectEagleBlocks();
        }
        while (!group.load(tenant, root, root ? 0 : bits(parent), names, locals)) {
            LockSupport.parkNanos(FULL_RING_PAUSE_NS);
        }
        return true;
    }

    /** An unsigned number of 64 bits, or a signed one. */
    private static long bits(JsonNode number) {
        return number.bigIntegerValue().longValue();
    }
}

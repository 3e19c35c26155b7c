package io.kvasir.services.indexer;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.openai.Json;
import io.kvasir.services.http.GroupKey;
import io.kvasir.services.http.ServiceException;

import java.io.IOException;
import java.io.InputStream;
import java.math.BigInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * Loads a dump into the indexes of a registry, as it is read. Only what engines hold on their
 * devices is used; an event that is something else, or not of the known shape, is left out and
 * counted. Events are loaded as they are read, so what says whose they are must come before them.
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
     * @throws IOException if it is not JSON of a dump's shape, or ends early, or a group's events
     *     come before its block size or its routing group
     * @throws ServiceException if there is no room for it
     */
    void read(InputStream in) throws IOException, ServiceException {
        try (JsonParser json = Json.FACTORY.createParser(in)) {
            expect(json.nextToken(), JsonToken.START_OBJECT);
            while (next(json) == JsonToken.FIELD_NAME) {
                final String name = json.currentName();
                expect(json.nextToken(), JsonToken.START_OBJECT);
                readGroup(name, json);
            }
        }
    }

    private void readGroup(String dumpName, JsonParser json) throws IOException, ServiceException {
        GroupKey key = GroupKey.ofDump(dumpName);
        int blockSize = 0;
        boolean hasEvents = false;
        while (next(json) == JsonToken.FIELD_NAME) {
            final String name = json.currentName();
            json.nextToken();
            if (hasEvents && (name.equals("block_size") || name.equals("routing_group"))) {
                throw new IOException("no dump: " + name + " of " + dumpName + " after its events");
            } else if (name.equals("block_size")) {
                expectOne(json.currentToken());
                blockSize = json.getValueAsInt();
            } else if (name.equals("routing_group")) {
                expectOne(json.currentToken());
                key = GroupKey.ofDumpOrNull(dumpName, json.getText());
                if (key == null) {
                    throw new IOException("no dump: " + dumpName + " of group " + json.getText());
                }
            } else if (name.equals("events")) {
                expect(json.currentToken(), JsonToken.START_ARRAY);
                hasEvents = true;
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

    /** An object or array would be taken apart as members of the dump. */
    private static void expectOne(JsonToken found) throws IOException {
        if (!found.isScalarValue()) {
            throw new IOException("no dump: " + found + " where one value should be");
        }
    }

    private boolean load(GroupKey key, int blockSize, JsonNode routerEvent)
            throws ServiceException {
        final JsonNode event = routerEvent.path("event");
        final JsonNode stored = event.path("data").path("stored");
        final JsonNode worker = routerEvent.path("worker_id");
        final JsonNode blocks = stored.path("blocks");
        final JsonNode parent = stored.path("parent_hash");
        final int dpRank = count(event.path("dp_rank"));
        final boolean root = isAbsent(parent);
        if (blockSize < 1
                || dpRank < 0
                || !is64Bits(worker)
                || !(root || is64Bits(parent))
                || !blocks.isArray()
                || blocks.isEmpty()
                || !routerEvent.path("storage_tier").asText(DEVICE).equals(DEVICE)
                || !routerEvent.path("residency_domain").asText(WORKER).equals(WORKER)
                || count(stored.path("start_position")) != 0) {
            return false;
        }
        final long[] names = new long[blocks.size()];
        final long[] locals = new long[names.length];
        for (int i = 0; i < names.length; i++) {
            final JsonNode name = blocks.get(i).path("block_hash");
            final JsonNode local = blocks.get(i).path("tokens_hash");
            if (!is64Bits(name) || !is64Bits(local)) {
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
        if (count(stored.path("eagle")) == 1) {
            group.expectEagleBlocks();
        }
        while (!group.load(tenant, root, root ? 0 : bits(parent), names, locals)) {
            LockSupport.parkNanos(FULL_RING_PAUSE_NS);
        }
        return true;
    }

    private static boolean isAbsent(JsonNode value) {
        return value.isMissingNode() || value.isNull();
    }

    /** A number from 0 to 2^31 − 1; 0 where there is none, something negative for all else. */
    private static int count(JsonNode value) {
        if (isAbsent(value)) {
            return 0;
        }
        return value.isIntegralNumber() && value.canConvertToInt() ? value.intValue() : -1;
    }

    /** Whether it is an unsigned number of 64 bits, or a signed one. */
    private static boolean is64Bits(JsonNode value) {
        if (!value.isIntegralNumber()) {
            return false;
        }
        final BigInteger number = value.bigIntegerValue();
        return number.bitLength() <= (number.signum() < 0 ? Long.SIZE - 1 : Long.SIZE);
    }

    private static long bits(JsonNode number) {
        return number.bigIntegerValue().longValue();
    }
}

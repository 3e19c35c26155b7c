package io.kvasir.nixl.loopback;

import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/**
 * What the transports of this process have registered. A peer in the same process reaches memory
 * that lies in no file through this, and never through an address out of a message.
 */
final class InProcessPeers {
    private static final ConcurrentMap<Long, RegionTable> TABLES = new ConcurrentHashMap<>();

    private InProcessPeers() {}

    static void publish(long instance, RegionTable table) {
        TABLES.put(instance, table);
    }

    static void forget(long instance) {
        TABLES.remove(instance);
    }

    /** Empty if there is no such end in this process. */
    static RegionTable find(long instance) {
        return TABLES.getOrDefault(instance, RegionTable.EMPTY);
    }
}

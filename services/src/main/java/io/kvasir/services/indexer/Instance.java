package io.kvasir.services.indexer;

import java.util.Map;
import java.util.TreeMap;

/** An engine: its listeners, and the ranks that only a peer's dump contains. Under a lock. */
final class Instance {
    final long id;
    final IndexGroup group;
    final Map<Integer, Listener> listeners = new TreeMap<>();

    /** Ranks with blocks of a peer's dump and no listener yet. */
    final Map<Integer, Tenant> recovered = new TreeMap<>();

    Instance(long id, IndexGroup group) {
        this.id = id;
        this.group = group;
    }
}

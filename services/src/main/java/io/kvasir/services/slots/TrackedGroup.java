package io.kvasir.services.slots;

import io.kvasir.services.http.GroupKey;

import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;

/** Workers and running requests of one model and routing group. Under the tracker's lock. */
final class TrackedGroup {
    final GroupKey key;
    final int blockSize;
    final Map<Long, TrackedWorker> workers = new TreeMap<>(Long::compareUnsigned);
    final Map<String, TrackedRequest> requests = new HashMap<>();

    TrackedGroup(GroupKey key, int blockSize) {
        this.key = key;
        this.blockSize = blockSize;
    }
}

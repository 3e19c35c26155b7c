package io.kvasir.pipeline.wire;

import io.kvasir.core.index.StorageTier;

/**
 * The words of router events, their envelopes, and the queries for old ones, as they stand in
 * messages.
 */
final class RouterEventNames {
    static final byte[] WORKER_ID = EventFields.ascii("worker_id");
    static final byte[] STORAGE_TIER = EventFields.ascii("storage_tier");
    static final byte[] RESIDENCY_DOMAIN = EventFields.ascii("residency_domain");
    static final byte[] EVENT = EventFields.ascii("event");
    static final byte[] EVENT_ID = EventFields.ascii("event_id");
    static final byte[] DP_RANK = EventFields.ascii("dp_rank");
    static final byte[] DATA = EventFields.ascii("data");
    static final byte[] STORED = EventFields.ascii("stored");
    static final byte[] REMOVED = EventFields.ascii("removed");
    static final byte[] CLEARED = EventFields.ascii("cleared");
    static final byte[] TIER_CLEARED = EventFields.ascii("tier_cleared");
    static final byte[] PARENT_HASH = EventFields.ascii("parent_hash");
    static final byte[] START_POSITION = EventFields.ascii("start_position");
    static final byte[] BLOCKS = EventFields.ascii("blocks");

    /** Kvasir's own: 1 where the blocks are hashed for EAGLE. Other readers pass over it. */
    static final byte[] EAGLE = EventFields.ascii("eagle");

    static final byte[] BLOCK_HASH = EventFields.ascii("block_hash");
    static final byte[] TOKENS_HASH = EventFields.ascii("tokens_hash");
    static final byte[] MM_EXTRA_INFO = EventFields.ascii("mm_extra_info");
    static final byte[] BLOCK_HASHES = EventFields.ascii("block_hashes");
    static final byte[] DEVICE = EventFields.ascii("device");
    static final byte[] HOST_PINNED = EventFields.ascii("host_pinned");
    static final byte[] DISK = EventFields.ascii("disk");
    static final byte[] EXTERNAL = EventFields.ascii("external");
    static final byte[] WORKER = EventFields.ascii("worker");
    static final byte[] CACHE_OWNER = EventFields.ascii("cache_owner");
    static final byte[] PUBLISHER_ID = EventFields.ascii("publisher_id");
    static final byte[] SEQUENCE = EventFields.ascii("sequence");
    static final byte[] PUBLISHED_AT = EventFields.ascii("published_at");
    static final byte[] TOPIC = EventFields.ascii("topic");
    static final byte[] PAYLOAD = EventFields.ascii("payload");
    static final byte[] START_EVENT_ID = EventFields.ascii("start_event_id");
    static final byte[] END_EVENT_ID = EventFields.ascii("end_event_id");
    static final byte[] LAST_EVENT_ID = EventFields.ascii("last_event_id");
    static final byte[] LOST_EVENT_ID = EventFields.ascii("lost_event_id");
    static final byte[] KIND = EventFields.ascii("kind");
    static final byte[] PART = EventFields.ascii("part");
    static final byte[] PARTS = EventFields.ascii("parts");
    static final byte[] ERROR = EventFields.ascii("error");

    private RouterEventNames() {}

    /** What a tier is called. */
    static byte[] of(StorageTier tier) {
        return switch (tier) {
            case DEVICE -> DEVICE;
            case HOST -> HOST_PINNED;
            case DISK -> DISK;
            case SHARED -> EXTERNAL;
        };
    }
}

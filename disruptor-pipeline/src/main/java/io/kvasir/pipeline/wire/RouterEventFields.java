package io.kvasir.pipeline.wire;

import java.util.Arrays;

/**
 * Where the fields of one router event lie, whatever form it has and in whatever order they come.
 * Fields of other names are passed over; of a name that comes twice the last one counts.
 */
final class RouterEventFields {
    static final int WORKER_ID = 0;
    static final int STORAGE_TIER = 1;
    static final int RESIDENCY_DOMAIN = 2;
    private static final int EVENT = 3;
    static final int EVENT_ID = 4;
    static final int DP_RANK = 5;
    private static final int DATA = 6;
    static final int PARENT_HASH = 7;
    static final int START_POSITION = 8;
    static final int BLOCKS = 9;
    static final int EAGLE = 10;
    static final int BLOCK_HASHES = 11;

    /** The tier that was cleared: the value of the data itself. */
    static final int CLEARED_TIER = 12;

    private static final int COUNT = 13;

    private static final byte[][] NAMES = {
        RouterEventNames.WORKER_ID,
        RouterEventNames.STORAGE_TIER,
        RouterEventNames.RESIDENCY_DOMAIN,
        RouterEventNames.EVENT,
        RouterEventNames.EVENT_ID,
        RouterEventNames.DP_RANK,
        RouterEventNames.DATA,
        RouterEventNames.PARENT_HASH,
        RouterEventNames.START_POSITION,
        RouterEventNames.BLOCKS,
        RouterEventNames.EAGLE,
        RouterEventNames.BLOCK_HASHES
    };

    /** What an event says happened. */
    enum Type {
        STORED,
        REMOVED,
        CLEARED,
        TIER_CLEARED,
        OTHER,
        MALFORMED
    }

    private final int[] positions = new int[COUNT];
    private Type type = Type.MALFORMED;

    /** Position of a field's value, −1 if the event has none. */
    int at(int field) {
        return positions[field];
    }

    /** Finds the fields of the event that a reader is at; the reader is after it then. */
    Type locate(DocumentReader in) {
        Arrays.fill(positions, -1);
        type = Type.MALFORMED;
        locate(in, WORKER_ID, EVENT);
        return in.ok() ? type : Type.MALFORMED;
    }

    /** Finds the fields from a first to a last one in the map that the reader is at. */
    private void locate(DocumentReader in, int first, int last) {
        if (in.peek() != MsgpackReader.Kind.MAP) {
            type = Type.MALFORMED;
            in.skip();
            return;
        }
        for (long left = in.openMap(); in.hasMore(left); left--) {
            final int field = in.readKey() ? fieldOf(in, first, last) : -1;
            if (field == EVENT) {
                locate(in, EVENT_ID, DATA);
            } else if (field == DATA) {
                locateData(in);
            } else {
                if (field >= 0) {
                    positions[field] = in.position();
                }
                in.skip();
            }
        }
    }

    private static int fieldOf(DocumentReader in, int first, int last) {
        for (int field = first; field <= last; field++) {
            if (in.dataEquals(NAMES[field])) {
                return field;
            }
        }
        return -1;
    }

    /** The data is the name of what happened, or a map from that name to its fields. */
    private void locateData(DocumentReader in) {
        if (in.peek() == MsgpackReader.Kind.STRING) {
            in.readData();
            type = in.dataEquals(RouterEventNames.CLEARED) ? Type.CLEARED : Type.OTHER;
            return;
        }
        type = Type.MALFORMED;
        if (in.peek() != MsgpackReader.Kind.MAP) {
            in.skip();
            return;
        }
        for (long left = in.openMap(); in.hasMore(left); left--) {
            final boolean named = in.readKey();
            if (named && in.dataEquals(RouterEventNames.STORED)) {
                type = Type.STORED;
                locate(in, PARENT_HASH, EAGLE);
            } else if (named && in.dataEquals(RouterEventNames.REMOVED)) {
                type = Type.REMOVED;
                locate(in, BLOCK_HASHES, BLOCK_HASHES);
            } else if (named && in.dataEquals(RouterEventNames.TIER_CLEARED)) {
                type = Type.TIER_CLEARED;
                positions[CLEARED_TIER] = in.position();
                in.skip();
            } else {
                final boolean cleared = named && in.dataEquals(RouterEventNames.CLEARED);
                type = cleared ? Type.CLEARED : Type.OTHER;
                in.skip();
            }
        }
    }
}

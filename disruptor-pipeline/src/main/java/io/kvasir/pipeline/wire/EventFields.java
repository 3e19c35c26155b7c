package io.kvasir.pipeline.wire;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Where the fields of one engine event lie: filled from an array by position or from a map by name,
 * read the same way afterwards.
 */
final class EventFields {
    static final int BLOCK_HASHES = 0;
    static final int PARENT = 1;
    static final int TOKEN_IDS = 2;
    static final int BLOCK_SIZE = 3;
    static final int LORA_ID = 4;
    static final int MEDIUM = 5;
    static final int LORA_NAME = 6;
    static final int EXTRA_KEYS = 7;
    static final int GROUP_IDX = 8;
    static final int SPEC_KIND = 9;
    static final int LOCALITY = 10;
    static final int OWNERSHIP = 11;
    static final int CACHE_SALT = 12;
    static final int COPY_COUNTS = 13;
    static final int MM_INFOS = 14;
    static final int LOOKAHEAD = 15;
    static final int TYPE = 16;
    private static final int COUNT = 17;

    private static final byte[][] NAMES = {
        ascii("block_hashes"),
        ascii("parent_block_hash"),
        ascii("token_ids"),
        ascii("block_size"),
        ascii("lora_id"),
        ascii("medium"),
        ascii("lora_name"),
        ascii("extra_keys"),
        ascii("group_idx"),
        ascii("kv_cache_spec_kind"),
        ascii("locality"),
        ascii("ownership"),
        ascii("cache_salt"),
        ascii("remaining_copy_counts"),
        ascii("block_mm_infos"),
        ascii("lookahead_token_ids"),
        ascii("type")
    };

    private static final byte[] BLOCK_STORED = ascii("BlockStored");
    private static final byte[] BLOCK_REMOVED = ascii("BlockRemoved");
    private static final byte[] ALL_BLOCKS_CLEARED = ascii("AllBlocksCleared");

    /** What an event says happened. */
    enum Type {
        STORED,
        REMOVED,
        CLEARED,
        OTHER,
        MALFORMED
    }

    private final int[] positions = new int[COUNT];
    private boolean arrayForm;

    /** Position of a field's value, −1 if the event has none. */
    int at(int field) {
        return positions[field];
    }

    /** Whether the event was an array of positional fields. */
    boolean arrayForm() {
        return arrayForm;
    }

    /**
     * Finds the fields of one event.
     *
     * @param reader at the event, wrapped to exactly its bytes, which are known to be complete
     */
    Type locate(MsgpackReader reader) {
        Arrays.fill(positions, -1);
        return switch (reader.peek()) {
            case ARRAY -> locateInArray(reader);
            case MAP -> locateInMap(reader);
            default -> Type.MALFORMED;
        };
    }

    private Type locateInArray(MsgpackReader reader) {
        arrayForm = true;
        final long count = reader.readArrayHeader();
        if (count < 1 || reader.peek() != MsgpackReader.Kind.STRING || !reader.readData()) {
            return Type.MALFORMED;
        }
        final Type type = typeOf(reader);
        final int first = reader.position();
        switch (type) {
            case STORED -> {
                final int extra = hasMmInfos(reader, count) ? 1 : 0;
                reader.position(first);
                for (int i = 1; i < count; i++) {
                    final int field = storedField(i, extra);
                    if (field >= 0) {
                        positions[field] = reader.position();
                    }
                    reader.skip();
                }
            }
            case REMOVED -> {
                for (int i = 1; i < count; i++) {
                    final int field = removedField(i);
                    if (field >= 0) {
                        positions[field] = reader.position();
                    }
                    reader.skip();
                }
            }
            case CLEARED -> {
                if (count > 1) {
                    positions[MEDIUM] = reader.position();
                }
            }
            default -> {}
        }
        return type;
    }

    /** Some senders put per-block multimodal data between the extra keys and the group index. */
    private static boolean hasMmInfos(MsgpackReader reader, long count) {
        if (count < 10) {
            return false;
        }
        if (count >= 15) {
            return true;
        }
        for (int i = 1; i < 9; i++) {
            reader.skip();
        }
        final MsgpackReader.Kind ninth = reader.peek();
        reader.skip();
        return ninth == MsgpackReader.Kind.ARRAY
                || (ninth == MsgpackReader.Kind.NIL && reader.peek() == MsgpackReader.Kind.INTEGER);
    }

    private static int storedField(int index, int extra) {
        return switch (index) {
            case 1 -> BLOCK_HASHES;
            case 2 -> PARENT;
            case 3 -> TOKEN_IDS;
            case 4 -> BLOCK_SIZE;
            case 5 -> LORA_ID;
            case 6 -> MEDIUM;
            case 7 -> LORA_NAME;
            case 8 -> EXTRA_KEYS;
            default ->
                    switch (index - extra) {
                        case 8 -> MM_INFOS;
                        case 9 -> GROUP_IDX;
                        case 10 -> SPEC_KIND;
                        case 12 -> LOCALITY;
                        case 13 -> OWNERSHIP;
                        default -> -1;
                    };
        };
    }

    private static int removedField(int index) {
        return switch (index) {
            case 1 -> BLOCK_HASHES;
            case 2 -> MEDIUM;
            case 3 -> GROUP_IDX;
            case 4 -> LOCALITY;
            case 5 -> OWNERSHIP;
            default -> -1;
        };
    }

    private Type locateInMap(MsgpackReader reader) {
        arrayForm = false;
        final long count = reader.readMapHeader();
        for (long i = 0; i < count; i++) {
            int field = -1;
            if (reader.peek() == MsgpackReader.Kind.STRING) {
                reader.readData();
                field = fieldOf(reader);
            } else {
                reader.skip();
            }
            if (field >= 0) {
                positions[field] = reader.position();
            }
            reader.skip();
        }
        if (positions[TYPE] < 0) {
            return Type.MALFORMED;
        }
        reader.position(positions[TYPE]);
        if (reader.peek() != MsgpackReader.Kind.STRING || !reader.readData()) {
            return Type.MALFORMED;
        }
        return typeOf(reader);
    }

    private static int fieldOf(MsgpackReader reader) {
        for (int field = 0; field < COUNT; field++) {
            if (reader.dataEquals(NAMES[field])) {
                return field;
            }
        }
        return -1;
    }

    private static Type typeOf(MsgpackReader reader) {
        if (reader.dataEquals(BLOCK_STORED)) {
            return Type.STORED;
        }
        if (reader.dataEquals(BLOCK_REMOVED)) {
            return Type.REMOVED;
        }
        return reader.dataEquals(ALL_BLOCKS_CLEARED) ? Type.CLEARED : Type.OTHER;
    }

    static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }
}

package io.kvasir.pipeline.wire;

import io.kvasir.core.hash.MultimodalHasher;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * What an event's extra keys add to the blocks' identity: a salt on the first block of a prompt,
 * multimodal objects on any block.
 *
 * <p>Engines write the keys of a block without tags: the LoRA name (on every block), (object id,
 * offset) pairs or bare object ids, the salt (first block only), digests of prompt embeddings. A
 * bare string on the first block is the salt, whatever it looks like, but for the first that is the
 * LoRA name and for object ids as Dynamo makes them: 16 hex digits and 48 zeros. What is neither
 * the LoRA name, nor an object, nor in the place of the salt makes the block's hash depend on
 * something that its tokens do not tell. One thread.
 *
 * <p>vLLM 0.32 hashes its keys with tags and takes these off for events until consumers read them.
 * They are read: {@code ("lora", name, path)}, {@code ("mm", object id, offset)}, {@code
 * ("cache_salt", salt)}. A pair differs from a tagged salt in its offset, which is a number.
 */
final class ExtraKeys {
    private static final byte[] SALT_PREFIX = EventFields.ascii("dynamo-cache-salt:");
    private static final byte[] LORA_TAG = EventFields.ascii("lora");
    private static final byte[] OBJECT_TAG = EventFields.ascii("mm");
    private static final byte[] SALT_TAG = EventFields.ascii("cache_salt");
    private static final byte[] MM_OBJECTS = EventFields.ascii("mm_objects");
    private static final byte[] MM_HASH = EventFields.ascii("mm_hash");
    private static final int MM_ID_LENGTH = 64;
    private static final int MM_HASH_LENGTH = 16; // of an id that Dynamo has made, behind it zeros

    private enum Tag {
        LORA,
        OBJECT,
        SALT,
        OTHER
    }

    private String salt;
    private boolean multimodal;
    private boolean loraNamed; // by a key of the block
    private int[] mmEnds = new int[16];
    private long[] mmHashes = new long[16];
    private int mmTotal;
    private int blocks;
    private long[] blockHashes = new long[4];

    /** Starts an event of {@code blockCount} blocks without extra keys. */
    void reset(int blockCount) {
        salt = null;
        multimodal = false;
        mmTotal = 0;
        blocks = blockCount;
    }

    /** Salt of the chain, null if the event has none. */
    String salt() {
        return salt;
    }

    /** Whether any block carries a multimodal object. */
    boolean multimodal() {
        return multimodal;
    }

    /** Number of objects on a block. */
    int mmCount(int block) {
        return mmEnds[block] - mmStart(block);
    }

    /** The objects of a block, valid until the next call: {@link #mmCount} hashes. */
    long[] mmHashes(int block) {
        final int start = mmStart(block);
        final int count = mmEnds[block] - start;
        if (blockHashes.length < count) {
            blockHashes = new long[count];
        }
        System.arraycopy(mmHashes, start, blockHashes, 0, count);
        return blockHashes;
    }

    private int mmStart(int block) {
        return block == 0 ? 0 : mmEnds[block - 1];
    }

    /**
     * Takes the salt field.
     *
     * @return why the event cannot be used, null if it can
     */
    DropReason readSaltField(MsgpackReader reader, int at) {
        if (at < 0) {
            return null;
        }
        reader.position(at);
        if (reader.peek() == MsgpackReader.Kind.NIL) {
            return null;
        }
        if (reader.peek() != MsgpackReader.Kind.STRING || !reader.readData()) {
            return DropReason.MALFORMED_EVENT;
        }
        return takeSalt(reader.dataText());
    }

    private DropReason takeSalt(String text) {
        if (text.isEmpty() || text.equals(salt)) {
            return null;
        }
        if (salt != null) {
            return DropReason.AMBIGUOUS_CACHE_NAMESPACE;
        }
        salt = text;
        return null;
    }

    /**
     * Takes the extra keys of all blocks.
     *
     * @param at position of the list of per-block lists, −1 if the event has none
     * @param root whether the event's first block starts a prompt
     * @param loraName UTF-8 name of the adapter, empty if none
     * @param loraId number of the adapter, 0 if none
     * @return why the event cannot be used, null if it can
     */
    DropReason read(MsgpackReader reader, int at, boolean root, byte[] loraName, long loraId) {
        if (at < 0) {
            return null;
        }
        reader.position(at);
        if (reader.peek() == MsgpackReader.Kind.NIL) {
            return null;
        }
        if (reader.peek() != MsgpackReader.Kind.ARRAY) {
            return DropReason.MALFORMED_EVENT;
        }
        final long lists = reader.readArrayHeader();
        beginObjects();
        for (int block = 0; block < lists && block < blocks; block++) {
            final boolean saltPlace = root && block == 0;
            loraNamed = false;
            long keys = 1;
            switch (reader.peek()) {
                case NIL -> {
                    keys = 0;
                    reader.skip();
                }
                case ARRAY -> keys = reader.readArrayHeader();
                default -> {}
            }
            for (long i = 0; i < keys; i++) {
                final DropReason reason = readKey(reader, saltPlace, loraName, loraId);
                if (reason != null) {
                    return reason;
                }
            }
            endObjects(block);
        }
        for (int block = (int) Math.min(lists, blocks); block < blocks; block++) {
            endObjects(block);
        }
        return null;
    }

    private DropReason readKey(
            MsgpackReader reader, boolean saltPlace, byte[] loraName, long loraId) {
        return switch (reader.peek()) {
            case NIL -> {
                reader.skip();
                yield null;
            }
            case INTEGER ->
                    loraId != 0 && reader.readLong() == loraId
                            ? null
                            : DropReason.OPAQUE_EXTRA_KEYS;
            case ARRAY -> readParts(reader, saltPlace, loraName);
            case STRING -> {
                reader.readData();
                yield readText(reader, saltPlace, loraName);
            }
            default -> DropReason.OPAQUE_EXTRA_KEYS;
        };
    }

    private DropReason readText(MsgpackReader reader, boolean saltPlace, byte[] loraName) {
        if (!loraNamed && loraName.length > 0 && reader.dataEquals(loraName)) {
            loraNamed = true;
            return null;
        }
        if (isHexId(reader) && (!saltPlace || isPadded(reader))) {
            addObject(objectHash(reader));
            return null;
        }
        if (startsWithSaltPrefix(reader)) {
            return takeSalt(reader.dataText().substring(SALT_PREFIX.length));
        }
        return saltPlace ? takeSalt(reader.dataText()) : DropReason.OPAQUE_EXTRA_KEYS;
    }

    private DropReason readParts(MsgpackReader reader, boolean saltPlace, byte[] loraName) {
        final long parts = reader.readArrayHeader();
        if (parts < 1 || reader.peek() != MsgpackReader.Kind.STRING || !reader.readData()) {
            return DropReason.OPAQUE_EXTRA_KEYS;
        }
        long read = 1;
        DropReason reason = null;
        if (parts == 1 || reader.peek() == MsgpackReader.Kind.INTEGER) {
            addObject(objectHash(reader));
        } else if (reader.peek() == MsgpackReader.Kind.STRING) {
            final Tag tag = tag(reader);
            reader.readData();
            read = 2;
            reason = readTagged(tag, reader, saltPlace, loraName);
        } else {
            reason = DropReason.OPAQUE_EXTRA_KEYS;
        }
        for (; read < parts; read++) {
            reader.skip();
        }
        return reason;
    }

    private static Tag tag(MsgpackReader reader) {
        if (reader.dataEquals(LORA_TAG)) {
            return Tag.LORA;
        }
        if (reader.dataEquals(OBJECT_TAG)) {
            return Tag.OBJECT;
        }
        return reader.dataEquals(SALT_TAG) ? Tag.SALT : Tag.OTHER;
    }

    private DropReason readTagged(
            Tag tag, MsgpackReader reader, boolean saltPlace, byte[] loraName) {
        return switch (tag) {
            case LORA -> reader.dataEquals(loraName) ? null : DropReason.OPAQUE_EXTRA_KEYS;
            case OBJECT -> {
                addObject(objectHash(reader));
                yield null;
            }
            case SALT -> saltPlace ? takeSalt(reader.dataText()) : DropReason.OPAQUE_EXTRA_KEYS;
            case OTHER -> DropReason.OPAQUE_EXTRA_KEYS;
        };
    }

    /**
     * Takes explicit multimodal data: per block nil or {@code {mm_objects: [{mm_hash, …}]}}. It
     * replaces what the extra keys say about objects.
     *
     * @return why the event cannot be used, null if it can
     */
    DropReason readMmInfos(MsgpackReader reader, int at) {
        if (at < 0) {
            return null;
        }
        reader.position(at);
        if (reader.peek() == MsgpackReader.Kind.NIL) {
            return null;
        }
        final long lists = reader.readArrayHeader();
        if (!reader.ok()) {
            return DropReason.MALFORMED_EVENT;
        }
        multimodal = false;
        beginObjects();
        for (int block = 0; block < blocks; block++) {
            if (block < lists) {
                readMmInfo(reader);
            }
            endObjects(block);
        }
        return reader.ok() ? null : DropReason.MALFORMED_EVENT;
    }

    private void readMmInfo(MsgpackReader reader) {
        if (reader.peek() != MsgpackReader.Kind.MAP) {
            reader.skip();
            return;
        }
        final long pairs = reader.readMapHeader();
        for (long i = 0; i < pairs && reader.ok(); i++) {
            if (readKeyName(reader, MM_OBJECTS) && reader.peek() == MsgpackReader.Kind.ARRAY) {
                final long objects = reader.readArrayHeader();
                for (long k = 0; k < objects && reader.ok(); k++) {
                    readMmObject(reader);
                }
            } else {
                reader.skip();
            }
        }
    }

    private void readMmObject(MsgpackReader reader) {
        if (reader.peek() != MsgpackReader.Kind.MAP) {
            reader.skip();
            return;
        }
        final long pairs = reader.readMapHeader();
        for (long i = 0; i < pairs && reader.ok(); i++) {
            if (readKeyName(reader, MM_HASH) && reader.peek() == MsgpackReader.Kind.INTEGER) {
                addObject(reader.readLong());
            } else {
                reader.skip();
            }
        }
    }

    private static boolean readKeyName(MsgpackReader reader, byte[] name) {
        if (reader.peek() != MsgpackReader.Kind.STRING) {
            reader.skip();
            return false;
        }
        return reader.readData() && reader.dataEquals(name);
    }

    private void beginObjects() {
        mmTotal = 0;
        if (mmEnds.length < blocks) {
            mmEnds = new int[blocks];
        }
    }

    private void addObject(long hash) {
        if (mmTotal == mmHashes.length) {
            mmHashes = Arrays.copyOf(mmHashes, 2 * mmTotal);
        }
        mmHashes[mmTotal++] = hash;
        multimodal = true;
    }

    private void endObjects(int block) {
        mmEnds[block] = mmTotal;
    }

    private static long objectHash(MsgpackReader reader) {
        return MultimodalHasher.objectHash(reader.dataText());
    }

    private static boolean isHexId(MsgpackReader reader) {
        if (reader.dataLength() != MM_ID_LENGTH) {
            return false;
        }
        for (int i = 0; i < MM_ID_LENGTH; i++) {
            if (Character.digit(reader.dataByte(i), 16) < 0) {
                return false;
            }
        }
        return true;
    }

    private static boolean isPadded(MsgpackReader id) {
        for (int i = MM_HASH_LENGTH; i < MM_ID_LENGTH; i++) {
            if (id.dataByte(i) != '0') {
                return false;
            }
        }
        return true;
    }

    private static boolean startsWithSaltPrefix(MsgpackReader reader) {
        if (reader.dataLength() <= SALT_PREFIX.length) {
            return false;
        }
        for (int i = 0; i < SALT_PREFIX.length; i++) {
            if (reader.dataByte(i) != SALT_PREFIX[i]) {
                return false;
            }
        }
        return true;
    }

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}

package io.kvasir.pipeline.wire;

import io.kvasir.core.index.StorageTier;

import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Decodes single router events, in JSON or in msgpack, into index operations. Its local hashes are
 * public ones (seed 1337), made by the publisher: they fit an index with that seed alone.
 *
 * <p>Keys may come in any order and integers in any width; unknown keys are ignored. An absent tier
 * is the device, an absent domain the worker; both must not be null. Only a worker's own blocks and
 * those in shared storage feed the index, of the device and the tiers that are wanted. Nothing is
 * thrown for any input, and nothing is allocated once the scratch arrays have grown to the largest
 * event, which is bounded by the bytes it takes.
 */
public final class RouterEventDecoder implements MessageDecoder {
    private static final int RETAINED_BLOCKS = 1 << 14;
    private static final StorageTier[] TIERS = StorageTier.values();

    private final DropCounts drops = new DropCounts();
    private final MsgpackReader msgpack = new MsgpackReader();
    private final JsonReader json = new JsonReader();
    private final RouterEventFields fields = new RouterEventFields();
    private final AtomicLong multimodalStores = new AtomicLong();
    private final Set<StorageTier> indexed;
    private long[] engineHashes = new long[64];
    private long[] localHashes = new long[64];
    private StorageTier tier = StorageTier.DEVICE; // of the event that is decoded
    private boolean multimodal;
    private boolean lostBlocks;
    private volatile boolean learnedEagle;

    /** Creates a decoder for one source, of which the blocks on the device are wanted. */
    public RouterEventDecoder() {
        this(Set.of());
    }

    /**
     * Creates a decoder for one source.
     *
     * @param tiers tiers below the device whose blocks are wanted too; those of others are dropped
     *     and counted
     */
    public RouterEventDecoder(Set<StorageTier> tiers) {
        indexed = Set.copyOf(tiers);
    }

    @Override
    public Shape shapeOf(byte[] payload, int offset, int length) {
        return reader(payload, offset, length).peek() == MsgpackReader.Kind.MAP
                ? Shape.BATCH
                : Shape.UNDECODABLE;
    }

    private DocumentReader reader(byte[] payload, int offset, int length) {
        return isJson(payload, offset, length)
                ? json.wrap(payload, offset, length)
                : msgpack.wrap(payload, offset, length);
    }

    /** Whether a document is JSON: a brace is a whole number in msgpack. */
    static boolean isJson(byte[] payload, int offset, int length) {
        for (int at = offset; at < offset + length; at++) {
            final byte b = payload[at];
            if (b != ' ' && b != '\t' && b != '\n' && b != '\r') {
                return b == '{';
            }
        }
        return false;
    }

    @Override
    public long rankOf(byte[] payload, int offset, int length) {
        final DocumentReader in = reader(payload, offset, length);
        fields.locate(in);
        return rank(in, fields);
    }

    /** The rank of an event whose fields are located; {@link BatchRank#NONE} if it is no rank. */
    static long rank(DocumentReader in, RouterEventFields fields) {
        final int at = fields.at(RouterEventFields.DP_RANK);
        if (at < 0) {
            return 0;
        }
        in.position(at);
        if (in.peek() == MsgpackReader.Kind.NIL) {
            return 0;
        }
        final long rank = in.readLong();
        return in.ok() && rank >= 0 && rank <= Integer.MAX_VALUE ? rank : BatchRank.NONE;
    }

    @Override
    public boolean decode(byte[] payload, int offset, int length, KvBatch out) {
        lostBlocks = false;
        final DocumentReader in = reader(payload, offset, length);
        final RouterEventFields.Type type = fields.locate(in);
        final DropReason reason = placement(in, type);
        final DropReason found =
                reason != null
                        ? reason
                        : switch (type) {
                            case STORED -> stored(in, out);
                            case REMOVED -> removed(in, out);
                            case CLEARED -> {
                                out.addCleared();
                                yield null;
                            }
                            case TIER_CLEARED -> {
                                out.addTierCleared(tier);
                                yield null;
                            }
                            case OTHER -> DropReason.IGNORED_EVENT;
                            case MALFORMED -> DropReason.MALFORMED_EVENT;
                        };
        if (found != null) {
            drops.add(found);
            lostBlocks = found.losesBlocks();
        }
        trim();
        return true;
    }

    /** Why the event is not about blocks that the index is to know; null if it is. */
    private DropReason placement(DocumentReader in, RouterEventFields.Type type) {
        if (type == RouterEventFields.Type.MALFORMED) {
            return DropReason.MALFORMED_EVENT;
        }
        tier = StorageTier.DEVICE;
        final int tierAt =
                fields.at(
                        type == RouterEventFields.Type.TIER_CLEARED
                                ? RouterEventFields.CLEARED_TIER
                                : RouterEventFields.STORAGE_TIER);
        if (tierAt >= 0) {
            final DropReason reason = isWord(in, tierAt) ? tier(in) : DropReason.MALFORMED_EVENT;
            if (reason != null) {
                return reason;
            }
        }
        final int domain = fields.at(RouterEventFields.RESIDENCY_DOMAIN);
        if (domain < 0) {
            return null;
        }
        return isWord(in, domain) ? domain(in) : DropReason.MALFORMED_EVENT;
    }

    private static boolean isWord(DocumentReader in, int at) {
        in.position(at);
        return in.peek() == MsgpackReader.Kind.STRING && in.readData();
    }

    private DropReason tier(DocumentReader in) {
        for (StorageTier named : TIERS) {
            if (in.dataEquals(RouterEventNames.of(named))) {
                tier = named;
                return named == StorageTier.DEVICE || indexed.contains(named)
                        ? null
                        : Placement.notIndexed(named);
            }
        }
        return DropReason.UNKNOWN_MEDIUM;
    }

    private static DropReason domain(DocumentReader in) {
        if (in.dataEquals(RouterEventNames.WORKER)) {
            return null;
        }
        return in.dataEquals(RouterEventNames.CACHE_OWNER)
                ? DropReason.UNSUPPORTED_OWNERSHIP
                : DropReason.UNKNOWN_OWNERSHIP;
    }

    private DropReason stored(DocumentReader in, KvBatch out) {
        final int parentAt = fields.at(RouterEventFields.PARENT_HASH);
        final boolean root = parentAt < 0 || isNil(in, parentAt);
        final long parent = root ? 0 : in.readLong();
        if (!in.ok()) {
            return DropReason.MALFORMED_EVENT;
        }
        final int startAt = fields.at(RouterEventFields.START_POSITION);
        if (root && startAt >= 0 && !isNil(in, startAt) && in.readLong() != 0) {
            return DropReason.POSITIONAL_STORE;
        }
        final int count = readBlocks(in, fields.at(RouterEventFields.BLOCKS));
        if (count < 0) {
            return DropReason.MALFORMED_EVENT;
        }
        if (count == 0) {
            return DropReason.EMPTY_STORE;
        }
        for (int i = 0; !root && i < count; i++) {
            if (engineHashes[i] == parent) {
                return DropReason.INVALID_BLOCK_SEQUENCE;
            }
        }
        if (multimodal) {
            multimodalStores.getAndIncrement();
        }
        final int eagleAt = fields.at(RouterEventFields.EAGLE);
        if (eagleAt >= 0 && isOne(in, eagleAt)) {
            learnedEagle = true;
            out.markEagle();
        }
        out.addStored(tier, root, parent, engineHashes, localHashes, count);
        return null;
    }

    private static boolean isOne(DocumentReader in, int at) {
        in.position(at);
        return in.peek() == MsgpackReader.Kind.INTEGER && in.readLong() == 1;
    }

    private static boolean isNil(DocumentReader in, int at) {
        in.position(at);
        return in.peek() == MsgpackReader.Kind.NIL;
    }

    /** Reads the blocks of a store; their number, −1 if it is no such list. */
    private int readBlocks(DocumentReader in, int at) {
        multimodal = false;
        if (at < 0) {
            return -1;
        }
        in.position(at);
        int count = 0;
        for (long left = in.openArray(); in.hasMore(left); left--) {
            reserve(count);
            if (!readBlock(in, count)) {
                return -1;
            }
            count++;
        }
        return in.ok() ? count : -1;
    }

    private boolean readBlock(DocumentReader in, int block) {
        boolean hash = false;
        boolean tokens = false;
        for (long left = in.openMap(); in.hasMore(left); left--) {
            if (!in.readKey()) {
                in.skip();
            } else if (in.dataEquals(RouterEventNames.BLOCK_HASH)) {
                engineHashes[block] = in.readLong();
                hash = true;
            } else if (in.dataEquals(RouterEventNames.TOKENS_HASH)) {
                localHashes[block] = in.readLong();
                tokens = true;
            } else {
                multimodal |=
                        in.dataEquals(RouterEventNames.MM_EXTRA_INFO)
                                && in.peek() != MsgpackReader.Kind.NIL;
                in.skip();
            }
        }
        return in.ok() && hash && tokens;
    }

    private DropReason removed(DocumentReader in, KvBatch out) {
        final int at = fields.at(RouterEventFields.BLOCK_HASHES);
        if (at < 0) {
            return DropReason.MALFORMED_EVENT;
        }
        in.position(at);
        int count = 0;
        for (long left = in.openArray(); in.hasMore(left); left--) {
            reserve(count);
            engineHashes[count++] = in.readLong();
        }
        if (!in.ok()) {
            return DropReason.MALFORMED_EVENT;
        }
        if (count > 0) {
            out.addRemoved(tier, engineHashes, count);
        }
        return null;
    }

    /** Makes room for one block more: by what was read, not by what a head claims. */
    private void reserve(int count) {
        if (count == engineHashes.length) {
            engineHashes = Arrays.copyOf(engineHashes, 2 * count);
            localHashes = Arrays.copyOf(localHashes, 2 * count);
        }
    }

    private void trim() {
        if (engineHashes.length > RETAINED_BLOCKS) {
            engineHashes = new long[RETAINED_BLOCKS];
            localHashes = new long[RETAINED_BLOCKS];
        }
    }

    @Override
    public DropCounts drops() {
        return drops;
    }

    @Override
    public int eventCount() {
        return 1;
    }

    @Override
    public boolean lostBlocks() {
        return lostBlocks;
    }

    /** 0: router events do not say it. */
    @Override
    public int learnedBlockSize() {
        return 0;
    }

    /** As Kvasir's own router events say it; others do not. */
    @Override
    public boolean learnedEagle() {
        return learnedEagle;
    }

    @Override
    public long multimodalStores() {
        return multimodalStores.get();
    }

    @Override
    public void forget() {
        // nothing is learned that another engine would say otherwise
    }

    @Override
    public void emptied() {
        // nothing is learned of a block
    }

    @Override
    public void taken(KvBatch batch) {
        // nothing is learned of a block
    }

    @Override
    public void learned(KvBatch batch) {
        batch.learned(DecoderMemory.NONE.mainGroup(), learnedEagle, false);
    }

    @Override
    public DecoderMemory memory() {
        final DecoderMemory none = DecoderMemory.NONE;
        return new DecoderMemory(none.mainGroup(), learnedEagle, none.chainSeeds());
    }

    @Override
    public void recall(DecoderMemory memory) {
        learnedEagle = memory.eagle();
    }
}

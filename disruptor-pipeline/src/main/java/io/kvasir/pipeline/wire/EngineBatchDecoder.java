package io.kvasir.pipeline.wire;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.hash.MultimodalHasher;
import io.kvasir.core.index.StorageTier;

import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Decodes the event batches that engines publish, in every form seen so far, into index operations.
 *
 * <p>A batch is {@code [ts, events]}, {@code [ts, events, rank]} or a map with the key {@code
 * events}; an event is an array of positional fields or a map of named ones; block hashes are
 * signed or unsigned integers or byte strings, whose last 8 bytes count (big-endian); tokens are
 * integers; where the engine drafts with EAGLE they may be pairs, or the tokens behind each block
 * are named apart.
 *
 * <p>Each event is decoded on its own, inside its own extent: a bad one is counted in {@link
 * #drops()} and its batch continues. Nothing is thrown for any input, and nothing is allocated for
 * plain text blocks once the scratch arrays have grown.
 *
 * <p>Keeps what later events of the same source need: the cache group that counts and the seeds of
 * salted chains. One instance per source; {@link #decode} on one thread, the counters on any.
 */
public final class EngineBatchDecoder implements MessageDecoder {
    private static final int MOST_REMOVED_SEEDS = 1 << 15;

    /** Blocks of salted chains that an engine may hold; more are not known as such. */
    static final int MOST_HELD_SEEDS = DecoderMemory.MOST_CHAIN_SEEDS - 2 * MOST_REMOVED_SEEDS;

    private static final long OPAQUE_CHAIN = 0x6f70617175650001L;
    private static final int RETAINED_TOKENS = 1 << 16;
    private static final byte[] NO_NAME = {};
    private static final byte[] EVENTS = EventFields.ascii("events");
    private final int blockSize;
    private final long baseSeed;
    private final MsgpackReader batch = new MsgpackReader();
    private final MsgpackReader event = new MsgpackReader();
    private final EventFields fields = new EventFields();
    private final Placement placement;
    private final ExtraKeys extraKeys = new ExtraKeys();
    private final ChainSeeds chainSeeds = new ChainSeeds(MOST_HELD_SEEDS, MOST_REMOVED_SEEDS);
    private final DropCounts drops = new DropCounts();
    private final BatchRank ranks = new BatchRank();
    private final LoraNumbers loraNumbers;
    private final MultimodalHasher multimodal = new MultimodalHasher();
    private long[] engineHashes = new long[64];
    private long[] localHashes = new long[64];
    private int[] tokens = new int[1024];
    private byte[] loraName = NO_NAME;
    private long loraSeed;
    private String lastLora = ""; // the adapter that was named last
    private byte[] lastLoraName = NO_NAME;
    private long lastLoraSeed;
    private long loraId;
    private long announcedId; // whose name was said last
    private String announcedName = "";
    private long parentHash;
    private boolean seedsMissing; // of blocks that may be held: there were too many
    private boolean eagle;
    private boolean lostBlocks;
    private int eventCount;
    private volatile int learnedBlockSize;
    private volatile boolean learnedEagle;
    private final AtomicLong multimodalStores = new AtomicLong();

    /**
     * Creates a decoder for one source that makes public hashes.
     *
     * @param blockSize tokens per block; stores with another size are dropped and counted
     * @throws IllegalArgumentException if {@code blockSize} is not positive
     */
    public EngineBatchDecoder(int blockSize) {
        this(blockSize, BlockHasher.BASE_SEED);
    }

    /**
     * Creates a decoder for one source.
     *
     * @param blockSize tokens per block; stores with another size are dropped and counted
     * @param hashSeed seed of the local hashes that it makes of an event's tokens
     * @throws IllegalArgumentException if {@code blockSize} is not positive
     */
    public EngineBatchDecoder(int blockSize, long hashSeed) {
        this(blockSize, hashSeed, Set.of(), new LoraNumbers());
    }

    /**
     * Creates a decoder for one source whose adapters may be known by number.
     *
     * @param blockSize tokens per block; stores with another size are dropped and counted
     * @param hashSeed seed of the local hashes that it makes of an event's tokens
     * @param tiers tiers below the device whose blocks are wanted; those of others are dropped and
     *     counted
     * @param loraNumbers of the engine
     * @throws IllegalArgumentException if {@code blockSize} is not positive
     */
    public EngineBatchDecoder(
            int blockSize, long hashSeed, Set<StorageTier> tiers, LoraNumbers loraNumbers) {
        if (blockSize <= 0) {
            throw new IllegalArgumentException("blockSize must be positive: " + blockSize);
        }
        this.placement = new Placement(tiers);
        this.blockSize = blockSize;
        this.baseSeed = hashSeed;
        this.loraSeed = hashSeed;
        this.loraNumbers = loraNumbers;
    }

    @Override
    public DropCounts drops() {
        return drops;
    }

    @Override
    public int learnedBlockSize() {
        return learnedBlockSize;
    }

    @Override
    public boolean learnedEagle() {
        return learnedEagle;
    }

    @Override
    public String otherGroups() {
        return placement.otherGroups();
    }

    @Override
    public long multimodalStores() {
        return multimodalStores.get();
    }

    @Override
    public int eventCount() {
        return eventCount;
    }

    @Override
    public boolean lostBlocks() {
        return lostBlocks;
    }

    @Override
    public void forget() {
        placement.forget();
        emptied();
        loraNumbers.forget();
        announcedId = 0;
        learnedBlockSize = 0;
    }

    @Override
    public void emptied() {
        chainSeeds.clear();
        seedsMissing = false;
    }

    @Override
    public void taken(KvBatch batch) {
        chainSeeds.follow(batch);
        loraNumbers.taken();
    }

    @Override
    public void learned(KvBatch batch) {
        batch.learned(placement.mainGroup(), learnedEagle, !chainSeeds.isEmpty());
    }

    @Override
    public DecoderMemory memory() {
        return new DecoderMemory(placement.mainGroup(), learnedEagle, chainSeeds.toArray());
    }

    @Override
    public void recall(DecoderMemory memory) {
        placement.mainGroup(memory.mainGroup());
        learnedEagle = memory.eagle();
        chainSeeds.recall(memory.chainSeeds());
        seedsMissing = chainSeeds.isFull();
    }

    @Override
    public Shape shapeOf(byte[] payload, int offset, int length) {
        batch.wrap(payload, offset, length);
        if (batch.peek() == MsgpackReader.Kind.MAP) {
            return findEvents() ? Shape.BATCH : Shape.UNDECODABLE;
        }
        final long count = batch.readArrayHeader();
        if (count >= 1 && batch.peek() == MsgpackReader.Kind.STRING) {
            return Shape.OTHER;
        }
        return count >= 2 && skipTimestamp() && batch.peek() == MsgpackReader.Kind.ARRAY
                ? Shape.BATCH
                : Shape.UNDECODABLE;
    }

    @Override
    public long rankOf(byte[] payload, int offset, int length) {
        return ranks.of(payload, offset, length);
    }

    private boolean skipTimestamp() {
        return switch (batch.peek()) {
            case INTEGER, FLOAT, NIL -> batch.skip();
            default -> false;
        };
    }

    /** Moves to the list of events of a map batch. */
    private boolean findEvents() {
        final long pairs = batch.readMapHeader();
        for (long i = 0; i < pairs && batch.ok(); i++) {
            final boolean named = batch.peek() == MsgpackReader.Kind.STRING && batch.readData();
            if (!named) {
                batch.skip();
            } else if (batch.dataEquals(EVENTS) && batch.peek() == MsgpackReader.Kind.ARRAY) {
                return true;
            }
            batch.skip();
        }
        return false;
    }

    @Override
    public boolean decode(byte[] payload, int offset, int length, KvBatch out) {
        eventCount = 0;
        lostBlocks = false;
        loraNumbers.decoding();
        batch.wrap(payload, offset, length);
        final boolean found;
        if (batch.peek() == MsgpackReader.Kind.ARRAY) {
            found =
                    batch.readArrayHeader() >= 2
                            && skipTimestamp()
                            && batch.peek() == MsgpackReader.Kind.ARRAY;
        } else {
            found = batch.peek() == MsgpackReader.Kind.MAP && findEvents();
        }
        if (!found) {
            drop(DropReason.UNDECODABLE_MESSAGE);
            return false;
        }
        decodeEvents(payload, out);
        return true;
    }

    private void decodeEvents(byte[] payload, KvBatch out) {
        final long count = batch.readArrayHeader();
        for (long i = 0; i < count; i++) {
            final int start = batch.position();
            if (!batch.skip()) {
                drop(DropReason.TRUNCATED_BATCH);
                return;
            }
            event.wrap(payload, start, batch.position() - start);
            eventCount++;
            final DropReason reason = decodeEvent(out);
            if (reason != null) {
                drop(reason);
            }
        }
        if (count < 0) { // the head of the list itself is cut off
            drop(DropReason.TRUNCATED_BATCH);
        }
    }

    private void drop(DropReason reason) {
        drops.add(reason);
        lostBlocks |= reason.losesBlocks();
    }

    private DropReason decodeEvent(KvBatch out) {
        return switch (fields.locate(event)) {
            case STORED -> stored(out);
            case REMOVED -> removed(out);
            case CLEARED -> cleared(out);
            case OTHER -> DropReason.IGNORED_EVENT;
            case MALFORMED -> DropReason.MALFORMED_EVENT;
        };
    }

    private DropReason cleared(KvBatch out) {
        final DropReason reason = placement.medium(event, fields.at(EventFields.MEDIUM));
        if (reason == null) {
            out.addCleared();
            emptied();
            loraNumbers.cleared();
        }
        return reason;
    }

    private DropReason removed(KvBatch out) {
        final DropReason reason = placement.check(event, fields);
        if (reason != null) {
            return reason;
        }
        final int count = readHashes(fields.at(EventFields.BLOCK_HASHES));
        if (count < 0) {
            return DropReason.MALFORMED_EVENT;
        }
        if (!readCopyCounts(count, out)) {
            addRemoved(count, out);
        }
        return null;
    }

    private void addRemoved(int count, KvBatch out) {
        final StorageTier tier = placement.tier();
        final int held = loraNumbers.removed(tier, engineHashes, count, out.copyRule());
        if (held > 0) {
            out.addRemoved(tier, engineHashes, held);
        }
    }

    /**
     * Adds one operation per block if the event says how many copies of each are left; of a lower
     * tier, the removal of those of which none is.
     */
    private boolean readCopyCounts(int count, KvBatch out) {
        final int at = fields.at(EventFields.COPY_COUNTS);
        if (at < 0) {
            return false;
        }
        event.position(at);
        if (event.peek() != MsgpackReader.Kind.ARRAY || event.readArrayHeader() != count) {
            return false;
        }
        final int first = event.position();
        for (int i = 0; i < count; i++) {
            final long copies = event.readLong();
            if (!event.ok() || copies < 0 || copies > Integer.MAX_VALUE) {
                return false;
            }
        }
        event.position(first);
        if (placement.tier() == StorageTier.DEVICE) {
            for (int i = 0; i < count; i++) {
                final int copies = (int) event.readLong();
                out.addRemovedTo(engineHashes[i], loraNumbers.removedTo(engineHashes[i], copies));
            }
            return true;
        }
        int ended = 0;
        for (int i = 0; i < count; i++) {
            engineHashes[ended] = engineHashes[i];
            ended += event.readLong() == 0 ? 1 : 0;
        }
        addRemoved(ended, out);
        return true;
    }

    private DropReason stored(KvBatch out) {
        DropReason reason = placement.check(event, fields);
        if (reason != null) {
            return reason;
        }
        final boolean onDevice = placement.tier() == StorageTier.DEVICE;
        if (!onDevice && !hasTokens()) {
            return named(out);
        }
        final long size = readInteger(fields.at(EventFields.BLOCK_SIZE));
        if (size <= 0 || size > Integer.MAX_VALUE) {
            return DropReason.MALFORMED_EVENT;
        }
        if (onDevice) {
            learnedBlockSize = (int) size;
        } else if (size != blockSize) {
            return DropReason.FOREIGN_BLOCK_SIZE;
        }
        final boolean root = readParent();
        final long parent = root ? 0 : parentHash;
        final int count = event.ok() ? readHashes(fields.at(EventFields.BLOCK_HASHES)) : -1;
        if (count < 0) {
            return DropReason.MALFORMED_EVENT;
        }
        if (count == 0) {
            return DropReason.EMPTY_STORE;
        }
        if (size != blockSize) {
            return DropReason.BLOCK_SIZE_MISMATCH;
        }
        if (!root && contains(engineHashes, count, parent)) {
            return DropReason.INVALID_BLOCK_SEQUENCE;
        }
        final int tokenCount = readTokens(fields.at(EventFields.TOKEN_IDS));
        if (tokenCount < 0) {
            return DropReason.MALFORMED_EVENT;
        }
        if (tokenCount != (long) count * blockSize) {
            return DropReason.TOKEN_COUNT_MISMATCH;
        }
        if (!readLookahead(fields.at(EventFields.LOOKAHEAD), count)) {
            return DropReason.MALFORMED_EVENT;
        }
        reason = readLora();
        final StorageTier tier = placement.tier();
        if (reason == null && !root && loraId != 0 && loraNumbers.isMissed(tier, parent)) {
            reason = DropReason.UNNAMED_LORA; // it continues where nothing is
        }
        final boolean report = root && out.rootStoresRefresh();
        if (reason != null) {
            if (reason == DropReason.UNNAMED_LORA) {
                loraNumbers.missed(loraId, tier, engineHashes, count, report);
            }
            return reason;
        }
        reason = hashAndAdd(root, parent, count, out);
        if (reason == null) {
            loraNumbers.stored(tier, engineHashes, count, out.copyRule(), report);
        }
        return reason;
    }

    /** Whether the event has tokens: an offloading engine may give the names of blocks alone. */
    private boolean hasTokens() {
        final int at = fields.at(EventFields.TOKEN_IDS);
        if (at < 0) {
            return false;
        }
        event.position(at);
        return event.peek() != MsgpackReader.Kind.NIL && event.readArrayHeader() != 0;
    }

    private DropReason named(KvBatch out) {
        final int count = readHashes(fields.at(EventFields.BLOCK_HASHES));
        if (count < 0) {
            return DropReason.MALFORMED_EVENT;
        }
        if (count == 0) {
            return DropReason.EMPTY_STORE;
        }
        loraNumbers.named(placement.tier(), engineHashes, count);
        out.addNamed(placement.tier(), engineHashes, count);
        return null;
    }

    private DropReason hashAndAdd(boolean root, long parent, int count, KvBatch out) {
        extraKeys.reset(count);
        DropReason reason = extraKeys.readSaltField(event, fields.at(EventFields.CACHE_SALT));
        if (reason == null) {
            reason =
                    extraKeys.read(
                            event, fields.at(EventFields.EXTRA_KEYS), root, loraName, loraId);
        }
        if (reason == null) {
            reason = extraKeys.readMmInfos(event, fields.at(EventFields.MM_INFOS));
        }
        if (reason == DropReason.MALFORMED_EVENT) {
            return reason;
        }
        final long inherited = chainSeed(root, parent);
        if (reason == null && inherited == OPAQUE_CHAIN) {
            reason = DropReason.OPAQUE_EXTRA_KEYS;
        }
        final boolean says = root || extraKeys.salt() != null || inherited != baseSeed;
        if (reason == null && seedsMissing && !says) {
            return DropReason.UNKNOWN_CHAIN;
        }
        if (reason != null) {
            rememberSeed(OPAQUE_CHAIN, count);
            return reason;
        }
        final long seed;
        if (extraKeys.salt() != null) {
            seed = BlockHasher.seed(loraSeed, null, extraKeys.salt());
            rememberSeed(seed, count);
        } else if (inherited != baseSeed) {
            seed = inherited;
            rememberSeed(seed, count);
        } else {
            seed = loraSeed;
        }
        hashBlocks(seed, count);
        if (eagle) {
            learnedEagle = true;
            out.markEagle();
        }
        out.addStored(placement.tier(), root, parent, engineHashes, localHashes, count);
        return null;
    }

    /**
     * The seed of the chain that a store continues, {@link #baseSeed} if it is not a known salted
     * one. A root in a lower tier may come without its salt; its name says which chain it begins.
     */
    private long chainSeed(boolean root, long parent) {
        if (!root) {
            return chainSeeds.get(parent, baseSeed);
        }
        return placement.tier() == StorageTier.DEVICE
                ? baseSeed
                : chainSeeds.get(engineHashes[0], baseSeed);
    }

    private void hashBlocks(long seed, int count) {
        if (localHashes.length < count) {
            localHashes = new long[count];
        }
        if (extraKeys.multimodal()) {
            final int window = eagle ? blockSize + 1 : blockSize;
            for (int i = 0; i < count; i++) {
                localHashes[i] =
                        multimodal.localHash(
                                tokens,
                                i * blockSize,
                                window,
                                seed,
                                extraKeys.mmHashes(i),
                                0,
                                extraKeys.mmCount(i));
            }
            multimodalStores.getAndIncrement();
        } else if (eagle) {
            BlockHasher.eagleLocalHashes(
                    tokens, 0, count * blockSize + 1, blockSize, seed, localHashes);
        } else {
            BlockHasher.localHashes(tokens, 0, count * blockSize, blockSize, seed, localHashes);
        }
        if (tokens.length > RETAINED_TOKENS) {
            tokens = new int[RETAINED_TOKENS];
        }
    }

    private void rememberSeed(long seed, int count) {
        for (int i = 0; i < count; i++) {
            // an opaque block is not in the index, which refuses what comes behind it
            seedsMissing |= !chainSeeds.put(engineHashes[i], seed) && seed != OPAQUE_CHAIN;
        }
    }

    /** Reads the parent; true at the root. A parent of the wrong kind fails the event reader. */
    private boolean readParent() {
        final int at = fields.at(EventFields.PARENT);
        if (at < 0) {
            return true;
        }
        event.position(at);
        if (event.peek() == MsgpackReader.Kind.NIL) {
            return true;
        }
        final boolean number = event.peek() == MsgpackReader.Kind.INTEGER;
        parentHash = readHash();
        // the array form of one publisher has no nil: 0 is its root
        return number && fields.arrayForm() && parentHash == 0;
    }

    private DropReason readLora() {
        loraId = 0;
        final int idAt = fields.at(EventFields.LORA_ID);
        if (idAt >= 0) {
            event.position(idAt);
            if (event.peek() != MsgpackReader.Kind.NIL) {
                loraId = event.readLong();
                if (!event.ok()) {
                    return DropReason.MALFORMED_EVENT;
                }
            }
        }
        final int nameAt = fields.at(EventFields.LORA_NAME);
        boolean named = false;
        if (nameAt >= 0) {
            event.position(nameAt);
            if (event.peek() != MsgpackReader.Kind.NIL) {
                if (event.peek() != MsgpackReader.Kind.STRING || !event.readData()) {
                    return DropReason.MALFORMED_EVENT;
                }
                named = event.dataLength() > 0;
            }
        }
        if (!named) {
            return readLoraNumber();
        }
        takeLora(event.dataEquals(lastLoraName) ? lastLora : event.dataText());
        if (loraId != 0 && (loraId != announcedId || !lastLora.equals(announcedName))) {
            loraNumbers.announced(loraId, lastLora);
            announcedId = loraId;
            announcedName = lastLora;
        }
        return null;
    }

    private DropReason readLoraNumber() {
        final String name = loraId == 0 ? null : loraNumbers.nameOf(loraId);
        if (name == null) {
            loraName = NO_NAME;
            loraSeed = baseSeed;
            return loraId == 0 ? null : DropReason.UNNAMED_LORA;
        }
        takeLora(name);
        loraNumbers.used(loraId, name);
        return null;
    }

    private void takeLora(String name) {
        if (!name.equals(lastLora)) {
            lastLora = name;
            lastLoraName = ExtraKeys.utf8(name);
            lastLoraSeed = BlockHasher.seed(baseSeed, name, null);
        }
        loraName = lastLoraName;
        loraSeed = lastLoraSeed;
    }

    private long readInteger(int at) {
        if (at < 0) {
            return -1;
        }
        event.position(at);
        final long value = event.readLong();
        return event.ok() ? value : -1;
    }

    /** Reads a list of hashes; returns how many, −1 if it is no such list. */
    private int readHashes(int at) {
        if (at < 0) {
            return -1;
        }
        event.position(at);
        final long count = event.readArrayHeader();
        if (!event.ok()) {
            return -1;
        }
        // complete by extent: each element takes a byte at least, so the count fits the message
        if (engineHashes.length < count) {
            engineHashes = new long[(int) count];
        }
        for (int i = 0; i < count; i++) {
            engineHashes[i] = readHash();
        }
        return event.ok() ? (int) count : -1;
    }

    private long readHash() {
        if (event.peek() != MsgpackReader.Kind.BINARY) {
            return event.readLong();
        }
        event.readData();
        final int length = event.dataLength();
        if (length == 0) {
            event.readLong(); // an empty hash names nothing: fail the reader
            return 0;
        }
        long hash = 0;
        for (int i = Math.max(0, length - Long.BYTES); i < length; i++) {
            hash = (hash << 8) | (event.dataByte(i) & 0xffL);
        }
        return hash;
    }

    /**
     * Reads the tokens, or the pairs that EAGLE writes: (token, the one after it).
     *
     * @return number of tokens or pairs, −1 if it is no such list
     */
    private int readTokens(int at) {
        if (at < 0) {
            return -1;
        }
        event.position(at);
        final long count = event.readArrayHeader();
        if (!event.ok()) {
            return -1;
        }
        if (tokens.length <= count) {
            tokens = new int[(int) count + 1];
        }
        eagle = event.peek() == MsgpackReader.Kind.ARRAY;
        boolean inRange = true;
        for (int i = 0; i < count; i++) {
            if (eagle && event.readArrayHeader() != 2) {
                return -1;
            }
            final long token = event.readLong();
            inRange &= isToken(token);
            tokens[i] = (int) token;
            if (eagle) {
                final long behind = event.readLong();
                inRange &= isToken(behind);
                tokens[i + 1] = (int) behind;
            }
        }
        return event.ok() && inRange ? (int) count : -1;
    }

    /**
     * Reads the tokens behind each block that its hash covers, if the event names them. The first
     * one counts, as with EAGLE: those of all blocks but the last are the first of the next block.
     *
     * @return false if they are no such lists
     */
    private boolean readLookahead(int at, int count) {
        if (at < 0) {
            return true;
        }
        event.position(at);
        if (event.peek() == MsgpackReader.Kind.NIL) {
            return true;
        }
        if (eagle || event.readArrayHeader() != count) {
            return false;
        }
        for (int block = 1; block <= count && event.ok(); block++) {
            final long behind = event.readArrayHeader();
            final long token = event.readLong();
            final int end = block * blockSize;
            if (behind < 1 || !isToken(token) || (block < count && (int) token != tokens[end])) {
                return false;
            }
            tokens[end] = (int) token;
            for (long i = 1; i < behind; i++) {
                event.skip();
            }
        }
        eagle = event.ok();
        return eagle;
    }

    /** Whether a number is one of 32 bits, signed or not. */
    private static boolean isToken(long number) {
        return number >= Integer.MIN_VALUE && number <= 0xffff_ffffL;
    }

    private static boolean contains(long[] values, int count, long value) {
        for (int i = 0; i < count; i++) {
            if (values[i] == value) {
                return true;
            }
        }
        return false;
    }
}

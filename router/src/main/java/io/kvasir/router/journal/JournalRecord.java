package io.kvasir.router.journal;

import static io.kvasir.router.journal.JournalDescriptor.CANDIDATE_WORDS;
import static io.kvasir.router.journal.JournalDescriptor.HEAD_WORDS;

import io.kvasir.pipeline.source.IndexState;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Objects;

/**
 * One decision as it is in a journal: what was asked, what was known of the chosen worker and of
 * the cheapest others, and what came of it. Reusable; filled by {@link DecisionJournal#read} or by
 * a router, belongs to one thread at a time.
 *
 * <p>Candidates are listed the chosen one first, the others by cost; {@code i} is 0..{@link
 * #listed()} - 1. Costs are in blocks.
 */
public final class JournalRecord {
    /** Value of {@link #engineCachedTokens} and {@link #firstTokenNs} that was not reported. */
    public static final long UNKNOWN = -1;

    /** Most candidates of a record. */
    public static final int MAX_CANDIDATES = 64;

    /** Bytes that are kept of a request's id. */
    public static final int MAX_ID_LENGTH = JournalDescriptor.ID_WORDS * Long.BYTES;

    private static final long FNV_OFFSET = 0xcbf29ce484222325L;
    private static final long FNV_PRIME = 0x100000001b3L;

    private final long[] words;
    private final int capacity;

    /**
     * A record with room.
     *
     * @param candidates most that it can list, 1..{@value #MAX_CANDIDATES}
     * @throws IllegalArgumentException if it is none of these
     */
    public JournalRecord(int candidates) {
        if (candidates < 1 || candidates > MAX_CANDIDATES) {
            throw new IllegalArgumentException(
                    "candidates=" + candidates + " must be 1 to " + MAX_CANDIDATES);
        }
        capacity = candidates;
        words = new long[JournalDescriptor.recordWords(candidates)];
    }

    /** The words of the record, state first. */
    long[] words() {
        return words;
    }

    /** Most candidates that it can list. */
    public int capacity() {
        return capacity;
    }

    /**
     * Begins a new decision without candidates.
     *
     * @param timeMs when it was made, milliseconds since the epoch
     * @param configVersion what the router was made by; see {@link #configVersion}
     * @param mode as of {@link #shortText}
     * @param weight what a block to prefill counted
     * @param temperature of the sampling
     */
    public void begin(
            long timeMs, long configVersion, long[] mode, double weight, double temperature) {
        Arrays.fill(words, 0, HEAD_WORDS, 0);
        words[JournalDescriptor.TIME_MS] = timeMs;
        words[JournalDescriptor.CONFIG_VERSION] = configVersion;
        System.arraycopy(mode, 0, words, JournalDescriptor.MODE, JournalDescriptor.SHORT_WORDS);
        words[JournalDescriptor.WEIGHT] = Double.doubleToRawLongBits(weight);
        words[JournalDescriptor.TEMPERATURE] = Double.doubleToRawLongBits(temperature);
        words[JournalDescriptor.LEAST_COST] = Double.doubleToRawLongBits(Double.NaN);
        words[JournalDescriptor.ENGINE_TOKENS] = UNKNOWN;
        words[JournalDescriptor.FIRST_TOKEN_NS] = UNKNOWN;
    }

    /**
     * Sets what was asked.
     *
     * @param tokens of the prompt
     * @param blocks full blocks of the prompt
     * @param prefills whether the worker computes the prompt
     * @param predictedTokens of the prompt that the chosen worker need not compute
     */
    public void prompt(int tokens, int blocks, boolean prefills, int predictedTokens) {
        words[JournalDescriptor.TOKENS] = tokens;
        words[JournalDescriptor.BLOCKS] = blocks;
        words[JournalDescriptor.PREFILLS] = prefills ? 1 : 0;
        words[JournalDescriptor.PREDICTED_TOKENS] = predictedTokens;
    }

    /**
     * Sets among how many was chosen.
     *
     * @param candidates that could be chosen
     * @param workers that were registered
     * @param leastCost lowest cost of a candidate; NaN where there was none
     */
    public void fleet(int candidates, int workers, double leastCost) {
        words[JournalDescriptor.CANDIDATES] = candidates;
        words[JournalDescriptor.WORKERS] = workers;
        words[JournalDescriptor.LEAST_COST] = Double.doubleToRawLongBits(leastCost);
    }

    /** The worker was chosen because it had the last request of the session. */
    public void bySession() {
        words[JournalDescriptor.BY_SESSION] = 1;
    }

    /**
     * No worker was chosen.
     *
     * @param reason as of {@link #shortText}
     */
    public void refused(long[] reason) {
        System.arraycopy(
                reason, 0, words, JournalDescriptor.REFUSAL, JournalDescriptor.SHORT_WORDS);
    }

    /**
     * Sets the caller's id of the request. Characters that are not of ASCII are kept as '?'.
     *
     * @param id null for none
     */
    public void id(String id) {
        words[JournalDescriptor.ID_HASH] = hash(id);
        words[JournalDescriptor.ID_LENGTH] = id == null ? 0 : id.length();
        Arrays.fill(
                words, JournalDescriptor.ID, JournalDescriptor.ID + JournalDescriptor.ID_WORDS, 0);
        for (int i = 0; id != null && i < Math.min(id.length(), MAX_ID_LENGTH); i++) {
            words[JournalDescriptor.ID + i / Long.BYTES] |= ascii(id.charAt(i)) << (i * Byte.SIZE);
        }
    }

    private static long ascii(char character) {
        return character < 0x80 ? character : '?';
    }

    /**
     * FNV-1a over the characters of a text.
     *
     * @param text null for none
     * @return 64 bits; 0 for no text
     */
    public static long hash(String text) {
        if (text == null) {
            return 0;
        }
        long hash = FNV_OFFSET;
        for (int i = 0; i < text.length(); i++) {
            hash = (hash ^ text.charAt(i)) * FNV_PRIME;
        }
        return hash;
    }

    /**
     * A worker's name as records have it.
     *
     * @return its first 48 bytes, padded with 0
     */
    public static long[] name(String worker) {
        return words(worker, JournalDescriptor.NAME_WORDS);
    }

    /**
     * The name of a mode or a reason as records have it.
     *
     * @return its first 24 bytes, padded with 0
     */
    public static long[] shortText(String text) {
        return words(text, JournalDescriptor.SHORT_WORDS);
    }

    private static long[] words(String text, int count) {
        final byte[] bytes =
                Arrays.copyOf(text.getBytes(StandardCharsets.UTF_8), count * Long.BYTES);
        final long[] words = new long[count];
        ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(words);
        return words;
    }

    /**
     * Lists another candidate.
     *
     * @param name as of {@link #name}
     * @throws IllegalStateException if there is no room
     */
    public void add(
            long[] name,
            int dpRank,
            IndexState state,
            double cost,
            double prefillBlocks,
            long decodeBlocks,
            int overlapBlocks,
            int activePrefixBlocks,
            long activeRequests,
            double addedBlocks,
            long eventSequence) {
        final int listed = listed();
        if (listed == capacity) {
            throw new IllegalStateException("the record has room for " + capacity + " candidates");
        }
        final int at = HEAD_WORDS + listed * CANDIDATE_WORDS;
        System.arraycopy(name, 0, words, at + JournalDescriptor.NAME, JournalDescriptor.NAME_WORDS);
        words[at + JournalDescriptor.DP_RANK] = dpRank;
        words[at + JournalDescriptor.INDEX_STATE] = state.number();
        words[at + JournalDescriptor.COST] = Double.doubleToRawLongBits(cost);
        words[at + JournalDescriptor.PREFILL_BLOCKS] = Double.doubleToRawLongBits(prefillBlocks);
        words[at + JournalDescriptor.DECODE_BLOCKS] = decodeBlocks;
        words[at + JournalDescriptor.OVERLAP_BLOCKS] = overlapBlocks;
        words[at + JournalDescriptor.ACTIVE_PREFIX_BLOCKS] = activePrefixBlocks;
        words[at + JournalDescriptor.ACTIVE_REQUESTS] = activeRequests;
        words[at + JournalDescriptor.ADDED_BLOCKS] = Double.doubleToRawLongBits(addedBlocks);
        words[at + JournalDescriptor.EVENT_SEQUENCE] = eventSequence;
        words[JournalDescriptor.LISTED] = listed + 1L;
    }

    /**
     * Says what the candidate that was listed last holds in tiers below its device, or can load.
     *
     * @param hostBlocks in host memory, from the device's on
     * @param diskBlocks on disk, from the host's on
     * @param sharedBlocks in shared storage, from the disk's on
     */
    public void tiers(int hostBlocks, int diskBlocks, int sharedBlocks) {
        final int at = candidate(listed() - 1);
        words[at + JournalDescriptor.HOST_BLOCKS] |= (long) hostBlocks << Integer.SIZE;
        words[at + JournalDescriptor.DISK_BLOCKS] |= (long) diskBlocks << Integer.SIZE;
        words[at + JournalDescriptor.SHARED_BLOCKS] |= (long) sharedBlocks << Integer.SIZE;
    }

    /** The decision's number: those of a router count from 0. */
    public long number() {
        return words[JournalDescriptor.NUMBER];
    }

    /** When it was made, milliseconds since the epoch. */
    public long timeMs() {
        return words[JournalDescriptor.TIME_MS];
    }

    /** What the router was made by: equal numbers, equal settings. */
    public long configVersion() {
        return words[JournalDescriptor.CONFIG_VERSION];
    }

    /** How the worker was chosen: a mode as settings write it. */
    public String mode() {
        return text(JournalDescriptor.MODE, JournalDescriptor.SHORT_WORDS, Integer.MAX_VALUE);
    }

    /** Whether the worker was chosen because it had the last request of the session. */
    public boolean isBySession() {
        return words[JournalDescriptor.BY_SESSION] != 0;
    }

    /** What a block to prefill counted. */
    public double weight() {
        return number(JournalDescriptor.WEIGHT);
    }

    /** The sampling temperature. */
    public double temperature() {
        return number(JournalDescriptor.TEMPERATURE);
    }

    /** Tokens of the prompt. */
    public int tokens() {
        return (int) words[JournalDescriptor.TOKENS];
    }

    /** Full blocks of the prompt. */
    public int blocks() {
        return (int) words[JournalDescriptor.BLOCKS];
    }

    /** Whether the worker computes the prompt. */
    public boolean prefills() {
        return words[JournalDescriptor.PREFILLS] != 0;
    }

    /** Workers that could be chosen; more than are {@link #listed} in large fleets. */
    public int candidates() {
        return (int) words[JournalDescriptor.CANDIDATES];
    }

    /** Workers that were registered, excluded ones too. */
    public int workers() {
        return (int) words[JournalDescriptor.WORKERS];
    }

    /** Why no worker was chosen, as of {@code RouteException.Kind}; empty if one was. */
    public String refusal() {
        return text(JournalDescriptor.REFUSAL, JournalDescriptor.SHORT_WORDS, Integer.MAX_VALUE);
    }

    /** How much more the chosen worker costs than the cheapest, in blocks; NaN if none was. */
    public double regret() {
        return listed() == 0 ? Double.NaN : cost(0) - number(JournalDescriptor.LEAST_COST);
    }

    /** Tokens that the chosen worker was expected to take from its cache. */
    public int predictedCachedTokens() {
        return (int) words[JournalDescriptor.PREDICTED_TOKENS];
    }

    /** Tokens that its engine said it took from its cache; {@link #UNKNOWN} before. */
    public long engineCachedTokens() {
        return words[JournalDescriptor.ENGINE_TOKENS];
    }

    /** Nanoseconds from the booking to the first token; {@link #UNKNOWN} before. */
    public long firstTokenNs() {
        return words[JournalDescriptor.FIRST_TOKEN_NS];
    }

    /** The caller's id of the request; its beginning where it is longer; empty for none. */
    public String id() {
        final long length = words[JournalDescriptor.ID_LENGTH];
        return text(
                JournalDescriptor.ID,
                JournalDescriptor.ID_WORDS,
                (int) Math.min(length, MAX_ID_LENGTH));
    }

    /** Whether the record is of a request with an id, as far as a long one shows it. */
    boolean isOf(String id) {
        if (words[JournalDescriptor.ID_HASH] != hash(id)
                || words[JournalDescriptor.ID_LENGTH] != id.length()) {
            return false;
        }
        for (int i = 0; i < Math.min(id.length(), MAX_ID_LENGTH); i++) {
            final long word = words[JournalDescriptor.ID + i / Long.BYTES];
            if (((word >>> (i * Byte.SIZE)) & 0xff) != ascii(id.charAt(i))) {
                return false;
            }
        }
        return true;
    }

    /** How many candidates are listed: the chosen one, and the cheapest others. */
    public int listed() {
        return Math.clamp(words[JournalDescriptor.LISTED], 0, capacity);
    }

    /** Name of a candidate; its beginning where it is longer. */
    public String worker(int i) {
        final String name =
                text(
                        candidate(i) + JournalDescriptor.NAME,
                        JournalDescriptor.NAME_WORDS,
                        Integer.MAX_VALUE);
        // a character that was cut in the middle
        return name.endsWith("\ufffd") ? name.substring(0, name.length() - 1) : name;
    }

    /** Data-parallel rank of a candidate. */
    public int dpRank(int i) {
        return (int) words[candidate(i) + JournalDescriptor.DP_RANK];
    }

    /** How far the index could be trusted for a candidate; null where a later version says it. */
    public IndexState indexStateOrNull(int i) {
        return IndexState.ofNumberOrNull(words[candidate(i) + JournalDescriptor.INDEX_STATE]);
    }

    /** Cost of a candidate, in blocks. */
    public double cost(int i) {
        return number(candidate(i) + JournalDescriptor.COST);
    }

    /** Blocks that it would have had to prefill. */
    public double prefillBlocks(int i) {
        return number(candidate(i) + JournalDescriptor.PREFILL_BLOCKS);
    }

    /** Blocks that it would have had in use. */
    public long decodeBlocks(int i) {
        return words[candidate(i) + JournalDescriptor.DECODE_BLOCKS];
    }

    /** Leading blocks of the prompt that it held on its device. */
    public int overlapBlocks(int i) {
        return (int) words[candidate(i) + JournalDescriptor.OVERLAP_BLOCKS];
    }

    /** Blocks that it held in host memory, from the device's on. */
    public int hostBlocks(int i) {
        return high(candidate(i) + JournalDescriptor.HOST_BLOCKS);
    }

    /** Blocks that it held on disk, from the host's on. */
    public int diskBlocks(int i) {
        return high(candidate(i) + JournalDescriptor.DISK_BLOCKS);
    }

    /** Blocks that it could load from shared storage, from the disk's on. */
    public int sharedBlocks(int i) {
        return high(candidate(i) + JournalDescriptor.SHARED_BLOCKS);
    }

    private int high(int at) {
        return (int) (words[at] >>> Integer.SIZE);
    }

    /** Leading blocks of the prompt that were in use there. */
    public int activePrefixBlocks(int i) {
        return (int) words[candidate(i) + JournalDescriptor.ACTIVE_PREFIX_BLOCKS];
    }

    /** Requests that were booked on it. */
    public long activeRequests(int i) {
        return words[candidate(i) + JournalDescriptor.ACTIVE_REQUESTS];
    }

    /** What the request's own cost said of it, in blocks. */
    public double addedBlocks(int i) {
        return number(candidate(i) + JournalDescriptor.ADDED_BLOCKS);
    }

    /** The engine's number of its last event that was in the index; -1 when none. */
    public long eventSequence(int i) {
        return words[candidate(i) + JournalDescriptor.EVENT_SEQUENCE];
    }

    private int candidate(int i) {
        return HEAD_WORDS + Objects.checkIndex(i, listed()) * CANDIDATE_WORDS;
    }

    private double number(int at) {
        return Double.longBitsToDouble(words[at]);
    }

    /** Text up to a length or its first 0. */
    private String text(int at, int count, int length) {
        final ByteBuffer bytes =
                ByteBuffer.allocate(count * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        bytes.asLongBuffer().put(words, at, count);
        int end = 0;
        while (end < Math.min(length, bytes.capacity()) && bytes.get(end) != 0) {
            end++;
        }
        return new String(bytes.array(), 0, end, StandardCharsets.UTF_8);
    }
}

package io.kvasir.router.journal;

/**
 * Layout of a decision journal, in memory and in its file: docs/spec/decision-journal.md. All
 * values are words of 64 bits, lowest byte first.
 *
 * <pre>
 *   header, 128 bytes | record 0 | record 1 | ...
 *   record: head, 40 words | candidate 0, 16 words | candidate 1 | ...
 * </pre>
 */
final class JournalDescriptor {
    /** "KVJOURN1", lowest byte first. */
    static final long MAGIC = 0x314E52554F4A564BL;

    static final int VERSION = 1;

    static final int HEADER_LENGTH = 128;
    static final int MAGIC_OFFSET = 0;
    static final int VERSION_OFFSET = 8;
    static final int RECORDS_OFFSET = 16;
    static final int CANDIDATES_OFFSET = 24;
    static final int BLOCK_SIZE_OFFSET = 32;
    static final int PROCESS_OFFSET = 40;
    static final int STARTED_OFFSET = 48;

    /** Number of the next decision; beside the count of those that found no place. */
    static final int NEXT_OFFSET = 64;

    static final int DROPPED_OFFSET = 72;

    /** Words of a record before its candidates. */
    static final int HEAD_WORDS = 40;

    static final int CANDIDATE_WORDS = 16;

    /** State of a record: 0, {@link #writing} or {@link #written}. */
    static final int STATE = 0;

    static final int NUMBER = 1;
    static final int TIME_MS = 2;
    static final int LISTED = 3;
    static final int CANDIDATES = 4;
    static final int WORKERS = 5;
    static final int TOKENS = 6;
    static final int BLOCKS = 7;
    static final int PREFILLS = 8;
    static final int WEIGHT = 13;
    static final int TEMPERATURE = 14;
    static final int LEAST_COST = 12;
    static final int PREDICTED_TOKENS = 9;
    static final int ENGINE_TOKENS = 10;
    static final int FIRST_TOKEN_NS = 11;
    static final int CONFIG_VERSION = 15;
    static final int ID_HASH = 16;
    static final int ID_LENGTH = 17;
    static final int ID = 18;
    static final int ID_WORDS = 8;
    static final int MODE = 26;
    static final int REFUSAL = 29;
    static final int SHORT_WORDS = 3;
    static final int BY_SESSION = 32;

    static final int NAME = 0;
    static final int NAME_WORDS = 6;

    // three words are of two numbers: the one named here low, blocks in a tier high
    static final int DP_RANK = 6;
    static final int INDEX_STATE = 7;
    static final int COST = 8;
    static final int PREFILL_BLOCKS = 9;
    static final int DECODE_BLOCKS = 10;
    static final int OVERLAP_BLOCKS = 11;
    static final int ACTIVE_PREFIX_BLOCKS = 12;
    static final int ACTIVE_REQUESTS = 13;
    static final int ADDED_BLOCKS = 14;
    static final int EVENT_SEQUENCE = 15;
    static final int SHARED_BLOCKS = DP_RANK;
    static final int HOST_BLOCKS = OVERLAP_BLOCKS;
    static final int DISK_BLOCKS = ACTIVE_PREFIX_BLOCKS;

    private JournalDescriptor() {}

    /** State while the record of a decision is written. */
    static long writing(long number) {
        return 2 * number + 1;
    }

    /** State once the record of a decision is whole. */
    static long written(long number) {
        return 2 * number + 2;
    }

    static boolean isWriting(long state) {
        return (state & 1) != 0;
    }

    static int recordWords(int candidates) {
        return HEAD_WORDS + candidates * CANDIDATE_WORDS;
    }

    static long length(int records, int candidates) {
        return HEADER_LENGTH + (long) records * recordWords(candidates) * Long.BYTES;
    }
}

package io.kvasir.core.load;

/**
 * What one running request weighs, as {@link ActiveRequests#read} found it. Owned and reused by the
 * writer thread: the next read overwrites it.
 */
public final class RunningRequest {
    int slot;
    long prefillTokens;
    int ownBlocks;
    int pathBlocks;
    long[] path = new long[64];

    /** A request of nothing. */
    public RunningRequest() {}

    /** Worker slot that it runs on. */
    public int slot() {
        return slot;
    }

    /** Tokens still to be prefilled; 0 once it generates. */
    public long prefillTokens() {
        return prefillTokens;
    }

    /** Blocks that it shares with no other: output, and prompt blocks that are not followed. */
    public int ownBlocks() {
        return ownBlocks;
    }

    /** Prompt blocks that are followed one by one; 0 unless the path was asked for. */
    public int pathBlocks() {
        return pathBlocks;
    }

    /** Their local hashes in order, [{@link #pathBlocks}]; overwritten by the next read. */
    public long[] path() {
        return path;
    }
}

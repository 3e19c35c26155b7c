package io.kvasir.prompt.memo;

/**
 * Remembers the tokens of sections of prompts under the sections' hashes. May be shared with other
 * processes, and may forget anything at any time.
 *
 * <p>Any thread may call any method. None of them waits for longer than a fraction of a
 * millisecond, and none fails: what cannot be read is absent, what cannot be kept is dropped, both
 * are counted.
 */
public interface PromptMemo extends AutoCloseable {
    /** Bytes of a key: a SHA-256, see {@link MemoView#key}. */
    int KEY_BYTES = 32;

    /**
     * Shortest section that is looked up, in UTF-16 units. At half of it a hit saves hardly more
     * than a miss costs; see {@code docs/adr/0023-shared-memory.md} for the measurement.
     */
    int MIN_SECTION_CHARS = 1_024;

    /**
     * Looks tokens up.
     *
     * @param key of {@value #KEY_BYTES} bytes, not changed
     * @return a fresh array of exactly the tokens that were put under this key, or null
     */
    int[] get(byte[] key);

    /**
     * Keeps tokens, in place of older ones where there is no room.
     *
     * @param key of {@value #KEY_BYTES} bytes; not kept
     * @param tokens any number of them; not kept
     */
    void put(byte[] key, int[] tokens);

    /** What has become of the calls of this process so far. */
    PromptMemoCounts counts();

    /** Ends the use by this process; later calls find and keep nothing. Idempotent. */
    @Override
    void close();
}

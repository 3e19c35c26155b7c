package io.kvasir.prompt.memo;

/**
 * What became of one process's calls of a {@link PromptMemo}, since it was opened.
 *
 * @param hits sections that were found
 * @param misses sections that were not, whatever the reason
 * @param evictions entries that gave way to newer ones before their time
 * @param errors entries that were damaged, locked, or could not be kept; calls while the memo was
 *     out of use
 */
public record PromptMemoCounts(long hits, long misses, long evictions, long errors) {
    /** These and those of another memo. */
    public PromptMemoCounts plus(PromptMemoCounts other) {
        return new PromptMemoCounts(
                hits + other.hits,
                misses + other.misses,
                evictions + other.evictions,
                errors + other.errors);
    }
}

package io.kvasir.prompt.memo;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;

/**
 * What a memo is made by. Processes share one when all of this is equal.
 *
 * @param folder where it is; made if it is not there, and then readable by its owner alone
 * @param entries most entries; one has up to 1,000 tokens of a section
 * @param ttl age from which on an entry is not used any more
 */
public record PromptMemoConfig(Path folder, int entries, Duration ttl) {
    /** Checks the values. */
    public PromptMemoConfig {
        Objects.requireNonNull(folder, "folder");
        if (entries < 1 || ttl.isNegative() || ttl.isZero()) {
            throw new IllegalArgumentException(
                    "entries=" + entries + " and ttl=" + ttl + " must be positive");
        }
    }
}

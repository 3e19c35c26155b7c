package io.kvasir.pipeline.source;

import io.kvasir.core.index.CopyRule;

/**
 * What an engine means by "block removed" when it holds several physical copies of the block.
 *
 * <p>vLLM V1 announces every copy and every removal of a copy; other engines, and perhaps later
 * vLLM versions, announce the removal of the last copy only.
 */
public enum RemovalRule {
    /** Each removal takes one copy away. */
    PHYSICAL,
    /** A removal means that no copy is left. */
    LAST_COPY,
    /**
     * Starts as {@link #PHYSICAL} and changes to {@link #LAST_COPY} when the engine's own hits show
     * again and again that the index holds blocks that the engine does not have; as at the start
     * after a restart of the engine, or when the index refuses stores by the changed rule.
     */
    AUTO;

    /** The rule for the copies of a block; with {@link #AUTO} that of the start. */
    public CopyRule copyRule() {
        return this == LAST_COPY ? CopyRule.LAST_COPY : CopyRule.PHYSICAL;
    }
}

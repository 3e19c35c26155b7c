package io.kvasir.pipeline.wire;

import java.util.Locale;

/**
 * Why a message or event did not reach the index. Every one that does not is counted under exactly
 * one of these.
 *
 * <p>The names in lower case are the metric labels; those that other routers also use are spelled
 * as they spell them.
 */
public enum DropReason {
    /** An event type that this router does not know or need. */
    IGNORED_EVENT(false),
    /** A message that is no event batch, such as a load report on the same socket. */
    IGNORED_MESSAGE(false),
    /** The batch is of another data-parallel rank than its source. */
    FOREIGN_RANK(false),
    /** The block lies on another machine, or the event does not say where in words known here. */
    NON_LOCAL_LOCALITY(false),
    /** A storage medium of an unknown name. */
    UNKNOWN_MEDIUM(false),
    /** The block lies in host memory, a tier that is not indexed. */
    HOST_PINNED_TIER(false),
    /** The block lies on disk, a tier that is not indexed. */
    DISK_TIER(false),
    /** The block lies in shared storage, a tier that is not indexed. */
    EXTERNAL_TIER(false),
    /** A store in a lower tier of blocks of another size, whose names say nothing here. */
    FOREIGN_BLOCK_SIZE(false),
    /** The block is owned by a cache service, not by the engine. */
    UNSUPPORTED_OWNERSHIP(false),
    /** An owner of an unknown name. */
    UNKNOWN_OWNERSHIP(false),
    /** The event names two different salts, or more strings than one can be the salt. */
    AMBIGUOUS_CACHE_NAMESPACE(false),
    /** The block's hash depends on something that a prompt's tokens do not show. */
    OPAQUE_EXTRA_KEYS(false),
    /**
     * A store without a salt behind a block that may have one: too many have for all to be known.
     */
    UNKNOWN_CHAIN(true),
    /** The block is of an adapter that only a number tells, and its name is not known. */
    UNNAMED_LORA(false),
    /** A cache group of sliding-window, state-space or another kind that is not full attention. */
    NON_MAIN_ATTENTION_KIND(false),
    /** A cache group of an unknown kind. */
    UNKNOWN_KIND(false),
    /** A cache group other than the full-attention group that this source announced before. */
    NON_MAIN_ATTENTION_GROUP(false),
    /** A cache group other than 0, before the full-attention group is known. */
    UNLEARNED_GROUP_IDX(false),
    /** A store without blocks. */
    EMPTY_STORE(false),
    /** The engine's block size is not the one configured. */
    BLOCK_SIZE_MISMATCH(true),
    /** The number of tokens is not blocks × block size. */
    TOKEN_COUNT_MISMATCH(true),
    /** A store whose parent is one of its own blocks. */
    INVALID_BLOCK_SEQUENCE(true),
    /** A store that says only how many blocks are before it, not which. */
    POSITIONAL_STORE(true),
    /** A known event with a field missing or of the wrong kind. */
    MALFORMED_EVENT(true),
    /** The batch ends in the middle of an event; the events before it were used. */
    TRUNCATED_BATCH(true),
    /** Bytes that are no event batch in any known form. */
    UNDECODABLE_MESSAGE(true),
    /** A message of fewer or more frames than topic, sequence, payload. */
    BAD_FRAME_COUNT(true),
    /** A sequence frame that is not 8 bytes, or a number that no message can have. */
    BAD_SEQUENCE_FRAME(true),
    /** A batch of a rank for which no source is registered, on an address that several share. */
    UNREGISTERED_RANK(false);

    private final boolean losesBlocks;
    private final String label;

    DropReason(boolean losesBlocks) {
        this.losesBlocks = losesBlocks;
        this.label = name().toLowerCase(Locale.ROOT);
    }

    /** Name of the reason as a metric label. */
    public String label() {
        return label;
    }

    /**
     * Whether such a drop means that the index may miss, or wrongly keep, a block that the index is
     * meant to know. Filtering by design does not.
     */
    public boolean losesBlocks() {
        return losesBlocks;
    }
}

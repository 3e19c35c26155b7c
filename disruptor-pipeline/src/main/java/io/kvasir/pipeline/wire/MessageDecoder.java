package io.kvasir.pipeline.wire;

/**
 * Decodes the messages of one source, each under one number, into index operations. What a message
 * is depends on the source: an engine's batch of events ({@link EngineBatchDecoder}) or one router
 * event ({@link RouterEventDecoder}).
 *
 * <p>Nothing is thrown for any input. One instance per source; {@link #drops}, {@link
 * #learnedBlockSize}, {@link #learnedEagle}, {@link #otherGroups} and {@link #multimodalStores} on
 * any thread, all else on one at a time.
 */
public interface MessageDecoder {
    /** What a message is, as far as its first bytes tell. */
    enum Shape {
        /** Events. */
        BATCH,
        /** A well-formed message of another kind, such as a load report. */
        OTHER,
        /** Not a message of any known kind. */
        UNDECODABLE
    }

    /**
     * Recognises by its first bytes what a message is.
     *
     * @param payload holds the message
     * @param offset its first byte
     * @param length its bytes
     */
    Shape shapeOf(byte[] payload, int offset, int length);

    /**
     * The data-parallel rank that a message names.
     *
     * @param payload holds the message
     * @param offset its first byte
     * @param length its bytes
     * @return the rank, {@link BatchRank#NONE} if it names none
     */
    long rankOf(byte[] payload, int offset, int length);

    /**
     * Decodes one message and adds its operations, in order, to {@code out}.
     *
     * @param payload holds the message; not kept
     * @param offset its first byte
     * @param length its bytes
     * @param out receives the operations; not reset here
     * @return false if the message cannot be read at all, which is counted
     */
    boolean decode(byte[] payload, int offset, int length, KvBatch out);

    /** What was dropped so far, by reason. */
    DropCounts drops();

    /** Number of events in the last message decoded, dropped ones included. */
    int eventCount();

    /** Whether the last message lost blocks that the index is meant to know. */
    boolean lostBlocks();

    /** Block size in the engine's last store, whether it fits or not; 0 before its first. */
    int learnedBlockSize();

    /** Whether blocks are hashed for EAGLE: each with the token after it. */
    boolean learnedEagle();

    /**
     * A kind of cache group that bounds the engine's hits and whose blocks are left out, such as
     * {@code sliding_window}; empty if none has been announced.
     */
    default String otherGroups() {
        return "";
    }

    /** Stores with multimodal objects: only prompts with the same objects match them. */
    long multimodalStores();

    /** Forgets what was learned from earlier events: the engine has restarted. */
    void forget();

    /** Forgets what was learned of single blocks: the slot is emptied. On the decoding thread. */
    void emptied();

    /**
     * Says that what a message was decoded into was taken, and will be in the index. On the
     * decoding thread.
     */
    void taken(KvBatch batch);

    /** Says what of its {@link #memory} is no list. On the decoding thread. */
    void learned(KvBatch batch);

    /** What was learned from earlier events and later ones need. On the decoding thread. */
    DecoderMemory memory();

    /** Takes over what another decoder of the same source has learned. Before the first message. */
    void recall(DecoderMemory memory);
}

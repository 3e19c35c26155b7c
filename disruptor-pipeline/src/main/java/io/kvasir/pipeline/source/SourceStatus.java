package io.kvasir.pipeline.source;

import java.util.Map;

/**
 * What a source has seen and how well its part of the index is.
 *
 * @param name name of the worker
 * @param slot worker slot
 * @param dpRank configured data-parallel rank
 * @param endpoint address in use: the real port where one was bound with port 0
 * @param state how far the index can be trusted
 * @param cause why; of the same moment
 * @param problem last thing that went wrong, in words, with the knob to turn; empty if nothing did
 * @param lastSequence number of the last message handed on, −1 before the first
 * @param lastEventAgeNs time since the last live message, −1 before the first; replayed ones do not
 *     count
 * @param messages messages received, replayed ones included
 * @param events events in the messages handed on, dropped ones included
 * @param applied index operations applied so far
 * @param blocksStored blocks in applied stores
 * @param blocksRemoved blocks in applied removals
 * @param unknownRemovals removals of blocks that the index did not know
 * @param unknownParents stores refused because the index did not know their parent
 * @param capacityRefusals stores refused because the index was full
 * @param missingParents stores refused because their parent was, or was evicted
 * @param missingBlocks blocks that were announced and are not held now because the index is full
 * @param evictedBlocks blocks that were given up for others
 * @param invalidStores stores that the index called invalid
 * @param duplicates messages received twice and ignored
 * @param late messages ignored because the stream had continued without them
 * @param gaps times that message numbers were missing
 * @param lostMessages messages known to be lost for good; the largest number at most
 * @param replays replay requests that were answered to the end
 * @param replayFailures replay requests given up
 * @param restarts times that the engine was seen to have started anew
 * @param reconnects times that the connection came back
 * @param disconnects times that the connection was lost
 * @param connectFailures times that no connection could be made
 * @param refused batches that the event ring had no room for
 * @param waiting messages that have come and wait for older ones, which are asked for or may have
 *     been overtaken
 * @param behind batches handed on and not applied yet
 * @param failures batches that the index could not be changed by, because of an error in it
 * @param drops messages and events dropped, by reason; only reasons that occurred
 * @param configuredBlockSize tokens per block that were configured
 * @param learnedBlockSize tokens per block that the engine says, 0 before the first store
 * @param learnedRank rank that the engine says, −1 if it says none
 * @param learnedEagle whether the engine drafts with EAGLE: it announces tokens in pairs
 * @param multimodalStores stores with multimodal objects; only requests with the same objects match
 *     their blocks
 * @param removals what removals mean now; never {@link RemovalRule#AUTO}
 * @param ruleSwitches times that {@link RemovalRule#AUTO} changed its mind
 */
public record SourceStatus(
        String name,
        int slot,
        int dpRank,
        String endpoint,
        IndexState state,
        IndexCause cause,
        String problem,
        long lastSequence,
        long lastEventAgeNs,
        long messages,
        long events,
        long applied,
        long blocksStored,
        long blocksRemoved,
        long unknownRemovals,
        long unknownParents,
        long capacityRefusals,
        long missingParents,
        long missingBlocks,
        long evictedBlocks,
        long invalidStores,
        long duplicates,
        long late,
        long gaps,
        long lostMessages,
        long replays,
        long replayFailures,
        long restarts,
        long reconnects,
        long disconnects,
        long connectFailures,
        long refused,
        long waiting,
        long behind,
        long failures,
        Map<String, Long> drops,
        int configuredBlockSize,
        int learnedBlockSize,
        long learnedRank,
        boolean learnedEagle,
        long multimodalStores,
        RemovalRule removals,
        int ruleSwitches) {
    /** Copies the map. */
    public SourceStatus {
        drops = Map.copyOf(drops);
    }
}

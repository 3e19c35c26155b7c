package io.kvasir.pipeline.source;

import java.util.Locale;

/**
 * Why a view of one (worker, rank) is in its {@link IndexState}: the first of these that holds, in
 * this order. What each of them costs and what ends it stands in {@code
 * docs/operations/index-truth.md}, which has a row and a test for each.
 */
public enum IndexCause {
    /** The source is closed, or its worker removed. */
    CLOSED(IndexState.GONE),
    /** There is no connection for events. */
    NO_CONNECTION(IndexState.STALE),
    /** Prompts with new blocks were served and no message came. */
    SILENT(IndexState.STALE),
    /** Prompts with new blocks were served; messages came, and no block was stored by any. */
    NO_STORES(IndexState.STALE),
    /** A connection or a snapshot is back, and the engine may be another one than before. */
    UNPROVEN_ENGINE(IndexState.STALE),
    /** The messages are of another rank than configured. */
    FOREIGN_RANK(IndexState.DEGRADED),
    /** Nothing has been seen yet, or the first load is under way. */
    NOT_LOADED(IndexState.LOADING),
    /** The engine's blocks have another size than configured. */
    BLOCK_SIZE(IndexState.DEGRADED),
    /** Events came that could not be used. */
    UNUSABLE_EVENTS(IndexState.DEGRADED),
    /** Messages are lost. */
    LOST_MESSAGES(IndexState.DEGRADED),
    /** The index refused stores whose parents it does not know, or that contradict others. */
    REFUSED_STORES(IndexState.DEGRADED),
    /** An error inside the index has set the slot aside, or a match found the index damaged. */
    INDEX_ERROR(IndexState.DEGRADED),
    /** The index had no room for blocks of this engine. */
    INDEX_FULL(IndexState.DEGRADED),
    /** Blocks of adapters whose numbers have no name were left out. */
    UNNAMED_ADAPTERS(IndexState.DEGRADED),
    /** The engine's own cache hits are persistently other ones than predicted. */
    FORECASTS(IndexState.DEGRADED),
    /** Messages are missing and are being asked for, or one is waited for. */
    GAP(IndexState.RESYNC),
    /** What was received waits to be applied. */
    NOT_APPLIED(IndexState.RESYNC),
    /** The worker has no events. */
    NO_EVENTS(IndexState.PREDICTED),
    /** The view is exact. */
    NONE(IndexState.EXACT);

    private final IndexState state;
    private final String spelling = name().toLowerCase(Locale.ROOT).replace('_', '-');

    IndexCause(IndexState state) {
        this.state = state;
    }

    /**
     * The state that follows from it. Of a worker without events: {@link IndexState#DEGRADED} where
     * nothing is predicted; wrong forecasts leave it {@link IndexState#PREDICTED}.
     */
    public IndexState state() {
        return state;
    }

    /** As metrics and pages write it. */
    public String spelling() {
        return spelling;
    }
}

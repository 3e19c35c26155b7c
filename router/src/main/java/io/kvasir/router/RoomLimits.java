package io.kvasir.router;

import io.kvasir.core.load.LoadSnapshot;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Settings;

/**
 * Up to which load a worker has room for a request that would else wait. What is not known of a
 * worker does not take its room.
 *
 * @param prefillShare tokens to prefill, as a multiple of those of one step; negative = any
 * @param prefillTokens the same in tokens; negative = any
 */
record RoomLimits(double prefillShare, long prefillTokens) {
    static final RoomLimits NONE = new RoomLimits(-1, -1);

    static RoomLimits of(Settings settings) {
        return new RoomLimits(
                settings.get(RouterSettings.QUEUE_THRESHOLD),
                settings.get(RouterSettings.QUEUE_PREFILL_TOKENS));
    }

    /** Whether all have room. */
    boolean isNone() {
        return prefillShare < 0 && prefillTokens < 0;
    }

    boolean hasRoom(Worker worker, LoadSnapshot loads) {
        final long tokens = loads.prefillTokens(worker.slot());
        return (prefillTokens < 0 || tokens <= prefillTokens)
                && (prefillShare < 0
                        || worker.batchTokens() == 0
                        || tokens <= prefillShare * worker.batchTokens());
    }

    /** The limits that are set. */
    String explain() {
        return (prefillShare < 0 ? "" : RouterSettings.QUEUE_THRESHOLD + "=" + prefillShare)
                + (prefillShare < 0 || prefillTokens < 0 ? "" : ", ")
                + (prefillTokens < 0
                        ? ""
                        : RouterSettings.QUEUE_PREFILL_TOKENS + "=" + prefillTokens);
    }
}

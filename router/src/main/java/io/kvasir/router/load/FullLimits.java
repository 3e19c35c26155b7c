package io.kvasir.router.load;

import io.kvasir.core.load.EngineLoad;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Settings;

/**
 * From which reported load on an engine is full.
 *
 * @param waiting requests that may wait in it; 0 = any
 * @param usage part of its KV blocks that may be in use; 0 = any
 */
record FullLimits(long waiting, double usage) {
    static FullLimits of(Settings settings) {
        return new FullLimits(
                settings.get(RouterSettings.ENGINE_WAITING_LIMIT),
                settings.get(RouterSettings.ENGINE_USAGE_LIMIT));
    }

    /** Why an engine is full, with limit and value; null where it is not. */
    String whyFullOrNull(EngineLoad load) {
        if (waiting > 0 && load.waiting() > waiting) {
            return "waiting requests=" + load.waiting() + ", " + limit(waiting);
        }
        final double used = EngineLoad.usage(load.usedBlocks(), load.blocks());
        return usage > 0 && used > usage
                ? "cache usage="
                        + used
                        + ", "
                        + RouterSettings.ENGINE_USAGE_LIMIT.name()
                        + "="
                        + usage
                : null;
    }

    private static String limit(long value) {
        return RouterSettings.ENGINE_WAITING_LIMIT.name() + "=" + value;
    }
}

package io.kvasir.router;

import io.kvasir.core.load.LoadSnapshot;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Settings;

/**
 * From which load on a worker is busy and no candidate. Judged by the loads of the moment, so that
 * a worker is a candidate again as soon as its load is below. What is not known of a worker does
 * not make it busy.
 *
 * @param decodeBlocks part of the worker's KV blocks that may be in use; 0 = any
 * @param prefillTokens tokens to prefill that may wait; 0 = any
 * @param prefillShare the same as a multiple of the tokens of one step; 0 = any
 */
record BusyLimits(double decodeBlocks, long prefillTokens, double prefillShare) {
    static BusyLimits of(Settings settings) {
        return new BusyLimits(
                settings.get(RouterSettings.BUSY_DECODE_BLOCKS),
                settings.get(RouterSettings.BUSY_PREFILL_TOKENS),
                settings.get(RouterSettings.BUSY_PREFILL_SHARE));
    }

    /** Whether no worker is ever busy. */
    boolean isNone() {
        return decodeBlocks == 0 && prefillTokens == 0 && prefillShare == 0;
    }

    boolean isBusy(Worker worker, LoadSnapshot loads) {
        final long tokens = loads.prefillTokens(worker.slot());
        return (prefillTokens > 0 && tokens > prefillTokens)
                || isBeyond(loads.activeBlocks(worker.slot()), decodeBlocks, worker.kvBlocks())
                || isBeyond(tokens, prefillShare, worker.batchTokens());
    }

    private static boolean isBeyond(long value, double share, long capacity) {
        return share > 0 && capacity > 0 && value > share * capacity;
    }

    /** Why a worker is busy, with limits and values. */
    String explain(Worker worker, LoadSnapshot loads) {
        final long tokens = loads.prefillTokens(worker.slot());
        final StringBuilder text = new StringBuilder().append(worker).append(':');
        if (prefillTokens > 0) {
            text.append(
                            " prefill tokens="
                                    + tokens
                                    + ", "
                                    + RouterSettings.BUSY_PREFILL_TOKENS.name())
                    .append("=" + prefillTokens + ";");
        }
        if (prefillShare > 0 && worker.batchTokens() > 0) {
            text.append(" prefill tokens=" + tokens + " of " + worker.batchTokens() + " a step, ")
                    .append(RouterSettings.BUSY_PREFILL_SHARE.name() + "=" + prefillShare + ";");
        }
        if (decodeBlocks > 0 && worker.kvBlocks() > 0) {
            text.append(" blocks in use=" + loads.activeBlocks(worker.slot()))
                    .append(" of " + worker.kvBlocks() + ", ")
                    .append(RouterSettings.BUSY_DECODE_BLOCKS.name() + "=" + decodeBlocks + ";");
        }
        return text.toString();
    }
}

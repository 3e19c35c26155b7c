package io.kvasir.router.queue;

import io.kvasir.router.Reach;
import io.kvasir.router.settings.LoraMode;
import io.kvasir.router.settings.QueuePolicy;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Settings;

/**
 * What of a queue is set, and what of it orders requests.
 *
 * @param limited whether requests wait while no worker has room
 * @param adapters whether requests find room at other workers by their adapters
 * @param flights what is set of prompts that others follow
 * @param startNs time from which arrivals are counted, so that they are small numbers
 */
record QueueRules(
        boolean limited,
        boolean adapters,
        QueuePolicy policy,
        int maxRequests,
        long maxTokens,
        long maxWaitNs,
        long agingNs,
        FlightRules flights,
        long startNs) {
    private static final double SECOND = 1e9;

    static QueueRules of(Settings settings, long startNs) {
        return new QueueRules(
                isLimited(settings),
                settings.get(RouterSettings.LORA_MODE) == LoraMode.REQUIRED,
                settings.get(RouterSettings.QUEUE_POLICY),
                settings.get(RouterSettings.QUEUE_MAX_REQUESTS),
                settings.get(RouterSettings.QUEUE_MAX_TOKENS),
                settings.get(RouterSettings.QUEUE_MAX_WAIT).toNanos(),
                settings.get(RouterSettings.QUEUE_AGING).toNanos(),
                FlightRules.of(settings),
                startNs);
    }

    static boolean isLimited(Settings settings) {
        return settings.get(RouterSettings.QUEUE_THRESHOLD) >= 0
                || settings.get(RouterSettings.QUEUE_PREFILL_TOKENS) >= 0;
    }

    /** Whether it matters how much of a prompt is to be computed. */
    boolean sizes() {
        return policy == QueuePolicy.WSPT;
    }

    /** Whether requests stand in the same lanes and order by others. */
    boolean ordersAs(QueueRules other) {
        return adapters == other.adapters && policy == other.policy && agingNs == other.agingNs;
    }

    /** What of a request's reach matters. */
    Reach lane(Reach reach) {
        return adapters ? reach : reach.withoutAdapter();
    }

    /**
     * The window of arrival less the class: a class is worth one window, whatever has been waited
     * so far, so that the order of two requests changes with these rules alone.
     */
    long tier(QueueRank rank, long arrivedNs) {
        return agingNs == 0
                ? -rank.priority()
                : Math.floorDiv(arrivedNs - startNs, agingNs) - rank.priority();
    }

    double score(QueueRank rank, long arrivedNs, int uncachedTokens) {
        final double arrived = (double) (arrivedNs - startNs);
        return switch (policy) {
            case FCFS -> arrived - rank.headStartNs();
            case LCFS -> -arrived - rank.headStartNs();
            case WSPT -> Math.max(1, uncachedTokens) / (1 + rank.headStartNs() / SECOND);
        };
    }
}

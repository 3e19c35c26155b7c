package io.kvasir.router;

import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.session.SessionAffinity;
import io.kvasir.router.settings.LoraMode;
import io.kvasir.router.settings.PredictionCheck;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.SessionMode;
import io.kvasir.router.settings.Settings;

/**
 * What decisions go by: the values of the live rows at one version, ready for use. A decision takes
 * one of these at its beginning and reads no other. Immutable.
 */
final class RouterRules {
    private final Settings settings;
    private final long version;
    private final long digest;
    private final RoutingMode mode;
    private final double overlapWeight;
    private final double sharedMultiplier;
    private final double temperature;
    private final double degradedCredit;
    private final PredictionCheck predictionCheck;
    private final double hotDiscount;
    private final LoraMode loraMode;
    private final boolean tracksPrefill;
    private final boolean assumesReuse;
    private final boolean tracksOutput;
    private final long bookingTimeoutNs;
    private final BusyLimits busyLimits;
    private final long busyTtftNs;
    private final RoomLimits room;
    private final HashSelector byHash;
    private final SessionMode sessionMode;
    private final SessionAffinity sessionsOrNull;
    private final GuardedPolicy policy;
    private final PrefillPaces pacesOrNull;

    /**
     * @param version 1 at start, one more for each change
     * @param sessionsOrNull follow sessions; null where they are not followed
     * @param pacesOrNull learn how fast workers are; null where nothing goes by it
     */
    RouterRules(
            Settings settings,
            long version,
            GuardedPolicy policy,
            SessionAffinity sessionsOrNull,
            PrefillPaces pacesOrNull) {
        this.settings = settings;
        this.version = version;
        this.policy = policy;
        this.sessionsOrNull = sessionsOrNull;
        this.pacesOrNull = pacesOrNull;
        digest = RouterConfig.digest(settings);
        mode = settings.get(RouterSettings.MODE);
        overlapWeight = settings.get(RouterSettings.OVERLAP_WEIGHT);
        sharedMultiplier = settings.get(RouterSettings.SHARED_CACHE_MULTIPLIER);
        temperature = settings.get(RouterSettings.TEMPERATURE);
        degradedCredit = settings.get(RouterSettings.DEGRADED_CREDIT);
        predictionCheck = settings.get(RouterSettings.PREDICTION_CHECK);
        hotDiscount = settings.get(RouterSettings.HOT_PREFIX_DISCOUNT);
        loraMode = settings.get(RouterSettings.LORA_MODE);
        tracksPrefill = settings.get(RouterSettings.TRACK_PREFILL_TOKENS);
        assumesReuse = settings.get(RouterSettings.ASSUME_KV_REUSE);
        tracksOutput = settings.get(RouterSettings.TRACK_OUTPUT_BLOCKS);
        bookingTimeoutNs = settings.get(RouterSettings.BOOKING_TIMEOUT).toNanos();
        busyLimits = BusyLimits.of(settings);
        busyTtftNs = settings.get(RouterSettings.BUSY_TTFT).toNanos();
        room = RoomLimits.of(settings);
        byHash = new HashSelector(settings.get(RouterSettings.HASH_LOAD_FACTOR));
        sessionMode = settings.get(RouterSettings.SESSION_MODE);
    }

    /** Values of all settings. */
    Settings settings() {
        return settings;
    }

    /** Counted from 1. */
    long version() {
        return version;
    }

    /** A number for the values of all settings; see {@link RouterConfig#digest}. */
    long digest() {
        return digest;
    }

    RoutingMode mode() {
        return mode;
    }

    double overlapWeight() {
        return overlapWeight;
    }

    /** What a block in shared storage counts against one on a device. */
    double sharedMultiplier() {
        return sharedMultiplier;
    }

    double temperature() {
        return temperature;
    }

    /** What a cached block counts where events are known to be missing. */
    double degradedCredit() {
        return degradedCredit;
    }

    /** What is concluded from cache hits that are not as predicted. */
    PredictionCheck predictionCheck() {
        return predictionCheck;
    }

    /** How much less blocks count that most candidates hold; 0 for not at all. */
    double hotDiscount() {
        return hotDiscount;
    }

    /** What an adapter asks of workers. */
    LoraMode loraMode() {
        return loraMode;
    }

    boolean tracksPrefill() {
        return tracksPrefill;
    }

    boolean assumesReuse() {
        return assumesReuse;
    }

    boolean tracksOutput() {
        return tracksOutput;
    }

    /** 0 for none. */
    long bookingTimeoutNs() {
        return bookingTimeoutNs;
    }

    BusyLimits busyLimits() {
        return busyLimits;
    }

    /** Latest first token that may be expected of a worker with a queue; 0 for any. */
    long busyTtftNs() {
        return busyTtftNs;
    }

    /** What a worker may have to prefill before requests wait. */
    RoomLimits room() {
        return room;
    }

    HashSelector byHash() {
        return byHash;
    }

    SessionMode sessionMode() {
        return sessionMode;
    }

    /** Null where sessions are not followed. */
    SessionAffinity sessionsOrNull() {
        return sessionsOrNull;
    }

    GuardedPolicy policy() {
        return policy;
    }

    /** Null where nothing goes by it. */
    PrefillPaces pacesOrNull() {
        return pacesOrNull;
    }
}

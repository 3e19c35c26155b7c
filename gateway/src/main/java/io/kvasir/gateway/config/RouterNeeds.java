package io.kvasir.gateway.config;

import io.kvasir.router.RouterConfig;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.policy.SelectionPolicy;
import io.kvasir.router.queue.RouterQueue;
import io.kvasir.router.settings.LoraMode;
import io.kvasir.router.settings.PredictionCheck;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.router.settings.Settings;
import io.kvasir.router.settings.SingleFlight;

import java.util.List;
import java.util.function.Predicate;

/** What the rows of {@link RouterSettings} need, and those of the gateway that go with them. */
final class RouterNeeds {
    static final List<SettingNeed> ALL =
            List.of(
                    SettingNeed.of(
                            "mode=consistent-hash",
                            c -> chooses(c, mode -> mode == RoutingMode.CONSISTENT_HASH),
                            RouterSettings.HASH_LOAD_FACTOR),
                    SettingNeed.of(
                            "mode=kv",
                            c -> chooses(c, mode -> mode == RoutingMode.KV),
                            RouterSettings.TEMPERATURE),
                    SettingNeed.of(
                            "mode=kv and selection-policy=linear",
                            c ->
                                    chooses(c, mode -> mode == RoutingMode.KV)
                                            && c.get(RouterSettings.SELECTION_POLICY)
                                                    .equals(SelectionPolicy.LINEAR.name()),
                            RouterSettings.HOT_PREFIX_DISCOUNT),
                    SettingNeed.of(
                            "a mode other than direct and consistent-hash",
                            RouterNeeds::mayFollowSessions,
                            RouterSettings.SESSION_TTL),
                    SettingNeed.of(
                            "a session-affinity-ttl-secs above 0",
                            RouterNeeds::hasSessions,
                            RouterSettings.SESSION_MODE,
                            RouterSettings.MAX_SESSIONS),
                    SettingNeed.of(
                            "a session-affinity-ttl-secs above 0 or mode=consistent-hash",
                            c ->
                                    hasSessions(c)
                                            || chooses(
                                                    c, mode -> mode == RoutingMode.CONSISTENT_HASH),
                            GatewaySettings.SESSION_HEADER),
                    SettingNeed.of(
                            "lora-mode=preferred or required",
                            c -> c.get(RouterSettings.LORA_MODE) != LoraMode.OFF,
                            GatewaySettings.LORA_INTERVAL),
                    SettingNeed.of(
                            "approximate, or kv-events off",
                            c -> c.get(RouterSettings.APPROXIMATE),
                            RouterSettings.TTL,
                            RouterSettings.MAX_TREE_SIZE,
                            RouterSettings.PRUNE_TARGET_RATIO),
                    SettingNeed.ofStart(
                            "an index, which prefix-index and overlap-weight leave out",
                            RouterNeeds::isIndexed,
                            RouterSettings.TTL,
                            RouterSettings.MAX_TREE_SIZE,
                            RouterSettings.PRUNE_TARGET_RATIO,
                            RouterSettings.STATE_DIR,
                            RouterSettings.STATE_MAPPED_DIR,
                            RouterSettings.MAX_BLOCKS,
                            RouterSettings.MAX_HELD_BLOCKS,
                            RouterSettings.INDEX_BYTES,
                            RouterSettings.INDEX_MEMORY_SHARE,
                            RouterSettings.INDEX_FULL,
                            RouterSettings.HOT_PREFIX_DISCOUNT,
                            RouterSettings.DEGRADED_CREDIT,
                            RouterSettings.PREDICTION_CHECK,
                            RouterSettings.HOST_CACHE_HIT_WEIGHT,
                            RouterSettings.DISK_CACHE_HIT_WEIGHT,
                            RouterSettings.SHARED_CACHE_MULTIPLIER,
                            GatewaySettings.EVENT_PLANE),
                    SettingNeed.ofStart(
                            "an index, which prefix-index and overlap-weight leave out",
                            c -> isIndexed(c) || !c.get(GatewaySettings.KV_EVENTS), // it is implied
                            RouterSettings.APPROXIMATE),
                    SettingNeed.of(
                            "kv-events on",
                            c -> c.get(GatewaySettings.KV_EVENTS),
                            GatewaySettings.EVENT_PLANE,
                            GatewaySettings.EVENT_PLANE_ADDRESSES,
                            GatewaySettings.RESET_STATES,
                            RouterSettings.HOST_CACHE_HIT_WEIGHT,
                            RouterSettings.DISK_CACHE_HIT_WEIGHT,
                            RouterSettings.SHARED_CACHE_MULTIPLIER),
                    SettingNeed.ofStart(
                            "kv-events on, and an index, which prefix-index and overlap-weight"
                                    + " leave out",
                            c -> c.get(GatewaySettings.KV_EVENTS) && isIndexed(c),
                            RouterSettings.EAGLE_BLOCKS,
                            RouterSettings.EVENT_RING_SIZE,
                            RouterSettings.EVENT_WAIT,
                            RouterSettings.EVENT_POLLERS,
                            RouterSettings.MAX_EVENT_BYTES,
                            RouterSettings.EVENT_RECEIVE_BYTES,
                            RouterSettings.EVENT_CONNECT_TIMEOUT,
                            RouterSettings.EVENT_RECONNECT,
                            RouterSettings.EVENT_RECONNECT_MAX,
                            RouterSettings.EVENT_WAITING_MESSAGES,
                            RouterSettings.EVENT_WAITING_BYTES,
                            RouterSettings.REPLAY_TIMEOUT,
                            RouterSettings.REPLAY_ATTEMPTS,
                            RouterSettings.REPLAY_TAIL_CHECK,
                            RouterSettings.CONCURRENT_REPLAYS,
                            RouterSettings.STALE_AFTER,
                            RouterSettings.STALE_AFTER_PROMPTS,
                            RouterSettings.STALE_DECAY),
                    SettingNeed.of(
                            "kv-events on, or a prediction-check",
                            c ->
                                    c.get(GatewaySettings.KV_EVENTS)
                                            || c.get(RouterSettings.PREDICTION_CHECK)
                                                    != PredictionCheck.OFF,
                            RouterSettings.DEGRADED_CREDIT),
                    SettingNeed.of(
                            "a limit of the index that follows from the memory: none of"
                                    + " max-blocks, max-held-blocks and index-bytes set",
                            c ->
                                    !isSet(c, RouterSettings.MAX_BLOCKS)
                                            && !isSet(c, RouterSettings.MAX_HELD_BLOCKS)
                                            && !isSet(c, RouterSettings.INDEX_BYTES),
                            RouterSettings.INDEX_MEMORY_SHARE),
                    SettingNeed.of(
                            "track-prefill-tokens on",
                            c -> c.get(RouterSettings.TRACK_PREFILL_TOKENS),
                            RouterSettings.OVERLAP_WEIGHT,
                            RouterSettings.BUSY_PREFILL_TOKENS,
                            RouterSettings.BUSY_PREFILL_SHARE),
                    SettingNeed.of(
                            "track-active-blocks on",
                            c -> c.get(RouterSettings.TRACK_ACTIVE_BLOCKS),
                            RouterSettings.BUSY_DECODE_BLOCKS,
                            RouterSettings.TRACK_OUTPUT_BLOCKS,
                            RouterSettings.ASSUME_KV_REUSE),
                    SettingNeed.of(
                            "queue-threshold, queue-prefill-tokens or single-flight=wait",
                            c ->
                                    RouterQueue.hasThreshold(c.settings())
                                            || c.get(RouterSettings.SINGLE_FLIGHT)
                                                    == SingleFlight.WAIT,
                            RouterSettings.QUEUE_POLICY,
                            RouterSettings.QUEUE_MAX_REQUESTS,
                            RouterSettings.QUEUE_MAX_TOKENS,
                            RouterSettings.QUEUE_MAX_WAIT,
                            RouterSettings.QUEUE_AGING),
                    SettingNeed.of(
                            "single-flight=draw or wait",
                            c -> c.get(RouterSettings.SINGLE_FLIGHT) != SingleFlight.OFF,
                            RouterSettings.SINGLE_FLIGHT_TOKENS,
                            RouterSettings.SINGLE_FLIGHT_WAIT,
                            RouterSettings.SINGLE_FLIGHT_PROMPTS),
                    SettingNeed.of(
                            "engine-load on",
                            c -> c.get(RouterSettings.ENGINE_LOAD),
                            RouterSettings.ENGINE_LOAD_TTL,
                            GatewaySettings.ENGINE_LOAD_INTERVAL),
                    SettingNeed.of(
                            "state-dir",
                            c -> c.get(RouterSettings.STATE_DIR) != null,
                            RouterSettings.SNAPSHOT_INTERVAL,
                            RouterSettings.SNAPSHOT_CLOSE_TIMEOUT),
                    SettingNeed.of(
                            "state-dir or event-plane=jetstream",
                            c ->
                                    c.get(RouterSettings.STATE_DIR) != null
                                            || c.get(GatewaySettings.EVENT_PLANE)
                                                    == EventPlaneKind.JETSTREAM,
                            RouterSettings.SNAPSHOT_WAITING_MESSAGES),
                    SettingNeed.of(
                            "a decision-journal above 0",
                            c -> c.get(RouterSettings.DECISION_JOURNAL) > 0,
                            RouterSettings.DECISION_JOURNAL_CANDIDATES,
                            RouterSettings.DECISION_JOURNAL_DIR,
                            GatewaySettings.SHADOW_OVERLAP_WEIGHT),
                    SettingNeed.of(
                            "replica-sync",
                            c -> c.get(GatewaySettings.REPLICA_SYNC),
                            RouterSettings.ROUTER_ID,
                            RouterSettings.REPLICA_DIGEST,
                            RouterSettings.REPLICA_LEASE,
                            RouterSettings.REPLICA_MAX_BOOKINGS,
                            GatewaySettings.REPLICA_WIRE));

    private RouterNeeds() {}

    private static boolean isSet(GatewayConfig config, Setting<?> row) {
        return config.settings().source(row) != Settings.Source.DEFAULT;
    }

    private static boolean isIndexed(GatewayConfig config) {
        return RouterConfig.keepsIndex(config.settings());
    }

    /** Whether a worker is chosen so, in the main pool or among prefill workers. */
    private static boolean chooses(GatewayConfig config, Predicate<RoutingMode> how) {
        return how.test(config.get(RouterSettings.MODE))
                || (GatewayNeeds.maySplit(config)
                        && how.test(config.get(GatewaySettings.PREFILL_MODE)));
    }

    private static boolean mayFollowSessions(GatewayConfig config) {
        return chooses(
                config, mode -> mode != RoutingMode.DIRECT && mode != RoutingMode.CONSISTENT_HASH);
    }

    private static boolean hasSessions(GatewayConfig config) {
        return !config.get(RouterSettings.SESSION_TTL).isZero();
    }
}

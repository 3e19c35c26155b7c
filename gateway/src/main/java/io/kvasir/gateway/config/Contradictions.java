package io.kvasir.gateway.config;

import io.kvasir.router.KvRouter;
import io.kvasir.router.RouterConfig;
import io.kvasir.router.disagg.FallbackPolicy;
import io.kvasir.router.disagg.SplitMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.router.settings.Settings;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/**
 * Values that are in range and do not go together. What cannot work is an error; what has no effect
 * beside the other values is a warning, as it may wait for a request that asks for it, or for the
 * other value to change.
 */
final class Contradictions {
    /** Several times, so that one lost digest does not drop the bookings. */
    private static final int LEAST_DIGESTS = 2;

    /**
     * Rows that mean something only beside others.
     *
     * @param rows that were set by someone
     * @param needs the others, in words
     * @param isMet whether they are so
     * @param isOfStart whether the values of the start decide, and later ones do not
     */
    private record Need(
            List<Setting<?>> rows,
            String needs,
            Predicate<GatewayConfig> isMet,
            boolean isOfStart) {
        static Need of(String needs, Predicate<GatewayConfig> isMet, Setting<?>... rows) {
            return new Need(List.of(rows), needs, isMet, false);
        }

        static Need ofStart(String needs, Predicate<GatewayConfig> isMet, Setting<?>... rows) {
            return new Need(List.of(rows), needs, isMet, true);
        }
    }

    private static final List<Need> NEEDS =
            List.of(
                    Need.of(
                            "approximate, or kv-events off",
                            c -> c.get(RouterSettings.APPROXIMATE),
                            RouterSettings.TTL,
                            RouterSettings.MAX_TREE_SIZE,
                            RouterSettings.PRUNE_TARGET_RATIO),
                    Need.ofStart(
                            "an index, which prefix-index and overlap-weight leave out",
                            Contradictions::isIndexed,
                            RouterSettings.APPROXIMATE,
                            RouterSettings.STATE_DIR,
                            RouterSettings.STATE_MAPPED_DIR,
                            RouterSettings.MAX_BLOCKS,
                            RouterSettings.MAX_HELD_BLOCKS,
                            RouterSettings.INDEX_BYTES,
                            GatewaySettings.EVENT_PLANE),
                    Need.of(
                            "kv-events on",
                            c -> c.get(GatewaySettings.KV_EVENTS),
                            GatewaySettings.EVENT_PLANE,
                            GatewaySettings.EVENT_PLANE_ADDRESSES,
                            GatewaySettings.RESET_STATES,
                            RouterSettings.EVENT_RING_SIZE,
                            RouterSettings.STALE_AFTER,
                            RouterSettings.DEGRADED_CREDIT),
                    Need.of(
                            "a limit of the index that follows from the memory: none of"
                                    + " max-blocks, max-held-blocks and index-bytes set",
                            c ->
                                    !isSet(c, RouterSettings.MAX_BLOCKS)
                                            && !isSet(c, RouterSettings.MAX_HELD_BLOCKS)
                                            && !isSet(c, RouterSettings.INDEX_BYTES),
                            RouterSettings.INDEX_MEMORY_SHARE),
                    Need.of(
                            "track-prefill-tokens on",
                            c -> c.get(RouterSettings.TRACK_PREFILL_TOKENS),
                            RouterSettings.OVERLAP_WEIGHT,
                            RouterSettings.BUSY_PREFILL_TOKENS,
                            RouterSettings.BUSY_PREFILL_SHARE),
                    Need.of(
                            "track-active-blocks on",
                            c -> c.get(RouterSettings.TRACK_ACTIVE_BLOCKS),
                            RouterSettings.BUSY_DECODE_BLOCKS,
                            RouterSettings.TRACK_OUTPUT_BLOCKS,
                            RouterSettings.ASSUME_KV_REUSE),
                    Need.of(
                            "a session-affinity-ttl-secs above 0",
                            c -> !c.get(RouterSettings.SESSION_TTL).isZero(),
                            RouterSettings.SESSION_MODE,
                            RouterSettings.MAX_SESSIONS),
                    Need.of(
                            "state-dir",
                            c -> c.get(RouterSettings.STATE_DIR) != null,
                            RouterSettings.SNAPSHOT_INTERVAL,
                            RouterSettings.SNAPSHOT_CLOSE_TIMEOUT),
                    Need.of(
                            "a decision-journal above 0",
                            c -> c.get(RouterSettings.DECISION_JOURNAL) > 0,
                            RouterSettings.DECISION_JOURNAL_CANDIDATES,
                            RouterSettings.DECISION_JOURNAL_DIR,
                            GatewaySettings.SHADOW_OVERLAP_WEIGHT),
                    Need.of(
                            "replica-sync",
                            c -> c.get(GatewaySettings.REPLICA_SYNC),
                            RouterSettings.ROUTER_ID,
                            RouterSettings.REPLICA_DIGEST,
                            RouterSettings.REPLICA_LEASE,
                            RouterSettings.REPLICA_MAX_BOOKINGS,
                            GatewaySettings.REPLICA_WIRE),
                    Need.of(
                            "event-plane=jetstream",
                            c -> c.get(GatewaySettings.EVENT_PLANE) == EventPlaneKind.JETSTREAM,
                            GatewaySettings.SNAPSHOT_THRESHOLD,
                            GatewaySettings.SNAPSHOT_LOCK,
                            GatewaySettings.EVENT_STREAM_REPLICAS),
                    Need.of(
                            "event-plane=nats or zmq",
                            c ->
                                    c.get(GatewaySettings.EVENT_PLANE) == EventPlaneKind.NATS
                                            || c.get(GatewaySettings.EVENT_PLANE)
                                                    == EventPlaneKind.ZMQ,
                            GatewaySettings.EVENT_RECOVERY),
                    Need.of(
                            "NATS: event-plane, replica-sync or discovery-nats-bucket",
                            GatewayConfig::usesNats,
                            GatewaySettings.NATS_URL,
                            GatewaySettings.NATS_CREDENTIALS,
                            GatewaySettings.NATS_TRUST_STORE,
                            GatewaySettings.NATS_NAMESPACE,
                            GatewaySettings.NATS_COMPONENT,
                            GatewaySettings.NATS_ENDPOINT),
                    Need.of(
                            "discovery-etcd-endpoints",
                            c -> !c.get(GatewaySettings.DISCOVERY_ETCD_ENDPOINTS).isEmpty(),
                            GatewaySettings.DISCOVERY_ETCD_PREFIX,
                            GatewaySettings.DISCOVERY_ETCD_USER,
                            GatewaySettings.DISCOVERY_ETCD_PASSWORD_FILE,
                            GatewaySettings.DISCOVERY_ETCD_TRUST_STORE),
                    Need.of(
                            "discovery-kubernetes-selector or discovery-kubernetes-resources",
                            c ->
                                    c.get(GatewaySettings.DISCOVERY_KUBERNETES_SELECTOR) != null
                                            || c.get(
                                                    GatewaySettings.DISCOVERY_KUBERNETES_RESOURCES),
                            GatewaySettings.DISCOVERY_KUBERNETES_NAMESPACE,
                            GatewaySettings.DISCOVERY_KUBERNETES_PORT,
                            GatewaySettings.DISCOVERY_KUBERNETES_EVENTS_PORT,
                            GatewaySettings.DISCOVERY_KUBERNETES_REPLAY_PORT,
                            GatewaySettings.DISCOVERY_KUBERNETES_WORKER,
                            GatewaySettings.DISCOVERY_KUBERNETES_SERVER,
                            GatewaySettings.DISCOVERY_KUBERNETES_ACCOUNT),
                    Need.of(
                            "workers-file",
                            c -> c.get(GatewaySettings.WORKERS_FILE) != null,
                            GatewaySettings.WORKERS_FILE_INTERVAL),
                    Need.of(
                            "a worker with role=prefill, or a source of workers that may name one",
                            Contradictions::maySplit,
                            GatewaySettings.PREFILL_MODE,
                            GatewaySettings.PREFILL_OVERLAP_WEIGHT,
                            GatewaySettings.PREFILL_LEASE,
                            GatewaySettings.PREFILL_ATTEMPTS,
                            GatewaySettings.PREFILL_TIMEOUT,
                            GatewaySettings.SPLIT_MODE,
                            GatewaySettings.SPLIT_FALLBACK,
                            GatewaySettings.TRANSFER_COSTS),
                    Need.of(
                            "split-mode=limits or cost",
                            c ->
                                    c.get(GatewaySettings.SPLIT_MODE) == SplitMode.LIMITS
                                            || c.get(GatewaySettings.SPLIT_MODE) == SplitMode.COST,
                            GatewaySettings.SPLIT_MIN_TOKENS,
                            GatewaySettings.SPLIT_MIN_RATIO,
                            GatewaySettings.SPLIT_MAX_QUEUE),
                    Need.of(
                            "split-mode=cost",
                            c -> c.get(GatewaySettings.SPLIT_MODE) == SplitMode.COST,
                            GatewaySettings.SPLIT_HARM_WEIGHT),
                    Need.of(
                            "split-fallback=other-prefill",
                            c ->
                                    c.get(GatewaySettings.SPLIT_FALLBACK)
                                            == FallbackPolicy.OTHER_PREFILL,
                            GatewaySettings.PREFILL_ATTEMPTS),
                    Need.of(
                            "retries above 0",
                            c -> c.get(GatewaySettings.RETRIES) > 0,
                            GatewaySettings.RETRY_BACKOFF,
                            GatewaySettings.RETRY_BACKOFF_MAX,
                            GatewaySettings.RETRY_AFTER_TIMEOUT),
                    Need.of(
                            "trust-request-chat-template",
                            c -> c.get(GatewaySettings.TRUST_REQUEST_CHAT_TEMPLATE),
                            GatewaySettings.TEMPLATE_CACHE_BYTES),
                    Need.of(
                            "shared-memory-dir",
                            c -> c.get(GatewaySettings.SHARED_MEMORY_DIR) != null,
                            GatewaySettings.PROMPT_MEMO_ENTRIES,
                            GatewaySettings.PROMPT_MEMO_TTL),
                    Need.of(
                            "http2 on",
                            c -> c.get(GatewaySettings.HTTP2),
                            GatewaySettings.HTTP2_MAX_STREAMS,
                            GatewaySettings.HTTP2_MAX_CONTROL_FRAMES),
                    Need.of(
                            "cors-origin",
                            c -> !c.get(GatewaySettings.CORS_ORIGINS).isEmpty(),
                            GatewaySettings.CORS_HEADERS,
                            GatewaySettings.CORS_CREDENTIALS,
                            GatewaySettings.CORS_MAX_AGE),
                    Need.of(
                            "worker-trust-store",
                            c -> c.get(GatewaySettings.WORKER_TRUST_STORE) != null,
                            GatewaySettings.WORKER_TRUST_STORE_PASSWORD),
                    Need.of(
                            "access-log",
                            c ->
                                    !c.get(GatewaySettings.ACCESS_LOG)
                                            .equals(GatewaySettings.ACCESS_LOG_OFF),
                            GatewaySettings.ACCESS_LOG_FORMAT),
                    Need.of(
                            "otlp-endpoint",
                            c -> c.get(GatewaySettings.OTLP_ENDPOINT) != null,
                            GatewaySettings.OTLP_TRUST_STORE,
                            GatewaySettings.OTLP_CLIENT_CERTIFICATE,
                            GatewaySettings.OTLP_CLIENT_KEY,
                            GatewaySettings.OTLP_HEADERS,
                            GatewaySettings.OTLP_HEADERS_FILE,
                            GatewaySettings.TRACE_SAMPLE_RATIO,
                            GatewaySettings.TRACE_SERVICE_NAME,
                            GatewaySettings.TRACE_RESOURCE_ATTRIBUTES));

    private Contradictions() {}

    private static boolean isSet(GatewayConfig config, Setting<?> row) {
        return config.settings().source(row) != Settings.Source.DEFAULT;
    }

    private static boolean isIndexed(GatewayConfig config) {
        return RouterConfig.keepsIndex(config.settings());
    }

    private static boolean maySplit(GatewayConfig config) {
        return config.discovers()
                || config.get(GatewaySettings.WORKERS).stream()
                        .anyMatch(w -> w.disaggregation().role() == WorkerRole.PREFILL);
    }

    /** What cannot work, of all models. */
    static List<String> errors(GatewayConfig config) {
        final List<String> errors = new ArrayList<>();
        for (GatewayConfig model : config.models()) {
            errors.addAll(ofModel(config, model));
        }
        return List.copyOf(new LinkedHashSet<>(errors));
    }

    private static List<String> ofModel(GatewayConfig gateway, GatewayConfig model) {
        final List<String> errors = new ArrayList<>();
        final List<String> main = whyNoRouter(model.settings());
        errors.addAll(main);
        for (String prefill : whyNoRouter(PrefillSettings.of(model))) {
            if (!main.contains(prefill)) {
                errors.add(
                        "the prefill pool, with "
                                + GatewaySettings.PREFILL_OVERLAP_WEIGHT
                                + " as its "
                                + RouterSettings.OVERLAP_WEIGHT
                                + ": "
                                + prefill);
            }
        }
        final Duration digest = model.get(RouterSettings.REPLICA_DIGEST);
        final Duration lease = model.get(RouterSettings.REPLICA_LEASE);
        if (gateway.get(GatewaySettings.REPLICA_SYNC)
                && lease.compareTo(digest.multipliedBy(LEAST_DIGESTS)) < 0) {
            errors.add(
                    "replica-lease-ms="
                            + lease.toMillis()
                            + " must be several times replica-digest-ms="
                            + digest.toMillis()
                            + ": one lost message would drop the bookings of a replica");
        }
        return errors;
    }

    /** What a router says of settings that it cannot be made of; empty where it can. */
    private static List<String> whyNoRouter(Settings settings) {
        try {
            KvRouter.builder().settings(settings).check();
            return List.of();
        } catch (IllegalArgumentException e) {
            return e.getMessage().lines().toList();
        }
    }

    /**
     * What has no effect, or hardly the wanted one.
     *
     * @param started what the gateway was started with, which has decided on the index; {@code
     *     config} of one that is not started
     */
    static List<String> warnings(GatewayConfig config, GatewayConfig started) {
        final List<String> warnings = new ArrayList<>();
        for (Need need : NEEDS) {
            final List<Setting<?>> rows =
                    need.rows.stream().filter(row -> isSet(config.given(), row)).toList();
            if (!rows.isEmpty() && !need.isMet.test(need.isOfStart ? started : config)) {
                warnings.add(
                        rows.stream().map(Setting::name).collect(Collectors.joining(", "))
                                + (rows.size() == 1 ? " has" : " have")
                                + " no effect without "
                                + need.needs);
            }
        }
        if (!config.get(RouterSettings.TRACK_PREFILL_TOKENS)
                && !config.get(RouterSettings.TRACK_ACTIVE_BLOCKS)) {
            warnings.add(
                    "with track-prefill-tokens and track-active-blocks off all workers cost the"
                            + " same: each is as likely");
        }
        if (!isIndexed(started)
                && config.get(GatewaySettings.WORKERS).stream().anyMatch(w -> w.events() != null)) {
            warnings.add(
                    "the events of workers are not followed: prefix-index="
                            + RouterSettings.PREFIX_INDEX.print(
                                    config.get(RouterSettings.PREFIX_INDEX))
                            + ", overlap-weight="
                            + RouterSettings.OVERLAP_WEIGHT.print(
                                    config.get(RouterSettings.OVERLAP_WEIGHT)));
        }
        if (config.get(GatewaySettings.RETRY_BACKOFF_MAX)
                        .compareTo(config.get(GatewaySettings.RETRY_BACKOFF))
                < 0) {
            warnings.add(
                    "retry-backoff-ms="
                            + config.get(GatewaySettings.RETRY_BACKOFF).toMillis()
                            + " is more than retry-backoff-max-ms="
                            + config.get(GatewaySettings.RETRY_BACKOFF_MAX).toMillis()
                            + ", which bounds it");
        }
        return List.copyOf(warnings);
    }

    private static boolean isSet(Settings given, Setting<?> row) {
        return given.source(row) != Settings.Source.DEFAULT && !given.get(row).equals(row.usual());
    }
}

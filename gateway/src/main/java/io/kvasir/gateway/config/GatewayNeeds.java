package io.kvasir.gateway.config;

import io.kvasir.router.RouterConfig;
import io.kvasir.router.disagg.FallbackPolicy;
import io.kvasir.router.disagg.SplitMode;
import io.kvasir.router.settings.RouterSettings;

import java.util.List;

/** What the rows of {@link GatewaySettings} need that are not of routers. */
final class GatewayNeeds {
    private static final String PREFILL_WORKERS =
            "a worker with role=prefill, or a source of workers that may name one";

    static final List<SettingNeed> ALL =
            List.of(
                    SettingNeed.of(
                            "event-plane=jetstream",
                            c -> c.get(GatewaySettings.EVENT_PLANE) == EventPlaneKind.JETSTREAM,
                            GatewaySettings.SNAPSHOT_THRESHOLD,
                            GatewaySettings.SNAPSHOT_LOCK,
                            GatewaySettings.EVENT_STREAM_REPLICAS),
                    SettingNeed.of(
                            "event-plane=nats or zmq",
                            c ->
                                    c.get(GatewaySettings.EVENT_PLANE) == EventPlaneKind.NATS
                                            || c.get(GatewaySettings.EVENT_PLANE)
                                                    == EventPlaneKind.ZMQ,
                            GatewaySettings.EVENT_RECOVERY),
                    SettingNeed.of(
                            "NATS: event-plane, replica-sync or discovery-nats-bucket",
                            GatewayConfig::usesNats,
                            GatewaySettings.NATS_URL,
                            GatewaySettings.NATS_CREDENTIALS,
                            GatewaySettings.NATS_TRUST_STORE,
                            GatewaySettings.NATS_NAMESPACE,
                            GatewaySettings.NATS_COMPONENT,
                            GatewaySettings.NATS_ENDPOINT),
                    SettingNeed.of(
                            "discovery-nats-bucket, discovery-etcd-endpoints or"
                                    + " discovery-kubernetes-resources",
                            GatewayNeeds::seesRegistrations,
                            GatewaySettings.DISCOVERY_NAMESPACE,
                            GatewaySettings.DISCOVERY_TTL),
                    SettingNeed.of(
                            "discovery-etcd-endpoints",
                            c -> !c.get(GatewaySettings.DISCOVERY_ETCD_ENDPOINTS).isEmpty(),
                            GatewaySettings.DISCOVERY_ETCD_PREFIX,
                            GatewaySettings.DISCOVERY_ETCD_USER,
                            GatewaySettings.DISCOVERY_ETCD_PASSWORD_FILE,
                            GatewaySettings.DISCOVERY_ETCD_TRUST_STORE),
                    SettingNeed.of(
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
                    SettingNeed.of(
                            "workers-file",
                            c -> c.get(GatewaySettings.WORKERS_FILE) != null,
                            GatewaySettings.WORKERS_FILE_INTERVAL),
                    SettingNeed.of(
                            PREFILL_WORKERS,
                            GatewayNeeds::maySplit,
                            GatewaySettings.PREFILL_MODE,
                            GatewaySettings.PREFILL_OVERLAP_WEIGHT,
                            GatewaySettings.PREFILL_LEASE,
                            GatewaySettings.PREFILL_ATTEMPTS,
                            GatewaySettings.PREFILL_TIMEOUT,
                            GatewaySettings.SPLIT_MODE,
                            GatewaySettings.SPLIT_FALLBACK,
                            GatewaySettings.TRANSFER_COSTS),
                    SettingNeed.of(
                            "split-mode=limits or cost",
                            c ->
                                    c.get(GatewaySettings.SPLIT_MODE) == SplitMode.LIMITS
                                            || c.get(GatewaySettings.SPLIT_MODE) == SplitMode.COST,
                            GatewaySettings.SPLIT_MIN_TOKENS,
                            GatewaySettings.SPLIT_MIN_RATIO,
                            GatewaySettings.SPLIT_MAX_QUEUE),
                    SettingNeed.of(
                            "split-mode=cost",
                            c -> c.get(GatewaySettings.SPLIT_MODE) == SplitMode.COST,
                            GatewaySettings.SPLIT_HARM_WEIGHT),
                    SettingNeed.of(
                            "split-fallback=other-prefill",
                            c ->
                                    c.get(GatewaySettings.SPLIT_FALLBACK)
                                            == FallbackPolicy.OTHER_PREFILL,
                            GatewaySettings.PREFILL_ATTEMPTS),
                    SettingNeed.of(
                            "retries above 0",
                            c -> c.get(GatewaySettings.RETRIES) > 0,
                            GatewaySettings.RETRY_BACKOFF,
                            GatewaySettings.RETRY_BACKOFF_MAX,
                            GatewaySettings.RETRY_AFTER_TIMEOUT),
                    SettingNeed.of(
                            "a tokenizer",
                            c -> c.get(GatewaySettings.TOKENIZER) != null,
                            GatewaySettings.TRUST_REQUEST_CHAT_TEMPLATE,
                            GatewaySettings.TEMPLATE_MAX_STEPS,
                            GatewaySettings.TEMPLATE_MAX_OUTPUT_CHARS,
                            GatewaySettings.TEMPLATE_MAX_MEMORY_BYTES,
                            GatewaySettings.TEMPLATE_MAX_DEPTH,
                            GatewaySettings.TEMPLATE_CACHE_BYTES,
                            GatewaySettings.PROMPT_MEMO_ENTRIES,
                            GatewaySettings.PROMPT_MEMO_TTL),
                    SettingNeed.ofStart(
                            "a tokenizer and prompt-memo-entries above 0, or state-dir and an"
                                    + " index",
                            GatewayNeeds::sharesMemory,
                            GatewaySettings.SHARED_MEMORY_DIR),
                    SettingNeed.of(
                            "prompt-memo-entries above 0",
                            c -> c.get(GatewaySettings.PROMPT_MEMO_ENTRIES) > 0,
                            GatewaySettings.PROMPT_MEMO_TTL),
                    SettingNeed.of(
                            "trust-request-chat-template",
                            c -> c.get(GatewaySettings.TRUST_REQUEST_CHAT_TEMPLATE),
                            GatewaySettings.TEMPLATE_CACHE_BYTES),
                    SettingNeed.of(
                            "shared-memory-dir",
                            c -> c.get(GatewaySettings.SHARED_MEMORY_DIR) != null,
                            GatewaySettings.PROMPT_MEMO_ENTRIES,
                            GatewaySettings.PROMPT_MEMO_TTL),
                    SettingNeed.of(
                            "http2 on",
                            c -> c.get(GatewaySettings.HTTP2),
                            GatewaySettings.HTTP2_MAX_STREAMS,
                            GatewaySettings.HTTP2_MAX_CONTROL_FRAMES),
                    SettingNeed.of(
                            "cors-origin",
                            c -> !c.get(GatewaySettings.CORS_ORIGINS).isEmpty(),
                            GatewaySettings.CORS_HEADERS,
                            GatewaySettings.CORS_CREDENTIALS,
                            GatewaySettings.CORS_MAX_AGE),
                    SettingNeed.of(
                            "worker-trust-store",
                            c -> c.get(GatewaySettings.WORKER_TRUST_STORE) != null,
                            GatewaySettings.WORKER_TRUST_STORE_PASSWORD),
                    SettingNeed.of(
                            "access-log",
                            c ->
                                    !c.get(GatewaySettings.ACCESS_LOG)
                                            .equals(GatewaySettings.ACCESS_LOG_OFF),
                            GatewaySettings.ACCESS_LOG_FORMAT),
                    SettingNeed.of(
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

    private GatewayNeeds() {}

    /** Whether there are prefill workers, or may be. */
    static boolean maySplit(GatewayConfig config) {
        return config.discovers()
                || config.get(GatewaySettings.WORKERS).stream()
                        .anyMatch(w -> w.disaggregation().role() == WorkerRole.PREFILL);
    }

    private static boolean seesRegistrations(GatewayConfig config) {
        return config.get(GatewaySettings.DISCOVERY_NATS_BUCKET) != null
                || !config.get(GatewaySettings.DISCOVERY_ETCD_ENDPOINTS).isEmpty()
                || config.get(GatewaySettings.DISCOVERY_KUBERNETES_RESOURCES);
    }

    private static boolean sharesMemory(GatewayConfig config) {
        return (config.get(GatewaySettings.TOKENIZER) != null
                        && config.get(GatewaySettings.PROMPT_MEMO_ENTRIES) > 0)
                || (config.get(RouterSettings.STATE_DIR) != null
                        && RouterConfig.keepsIndex(config.settings()));
    }
}

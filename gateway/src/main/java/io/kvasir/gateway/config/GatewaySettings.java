package io.kvasir.gateway.config;

import io.kvasir.nats.replica.WireForm;
import io.kvasir.prompt.chat.TemplatePolicy;
import io.kvasir.prompt.jinja.TemplateLimits;
import io.kvasir.registry.InstanceId;
import io.kvasir.registry.etcd.EtcdStore;
import io.kvasir.registry.kubernetes.KubernetesAccess;
import io.kvasir.router.disagg.FallbackPolicy;
import io.kvasir.router.disagg.SplitMode;
import io.kvasir.router.disagg.TransferCosts;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.router.settings.SettingTable;

import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/**
 * The table of what can be set of a gateway: its own rows and, after them, those of {@link
 * RouterSettings}, which says how to add one.
 */
public final class GatewaySettings {
    /** {@link #WARM_UP} of a gateway that is a process of its own. */
    public static final Duration SERVE_WARM_UP = Duration.ofSeconds(2);

    /** {@link #ACCESS_LOG} of no log. */
    public static final String ACCESS_LOG_OFF = "off";

    /** {@link #ACCESS_LOG} of standard output. */
    public static final String ACCESS_LOG_STDOUT = "stdout";

    /** {@link #NIXL_LIBRARY} that is searched for. */
    public static final String NIXL_AUTO = "auto";

    /** {@link #NIXL_LIBRARY} of none. */
    public static final String NIXL_OFF = "off";

    /** Value of {@link #SHADOW_OVERLAP_WEIGHT} by which there is no shadow policy. */
    public static final double NO_SHADOW = -1;

    private static final List<Setting<?>> ROWS = new ArrayList<>();

    /** Name under which the model is served; requests for another one get a 404. */
    public static final Setting<String> MODEL =
            row(
                    Setting.text(
                            "model",
                            "NAME",
                            Function.identity(),
                            null,
                            "Served model name; must be set. Of several models this is the first:"
                                    + " requests that name none are its, and what is set without"
                                    + " naming a model is its, and the others' default."));

    /** The models that are served beside {@link #MODEL}. */
    public static final Setting<List<ModelConfig>> MODELS =
            row(
                    Setting.list(
                                    "serve-model",
                                    "SPEC",
                                    ModelConfig::parse,
                                    "A further model, with a router of its own: name=M, then any of"
                                            + " tokenizer=DIR, lora=A;B and what a router has"
                                            + " (block-size=N, mode=NAME, max-blocks=N, …), joined"
                                            + " by commas; in YAML a mapping of these keys."
                                            + " Tokenizer and adapters are each model's own, all"
                                            + " else is the gateway's where it is not set.")
                            .alias("models"));

    /** The servers behind the gateway. */
    public static final Setting<List<WorkerConfig>> WORKERS =
            row(
                    Setting.list(
                                    "worker",
                                    "SPEC",
                                    WorkerConfig::parse,
                                    "A worker: http://host:port or https://…, then any of name=N,"
                                            + " events=tcp://h:p, replay=tcp://h:p, dp=N,"
                                            + " removals=auto|physical|last-copy, bind=true,"
                                            + " topic=T, role=both|prefill|decode,"
                                            + " handoff=vllm|sglang|trtllm, bootstrap=h:p (of"
                                            + " sglang; else the URL's host and port 8998),"
                                            + " labels=key:value;key:value, event-worker=N (its"
                                            + " number on the event-plane, instead of events=),"
                                            + " event-rank=N (rank in its events of its rank 0,"
                                            + " else 0), model=M (one of the gateway's; else"
                                            + " the first), input=text|tokens (what it is sent of"
                                            + " a prompt), kv-blocks=N, max-batched-tokens=N and"
                                            + " max-requests=N"
                                            + " (what its engine can take, for the limits of"
                                            + " load), lora=A;B, lora-ids=A:1;B:2 and"
                                            + " taints=spot;night (which requests it may serve),"
                                            + " joined by commas. Without events it is"
                                            + " routed by load alone, or see approximate.")
                            .alias("workers"));

    /** File with more servers, watched for changes. */
    public static final Setting<Path> WORKERS_FILE =
            row(
                    Setting.text(
                            "workers-file",
                            "FILE",
                            Path::of,
                            null,
                            "YAML list of workers beside those of --worker, each as text or with"
                                + " these keys and generation=N. Changes are seen while the gateway"
                                + " runs, and on SIGHUP; a broken file changes nothing."));

    /** Time between two readings of {@link #WORKERS_FILE}. */
    public static final Setting<Duration> WORKERS_FILE_INTERVAL =
            row(
                    Setting.duration(
                            "workers-file-interval-ms",
                            1_000,
                            1,
                            "Time between two readings of workers-file; a change counts once two"
                                    + " readings agree."));

    /** Where NATS is. */
    public static final Setting<String> NATS_URL =
            row(
                    Setting.text(
                                    "nats-url",
                                    "URL",
                                    NatsUrls::parse,
                                    "nats://localhost:4222",
                                    "Where NATS is; several with commas between.")
                            .variable("NATS_SERVER"));

    /** File with the gateway's credentials for NATS. */
    public static final Setting<Path> NATS_CREDENTIALS =
            row(
                    Setting.text(
                            "nats-credentials",
                            "FILE",
                            Path::of,
                            null,
                            "File with the JWT and seed of a NATS user."));

    /** Certificates that NATS is checked against. */
    public static final Setting<Path> NATS_TRUST_STORE =
            row(
                    Setting.text(
                            "nats-trust-store",
                            "FILE",
                            Path::of,
                            null,
                            "PEM file of the authorities that sign certificates of tls:// servers"
                                    + " of NATS; read for each connection. Not set, those of the"
                                    + " JVM."));

    /** Whether events of engines are followed. */
    public static final Setting<Boolean> KV_EVENTS =
            row(
                    Setting.bool(
                                    "kv-events",
                                    true,
                                    "Follow the cache events of workers. Off, their events= and"
                                            + " event-worker= and event-plane are left alone, and"
                                            + " approximate is on: workers are taken to hold what"
                                            + " was routed to them of late.")
                            .alias("router-kv-events")
                            .variable("DYN_ROUTER_USE_KV_EVENTS"));

    /** Where events come from of workers with an event-worker. */
    public static final Setting<EventPlaneKind> EVENT_PLANE =
            row(
                    Setting.choice(
                            "event-plane",
                            EventPlaneKind.OFF,
                            "Where the events of workers with event-worker= come from: core nats,"
                                    + " which keeps nothing, or a jetstream, which keeps an hour,"
                                    + " by nats-url, nats-namespace, nats-component and"
                                    + " nats-endpoint; or zmq, by event-plane-addresses. Hashes"
                                    + " have the public seed then."));

    /** Where events come from over ZMQ. */
    public static final Setting<List<String>> EVENT_PLANE_ADDRESSES =
            row(
                    Setting.list(
                            "event-plane-addresses",
                            "ADDRESS",
                            Function.identity(),
                            "With event-plane=zmq: a publisher of router events, such as kvasir"
                                    + " relay --bind, or a broker for subscribers, such as"
                                    + " tcp://broker:5556; at most 1024. What several brokers carry"
                                    + " is taken once; of a broker, nats-namespace, nats-component"
                                    + " and nats-endpoint say whose events."));

    /** Whether workers are asked for events that are missing. */
    public static final Setting<Boolean> EVENT_RECOVERY =
            row(
                    Setting.bool(
                            "event-recovery",
                            true,
                            "With event-plane=nats or zmq: ask the local indexers of workers, as"
                                    + " kvasir relay has them, for events that were missed, and for"
                                    + " all blocks when a worker is new."));

    /** Servers that keep the stream of events. */
    public static final Setting<Integer> EVENT_STREAM_REPLICAS =
            row(
                    Setting.integer(
                            "event-stream-replicas",
                            1,
                            1,
                            5,
                            "Servers of a NATS cluster that keep the stream of events, where the"
                                    + " gateway makes it; one that is there stays as it is."));

    /** Messages of the stream of events past which a snapshot is taken. */
    public static final Setting<Long> SNAPSHOT_THRESHOLD =
            row(
                    Setting.number(
                                    "snapshot-threshold",
                                    1_000_000L,
                                    0,
                                    Long.MAX_VALUE,
                                    "With event-plane=jetstream: messages of the stream that no"
                                            + " snapshot has, past which one of the gateways saves"
                                            + " what the workers hold in NATS, for gateways that"
                                            + " start, and purges the stream up to the snapshot"
                                            + " before; sooner when they are half as old as the"
                                            + " stream lets them become. Equal on all. 0 = nothing"
                                            + " is saved, and nothing restored.")
                            .alias("router-snapshot-threshold"));

    /** Whether to begin with nothing. */
    public static final Setting<Boolean> RESET_STATES =
            row(
                    Setting.bool(
                                    "reset-states",
                                    false,
                                    "With snapshot-threshold: delete all snapshots and all messages"
                                            + " of the stream at the start. Gateways that run over"
                                            + " the same workers miss what they have not read, and"
                                            + " those that start know nothing: for one start of one"
                                            + " gateway, not for good.")
                            .alias("router-reset-states"));

    /** Where the lock of snapshots is. */
    public static final Setting<SnapshotLockKind> SNAPSHOT_LOCK =
            row(
                    Setting.choice(
                            "snapshot-lock",
                            SnapshotLockKind.NATS,
                            "Where the gateway that takes a snapshot has its lock: in a bucket of"
                                    + " nats, or in etcd by discovery-etcd-endpoints and what goes"
                                    + " with them; equal on all."));

    /** Deployment whose registrations count. */
    public static final Setting<String> DISCOVERY_NAMESPACE =
            row(
                    Setting.text(
                            "discovery-namespace",
                            "NAME",
                            Function.identity(),
                            InstanceId.DEFAULT_NAMESPACE,
                            "Namespace of workers that register themselves in NATS, etcd or"
                                    + " Kubernetes; those of others are not seen."));

    /** Bucket with registrations; null for no discovery over NATS. */
    public static final Setting<String> DISCOVERY_NATS_BUCKET =
            row(
                    Setting.text(
                            "discovery-nats-bucket",
                            "NAME",
                            Function.identity(),
                            null,
                            "Bucket of NATS's key-value store with registrations of workers, such"
                                + " as kvasir-workers, at nats-url; made where it is not there."));

    /** Members of etcd; empty for no discovery over etcd. */
    public static final Setting<List<URI>> DISCOVERY_ETCD_ENDPOINTS =
            row(
                    Setting.list(
                            "discovery-etcd-endpoints",
                            "URL",
                            EtcdAccess::endpoint,
                            "Member of the etcd cluster with registrations of workers, such as"
                                    + " http://etcd-0:2379; the next is asked when one fails."));

    /** Where registrations are in etcd. */
    public static final Setting<String> DISCOVERY_ETCD_PREFIX =
            row(
                    Setting.text(
                            "discovery-etcd-prefix",
                            "PREFIX",
                            Function.identity(),
                            EtcdStore.PREFIX,
                            "What the keys of registrations in etcd begin with."));

    /** Name of the gateway's user in etcd. */
    public static final Setting<String> DISCOVERY_ETCD_USER =
            row(
                    Setting.text(
                            "discovery-etcd-user",
                            "NAME",
                            Function.identity(),
                            null,
                            "User of etcd; its password is in discovery-etcd-password-file."));

    /** File with the password of that user. */
    public static final Setting<Path> DISCOVERY_ETCD_PASSWORD_FILE =
            row(
                    Setting.text(
                            "discovery-etcd-password-file",
                            "FILE",
                            Path::of,
                            null,
                            "File whose first line is the password of discovery-etcd-user; read at"
                                    + " each login."));

    /** Certificates that etcd is checked against. */
    public static final Setting<Path> DISCOVERY_ETCD_TRUST_STORE =
            row(
                    Setting.text(
                            "discovery-etcd-trust-store",
                            "FILE",
                            Path::of,
                            null,
                            "PEM file of the authorities that sign certificates of https:// members"
                                    + " of etcd; read for each connection. Not set, those of the"
                                    + " JVM."));

    /** How long a registration outlives its worker. */
    public static final Setting<Duration> DISCOVERY_TTL =
            row(
                    Setting.duration(
                            "discovery-ttl-ms",
                            30_000,
                            1_000,
                            "How long a registration outlives the last word of its worker, where"
                                    + " the gateway makes the bucket; stores are asked three times"
                                    + " in it whether they answer."));

    /** Pods whose slices are watched; null for no discovery over Kubernetes. */
    public static final Setting<String> DISCOVERY_KUBERNETES_SELECTOR =
            row(
                    Setting.text(
                            "discovery-kubernetes-selector",
                            "LABELS",
                            Function.identity(),
                            null,
                            "EndpointSlices with workers, by their labels, such as"
                                    + " kubernetes.io/service-name=vllm; each ready endpoint is a"
                                    + " worker of the gateway's model, or of the one that"
                                    + " discovery-kubernetes-worker names by model=."));

    /** Whether registrations in custom resources of Kubernetes are watched. */
    public static final Setting<Boolean> DISCOVERY_KUBERNETES_RESOURCES =
            row(
                    Setting.bool(
                            "discovery-kubernetes-resources",
                            false,
                            "Whether workers that register themselves in custom resources of"
                                    + " Kubernetes (kvasirworkers of kvasir.io) are followed;"
                                    + " slices of the same pods say which of them are ready."));

    /** Namespace of the slices and resources. */
    public static final Setting<String> DISCOVERY_KUBERNETES_NAMESPACE =
            row(
                    Setting.text(
                            "discovery-kubernetes-namespace",
                            "NAME",
                            Function.identity(),
                            null,
                            "Kubernetes namespace of slices and resources. Not set, the pod's"
                                    + " own."));

    /** Port of an endpoint that serves. */
    public static final Setting<String> DISCOVERY_KUBERNETES_PORT =
            row(
                    Setting.text(
                            "discovery-kubernetes-port",
                            "NAME",
                            Function.identity(),
                            null,
                            "Name of the port in the slices that serves the API. Not set, their"
                                    + " only one."));

    /** Port of an endpoint that publishes events. */
    public static final Setting<String> DISCOVERY_KUBERNETES_EVENTS_PORT =
            row(
                    Setting.text(
                            "discovery-kubernetes-events-port",
                            "NAME",
                            Function.identity(),
                            null,
                            "Name of the port in the slices that publishes cache events over ZMQ."
                                    + " Not set, workers are routed to by load alone."));

    /** Port of an endpoint that replays events. */
    public static final Setting<String> DISCOVERY_KUBERNETES_REPLAY_PORT =
            row(
                    Setting.text(
                            "discovery-kubernetes-replay-port",
                            "NAME",
                            Function.identity(),
                            null,
                            "Name of the port in the slices that replays cache events."));

    /** What else is said of a worker from Kubernetes. */
    public static final Setting<String> DISCOVERY_KUBERNETES_WORKER =
            row(
                    Setting.text(
                            "discovery-kubernetes-worker",
                            "SPEC",
                            Function.identity(),
                            "",
                            "What holds for each of these workers, as in --worker without URL, name"
                                    + " and endpoints: dp=2,role=prefill,handoff=vllm. Slices with"
                                    + " the label kvasir.io/role say the role themselves."));

    /** Where the API server is. */
    public static final Setting<URI> DISCOVERY_KUBERNETES_SERVER =
            row(
                    Setting.text(
                            "discovery-kubernetes-server",
                            "URL",
                            URI::create,
                            null,
                            "API server. Not set, that of the pod's environment"
                                    + " (KUBERNETES_SERVICE_HOST and _PORT)."));

    /** Folder of the service account. */
    public static final Setting<Path> DISCOVERY_KUBERNETES_ACCOUNT =
            row(
                    Setting.text(
                            "discovery-kubernetes-account",
                            "DIR",
                            Path::of,
                            Path.of(KubernetesAccess.ACCOUNT),
                            "Folder with token, ca.crt and namespace of the service account; read"
                                    + " again for each request, as they are replaced."));

    /** Header by which a request says which session it is of. */
    public static final Setting<String> SESSION_HEADER =
            live(
                    Setting.text(
                                    "session-header",
                                    "NAME",
                                    name -> name,
                                    "x-session-id",
                                    "Header that names the session of a request, from any caller,"
                                            + " for session-affinity-ttl-secs and mode"
                                            + " consistent-hash. It is passed on to the worker.")
                            .where(
                                    name -> name.matches("[A-Za-z0-9-]{1,64}"),
                                    "letters, digits and dashes"));

    /** Routing mode of the prefill pool. */
    public static final Setting<RoutingMode> PREFILL_MODE =
            live(
                    Setting.choice(
                            "prefill-mode",
                            RoutingMode.KV,
                            "How the prefill worker of a split request is chosen, as mode does for"
                                    + " the worker that answers."));

    /** Weight of a block to prefill in the prefill pool. */
    public static final Setting<Double> PREFILL_OVERLAP_WEIGHT =
            live(
                    Setting.decimal(
                            "prefill-overlap-weight",
                            1,
                            0,
                            Double.POSITIVE_INFINITY,
                            "Weight of a block to prefill when a prefill worker is chosen. Blocks"
                                    + " in use are no load there: 0 = any prefill worker, above 0"
                                    + " the number matters with a cost of your own alone."));

    /** LoRA adapters served beside the model. */
    public static final Setting<List<String>> LORA =
            row(
                    Setting.list(
                                    "lora",
                                    "NAME",
                                    Function.identity(),
                                    "LoRA adapter that the workers serve as a model.")
                            .alias("lora-adapters"));

    /** Time between questions which adapters a worker has. */
    public static final Setting<Duration> LORA_INTERVAL =
            row(
                    Setting.duration(
                            "lora-interval-ms",
                            10_000,
                            100,
                            "With lora-mode, time after which a worker is asked again for its"
                                    + " adapters (GET /v1/models), with the next probe of its"
                                    + " health."));

    /** Where the model's tokenizer is; null for none. */
    public static final Setting<Path> TOKENIZER =
            row(
                    Setting.text(
                            "tokenizer",
                            "DIR",
                            Path::of,
                            null,
                            "Folder with tokenizer.json and tokenizer_config.json, or the file, in"
                                    + " a configuration file relative to it; sim = that of kvasir"
                                    + " sim. Not set, only prompts of token ids are routed by"
                                    + " prefix."));

    /** Whether requests may bring a chat template of their own. */
    public static final Setting<Boolean> TRUST_REQUEST_CHAT_TEMPLATE =
            row(
                    Setting.bool(
                            "trust-request-chat-template",
                            false,
                            "Render the chat_template that a request brings along, as engines do"
                                    + " that were started with the flag of this name. If not, such"
                                    + " a request is routed by load alone and the engine answers"
                                    + " it."));

    /** Steps of rendering a prompt. */
    public static final Setting<Long> TEMPLATE_MAX_STEPS =
            row(
                    Setting.number(
                            "template-max-steps",
                            TemplateLimits.DEFAULT.maxSteps(),
                            1000,
                            Long.MAX_VALUE,
                            "Steps (statements, expressions, items walked through) that a chat"
                                    + " template may take for one prompt; beyond any of the four"
                                    + " template-max limits the answer is a 400."));

    /** Longest prompt that a chat template writes. */
    public static final Setting<Long> TEMPLATE_MAX_OUTPUT_CHARS =
            row(
                    Setting.number(
                            "template-max-output-chars",
                            TemplateLimits.DEFAULT.maxOutputChars(),
                            1000,
                            Integer.MAX_VALUE,
                            "Longest text that a chat template may write."));

    /** Memory of rendering a prompt. */
    public static final Setting<Long> TEMPLATE_MAX_MEMORY_BYTES =
            row(
                    Setting.number(
                            "template-max-memory-bytes",
                            null,
                            1 << 16,
                            Long.MAX_VALUE,
                            "Memory that a chat template may take in all for one prompt, beside 16"
                                    + " bytes for each character of its messages. Default: an"
                                    + " eighth of the heap, at most 256 MiB."));

    /** Nesting of chat templates. */
    public static final Setting<Integer> TEMPLATE_MAX_DEPTH =
            row(
                    Setting.integer(
                            "template-max-depth",
                            TemplateLimits.DEFAULT.maxDepth(),
                            10,
                            2000,
                            "Deepest nesting of a chat template: of its expressions, statements,"
                                    + " macro calls and the values that it prints."));

    /** Memory for compiled templates of requests. */
    public static final Setting<Long> TEMPLATE_CACHE_BYTES =
            row(
                    Setting.number(
                            "template-cache-bytes",
                            TemplatePolicy.DEFAULT.cacheBytes(),
                            0,
                            Long.MAX_VALUE,
                            "Memory for compiled templates that requests brought along; at most 64"
                                    + " are kept."));

    /** Where memory is that the gateways of a host share; null for none. */
    public static final Setting<Path> SHARED_MEMORY_DIR =
            row(
                    Setting.text(
                            "shared-memory-dir",
                            "DIR",
                            Path::of,
                            null,
                            "Folder of what gateways of one host and user share, best in memory"
                                + " (/dev/shm/kvasir-gateway): tokens of sections of prompts and,"
                                + " with state-dir, how far each worker is in the snapshots. Mapped"
                                + " by Chronicle Map, which needs JVM flags; ./kvasir sets them"
                                + " where this is a flag or an environment variable. Not set,"
                                + " nothing is shared."));

    /** Size of the memo of prompts' tokens. */
    public static final Setting<Integer> PROMPT_MEMO_ENTRIES =
            row(
                    Setting.integer(
                            "prompt-memo-entries",
                            16_384,
                            0,
                            4_194_304,
                            "Entries of 1,000 tokens, 4.8 KB each, in shared-memory-dir that"
                                + " remember the tokens of sections of prompts; gateways share them"
                                + " that say the same number. 0 remembers nothing."));

    /** Age of what the memo knows. */
    public static final Setting<Duration> PROMPT_MEMO_TTL =
            row(
                    Setting.duration(
                            "prompt-memo-ttl-ms",
                            3_600_000,
                            1,
                            "Age from which on an entry of shared-memory-dir is not used any"
                                    + " more."));

    /** Address to listen on. */
    public static final Setting<String> HOST =
            row(
                    Setting.text(
                            "host",
                            "HOST",
                            Function.identity(),
                            "0.0.0.0",
                            "Address to listen on."));

    /** Port to listen on. */
    public static final Setting<Integer> PORT =
            row(Setting.integer("port", 8000, 0, 65_535, "Port to listen on; 0 = any free one."));

    /** Whether clients may speak HTTP/2. */
    public static final Setting<Boolean> HTTP2 =
            row(
                    Setting.bool(
                            "http2",
                            true,
                            "Serve clients that speak HTTP/2 from the first byte on (h2c by prior"
                                    + " knowledge), beside those of HTTP/1.1. Upgrade: h2c is"
                                    + " ignored."));

    /** Streams of one connection. */
    public static final Setting<Integer> HTTP2_MAX_STREAMS =
            row(
                    Setting.integer(
                            "http2-max-concurrent-streams",
                            128,
                            1,
                            1 << 20,
                            "Requests under way on one HTTP/2 connection; further ones are refused"
                                    + " (REFUSED_STREAM) and can be sent again."));

    /** Frames of one connection that cost more than they bring. */
    public static final Setting<Integer> HTTP2_MAX_CONTROL_FRAMES =
            row(
                    Setting.integer(
                            "http2-max-control-frames",
                            256,
                            1,
                            1 << 20,
                            "Resets, pings, settings, priorities, empty and unknown frames a second"
                                    + " that one HTTP/2 connection may send; beyond it the"
                                    + " connection is closed (ENHANCE_YOUR_CALM)."));

    /** Address of the admin port. */
    public static final Setting<String> ADMIN_HOST =
            row(
                    Setting.text(
                            "admin-host",
                            "HOST",
                            Function.identity(),
                            "127.0.0.1",
                            "Address of the admin port (metrics, debug pages, workers). Where it is"
                                    + " no loopback address, a token must be set."));

    /** Port of metrics, debug pages and the workers' administration. */
    public static final Setting<Long> ADMIN_PORT =
            row(
                    Setting.number(
                            "admin-port",
                            null,
                            0,
                            65_535,
                            "Admin port; 0 = any free one. Not set, port + 1000 (port - 1000 above"
                                    + " 64535)."));

    /** What a caller of the admin port must present. */
    public static final Setting<Secret> ADMIN_TOKEN =
            row(
                    Setting.text(
                            "admin-token",
                            "TOKEN",
                            Secret::new,
                            null,
                            "Bearer token of the admin port; /live and /ready need none. Other"
                                    + " users of the machine may see flags: prefer the file or the"
                                    + " environment variable."));

    /** File with what a caller of the admin port must present. */
    public static final Setting<Path> ADMIN_TOKEN_FILE =
            row(
                    Setting.text(
                            "admin-token-file",
                            "FILE",
                            Path::of,
                            null,
                            "File with bearer tokens of the admin port, one a line; lines that"
                                    + " begin with # do not count. Read at start and on SIGHUP."));

    /** Tokens of callers that may steer routing and see decisions. */
    public static final Setting<List<Secret>> TRUSTED_TOKENS =
            row(
                    Setting.list(
                            "trusted-token",
                            "TOKEN",
                            Secret::new,
                            "Bearer token of callers that may send x-kvasir-* headers and get them"
                                    + " with answers; never passed on to workers. No caller is"
                                    + " trusted unless this, trusted-token-file or trusted-network"
                                    + " says so."));

    /** File of such tokens. */
    public static final Setting<Path> TRUSTED_TOKEN_FILE =
            row(
                    Setting.text(
                            "trusted-token-file",
                            "FILE",
                            Path::of,
                            null,
                            "File with such tokens, one a line; lines that begin with # do not"
                                    + " count. Read at start and on SIGHUP."));

    /** Addresses of such callers. */
    public static final Setting<List<String>> TRUSTED_NETWORKS =
            row(
                    Setting.list(
                            "trusted-network",
                            "RANGE",
                            AddressRange::check,
                            "Addresses of such callers, as 10.0.0.0/8 or ::1; that of the"
                                    + " connection counts, no header does."));

    /** Header that names the tenant of a request. */
    public static final Setting<String> TENANT_HEADER =
            row(
                    Setting.text(
                            "tenant-header",
                            "NAME",
                            Function.identity(),
                            null,
                            "Header by which a proxy before the gateway names the tenant: prompts"
                                    + " of different tenants share no cached block (cache_salt)."));

    /** The gateway's key towards workers. */
    public static final Setting<Secret> WORKER_KEY =
            row(
                    Setting.text(
                            "worker-key",
                            "KEY",
                            Secret::new,
                            null,
                            "Key that workers get as Authorization: Bearer instead of what the"
                                    + " client sent. Not set, the client's is passed on."));

    /** File with that key. */
    public static final Setting<Path> WORKER_KEY_FILE =
            row(
                    Setting.text(
                            "worker-key-file",
                            "FILE",
                            Path::of,
                            null,
                            "File whose first line is that key; lines that begin with # do not"
                                    + " count. Read at start and on SIGHUP."));

    /** Certificates that https:// workers are checked against. */
    public static final Setting<Path> WORKER_TRUST_STORE =
            row(
                    Setting.text(
                            "worker-trust-store",
                            "FILE",
                            Path::of,
                            null,
                            "PEM or PKCS12 file of the authorities that sign certificates of"
                                + " https:// workers; read at start and on SIGHUP. Not set, those"
                                + " of the JVM."));

    /** Password of a PKCS12 trust store. */
    public static final Setting<Secret> WORKER_TRUST_STORE_PASSWORD =
            row(
                    Setting.text(
                            "worker-trust-store-password",
                            "PASSWORD",
                            Secret::new,
                            null,
                            "Password of a PKCS12 trust store."));

    /** With which workers HTTP/2 is spoken. */
    public static final Setting<UpstreamHttp2> UPSTREAM_HTTP2 =
            row(
                    Setting.choice(
                            "upstream-http2",
                            UpstreamHttp2.AUTO,
                            "With which workers HTTP/2 is spoken, so that one connection carries"
                                    + " many requests: auto = https:// workers that offer it;"
                                    + " prior-knowledge = http:// workers too, which must all know"
                                    + " it (vLLM and SGLang do not)."));

    /** Whether streams are asked for their usage when the client did not. */
    public static final Setting<Boolean> INCLUDE_USAGE =
            live(
                    Setting.bool(
                                    "include-usage",
                                    true,
                                    "Ask engines for usage in every stream and keep it from clients"
                                            + " that did not ask: the only way to compare forecasts"
                                            + " of streams.")
                            .alias("inject-include-usage"));

    /** Longest request body. */
    public static final Setting<Integer> MAX_BODY_BYTES =
            live(
                    Setting.integer(
                            "max-body-bytes",
                            null,
                            1,
                            Integer.MAX_VALUE,
                            "Longest request body; longer ones get a 413. Default: a 64th of the"
                                    + " heap, at most 33554432."));

    /** Memory for bodies. */
    public static final Setting<Long> MAX_BODY_BYTES_IN_FLIGHT =
            live(
                    Setting.number(
                            "max-body-bytes-in-flight",
                            null,
                            1 << 16,
                            Long.MAX_VALUE,
                            "Bytes of request bodies in memory, from their first byte to the end of"
                                + " the answer; beyond it requests get a 429. Answers that are no"
                                + " streams may have as many again; beyond it they go as they come."
                                + " Default: an eighth of the heap."));

    /** Length from which answers are compressed. */
    public static final Setting<Integer> GZIP_MIN_BYTES =
            live(
                    Setting.integer(
                            "gzip-min-bytes",
                            4_096,
                            0,
                            Integer.MAX_VALUE,
                            "Length from which a JSON answer is sent with gzip to a client that"
                                    + " accepts it; 0 = never. Requests may always come with gzip"
                                    + " or deflate; max-body-bytes holds for what they inflate"
                                    + " to."));

    /** Whether streams are compressed. */
    public static final Setting<Boolean> GZIP_STREAMS =
            live(
                    Setting.bool(
                            "gzip-streams",
                            false,
                            "Send streams of events with gzip to clients that accept it, flushed"
                                    + " after each event; takes CPU and 300 kB of memory for each"
                                    + " stream."));

    /** Origins of web pages that may call the gateway. */
    public static final Setting<List<String>> CORS_ORIGINS =
            row(
                    Setting.list(
                                    "cors-origin",
                                    "ORIGIN",
                                    CorsOrigin::check,
                                    "Origin of web pages that may call the gateway, as"
                                            + " https://chat.example, or * for any. None by"
                                            + " default.")
                            .alias("cors-origins"));

    /** Further headers that pages may send. */
    public static final Setting<List<String>> CORS_HEADERS =
            row(
                    Setting.list(
                                    "cors-header",
                                    "NAME",
                                    Function.identity(),
                                    "Request header that such pages may send beside Authorization,"
                                            + " Content-Type, X-Request-Id and those of OpenAI's"
                                            + " clients.")
                            .alias("cors-headers"));

    /** Whether pages may have cookies sent. */
    public static final Setting<Boolean> CORS_CREDENTIALS =
            row(
                    Setting.bool(
                            "cors-credentials",
                            false,
                            "Let browsers send cookies along with requests of such pages; not with"
                                    + " cors-origin=*. Authorization headers need no such leave."));

    /** How long browsers keep what a preflight has said. */
    public static final Setting<Duration> CORS_MAX_AGE =
            row(
                    Setting.duration(
                            "cors-max-age-secs",
                            600,
                            0,
                            "How long browsers may keep what a preflight has said."));

    /** Threads that read prompts. */
    public static final Setting<Integer> PROMPT_THREADS =
            row(
                    Setting.integer(
                            "prompt-threads",
                            0,
                            0,
                            1024,
                            "Threads that parse, render, tokenize and hash prompts, beside one for"
                                    + " bodies of 1 MiB and more (64 KiB where all tokenizers are"
                                    + " the native library); 0 = one less than there are cores."));

    /** Prompts that wait for a thread. */
    public static final Setting<Integer> PROMPT_QUEUE =
            row(
                    Setting.integer(
                            "prompt-queue",
                            1024,
                            1,
                            1 << 20,
                            "Requests that may wait for one of the prompt-threads; beyond it they"
                                    + " get a 429."));

    /** Further workers tried when one fails before the client got a byte. */
    public static final Setting<Integer> RETRIES =
            live(
                    Setting.integer(
                            "retries",
                            2,
                            0,
                            1000,
                            "Further attempts when a worker fails before the client got a byte; a"
                                    + " request is sent at most once more than this."));

    /** Wait before the first retry at most. */
    public static final Setting<Duration> RETRY_BACKOFF =
            live(
                    Setting.duration(
                            "retry-backoff-ms",
                            25,
                            0,
                            "Longest wait before the first retry, doubled for each further one;"
                                    + " between half of it and all of it is waited."));

    /** Wait before any retry at most. */
    public static final Setting<Duration> RETRY_BACKOFF_MAX =
            live(
                    Setting.duration(
                            "retry-backoff-max-ms", 1_000, 0, "Longest wait before any retry."));

    /** Whether a request that was sent is repeated after a timeout. */
    public static final Setting<Boolean> RETRY_AFTER_TIMEOUT =
            live(
                    Setting.bool(
                            "retry-after-timeout",
                            false,
                            "Send a request to another worker when one that has all of it did not"
                                    + " answer in time; it may be computed twice."));

    /** Limit of opening a connection to a worker. */
    public static final Setting<Duration> CONNECT_TIMEOUT =
            live(
                    Setting.duration(
                            "connect-timeout-ms",
                            2_000,
                            1,
                            "Limit of opening a connection to a worker."));

    /** Longest wait for the first byte of a stream. */
    public static final Setting<Duration> FIRST_BYTE_TIMEOUT =
            live(
                    Setting.duration(
                            "first-byte-timeout-ms",
                            600_000,
                            1,
                            "Longest wait for the first byte of a streamed answer, queue and"
                                    + " prefill of the worker included."));

    /** Longest silence between the chunks of a stream. */
    public static final Setting<Duration> STREAM_IDLE_TIMEOUT =
            live(
                    Setting.duration(
                                    "stream-idle-timeout-ms",
                                    300_000,
                                    1,
                                    "Longest silence of a worker between two chunks of a streamed"
                                            + " answer.")
                            .alias("upstream-idle-timeout-ms"));

    /** Longest time of an answer that is not streamed. */
    public static final Setting<Duration> ANSWER_TIMEOUT =
            live(
                    Setting.duration(
                            "answer-timeout-ms",
                            1_800_000,
                            1,
                            "Longest time of an answer that is not streamed, from the request to"
                                    + " its last byte."));

    /** How long a prefill worker holds the blocks of a finished prefill. */
    public static final Setting<Duration> PREFILL_LEASE =
            row(
                    Setting.duration(
                            "prefill-lease-ms",
                            30_000,
                            6_000,
                            "How long prefill workers hold the blocks of a finished prefill for a"
                                    + " decode worker: vLLM's kv_lease_duration."));

    /** When requests are split. */
    public static final Setting<SplitMode> SPLIT_MODE =
            live(
                    Setting.choice(
                            "split-mode",
                            SplitMode.ALWAYS,
                            "When a request is split between a prefill and a decode worker, given"
                                + " that there are both: always, by the limits split-min-tokens,"
                                + " split-min-ratio and split-max-queue, by cost (what is expected"
                                + " to be faster; by the limits until enough is known), or"
                                + " never."));

    /** Fewer tokens to compute are computed by the decode worker. */
    public static final Setting<Integer> SPLIT_MIN_TOKENS =
            live(
                    Setting.integer(
                            "split-min-tokens",
                            2048,
                            0,
                            Integer.MAX_VALUE,
                            "A prompt of which the decode worker would have to compute fewer tokens"
                                    + " is computed there."));

    /** A prompt of which a smaller part is to be computed is computed by the decode worker. */
    public static final Setting<Double> SPLIT_MIN_RATIO =
            live(
                    Setting.decimal(
                            "split-min-ratio",
                            0,
                            0,
                            1,
                            "A prompt of which the decode worker would have to compute a smaller"
                                    + " part is computed there."));

    /** A longer queue of the prefill worker has the decode worker compute the prompt. */
    public static final Setting<Long> SPLIT_MAX_QUEUE =
            live(
                    Setting.number(
                            "split-max-queue",
                            0L,
                            0L,
                            Long.MAX_VALUE,
                            "A prompt whose prefill worker has more tokens to compute before it is"
                                    + " computed by the decode worker; 0 = no limit."));

    /** What a second of delay of a generating request counts. */
    public static final Setting<Double> SPLIT_HARM_WEIGHT =
            live(
                    Setting.decimal(
                            "split-harm-weight",
                            3,
                            0,
                            1000,
                            "With split-mode cost: what a second counts by which a prompt delays"
                                    + " each request that generates on the same worker."));

    /** What it counts to move blocks between workers. */
    public static final Setting<List<TransferCosts.Entry>> TRANSFER_COSTS =
            row(
                    Setting.list(
                                    "transfer-cost",
                                    "LABEL:BLOCKS",
                                    TransferCosts.Entry::parse,
                                    "What it counts, in blocks of load, that a decode worker"
                                            + " fetches a block from a prefill worker with the same"
                                            + " value of this label (labels= of worker), or 'never'"
                                            + " if it must not. The first entry that fits decides;"
                                            + " the last one is *:BLOCKS, for all other pairs. Each"
                                            + " is an element of its own: commas do not part them."
                                            + " By default distance counts nothing.")
                            .where(TransferCosts::areOrdered, "each label once and * as the last"));

    /** What follows when a split request fails before the client has a byte. */
    public static final Setting<FallbackPolicy> SPLIT_FALLBACK =
            live(
                    Setting.choice(
                            "split-fallback",
                            FallbackPolicy.DECODE_ONLY,
                            "What follows when the prefill or the decode worker of a split request"
                                    + " fails before the client has a byte: one worker does all of"
                                    + " it, the prompt is computed again by a prefill worker, or"
                                    + " the request fails."));

    /** Prefills of one request at most. */
    public static final Setting<Integer> PREFILL_ATTEMPTS =
            live(
                    Setting.integer(
                            "prefill-attempts",
                            2,
                            1,
                            16,
                            "How often the prompt of a request is sent to a prefill worker at"
                                    + " most, with split-fallback other-prefill."));

    /** Longest time of a prefill. */
    public static final Setting<Duration> PREFILL_TIMEOUT =
            live(
                    Setting.duration(
                            "prefill-timeout-ms",
                            120_000,
                            1,
                            "Longest time of a prefill, queue of the worker included, before"
                                    + " split-fallback applies."));

    /** Library by which prefill workers are notified. */
    public static final Setting<String> NIXL_LIBRARY =
            row(
                    Setting.text(
                            "nixl-library",
                            "FILE",
                            Function.identity(),
                            NIXL_AUTO,
                            "libnixl_capi.so, by which vLLM's prefill workers are notified to free"
                                    + " blocks that no decode worker will fetch; auto = the first"
                                    + " that is found (docs/operations/flags.md), off = none: then"
                                    + " blocks are freed when the lease ends. Loaded with the first"
                                    + " finished prefill."));

    /** Longest silence of a client, whatever its connection waits for. */
    public static final Setting<Duration> CLIENT_IDLE_TIMEOUT =
            row(
                    Setting.duration(
                            "client-idle-timeout-ms",
                            60_000,
                            1,
                            "Longest silence of a client: between requests, while one is read,"
                                    + " while its answer is written; then its connection is"
                                    + " closed. So is one that is silent within a head, without"
                                    + " the 408 of head-timeout-ms, where that is longer."));

    /** Connections of clients. */
    public static final Setting<Long> MAX_CONNECTIONS =
            row(
                    Setting.number(
                            "max-connections",
                            null,
                            1,
                            Integer.MAX_VALUE,
                            "Connections of clients at once. At the limit those that have been idle"
                                    + " for longest are closed, and further ones wait; the admin"
                                    + " port has connections of its own. Default: half of the file"
                                    + " descriptors (ulimit -n) that workers leave, 65536 at"
                                    + " most."));

    /** Connections of one client. */
    public static final Setting<Integer> MAX_CONNECTIONS_PER_CLIENT =
            row(
                    Setting.integer(
                            "max-connections-per-client",
                            0,
                            0,
                            Integer.MAX_VALUE,
                            "Connections at once from one address, or one /64 of IPv6; further ones"
                                    + " are closed. 0 = any number, as behind a proxy."));

    /** Longest head of a request or of a worker's answer. */
    public static final Setting<Integer> MAX_HEAD_BYTES =
            row(
                    Setting.integer(
                            "max-head-bytes",
                            32 << 10,
                            1 << 10,
                            1 << 20,
                            "Longest head, line and headers together, of a request (beyond it: 431;"
                                    + " over HTTP/2 its connection ends beyond 64 KiB more) and of"
                                    + " a worker's answer (502)."));

    /** Longest time of a request's head. */
    public static final Setting<Duration> HEAD_TIMEOUT =
            row(
                    Setting.duration(
                            "head-timeout-ms",
                            20_000,
                            1,
                            "Longest time from the first byte of a request's head to its last, on"
                                    + " both ports; beyond it the answer is a 408. A head that is"
                                    + " silent for client-idle-timeout-ms ends before."));

    /** Longest time of a request's body, beside what its bytes prolong it by. */
    public static final Setting<Duration> BODY_TIMEOUT =
            live(
                    Setting.duration(
                            "body-timeout-ms",
                            30_000,
                            1,
                            "Longest time of a request's body, on both ports, beside a second for"
                                    + " each body-min-rate bytes of it that have arrived; beyond it"
                                    + " the answer is a 408."));

    /** Bytes that prolong the time of a body by a second. */
    public static final Setting<Integer> BODY_MIN_RATE =
            live(
                    Setting.integer(
                            "body-min-rate",
                            1_000,
                            0,
                            Integer.MAX_VALUE,
                            "Bytes a second at which a long body may arrive: each so many prolong"
                                    + " body-timeout-ms by a second; 0 = none do."));

    /** Time between two probes of a worker. */
    public static final Setting<Duration> HEALTH_INTERVAL =
            live(
                    Setting.duration(
                            "health-interval-ms",
                            2_000,
                            1,
                            "Time between two probes of a worker."));

    /** Limit of one probe. */
    public static final Setting<Duration> HEALTH_TIMEOUT =
            live(
                    Setting.duration(
                            "health-timeout-ms", 5_000, 1, "Longest wait for a probe's answer."));

    /** Time between two readings of a worker's page of metrics. */
    public static final Setting<Duration> ENGINE_LOAD_INTERVAL =
            row(
                    Setting.duration(
                            "engine-load-interval-ms",
                            1_000,
                            0,
                            "Time between two readings of the load on a worker's page of metrics,"
                                    + " where engine-load is on; 0 = it is not read."));

    /** Failed probes in a row after which a worker is out of use. */
    public static final Setting<Integer> HEALTH_FAULTS =
            live(
                    Setting.integer(
                            "health-faults",
                            3,
                            1,
                            1000,
                            "Probes in a row that must fail, by anything but a refused connection,"
                                    + " for a worker to be out of use; a byte of any answer in"
                                    + " between begins the count again, unless a 5xx answers the"
                                    + " probe. If so many in a row get no answer at all, the"
                                    + " worker's requests end, too."));

    /** Good probes in a row after which a worker that was out of use is tried again. */
    public static final Setting<Integer> HEALTH_SUCCESSES =
            live(
                    Setting.integer(
                            "health-successes",
                            1,
                            1,
                            1000,
                            "Good probes in a row after which a worker that was out of use is tried"
                                    + " again."));

    /** Different failed requests that eject a worker. */
    public static final Setting<Integer> BREAKER_FAULTS =
            live(
                    Setting.integer(
                            "breaker-faults",
                            5,
                            1,
                            1000,
                            "Different requests that must fail on a worker within"
                                    + " breaker-window-ms for it to be left out: a 5xx other than"
                                    + " 501, 503, 505 and 529, a broken answer or a closed"
                                    + " connection. A request that fails on several workers counts"
                                    + " on one of them, and only if yet another one answers it."));

    /** Share of failed requests that ejects a worker. */
    public static final Setting<Integer> BREAKER_FAULT_PERCENT =
            live(
                    Setting.integer(
                            "breaker-fault-percent",
                            50,
                            1,
                            100,
                            "Share of a worker's answers within breaker-window-ms that must be"
                                    + " faults for it to be left out."));

    /** Window of the two limits of faults. */
    public static final Setting<Duration> BREAKER_WINDOW =
            live(
                    Setting.duration(
                            "breaker-window-ms",
                            10_000,
                            1,
                            "How far back faults and answers of a worker are counted."));

    /** How long a worker is ejected at least. */
    public static final Setting<Duration> BREAKER_HOLD =
            live(
                    Setting.duration(
                            "breaker-hold-ms",
                            5_000,
                            0,
                            "How long a worker is left out for faults before it is tried again."));

    /** Answers that end a trial. */
    public static final Setting<Integer> BREAKER_SUCCESSES =
            live(
                    Setting.integer(
                            "breaker-successes",
                            3,
                            1,
                            1000,
                            "Answers without a fault after which a worker on trial is up."));

    /** Quorum of living workers that faults leave in use. */
    public static final Setting<Integer> PANIC_PERCENT =
            live(
                    Setting.integer(
                            "panic-percent",
                            50,
                            0,
                            100,
                            "Where faults have left out so many of the living workers that fewer"
                                    + " than this share of them are left, all of them are used."));

    /** How long the gateway sends requests to itself before it listens. */
    public static final Setting<Duration> WARM_UP =
            row(
                    Setting.duration(
                            "warm-up-ms",
                            0,
                            0,
                            "How long the gateway sends requests to itself before it listens, so"
                                    + " that the first clients meet compiled code; kvasir serve"
                                    + " takes "
                                    + SERVE_WARM_UP.toMillis()
                                    + " where nothing is set."));

    /** How long closing waits for running requests. */
    public static final Setting<Duration> DRAIN_TIMEOUT =
            live(
                    Setting.duration(
                            "drain-timeout-ms",
                            120_000,
                            0,
                            "How long running requests are waited for at the end; streams that are"
                                    + " cut then end with an error event."));

    /** How long requests are served after the end was announced. */
    public static final Setting<Duration> LAME_DUCK =
            live(
                    Setting.duration(
                            "lame-duck-ms",
                            5_000,
                            0,
                            "Time between the signal to end, from which on /ready and /health say"
                                    + " 503, and the close of the port: as long as load balancers"
                                    + " need to notice."));

    /** Decisions kept for {@code GET /debug/decisions}. */
    public static final Setting<Integer> DECISION_LOG_SIZE =
            row(
                    Setting.integer(
                            "decision-log-size",
                            256,
                            1,
                            1 << 24, // what DecisionLog can have
                            "Decisions kept for GET /debug/decisions."));

    /** Weight of the policy that is judged beside the one that decides. */
    public static final Setting<Double> SHADOW_OVERLAP_WEIGHT =
            live(
                    Setting.decimal(
                            "shadow-overlap-weight",
                            NO_SHADOW,
                            NO_SHADOW,
                            Double.POSITIVE_INFINITY,
                            "Overlap weight of a shadow policy, which decides nothing: metrics say"
                                    + " how often it would have chosen another worker, and what"
                                    + " that worker held. Needs decision-journal; below 0, none."));

    /** Where a line for each request goes. */
    public static final Setting<String> ACCESS_LOG =
            live(
                    Setting.text(
                            "access-log",
                            "TARGET",
                            Function.identity(),
                            ACCESS_LOG_OFF,
                            "A line for each request: off, stdout, or a file, which is opened anew"
                                    + " on SIGHUP. No prompts, queries or headers are in it; what"
                                    + " cannot be written in time is dropped and counted."));

    /** How these lines are written. */
    public static final Setting<LogFormat> ACCESS_LOG_FORMAT =
            live(
                    Setting.choice(
                            "access-log-format",
                            LogFormat.TEXT,
                            "Lines of the access log: text = the common log format and name=value"
                                    + " fields, json = one object a line."));

    /** Where traces go. */
    public static final Setting<URI> OTLP_ENDPOINT =
            row(
                    Setting.text(
                                    "otlp-endpoint",
                                    "URL",
                                    CollectorUrl::parse,
                                    null,
                                    "An OpenTelemetry collector that takes OTLP over HTTP, such as"
                                            + " http://localhost:4318; traces go to /v1/traces"
                                            + " there, or to the URL's own path. Each request is a"
                                            + " span, with one below it for each worker that is"
                                            + " asked. Nothing is traced without it. To the path of"
                                            + " OTEL_EXPORTER_OTLP_ENDPOINT /v1/traces is added.")
                            .variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
                            .variable("OTEL_EXPORTER_OTLP_ENDPOINT", CollectorUrl::ofBase));

    /** Certificates that the collector is checked against. */
    public static final Setting<Path> OTLP_TRUST_STORE =
            row(
                    Setting.text(
                                    "otlp-trust-store",
                                    "FILE",
                                    Path::of,
                                    null,
                                    "PEM file of the authorities that sign the certificate of an"
                                            + " https:// collector. Not set, those of the JVM.")
                            .variable("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE")
                            .variable("OTEL_EXPORTER_OTLP_CERTIFICATE"));

    /** What the gateway shows to the collector. */
    public static final Setting<Path> OTLP_CLIENT_CERTIFICATE =
            row(
                    Setting.text(
                                    "otlp-client-certificate",
                                    "FILE",
                                    Path::of,
                                    null,
                                    "PEM file of the gateway's certificate for a collector that"
                                            + " asks for one; its key is in otlp-client-key.")
                            .variable("OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE")
                            .variable("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"));

    /** The key of that certificate. */
    public static final Setting<Path> OTLP_CLIENT_KEY =
            row(
                    Setting.text(
                                    "otlp-client-key",
                                    "FILE",
                                    Path::of,
                                    null,
                                    "PEM file of the key of otlp-client-certificate, PKCS #8"
                                            + " without a password (BEGIN PRIVATE KEY).")
                            .variable("OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY")
                            .variable("OTEL_EXPORTER_OTLP_CLIENT_KEY"));

    /** What the collector is sent beside the traces. */
    public static final Setting<Secret> OTLP_HEADERS =
            row(
                    Setting.text(
                                    "otlp-headers",
                                    "NAME=VALUE,…",
                                    Secret::new,
                                    null,
                                    "Headers for the collector, such as an API key, as"
                                        + " OpenTelemetry writes them: name=value separated by"
                                        + " commas, values with %20 for a space. Other users of the"
                                        + " machine may see flags: prefer otlp-headers-file, whose"
                                        + " headers replace these, or the environment variable.")
                            .variable("OTEL_EXPORTER_OTLP_TRACES_HEADERS")
                            .variable("OTEL_EXPORTER_OTLP_HEADERS"));

    /** File with what the collector is sent beside the traces. */
    public static final Setting<Path> OTLP_HEADERS_FILE =
            row(
                    Setting.text(
                            "otlp-headers-file",
                            "FILE",
                            Path::of,
                            null,
                            "File of headers for the collector, such as an API key: name=value, one"
                                    + " a line; a line that begins with # is a comment. Read each"
                                    + " time that traces are sent."));

    /** Which requests are traced. */
    public static final Setting<Double> TRACE_SAMPLE_RATIO =
            live(
                    Setting.decimal(
                            "trace-sample-ratio",
                            1,
                            0,
                            1,
                            "Share of requests that are traced; of those that trusted callers have"
                                    + " decided about in their traceparent, what they decided."));

    /** What traces call the gateway. */
    public static final Setting<String> TRACE_SERVICE_NAME =
            row(
                    Setting.text(
                                    "trace-service-name",
                                    "NAME",
                                    Function.identity(),
                                    "kvasir",
                                    "service.name of the traces.")
                            .variable("OTEL_SERVICE_NAME"));

    /** What else traces say of the gateway. */
    public static final Setting<ResourceAttributes> TRACE_RESOURCE_ATTRIBUTES =
            row(
                    Setting.text(
                                    "trace-resource-attributes",
                                    "NAME=VALUE,…",
                                    ResourceAttributes::parse,
                                    null,
                                    "Attributes of the gateway in its traces, such as k8s.pod.name,"
                                            + " as OpenTelemetry writes them: name=value separated"
                                            + " by commas, %2C for a comma. A service.name among"
                                            + " them counts where trace-service-name is not set.")
                            .variable("OTEL_RESOURCE_ATTRIBUTES"));

    /** How {@code kvasir serve} writes its log; embedders have their own. */
    public static final Setting<LogFormat> LOG_FORMAT =
            row(
                    Setting.choice(
                            "log-format",
                            LogFormat.TEXT,
                            "Lines of the log of kvasir serve on standard error; json has one"
                                    + " object a line with the request's id as request_id."));

    /** What {@code kvasir serve} logs; embedders have their own. */
    public static final Setting<LogLevel> LOG_LEVEL =
            live(
                    Setting.choice(
                                    "log-level",
                                    LogLevel.WARN,
                                    "What of Kvasir's own kvasir serve logs; libraries stay at"
                                            + " warn.")
                            .variable("KVASIR_LOG"));

    /** Whether the gateway shares its bookings with others over the same workers. */
    public static final Setting<Boolean> REPLICA_SYNC =
            row(
                    Setting.bool(
                                    "replica-sync",
                                    false,
                                    "Share bookings over NATS with other gateways over the same"
                                            + " workers, under the same names, so that each one's"
                                            + " load is that of all. Hashes have the public seed"
                                            + " then, unless hash-seed is set.")
                            .alias("router-replica-sync")
                            .variable("DYN_ROUTER_REPLICA_SYNC"));

    /** In which form bookings are sent. */
    public static final Setting<WireForm> REPLICA_WIRE =
            row(
                    Setting.choice(
                            "replica-wire",
                            WireForm.MSGPACK,
                            "Form of the messages about bookings that are sent: msgpack in an"
                                    + " envelope, or the JSON of older routers. Both are read."));

    /** The fleet, in subjects of NATS. */
    public static final Setting<String> NATS_NAMESPACE =
            row(
                    Setting.text(
                                    "nats-namespace",
                                    "NAME",
                                    Function.identity(),
                                    "dynamo",
                                    "Namespace of the fleet in subjects of NATS.")
                            .variable("DYN_NAMESPACE"));

    /** The workers, in subjects of NATS. */
    public static final Setting<String> NATS_COMPONENT =
            row(
                    Setting.text(
                            "nats-component",
                            "NAME",
                            Function.identity(),
                            "backend",
                            "Component of the workers in subjects of NATS; that of prefill"
                                    + " workers has -prefill after it, that of a further model"
                                    + " -model-NAME, unless the model has one of its own."));

    /** The workers' endpoint, in subjects of NATS. */
    public static final Setting<String> NATS_ENDPOINT =
            row(
                    Setting.text(
                            "nats-endpoint",
                            "NAME",
                            Function.identity(),
                            null,
                            "Endpoint of the workers in subjects of NATS, for routers that listen"
                                    + " there alone; not set, messages go to the component."));

    /** All of them, those of the router too. */
    public static final SettingTable TABLE =
            new SettingTable(ROWS).with(RouterSettings.TABLE.rows());

    private GatewaySettings() {}

    /** A row that a running gateway changes; {@code LiveGatewaySettingsTest} has a probe of it. */
    private static <T> Setting<T> live(Setting<T> setting) {
        return row(setting.live());
    }

    private static <T> Setting<T> row(Setting<T> setting) {
        ROWS.add(setting);
        return setting;
    }
}

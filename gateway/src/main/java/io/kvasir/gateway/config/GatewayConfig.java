package io.kvasir.gateway.config;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.pipeline.source.ZmqEventPlaneSource;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.router.settings.Settings;
import io.kvasir.router.settings.Settings.Source;
import io.kvasir.router.settings.WrongSettingsException;

import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Values of {@link GatewaySettings} that go together: what a gateway is started with. Where it
 * serves several models these are the first one's, and {@link #models} has those of each.
 * Immutable, but for the one that {@link #running} has made, which a gateway changes while it runs.
 */
public final class GatewayConfig {
    private static final int ADMIN_OFFSET = 1000;
    private static final int MAX_PORT = 65_535;

    private static final String MODELS_FOLDER = "models";
    private static final String PREFILL_SUFFIX = "-prefill";
    private static final String MODEL_SUFFIX = "-model-";

    private volatile Settings given; // null of a model that is not the first
    private volatile Settings settings;
    private final String replicaSuffix;
    private final List<GatewayConfig> further;

    /** What holds for a model that is not the first. */
    private GatewayConfig(ModelConfig model, Settings gateway) {
        final String key = ModelKey.of(model.name());
        final Settings.Builder own = model.over(gateway).toBuilder();
        for (Setting<Path> folder : RouterSettings.FOLDERS) {
            final Path root = gateway.get(folder);
            if (root != null && !model.sets(folder)) {
                own.set(
                        folder,
                        root.resolve(MODELS_FOLDER).resolve(key),
                        gateway.source(folder),
                        gateway.origin(folder));
            }
        }
        settings = effective(own.build());
        replicaSuffix = model.sets(GatewaySettings.NATS_COMPONENT) ? "" : MODEL_SUFFIX + key;
        further = List.of();
    }

    /** What the switch of events says of others. */
    private static Settings effective(Settings given) {
        return given.get(GatewaySettings.KV_EVENTS)
                ? given
                : given.toBuilder()
                        .set(RouterSettings.APPROXIMATE, true)
                        .set(GatewaySettings.EVENT_PLANE, EventPlaneKind.OFF)
                        .build();
    }

    private GatewayConfig(GatewayConfig other) {
        given = other.given;
        settings = other.settings;
        replicaSuffix = other.replicaSuffix;
        further = other.further.stream().map(GatewayConfig::new).toList();
    }

    private GatewayConfig(Settings given) {
        this.given = given;
        settings = effective(given);
        replicaSuffix = "";
        further =
                get(GatewaySettings.MODELS).stream()
                        .map(model -> new GatewayConfig(model, settings))
                        .toList();
        if (get(GatewaySettings.MODEL) == null) {
            throw new IllegalArgumentException(
                    "model is not set; name the model that the workers serve");
        }
        checkAll();
    }

    /** Has every check made, and says all of what is wrong at once. */
    private void checkAll() {
        WrongSettingsException.throwIfAnyFails(
                List.of(
                        this::checkAdmin,
                        this::checkPorts,
                        this::checkOrigins,
                        this::checkSeeds,
                        this::checkLoadInterval,
                        this::checkPlane,
                        () ->
                                WrongSettingsException.throwIfAnyFails(
                                        get(GatewaySettings.WORKERS), this::checkPlaneOf),
                        this::checkNamesOfWorkers,
                        this::checkServedNames,
                        () ->
                                WrongSettingsException.throwIfAnyFails(
                                        get(GatewaySettings.WORKERS), this::checkModelOf),
                        () ->
                                WrongSettingsException.throwIfAnyFails(
                                        models(), model -> checkRoom(model, true)),
                        () ->
                                WrongSettingsException.throwIfAnyFails(
                                        models(), model -> checkRoom(model, false)),
                        this::checkReplicaComponents,
                        () -> WrongSettingsException.throwIfAny(Contradictions.errors(this))));
    }

    /** Two ports of one number need an address each. */
    private void checkPorts() {
        final int port = get(GatewaySettings.PORT);
        if (port == 0 || port != adminPort()) {
            return;
        }
        final InetAddress serving = addressOrNull(get(GatewaySettings.HOST));
        final InetAddress admin = addressOrNull(get(GatewaySettings.ADMIN_HOST));
        if (serving == null || admin == null) {
            return;
        }
        if (serving.isAnyLocalAddress() || admin.isAnyLocalAddress() || serving.equals(admin)) {
            throw new IllegalArgumentException(
                    "admin-port="
                            + port
                            + " is the port of the clients, too (host="
                            + get(GatewaySettings.HOST)
                            + ", admin-host="
                            + get(GatewaySettings.ADMIN_HOST)
                            + "); set another admin-port, or 0 for any free one");
        }
    }

    private void checkAdmin() {
        if (get(GatewaySettings.ADMIN_TOKEN) == null
                && get(GatewaySettings.ADMIN_TOKEN_FILE) == null
                && !isLoopback(get(GatewaySettings.ADMIN_HOST))) {
            throw new IllegalArgumentException(
                    "admin-host="
                            + get(GatewaySettings.ADMIN_HOST)
                            + " is no loopback address; set admin-token-file or admin-token too, or"
                            + " admin-host=127.0.0.1");
        }
    }

    private void checkOrigins() {
        if (get(GatewaySettings.CORS_CREDENTIALS)
                && get(GatewaySettings.CORS_ORIGINS).contains(CorsOrigin.ANY)) {
            throw new IllegalArgumentException(
                    "cors-credentials with cors-origin=* would let every page use its visitors'"
                            + " cookies; name the origins");
        }
    }

    private boolean isOnPlane() {
        return get(GatewaySettings.EVENT_PLANE) != EventPlaneKind.OFF;
    }

    private void checkSeeds() {
        for (GatewayConfig model : models()) {
            final Long seed = model.get(RouterSettings.HASH_SEED);
            if (isOnPlane() && seed != null && seed != BlockHasher.BASE_SEED) {
                throw new IllegalArgumentException(
                        "events of an event-plane carry public hashes, and hash-seed is another"
                                + " one; set hash-seed="
                                + BlockHasher.BASE_SEED
                                + " or leave it out");
            }
        }
    }

    private void checkLoadInterval() {
        final Duration interval = get(GatewaySettings.ENGINE_LOAD_INTERVAL);
        final Duration ttl = get(RouterSettings.ENGINE_LOAD_TTL);
        if (get(RouterSettings.ENGINE_LOAD) && interval.compareTo(ttl) >= 0) {
            throw new IllegalArgumentException(
                    GatewaySettings.ENGINE_LOAD_INTERVAL
                            + "="
                            + interval.toMillis()
                            + " is not below "
                            + RouterSettings.ENGINE_LOAD_TTL
                            + "="
                            + ttl.toMillis()
                            + ": a report would end before the next one comes; change one of them");
        }
    }

    /** Checks what is set for the plane, which is off without events whatever is configured. */
    private void checkPlane() {
        if (get(GatewaySettings.KV_EVENTS)) {
            WrongSettingsException.throwIfAnyFails(
                    List.of(this::checkReset, this::checkPlaneAddresses));
        }
    }

    private void checkReset() {
        if (get(GatewaySettings.RESET_STATES)
                && (get(GatewaySettings.EVENT_PLANE) != EventPlaneKind.JETSTREAM
                        || get(GatewaySettings.SNAPSHOT_THRESHOLD) == 0)) {
            throw new IllegalArgumentException(
                    "reset-states without event-plane=jetstream and a snapshot-threshold: there is"
                            + " nothing to be reset");
        }
    }

    private void checkPlaneOf(WorkerConfig worker) {
        if (worker.planeOrNull() != null && !isOnPlane() && get(GatewaySettings.KV_EVENTS)) {
            throw new IllegalArgumentException(
                    "worker '"
                            + worker.name()
                            + "' has event-worker, and event-plane is off; set"
                            + " event-plane=nats, jetstream or zmq");
        }
    }

    private void checkNamesOfWorkers() {
        final Set<String> names = new HashSet<>();
        WrongSettingsException.throwIfAnyFails(
                get(GatewaySettings.WORKERS),
                worker -> {
                    if (!names.add(worker.name())) {
                        throw new IllegalArgumentException(
                                "two workers are named '"
                                        + worker.name()
                                        + "'; tell them apart with name=");
                    }
                });
    }

    /** Checks that there are addresses where events come by them, and only there. */
    private void checkPlaneAddresses() {
        final List<String> addresses = get(GatewaySettings.EVENT_PLANE_ADDRESSES);
        if (get(GatewaySettings.EVENT_PLANE) == EventPlaneKind.ZMQ) {
            try {
                ZmqEventPlaneSource.endpoints(addresses);
            } catch (IllegalArgumentException e) {
                throw new IllegalArgumentException("event-plane-addresses: " + e.getMessage(), e);
            }
        } else if (!addresses.isEmpty()) {
            throw new IllegalArgumentException(
                    "event-plane-addresses without event-plane=zmq: nothing would be read from "
                            + String.join(", ", addresses));
        }
    }

    /** Checks that a name that a request may have is one model's. */
    private void checkServedNames() {
        final Map<String, String> models = new HashMap<>(); // by the names that requests have
        for (GatewayConfig model : models()) {
            final String name = model.get(GatewaySettings.MODEL);
            if (models.put(name, name) != null) {
                throw new IllegalArgumentException(
                        "two models are named '"
                                + name
                                + "'; a gateway serves each name once: change model, or name= of"
                                + " serve-model");
            }
        }
        for (GatewayConfig model : models()) {
            final String name = model.get(GatewaySettings.MODEL);
            for (String adapter : model.get(GatewaySettings.LORA)) {
                final String other = models.putIfAbsent(adapter, name);
                if (other != null && !other.equals(name)) {
                    throw new IllegalArgumentException(
                            "the adapter '"
                                    + adapter
                                    + "' of model '"
                                    + name
                                    + "' has the name of "
                                    + (other.equals(adapter)
                                            ? "another model"
                                            : "an adapter of model '" + other + "'")
                                    + "; a request's model must say which is meant: change lora"
                                    + " of one");
                }
            }
        }
    }

    private void checkModelOf(WorkerConfig worker) {
        if (models().stream().noneMatch(model -> isOf(model, worker))) {
            throw new IllegalArgumentException(
                    "worker '"
                            + worker.name()
                            + "' has model="
                            + worker.model()
                            + ", and the gateway serves "
                            + modelNames()
                            + "; add it by serve-model, or change model= of the worker");
        }
    }

    private boolean isOf(GatewayConfig model, WorkerConfig worker) {
        return model.get(GatewaySettings.MODEL)
                .equals(Objects.requireNonNullElse(worker.model(), get(GatewaySettings.MODEL)));
    }

    /** Checks that the workers of the role prefill, or all others, fit into their pool. */
    private void checkRoom(GatewayConfig model, boolean prefill) {
        final int ranks =
                get(GatewaySettings.WORKERS).stream()
                        .filter(w -> isOf(model, w))
                        .filter(w -> prefill == (w.disaggregation().role() == WorkerRole.PREFILL))
                        .mapToInt(WorkerConfig::dataParallelSize)
                        .sum();
        if (ranks > model.get(RouterSettings.MAX_WORKERS)) {
            throw new IllegalArgumentException(
                    ranks
                            + (prefill ? " prefill" : "")
                            + " workers (dp ranks counted) exceed max-workers="
                            + model.get(RouterSettings.MAX_WORKERS)
                            + (further.isEmpty()
                                    ? ""
                                    : " of model '" + model.get(GatewaySettings.MODEL) + "'")
                            + "; raise it");
        }
    }

    /** Checks that bookings of one model are never taken for another's. */
    private void checkReplicaComponents() {
        if (!get(GatewaySettings.REPLICA_SYNC)) {
            return;
        }
        final Set<List<String>> taken = new HashSet<>();
        for (GatewayConfig model : models()) {
            for (boolean prefill : new boolean[] {false, true}) {
                final String component = model.replicaComponent(prefill);
                if (!taken.add(List.of(model.get(GatewaySettings.NATS_NAMESPACE), component))) {
                    throw new IllegalArgumentException(
                            "two models share their bookings as component '"
                                    + component
                                    + "' of namespace '"
                                    + model.get(GatewaySettings.NATS_NAMESPACE)
                                    + "'; give model '"
                                    + model.get(GatewaySettings.MODEL)
                                    + "' another nats-component");
                }
            }
        }
    }

    /** Whether connections to an address can come from this machine alone. */
    private static boolean isLoopback(String host) {
        final InetAddress address = addressOrNull(host);
        return address != null && address.isLoopbackAddress();
    }

    private static InetAddress addressOrNull(String host) {
        try {
            return InetAddress.getByName(host);
        } catch (UnknownHostException e) {
            return null; // the start names it
        }
    }

    /**
     * The value of a setting.
     *
     * @param setting a row of {@link GatewaySettings} or {@link RouterSettings}
     * @param <T> its type
     * @return its value; null only where it has no default and is not set
     */
    public <T> T get(Setting<T> setting) {
        return settings.get(setting);
    }

    /**
     * What holds for each model that is served: its own values, and the gateway's where it has
     * none.
     *
     * @return the first model's, which is this, and those of {@link GatewaySettings#MODELS} in
     *     their order; each names its model as {@link GatewaySettings#MODEL}
     */
    public List<GatewayConfig> models() {
        final List<GatewayConfig> all = new ArrayList<>();
        all.add(this);
        all.addAll(further);
        return all;
    }

    /** Names of the models that are served, for messages. */
    public String modelNames() {
        return models().stream()
                .map(model -> model.get(GatewaySettings.MODEL))
                .collect(Collectors.joining(", "));
    }

    /**
     * Component under which bookings of the model's workers are shared with other gateways.
     *
     * @param prefill of the prefill workers
     */
    public String replicaComponent(boolean prefill) {
        return get(GatewaySettings.NATS_COMPONENT)
                + (prefill ? PREFILL_SUFFIX : "")
                + replicaSuffix;
    }

    /** The admin port to listen on; 0 for any free one. */
    public int adminPort() {
        final Long set = get(GatewaySettings.ADMIN_PORT);
        if (set != null) {
            return set.intValue();
        }
        final int port = get(GatewaySettings.PORT);
        if (port == 0) {
            return 0;
        }
        return port + ADMIN_OFFSET <= MAX_PORT ? port + ADMIN_OFFSET : port - ADMIN_OFFSET;
    }

    /** Whether workers may come from a source other than the configuration and operators. */
    public boolean discovers() {
        return get(GatewaySettings.WORKERS_FILE) != null
                || get(GatewaySettings.DISCOVERY_NATS_BUCKET) != null
                || !get(GatewaySettings.DISCOVERY_ETCD_ENDPOINTS).isEmpty()
                || get(GatewaySettings.DISCOVERY_KUBERNETES_SELECTOR) != null
                || get(GatewaySettings.DISCOVERY_KUBERNETES_RESOURCES);
    }

    /** Whether a gateway connects to NATS. */
    public boolean usesNats() {
        return get(GatewaySettings.EVENT_PLANE) != EventPlaneKind.OFF
                || get(GatewaySettings.REPLICA_SYNC)
                || get(GatewaySettings.DISCOVERY_NATS_BUCKET) != null;
    }

    /** All values with their sources. */
    public Settings settings() {
        return settings;
    }

    /** The values that it was made of: none of them follows from another one. */
    public Settings given() {
        return given;
    }

    /**
     * Makes a configuration of values.
     *
     * @throws IllegalArgumentException if they do not go together; the message names them
     */
    public static GatewayConfig of(Settings values) {
        return new GatewayConfig(values);
    }

    /** What of the values has no effect beside the others; see {@link Contradictions}. */
    public List<String> warnings() {
        return Contradictions.warnings(this, this);
    }

    /**
     * The same where a running gateway takes these values.
     *
     * @param started what it was started with: whether there is an index is decided then
     */
    public List<String> warningsSince(GatewayConfig started) {
        return Contradictions.warnings(this, started);
    }

    /** A copy for one gateway, which has it {@link #take} other values while it runs. */
    public GatewayConfig running() {
        return new GatewayConfig(this);
    }

    /**
     * Takes the values of another configuration of the same models, for all that read them from now
     * on; {@link #models} are the same objects as before.
     */
    public void take(GatewayConfig other) {
        given = other.given;
        settings = other.settings;
        for (int i = 0; i < further.size(); i++) {
            further.get(i).take(other.further.get(i));
        }
    }

    /**
     * Starts a configuration with the defaults.
     *
     * @return a builder; at least {@link GatewaySettings#MODEL} must be set
     */
    public static Builder builder() {
        return new Builder();
    }

    /** Collects values: from code over flags over environment over file, in any order. */
    public static final class Builder {
        private final Settings.Builder settings = Settings.builder(GatewaySettings.TABLE);
        private final List<WorkerConfig> workers = new ArrayList<>();

        private Builder() {}

        /**
         * Sets a value.
         *
         * @param setting a row of {@link GatewaySettings} or {@link RouterSettings}
         * @param value in its range
         * @return this
         * @throws IllegalArgumentException if it is out of range
         */
        public <T> Builder set(Setting<T> setting, T value) {
            settings.set(setting, value);
            return this;
        }

        /** Sets a value that holds where no file, variable, flag or code has one. */
        public <T> Builder setDefault(Setting<T> setting, T value) {
            settings.set(setting, value, Source.DEFAULT, "default");
            return this;
        }

        /** Adds a worker, from code: workers of files, variables and flags do not count then. */
        public Builder worker(WorkerConfig worker) {
            workers.add(worker);
            return set(GatewaySettings.WORKERS, List.copyOf(workers));
        }

        /**
         * Reads a configuration file.
         *
         * @param file a YAML 1.2 mapping of setting names; {@code workers} is a list of flag texts
         *     or of mappings with the same keys
         * @return this
         * @throws IOException if the file cannot be read
         * @throws IllegalArgumentException if it is not YAML, or a key or value is wrong; the
         *     message names file, line and key
         */
        public Builder file(Path file) throws IOException {
            ConfigFile.read(file, settings);
            return this;
        }

        /**
         * Reads environment variables.
         *
         * @param variables such as {@link System#getenv()}
         * @return this
         * @throws IllegalArgumentException if a value is wrong; the message names the variable
         */
        public Builder environment(Map<String, String> variables) {
            settings.environment(variables);
            return this;
        }

        /**
         * Reads a flag.
         *
         * @param setting what it sets
         * @param texts its values, more than one only of a list
         * @return this
         * @throws IllegalArgumentException if a value is wrong; the message names the setting
         */
        public Builder flag(Setting<?> setting, List<String> texts) {
            settings.parse(setting, texts, Source.FLAG, "--" + setting.name());
            return this;
        }

        /** Whether a setting has no value so far, and no default. */
        public boolean lacks(Setting<?> setting) {
            return settings.build().get(setting) == null;
        }

        /**
         * Makes the configuration.
         *
         * @return immutable
         * @throws IllegalArgumentException if values do not go together; the message names them
         */
        public GatewayConfig build() {
            return new GatewayConfig(settings.build());
        }
    }
}

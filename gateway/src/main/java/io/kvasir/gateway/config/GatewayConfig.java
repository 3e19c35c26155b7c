package io.kvasir.gateway.config;

import io.kvasir.router.RouterSettings;
import io.kvasir.router.Setting;
import io.kvasir.router.Settings;
import io.kvasir.router.Settings.Source;

import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Values of {@link GatewaySettings} that go together: what a gateway is started with. Immutable.
 */
public final class GatewayConfig {
    private static final int ADMIN_OFFSET = 1000;
    private static final int MAX_PORT = 65_535;

    private final Settings settings;

    private GatewayConfig(Settings settings) {
        this.settings = settings;
        if (get(GatewaySettings.MODEL) == null) {
            throw new IllegalArgumentException(
                    "model is not set; name the model that the workers serve");
        }
        if (get(GatewaySettings.ADMIN_TOKEN) == null
                && get(GatewaySettings.ADMIN_TOKEN_FILE) == null
                && !isLoopback(get(GatewaySettings.ADMIN_HOST))) {
            throw new IllegalArgumentException(
                    "admin-host="
                            + get(GatewaySettings.ADMIN_HOST)
                            + " is no loopback address; set admin-token-file or admin-token too, or"
                            + " admin-host=127.0.0.1");
        }
        if (get(GatewaySettings.CORS_CREDENTIALS)
                && get(GatewaySettings.CORS_ORIGINS).contains(CorsOrigin.ANY)) {
            throw new IllegalArgumentException(
                    "cors-credentials with cors-origin=* would let every page use its visitors'"
                            + " cookies; name the origins");
        }
        final Set<String> names = new HashSet<>();
        for (WorkerConfig worker : get(GatewaySettings.WORKERS)) {
            if (!names.add(worker.name())) {
                throw new IllegalArgumentException(
                        "two workers are named '"
                                + worker.name()
                                + "'; tell them apart with name=");
            }
        }
        checkRoom(true);
        checkRoom(false);
    }

    /** Checks that the workers of the role prefill, or all others, fit into their pool. */
    private void checkRoom(boolean prefill) {
        final int ranks =
                get(GatewaySettings.WORKERS).stream()
                        .filter(w -> prefill == (w.disaggregation().role() == WorkerRole.PREFILL))
                        .mapToInt(WorkerConfig::dataParallelSize)
                        .sum();
        if (ranks > get(RouterSettings.MAX_WORKERS)) {
            throw new IllegalArgumentException(
                    ranks
                            + (prefill ? " prefill" : "")
                            + " workers (dp ranks counted) exceed max-workers="
                            + get(RouterSettings.MAX_WORKERS)
                            + "; raise it");
        }
    }

    /** Whether connections to an address can come from this machine alone. */
    private static boolean isLoopback(String host) {
        try {
            return InetAddress.getByName(host).isLoopbackAddress();
        } catch (UnknownHostException e) {
            return false; // a name without an address is none
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
                || get(GatewaySettings.DISCOVERY_KUBERNETES_SELECTOR) != null;
    }

    /** All values with their sources. */
    public Settings settings() {
        return settings;
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

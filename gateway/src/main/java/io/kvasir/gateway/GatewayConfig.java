package io.kvasir.gateway;

import io.kvasir.core.slots.RoutedPrefixesConfig;
import io.kvasir.router.RouterSettings;
import io.kvasir.router.RoutingMode;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;

/**
 * Everything a gateway is told at start. Immutable; made by {@link #builder} or {@link #fromYaml}.
 *
 * @param host address to listen on
 * @param port port to listen on; 0 takes a free one
 * @param model name under which the model is served; requests for another one get a 404
 * @param loraAdapters names of LoRA adapters that are served beside the model, each as a model of
 *     its own
 * @param tokenizer folder with {@code tokenizer.json} (and {@code tokenizer_config.json}), or the
 *     file itself; null: only prompts given as token ids are routed by prefix, all others by load
 *     alone
 * @param blockSize tokens per block; must be the engines' block size
 * @param workers the servers behind the gateway
 * @param mode default routing mode
 * @param overlapWeight weight of a block to prefill against a block to decode
 * @param temperature sampling temperature of the choice; 0 takes the cheapest worker
 * @param seed seed of ties, sampling and random mode; null takes one from the clock
 * @param maxWorkers (worker, rank) pairs that fit the index
 * @param maxBlocks distinct blocks in the index
 * @param maxHeldBlocks (worker, block) pairs in the index
 * @param indexBytes off-heap bytes of the index; 0 takes them from the limits of blocks
 * @param approximate whether workers without events are taken to hold what was routed to them
 * @param ttl how long a routed prompt counts as held there; whole seconds
 * @param maxTreeSize blocks, counted once per worker, above which the oldest of these prompts go
 * @param pruneTargetRatio part of {@code maxTreeSize} that is left then, above 0 and at most 1
 * @param maxActiveRequests requests in flight at once; beyond it clients get a 429
 * @param maxBodyBytes longest request body; longer ones get a 413
 * @param injectIncludeUsage whether streams are asked for their usage when the client did not; the
 *     extra event is then kept from the client
 * @param retries further workers tried when one fails before the client got a byte
 * @param connectTimeout limit of opening a connection to a worker
 * @param upstreamIdleTimeout longest silence of a worker, time to first token included
 * @param clientIdleTimeout longest silence of a client while its request is read or its answer is
 *     written
 * @param healthInterval time between two probes of a worker
 * @param bookingTimeout how long a request counts as load of its worker at most, whatever became of
 *     it; zero for as long as it runs
 * @param drainTimeout how long {@link GatewayServer#close} waits for running requests
 * @param decisionLogSize decisions kept for {@code GET /debug/decisions}
 */
public record GatewayConfig(
        String host,
        int port,
        String model,
        List<String> loraAdapters,
        Path tokenizer,
        int blockSize,
        List<WorkerConfig> workers,
        RoutingMode mode,
        double overlapWeight,
        double temperature,
        Long seed,
        int maxWorkers,
        long maxBlocks,
        long maxHeldBlocks,
        long indexBytes,
        boolean approximate,
        Duration ttl,
        long maxTreeSize,
        double pruneTargetRatio,
        int maxActiveRequests,
        int maxBodyBytes,
        boolean injectIncludeUsage,
        int retries,
        Duration connectTimeout,
        Duration upstreamIdleTimeout,
        Duration clientIdleTimeout,
        Duration healthInterval,
        Duration bookingTimeout,
        Duration drainTimeout,
        int decisionLogSize) {

    /** Checks the values; ranges that the router owns are checked by the router. */
    public GatewayConfig {
        Objects.requireNonNull(host, "host");
        Objects.requireNonNull(mode, "mode");
        loraAdapters = List.copyOf(loraAdapters);
        workers = List.copyOf(workers);
        if (model == null || model.isBlank()) {
            throw new IllegalArgumentException(
                    "model is not set; name the model that the workers serve");
        }
        if (port < 0 || port > 65_535) {
            throw new IllegalArgumentException("port=" + port + " is not in 0..65535");
        }
        atLeast("block-size", blockSize, 1);
        atLeast("max-body-bytes", maxBodyBytes, 1);
        atLeast("max-active-requests", maxActiveRequests, 1);
        atLeast("retries", retries, 0);
        RouterSettings.INDEX_BYTES.check(indexBytes);
        if (ttl.toSeconds() < 1) {
            throw new IllegalArgumentException(
                    "ttl-secs=" + ttl.toSeconds() + " must be at least 1");
        }
        if (maxTreeSize < 1 || maxTreeSize > RoutedPrefixesConfig.MAX_BLOCKS) {
            throw new IllegalArgumentException(
                    "max-tree-size="
                            + maxTreeSize
                            + " is not in 1.."
                            + RoutedPrefixesConfig.MAX_BLOCKS);
        }
        if (!(pruneTargetRatio > 0 && pruneTargetRatio <= 1)) {
            throw new IllegalArgumentException(
                    "prune-target-ratio=" + pruneTargetRatio + " must be above 0 and at most 1");
        }
        atLeast("decision-log-size", decisionLogSize, 1);
        positive("connect-timeout-ms", connectTimeout);
        positive("upstream-idle-timeout-ms", upstreamIdleTimeout);
        positive("client-idle-timeout-ms", clientIdleTimeout);
        positive("health-interval-ms", healthInterval);
        notNegative("booking-timeout-ms", bookingTimeout);
        notNegative("drain-timeout-ms", drainTimeout);
        int ranks = 0;
        final Set<String> names = new HashSet<>();
        for (WorkerConfig worker : workers) {
            ranks += worker.dataParallelSize();
            if (!names.add(worker.name())) {
                throw new IllegalArgumentException(
                        "two workers are named '"
                                + worker.name()
                                + "'; tell them apart with name=");
            }
        }
        if (ranks > maxWorkers) {
            throw new IllegalArgumentException(
                    ranks
                            + " workers (dp ranks counted) exceed max-workers="
                            + maxWorkers
                            + "; raise it");
        }
    }

    private static void atLeast(String key, int value, int least) {
        if (value < least) {
            throw new IllegalArgumentException(key + "=" + value + " must be at least " + least);
        }
    }

    private static void notNegative(String key, Duration value) {
        if (value.isNegative()) {
            throw new IllegalArgumentException(key + "=" + value.toMillis() + " is negative");
        }
    }

    private static void positive(String key, Duration value) {
        if (value.toMillis() < 1) {
            throw new IllegalArgumentException(
                    key + "=" + value.toMillis() + " must be at least 1");
        }
    }

    /**
     * Starts a configuration with the defaults.
     *
     * @return a builder; at least {@link Builder#model} must be set
     */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * Reads a configuration file. Its keys are those of the command line's flags, without the
     * dashes in front; {@code workers} is a list of flag texts or of mappings with the same keys.
     *
     * @param file a YAML 1.2 mapping
     * @return the configuration
     * @throws IOException if the file cannot be read
     * @throws IllegalArgumentException if it is not YAML, or a key or value is wrong; the message
     *     names file, line, key and what is known
     */
    public static GatewayConfig fromYaml(Path file) throws IOException {
        return ConfigFile.read(file).build();
    }

    /**
     * A builder that starts with these values.
     *
     * @return for changing single ones, e.g. by flags after a file
     */
    public Builder toBuilder() {
        final Builder b = new Builder();
        b.host = host;
        b.port = port;
        b.model = model;
        b.loraAdapters.addAll(loraAdapters);
        b.tokenizer = tokenizer;
        b.blockSize = blockSize;
        b.workers.addAll(workers);
        b.mode = mode;
        b.overlapWeight = overlapWeight;
        b.temperature = temperature;
        b.seed = seed;
        b.maxWorkers = maxWorkers;
        b.maxBlocks = maxBlocks;
        b.maxHeldBlocks = maxHeldBlocks;
        b.indexBytes = indexBytes;
        b.approximate = approximate;
        b.ttl = ttl;
        b.maxTreeSize = maxTreeSize;
        b.pruneTargetRatio = pruneTargetRatio;
        b.maxActiveRequests = maxActiveRequests;
        b.maxBodyBytes = maxBodyBytes;
        b.injectIncludeUsage = injectIncludeUsage;
        b.retries = retries;
        b.connectTimeout = connectTimeout;
        b.upstreamIdleTimeout = upstreamIdleTimeout;
        b.clientIdleTimeout = clientIdleTimeout;
        b.healthInterval = healthInterval;
        b.bookingTimeout = bookingTimeout;
        b.drainTimeout = drainTimeout;
        b.decisionLogSize = decisionLogSize;
        return b;
    }

    /** Builds a {@link GatewayConfig}; every knob but the model has a default. */
    public static final class Builder {
        private String host = "0.0.0.0";
        private int port = 8000;
        private String model;
        private final List<String> loraAdapters = new ArrayList<>();
        private Path tokenizer;
        private int blockSize = 16;
        private final List<WorkerConfig> workers = new ArrayList<>();
        private RoutingMode mode = RoutingMode.KV;
        private double overlapWeight = 1;
        private double temperature;
        private Long seed;
        private int maxWorkers = 64;
        private long maxBlocks = 1 << 20;
        private long maxHeldBlocks = 1 << 21;
        private long indexBytes = RouterSettings.BY_LIMITS;
        private boolean approximate;
        private Duration ttl = Duration.ofMinutes(2);
        private long maxTreeSize = 1 << 20;
        private double pruneTargetRatio = 0.8;
        private int maxActiveRequests = 8192;
        private int maxBodyBytes = 32 << 20;
        private boolean injectIncludeUsage = true;
        private int retries = 2;
        private Duration connectTimeout = Duration.ofSeconds(2);
        private Duration upstreamIdleTimeout = Duration.ofMinutes(5);
        private Duration clientIdleTimeout = Duration.ofMinutes(1);
        private Duration healthInterval = Duration.ofSeconds(2);
        private Duration bookingTimeout = Duration.ZERO;
        private Duration drainTimeout = Duration.ofSeconds(10);
        private int decisionLogSize = 256;

        private Builder() {}

        /**
         * Address to listen on.
         *
         * @param value address to listen on; default 0.0.0.0
         * @return this
         */
        public Builder host(String value) {
            host = value;
            return this;
        }

        /**
         * Port to listen on.
         *
         * @param value port to listen on, 0 for a free one; default 8000
         * @return this
         */
        public Builder port(int value) {
            port = value;
            return this;
        }

        /**
         * Name under which the model is served.
         *
         * @param value served model name; required
         * @return this
         */
        public Builder model(String value) {
            model = value;
            return this;
        }

        /**
         * Where the model's tokenizer is.
         *
         * @param value folder or {@code tokenizer.json}; null for none
         * @return this
         */
        public Builder tokenizer(Path value) {
            tokenizer = value;
            return this;
        }

        /**
         * Tokens per block.
         *
         * @param value tokens per block, as in the engines; default 16
         * @return this
         */
        public Builder blockSize(int value) {
            blockSize = value;
            return this;
        }

        /**
         * Default routing mode.
         *
         * @param value default kv
         * @return this
         */
        public Builder mode(RoutingMode value) {
            mode = value;
            return this;
        }

        /**
         * Weight of a block to prefill.
         *
         * @param value finite, &ge; 0; default 1
         * @return this
         */
        public Builder overlapWeight(double value) {
            overlapWeight = value;
            return this;
        }

        /**
         * Sampling temperature of the choice.
         *
         * @param value finite, &ge; 0; default 0
         * @return this
         */
        public Builder temperature(double value) {
            temperature = value;
            return this;
        }

        /**
         * Seed of ties, sampling and random mode.
         *
         * @param value null for one from the clock, the default
         * @return this
         */
        public Builder seed(Long value) {
            seed = value;
            return this;
        }

        /**
         * Limit of (worker, rank) pairs.
         *
         * @param value default 64
         * @return this
         */
        public Builder maxWorkers(int value) {
            maxWorkers = value;
            return this;
        }

        /**
         * Limit of requests in flight.
         *
         * @param value default 8192
         * @return this
         */
        public Builder maxActiveRequests(int value) {
            maxActiveRequests = value;
            return this;
        }

        /**
         * Limit of a request body.
         *
         * @param value default 32 MiB
         * @return this
         */
        public Builder maxBodyBytes(int value) {
            maxBodyBytes = value;
            return this;
        }

        /**
         * Whether streams are asked for their usage.
         *
         * @param value default true
         * @return this
         */
        public Builder injectIncludeUsage(boolean value) {
            injectIncludeUsage = value;
            return this;
        }

        /**
         * Further workers tried after a failure.
         *
         * @param value default 2
         * @return this
         */
        public Builder retries(int value) {
            retries = value;
            return this;
        }

        /**
         * Limit of opening a connection to a worker.
         *
         * @param value default 2 s
         * @return this
         */
        public Builder connectTimeout(Duration value) {
            connectTimeout = value;
            return this;
        }

        /**
         * Longest silence of a worker.
         *
         * @param value default 5 min
         * @return this
         */
        public Builder upstreamIdleTimeout(Duration value) {
            upstreamIdleTimeout = value;
            return this;
        }

        /**
         * Longest silence of a client.
         *
         * @param value default 1 min
         * @return this
         */
        public Builder clientIdleTimeout(Duration value) {
            clientIdleTimeout = value;
            return this;
        }

        /**
         * Time between two probes of a worker.
         *
         * @param value default 2 s
         * @return this
         */
        public Builder healthInterval(Duration value) {
            healthInterval = value;
            return this;
        }

        /**
         * How long a request counts as load of its worker at most. The answer goes on; only its
         * booking ends.
         *
         * @param value zero, the default, for as long as the request runs
         * @return this
         */
        public Builder bookingTimeout(Duration value) {
            bookingTimeout = value;
            return this;
        }

        /**
         * How long closing waits for running requests.
         *
         * @param value default 10 s
         * @return this
         */
        public Builder drainTimeout(Duration value) {
            drainTimeout = value;
            return this;
        }

        /**
         * Decisions kept for inspection.
         *
         * @param value default 256
         * @return this
         */
        public Builder decisionLogSize(int value) {
            decisionLogSize = value;
            return this;
        }

        /**
         * Adds a worker.
         *
         * @param worker a server
         * @return this
         */
        public Builder worker(WorkerConfig worker) {
            workers.add(worker);
            return this;
        }

        /**
         * Replaces the workers.
         *
         * @param all the servers
         * @return this
         */
        public Builder workers(List<WorkerConfig> all) {
            workers.clear();
            workers.addAll(all);
            return this;
        }

        /**
         * Replaces the LoRA adapters.
         *
         * @param names model names of adapters
         * @return this
         */
        public Builder loraAdapters(List<String> names) {
            loraAdapters.clear();
            loraAdapters.addAll(names);
            return this;
        }

        /**
         * Off-heap bytes of the index; the limits of blocks hold beside it.
         *
         * @param value 65,536 up to almost 128 GiB; default 0, by the limits of blocks
         * @return this
         */
        public Builder indexBytes(long value) {
            indexBytes = value;
            return this;
        }

        /**
         * Whether workers without events are taken to hold what was routed to them.
         *
         * @param value default false: they are routed by load alone
         * @return this
         */
        public Builder approximate(boolean value) {
            approximate = value;
            return this;
        }

        /**
         * How long a routed prompt counts as held by a worker without events.
         *
         * @param value whole seconds; default 2 min
         * @return this
         */
        public Builder ttl(Duration value) {
            ttl = value;
            return this;
        }

        /**
         * Limit of the blocks that workers without events are taken to hold.
         *
         * @param value blocks, counted once per worker; default 2^20
         * @return this
         */
        public Builder maxTreeSize(long value) {
            maxTreeSize = value;
            return this;
        }

        /**
         * How much is left of these blocks when there were too many.
         *
         * @param value part of the limit, above 0 and at most 1; default 0.8
         * @return this
         */
        public Builder pruneTargetRatio(double value) {
            pruneTargetRatio = value;
            return this;
        }

        /**
         * Limits of the index, which size its off-heap memory unless {@link #indexBytes} does.
         *
         * @param distinct distinct blocks; default 2^20
         * @param held (worker, block) pairs; default 2^21
         * @return this
         */
        public Builder maxBlocks(long distinct, long held) {
            maxBlocks = distinct;
            maxHeldBlocks = held;
            return this;
        }

        /**
         * Makes the configuration.
         *
         * @return immutable
         * @throws IllegalArgumentException if a value is wrong; the message names the knob
         */
        public GatewayConfig build() {
            return new GatewayConfig(
                    host,
                    port,
                    model,
                    loraAdapters,
                    tokenizer,
                    blockSize,
                    workers,
                    mode,
                    overlapWeight,
                    temperature,
                    seed,
                    maxWorkers,
                    maxBlocks,
                    maxHeldBlocks,
                    indexBytes,
                    approximate,
                    ttl,
                    maxTreeSize,
                    pruneTargetRatio,
                    maxActiveRequests,
                    maxBodyBytes,
                    injectIncludeUsage,
                    retries,
                    connectTimeout,
                    upstreamIdleTimeout,
                    clientIdleTimeout,
                    healthInterval,
                    bookingTimeout,
                    drainTimeout,
                    decisionLogSize);
        }
    }
}

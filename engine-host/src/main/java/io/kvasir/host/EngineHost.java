package io.kvasir.host;

import io.kvasir.registry.FailureText;
import io.kvasir.registry.HostPort;
import io.kvasir.registry.InstanceId;
import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.ModelRegistration;
import io.kvasir.registry.Registrar;
import io.kvasir.registry.Registration;
import io.kvasir.registry.RegistryException;

import java.io.IOException;
import java.net.InetAddress;
import java.net.URI;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * Serves an engine over the OpenAI API, and registers it.
 *
 * <pre>{@code
 * try (EngineEventPublisher events = new EngineEventPublisher("tcp://*:5557", "tcp://*:5558", "", 0, 16);
 *         EngineHost host =
 *                 EngineHost.of("my-model", (request, out) -> out.text("Hello", 1))
 *                         .port(8000)
 *                         .cache(16, 10_000)
 *                         .register(store, id, r -> r.events("tcp://10.0.0.7:5557", "tcp://10.0.0.7:5558"))
 *                         .start()) {
 *     ...
 * }
 * }</pre>
 *
 * <p>Routes: {@code POST /v1/completions}, {@code POST /v1/chat/completions} (streams, {@code n},
 * lists of prompts), {@code POST /tokenize}, {@code GET /v1/models}, {@code /health} and {@code
 * /metrics}. HTTP/1.1, no authentication: for a network that routers alone reach.
 *
 * <p>Any thread.
 */
public final class EngineHost implements AutoCloseable {
    private static final long LOOK_MS = 10;
    private static final int MOST_PORT = 65_535;

    private final HostConfig config;
    private final HostServer server;
    private volatile Registrar registrar; // null where it is not registered
    private ModelRegistration registration; // likewise
    private boolean closed;

    private EngineHost(HostConfig config) {
        this.config = config;
        this.server = new HostServer(config, this::registryFailures);
    }

    /**
     * Begins with what there is no default for.
     *
     * @param model name under which the model is served
     * @param generator makes the answers
     * @throws IllegalArgumentException if the name is empty
     */
    public static Builder of(String model, Generator generator) {
        return new Builder(model, generator);
    }

    private void begin() throws IOException {
        try {
            server.start();
            register();
        } catch (IOException | RuntimeException e) {
            close();
            throw e;
        } catch (Exception e) {
            close();
            throw new IOException("the host does not start: " + FailureText.of(e), e);
        }
    }

    private void register() throws IOException {
        final HostConfig.Registering where = config.registeringOrNull();
        if (where == null) {
            return;
        }
        registrar = new Registrar(where.store(), new RenewalLog(where.id()));
        final Registration.Builder described =
                Registration.builder(where.id(), config.names().model(), url())
                        .dpRanks(config.dpRanks())
                        .blockSize(config.blockSize())
                        .limits(new Registration.Limits(config.kvBlocks(), 0));
        where.described().accept(described);
        // the host itself waits for what runs, not for a fixed time
        registration = registrar.registerModel(described.build(), Duration.ZERO);
    }

    /** The port in use. */
    public int port() {
        return server.port();
    }

    /** Requests that run. */
    public int running() {
        return server.running();
    }

    /**
     * Renewals and removals of its registration that failed because the store did not answer.
     *
     * @return count since the start; 0 where it is not registered
     */
    public long registryFailures() {
        final Registrar registering = registrar;
        return registering == null ? 0 : registering.unreachable();
    }

    /**
     * Where routers reach it.
     *
     * @throws IOException if this machine does not know its own address; set {@code advertised}
     */
    public URI url() throws IOException {
        if (config.advertisedOrNull() != null) {
            return config.advertisedOrNull();
        }
        final InetAddress bound = InetAddress.getByName(config.host());
        final String address;
        try {
            address =
                    bound.isAnyLocalAddress()
                            ? InetAddress.getLocalHost().getHostAddress()
                            : bound.getHostAddress();
        } catch (UnknownHostException e) {
            throw new IOException(
                    "the address of this machine is not known: "
                            + e.getMessage()
                            + "; set advertised",
                    e);
        }
        return URI.create("http://" + HostPort.of(address, server.port()));
    }

    /**
     * Says that it goes, waits for the requests that run up to the drain time, removes the
     * registration and stops. An interrupt ends the wait. Safe to call twice.
     */
    @Override
    public synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        drain();
        if (registration != null) {
            registration.close();
        }
        if (registrar != null) {
            registrar.close();
        } else if (config.registeringOrNull() != null) {
            config.registeringOrNull().store().close();
        }
        try {
            server.stop();
        } catch (Exception e) {
            throw new IllegalStateException("the server does not stop: " + FailureText.of(e), e);
        }
    }

    private void drain() {
        try {
            if (registration != null) {
                registration.drain();
            }
        } catch (RegistryException e) {
            // the lease ends it; what runs is waited for all the same
        }
        final long atMostNs = TimeUnit.NANOSECONDS.convert(config.drainTime()); // or the longest
        final long beginNs = System.nanoTime();
        try {
            while (server.running() > 0 && System.nanoTime() - beginNs < atMostNs) {
                Thread.sleep(LOOK_MS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /**
     * Makes a host. Each method refuses what is out of its range with {@link
     * IllegalArgumentException}, which names it. Not shared by threads.
     */
    public static final class Builder {
        private final String model;
        private final Generator generator;
        private List<String> adapters = List.of();
        private String host = "0.0.0.0";
        private int port = 8000;
        private URI advertised;
        private int maxConcurrent = 1024;
        private int maxBodyBytes = 32 << 20;
        private int dpRanks = 1;
        private int blockSize;
        private long kvBlocks;
        private int maxModelLength;
        private PromptTokenizer tokenizer;
        private Duration drainTime = Duration.ofSeconds(30);
        private HostConfig.Registering registering;

        private Builder(String model, Generator generator) {
            this.model = notEmpty("model", model);
            this.generator = Objects.requireNonNull(generator, "generator");
        }

        /** Names of LoRA adapters, which requests may name in place of the model. */
        public Builder adapters(List<String> names) {
            adapters = List.copyOf(names);
            for (int i = 0; i < adapters.size(); i++) {
                notEmpty("adapters[" + i + "]", adapters.get(i));
            }
            return this;
        }

        /** Address to listen on; all of the machine's where nothing is said. */
        public Builder host(String address) {
            host = notEmpty("host", address);
            return this;
        }

        /** Port to listen on; 0 is any free one, 8000 where nothing is said. */
        public Builder port(int number) {
            if (number < 0 || number > MOST_PORT) {
                throw new IllegalArgumentException(
                        "port=" + number + " must be in 0.." + MOST_PORT);
            }
            port = number;
            return this;
        }

        /**
         * URL by which routers reach it, http or https, without {@code /v1}; null, as where nothing
         * is said, for the machine's own address.
         */
        public Builder advertised(URI url) {
            if (url != null && !isOfServer(url)) {
                throw new IllegalArgumentException(
                        "advertised=" + url + " must be a URL such as http://10.0.0.7:8000");
            }
            advertised = url;
            return this;
        }

        /** Requests that run at most, 1,024 where nothing is said; more are answered with 429. */
        public Builder maxConcurrent(int requests) {
            maxConcurrent = atLeastOne("maxConcurrent", requests);
            return this;
        }

        /**
         * Longest request body, 32 MiB where nothing is said; longer ones are answered with 413.
         */
        public Builder maxBodyBytes(int bytes) {
            maxBodyBytes = atLeastOne("maxBodyBytes", bytes);
            return this;
        }

        /** Data-parallel ranks; 1 where nothing is said. */
        public Builder dpRanks(int count) {
            dpRanks = atLeastOne("dpRanks", count);
            return this;
        }

        /**
         * How the engine's cache is cut.
         *
         * @param tokensOfBlock block size
         * @param blocks of one rank; 0 where that is not known
         */
        public Builder cache(int tokensOfBlock, long blocks) {
            blockSize = atLeastOne("tokensOfBlock", tokensOfBlock);
            kvBlocks = notNegative("blocks", blocks);
            return this;
        }

        /** Tokens of a prompt and its answer at most; 0 where that is not known. */
        public Builder maxModelLength(int tokens) {
            notNegative("maxModelLength", tokens);
            maxModelLength = tokens;
            return this;
        }

        /** Answers {@code POST /tokenize}; without one gateways cannot compare their tokens. */
        public Builder tokenizer(PromptTokenizer ofTheModel) {
            tokenizer = ofTheModel;
            return this;
        }

        /** How long {@link EngineHost#close} waits for what runs; 30 s where nothing is said. */
        public Builder drainTime(Duration atMost) {
            if (atMost.isNegative()) {
                throw new IllegalArgumentException("drainTime=" + atMost + " must not be negative");
            }
            drainTime = atMost;
            return this;
        }

        /**
         * Has the host registered while it runs.
         *
         * @param store closed with the host
         * @param id name of the instance
         * @param described adds to what the host says by itself (model, URL, ranks, cache): where
         *     its cache events are, its role, labels
         */
        public Builder register(
                LeasedStore store, InstanceId id, Consumer<Registration.Builder> described) {
            registering =
                    new HostConfig.Registering(
                            Objects.requireNonNull(store),
                            Objects.requireNonNull(id),
                            Objects.requireNonNull(described));
            return this;
        }

        /**
         * Listens, and registers.
         *
         * @throws IOException if the port is taken or the address is not known
         * @throws RegistryException if the registration is refused; nothing listens then
         */
        public EngineHost start() throws IOException {
            final EngineHost started =
                    new EngineHost(
                            new HostConfig(
                                    generator,
                                    new EngineNames(model, adapters),
                                    host,
                                    port,
                                    advertised,
                                    maxConcurrent,
                                    maxBodyBytes,
                                    dpRanks,
                                    blockSize,
                                    kvBlocks,
                                    maxModelLength,
                                    tokenizer,
                                    drainTime,
                                    registering));
            started.begin();
            return started;
        }

        private static boolean isOfServer(URI url) {
            return url.getAuthority() != null
                    && ("http".equalsIgnoreCase(url.getScheme())
                            || "https".equalsIgnoreCase(url.getScheme()));
        }

        private static String notEmpty(String name, String value) {
            if (value.isBlank()) {
                throw new IllegalArgumentException(name + " must not be empty");
            }
            return value;
        }

        private static long notNegative(String name, long value) {
            if (value < 0) {
                throw new IllegalArgumentException(name + "=" + value + " must not be negative");
            }
            return value;
        }

        private static int atLeastOne(String name, int value) {
            if (value < 1) {
                throw new IllegalArgumentException(name + "=" + value + " must be at least 1");
            }
            return value;
        }
    }
}

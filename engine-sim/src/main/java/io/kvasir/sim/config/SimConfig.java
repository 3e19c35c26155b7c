package io.kvasir.sim.config;

import java.security.SecureRandom;
import java.util.List;
import java.util.Objects;

/**
 * What one simulated engine is. Immutable; made with {@link #builder()}.
 *
 * @param host address that HTTP and ZMQ sockets bind
 * @param port HTTP port; 0 takes a free one
 * @param model name under which the model is served
 * @param loraAdapters names of adapters, each served as a model of its own; ids count from 1
 * @param blockSize tokens per block
 * @param blocks blocks of one rank's pool, all usable
 * @param maxModelLength most tokens of prompt and output together, at most {@code blocks *
 *     blockSize}
 * @param maxBatchedTokens most tokens computed in one step, the chunk of chunked prefill
 * @param prefillTokensPerSecond uncached prompt tokens that one rank computes per second
 * @param interTokenMillis shortest time of a step, so the time between two tokens of a request
 * @param slots most requests of one rank that run at once; more wait in arrival order
 * @param eventsPort port of rank 0's event publisher, rank r uses {@code eventsPort + r}; 0 takes a
 *     free one per rank, -1 publishes nothing and offers no replay
 * @param replayPort port of rank 0's replay socket, rank r uses {@code replayPort + r}; 0 takes a
 *     free one per rank, -1 offers no replay
 * @param topic first frame of every event message
 * @param replaySteps event messages kept for replay, per rank
 * @param replayBytes bytes of event messages kept for replay, per rank
 * @param dataParallelSize ranks, each with its own pool, queue and sockets
 * @param speedUp divides every simulated time
 * @param meanOutputTokens mean length of an answer that ends by itself
 * @param seed names blocks; engines with different seeds name the same block differently
 * @param handoff role of the engine where prefill and decode are apart
 */
public record SimConfig(
        String host,
        int port,
        String model,
        List<String> loraAdapters,
        int blockSize,
        int blocks,
        int maxModelLength,
        int maxBatchedTokens,
        double prefillTokensPerSecond,
        double interTokenMillis,
        int slots,
        int eventsPort,
        int replayPort,
        String topic,
        int replaySteps,
        long replayBytes,
        int dataParallelSize,
        double speedUp,
        int meanOutputTokens,
        long seed,
        HandoffConfig handoff) {

    private static final int LONGEST_DEFAULT_MODEL = 131_072;

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException naming the value, its limit and the setting
     */
    public SimConfig {
        Objects.requireNonNull(host, "host");
        Objects.requireNonNull(model, "model");
        Objects.requireNonNull(topic, "topic");
        Objects.requireNonNull(handoff, "handoff");
        loraAdapters = List.copyOf(loraAdapters);
        atLeast("port", port, 0);
        atLeast("blockSize", blockSize, 1);
        atLeast("blocks", blocks, 1);
        atLeast("maxBatchedTokens", maxBatchedTokens, 1);
        atLeast("slots", slots, 1);
        atLeast("eventsPort", eventsPort, -1);
        atLeast("replayPort", replayPort, -1);
        atLeast("replaySteps", replaySteps, 0);
        atLeast("dataParallelSize", dataParallelSize, 1);
        atLeast("meanOutputTokens", meanOutputTokens, 1);
        atLeast("maxModelLength", maxModelLength, 2);
        if ((long) maxModelLength > (long) blocks * blockSize) {
            throw new IllegalArgumentException(
                    "maxModelLength="
                            + maxModelLength
                            + " needs more than the pool of blocks="
                            + blocks
                            + " x blockSize="
                            + blockSize
                            + "; raise blocks or lower maxModelLength");
        }
        positive("prefillTokensPerSecond", prefillTokensPerSecond);
        positive("speedUp", speedUp);
        if (!(interTokenMillis >= 0) || Double.isInfinite(interTokenMillis)) {
            throw new IllegalArgumentException(
                    "interTokenMillis=" + interTokenMillis + " must be 0 or more");
        }
        if (model.isEmpty() || loraAdapters.contains(model)) {
            throw new IllegalArgumentException(
                    "model=" + model + " must be a name that no adapter in loraAdapters has");
        }
    }

    private static void atLeast(String name, int value, int least) {
        if (value < least) {
            throw new IllegalArgumentException(name + "=" + value + " must be at least " + least);
        }
    }

    private static void positive(String name, double value) {
        if (!(value > 0) || Double.isInfinite(value)) {
            throw new IllegalArgumentException(name + "=" + value + " must be positive and finite");
        }
    }

    /** The address at which clients on this machine reach the engine. */
    public String reachableHost() {
        return switch (host) {
            case "0.0.0.0" -> "127.0.0.1";
            case "::", "[::]" -> "::1";
            default -> host;
        };
    }

    /**
     * Starts from the defaults.
     *
     * @return a builder that can be used once or many times
     */
    public static Builder builder() {
        return new Builder();
    }

    /** Settings on the way to a {@link SimConfig}. One thread. */
    public static final class Builder {
        private String host = "127.0.0.1";
        private int port;
        private String model = "kvasir-sim";
        private List<String> loraAdapters = List.of();
        private int blockSize = 16;
        private int blocks = 8192;
        private int maxModelLength;
        private int maxBatchedTokens = 2048;
        private double prefillTokensPerSecond = 10_000;
        private double interTokenMillis = 10;
        private int slots = 64;
        private int eventsPort;
        private int replayPort;
        private String topic = "kv-events";
        private int replaySteps = 10_000;
        private long replayBytes = 64L << 20;
        private int dataParallelSize = 1;
        private double speedUp = 1;
        private int meanOutputTokens = 256;
        private Long seed;
        private HandoffConfig handoff = HandoffConfig.NONE;

        private Builder() {}

        /**
         * Sets the address that HTTP and ZMQ sockets bind; default 127.0.0.1.
         *
         * @param value a host name or address
         * @return this
         */
        public Builder host(String value) {
            this.host = value;
            return this;
        }

        /**
         * Sets the HTTP port; default 0, a free one.
         *
         * @param value 0 or a port
         * @return this
         */
        public Builder port(int value) {
            this.port = value;
            return this;
        }

        /**
         * Sets the served model's name; default {@code kvasir-sim}.
         *
         * @param value a name
         * @return this
         */
        public Builder model(String value) {
            this.model = value;
            return this;
        }

        /**
         * Sets the adapters that are served beside the model; default none.
         *
         * @param values names; the first has id 1
         * @return this
         */
        public Builder loraAdapters(List<String> values) {
            this.loraAdapters = values;
            return this;
        }

        /**
         * Sets the tokens per block; default 16.
         *
         * @param value at least 1
         * @return this
         */
        public Builder blockSize(int value) {
            this.blockSize = value;
            return this;
        }

        /**
         * Sets the blocks of one rank's pool; default 8192.
         *
         * @param value at least 1
         * @return this
         */
        public Builder blocks(int value) {
            this.blocks = value;
            return this;
        }

        /**
         * Sets the longest prompt plus output; default is what the pool holds, at most 131072
         * tokens.
         *
         * @param value tokens; 0 for the default
         * @return this
         */
        public Builder maxModelLength(int value) {
            this.maxModelLength = value;
            return this;
        }

        /**
         * Sets the most tokens computed in one step; default 2048.
         *
         * @param value at least 1
         * @return this
         */
        public Builder maxBatchedTokens(int value) {
            this.maxBatchedTokens = value;
            return this;
        }

        /**
         * Sets the prefill rate of one rank; default 10000.
         *
         * @param value uncached tokens per second, before {@code speedUp}
         * @return this
         */
        public Builder prefillTokensPerSecond(double value) {
            this.prefillTokensPerSecond = value;
            return this;
        }

        /**
         * Sets the time between two tokens of a request; default 10.
         *
         * @param value milliseconds, before {@code speedUp}
         * @return this
         */
        public Builder interTokenMillis(double value) {
            this.interTokenMillis = value;
            return this;
        }

        /**
         * Sets how many requests of one rank run at once; default 64.
         *
         * @param value at least 1
         * @return this
         */
        public Builder slots(int value) {
            this.slots = value;
            return this;
        }

        /**
         * Sets the port of rank 0's event publisher; default 0, a free one per rank.
         *
         * @param value 0, a port, or -1 for an engine that publishes nothing
         * @return this
         */
        public Builder eventsPort(int value) {
            this.eventsPort = value;
            return this;
        }

        /**
         * Sets the port of rank 0's replay socket; default 0, a free one per rank.
         *
         * @param value 0, a port, or -1 for an engine without replay
         * @return this
         */
        public Builder replayPort(int value) {
            this.replayPort = value;
            return this;
        }

        /**
         * Sets the first frame of event messages; default {@code kv-events}.
         *
         * @param value any text, also empty
         * @return this
         */
        public Builder topic(String value) {
            this.topic = value;
            return this;
        }

        /**
         * Sets how many event messages each rank keeps for replay; default 10000.
         *
         * @param value 0 or more
         * @return this
         */
        public Builder replaySteps(int value) {
            this.replaySteps = value;
            return this;
        }

        /**
         * Sets how many bytes of event messages each rank keeps for replay; default 64 MiB.
         *
         * @param value bytes
         * @return this
         */
        public Builder replayBytes(long value) {
            this.replayBytes = value;
            return this;
        }

        /**
         * Sets the number of data-parallel ranks; default 1.
         *
         * @param value at least 1
         * @return this
         */
        public Builder dataParallelSize(int value) {
            this.dataParallelSize = value;
            return this;
        }

        /**
         * Sets what divides every simulated time; default 1.
         *
         * @param value positive
         * @return this
         */
        public Builder speedUp(double value) {
            this.speedUp = value;
            return this;
        }

        /**
         * Sets the mean length of an answer that ends by itself; default 256.
         *
         * @param value tokens, at least 1
         * @return this
         */
        public Builder meanOutputTokens(int value) {
            this.meanOutputTokens = value;
            return this;
        }

        /**
         * Sets the seed of block names; default random. Engines that shall name blocks differently,
         * as real ones do, need different seeds.
         *
         * @param value any number
         * @return this
         */
        public Builder seed(long value) {
            this.seed = value;
            return this;
        }

        /**
         * Sets the role of the engine where prefill and decode are apart; default {@link
         * HandoffConfig#NONE}.
         *
         * @param value role, protocol and times
         * @return this
         */
        public Builder handoff(HandoffConfig value) {
            this.handoff = value;
            return this;
        }

        /**
         * Makes the configuration.
         *
         * @return the configuration
         * @throws IllegalArgumentException when a value is out of range
         */
        public SimConfig build() {
            final int longest =
                    maxModelLength != 0
                            ? maxModelLength
                            : (int)
                                    Math.min(
                                            LONGEST_DEFAULT_MODEL,
                                            Math.max(2L, (long) blocks * blockSize));
            return new SimConfig(
                    host,
                    port,
                    model,
                    loraAdapters,
                    blockSize,
                    blocks,
                    longest,
                    maxBatchedTokens,
                    prefillTokensPerSecond,
                    interTokenMillis,
                    slots,
                    eventsPort,
                    replayPort,
                    topic,
                    replaySteps,
                    replayBytes,
                    dataParallelSize,
                    speedUp,
                    meanOutputTokens,
                    seed != null ? seed : new SecureRandom().nextLong(),
                    handoff);
        }
    }
}

package io.kvasir.registry;

import java.net.URI;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * What a worker instance says of itself: version 1 of the document in {@code
 * docs/spec/registration.md}. A prefill worker and the decode workers that take its blocks say the
 * same model.
 *
 * @param id its name
 * @param generation one run of it, above 0 and greater than that of any run before; 0 only before
 *     it is registered: then it is given one
 * @param state what it is to be used for now
 * @param modelName name under which the model is served; null for its path
 * @param modelPath where the model is, or its name in a hub; null where there is a name
 * @param input what it is sent
 * @param types what it answers; not empty
 * @param role part of a request that it is there for
 * @param url base URL of its server, without {@code /v1}
 * @param dpRanks data-parallel ranks, &ge; 1
 * @param blockSize tokens of a block; 0 where it is not said
 * @param events where its cache events are; null for none
 * @param handoff protocol by which it hands prompts over, and where; null for the usual one
 * @param labels where it is, in the operator's words
 * @param limits what it can hold
 * @param plane what rank 0 is called on an event plane, for routers that are on it; null for none
 * @param adapters its LoRA adapters, as far as they are said
 * @param taints names of what keeps requests from it that do not tolerate that
 */
public record Registration(
        InstanceId id,
        long generation,
        InstanceState state,
        String modelName,
        String modelPath,
        ModelInput input,
        Set<ModelType> types,
        InstanceRole role,
        URI url,
        int dpRanks,
        int blockSize,
        Events events,
        Handoff handoff,
        Map<String, String> labels,
        Limits limits,
        OnPlane plane,
        Adapters adapters,
        Set<String> taints) {
    /** Taints at most. */
    public static final int MOST_TAINTS = 16;

    /** Bytes of a document at most; longer ones are not read. */
    public static final int MAX_BYTES = 64 << 10;

    static final int MOST_RANK = 1 << 16; // in events

    private static final Pattern TAINT = Pattern.compile("[A-Za-z0-9._/-]{1,63}");

    /**
     * Where cache events are.
     *
     * @param endpoint ZMQ endpoint of rank 0; rank {@code r} has the port plus {@code r}
     * @param replay ZMQ endpoint of rank 0's replay socket; null for none
     * @param bind true if the router binds the endpoint and the engine connects to it
     * @param topic ZMQ topic prefix; empty for all
     * @param removals {@code auto}, {@code physical} or {@code last-copy}
     * @param rank rank 0's rank in the events; rank {@code r} has that plus {@code r}
     */
    public record Events(
            String endpoint, String replay, boolean bind, String topic, String removals, int rank) {
        /** Checks that nothing but the replay is left out. */
        public Events {
            Objects.requireNonNull(endpoint, "endpoint");
            Objects.requireNonNull(topic, "topic");
            Objects.requireNonNull(removals, "removals");
            if (rank < 0 || rank > MOST_RANK) {
                throw new IllegalArgumentException(
                        "events.rank=" + rank + " is not within 0.." + MOST_RANK);
            }
        }

        /** Those in which rank 0 is rank 0. */
        public Events(String endpoint, String replay, boolean bind, String topic, String removals) {
            this(endpoint, replay, bind, topic, removals, 0);
        }
    }

    /**
     * How prompts are handed over.
     *
     * @param protocol {@code vllm}, {@code sglang} or {@code trtllm}
     * @param bootstrap {@code HOST:PORT} where decode workers meet it; null for the usual one
     */
    public record Handoff(String protocol, String bootstrap) {
        /** Checks that there is a protocol. */
        public Handoff {
            Objects.requireNonNull(protocol, "protocol");
        }
    }

    /**
     * What an instance can hold; 0 where it is not said.
     *
     * @param kvBlocks blocks of one rank
     * @param maxBatchedTokens tokens of one step of one rank
     */
    public record Limits(long kvBlocks, long maxBatchedTokens) {
        /** Nothing is said. */
        public static final Limits UNKNOWN = new Limits(0, 0);
    }

    /**
     * The identity of an instance on an event plane.
     *
     * @param workerId its number in the events, 0 or more
     * @param rank rank 0's rank there; rank {@code r} has that plus {@code r}
     */
    public record OnPlane(long workerId, int rank) {
        /** Checks the numbers. */
        public OnPlane {
            if (workerId < 0 || rank < 0) {
                throw new IllegalArgumentException(
                        "worker_id=" + workerId + ", rank=" + rank + ": negative");
            }
        }
    }

    /**
     * LoRA adapters of an instance; what it lists itself comes beside them.
     *
     * @param names of those that it serves, in the order given
     * @param numbers what its events call them ({@code lora_id}), by name, above 0
     */
    public record Adapters(Set<String> names, Map<String, Long> numbers) {
        /** Nothing is said. */
        public static final Adapters NONE = new Adapters(Set.of(), Map.of());

        /** Names, and numbers, at most. */
        public static final int MOST = 4_096;

        /** Characters of a name at most. */
        public static final int MOST_NAME_LENGTH = 512;

        /**
         * Checks names and numbers.
         *
         * @throws IllegalArgumentException naming what is wrong, and the limit
         */
        public Adapters {
            names = Collections.unmodifiableSet(new LinkedHashSet<>(names));
            numbers = Collections.unmodifiableMap(new LinkedHashMap<>(numbers));
            check("lora", names);
            check("lora_ids", numbers.keySet());
            final Set<Long> taken = new HashSet<>();
            numbers.forEach(
                    (name, number) -> {
                        if (number < 1 || !taken.add(number)) {
                            throw new IllegalArgumentException(
                                    "lora_ids."
                                            + name
                                            + "="
                                            + number
                                            + " must be a whole number above 0 (0 is the base"
                                            + " model) that no other name has");
                        }
                    });
        }

        private static void check(String key, Set<String> names) {
            if (names.size() > MOST) {
                throw new IllegalArgumentException(
                        key + " has " + names.size() + " adapters, at most " + MOST + " are read");
            }
            for (String name : names) {
                if (name.isBlank() || name.length() > MOST_NAME_LENGTH || !isPlain(name)) {
                    throw new IllegalArgumentException(
                            key
                                    + ": '"
                                    + name.substring(0, Math.min(name.length(), 40))
                                    + "' is no name of an adapter: 1 to "
                                    + MOST_NAME_LENGTH
                                    + " characters, no semicolon or control character among them");
                }
            }
        }

        private static boolean isPlain(String name) {
            return name.chars().noneMatch(c -> c == ';' || Character.isISOControl(c));
        }
    }

    /**
     * Checks that nothing needed is left out and nothing contradicts.
     *
     * @throws IllegalArgumentException naming what is wrong
     */
    public Registration {
        Objects.requireNonNull(id, "id");
        Objects.requireNonNull(state, "state");
        Objects.requireNonNull(input, "input");
        Objects.requireNonNull(url, "url");
        Objects.requireNonNull(limits, "limits");
        Objects.requireNonNull(adapters, "adapters");
        if (types.isEmpty()) {
            throw new IllegalArgumentException("types is empty; name what the instance answers");
        }
        types = Collections.unmodifiableSet(EnumSet.copyOf(types));
        labels = Collections.unmodifiableMap(new LinkedHashMap<>(labels));
        taints = Collections.unmodifiableSet(new LinkedHashSet<>(taints));
        checkTaints(taints);
        if (modelName == null && modelPath == null) {
            throw new IllegalArgumentException("model_name or model_path must be given");
        }
        if (generation < 0 || dpRanks < 1 || blockSize < 0) {
            throw new IllegalArgumentException(
                    "generation="
                            + generation
                            + ", dp_ranks="
                            + dpRanks
                            + ", block_size="
                            + blockSize
                            + ": out of range");
        }
        final boolean prefillOnly = InstanceRole.of(types) == InstanceRole.PREFILL;
        if (prefillOnly != (role == InstanceRole.PREFILL)) {
            throw new IllegalArgumentException(
                    "role="
                            + Fields.spelling(role)
                            + " contradicts types="
                            + types.stream().sorted().map(Fields::spelling).toList()
                            + ": the role prefill has the type prefill alone");
        }
    }

    private static void checkTaints(Set<String> taints) {
        if (taints.size() > MOST_TAINTS) {
            throw new IllegalArgumentException(
                    "taints has " + taints.size() + " names, at most " + MOST_TAINTS);
        }
        for (String taint : taints) {
            if (!TAINT.matcher(taint).matches()) {
                throw new IllegalArgumentException(
                        "taints: '"
                                + taint.substring(0, Math.min(taint.length(), 40))
                                + "' is not 1 to 63 of the characters A-Z a-z 0-9 . _ / -");
            }
        }
    }

    /** Name under which the model is served. */
    public String model() {
        return modelName == null ? modelPath : modelName;
    }

    /** The same of another run. */
    public Registration withGeneration(long newGeneration) {
        return with(newGeneration, state);
    }

    /** The same in another state. */
    public Registration withState(InstanceState newState) {
        return with(generation, newState);
    }

    private Registration with(long newGeneration, InstanceState newState) {
        return new Registration(
                id,
                newGeneration,
                newState,
                modelName,
                modelPath,
                input,
                types,
                role,
                url,
                dpRanks,
                blockSize,
                events,
                handoff,
                labels,
                limits,
                plane,
                adapters,
                taints);
    }

    /**
     * The document: JSON in UTF-8, keys in the order of the specification.
     *
     * @throws RegistryException of kind {@code MALFORMED} if it is longer than readers take
     */
    public byte[] encode() {
        return RegistrationCodec.encode(this);
    }

    /**
     * Reads a document. Unknown keys are ignored.
     *
     * @throws RegistryException of kind {@code MALFORMED} if it is not one; the message names the
     *     key that is missing or wrong
     */
    public static Registration decode(byte[] document) {
        return RegistrationCodec.decode(document);
    }

    /**
     * Starts a registration of an instance that chats and completes, sent text, one rank.
     *
     * @param id its name
     * @param modelName name of the model; null if {@link Builder#modelPath} says it
     * @param url base URL of its server
     */
    public static Builder builder(InstanceId id, String modelName, URI url) {
        return new Builder(id, modelName, url);
    }

    /** Collects what is said; everything has a usual value. */
    public static final class Builder {
        private final InstanceId id;
        private final String modelName;
        private final URI url;
        private long generation;
        private String modelPath;
        private ModelInput input = ModelInput.TEXT;
        private Set<ModelType> types;
        private InstanceRole role;
        private int dpRanks = 1;
        private int blockSize;
        private Events events;
        private Handoff handoff;
        private Map<String, String> labels = Map.of();
        private Limits limits = Limits.UNKNOWN;
        private OnPlane plane;
        private Adapters adapters = Adapters.NONE;
        private Set<String> taints = Set.of();

        private Builder(InstanceId id, String modelName, URI url) {
            this.id = id;
            this.modelName = modelName;
            this.url = url;
        }

        /** One run, above 0; without it, {@link Registrar} gives it one. */
        public Builder generation(long run) {
            generation = run;
            return this;
        }

        /** Where the model is. */
        public Builder modelPath(String path) {
            modelPath = path;
            return this;
        }

        /** What it is sent. */
        public Builder input(ModelInput kind) {
            input = kind;
            return this;
        }

        /**
         * What it answers; says the role too where {@link #role} does not. Where nothing is set, a
         * prefill worker answers prefills, any other one chats and completions.
         */
        public Builder types(Set<ModelType> all) {
            types = Set.copyOf(all);
            return this;
        }

        /** Part of a request that it is there for. */
        public Builder role(InstanceRole part) {
            role = part;
            return this;
        }

        /** Data-parallel ranks. */
        public Builder dpRanks(int count) {
            dpRanks = count;
            return this;
        }

        /** Tokens of a block. */
        public Builder blockSize(int tokens) {
            blockSize = tokens;
            return this;
        }

        /** Where rank 0 publishes its cache events and replays them; no replay: null. */
        public Builder events(String endpoint, String replay) {
            return events(new Events(endpoint, replay, false, "", "auto"));
        }

        /** Where its cache events are. */
        public Builder events(Events where) {
            events = where;
            return this;
        }

        /** How it hands prompts over. */
        public Builder handoff(Handoff how) {
            handoff = how;
            return this;
        }

        /** Where it is, in the operator's words. */
        public Builder labels(Map<String, String> all) {
            labels = all;
            return this;
        }

        /** What it can hold. */
        public Builder limits(Limits all) {
            limits = all;
            return this;
        }

        /** Its identity on an event plane; null for none. */
        public Builder onPlane(OnPlane identity) {
            plane = identity;
            return this;
        }

        /** Its LoRA adapters. */
        public Builder adapters(Adapters all) {
            adapters = all;
            return this;
        }

        /** Names of what keeps requests from it that do not tolerate that. */
        public Builder taints(Set<String> all) {
            taints = all;
            return this;
        }

        /**
         * Makes it.
         *
         * @throws IllegalArgumentException naming what is wrong
         */
        public Registration build() {
            final Set<ModelType> answered = types == null ? usualTypes() : types;
            return new Registration(
                    id,
                    generation,
                    InstanceState.READY,
                    modelName,
                    modelPath,
                    input,
                    answered,
                    role == null ? InstanceRole.of(answered) : role,
                    url,
                    dpRanks,
                    blockSize,
                    events,
                    handoff,
                    labels,
                    limits,
                    plane,
                    adapters,
                    taints);
        }

        private Set<ModelType> usualTypes() {
            return role == InstanceRole.PREFILL
                    ? EnumSet.of(ModelType.PREFILL)
                    : EnumSet.of(ModelType.CHAT, ModelType.COMPLETIONS);
        }
    }
}

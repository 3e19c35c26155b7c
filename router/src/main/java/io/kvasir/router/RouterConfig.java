package io.kvasir.router;

import com.sun.management.OperatingSystemMXBean;

import io.kvasir.core.closing.Closing;
import io.kvasir.core.closing.Uninterrupted;
import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.index.LowerTiersConfig;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.index.StorageTier;
import io.kvasir.core.load.PredictedPrefixesConfig;
import io.kvasir.core.memory.OffHeap;
import io.kvasir.core.memory.RefusedThread;
import io.kvasir.pipeline.events.IndexPipelineConfig;
import io.kvasir.pipeline.ring.WaitMode;
import io.kvasir.pipeline.source.EventPlane;
import io.kvasir.pipeline.source.FreshnessLimits;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.LoadPlane;
import io.kvasir.pipeline.source.ZmqConfig;
import io.kvasir.router.journal.JournalRecord;
import io.kvasir.router.policy.CostModel;
import io.kvasir.router.policy.Eligibility;
import io.kvasir.router.policy.Picker;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.policy.SelectionPolicy;
import io.kvasir.router.policy.builtin.SelectionPolicies;
import io.kvasir.router.replica.ReplicaLink;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.router.settings.Settings;
import io.kvasir.router.settings.SingleFlight;
import io.kvasir.router.settings.WrongSettingsException;
import io.kvasir.router.spi.StateStore;

import org.agrona.ErrorHandler;

import java.lang.management.ManagementFactory;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;

/**
 * What one router is made by: values of the rows of {@link RouterSettings}, and the objects that an
 * embedder gives. Sizes of the parts follow from it. Immutable.
 */
public final class RouterConfig {
    private static final int LEAST_RING = 2; // where no event ever comes

    /** What most of the memory is taken by. */
    private static final List<Setting<?>> SIZES =
            List.of(
                    RouterSettings.MAX_BLOCKS,
                    RouterSettings.MAX_HELD_BLOCKS,
                    RouterSettings.INDEX_BYTES,
                    RouterSettings.MAX_WORKERS,
                    RouterSettings.MAX_TREE_SIZE,
                    RouterSettings.MAX_ACTIVE_REQUESTS);

    private final Settings settings;
    private final PredictedPrefixesConfig predictedOrNull;
    private final SelectionPolicy policy;
    private final Function<Settings, SelectionPolicy> policies;
    private final boolean policyGiven;
    private final RandomSource random;
    private final RandomSource randomOrNull; // an embedder's
    private final LongSupplier clockOrNull;
    private final ReplicaLink replicaLinkOrNull;
    private final Function<EventPlane, ? extends AutoCloseable> eventPlaneOrNull;
    private final Function<LoadPlane, ? extends AutoCloseable> loadPlaneOrNull;
    private final StateStore stateStoreOrNull;
    private final PlaneState planeStateOrNull;
    private final boolean indexed;
    private final long hashSeed;

    private RouterConfig(Builder builder) {
        settings = builder.settings.build();
        policies = builder.policies();
        policyGiven = builder.policyOrNull != null;
        policy = policies.apply(settings);
        indexed = keepsIndex(settings, policy);
        predictedOrNull =
                builder.predictedOrNull == null || !indexed
                        ? predicted(settings, indexed)
                        : builder.predictedOrNull.withMaxWorkerSlots(
                                settings.get(RouterSettings.MAX_WORKERS));
        final Long seed = settings.get(RouterSettings.SEED);
        random = RandomSource.seeded(seed == null ? System.nanoTime() : seed);
        randomOrNull = builder.randomOrNull;
        clockOrNull = builder.clockOrNull;
        replicaLinkOrNull = builder.replicaLinkOrNull;
        eventPlaneOrNull = builder.eventPlaneOrNull;
        loadPlaneOrNull = builder.loadPlaneOrNull;
        planeStateOrNull = builder.planeStateOrNull;
        WrongSettingsException.throwIfAnyFails(
                List.of(
                        this::checkSeed,
                        () -> checkReconnect(settings),
                        () -> checkEngineLoad(settings),
                        () -> checkEngineLimits(settings),
                        () -> checkRoom(settings),
                        () -> checkSingleFlight(settings, indexed),
                        this::checkPlaneState));
        stateStoreOrNull = builder.stateStoreOrNull;
        if (!indexed) {
            refuse("eventPlane", eventPlaneOrNull);
            refuse("stateStore", stateStoreOrNull);
        }
        final Long neededSeed = neededHashSeed();
        hashSeed = neededSeed == null ? new SecureRandom().nextLong() : neededSeed;
    }

    /** What would feed or keep an index that is not there. */
    private void refuse(String part, Object given) {
        if (given != null) {
            throw new IllegalArgumentException(
                    part
                            + " is given, and no index is kept: "
                            + whyNoIndex(settings)
                            + "; set "
                            + RouterSettings.PREFIX_INDEX
                            + "=on, or leave it out");
        }
    }

    /** The settings by which no index is kept. */
    static String whyNoIndex(Settings s) {
        return RouterSettings.PREFIX_INDEX
                + "="
                + RouterSettings.PREFIX_INDEX.print(s.get(RouterSettings.PREFIX_INDEX))
                + ", "
                + RouterSettings.OVERLAP_WEIGHT
                + "="
                + RouterSettings.OVERLAP_WEIGHT.print(s.get(RouterSettings.OVERLAP_WEIGHT));
    }

    static boolean keepsIndex(Settings s, SelectionPolicy policy) {
        return switch (s.get(RouterSettings.PREFIX_INDEX)) {
            case ON -> true;
            case OFF -> false;
            case AUTO -> policy.looksAtEach() || s.get(RouterSettings.OVERLAP_WEIGHT) > 0;
        };
    }

    /**
     * Whether a router of these settings keeps an index; see {@link RouterSettings#PREFIX_INDEX}.
     *
     * @param s values of the rows of {@link RouterSettings}
     */
    public static boolean keepsIndex(Settings s) {
        return keepsIndex(s, SelectionPolicies.named(s.get(RouterSettings.SELECTION_POLICY)));
    }

    /**
     * What was refused, with the settings that memory is taken by, or where it was a thread with
     * what limits those.
     */
    OutOfMemoryError whatToDo(OutOfMemoryError cause) {
        final String ofThread = RefusedThread.textOrNull(cause);
        final OutOfMemoryError said =
                new OutOfMemoryError(ofThread == null ? withSizes(cause) : ofThread);
        said.initCause(cause);
        return said;
    }

    private String withSizes(OutOfMemoryError cause) {
        return "no memory for the index and the bookings: "
                + SIZES.stream()
                        .map(row -> row + "=" + settings.get(row))
                        .collect(Collectors.joining(", "))
                + "; lower them: "
                + cause.getMessage();
    }

    /** Whether an index is kept. */
    boolean isIndexed() {
        return indexed;
    }

    /** Sizes of the index; those of the least one where none is kept. */
    PrefixIndexConfig index() {
        return indexed
                ? index(settings)
                : new PrefixIndexConfig(settings.get(RouterSettings.MAX_WORKERS), 1, 1);
    }

    private static void checkReconnect(Settings s) {
        final Duration pause = s.get(RouterSettings.EVENT_RECONNECT);
        final Duration longest = s.get(RouterSettings.EVENT_RECONNECT_MAX);
        if (longest.compareTo(pause) < 0) {
            throw new IllegalArgumentException(
                    RouterSettings.EVENT_RECONNECT_MAX
                            + "="
                            + longest.toMillis()
                            + " must be "
                            + RouterSettings.EVENT_RECONNECT
                            + "="
                            + pause.toMillis()
                            + " or more");
        }
    }

    private void checkPlaneState() {
        if (planeStateOrNull != null && eventPlaneOrNull == null) {
            throw new IllegalArgumentException("a planeState without an eventPlane");
        }
    }

    private static boolean limitsEngines(Settings s) {
        return s.get(RouterSettings.ENGINE_WAITING_LIMIT) > 0
                || s.get(RouterSettings.ENGINE_USAGE_LIMIT) > 0;
    }

    /** Limits of what is not reported would look as if they protected. */
    private static void checkEngineLoad(Settings s) {
        if (limitsEngines(s) && !s.get(RouterSettings.ENGINE_LOAD)) {
            throw new IllegalArgumentException(
                    RouterSettings.ENGINE_WAITING_LIMIT
                            + " or "
                            + RouterSettings.ENGINE_USAGE_LIMIT
                            + " is set, and no reports are taken; set "
                            + RouterSettings.ENGINE_LOAD
                            + "=true, or leave it out");
        }
    }

    /** Limits that leave no worker out would look so, too. */
    private static void checkEngineLimits(Settings s) {
        if (limitsEngines(s) && s.get(RouterSettings.BUSY_LEASE).isZero()) {
            throw new IllegalArgumentException(
                    RouterSettings.ENGINE_WAITING_LIMIT
                            + " or "
                            + RouterSettings.ENGINE_USAGE_LIMIT
                            + " is set, and a full worker is not left out; set "
                            + RouterSettings.BUSY_LEASE
                            + ", or leave it out");
        }
    }

    /** Load that is not counted would never take any room. */
    static void checkRoom(Settings s) {
        if (s.get(RouterSettings.TRACK_PREFILL_TOKENS)) {
            return;
        }
        WrongSettingsException.throwIfAnyFails(
                List.of(() -> checkBusyTime(s), () -> checkRoomLimits(s)));
    }

    private static void checkBusyTime(Settings s) {
        if (!s.get(RouterSettings.BUSY_TTFT).isZero()) {
            throw new IllegalArgumentException(
                    RouterSettings.BUSY_TTFT
                            + "="
                            + s.get(RouterSettings.BUSY_TTFT).toMillis()
                            + " with "
                            + RouterSettings.TRACK_PREFILL_TOKENS
                            + "=false: no worker ever has tokens to prefill, so none would be busy;"
                            + " leave one of them out");
        }
    }

    private static void checkRoomLimits(Settings s) {
        final RoomLimits room = RoomLimits.of(s);
        if (!room.isNone()) {
            throw new IllegalArgumentException(
                    room.explain()
                            + " with "
                            + RouterSettings.TRACK_PREFILL_TOKENS
                            + "=false: no worker ever has tokens to prefill, so nothing would wait;"
                            + " leave one of them out");
        }
    }

    /** What says that a prompt is uncached must be there. */
    static void checkSingleFlight(Settings s, boolean indexed) {
        if (s.get(RouterSettings.SINGLE_FLIGHT) != SingleFlight.OFF && !indexed) {
            throw new IllegalArgumentException(
                    RouterSettings.SINGLE_FLIGHT
                            + "="
                            + RouterSettings.SINGLE_FLIGHT.print(
                                    s.get(RouterSettings.SINGLE_FLIGHT))
                            + ", and no index is kept, so that every prompt would count as"
                            + " uncached: "
                            + whyNoIndex(s)
                            + "; set "
                            + RouterSettings.PREFIX_INDEX
                            + "=on, or single-flight=off");
        }
    }

    /** Tiers below the device that are followed; null where none is. */
    LowerTiersConfig lowerTiersOrNull() {
        final Set<StorageTier> tiers = TierWeights.of(settings).tiers();
        return indexed && !tiers.isEmpty() ? new LowerTiersConfig(tiers, index()) : null;
    }

    private void checkSeed() {
        final Long set = settings.get(RouterSettings.HASH_SEED);
        if (eventPlaneOrNull != null && set != null && set != BlockHasher.BASE_SEED) {
            throw new IllegalArgumentException(
                    "events of an event plane carry public hashes, and hash-seed is another one;"
                            + " set hash-seed="
                            + BlockHasher.BASE_SEED
                            + " or leave it out");
        }
    }

    /**
     * The seed that hashes in the index must have: the one that is set; among replicas the public
     * one, so that each knows the others' blocks, and on an event plane, whose events carry it;
     * null where any seed will do.
     */
    Long neededHashSeed() {
        final Long set = settings.get(RouterSettings.HASH_SEED);
        final boolean isPublic = replicaLinkOrNull != null || eventPlaneOrNull != null;
        return set == null && isPublic ? (Long) BlockHasher.BASE_SEED : set;
    }

    private RouterConfig(RouterConfig other, long hashSeed) {
        settings = other.settings;
        predictedOrNull = other.predictedOrNull;
        policy = other.policy;
        policies = other.policies;
        policyGiven = other.policyGiven;
        indexed = other.indexed;
        random = other.random;
        randomOrNull = other.randomOrNull;
        clockOrNull = other.clockOrNull;
        replicaLinkOrNull = other.replicaLinkOrNull;
        eventPlaneOrNull = other.eventPlaneOrNull;
        loadPlaneOrNull = other.loadPlaneOrNull;
        stateStoreOrNull = other.stateStoreOrNull;
        planeStateOrNull = other.planeStateOrNull;
        this.hashSeed = hashSeed;
    }

    /** The same with another seed of the hashes in the index. */
    RouterConfig withHashSeed(long seed) {
        return new RouterConfig(this, seed);
    }

    /** Values of the settings. */
    Settings settings() {
        return settings;
    }

    /** The value of a setting. */
    <T> T get(Setting<T> setting) {
        return settings.get(setting);
    }

    /** A number for the values of all settings: the same for equal ones, hardly for others. */
    static long digest(Settings values) {
        final StringBuilder text = new StringBuilder();
        for (Setting<?> row : RouterSettings.TABLE.rows()) {
            text.append(row.name()).append('=').append(values.printed(row)).append('\n');
        }
        return JournalRecord.hash(text.toString());
    }

    /** Sizes of what workers without events are taken to hold; null when nothing is predicted. */
    PredictedPrefixesConfig predictedOrNull() {
        return predictedOrNull;
    }

    /** What decides among workers. */
    SelectionPolicy policy() {
        return policy;
    }

    /** What decides among workers where the settings are these. */
    SelectionPolicy policyOf(Settings values) {
        return policies.apply(values);
    }

    /** Whether the embedder has given the policy, so that no setting names it. */
    boolean isPolicyGiven() {
        return policyGiven;
    }

    /**
     * Where the router takes random numbers.
     *
     * @param errors gets each failure of an embedder's source, which is replaced for that number
     */
    RandomSource random(ErrorHandler errors) {
        return randomOrNull == null ? random : new GuardedRandom(randomOrNull, random, errors);
    }

    /** The clock of deadlines and ticks. */
    LongSupplier clock() {
        return clockOrNull == null ? System::nanoTime : clockOrNull;
    }

    /** Whether a thread of the router ticks, not the embedder. */
    boolean ticksItself() {
        return clockOrNull == null;
    }

    /** The link to the router's replicas; null where it has none. */
    ReplicaLink replicaLinkOrNull() {
        return replicaLinkOrNull;
    }

    /** What feeds the router's event plane; null where it is on none. */
    Function<EventPlane, ? extends AutoCloseable> eventPlaneOrNull() {
        return eventPlaneOrNull;
    }

    /**
     * Opens what feeds load reports of an event plane; null where there are none, or none count.
     */
    Function<LoadPlane, ? extends AutoCloseable> loadPlaneOrNull() {
        return settings.get(RouterSettings.ENGINE_LOAD) ? loadPlaneOrNull : null;
    }

    /** Where snapshots are kept; null for {@link RouterSettings#STATE_DIR}. */
    StateStore stateStoreOrNull() {
        return stateStoreOrNull;
    }

    /** Where what the plane's workers hold is saved; null for nowhere. */
    PlaneState planeStateOrNull() {
        return planeStateOrNull;
    }

    /**
     * Seed of the hashes in the index; where none is set, random, or public among replicas and on
     * an event plane.
     */
    long hashSeed() {
        return hashSeed;
    }

    /**
     * (Worker, block) pairs that the index has room for, {@link RouterSettings#MAX_HELD_BLOCKS} or
     * by default.
     */
    private static long maxHeldBlocks(Settings s) {
        final long held = s.get(RouterSettings.MAX_HELD_BLOCKS);
        return held == 0
                ? Math.min(RouterSettings.MOST_BLOCKS, 2 * s.get(RouterSettings.MAX_BLOCKS))
                : held;
    }

    private static boolean isUnset(Settings s, Setting<?> setting) {
        return s.source(setting) == Settings.Source.DEFAULT;
    }

    /**
     * Memory of the machine, of the container, or allowed off-heap, whichever is least.
     *
     * @return bytes; 0 where this JVM does not say
     * @throws IllegalArgumentException as {@link OffHeap#limit}
     */
    public static double memoryBytes() {
        final long allowed = OffHeap.limit();
        return ManagementFactory.getOperatingSystemMXBean() instanceof OperatingSystemMXBean system
                ? Math.min(allowed, system.getTotalMemorySize())
                : 0;
    }

    /**
     * Sizes of the index of a router.
     *
     * @param s values of the rows of {@link RouterSettings}
     */
    public static PrefixIndexConfig index(Settings s) {
        return sizes(s).with(s.get(RouterSettings.INDEX_FULL));
    }

    private static PrefixIndexConfig sizes(Settings s) {
        final PrefixIndexConfig byLimits =
                new PrefixIndexConfig(
                        s.get(RouterSettings.MAX_WORKERS),
                        s.get(RouterSettings.MAX_BLOCKS),
                        maxHeldBlocks(s));
        if (isUnset(s, RouterSettings.MAX_BLOCKS)
                && isUnset(s, RouterSettings.MAX_HELD_BLOCKS)
                && isUnset(s, RouterSettings.INDEX_BYTES)) {
            final long share =
                    Math.min(
                            RouterSettings.MAX_INDEX_BYTES,
                            (long) (memoryBytes() * s.get(RouterSettings.INDEX_MEMORY_SHARE)));
            return share <= byLimits.budgetBytes()
                    ? byLimits
                    : PrefixIndexConfig.within(s.get(RouterSettings.MAX_WORKERS), share);
        }
        return s.get(RouterSettings.INDEX_BYTES) == RouterSettings.BY_LIMITS
                ? byLimits
                : byLimits.withBudgetBytes(s.get(RouterSettings.INDEX_BYTES));
    }

    /** Sizes and times of the event pipeline. */
    IndexPipelineConfig indexPipeline() {
        return indexed
                ? indexPipeline(settings)
                : IndexPipelineConfig.defaults().withRingSize(LEAST_RING).startedOnDemand();
    }

    /** The same where an index is kept. */
    static IndexPipelineConfig indexPipeline(Settings s) {
        final ZmqConfig usual = ZmqConfig.defaults();
        final int pollers = s.get(RouterSettings.EVENT_POLLERS);
        final long receiveBytes = s.get(RouterSettings.EVENT_RECEIVE_BYTES);
        final int reconnectMs = millis(s.get(RouterSettings.EVENT_RECONNECT));
        final int reconnectMaxMs = millis(s.get(RouterSettings.EVENT_RECONNECT_MAX));
        return IndexPipelineConfig.defaults()
                .withRingSize(s.get(RouterSettings.EVENT_RING_SIZE))
                .withWaitMode(s.get(RouterSettings.EVENT_WAIT))
                .withSnapshotBatches(s.get(RouterSettings.SNAPSHOT_WAITING_MESSAGES))
                .withZmq(
                        new ZmqConfig(
                                pollers == 0 ? usual.pollers() : pollers,
                                millis(s.get(RouterSettings.EVENT_CONNECT_TIMEOUT)),
                                reconnectMs,
                                reconnectMaxMs,
                                s.get(RouterSettings.MAX_EVENT_BYTES),
                                s.get(RouterSettings.EVENT_WAITING_MESSAGES),
                                s.get(RouterSettings.EVENT_WAITING_BYTES),
                                receiveBytes == 0 ? usual.receiveBytes() : receiveBytes,
                                s.get(RouterSettings.CONCURRENT_REPLAYS),
                                millis(s.get(RouterSettings.REPLAY_TIMEOUT)),
                                s.get(RouterSettings.REPLAY_ATTEMPTS),
                                millis(s.get(RouterSettings.REPLAY_TAIL_CHECK))));
    }

    /** When a source counts as stale that does not say so itself. */
    static FreshnessLimits freshness(Settings s) {
        return new FreshnessLimits(
                s.get(RouterSettings.STALE_AFTER).toNanos(),
                s.get(RouterSettings.STALE_AFTER_PROMPTS),
                s.get(RouterSettings.STALE_DECAY).toNanos());
    }

    private static int millis(Duration duration) {
        return (int) Math.min(Integer.MAX_VALUE, duration.toMillis());
    }

    /** What is predicted of workers without events; null for nothing. */
    private static PredictedPrefixesConfig predicted(Settings s, boolean indexed) {
        return indexed && s.get(RouterSettings.APPROXIMATE)
                ? new PredictedPrefixesConfig(
                        s.get(RouterSettings.MAX_WORKERS),
                        s.get(RouterSettings.MAX_TREE_SIZE),
                        s.get(RouterSettings.PRUNE_TARGET_RATIO),
                        s.get(RouterSettings.TTL).toNanos())
                : null;
    }

    /**
     * Collects what a router is made by. Every setting is a row of {@link RouterSettings} and has a
     * default; {@code blockSize} must match the engines. A value out of range is refused when it is
     * set. Owned by one thread.
     */
    public static final class Builder {
        /** Name of a policy of which a part was replaced. */
        private static final String CUSTOM = "custom";

        private Settings.Builder settings = Settings.builder(RouterSettings.TABLE);
        private PredictedPrefixesConfig predictedOrNull; // null: by the settings
        private SelectionPolicy policyOrNull; // null, as the three after it: by the settings
        private Eligibility eligibilityOrNull;
        private CostModel costModelOrNull;
        private Picker pickerOrNull;
        private RandomSource randomOrNull; // null: by the settings
        private LongSupplier clockOrNull; // null: a thread of the router ticks, by nanoTime
        private ReplicaLink replicaLinkOrNull; // null: no replicas
        private Function<EventPlane, ? extends AutoCloseable> eventPlaneOrNull; // null: none
        private Function<LoadPlane, ? extends AutoCloseable> loadPlaneOrNull; // null: none
        private StateStore stateStoreOrNull; // null: by the settings
        private PlaneState planeStateOrNull; // null: nothing of it is saved

        Builder() {}

        /**
         * Sets a knob.
         *
         * @param setting a row of {@link RouterSettings}
         * @param value in its range
         * @return this
         * @throws IllegalArgumentException if it is out of range
         */
        public <T> Builder set(Setting<T> setting, T value) {
            settings.set(setting, value);
            return this;
        }

        /**
         * Sets a knob by name.
         *
         * @param name of a row of {@link RouterSettings}, as in flags and files
         * @param value as it is written there
         * @return this
         * @throws IllegalArgumentException if there is no such knob, or it has no such value
         * @throws NullPointerException if one of them is null; the message says which
         */
        public Builder set(String name, String value) {
            settings.parse(RouterSettings.TABLE.named(name), value, Settings.Source.CODE, "code");
            return this;
        }

        /**
         * Takes over all values; those set before are dropped.
         *
         * @param values of these settings, and of any others, which are not read
         * @return this
         */
        public Builder settings(Settings values) {
            settings = Objects.requireNonNull(values, "values").toBuilder();
            return this;
        }

        /** The values that are set, and the defaults. */
        public Settings settings() {
            return settings.build();
        }

        /** Sets {@link RouterSettings#BLOCK_SIZE}. */
        public Builder blockSize(int tokens) {
            return set(RouterSettings.BLOCK_SIZE, tokens);
        }

        /** Sets {@link RouterSettings#MAX_WORKERS}. */
        public Builder maxWorkers(int count) {
            return set(RouterSettings.MAX_WORKERS, count);
        }

        /** Sets {@link RouterSettings#MAX_BLOCKS} and {@link RouterSettings#MAX_HELD_BLOCKS}. */
        public Builder maxBlocks(long distinct, long held) {
            return set(RouterSettings.MAX_BLOCKS, distinct)
                    .set(RouterSettings.MAX_HELD_BLOCKS, held);
        }

        /** Sets {@link RouterSettings#INDEX_BYTES}. */
        public Builder indexBytes(long bytes) {
            return set(RouterSettings.INDEX_BYTES, bytes);
        }

        /** Sets {@link RouterSettings#MAX_ACTIVE_REQUESTS}. */
        public Builder maxActiveRequests(int count) {
            return set(RouterSettings.MAX_ACTIVE_REQUESTS, count);
        }

        /** Sets {@link RouterSettings#MAX_BLOCKS_PER_REQUEST}. */
        public Builder maxBlocksPerRequest(int count) {
            return set(RouterSettings.MAX_BLOCKS_PER_REQUEST, count);
        }

        /** Sets {@link RouterSettings#MODE}. */
        public Builder mode(RoutingMode routingMode) {
            return set(RouterSettings.MODE, routingMode);
        }

        /** Sets {@link RouterSettings#OVERLAP_WEIGHT}. */
        public Builder overlapWeight(double weight) {
            return set(RouterSettings.OVERLAP_WEIGHT, weight);
        }

        /** Sets {@link RouterSettings#TEMPERATURE}. */
        public Builder temperature(double value) {
            return set(RouterSettings.TEMPERATURE, value);
        }

        /** Sets {@link RouterSettings#DEGRADED_CREDIT}. */
        public Builder degradedCredit(double credit) {
            return set(RouterSettings.DEGRADED_CREDIT, credit);
        }

        /** Sets {@link RouterSettings#TRACK_OUTPUT_BLOCKS}. */
        public Builder trackOutputBlocks(boolean track) {
            return set(RouterSettings.TRACK_OUTPUT_BLOCKS, track);
        }

        /** Sets {@link RouterSettings#BOOKING_WAIT}. */
        public Builder bookingWait(WaitMode mode) {
            return set(RouterSettings.BOOKING_WAIT, mode);
        }

        /**
         * Predicts what workers hold that have no event source: a worker is taken to hold the full
         * blocks of every prompt that was booked on it in the last {@code ttlNs}, as long as they
         * fit. A worker with an event source is judged by its events alone. Ages are measured by
         * {@link KvRouter#tick}, to its accuracy: without ticks nothing grows old.
         *
         * <p>A predicted block counts as a cached one; {@link Decision#state} says {@link
         * IndexState#PREDICTED}. {@link RouterSettings#APPROXIMATE} and the rows after it do the
         * same with usual sizes.
         *
         * @param config limits and ages, instead of those of the settings; its worker slots are set
         *     to {@code maxWorkers}
         * @return this
         */
        public Builder routedPrefixes(PredictedPrefixesConfig config) {
            predictedOrNull = config;
            return this;
        }

        /**
         * What decides among workers, instead of the one that {@link
         * RouterSettings#SELECTION_POLICY} names. {@link #eligibility}, {@link #costModel} and
         * {@link #picker} replace a part of it.
         *
         * @param policy default {@link SelectionPolicy#LINEAR}
         * @return this
         */
        public Builder selectionPolicy(SelectionPolicy policy) {
            policyOrNull = Objects.requireNonNull(policy, "selectionPolicy");
            return this;
        }

        /**
         * Which workers may be chosen.
         *
         * @param rule default that of the policy
         * @return this
         */
        public Builder eligibility(Eligibility rule) {
            eligibilityOrNull = Objects.requireNonNull(rule, "eligibility");
            return this;
        }

        /**
         * The cost function.
         *
         * @param model default that of the policy
         * @return this
         */
        public Builder costModel(CostModel model) {
            costModelOrNull = Objects.requireNonNull(model, "costModel");
            return this;
        }

        /**
         * Which of the priced workers is taken in mode {@link RoutingMode#KV}.
         *
         * @param choice default that of the policy
         * @return this
         */
        public Builder picker(Picker choice) {
            pickerOrNull = Objects.requireNonNull(choice, "picker");
            return this;
        }

        /** What decides among workers, by the settings and by what is given here. */
        private Function<Settings, SelectionPolicy> policies() {
            final SelectionPolicy policy = policyOrNull;
            final Eligibility eligibility = eligibilityOrNull;
            final CostModel costModel = costModelOrNull;
            final Picker picker = pickerOrNull;
            return values -> {
                final SelectionPolicy made =
                        policy == null
                                ? SelectionPolicies.named(
                                        values.get(RouterSettings.SELECTION_POLICY))
                                : policy;
                return eligibility == null && costModel == null && picker == null
                        ? made
                        : new SelectionPolicy(
                                CUSTOM,
                                eligibility == null ? made.eligibility() : eligibility,
                                costModel == null ? made.costModel() : costModel,
                                picker == null ? made.picker() : picker);
            };
        }

        /**
         * The random source of ties, sampling and random mode. Where it throws, or answers with a
         * number out of range, one of {@link RouterSettings#SEED} is taken instead; {@link
         * RouterStatus#failures} counts it.
         *
         * @param source default by {@link RouterSettings#SEED}
         * @return this
         */
        public Builder random(RandomSource source) {
            randomOrNull = Objects.requireNonNull(source, "random");
            return this;
        }

        /**
         * Has the router keep snapshots of its index in a store, instead of the files of {@link
         * RouterSettings#STATE_DIR}.
         *
         * @param store no other router's; closed with the router, or when {@link #build} fails.
         *     Messages have its {@code toString} where it has one of its own
         * @return this
         */
        public Builder stateStore(StateStore store) {
            stateStoreOrNull = Objects.requireNonNull(store, "store");
            return this;
        }

        /**
         * Has the router share its bookings with its replicas, routers over the same workers under
         * the same names, so that each one's load is that of all. Where {@link
         * RouterSettings#HASH_SEED} is not set, hashes have the public seed then. With {@link
         * #tickedBy} it is the ticks that send and receive.
         *
         * @param link to the other routers; closed with the router, or when {@link #build} fails
         * @return this
         */
        public Builder replicaLink(ReplicaLink link) {
            replicaLinkOrNull = Objects.requireNonNull(link, "link");
            return this;
        }

        /**
         * Has the router learn what its workers hold from an event plane, where all of them speak
         * over one subscription, besides those that have an endpoint of their own. Workers are
         * registered with {@link WorkerSpec#onEventPlane}. Events carry public hashes, so {@link
         * RouterSettings#HASH_SEED} must be the public seed, which it is where it is not set.
         *
         * <pre>{@code
         * builder.eventPlane(plane -> new JetStreamEventSource(access, names, null, plane))
         * }</pre>
         *
         * @param source opens what feeds the plane, called once, when the router is there; what it
         *     gives is closed with the router
         * @return this
         */
        public Builder eventPlane(Function<EventPlane, ? extends AutoCloseable> source) {
            eventPlaneOrNull = Objects.requireNonNull(source, "source");
            return this;
        }

        /**
         * Has the load reports of an event plane counted, of workers that are on it ({@link
         * WorkerSpec#onEventPlane}), where {@link RouterSettings#ENGINE_LOAD} is on.
         *
         * @param source opens what feeds them; closed with the router
         * @return this
         */
        public Builder loadPlane(Function<LoadPlane, ? extends AutoCloseable> source) {
            loadPlaneOrNull = Objects.requireNonNull(source, "source");
            return this;
        }

        /**
         * Has what the workers of the {@link #eventPlane} hold be restored when they are
         * registered, and saved for the other routers over the same plane.
         *
         * @param state closed with the router, or when {@link #build} fails
         * @return this
         */
        public Builder planeState(PlaneState state) {
            planeStateOrNull = Objects.requireNonNull(state, "state");
            return this;
        }

        /**
         * Has the embedder call {@link KvRouter#tick}, a few times a second, instead of a thread of
         * the router. For a maintenance thread that exists already, and for simulated time.
         *
         * @param nanoClock the clock of its ticks and of all deadlines; read by {@link
         *     KvRouter#reserve}, on its callers' threads. It must not go back: bookings end by the
         *     highest time that was ever ticked, so that one that jumps back ends none until it has
         *     caught up
         * @return this
         */
        public Builder tickedBy(LongSupplier nanoClock) {
            clockOrNull = Objects.requireNonNull(nanoClock, "nanoClock");
            return this;
        }

        /**
         * Allocates the off-heap memory and starts the two writer threads, and the one that ticks.
         * Also in an interrupted thread, which is interrupted again afterwards.
         *
         * <p>What is given to be closed with the router ({@link #stateStore}, {@link #planeState},
         * {@link #replicaLink}) is closed as well where this fails, at whatever step.
         *
         * @return a router without workers
         * @throws OutOfMemoryError if the operating system or the JVM refuses the memory, or a
         *     thread; the message has the settings that memory is taken by, or the limit of threads
         */
        public KvRouter build() {
            final RouterConfig config;
            try {
                config = config();
            } catch (Throwable t) {
                Closing.after(t, stateStoreOrNull, planeStateOrNull, replicaLinkOrNull);
                throw t;
            }
            try {
                return Uninterrupted.get(() -> KvRouter.start(config, new PartMaker()));
            } catch (OutOfMemoryError e) {
                throw config.whatToDo(e);
            }
        }

        /**
         * Checks that a router can be made of what is set here, as {@link #build} does, and makes
         * none.
         *
         * @throws IllegalArgumentException if it cannot; the message names the settings
         */
        public void check() {
            var _ = config();
        }

        RouterConfig config() {
            return new RouterConfig(this);
        }
    }
}

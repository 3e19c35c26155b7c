package io.kvasir.pipeline.source;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.index.StorageTier;
import io.kvasir.pipeline.wire.LoraNumbers;

import java.util.Map;
import java.util.Objects;
import java.util.Set;

/**
 * Where the events of one (worker, data-parallel rank) come from and how they are read.
 *
 * @param name name of the worker in logs and messages
 * @param slot worker slot of the index that the events feed
 * @param dpRank data-parallel rank, 0 for a single one; each rank has a source of its own
 * @param blockSize tokens per block; stores of another size are dropped and say so
 * @param endpoint ZMQ address of the publisher, e.g. {@code tcp://10.0.0.7:5557}; empty for a
 *     source that is fed directly
 * @param bind true if the publisher connects to us: then {@code endpoint} is bound
 * @param replayEndpoint ZMQ address that answers replay requests; null if there is none
 * @param topic prefix of the topics to receive; empty = all
 * @param removals what a removal means
 * @param rootStoresRefresh whether a root store of blocks already held only reports them, as
 *     engines do for requests that ask for a full cache report
 * @param freshness when the source counts as stale; a router has {@link FreshnessLimits#DEFAULT}
 *     mean its own settings
 * @param hashSeed seed of the local hashes that the events' tokens get: that of the index they feed
 * @param form what the messages are
 * @param loraNumbers names of LoRA adapters by the numbers that the engine gives them in every life
 *     of its, for events that say a number alone
 * @param tiers tiers below the device whose blocks are indexed, too
 */
public record SourceConfig(
        String name,
        int slot,
        int dpRank,
        int blockSize,
        String endpoint,
        boolean bind,
        String replayEndpoint,
        String topic,
        RemovalRule removals,
        boolean rootStoresRefresh,
        FreshnessLimits freshness,
        long hashSeed,
        MessageForm form,
        Map<Long, String> loraNumbers,
        Set<StorageTier> tiers) {
    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if a number is out of range, or the messages carry public
     *     hashes and the index has others
     */
    public SourceConfig {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(endpoint, "endpoint");
        Objects.requireNonNull(topic, "topic");
        Objects.requireNonNull(removals, "removals");
        Objects.requireNonNull(freshness, "freshness");
        Objects.requireNonNull(form, "form");
        tiers = Set.copyOf(tiers);
        if (slot < 0 || dpRank < 0) {
            throw new IllegalArgumentException(
                    "slot and dpRank must not be negative: slot=" + slot + ", dpRank=" + dpRank);
        }
        if (blockSize <= 0) {
            throw new IllegalArgumentException(
                    "blockSize must be positive: blockSize=" + blockSize + ", source=" + name);
        }
        if (form == MessageForm.ROUTER_EVENT && hashSeed != BlockHasher.BASE_SEED) {
            throw new IllegalArgumentException(
                    "the events of "
                            + name
                            + " carry public hashes, and the index has a seed of its own: set"
                            + " hash-seed="
                            + BlockHasher.BASE_SEED);
        }
        LoraNumbers.check(loraNumbers);
        loraNumbers = Map.copyOf(loraNumbers);
        if (replayEndpoint != null && replayEndpoint.isEmpty()) {
            replayEndpoint = null;
        }
    }

    /**
     * A source that connects to a publisher, has no replay address, takes all topics, judges
     * removals by itself and makes public hashes.
     *
     * @param name name of the worker
     * @param slot worker slot of the index
     * @param blockSize tokens per block
     * @param endpoint address of the publisher; empty for a source that is fed directly
     */
    public static SourceConfig of(String name, int slot, int blockSize, String endpoint) {
        return new SourceConfig(
                name,
                slot,
                0,
                blockSize,
                endpoint,
                false,
                null,
                "",
                RemovalRule.AUTO,
                false,
                FreshnessLimits.DEFAULT,
                BlockHasher.BASE_SEED,
                MessageForm.ENGINE_BATCH,
                Map.of(),
                Set.of());
    }

    /**
     * A source of router events, fed by an {@link EventPlane}. One removal ends all copies of a
     * block: publishers of router events count copies themselves.
     *
     * @param name name of the worker
     * @param slot worker slot of the index
     * @param blockSize tokens per block, which the events do not say
     */
    public static SourceConfig ofRouterEvents(String name, int slot, int blockSize) {
        final Edit edit = new Edit(of(name, slot, blockSize, ""));
        edit.removals = RemovalRule.LAST_COPY;
        edit.form = MessageForm.ROUTER_EVENT;
        return edit.build();
    }

    /** Worker and rank, as log lines name them. */
    String label() {
        return name + "/" + dpRank;
    }

    /** Whether there is an address that answers replay requests. */
    boolean isReplayable() {
        return replayEndpoint != null;
    }

    /** The same source feeding another worker slot. */
    public SourceConfig withSlot(int workerSlot) {
        final Edit edit = new Edit(this);
        edit.slot = workerSlot;
        return edit.build();
    }

    /** The same source for another rank. */
    public SourceConfig withDpRank(int rank) {
        final Edit edit = new Edit(this);
        edit.dpRank = rank;
        return edit.build();
    }

    /** The same source, bound instead of connected or the other way round. */
    public SourceConfig withBind(boolean bound) {
        final Edit edit = new Edit(this);
        edit.bind = bound;
        return edit.build();
    }

    /** The same source with an address that answers replay requests; null for none. */
    public SourceConfig withReplayEndpoint(String address) {
        final Edit edit = new Edit(this);
        edit.replayEndpoint = address;
        return edit.build();
    }

    /** The same source with a topic filter; empty = all. */
    public SourceConfig withTopic(String prefix) {
        final Edit edit = new Edit(this);
        edit.topic = prefix;
        return edit.build();
    }

    /** The same source with another meaning of removals. */
    public SourceConfig withRemovals(RemovalRule rule) {
        final Edit edit = new Edit(this);
        edit.removals = rule;
        return edit.build();
    }

    /** The same source, root stores of held blocks being reports or copies. */
    public SourceConfig withRootStoresRefresh(boolean refresh) {
        final Edit edit = new Edit(this);
        edit.rootStoresRefresh = refresh;
        return edit.build();
    }

    /** The same source with other limits of staleness. */
    public SourceConfig withFreshness(FreshnessLimits limits) {
        final Edit edit = new Edit(this);
        edit.freshness = limits;
        return edit.build();
    }

    /** The same source for an index whose local hashes have another seed. */
    public SourceConfig withHashSeed(long seed) {
        final Edit edit = new Edit(this);
        edit.hashSeed = seed;
        return edit.build();
    }

    /** The same source with names of LoRA adapters by number. */
    public SourceConfig withLoraNumbers(Map<Long, String> names) {
        final Edit edit = new Edit(this);
        edit.loraNumbers = names;
        return edit.build();
    }

    /** The same source of which the blocks of these tiers below the device are wanted, too. */
    public SourceConfig withTiers(Set<StorageTier> indexed) {
        final Edit edit = new Edit(this);
        edit.tiers = indexed;
        return edit.build();
    }

    /** A copy in which single values can be changed. */
    private static final class Edit {
        private final String name;
        private int slot;
        private int dpRank;
        private final int blockSize;
        private final String endpoint;
        private boolean bind;
        private String replayEndpoint;
        private String topic;
        private RemovalRule removals;
        private boolean rootStoresRefresh;
        private FreshnessLimits freshness;
        private long hashSeed;
        private MessageForm form;
        private Map<Long, String> loraNumbers;
        private Set<StorageTier> tiers;

        private Edit(SourceConfig from) {
            name = from.name;
            slot = from.slot;
            dpRank = from.dpRank;
            blockSize = from.blockSize;
            endpoint = from.endpoint;
            bind = from.bind;
            replayEndpoint = from.replayEndpoint;
            topic = from.topic;
            removals = from.removals;
            rootStoresRefresh = from.rootStoresRefresh;
            freshness = from.freshness;
            hashSeed = from.hashSeed;
            form = from.form;
            loraNumbers = from.loraNumbers;
            tiers = from.tiers;
        }

        private SourceConfig build() {
            return new SourceConfig(
                    name,
                    slot,
                    dpRank,
                    blockSize,
                    endpoint,
                    bind,
                    replayEndpoint,
                    topic,
                    removals,
                    rootStoresRefresh,
                    freshness,
                    hashSeed,
                    form,
                    loraNumbers,
                    tiers);
        }
    }
}

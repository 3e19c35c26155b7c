package io.kvasir.services.indexer;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.index.HeldRunVisitor;
import io.kvasir.core.index.LowerTiers;
import io.kvasir.core.index.LowerTiersConfig;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.index.StorageTier;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.events.IndexPipelineConfig;
import io.kvasir.pipeline.source.EventSource;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.services.http.GroupKey;
import io.kvasir.services.http.ServiceException;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * The index of one model and routing group, with the public hash seed, and the slots of its
 * tenants. Slots are given and taken under the registry's lock; all else is for any thread.
 */
public final class IndexGroup implements AutoCloseable {
    private static final Tenant[] NO_TENANTS = {};
    private static final long[] NO_HASHES = {};
    private static final long SWEEP_S = 5; // it takes milliseconds
    private static final Set<StorageTier> TIERS =
            Set.of(StorageTier.HOST, StorageTier.DISK, StorageTier.SHARED);

    /** Results of the matches of a prompt. */
    private record Scores(
            OverlapScores device, OverlapScores host, OverlapScores disk, OverlapScores shared) {
        static Scores of(int slots) {
            return new Scores(
                    new OverlapScores(slots),
                    new OverlapScores(slots),
                    new OverlapScores(slots),
                    new OverlapScores(1));
        }
    }

    final GroupKey key;
    final int blockSize;
    private final PrefixIndex index;
    private final LowerTiers lower;
    private final IndexPipeline pipeline;
    private final BlockingQueue<Integer> sweptSlots = new LinkedBlockingQueue<>();
    private int sweeping; // slots that are, or wait in the queue; guarded by the registry's lock
    private final Queue<Scores> scores = new ConcurrentLinkedQueue<>();
    private int nextSlot;

    /** By slot, null for one without a tenant; replaced as a whole, so that a reader has a view. */
    private volatile Tenant[] tenants = NO_TENANTS;

    /**
     * Starts an empty index.
     *
     * @throws OutOfMemoryError if the operating system refuses the memory
     */
    IndexGroup(GroupKey key, int blockSize, PrefixIndexConfig sizes) {
        this.key = key;
        this.blockSize = blockSize;
        this.index = new PrefixIndex(sizes);
        try {
            this.lower = new LowerTiers(index, new LowerTiersConfig(TIERS, sizes), index.gate());
            this.pipeline =
                    new IndexPipeline(IndexPipelineConfig.defaults(), index, lower, _ -> {});
        } catch (Throwable t) {
            index.close();
            throw t;
        }
    }

    /**
     * Gives a rank a slot; waits for one that is being swept where there is no other. Under the
     * registry's lock.
     *
     * @throws ServiceException 503 when all slots are taken
     */
    Tenant admit(long instance, int dpRank) throws ServiceException {
        final int slot = freeSlot();
        final Tenant tenant = new Tenant(instance, dpRank, slot);
        final Tenant[] seen = tenants;
        final Tenant[] changed = Arrays.copyOf(seen, Math.max(seen.length, slot + 1));
        changed[slot] = tenant;
        tenants = changed;
        return tenant;
    }

    private int freeSlot() throws ServiceException {
        final int most = index.config().maxWorkerSlots();
        final Integer sweptOrNull =
                nextSlot == most && sweeping > 0 ? awaitSwept() : sweptSlots.poll();
        if (sweptOrNull != null) {
            sweeping--;
            return sweptOrNull;
        }
        if (nextSlot == most) {
            throw ServiceException.noRoom(
                    "as many ranks are registered as may be ("
                            + most
                            + "; --max-workers), or the slots of removed ones are being swept");
        }
        return nextSlot++;
    }

    /** Null where none is swept in time. */
    private Integer awaitSwept() {
        try {
            return sweptSlots.poll(SWEEP_S, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return null;
        }
    }

    /** Forgets a rank and what it holds. Under the registry's lock. */
    void dismiss(Tenant tenant) {
        sweeping++;
        final Tenant[] changed = tenants.clone();
        changed[tenant.slot] = null;
        tenants = changed; // before the slot is swept: no answer names the tenant any more
        pipeline.retire(tenant.slot, () -> sweptSlots.add(tenant.slot));
    }

    /**
     * Opens the event source of a tenant.
     *
     * @param endpoint address of the engine's publisher
     * @param replayEndpoint address of its replay socket; null for none
     * @throws IllegalArgumentException if an address is none
     */
    EventSource open(Tenant tenant, String endpoint, String replayEndpoint) {
        return pipeline.openZmq(source(tenant, endpoint, replayEndpoint));
    }

    /**
     * The same for a tenant with blocks of a peer's dump; see {@link
     * IndexPipeline#openZmqOnLoaded}.
     */
    EventSource openRecovered(Tenant tenant, String endpoint, String replayEndpoint) {
        return pipeline.openZmqOnLoaded(source(tenant, endpoint, replayEndpoint));
    }

    private SourceConfig source(Tenant tenant, String endpoint, String replayEndpoint) {
        return SourceConfig.of(
                        Long.toUnsignedString(tenant.instance), tenant.slot, blockSize, endpoint)
                .withDpRank(tenant.dpRank)
                .withReplayEndpoint(replayEndpoint);
    }

    /**
     * Finds how many leading tokens each rank holds, or can load.
     *
     * @param tokens the prompt
     * @param loraName adapter that it is for; null for none
     * @param cacheSalt what keeps it apart from other tenants' prompts; null for nothing
     * @return ranks that hold a block, in no particular order
     */
    public List<Match> match(int[] tokens, String loraName, String cacheSalt) {
        final long seed = BlockHasher.seed(loraName, cacheSalt);
        final long[] hashes = new long[BlockHasher.blockCount(tokens.length, blockSize)];
        BlockHasher.localHashes(tokens, 0, tokens.length, blockSize, seed, hashes);
        return match(hashes, eagleHashes(tokens, seed));
    }

    /**
     * Local hashes of a prompt's blocks as engines that draft with EAGLE have them, each with the
     * token after it.
     *
     * @param tokens the prompt
     * @param seed see {@link BlockHasher#seed}
     * @return empty where no engine has announced such blocks
     */
    public long[] eagleHashes(int[] tokens, long seed) {
        if (!pipeline.hasEagleBlocks()) {
            return NO_HASHES;
        }
        final long[] hashes =
                new long[BlockHasher.blockCount(Math.max(0, tokens.length - 1), blockSize)];
        BlockHasher.eagleLocalHashes(tokens, 0, tokens.length, blockSize, seed, hashes);
        return hashes;
    }

    /**
     * The same by local hashes of both kinds.
     *
     * @param localHashes of the prompt's blocks
     * @param eagleHashes as of {@link #eagleHashes}
     * @return ranks that hold a block, in no particular order
     */
    public List<Match> match(long[] localHashes, long[] eagleHashes) {
        final List<Match> plain = match(localHashes, localHashes.length);
        if (eagleHashes.length == 0) {
            return plain;
        }
        final Map<Match.Rank, Match> both = new HashMap<>();
        plain.forEach(match -> both.put(match.rank(), match));
        match(eagleHashes, eagleHashes.length)
                .forEach(match -> both.merge(match.rank(), match, Match::longer));
        return List.copyOf(both.values());
    }

    /**
     * The same by local hashes of one kind.
     *
     * @param localHashes of the prompt's blocks
     * @param count leading blocks of the prompt
     * @return ranks that hold a block, in no particular order
     */
    public List<Match> match(long[] localHashes, int count) {
        final Scores spare = scores.poll();
        final Scores found = spare == null ? Scores.of(index.config().maxWorkerSlots()) : spare;
        final Tenant[] before = tenants;
        index.match(localHashes, count, found.device);
        lower.match(StorageTier.HOST, localHashes, count, found.host);
        lower.match(StorageTier.DISK, localHashes, count, found.disk);
        final int shared = lower.match(StorageTier.SHARED, localHashes, count, found.shared);
        final Tenant[] after = tenants;
        final List<Match> matches = new ArrayList<>(found.device.matchedSlots());
        for (int slot = 0; slot < before.length; slot++) {
            // a rank that had the slot before the match and still has it had it during the match
            if (before[slot] != null && before[slot] == after[slot]) {
                final Match match = match(before[slot], found, shared);
                if (match.withShared() > 0) {
                    matches.add(match);
                }
            }
        }
        scores.add(found);
        return matches;
    }

    private Match match(Tenant tenant, Scores found, int shared) {
        final int device = found.device.depth(tenant.slot);
        final int withHost = Math.max(device, found.host.depth(tenant.slot));
        final int withDisk = Math.max(withHost, found.disk.depth(tenant.slot));
        return new Match(
                tenant.instance,
                tenant.dpRank,
                tokens(device),
                tokens(withHost),
                tokens(withDisk),
                tokens(Math.max(withDisk, shared)));
    }

    /** Hashes may be asked for of more blocks than a prompt can have. */
    private int tokens(int blocks) {
        return (int) Math.min(Integer.MAX_VALUE, (long) blocks * blockSize);
    }

    /** Tokens per block. */
    public int blockSize() {
        return blockSize;
    }

    /** Ranks that have a slot now. */
    List<Tenant> tenants() {
        return Arrays.stream(tenants).filter(tenant -> tenant != null).toList();
    }

    /** Whether a rank has its slot still. */
    boolean has(Tenant tenant) {
        final Tenant[] seen = tenants;
        return tenant.slot < seen.length && seen[tenant.slot] == tenant;
    }

    /** See {@link IndexPipeline#visitRuns}. */
    int visitRuns(Tenant tenant, int from, int mostBlocks, HeldRunVisitor visitor)
            throws InterruptedException {
        return pipeline.visitRuns(tenant.slot, from, mostBlocks, visitor);
    }

    /** See {@link IndexPipeline#hasEagleBlocks}. */
    boolean hasEagleBlocks() {
        return pipeline.hasEagleBlocks();
    }

    /** See {@link IndexPipeline#expectEagleBlocks}. */
    void expectEagleBlocks() {
        pipeline.expectEagleBlocks();
    }

    /** See {@link IndexPipeline#loadBlocks}. */
    boolean load(
            Tenant tenant, boolean root, long parent, long[] engineHashes, long[] localHashes) {
        return pipeline.loadBlocks(
                tenant.slot, root, parent, engineHashes, localHashes, localHashes.length);
    }

    /** Blocks that are held, once for each rank that holds them. */
    long heldBlocks() {
        return index.heldBlocks();
    }

    /** Bytes of the index that are in use. */
    long usedBytes() {
        return index.usedBytes();
    }

    /** Stops all sources and gives the memory back; questions under way get an exception. */
    @Override
    public void close() {
        try {
            pipeline.close();
        } finally {
            index.close();
        }
    }
}

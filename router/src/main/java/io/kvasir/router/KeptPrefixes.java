package io.kvasir.router;

import io.kvasir.core.index.IndexMemory;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.memory.DiskRoom;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.events.KeptSlot;
import io.kvasir.pipeline.source.EventPlane;
import io.kvasir.pipeline.source.PlanePosition;
import io.kvasir.pipeline.source.StreamStart;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * What an earlier process has left in the memory of the index: blocks of worker slots, each waiting
 * for its worker to be registered again. A slot whose worker does not come is given up after a
 * while, or when its room is needed. Any thread.
 */
final class KeptPrefixes {
    private static final Logger LOG = LoggerFactory.getLogger(KeptPrefixes.class);
    private static final String FILE = "prefixes.index";

    /** How long a slot waits for its worker. */
    static final long WAIT_NS = TimeUnit.MINUTES.toNanos(10);

    private final IndexPipeline pipeline;
    private final PrefixIndex index;
    private final EventPlane planeOrNull; // null where workers of a plane are not kept
    private final Map<KeptTenant, KeptSlot> waiting = new HashMap<>(); // guarded by this
    private final List<Integer> useless = new ArrayList<>(); // slots; guarded by this
    private long firstTickNs; // guarded by this
    private boolean ticked; // guarded by this

    /**
     * @param planeOrNull whose position was kept with the slots of its workers; null where that is
     *     of no use
     */
    KeptPrefixes(IndexPipeline pipeline, PrefixIndex index, EventPlane planeOrNull) {
        this.pipeline = pipeline;
        this.index = index;
        this.planeOrNull = planeOrNull;
        for (KeptSlot slot : pipeline.keptSlots()) {
            final KeptTenant tenant = KeptTenant.orNull(slot.label());
            if (!slot.isResumable() || !isOfUse(tenant) || waiting.containsKey(tenant)) {
                useless.add(slot.slot());
                continue;
            }
            waiting.put(tenant, slot);
            if (tenant.planeOrNull() != null) {
                planeOrNull.expect(tenant.planeOrNull().workerId(), tenant.planeOrNull().dpRank());
            }
        }
    }

    private boolean isOfUse(KeptTenant tenant) {
        return tenant != null
                && (tenant.planeOrNull() == null
                        || (planeOrNull != null && pipeline.keptPositionOrNull() != null));
    }

    /**
     * Opens the file of the index, or makes it.
     *
     * @param seedOrNull seed that the hashes must have; null for that of the file
     * @param newSeed where there is no file that can be used
     * @param savedMs until when snapshots follow workers, in ms since 1970: an older file is not
     *     used; 0 where there are none
     * @throws IllegalStateException if another has it
     * @throws IOException if it cannot be made
     */
    static IndexMemory open(
            Path folder,
            PrefixIndexConfig config,
            int blockSize,
            Long seedOrNull,
            long newSeed,
            long savedMs)
            throws IOException {
        final Path file = folder.resolve(FILE);
        final IndexMemory memory =
                IndexMemory.open(file, config, blockSize, seedOrNull, newSeed, savedMs);
        if (memory.discardedOrNull() != null) {
            LOG.warn("{} begins empty: {}", file, memory.discardedOrNull());
        } else if (memory.isReopened()) {
            LOG.info(
                    "{} continues{}: {} words of an unfinished event were taken back",
                    file,
                    memory.wasKilled() ? " after its process was killed" : "",
                    memory.wordsTakenBack());
        } else {
            LOG.info("{} was made, {} MiB", file, memory.length() >> 20);
        }
        return memory;
    }

    /**
     * Checks that the file of the index can be opened or made, and leaves all as it is.
     *
     * @throws IOException as {@link #open} does
     */
    static void check(Path folder, PrefixIndexConfig config, int blockSize, DiskRoom room)
            throws IOException {
        IndexMemory.check(folder.resolve(FILE), config, blockSize, room);
    }

    /** Slots that have something, and are not to be given out. */
    synchronized List<Integer> slots() {
        final List<Integer> slots = new ArrayList<>(useless);
        waiting.values().forEach(kept -> slots.add(kept.slot()));
        return slots;
    }

    /** The slot that has a worker's blocks, now that worker's; null if there is none. */
    synchronized KeptSlot take(KeptTenant worker) {
        return waiting.remove(worker);
    }

    /** Where the stream of a slot's worker continues. */
    StreamStart start(KeptTenant worker, KeptSlot kept) {
        LOG.info(
                "{}: {} blocks as of message {} are there",
                worker,
                index.heldBlocks(kept.slot()),
                kept.markOrNull().sequence());
        return new StreamStart(
                kept.markOrNull().sequence(),
                kept.markOrNull().content(),
                kept.markOrNull().complete(),
                index.missingBlocks(kept.slot()),
                kept.memoryOrNull());
    }

    /** Up to which message of its plane a slot has all that came for its worker. */
    PlanePosition seen(KeptSlot kept) {
        final PlanePosition all = pipeline.keptPositionOrNull();
        return new PlanePosition(all.store(), Math.max(all.upTo(), kept.markOrNull().position()));
    }

    /** From here on what is in a slot is known again as a worker's. */
    void tenant(int slot, KeptTenant worker) {
        pipeline.label(slot, worker.label());
    }

    /** The slot of a worker that was expected is being swept. */
    void isSwept(KeptSlot kept) {
        final KeptTenant tenant = KeptTenant.orNull(kept.label());
        if (tenant.planeOrNull() != null) {
            planeOrNull.expectNoMore(
                    tenant.planeOrNull().workerId(), tenant.planeOrNull().dpRank());
        }
    }

    /** Slots to be swept: none of them can be used again as it is. */
    synchronized List<Integer> takeUseless() {
        final List<Integer> slots = List.copyOf(useless);
        useless.clear();
        return slots;
    }

    /** A slot to be swept for another worker; null if none is waiting. */
    synchronized KeptSlot giveUp() {
        for (KeptTenant worker : waiting.keySet()) {
            LOG.info("{}: its blocks are given up, its slot is needed", worker);
            return waiting.remove(worker);
        }
        return null;
    }

    /** Slots to be swept whose workers have not come in time. */
    synchronized List<KeptSlot> takeOverdue(long nowNs) {
        if (!ticked) {
            ticked = true;
            firstTickNs = nowNs;
        }
        if (waiting.isEmpty() || nowNs - firstTickNs < WAIT_NS) {
            return List.of();
        }
        LOG.info("blocks of {} workers are given up, they have not come", waiting.size());
        final List<KeptSlot> slots = List.copyOf(waiting.values());
        waiting.clear();
        return slots;
    }
}

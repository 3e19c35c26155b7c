package io.kvasir.services.slots;

import io.kvasir.core.load.ActiveRequests;
import io.kvasir.core.load.ActiveRequestsConfig;
import io.kvasir.core.load.LoadBoard;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.pipeline.booking.BookingPipelineConfig;
import io.kvasir.pipeline.booking.LockedReplica;
import io.kvasir.pipeline.booking.ReplicaPort;
import io.kvasir.router.replica.ReplicaFleet;
import io.kvasir.services.http.GroupKey;
import io.kvasir.services.http.ServiceException;

import org.agrona.collections.IntArrayList;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.LongSupplier;

/**
 * The requests that callers have sent to workers, and the load that they are. A prompt is a path of
 * sequence hashes, each of which stands for its block and all before it; blocks that requests of a
 * rank share count once.
 *
 * <p>All methods are for any thread and take the tracker's lock: the table below has one writer at
 * a time, and an answer is of one moment.
 */
public final class SlotTracker implements AutoCloseable {
    private static final int MAX_BLOCKS_PER_REQUEST = 1 << 20;
    private static final int NO_SLOT = -1;

    /** Discounts are whole numbers of this part of a block, so that their sum has no error. */
    private static final int PARTS = 1 << 20;

    private final LongSupplier nanoClock;
    private final long timeoutNs;
    private final LoadBoard board;
    private final ActiveRequests table;
    private final OverlapScores scores;
    private final SlotFleet fleet = new SlotFleet();
    private final LockedReplica replicaOrNull; // null where nothing is shared with others
    private final Map<GroupKey, TrackedGroup> groups = new TreeMap<>();
    private final IntArrayList freeSlots = new IntArrayList();
    private int nextSlot;

    /** By the index in a request's number; null for one that is free. */
    private final TrackedRequest[] requests;

    private final int[] generations;

    /** By the same index: what the blocks that a request has alone count less. */
    private final long[] discounts;

    private final long[] discountBySlot; // sums of those of running requests
    private final IntArrayList freeIndexes = new IntArrayList();
    private int nextIndex;

    /**
     * Makes an empty tracker.
     *
     * @param config its sizes; where it listens means nothing here
     * @param nanoClock clock of the requests' timeouts
     * @throws IllegalArgumentException if a size is out of range
     */
    public SlotTracker(SlotsConfig config, LongSupplier nanoClock) {
        this(config, nanoClock, 0);
    }

    /**
     * Makes an empty tracker that counts the requests of other trackers, too.
     *
     * @param nanoClock clock of the requests' timeouts
     * @param replicaRequests requests of others that there is room for; 0 to have none
     * @throws IllegalArgumentException if a size is out of range
     */
    SlotTracker(SlotsConfig config, LongSupplier nanoClock, int replicaRequests) {
        this.nanoClock = nanoClock;
        this.timeoutNs = config.requestTimeout().toNanos();
        final BookingPipelineConfig sizes =
                replicaRequests == 0
                        ? null
                        : BookingPipelineConfig.of(config.maxRequests())
                                .withReplicaRequests(replicaRequests);
        this.board = new LoadBoard(config.maxWorkers());
        this.table =
                new ActiveRequests(
                        new ActiveRequestsConfig(
                                config.maxWorkers(),
                                sizes == null ? config.maxRequests() : sizes.tableEntries(),
                                config.maxActiveBlocks(),
                                MAX_BLOCKS_PER_REQUEST),
                        board);
        this.replicaOrNull = sizes == null ? null : new LockedReplica(table, sizes, this);
        this.scores = new OverlapScores(config.maxWorkers());
        this.requests = new TrackedRequest[config.maxRequests()];
        this.generations = new int[config.maxRequests()];
        this.discounts = new long[config.maxRequests()];
        this.discountBySlot = new long[config.maxWorkers()];
    }

    /**
     * Registers a worker.
     *
     * @param key model and routing group
     * @param id of the worker
     * @param blockSize tokens per block, that of its group
     * @param firstRank its first data-parallel rank, unsigned 32 bits
     * @param ranks how many there are, unsigned 32 bits
     * @throws ServiceException 400 for numbers that cannot be, 409 if it is registered already or
     *     the group has another block size, 503 when there is no room
     */
    public synchronized void register(
            GroupKey key, long id, int blockSize, long firstRank, long ranks)
            throws ServiceException {
        if (blockSize < 1) {
            throw new ServiceException(400, "block_size must be greater than 0");
        }
        if (ranks < 1) {
            throw new ServiceException(400, "dp_size must be greater than 0");
        }
        if (firstRank + ranks > (1L << Integer.SIZE) - 1) {
            throw new ServiceException(
                    400, "dp range overflows u32: start=" + firstRank + " size=" + ranks);
        }
        final TrackedGroup known = groups.get(key);
        if (known != null && known.blockSize != blockSize) {
            throw new ServiceException(
                    409,
                    "block_size mismatch for "
                            + key.words()
                            + ": existing="
                            + known.blockSize
                            + ", requested="
                            + blockSize);
        }
        if (known != null && known.workers.containsKey(id)) {
            throw new ServiceException(
                    409,
                    "worker "
                            + Long.toUnsignedString(id)
                            + " already registered for "
                            + key.words());
        }
        if (ranks > freeSlots.size() + (long) board.slots() - nextSlot) {
            throw ServiceException.noRoom(
                    "no room for "
                            + ranks
                            + " more ranks of workers: at most "
                            + board.slots()
                            + " (--max-workers)");
        }
        final int[] slots = new int[(int) ranks];
        for (int i = 0; i < slots.length; i++) {
            slots[i] = freeSlots.isEmpty() ? nextSlot++ : freeSlots.removeAt(freeSlots.size() - 1);
            if (replicaOrNull != null) {
                fleet.add(
                        key,
                        blockSize,
                        id,
                        firstRank + i,
                        slots[i],
                        replicaOrNull.slotGeneration(slots[i]));
            }
        }
        groups.computeIfAbsent(key, k -> new TrackedGroup(k, blockSize))
                .workers
                .put(id, new TrackedWorker(id, firstRank, slots));
    }

    /**
     * Takes a worker out, and ends its requests. The last worker takes its group with it.
     *
     * @param key model and routing group
     * @param id of the worker
     * @throws ServiceException 404 if it is not registered
     */
    public synchronized void unregister(GroupKey key, long id) throws ServiceException {
        final TrackedGroup group = groups.get(key);
        final TrackedWorker worker = group == null ? null : group.workers.remove(id);
        if (worker == null) {
            throw new ServiceException(
                    404, "worker " + Long.toUnsignedString(id) + " not found for " + key.words());
        }
        for (int slot : worker.slots) {
            table.workerGone(slot, this::ended);
            if (replicaOrNull != null) {
                replicaOrNull.workerGone(slot);
                fleet.remove(slot);
            }
            freeSlots.addInt(slot);
        }
        if (group.workers.isEmpty()) {
            groups.remove(key);
        }
    }

    /** The group of a key has a worker; else it is not there. */
    private TrackedGroup group(GroupKey key) throws ServiceException {
        final TrackedGroup group = groups.get(key);
        if (group == null) {
            throw new ServiceException(404, "no slot tracker for " + key.words());
        }
        return group;
    }

    /**
     * Counts a request on a rank.
     *
     * @param key model and routing group
     * @param id of the request, another one in each group
     * @param workerId where it runs
     * @param dpRank on which rank
     * @param sequenceHashes of the prompt's full blocks
     * @param prefillTokens tokens that the worker has to prefill
     * @throws ServiceException 404 for an unknown group or rank, 409 for an id that is in use, 503
     *     when there is no room
     */
    public synchronized void add(
            GroupKey key,
            String id,
            long workerId,
            long dpRank,
            long[] sequenceHashes,
            long prefillTokens)
            throws ServiceException {
        final TrackedGroup group = group(key);
        final TrackedRequest same = group.requests.get(id);
        if (same != null) {
            throw new ServiceException(
                    409,
                    "Request "
                            + id
                            + " already exists (assigned to worker_id "
                            + Long.toUnsignedString(same.worker())
                            + ", dp_rank "
                            + same.dpRank()
                            + ")");
        }
        final TrackedWorker worker = group.workers.get(workerId);
        final int slot = worker == null ? NO_SLOT : worker.slotOf(dpRank);
        if (slot == NO_SLOT) {
            throw new ServiceException(
                    404,
                    "Worker worker_id "
                            + Long.toUnsignedString(workerId)
                            + ", dp_rank "
                            + dpRank
                            + " not found");
        }
        final int index = takeIndex();
        final long number = (long) ++generations[index] << Integer.SIZE | index;
        board.add(slot, prefillTokens, 0, 1);
        table.book(
                number,
                slot,
                sequenceHashes,
                sequenceHashes.length,
                0,
                prefillTokens,
                0,
                timeoutNs == 0 ? ActiveRequests.NO_DEADLINE : deadline());
        requests[index] = new TrackedRequest(group, id, workerId, dpRank, slot, number);
        group.requests.put(id, requests[index]);
        if (replicaOrNull != null) {
            replicaOrNull.added(number, slot, sequenceHashes, prefillTokens);
        }
    }

    private long deadline() {
        final long deadline = nanoClock.getAsLong() + timeoutNs;
        return deadline == ActiveRequests.NO_DEADLINE ? deadline + 1 : deadline;
    }

    private int takeIndex() throws ServiceException {
        if (!freeIndexes.isEmpty()) {
            return freeIndexes.removeAt(freeIndexes.size() - 1);
        }
        if (nextIndex == requests.length) {
            throw ServiceException.noRoom(
                    "as many requests are running as may be ("
                            + requests.length
                            + "; --max-requests)");
        }
        return nextIndex++;
    }

    /** The table has ended a request. */
    private void ended(long number) {
        if (replicaOrNull != null && !replicaOrNull.isOwn(number)) {
            return; // of another tracker, which says when it ends
        }
        final int index = (int) number;
        final TrackedRequest request = requests[index];
        requests[index] = null;
        discount(index, request.slot(), 0);
        freeIndexes.addInt(index);
        request.group().requests.remove(request.id());
        if (replicaOrNull != null) {
            replicaOrNull.freed(number, request.slot());
        }
    }

    /**
     * The prompt of a request is computed. Doing so twice changes nothing.
     *
     * @param key model and routing group
     * @param id of the request
     * @throws ServiceException 404 for an unknown group or request
     */
    public synchronized void prefillComplete(GroupKey key, String id) throws ServiceException {
        final TrackedRequest request = group(key).requests.get(id);
        if (request == null) {
            throw new ServiceException(404, "Request " + id + " not found");
        }
        if (table.prefillComplete(request.number()) && replicaOrNull != null) {
            replicaOrNull.prefilled(request.number(), request.slot());
        }
    }

    /**
     * A request has ended; of one that is not there nothing changes.
     *
     * @param key model and routing group
     * @param id of the request
     * @throws ServiceException 404 for an unknown group
     */
    public synchronized void free(GroupKey key, String id) throws ServiceException {
        final TrackedRequest request = group(key).requests.get(id);
        if (request != null) {
            table.free(request.number());
            ended(request.number());
        }
    }

    /**
     * Which group has a request of that id: where ids are given once for all groups.
     *
     * @param id of the request
     * @return null for none
     */
    public synchronized GroupKey groupOrNull(String id) {
        for (TrackedGroup group : groups.values()) {
            if (group.requests.containsKey(id)) {
                return group.key;
            }
        }
        return null;
    }

    /**
     * A request has filled one more block with its output.
     *
     * @param key model and routing group
     * @param id of the request
     * @param weight what a block of its output, and of its prompt where no other request of the
     *     rank has it now, counts from now on, 0..1; NaN for no change: the new block counts as one
     * @throws ServiceException 404 for an unknown group or request
     */
    public synchronized void outputBlock(GroupKey key, String id, double weight)
            throws ServiceException {
        final TrackedRequest request = group(key).requests.get(id);
        if (request == null) {
            throw new ServiceException(404, "Request " + id + " not found");
        }
        table.outputBlocks(request.number(), 1);
        final int index = (int) request.number();
        if (!Double.isNaN(weight)) {
            final long own = table.blocksAlone(request.number());
            discount(index, request.slot(), Math.round(own * (1 - weight) * PARTS));
        }
    }

    private void discount(int index, int slot, long parts) {
        discountBySlot[slot] += parts - discounts[index];
        discounts[index] = parts;
    }

    private long discountedBlocks(int slot) {
        return Math.max(
                0, Math.round(board.activeBlocks(slot) - discountBySlot[slot] / (double) PARTS));
    }

    /** Ends what has lasted too long by now. */
    public synchronized void expire() {
        table.expire(nanoClock.getAsLong(), this::ended);
    }

    /** Shows each worker, by group and id. */
    synchronized void forEachWorker(WorkerVisitor visitor) {
        for (TrackedGroup group : groups.values()) {
            for (TrackedWorker worker : group.workers.values()) {
                visitor.worker(
                        group.key,
                        worker.id,
                        group.blockSize,
                        worker.firstRank,
                        worker.slots.length);
            }
        }
    }

    /** Takes workers. */
    @FunctionalInterface
    interface WorkerVisitor {
        void worker(GroupKey key, long id, int blockSize, long firstRank, int ranks);
    }

    /** Loads of all ranks, by group, worker and rank. */
    public synchronized List<RankLoad> loads() {
        final List<RankLoad> loads = new ArrayList<>();
        groups.values().forEach(group -> addLoads(group, 0, null, 0, loads));
        return loads;
    }

    /**
     * Loads of the ranks of a group if they got one more request.
     *
     * @param key model and routing group
     * @param sequenceHashes of the prompt's full blocks
     * @param prefillTokens tokens that would have to be prefilled
     * @throws ServiceException 404 for an unknown group
     */
    public synchronized List<RankLoad> potentialLoads(
            GroupKey key, long[] sequenceHashes, long prefillTokens) throws ServiceException {
        final List<RankLoad> loads = new ArrayList<>();
        final TrackedGroup group = group(key);
        table.matchActive(sequenceHashes, sequenceHashes.length, scores);
        addLoads(group, prefillTokens, scores, sequenceHashes.length, loads);
        return loads;
    }

    private void addLoads(
            TrackedGroup group,
            long moreTokens,
            OverlapScores overlap,
            int moreBlocks,
            List<RankLoad> loads) {
        for (TrackedWorker worker : group.workers.values()) {
            for (int i = 0; i < worker.slots.length; i++) {
                final int slot = worker.slots[i];
                final int shared = overlap == null ? 0 : overlap.depth(slot);
                loads.add(
                        new RankLoad(
                                group.key,
                                worker.id,
                                worker.firstRank + i,
                                board.prefillTokens(slot) + moreTokens,
                                discountedBlocks(slot) + moreBlocks - shared,
                                board.activeRequests(slot)));
            }
        }
    }

    /** What the replica thread has to do with the table; null where nothing is shared. */
    ReplicaPort replicaPortOrNull() {
        return replicaOrNull == null ? null : replicaOrNull.port();
    }

    /** The ranks as other trackers call them. */
    ReplicaFleet fleet() {
        return fleet;
    }

    @Override
    public synchronized void close() {
        table.close();
        board.close();
    }
}

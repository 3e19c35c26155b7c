package io.kvasir.services.select;

import io.kvasir.core.memory.ClosedException;
import io.kvasir.router.policy.CostModel;
import io.kvasir.services.http.GroupKey;
import io.kvasir.services.http.ServiceException;
import io.kvasir.services.indexer.IndexRegistry;
import io.kvasir.services.indexer.Match;
import io.kvasir.services.slots.RankLoad;
import io.kvasir.services.slots.SlotTracker;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.LongPredicate;
import java.util.random.RandomGenerator;

/**
 * Chooses the cheapest rank of a group by the router's cost, in blocks: what it would still have to
 * prefill and what it would have in use. Ranks that cost the same are chosen equally often.
 * Choosing and reserving is one step for all callers. Any thread.
 */
final class Chooser {
    private static final double OVERLAP_WEIGHT = 1;
    private static final int NOT_FOUND = 404;
    private static final int MOST_TRIES = 8;

    /** One try to choose. */
    private interface Choice {
        Selection make() throws ServiceException;
    }

    private final IndexRegistry registry;
    private final SlotTracker tracker;
    private final WorkerCatalogue workers;
    private final RandomGenerator random;
    private final Sessions sessions;

    /**
     * @param random decides among ranks that cost the same
     */
    Chooser(
            IndexRegistry registry,
            SlotTracker tracker,
            WorkerCatalogue workers,
            RandomGenerator random,
            Sessions sessions) {
        this.registry = registry;
        this.tracker = tracker;
        this.workers = workers;
        this.random = random;
        this.sessions = sessions;
    }

    /**
     * What the ranks hold of a prompt.
     *
     * @throws ServiceException 503 if the group has ended
     */
    Map<Match.Rank, Match> overlaps(GroupKey key, Prompt prompt) throws ServiceException {
        final Map<Match.Rank, Match> matches = new HashMap<>();
        try {
            for (Match match : registry.group(key).match(prompt.localHashes, prompt.eagleHashes)) {
                matches.put(match.rank(), match);
            }
        } catch (ServiceException e) {
            throw WorkerCatalogue.none(key); // its last worker was just removed
        } catch (ClosedException e) {
            var _ = workers.index(key); // likewise: 503
            throw e;
        }
        return matches;
    }

    /** What one rank holds. */
    static Match of(Map<Match.Rank, Match> overlaps, Match.Rank rank) {
        final Match match = overlaps.get(rank);
        return match == null ? Match.none(rank) : match;
    }

    /**
     * Chooses.
     *
     * @param allowed whether a worker may be chosen
     * @param wanted what the prompt asks of its worker's taints
     * @param session that it is of; null for none
     * @throws ServiceException 503 if no rank can be chosen
     */
    synchronized Selection choose(
            GroupKey key, Prompt prompt, LongPredicate allowed, Wanted wanted, String session)
            throws ServiceException {
        return ofThoseThere(() -> chooseOnce(key, prompt, allowed, wanted, session));
    }

    /** A worker may be removed after it was chosen: another one is chosen then. */
    private static Selection ofThoseThere(Choice choice) throws ServiceException {
        for (int tries = 1; ; tries++) {
            try {
                return choice.make();
            } catch (ServiceException e) {
                if (e.status() != NOT_FOUND || tries == MOST_TRIES) {
                    throw e;
                }
            }
        }
    }

    private Selection chooseOnce(
            GroupKey key, Prompt prompt, LongPredicate allowed, Wanted wanted, String session)
            throws ServiceException {
        final int blockSize = workers.index(key).blockSize();
        final Map<Match.Rank, Match> overlaps = overlaps(key, prompt);
        RankLoad best = null;
        double bestCost = 0;
        int ties = 0;
        int unsuitable = 0;
        final Match.Rank bound = sessions.rankOrNull(key, session);
        RankLoad ofSession = null;
        double leastLoad = Double.POSITIVE_INFINITY;
        for (RankLoad load : loads(key, prompt.sequenceHashes, prompt.tokens)) {
            if (!allowed.test(load.worker())) {
                continue;
            }
            final Set<String> marks = workers.marks(load.worker());
            if (!wanted.allows(marks)) {
                unsuitable++;
                continue;
            }
            if (rank(load).equals(bound)) {
                ofSession = load;
            }
            leastLoad = Math.min(leastLoad, blocks(load, blockSize));
            final int cached = of(overlaps, rank(load)).countedTokens();
            final double cost =
                    wanted.factor(marks)
                            * CostModel.linear(
                                    OVERLAP_WEIGHT,
                                    Math.max(0, load.prefillTokens() - cached) / (double) blockSize,
                                    load.decodeBlocks());
            if (best == null || cost < bestCost) {
                best = load;
                bestCost = cost;
                ties = 1;
            } else if (cost == bestCost && random.nextInt(++ties) == 0) {
                best = load;
            }
        }
        if (best == null) {
            throw ServiceException.noRoom(
                    "no endpoints available to route work"
                            + (unsuitable == 0
                                    ? ""
                                    : ": "
                                            + unsuitable
                                            + " ranks lack one of the required taints "
                                            + wanted.required()));
        }
        if (ofSession != null
                && (sessions.isHard()
                        || blocks(ofSession, blockSize) - leastLoad
                                <= prompt.tokens / (double) blockSize)) {
            best = ofSession;
        }
        final WorkerSheet worker = workers.schedulable(key, best.worker());
        final SortedMap<Long, Match> byRank = new TreeMap<>();
        for (long rank = worker.start(); rank < worker.start() + worker.count(); rank++) {
            byRank.put(rank, of(overlaps, new Match.Rank(worker.id(), (int) rank)));
        }
        final long lastBlock = prompt.tokens % blockSize == 0 ? 0 : 1;
        return new Selection(
                key,
                worker,
                best.dpRank(),
                prompt,
                byRank,
                best.decodeBlocks() + lastBlock,
                session);
    }

    /** Load of a rank, in blocks to prefill and in use. */
    private static double blocks(RankLoad load, int blockSize) {
        return load.prefillTokens() / (double) blockSize + load.decodeBlocks();
    }

    /**
     * Loads of all ranks of a group if they got a prompt of which they hold nothing.
     *
     * @throws ServiceException 503 if the group has ended
     */
    List<RankLoad> loads(GroupKey key, long[] sequenceHashes, int tokens) throws ServiceException {
        try {
            return tracker.potentialLoads(key, sequenceHashes, tokens);
        } catch (ServiceException e) {
            throw WorkerCatalogue.none(key); // its last worker was just removed
        }
    }

    private static Match.Rank rank(RankLoad load) {
        return new Match.Rank(load.worker(), (int) load.dpRank());
    }

    /**
     * Chooses and reserves.
     *
     * @param id of the reservation
     * @throws ServiceException 409 for an id that is in use, 503 if no rank can be chosen, or there
     *     is no room
     */
    synchronized Selection reserve(
            String id,
            GroupKey key,
            Prompt prompt,
            LongPredicate allowed,
            Wanted wanted,
            String session)
            throws ServiceException {
        checkFree(id);
        return ofThoseThere(() -> reserve(id, chooseOnce(key, prompt, allowed, wanted, session)));
    }

    /**
     * Reserves what was chosen before; its session is that rank's from then on.
     *
     * @return the same with its worker as it is now
     * @throws ServiceException 404 if the rank is not there any more, or its blocks are of another
     *     size, 409 for an id that is in use, 503 when there is no room
     */
    synchronized Selection reserve(String id, Selection chosen) throws ServiceException {
        checkFree(id);
        final WorkerSheet now = workers.schedulable(chosen.key(), chosen.worker().id());
        if (!now.blockSize().equals(chosen.worker().blockSize())) {
            throw new ServiceException(
                    404,
                    "worker "
                            + Long.toUnsignedString(now.id())
                            + " has blocks of "
                            + now.blockSize()
                            + " tokens, and had some of "
                            + chosen.worker().blockSize()
                            + " when it was selected");
        }
        reserve(
                id,
                chosen.key(),
                chosen.worker().id(),
                chosen.dpRank(),
                chosen.prompt().sequenceHashes,
                chosen.prefillTokens());
        sessions.reserved(chosen.key(), chosen.session(), chosen.rank());
        return chosen.of(now);
    }

    /**
     * Reserves a rank that is chosen already.
     *
     * @param prefillTokens that it has to prefill
     * @throws ServiceException 404 if it is not there, 409 for an id that is in use, 503 when there
     *     is no room
     */
    synchronized void reserve(
            String id,
            GroupKey key,
            long worker,
            long dpRank,
            long[] sequenceHashes,
            long prefillTokens)
            throws ServiceException {
        checkFree(id);
        tracker.add(key, id, worker, dpRank, sequenceHashes, prefillTokens);
    }

    private void checkFree(String id) throws ServiceException {
        if (tracker.groupOrNull(id) != null) {
            throw new ServiceException(
                    409, "selection " + id + " is already reserved or being reserved");
        }
    }

    /**
     * Loads of all ranks of a group if they got a prompt.
     *
     * @param cached what each rank holds of it
     */
    List<RankLoad> potentialLoads(GroupKey key, Prompt prompt, Map<Match.Rank, Match> cached)
            throws ServiceException {
        return loads(key, prompt.sequenceHashes, prompt.tokens).stream()
                .map(
                        load ->
                                new RankLoad(
                                        load.key(),
                                        load.worker(),
                                        load.dpRank(),
                                        Math.max(
                                                0,
                                                load.prefillTokens()
                                                        - of(cached, rank(load)).countedTokens()),
                                        load.decodeBlocks(),
                                        load.requests()))
                .toList();
    }
}

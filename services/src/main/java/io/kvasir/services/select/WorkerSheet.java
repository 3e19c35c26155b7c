package io.kvasir.services.select;

import io.kvasir.services.http.GroupKey;
import io.kvasir.services.http.JsonBody;
import io.kvasir.services.http.ServiceException;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * What callers have said of a worker; what they have not said is null.
 *
 * @param id of the worker, unsigned 64-bit
 * @param key model and routing group
 * @param endpoint where its requests go
 * @param blockSize tokens per block
 * @param firstRank its first data-parallel rank
 * @param ranks how many there are
 * @param events address of the publisher of its first rank
 * @param eventsByRank addresses by rank, which go before {@code events}; never null
 * @param replay address of the replay socket of its first rank
 * @param batchTokens most tokens of one step of its engine
 * @param kvBlocks blocks of its engine's cache
 * @param taints what prompts may ask for, by name; never null
 * @param topology its topology labels: value by domain; never null
 */
record WorkerSheet(
        long id,
        GroupKey key,
        String endpoint,
        Integer blockSize,
        Long firstRank,
        Long ranks,
        String events,
        SortedMap<Integer, String> eventsByRank,
        String replay,
        Long batchTokens,
        Long kvBlocks,
        SortedSet<String> taints,
        SortedMap<String, String> topology) {
    /** Ranks that one worker has at most. */
    static final int MOST_RANKS = 4_096;

    private static final String TAINTS = "taints";
    private static final String TOPOLOGY_DOMAINS = "topology_domains";

    WorkerSheet {
        eventsByRank = Collections.unmodifiableSortedMap(new TreeMap<>(eventsByRank));
        taints = Collections.unmodifiableSortedSet(new TreeSet<>(taints));
        topology = Collections.unmodifiableSortedMap(new TreeMap<>(topology));
    }

    /** Reads a whole one. */
    static WorkerSheet of(JsonBody body) throws ServiceException {
        return new WorkerSheet(
                        body.unsigned("worker_id"),
                        Prompt.key(body),
                        null,
                        null,
                        null,
                        null,
                        null,
                        new TreeMap<>(),
                        null,
                        null,
                        null,
                        new TreeSet<>(),
                        new TreeMap<>())
                .with(body);
    }

    /** The same with what a body says instead. */
    WorkerSheet with(JsonBody body) throws ServiceException {
        return new WorkerSheet(
                id,
                new GroupKey(
                        body.text("model_name", key.model()),
                        body.text("routing_group", key.routingGroup())),
                text(body, "endpoint", endpoint),
                body.has("block_size")
                        ? (body.isAbsent("block_size") ? null : (Integer) body.count("block_size"))
                        : blockSize,
                number(body, "data_parallel_start_rank", firstRank),
                number(body, "data_parallel_size", ranks),
                text(body, "kv_events_endpoint", events),
                eventsByRank(body),
                text(body, "replay_endpoint", replay),
                number(body, "max_num_batched_tokens", batchTokens),
                number(body, "total_kv_blocks", kvBlocks),
                body.has(TAINTS) ? taintsOf(body) : taints,
                body.has(TOPOLOGY_DOMAINS) ? topologyOf(body) : topology);
    }

    private static SortedSet<String> taintsOf(JsonBody body) throws ServiceException {
        final SortedSet<String> taints = new TreeSet<>(body.texts(TAINTS));
        checkMost(TAINTS, taints.size());
        return taints;
    }

    private static SortedMap<String, String> topologyOf(JsonBody body) throws ServiceException {
        final SortedMap<String, String> topology = body.textsByName(TOPOLOGY_DOMAINS);
        checkMost(TOPOLOGY_DOMAINS, topology.size());
        return topology;
    }

    private static void checkMost(String name, int count) throws ServiceException {
        if (count > Wanted.MOST) {
            throw ServiceException.unusable(name + ": " + count + " are more than " + Wanted.MOST);
        }
    }

    /** All that a prompt may ask for: taints, and topology labels as taints. */
    Set<String> marks() {
        if (topology.isEmpty()) {
            return taints;
        }
        final Set<String> marks = new HashSet<>(taints);
        topology.forEach((domain, value) -> marks.add(Wanted.topologyTaint(domain, value)));
        return marks;
    }

    private SortedMap<Integer, String> eventsByRank(JsonBody body) throws ServiceException {
        if (!body.has("kv_events_endpoints")) {
            return eventsByRank;
        }
        return body.isAbsent("kv_events_endpoints")
                ? new TreeMap<>()
                : body.textsByRank("kv_events_endpoints");
    }

    private static String text(JsonBody body, String name, String before) throws ServiceException {
        return body.has(name) ? body.textOrNull(name) : before;
    }

    private static Long number(JsonBody body, String name, Long before) throws ServiceException {
        if (!body.has(name)) {
            return before;
        }
        return body.isAbsent(name) ? null : (Long) body.unsigned32(name);
    }

    /** First rank, 0 unless said. */
    long start() {
        return firstRank == null ? 0 : firstRank;
    }

    /** Number of ranks, 1 unless said. */
    long count() {
        return ranks == null ? 1 : ranks;
    }

    /** Where the events of a rank come from; null where that is not said. */
    String eventsOf(int rank) {
        final String own = eventsByRank.get(rank);
        return own == null && rank == start() ? events : own;
    }

    /** Where the events of a rank are asked for again; null where that is not said. */
    String replayOf(int rank) {
        return rank == start() ? replay : null;
    }

    /** Why requests cannot be sent to it yet; empty if they can. */
    List<String> reasons() {
        final List<String> reasons = new ArrayList<>();
        if (endpoint == null) {
            reasons.add("endpoint is required");
        }
        if (blockSize == null || blockSize < 1) {
            reasons.add("block_size must be greater than 0");
        }
        if (count() < 1) {
            reasons.add("data_parallel_size must be greater than 0");
        } else if (count() > MOST_RANKS || start() + count() > Integer.MAX_VALUE) {
            reasons.add(
                    "data_parallel_size="
                            + count()
                            + " from data_parallel_start_rank="
                            + start()
                            + " is too much: at most "
                            + MOST_RANKS
                            + " ranks");
        } else {
            for (int rank = (int) start(); rank < start() + count(); rank++) {
                if (eventsOf(rank) == null) {
                    reasons.add("kv_events endpoint is required for dp_rank " + rank);
                }
            }
        }
        return reasons;
    }

    /** Whether index and tracker have the same of both. */
    boolean isSameInside(WorkerSheet other) {
        return key.equals(other.key)
                && Objects.equals(blockSize, other.blockSize)
                && start() == other.start()
                && count() == other.count()
                && Objects.equals(events, other.events)
                && eventsByRank.equals(other.eventsByRank)
                && Objects.equals(replay, other.replay);
    }
}

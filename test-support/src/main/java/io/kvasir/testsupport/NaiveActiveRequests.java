package io.kvasir.testsupport;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What a table of running requests should say, in plain Java: a list of requests from which every
 * answer is computed anew. Slow and single-threaded.
 */
public final class NaiveActiveRequests {
    /** Answer of {@link #add}: a request is running whose number has the same index. */
    public static final int TAKEN = -1;

    /** Deadlines count in ticks of so many bits of a nanosecond. */
    private static final int TICK_BITS = 20;

    private record Prefix(int before, long localHash) {}

    private static final class Request {
        final int slot;
        final long lastTick;
        List<Integer> followed;
        long ownBlocks;
        long prefillTokens;
        boolean prefilling = true;

        Request(
                int slot,
                List<Integer> followed,
                long ownBlocks,
                long prefillTokens,
                long lastTick) {
            this.slot = slot;
            this.followed = followed;
            this.ownBlocks = ownBlocks;
            this.prefillTokens = prefillTokens;
            this.lastTick = lastTick;
        }
    }

    private final long maxActiveBlocks;
    private final int maxBlocksPerRequest;
    private final Map<Long, Request> requests = new LinkedHashMap<>();
    private final Map<Prefix, Integer> prefixNumbers = new HashMap<>();
    private long tickReached = Long.MIN_VALUE;

    /**
     * Makes an empty table.
     *
     * @param maxActiveBlocks followed prompt blocks that fit, counted once per slot; a request
     *     whose blocks do not fit has all of them as its own
     * @param maxBlocksPerRequest leading prompt blocks that are followed; others are the request's
     */
    public NaiveActiveRequests(long maxActiveBlocks, int maxBlocksPerRequest) {
        this.maxActiveBlocks = maxActiveBlocks;
        this.maxBlocksPerRequest = maxBlocksPerRequest;
    }

    /**
     * Adds a request.
     *
     * @param number its number: [generation:32 | index:32]
     * @param slot worker slot
     * @param localHashes its prompt
     * @param prefillTokens tokens to prefill
     * @param deadlineNs when it ends of itself, 0 = never
     * @return blocks that the slot uses in addition, or a negative refusal
     */
    public int add(long number, int slot, long[] localHashes, long prefillTokens, long deadlineNs) {
        if (requests.keySet().stream().anyMatch(running -> running.intValue() == (int) number)) {
            return TAKEN;
        }
        final int followed = Math.min(localHashes.length, maxBlocksPerRequest);
        final Request request =
                new Request(
                        slot,
                        prefixesOf(localHashes).subList(0, followed),
                        localHashes.length - followed,
                        prefillTokens,
                        deadlineNs == 0
                                ? Long.MAX_VALUE
                                : Math.max(deadlineNs >> TICK_BITS, tickReached));
        final long before = activeBlocks(slot);
        requests.put(number, request);
        if (followedBlocks() > maxActiveBlocks) {
            takePath(number);
        }
        return (int) (activeBlocks(slot) - before);
    }

    /** Lets all blocks of a running request be its own; whether it had others. */
    public boolean takePath(long number) {
        final Request request = requests.get(number);
        final int followed = request.followed.size();
        request.ownBlocks += followed;
        request.followed = List.of();
        return followed > 0;
    }

    /** Ends the requests whose deadline's tick is over; returns their numbers. */
    public Set<Long> expire(long nowNs) {
        tickReached = Math.max(tickReached, nowNs >> TICK_BITS);
        final Set<Long> due = new TreeSet<>();
        requests.forEach(
                (number, r) -> {
                    if (r.lastTick < tickReached) {
                        due.add(number);
                    }
                });
        requests.keySet().removeAll(due);
        return due;
    }

    /** Ends a request's prefill; whether it was being prefilled. */
    public boolean prefillComplete(long number) {
        final Request request = requests.get(number);
        if (request == null || !request.prefilling) {
            return false;
        }
        request.prefilling = false;
        request.prefillTokens = 0;
        return true;
    }

    /** Adds output blocks; whether the request is running. */
    public boolean outputBlocks(long number, int blocks) {
        final Request request = requests.get(number);
        if (request != null) {
            request.ownBlocks += blocks;
        }
        return request != null;
    }

    /** Ends a request; whether it was running. */
    public boolean free(long number) {
        return requests.remove(number) != null;
    }

    /** Ends all requests of a slot; returns how many. */
    public int workerGone(int slot) {
        final int before = requests.size();
        requests.values().removeIf(r -> r.slot == slot);
        return before - requests.size();
    }

    /** Running requests of all slots. */
    public int activeRequests() {
        return requests.size();
    }

    /** Running requests of a slot. */
    public long activeRequests(int slot) {
        return of(slot).count();
    }

    /** Tokens still to be prefilled on a slot. */
    public long prefillTokens(int slot) {
        return of(slot).mapToLong(r -> r.prefillTokens).sum();
    }

    /** Blocks in use on a slot: distinct followed prefixes and every request's own blocks. */
    public long activeBlocks(int slot) {
        return prefixes(slot).size() + of(slot).mapToLong(r -> r.ownBlocks).sum();
    }

    /** Followed prompt blocks of all slots, counted once per slot. */
    public long followedBlocks() {
        return requests.values().stream()
                .mapToInt(r -> r.slot)
                .distinct()
                .mapToLong(slot -> prefixes(slot).size())
                .sum();
    }

    /** Leading blocks of a prompt in use on each slot; slots without the first are left out. */
    public Map<Integer, Integer> match(long[] localHashes) {
        final List<Integer> prompt = prefixesOf(localHashes);
        final Map<Integer, Integer> depths = new TreeMap<>();
        requests.values().stream()
                .mapToInt(r -> r.slot)
                .distinct()
                .forEach(
                        slot -> {
                            final Set<Integer> used = prefixes(slot);
                            int depth = 0;
                            while (depth < prompt.size() && used.contains(prompt.get(depth))) {
                                depth++;
                            }
                            if (depth > 0) {
                                depths.put(slot, depth);
                            }
                        });
        return depths;
    }

    private Stream<Request> of(int slot) {
        return requests.values().stream().filter(r -> r.slot == slot);
    }

    private Set<Integer> prefixes(int slot) {
        return of(slot).flatMap(r -> r.followed.stream()).collect(Collectors.toSet());
    }

    /** One number for each prefix of a prompt, by length. */
    private List<Integer> prefixesOf(long[] localHashes) {
        final List<Integer> numbers = new ArrayList<>();
        int before = 0;
        for (long localHash : localHashes) {
            before =
                    prefixNumbers.computeIfAbsent(
                            new Prefix(before, localHash), p -> prefixNumbers.size() + 1);
            numbers.add(before);
        }
        return numbers;
    }
}

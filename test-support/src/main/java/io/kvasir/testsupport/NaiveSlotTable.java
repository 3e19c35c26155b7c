package io.kvasir.testsupport;

import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/**
 * What a table of running requests should say, in plain Java: a list of requests from which every
 * answer is computed anew. Slow and single-threaded.
 */
public final class NaiveSlotTable {
    /** Answer of {@link #add}: a request of that id is running. */
    public static final int DUPLICATE = -1;

    /** Answer of {@link #add}: no room. */
    public static final int FULL = -2;

    private static final class Request {
        final int slot;
        final List<Long> followed;
        long ownBlocks;
        long prefillTokens;
        boolean prefilling = true;

        Request(int slot, List<Long> followed, long ownBlocks, long prefillTokens) {
            this.slot = slot;
            this.followed = followed;
            this.ownBlocks = ownBlocks;
            this.prefillTokens = prefillTokens;
        }
    }

    private final int maxRequests;
    private final long maxActiveBlocks;
    private final int maxBlocksPerRequest;
    private final Map<Long, Request> requests = new LinkedHashMap<>();

    /**
     * Makes an empty table.
     *
     * @param maxRequests running requests that fit
     * @param maxActiveBlocks followed prompt blocks that fit, counted once per slot
     * @param maxBlocksPerRequest leading prompt blocks that are followed; others are the request's
     */
    public NaiveSlotTable(int maxRequests, long maxActiveBlocks, int maxBlocksPerRequest) {
        this.maxRequests = maxRequests;
        this.maxActiveBlocks = maxActiveBlocks;
        this.maxBlocksPerRequest = maxBlocksPerRequest;
    }

    /** Adds a request; returns blocks that the slot uses in addition, or a negative refusal. */
    public int add(long requestId, int slot, long[] localHashes, long prefillTokens) {
        if (requests.containsKey(requestId)) {
            return DUPLICATE;
        }
        final List<Long> prompt = LongStream.of(localHashes).boxed().toList();
        final int followed = Math.min(prompt.size(), maxBlocksPerRequest);
        final Request request =
                new Request(
                        slot, prompt.subList(0, followed), prompt.size() - followed, prefillTokens);
        final long before = activeBlocks(slot);
        requests.put(requestId, request);
        if (requests.size() > maxRequests || followedBlocks() > maxActiveBlocks) {
            requests.remove(requestId);
            return FULL;
        }
        return (int) (activeBlocks(slot) - before);
    }

    /** Ends a request's prefill; whether it was being prefilled. */
    public boolean prefillComplete(long requestId) {
        final Request request = requests.get(requestId);
        if (request == null || !request.prefilling) {
            return false;
        }
        request.prefilling = false;
        request.prefillTokens = 0;
        return true;
    }

    /** Adds an output block; whether the request is running. */
    public boolean outputBlock(long requestId) {
        final Request request = requests.get(requestId);
        if (request != null) {
            request.ownBlocks++;
        }
        return request != null;
    }

    /** Ends a request; whether it was running. */
    public boolean free(long requestId) {
        return requests.remove(requestId) != null;
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
        final List<Long> prompt = LongStream.of(localHashes).boxed().toList();
        final Map<Integer, Integer> depths = new TreeMap<>();
        requests.values().stream()
                .mapToInt(r -> r.slot)
                .distinct()
                .forEach(
                        slot -> {
                            final Set<List<Long>> used = prefixes(slot);
                            int depth = 0;
                            while (depth < prompt.size()
                                    && used.contains(prompt.subList(0, depth + 1))) {
                                depth++;
                            }
                            if (depth > 0) {
                                depths.put(slot, depth);
                            }
                        });
        return depths;
    }

    /** Blocks that a slot would have in use with one more prompt. */
    public long potentialBlocks(int slot, long[] localHashes, int extraBlocks) {
        return activeBlocks(slot)
                + localHashes.length
                - match(localHashes).getOrDefault(slot, 0)
                + extraBlocks;
    }

    private Stream<Request> of(int slot) {
        return requests.values().stream().filter(r -> r.slot == slot);
    }

    private Set<List<Long>> prefixes(int slot) {
        final Set<List<Long>> prefixes = new HashSet<>();
        of(slot).forEach(
                        r -> {
                            for (int end = 1; end <= r.followed.size(); end++) {
                                prefixes.add(r.followed.subList(0, end));
                            }
                        });
        return prefixes;
    }
}

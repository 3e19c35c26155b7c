package io.kvasir.sim.batch;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;

/**
 * Finished prefills of one rank whose blocks wait for a decode, by key, and the decodes that wait
 * for a prefill. Owned by the thread of the step loop.
 */
final class HeldPrefills {
    private final Map<String, SimRequest> held = new HashMap<>();
    private final TreeSet<SimRequest> leases =
            new TreeSet<>(
                    Comparator.<SimRequest>comparingLong(request -> request.hold.endNs)
                            .thenComparingLong(request -> request.hold.number));
    private final Map<String, List<CompletableFuture<PullOffer>>> waiting = new HashMap<>();
    private int blocks;
    private long added;

    int size() {
        return held.size();
    }

    int blocks() {
        return blocks;
    }

    /**
     * Holds a finished prefill; decodes that wait for it are answered.
     *
     * @return false when its key is in use
     */
    boolean add(SimRequest request) {
        if (held.putIfAbsent(request.hold.key, request) != null) {
            return false;
        }
        request.hold.number = added++;
        leases.add(request);
        blocks += request.blockCount;
        final List<CompletableFuture<PullOffer>> decodes = waiting.remove(request.hold.key);
        if (decodes != null) {
            decodes.forEach(decode -> decode.complete(offer(request)));
        }
        return true;
    }

    /** Offers what is held under a key, at once or, if that is wanted, when it comes. */
    void offer(String key, boolean wait, CompletableFuture<PullOffer> answer) {
        final SimRequest request = held.get(key);
        if (request != null) {
            answer.complete(offer(request));
        } else if (wait) {
            waiting.computeIfAbsent(key, k -> new ArrayList<>()).add(answer);
        } else {
            answer.complete(PullOffer.stale("no prefill is held as " + key));
        }
    }

    /** Forgets the decodes whose wait for a key was cancelled. */
    void withdraw(String key) {
        waiting.computeIfPresent(
                key,
                (k, decodes) -> {
                    decodes.removeIf(CompletableFuture::isDone);
                    return decodes.isEmpty() ? null : decodes;
                });
    }

    private static PullOffer offer(SimRequest request) {
        final int tokens = request.script.promptTokens();
        return new PullOffer(
                tokens,
                KvPrint.of(request.script.tokens(), tokens, request.labels.loraName()),
                request.hold.blocks,
                request.hold.record,
                request.hold.firstBlock,
                null,
                null);
    }

    boolean contains(String key) {
        return held.containsKey(key);
    }

    /** Takes out what is held under a key, or null. */
    SimRequest remove(String key) {
        final SimRequest request = held.remove(key);
        if (request != null) {
            leases.remove(request);
            blocks -= request.blockCount;
        }
        return request;
    }

    /** Takes out a request; false when it is not held. */
    boolean remove(SimRequest request) {
        return held.get(request.hold.key) == request && remove(request.hold.key) != null;
    }

    /** Takes out a prefill whose lease has ended, or null. */
    SimRequest nextExpired(long nowNs) {
        final SimRequest first = leases.isEmpty() ? null : leases.first();
        return first == null || first.hold.endNs > nowNs ? null : remove(first.hold.key);
    }

    /** When the next lease ends. */
    long nextEndNs() {
        final SimRequest first = leases.isEmpty() ? null : leases.first();
        return first == null ? RankScheduler.NOTHING_TO_DO : first.hold.endNs;
    }

    /** Forgets all; decodes that wait fail. */
    Deque<SimRequest> clear() {
        final Deque<SimRequest> all = new ArrayDeque<>(held.values());
        held.clear();
        leases.clear();
        blocks = 0;
        waiting.values()
                .forEach(
                        list ->
                                list.forEach(
                                        decode ->
                                                decode.complete(
                                                        PullOffer.refused(
                                                                "the prefill engine was"
                                                                        + " restarted"))));
        waiting.clear();
        return all;
    }
}

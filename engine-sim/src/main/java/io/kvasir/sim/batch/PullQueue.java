package io.kvasir.sim.batch;

import io.kvasir.sim.config.HandoffConfig;
import io.kvasir.sim.config.SimConfig;

import java.util.Comparator;
import java.util.TreeSet;
import java.util.function.Consumer;

/**
 * Requests of one rank that wait for blocks from another engine, and when what happens to each. The
 * rank receives one transfer after the other. Time comes in as data; owned by the thread of the
 * step loop.
 */
final class PullQueue {
    private static final String SILENT = "no answer from the side port of the prefill engine";

    private final KvPull.Carrier carrier;
    private final HandoffConfig config;
    private final double speedUp;
    private final int blockSize;
    private final TreeSet<SimRequest> due =
            new TreeSet<>(
                    Comparator.<SimRequest>comparingLong(request -> request.pull.dueNs)
                            .thenComparingLong(request -> request.pull.number));
    private long added;
    private long linkFreeNs;

    PullQueue(KvPull.Carrier carrier, SimConfig config) {
        this.carrier = carrier;
        this.config = config.handoff();
        this.speedUp = config.speedUp();
        this.blockSize = config.blockSize();
    }

    int size() {
        return due.size();
    }

    /** Requests whose bytes are on the way. */
    int moving() {
        int moving = 0;
        for (SimRequest request : due) {
            moving += request.pull.stage == KvPull.Stage.MOVING ? 1 : 0;
        }
        return moving;
    }

    /**
     * Takes in a request that has its blocks.
     *
     * @param blocks how many of them shall be received
     */
    void add(SimRequest request, int blocks, PullStalls stalls, long nowNs) {
        request.pull.blocks = blocks;
        request.pull.number = added++;
        request.pull.stalls = stalls;
        enter(request, KvPull.Stage.TAKEN, nowNs + clock(stalls.beforeNs()));
    }

    /** Gives a request up; false when it is not here. */
    boolean remove(SimRequest request) {
        if (!due.remove(request)) {
            return false;
        }
        end(request);
        return true;
    }

    void forEach(Consumer<SimRequest> action) {
        due.forEach(action);
    }

    void clear() {
        due.forEach(this::end);
        due.clear();
        linkFreeNs = 0;
    }

    private void end(SimRequest request) {
        request.pull.stage = KvPull.Stage.ENDED;
        carrier.cancel(request);
    }

    /** The other engine offers blocks; they are here when the link has moved them. */
    void offered(SimRequest request, PullOffer offer, long nowNs) {
        if (request.pull.stage != KvPull.Stage.ORDERED) {
            return;
        }
        due.remove(request);
        if (offer.refused() != null) {
            failed(request, offer.refused(), nowNs);
            return;
        }
        if (offer.stale() != null) {
            request.pull.stale = offer.stale();
        } else if (offer.tokens() != request.script.promptTokens()
                || offer.print() != request.print()) {
            request.pull.stale = "the prefill had another prompt";
        } else if (request.pull.namedBlocks != null
                && !request.pull.namedBlocks.equals(offer.blocks())) {
            request.pull.stale = "the request names other blocks than the prefill's";
        }
        linkFreeNs = Math.max(linkFreeNs, nowNs) + movingNs(request.pull.blocks);
        enter(request, KvPull.Stage.MOVING, linkFreeNs + clock(request.pull.stalls.duringNs()));
    }

    /**
     * The other engine cannot be reached. Before its offer this is seen when the patience has
     * ended, as real engines see a dead port; after it, at once: the bytes cannot be all here.
     */
    void undeliverable(SimRequest request, String why, long nowNs) {
        if (request.pull.stage == KvPull.Stage.ORDERED) {
            request.pull.problem = why;
        } else if (request.pull.stage == KvPull.Stage.CONFIRMING) {
            due.remove(request);
            failed(request, why, nowNs);
        }
    }

    /** The other engine has freed the blocks, or had done so before. */
    void confirmed(SimRequest request, boolean freed, long nowNs) {
        if (request.pull.stage != KvPull.Stage.CONFIRMING) {
            return;
        }
        due.remove(request);
        if (!freed && request.pull.stale == null) {
            request.pull.stale = "the blocks were freed while they were pulled";
        }
        enter(request, KvPull.Stage.ARRIVED, nowNs + clock(request.pull.stalls.afterNs()));
    }

    private void failed(SimRequest request, String why, long nowNs) {
        request.pull.problem = why;
        enter(request, KvPull.Stage.ORDERED, nowNs);
    }

    /**
     * Lets due stages end.
     *
     * @return a request that has all its blocks, or one with a {@link KvPull#problem}; or null
     */
    SimRequest next(long nowNs) {
        while (nextDueNs() <= nowNs) {
            final SimRequest request = due.pollFirst();
            final KvPull pull = request.pull;
            switch (pull.stage) {
                case TAKEN -> {
                    enter(
                            request,
                            KvPull.Stage.ORDERED,
                            pull.dueNs + clock(config.patience().toNanos()));
                    carrier.begin(request);
                }
                case MOVING -> {
                    enter(
                            request,
                            KvPull.Stage.CONFIRMING,
                            pull.dueNs + clock(config.patience().toNanos()));
                    carrier.moved(request);
                }
                case ORDERED -> {
                    pull.problem = pull.problem == null ? SILENT : pull.problem;
                    end(request);
                    return request;
                }
                case CONFIRMING -> {
                    pull.problem = SILENT; // whether all bytes are here is not known
                    end(request);
                    return request;
                }
                case ARRIVED -> {
                    end(request);
                    return request;
                }
                case ENDED -> throw new AssertionError("a pull that has ended is due");
            }
        }
        return null;
    }

    /** When the next stage ends. */
    long nextDueNs() {
        return due.isEmpty() ? RankScheduler.NOTHING_TO_DO : due.first().pull.dueNs;
    }

    private void enter(SimRequest request, KvPull.Stage stage, long dueNs) {
        request.pull.stage = stage;
        request.pull.dueNs = dueNs;
        due.add(request);
    }

    private long movingNs(int blocks) {
        return Math.round(bytes(blocks) / config.bytesPerSecond() * 1e9);
    }

    long bytes(int blocks) {
        return config.bytesPerToken() * blockSize * blocks;
    }

    /** A time on the clock in simulated time. */
    private long clock(long ns) {
        return Math.round(ns * speedUp);
    }
}

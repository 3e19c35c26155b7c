package io.kvasir.router;

import io.kvasir.core.load.PotentialLoads;
import io.kvasir.core.load.PredictedPrefixesConfig;
import io.kvasir.core.memory.ClosedException;
import io.kvasir.core.memory.OffHeap;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.testsupport.Cores;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Routers that are closed while threads call everything that they have: run in a JVM whose off-heap
 * memory is accessed unchecked, where an access to memory that was given back is a crash.
 */
final class CloseRounds {
    private static final int BLOCK = 16;
    private static final int PROMPT = 40 * BLOCK;

    private final Queue<String> unexpected = new ConcurrentLinkedQueue<>();
    private final KvRouter router;
    private final List<Worker> workers = new ArrayList<>();
    private final List<EngineStream> streams = new ArrayList<>();
    private volatile boolean over;

    /** A call that may be refused because the router is closed. */
    private interface Call {
        void run() throws RouteException;
    }

    private CloseRounds() {
        router =
                KvRouter.builder()
                        .maxWorkers(8)
                        .maxBlocks(4_096, 4_096)
                        .maxActiveRequests(64)
                        .routedPrefixes(new PredictedPrefixesConfig(8, 4_096, 0.8, 1_000_000_000L))
                        .build();
        for (int i = 0; i < 4; i++) {
            workers.add(router.addWorker(WorkerSpec.of(i, "w" + i, "http://w")));
        }
        for (int i = 0; i < 2; i++) {
            streams.add(router.openDirect(workers.get(i), EngineMessages.source("w" + i, BLOCK)));
        }
    }

    /**
     * Runs rounds.
     *
     * @param args number of rounds, seed
     */
    public static void main(String[] args) throws InterruptedException {
        final int rounds = Integer.parseInt(args[0]);
        final SplittableRandom random = new SplittableRandom(Long.parseLong(args[1]));
        for (int i = 0; i < rounds; i++) {
            new CloseRounds().round(random.split());
        }
        System.out.println(rounds + " rounds");
    }

    private void round(SplittableRandom random) throws InterruptedException {
        final List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            final SplittableRandom own = random.split();
            threads.add(new Thread(() -> callers(own)));
        }
        threads.add(new Thread(() -> engines(random.split())));
        threads.add(new Thread(this::gauges));
        threads.add(new Thread(this::structures));
        threads.add(new Thread(this::registration));
        threads.forEach(Thread::start);
        LockSupport.parkNanos(random.nextLong(6_000_000));
        router.close();
        LockSupport.parkNanos(1_000_000);
        over = true;
        for (Thread thread : threads) {
            thread.join();
        }
        if (!unexpected.isEmpty()) {
            throw new AssertionError(unexpected.toString());
        }
        final long deadline = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
        while (OffHeap.allocatedBytes() != 0) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError("memory kept: " + OffHeap.allocatedBytes());
            }
            Cores.giveWay();
        }
    }

    /** Calls until the round is over; nothing but the named refusals may come out. */
    private void repeat(Call call) {
        while (!over) {
            try {
                call.run();
            } catch (ClosedException e) {
                // the named refusal
            } catch (RouteException e) {
                if (e.kind() != RouteException.Kind.OVERLOADED) {
                    unexpected.add(e.toString());
                }
            } catch (Throwable t) {
                unexpected.add(t + " " + Arrays.toString(t.getStackTrace()));
                return;
            }
        }
    }

    private void callers(SplittableRandom random) {
        final RouteRequest request = router.newRequest();
        final Decision decision = new Decision();
        final Lease lease = new Lease();
        final int[] tokens = new int[PROMPT];
        repeat(
                () -> {
                    Arrays.setAll(tokens, i -> random.nextInt(4) * 1_000 + i / BLOCK);
                    request.reset().tokens(tokens, tokens.length);
                    router.reserve(request, decision, lease);
                    lease.prefillComplete();
                    lease.outputTokens(BLOCK);
                    lease.close();
                    router.select(request, decision);
                });
        lease.close();
    }

    private void engines(SplittableRandom random) {
        final long[] sequence = new long[streams.size()];
        final int[] tokens = new int[PROMPT];
        repeat(
                () -> {
                    final int i = random.nextInt(streams.size());
                    Arrays.setAll(tokens, t -> random.nextInt(4) * 1_000 + t / BLOCK);
                    streams.get(i)
                            .onMessage(
                                    sequence[i]++,
                                    EngineMessages.stored(tokens, 40, BLOCK, random.nextLong()));
                });
    }

    private void gauges() {
        repeat(
                () -> {
                    for (Worker worker : workers) {
                        worker.activeRequests();
                        worker.activeBlocks();
                        worker.prefillTokens();
                        worker.indexedBlocks();
                        worker.eventSequence();
                        worker.state();
                        worker.available(true);
                    }
                    router.tick(System.nanoTime());
                    router.index().usedBytes();
                    router.activeRequests().usedBytes();
                    router.indexPipeline().backlog();
                    router.bookingPipeline().backlog();
                    router.activeLeases();
                });
    }

    private void structures() {
        final OverlapScores scores = new OverlapScores(8);
        final PotentialLoads loads = new PotentialLoads(8);
        final long[] hashes = new long[64];
        final long[] sequences = new long[8];
        repeat(
                () -> {
                    router.index().appliedSequences(sequences, 8);
                    router.index().match(hashes, 64, scores);
                    router.routedPrefixes().match(hashes, 64, scores);
                    router.activeRequests().matchActive(hashes, 64, scores);
                    router.activeRequests().potentialLoads(hashes, 64, 0, scores, loads);
                });
    }

    private void registration() {
        repeat(
                () -> {
                    final Worker worker;
                    try {
                        worker = router.addWorker(WorkerSpec.of(9, "added", "http://w"));
                    } catch (ClosedException e) {
                        throw e;
                    } catch (IllegalStateException e) {
                        return; // not swept yet
                    }
                    router.openDirect(worker, EngineMessages.source("added", BLOCK));
                    router.removeWorker(worker);
                });
    }
}

package io.kvasir.router;

import io.kvasir.core.memory.ClosedException;
import io.kvasir.core.memory.OffHeap;
import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.testsupport.Cores;
import io.kvasir.testsupport.Shares;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * Ten routers of one JVM that are opened and closed in random order with callers inside: run in a
 * JVM whose off-heap memory is accessed unchecked, where an access to memory that was given back is
 * a crash.
 */
final class ManyRouters {
    private static final int ROUTERS = 10;
    private static final int CALLERS = 3;
    private static final int BLOCK = 16;
    private static final int BLOCKS = 12;

    private final Queue<String> wrong = new ConcurrentLinkedQueue<>();
    private final AtomicReferenceArray<Open> routers = new AtomicReferenceArray<>(ROUTERS);

    /** A router, a stream of its first worker's events, and a prompt that no other router has. */
    private static final class Open {
        final KvRouter router;
        final String prefix;
        final int[] prompt = new int[BLOCKS * BLOCK];
        private final EngineStream events;
        private long sequence;

        Open(int number) {
            prefix = "router" + number + "-";
            router =
                    KvRouter.builder()
                            .maxWorkers(4 + number % 5)
                            .maxBlocks(1_024 + 64 * (number % 7), 1_024)
                            .maxActiveRequests(32 + number % 9)
                            .build();
            for (int i = 0; i < 3; i++) {
                router.addWorker(WorkerSpec.of(i, prefix + i, "http://w" + i));
            }
            events =
                    router.openDirect(
                            router.workers().get(0), EngineMessages.source(prefix + 0, BLOCK));
            Arrays.setAll(prompt, i -> number * 1_000 + i / BLOCK);
        }

        /** Its first worker holds the prompt, or no longer. */
        synchronized void engine() {
            final byte[] message =
                    sequence % 2 == 0
                            ? EngineMessages.stored(prompt, BLOCKS, BLOCK, 0)
                            : EngineMessages.removed(BLOCKS, 0);
            events.onMessage(sequence++, message);
        }
    }

    private interface Step {
        void run() throws RouteException, InterruptedException;
    }

    private ManyRouters() {}

    /**
     * Opens and closes routers.
     *
     * @param args how often, seed
     */
    public static void main(String[] args) throws InterruptedException {
        final ManyRouters all = new ManyRouters();
        all.run(Integer.parseInt(args[0]), new SplittableRandom(Long.parseLong(args[1])));
        if (!all.wrong.isEmpty()) {
            throw new AssertionError(all.wrong.toString());
        }
        final long deadline = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
        while (OffHeap.allocatedBytes() != 0 || !FormerRouters.threads().isEmpty()) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError(
                        OffHeap.allocatedBytes()
                                + " bytes kept, threads "
                                + FormerRouters.threads());
            }
            Cores.giveWay();
        }
        System.out.println(args[0] + " changes");
    }

    private void run(int changes, SplittableRandom random) throws InterruptedException {
        final Shares shares = new Shares(1 + CALLERS);
        final List<Thread> threads = new ArrayList<>();
        final SplittableRandom order = random.split();
        threads.add(new Thread(() -> openAndClose(shares.of(changes), order)));
        for (int i = 0; i < CALLERS; i++) {
            final SplittableRandom own = random.split();
            threads.add(new Thread(() -> call(shares.of(50L * changes), own)));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        for (int i = 0; i < ROUTERS; i++) {
            final Open last = routers.getAndSet(i, null);
            if (last != null) {
                last.router.close();
            }
        }
    }

    private void openAndClose(Shares.Share share, SplittableRandom random) {
        int opened = 0;
        try (share) {
            while (share.goesOn()) {
                final int at = random.nextInt(ROUTERS);
                final Open old = routers.getAndSet(at, new Open(opened++));
                if (old != null) {
                    old.router.close(); // with callers inside
                }
                Cores.giveWay();
            }
        } catch (RuntimeException | OutOfMemoryError e) {
            wrong.add("opening or closing: " + e + " " + Arrays.toString(e.getStackTrace()));
        }
    }

    private void call(Shares.Share share, SplittableRandom random) {
        final Decision decision = new Decision();
        final Lease lease = new Lease();
        try (share) {
            while (share.goesOn()) {
                final Open open = routers.get(random.nextInt(ROUTERS));
                final Open other = routers.get(random.nextInt(ROUTERS));
                if (open != null && other != null) {
                    expectRefusalsOnly(() -> use(open, other, decision, lease, random));
                }
                lease.close();
            }
        }
    }

    private void expectRefusalsOnly(Step step) {
        try {
            step.run();
        } catch (ClosedException e) {
            // the named refusal
        } catch (RouteException e) {
            if (e.kind() != RouteException.Kind.OVERLOADED) {
                wrong.add(e.toString());
            }
        } catch (Throwable t) {
            wrong.add(t + " " + Arrays.toString(t.getStackTrace()));
        }
    }

    private void use(Open open, Open other, Decision decision, Lease lease, SplittableRandom random)
            throws RouteException {
        if (random.nextInt(4) == 0) {
            open.engine();
        }
        final RouteRequest request = open.router.newRequest();
        open.router.reserve(request.tokens(open.prompt, open.prompt.length), decision, lease);
        expectOf(open, decision);
        lease.prefillComplete();
        if (other != open) { // the prompt of another router is cached in none of these workers
            request.reset().tokens(other.prompt, other.prompt.length);
            open.router.select(request, decision);
            expectOf(open, decision);
            for (int i = 0; i < decision.candidateCount(); i++) {
                if (decision.overlapBlocks(i) != 0) {
                    wrong.add(open.prefix + " has blocks of " + other.prefix);
                }
            }
        }
        lease.close();
    }

    private void expectOf(Open open, Decision decision) {
        if (!decision.worker().name().startsWith(open.prefix)) {
            wrong.add(open.prefix + " chose " + decision.worker());
        }
    }
}

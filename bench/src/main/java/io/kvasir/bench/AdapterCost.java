package io.kvasir.bench;

import com.sun.management.ThreadMXBean;

import io.kvasir.core.memory.OffHeap;
import io.kvasir.router.Decision;
import io.kvasir.router.KvRouter;
import io.kvasir.router.RouteException;
import io.kvasir.router.RouteRequest;
import io.kvasir.router.Worker;
import io.kvasir.router.WorkerSpec;
import io.kvasir.router.settings.LoraMode;
import io.kvasir.router.settings.RouterSettings;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.SplittableRandom;

/**
 * LoRA adapters of large fleets. Question answered: what does a selection for an adapter cost
 * beside one without, and what do the sets cost, by workers and adapters a worker?
 *
 * <p>Each worker says a set of its own of all adapters; one further adapter is on ten workers. CPU
 * time of the thread, medians of five rounds.
 */
public final class AdapterCost {
    private static final int ROUNDS = 5;
    private static final int SELECTIONS = 2_000;
    private static final int BLOCK_SIZE = 16;
    private static final int PROMPT_TOKENS = 1_024;
    private static final int RARE = 10;
    private static final double BYTES_PER_MIB = 1 << 20;
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    private final SplittableRandom random = new SplittableRandom(42);
    private final Decision decision = new Decision();

    private AdapterCost() {}

    /** Pairs of workers and adapters a worker; 1,000 and 10,000 by 10 and 1,000 without. */
    public static void main(String[] args) throws RouteException {
        System.out.println(
                "workers adapters  select us: none  on all  on 10   B/select  say us/worker  heap"
                        + " MiB  off-heap MiB");
        final int[] pairs =
                args.length > 0
                        ? List.of(args).stream().mapToInt(Integer::parseInt).toArray()
                        : new int[] {1_000, 10, 1_000, 1_000, 10_000, 10, 10_000, 1_000};
        for (int i = 0; i < pairs.length; i += 2) {
            new AdapterCost().measure(pairs[i], pairs[i + 1]);
        }
    }

    private void measure(int workers, int adapters) throws RouteException {
        final long offHeapBefore = OffHeap.allocatedBytes();
        try (KvRouter router =
                KvRouter.builder()
                        .tickedBy(() -> 0)
                        .blockSize(BLOCK_SIZE)
                        .maxWorkers(workers)
                        .maxBlocks(1 << 16, 1 << 17)
                        .set(RouterSettings.LORA_MODE, LoraMode.REQUIRED)
                        .build()) {
            final List<Worker> all = new ArrayList<>();
            for (int id = 0; id < workers; id++) {
                all.add(router.addWorker(WorkerSpec.of(id, "w" + id, "http://w" + id)));
            }
            final double before = select(router, null);
            final long heapBefore = heap();
            final long offHeap = OffHeap.allocatedBytes();
            long saidNs = 0;
            for (int i = 0; i < workers; i++) {
                final Set<String> names = names(adapters, i < RARE);
                final long startNs = THREADS.getCurrentThreadCpuTime();
                all.get(i).adapters(names);
                saidNs += THREADS.getCurrentThreadCpuTime() - startNs;
            }
            final double said = saidNs / 1e3 / workers;
            final double heap = (heap() - heapBefore) / BYTES_PER_MIB;
            final double onAll = select(router, "adapter-1");
            final long bytes = THREADS.getCurrentThreadAllocatedBytes();
            final double onFew = select(router, "rare");
            final double perSelect =
                    (THREADS.getCurrentThreadAllocatedBytes() - bytes)
                            / (double) (ROUNDS * SELECTIONS);
            System.out.printf(
                    Locale.ROOT,
                    "%7d %8d %16.2f %7.2f %6.2f %10.1f %14.1f %9.1f %13.3f (router %.1f)%n",
                    workers,
                    adapters,
                    before,
                    onAll,
                    onFew,
                    perSelect,
                    said,
                    heap,
                    (OffHeap.allocatedBytes() - offHeap) / BYTES_PER_MIB,
                    (offHeap - offHeapBefore) / BYTES_PER_MIB);
        }
    }

    private static Set<String> names(int adapters, boolean rare) {
        final Set<String> names = new HashSet<>();
        for (int i = 0; i < adapters; i++) {
            names.add("adapter-" + i);
        }
        if (rare) {
            names.add("rare");
        }
        return names;
    }

    private static long heap() {
        System.gc();
        final Runtime runtime = Runtime.getRuntime();
        return runtime.totalMemory() - runtime.freeMemory();
    }

    /** CPU time of a selection, in us. */
    private double select(KvRouter router, String adapterOrNull) throws RouteException {
        final int[] prompt = new int[PROMPT_TOKENS];
        final RouteRequest request = router.newRequest();
        final List<Double> rounds = new ArrayList<>();
        for (int round = 0; round < ROUNDS; round++) {
            final long startNs = THREADS.getCurrentThreadCpuTime();
            for (int i = 0; i < SELECTIONS; i++) {
                prompt[0] = random.nextInt();
                request.reset();
                request.tokens(prompt, prompt.length);
                if (adapterOrNull != null) {
                    request.lora(adapterOrNull);
                }
                router.select(request, decision);
            }
            rounds.add((THREADS.getCurrentThreadCpuTime() - startNs) / 1e3 / SELECTIONS);
        }
        return rounds.stream().sorted().toList().get(ROUNDS / 2);
    }
}

package io.kvasir.bench.gpu;

import io.kvasir.panama.nixl.NixlMemory;

import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;

/**
 * Measures copies and NIXL's transfers of GPU memory; {@code nixl-transfer/gpu/run.sh} starts it.
 *
 * <pre>
 *   copy                                       cuMemcpyAsync, all directions
 *   agent --kinds LIST                         transfers inside one agent
 *   target --exchange DIR --kinds LIST         serves its memory until it gets SIGTERM
 *   initiator --exchange DIR --kinds LIST      transfers against the target, READ and WRITE
 *
 *   --kinds LIST    of vram-vram, vram-dram, dram-vram, dram-dram: the initiator's memory first
 *   --bytes N       most bytes of one transfer; default 256 MiB
 *   --seconds N     ends within it, repeats dropped first; default KVASIR_GPU_LIMIT_S, else 100
 * </pre>
 *
 * Exit codes: 0 measured, 1 a measurement failed, 2 wrong arguments, 3 NIXL or CUDA is missing.
 */
public final class GpuBench {
    /** Shares of the limit: the sweep ends by the first, whatever hangs is ended by the second. */
    private static final double SWEEP_SHARE = 0.8;

    private static final double WATCHDOG_SHARE = 0.95;
    private static final Duration STOP = Duration.ofSeconds(5);

    private final GpuBenchOptions options;
    private final TimeBudget budget;
    private final Watchdog watchdog;

    private GpuBench(GpuBenchOptions options) {
        final double limitNanos = 1e9 * options.limitSeconds();
        this.options = options;
        this.budget = new TimeBudget((long) (SWEEP_SHARE * limitNanos));
        this.watchdog = Watchdog.start(Duration.ofNanos((long) (WATCHDOG_SHARE * limitNanos)));
    }

    /**
     * Runs one process of the bench; ends the JVM with the exit code unless that is 0.
     *
     * @param args as above
     */
    public static void main(String[] args) {
        final int code = run(List.of(args));
        if (code != 0) {
            System.exit(code);
        }
    }

    private static int run(List<String> arguments) {
        final GpuBenchOptions options;
        try {
            options = GpuBenchOptions.parse(arguments, System::getenv);
        } catch (IllegalArgumentException e) {
            System.err.println("gpu-bench: " + e.getMessage());
            return 2;
        }
        try {
            new GpuBench(options).run();
            return 0;
        } catch (MissingPartException e) {
            return failed(options, "needs: " + e.getMessage(), 3);
        } catch (BenchFailure e) {
            return failed(options, "failed: " + e.getMessage(), 1);
        } catch (RuntimeException e) {
            return failed(options, "failed: " + e, 1);
        }
    }

    private static int failed(GpuBenchOptions options, String message, int code) {
        System.err.println("gpu-bench: " + message);
        if (options.mode() == GpuBenchOptions.Mode.TARGET) {
            new Exchange(options.exchange()).put(Exchange.FAILED, message);
        }
        return code;
    }

    private void run() {
        watchdog.step("open the GPU");
        if (!needsGpu()) {
            measure(null);
            return;
        }
        try (Gpu gpu = Gpu.open()) {
            measure(gpu);
        }
    }

    private boolean needsGpu() {
        return options.mode() == GpuBenchOptions.Mode.COPY
                || options.kinds().stream().anyMatch(TransferKind::needsGpu);
    }

    private void measure(Gpu gpu) {
        switch (options.mode()) {
            case COPY -> copy(gpu);
            case AGENT -> agent(gpu);
            case TARGET -> target(gpu);
            case INITIATOR -> initiator(gpu);
        }
    }

    private void copy(Gpu gpu) {
        try (CopySweep sweep = new CopySweep(gpu, options.poolBytes(), budget, watchdog)) {
            sweep.run(System.out);
        }
    }

    private void agent(Gpu gpu) {
        watchdog.step("start NIXL");
        try (Pools near = pools(gpu, TransferKind::local);
                Pools far = pools(gpu, TransferKind::remote);
                NixlEnd end = NixlEnd.open("agent", both(near, far))) {
            sweep(end, near, new OwnRemoteSide(end.name(), far), gpu);
        }
    }

    private void target(Gpu gpu) {
        watchdog.step("start NIXL");
        final Exchange exchange = new Exchange(options.exchange());
        try (Pools pools = pools(gpu, TransferKind::remote);
                NixlEnd end = NixlEnd.open("target", List.copyOf(pools.all()))) {
            final TargetServer server = new TargetServer(exchange, pools, watchdog);
            stopOnSignal(server);
            server.serve(TargetInfo.of(end, pools));
        }
    }

    /** SIGTERM ends the serving, and the JVM once this thread has closed what it opened. */
    private static void stopOnSignal(TargetServer server) {
        final Thread serving = Thread.currentThread();
        Runtime.getRuntime()
                .addShutdownHook(
                        new Thread(
                                () -> {
                                    server.stop();
                                    try {
                                        serving.join(STOP);
                                    } catch (InterruptedException e) {
                                        Thread.currentThread().interrupt();
                                    }
                                }));
    }

    private void initiator(Gpu gpu) {
        watchdog.step("start NIXL");
        final Exchange exchange = new Exchange(options.exchange());
        try (Pools pools = pools(gpu, TransferKind::local);
                NixlEnd end = NixlEnd.open("initiator", List.copyOf(pools.all()))) {
            watchdog.step("wait for the target");
            sweep(end, pools, ExchangedRemoteSide.meet(exchange, end), gpu);
        }
    }

    private void sweep(NixlEnd end, Pools near, RemoteSide far, Gpu gpu) {
        new TransferSweep(end, near, far, gpu, options.poolBytes(), budget, watchdog)
                .run(options.kinds(), System.out);
    }

    private Pools pools(Gpu gpu, Function<TransferKind, NixlMemory> side) {
        final Set<NixlMemory> memories = EnumSet.noneOf(NixlMemory.class);
        options.kinds().forEach(kind -> memories.add(side.apply(kind)));
        return new Pools(memories, gpu, options.poolBytes());
    }

    private static List<Pool> both(Pools near, Pools far) {
        final List<Pool> both = new ArrayList<>(near.all());
        both.addAll(far.all());
        return both;
    }
}

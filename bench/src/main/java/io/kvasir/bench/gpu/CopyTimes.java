package io.kvasir.bench.gpu;

import io.kvasir.panama.cuda.CudaMemory;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;

/**
 * What a plain copy of so many bytes takes, to compare transfers with: {@code cuMemcpyAsync} from
 * device to device where there is a GPU, else memcpy. Measured once for each length.
 */
final class CopyTimes implements AutoCloseable {
    private static final int REPEATS = 21;
    private static final long WARM_UP_BYTES = 4 << 10;

    private final Map<Long, Double> micros = new HashMap<>();
    private final Gpu gpu;
    private final Arena arena = Arena.ofConfined();
    private MemorySegment hostSource;
    private MemorySegment hostTarget;
    private CudaMemory deviceSource;
    private CudaMemory deviceTarget;

    /** Allocates both sides; {@code gpu} is null for host memory. */
    CopyTimes(Gpu gpu, long longest) {
        this.gpu = gpu;
        if (gpu == null) {
            hostSource = arena.allocate(longest, HostPool.PAGE);
            hostTarget = arena.allocate(longest, HostPool.PAGE);
        } else {
            deviceSource = gpu.context().allocate(longest);
            deviceTarget = gpu.context().allocate(longest);
        }
        WarmUp.run(() -> copy(WARM_UP_BYTES));
    }

    /** Wall time of one copy, from the call until it is done: the median, in microseconds. */
    double micros(long length) {
        return micros.computeIfAbsent(length, this::measure);
    }

    private double measure(long length) {
        final Samples samples = new Samples(REPEATS);
        copy(length);
        for (int i = 0; i < REPEATS; i++) {
            final long start = System.nanoTime();
            copy(length);
            samples.add(System.nanoTime() - start);
        }
        return samples.medianMicros();
    }

    private void copy(long length) {
        if (gpu == null) {
            MemorySegment.copy(hostSource, 0, hostTarget, 0, length);
        } else {
            gpu.stream().copyOnDevice(deviceSource, 0, deviceTarget, 0, length);
            gpu.stream().await();
        }
    }

    @Override
    public void close() {
        if (gpu != null) {
            deviceTarget.close();
            deviceSource.close();
        }
        arena.close();
    }
}

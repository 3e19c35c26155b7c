package io.kvasir.bench.gpu;

import io.kvasir.panama.cuda.CudaEvent;
import io.kvasir.panama.cuda.CudaHostMemory;
import io.kvasir.panama.cuda.CudaMemory;
import io.kvasir.panama.cuda.CudaStream;
import io.kvasir.panama.nixl.NixlMemory;

import java.io.PrintStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * What {@code cuMemcpyAsync} reaches: host to device and back with host memory as it is (pageable)
 * and page-locked (registered), and device to device. Each copy's bytes are checked once before its
 * times are taken.
 */
final class CopySweep implements AutoCloseable {
    private static final long SHORTEST = 4L << 10;
    private static final long LONGEST = 64L << 20;
    private static final int STEP = 4;

    private final CudaStream stream;
    private final CudaEvent start;
    private final CudaEvent end;
    private final CudaMemory device;
    private final CudaMemory otherDevice;
    private final Arena arena = Arena.ofConfined();
    private final MemorySegment pageable;
    private final MemorySegment registered;
    private final CudaHostMemory registration;
    private final MemorySegment witness;
    private final long registrationNanos;
    private final long longest;
    private final TimeBudget budget;
    private final Watchdog watchdog;
    private long seed = 1;

    /** The five copies. */
    private enum Copy {
        HOST_TO_DEVICE("h2d", "pageable"),
        HOST_TO_DEVICE_REGISTERED("h2d", "registered"),
        DEVICE_TO_HOST("d2h", "pageable"),
        DEVICE_TO_HOST_REGISTERED("d2h", "registered"),
        DEVICE_TO_DEVICE("d2d", "-");

        private final String direction;
        private final String host;

        Copy(String direction, String host) {
            this.direction = direction;
            this.host = host;
        }
    }

    CopySweep(Gpu gpu, long poolBytes, TimeBudget budget, Watchdog watchdog) {
        this.budget = budget;
        this.watchdog = watchdog;
        longest = Math.min(poolBytes, LONGEST);
        stream = gpu.stream();
        start = gpu.context().createEvent(true);
        end = gpu.context().createEvent(true);
        device = gpu.context().allocate(longest);
        otherDevice = gpu.context().allocate(longest);
        pageable = arena.allocate(longest, HostPool.PAGE);
        registered = arena.allocate(longest, HostPool.PAGE);
        witness = arena.allocate(longest, HostPool.PAGE);
        registered.fill((byte) 1); // the pages exist before they are locked
        final long before = System.nanoTime();
        registration = gpu.context().register(registered);
        registrationNanos = System.nanoTime() - before;
    }

    void run(PrintStream out) {
        out.printf(
                "registered %d bytes of host memory in %s us%n",
                longest, TransferSweep.number(registrationNanos / 1e3));
        final ResultTable table =
                new ResultTable(
                        out, "copy", "host", "bytes", "repeats", "wall_us", "event_us", "gb_per_s");
        final List<Long> lengths = lengths();
        int left = lengths.size() * Copy.values().length;
        for (Copy copy : Copy.values()) {
            watchdog.step("first copy " + copy.direction);
            WarmUp.run(() -> run(copy, SHORTEST));
            for (long length : lengths) {
                if (!budget.isOver()) {
                    watchdog.step(
                            "copy %s %s %d bytes".formatted(copy.direction, copy.host, length));
                    measure(copy, length, left--, table);
                }
            }
        }
        if (left > 0) {
            out.printf("left out %d copies: the time was up%n", left);
        }
    }

    private List<Long> lengths() {
        final List<Long> lengths = new ArrayList<>();
        for (long length = SHORTEST; length <= longest; length *= STEP) {
            lengths.add(length);
        }
        return lengths;
    }

    private void measure(Copy copy, long length, int left, ResultTable table) {
        check(copy, length);
        final long before = System.nanoTime();
        run(copy, length);
        final int repeats = budget.repeats(left, System.nanoTime() - before);
        final Samples walls = new Samples(repeats);
        final Samples events = new Samples(repeats);
        for (int i = 0; i < repeats; i++) {
            final long from = System.nanoTime();
            run(copy, length);
            walls.add(System.nanoTime() - from);
            events.add((long) (end.elapsedMillisSince(start) * 1e6));
        }
        final double wallMicros = walls.medianMicros();
        table.row(
                copy.direction,
                copy.host,
                Long.toString(length),
                Integer.toString(repeats),
                TransferSweep.number(wallMicros),
                TransferSweep.number(events.medianMicros()),
                TransferSweep.number(length / wallMicros / 1e3));
    }

    /** Copies and waits, between two events. */
    private void run(Copy copy, long length) {
        start.record(stream);
        switch (copy) {
            case HOST_TO_DEVICE -> stream.copyToDevice(pageable, 0, device, 0, length);
            case HOST_TO_DEVICE_REGISTERED -> stream.copyToDevice(registered, 0, device, 0, length);
            case DEVICE_TO_HOST -> stream.copyToHost(device, 0, pageable, 0, length);
            case DEVICE_TO_HOST_REGISTERED -> stream.copyToHost(device, 0, registered, 0, length);
            case DEVICE_TO_DEVICE -> stream.copyOnDevice(device, 0, otherDevice, 0, length);
        }
        end.record(stream);
        end.await();
    }

    private void check(Copy copy, long length) {
        final Cell cell = new Cell(length, 1);
        final long bytesOf = seed++;
        switch (copy) {
            case HOST_TO_DEVICE, HOST_TO_DEVICE_REGISTERED -> {
                final MemorySegment host = copy == Copy.HOST_TO_DEVICE ? pageable : registered;
                BytePattern.fill(host, cell, bytesOf);
                run(copy, length);
                verify(fetch(device, length), NixlMemory.VRAM, cell, bytesOf);
            }
            case DEVICE_TO_HOST, DEVICE_TO_HOST_REGISTERED -> {
                fillDevice(cell, bytesOf);
                run(copy, length);
                final MemorySegment host = copy == Copy.DEVICE_TO_HOST ? pageable : registered;
                verify(host, NixlMemory.DRAM, cell, bytesOf);
            }
            case DEVICE_TO_DEVICE -> {
                fillDevice(cell, bytesOf);
                run(copy, length);
                verify(fetch(otherDevice, length), NixlMemory.VRAM, cell, bytesOf);
            }
        }
    }

    private void fillDevice(Cell cell, long bytesOf) {
        BytePattern.fill(witness, cell, bytesOf);
        stream.copyToDevice(witness, 0, device, 0, cell.length());
        stream.await();
    }

    private MemorySegment fetch(CudaMemory from, long length) {
        witness.asSlice(0, length).fill((byte) 0);
        stream.copyToHost(from, 0, witness, 0, length);
        stream.await();
        return witness;
    }

    private static void verify(MemorySegment host, NixlMemory memory, Cell cell, long bytesOf) {
        final long wrong = BytePattern.firstWrong(host, cell, bytesOf);
        if (wrong >= 0) {
            throw Pool.wrongBytes(memory, cell, wrong);
        }
    }

    @Override
    public void close() {
        registration.close();
        otherDevice.close();
        device.close();
        end.close();
        start.close();
        arena.close();
    }
}

package io.kvasir.panama.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;

/** The safe layer on a real device; skipped where there is none. */
class CudaDeviceTest {
    private static final int LENGTH = 1 << 22;

    private CudaContext context;
    private Arena arena;

    @BeforeEach
    void open() {
        final CudaAvailability answer = CudaProbe.probe();
        assumeTrue(
                answer instanceof CudaAvailability.Available,
                "skipped: no CUDA here: " + answer.describe());
        System.out.println(answer.describe());
        arena = Arena.ofShared();
        context = ((CudaAvailability.Available) answer).devices().getFirst().retainPrimaryContext();
        context.setCurrent();
    }

    @AfterEach
    void close() {
        if (context != null) {
            context.close();
            arena.close();
        }
    }

    @Test
    void bytesGoThereAcrossAndBackAndTheEventsTakeTheirTime() {
        final MemorySegment host = arena.allocate(LENGTH);
        for (int i = 0; i < LENGTH; i++) {
            host.set(JAVA_BYTE, i, (byte) (i * 31 + (i >> 8)));
        }
        final MemorySegment back = arena.allocate(LENGTH);
        try (CudaHostMemory registered = context.register(host);
                CudaMemory a = context.allocate(LENGTH);
                CudaMemory b = context.allocate(LENGTH);
                CudaStream stream = context.createStream();
                CudaEvent start = context.createEvent(true);
                CudaEvent end = context.createEvent(true)) {
            a.syncMemoryOperations();
            start.record(stream);
            stream.copyToDevice(registered.memory(), 0, a, 0, LENGTH);
            stream.copyOnDevice(a, 0, b, 0, LENGTH);
            end.record(stream);
            stream.copyToHost(b, 0, back, 0, LENGTH);
            stream.await();
            assertTrue(stream.isDone());
            assertTrue(end.isDone());
            assertEquals(-1, host.mismatch(back));
            assertTrue(end.elapsedMillisSince(start) > 0);
            assertEquals(0, a.deviceOrdinal());
            assertTrue(a.allocatedLength() >= LENGTH);
            assertTrue(context.freeMemoryBytes() > 0);
            assertEquals(64, a.exportHandle().length);
        }
    }

    @Test
    void theDriversRefusalsHaveTheirNames() throws InterruptedException {
        assertEquals(
                Optional.of(CudaResult.OUT_OF_MEMORY),
                assertThrows(CudaException.class, () -> context.allocate(1L << 50)).result());
        final MemorySegment host = arena.allocate(LENGTH, 4096);
        final CudaHostMemory registered = context.register(host);
        assertEquals(
                Optional.of(CudaResult.HOST_MEMORY_ALREADY_REGISTERED),
                assertThrows(CudaException.class, () -> context.register(host)).result());
        registered.close();
        final AtomicReference<Throwable> thrown = new AtomicReference<>();
        final Thread other =
                Thread.ofPlatform()
                        .start(
                                () -> {
                                    try {
                                        context.allocate(LENGTH);
                                    } catch (IllegalStateException e) {
                                        thrown.set(e);
                                    }
                                });
        other.join();
        assertTrue(thrown.get().getMessage().contains("is not current on thread"));
    }
}

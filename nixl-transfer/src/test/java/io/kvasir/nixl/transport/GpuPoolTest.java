package io.kvasir.nixl.transport;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.nixl.loopback.Loopbacks;
import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.memory.KvLayout;
import io.kvasir.nixl.memory.KvPool;
import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.nixl.transport.KvTransport.Operation;
import io.kvasir.nixl.transport.KvTransport.Progress;
import io.kvasir.panama.cuda.CudaAvailability;
import io.kvasir.panama.cuda.CudaContext;
import io.kvasir.panama.cuda.CudaMemory;
import io.kvasir.panama.cuda.CudaProbe;
import io.kvasir.panama.cuda.CudaStream;
import io.kvasir.panama.nixl.NixlMemory;
import io.kvasir.testsupport.Gcc;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;

/** A pool on a GPU as both ends of transfers, with stand-ins for the driver and for NIXL. */
@Tag("integration")
class GpuPoolTest {
    private static final KvLayout LAYOUT = KvLayout.of(KvLayout.Order.LAYER_MAJOR, 8, 2, 512);
    private static final int[] HERE = {1, 3, 9, 11};
    private static final int[] THERE = {7, 0, 15, 8};

    @TempDir private Path folder;

    @Test
    void blocksOfAGpuAreReadAndWritten() {
        assumeTrue(Gcc.isInstalled(), "skipped: gcc cannot be started here");
        final Path driver = Gcc.compileFakeCuda(folder.resolve("libfake_cuda.so"));
        System.setProperty(CudaProbe.LIBRARY_PROPERTY, driver.toString());
        final CudaAvailability cuda = CudaProbe.probe();
        System.clearProperty(CudaProbe.LIBRARY_PROPERTY);
        final FakeNixl nixl = FakeNixl.get();
        try (CudaContext context =
                assertInstanceOf(CudaAvailability.Available.class, cuda)
                        .devices()
                        .getFirst()
                        .retainPrimaryContext()) {
            context.setCurrent();
            move(context, nixl);
        }
        assertEquals(0, nixl.liveHandles());
    }

    private static void move(CudaContext context, FakeNixl nixl) {
        try (CudaMemory memory = context.allocate(LAYOUT.bytes() + KvLayout.PAGE);
                CudaStream stream = context.createStream();
                KvPool host = KvPool.allocate(LAYOUT);
                KvPool gpu = KvPool.on(LAYOUT, memory);
                KvTransport decode = nixl.transport("gpu-decode");
                KvTransport prefill = nixl.transport("gpu-prefill");
                Arena arena = Arena.ofConfined()) {
            assertEquals(NixlMemory.VRAM, gpu.site().memory());
            final KvRegion layer = gpu.regions().getFirst();
            assertThrows(UnsupportedOperationException.class, () -> gpu.block(layer, 0));
            final MemorySegment bytes = arena.allocate(512);
            for (KvRegion region : gpu.regions()) {
                for (int block = 0; block < region.blocks(); block++) {
                    bytes.fill(content(region, block));
                    final long at = region.address(block) - memory.address();
                    stream.copyToDevice(bytes, 0, memory, at, 512);
                    stream.await();
                }
            }
            prefill.register(gpu.regions());
            decode.register(host.regions());
            final String peer = decode.connect(prefill.metadata());
            final long own = decode.prepare(null, host.descriptors());
            final long other =
                    decode.prepare(peer, Descriptors.ofBlocks(LAYOUT.regions(gpu.site())));

            move(decode, Operation.READ, own, other);
            for (int i = 0; i < HERE.length; i++) {
                final KvRegion from = gpu.regions().get(THERE[i] / 8);
                final KvRegion to = host.regions().get(HERE[i] / 8);
                assertEquals(
                        content(from, THERE[i] % 8),
                        host.block(to, HERE[i] % 8).get(ValueLayout.JAVA_BYTE, 511));
            }

            host.block(host.regions().getFirst(), 1).fill((byte) 99);
            move(decode, Operation.WRITE, own, other);
            stream.copyToHost(memory, layer.address(7) - memory.address(), bytes, 0, 512);
            stream.await();
            assertEquals(99, bytes.get(ValueLayout.JAVA_BYTE, 0));

            decode.releaseList(own);
            decode.releaseList(other);
        }
    }

    private static byte content(KvRegion region, int block) {
        return (byte) (block + (region.name().endsWith("1") ? 50 : 10));
    }

    private static void move(KvTransport transport, Operation operation, long own, long other) {
        final long request =
                transport.request(operation, own, HERE, other, THERE, HERE.length, null);
        assertEquals(Progress.DONE, Loopbacks.end(transport, request));
        transport.release(request);
    }
}

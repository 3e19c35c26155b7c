package io.kvasir.panama.cuda;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import io.kvasir.panama.cuda.FakeCuda.Kind;
import io.kvasir.testsupport.Allocations;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** The safe layer against the stand-in for the driver. */
class CudaLayerTest {
    private static final int LENGTH = 4096;

    private static FakeCuda fake;
    private CudaContext context;
    private Arena arena;

    @BeforeAll
    static void build(@TempDir Path folder) {
        fake = FakeCuda.build(folder);
    }

    @BeforeEach
    void open() {
        arena = Arena.ofShared();
        context = fake.device(0).retainPrimaryContext();
        context.setCurrent();
    }

    @AfterEach
    void nothingIsLeft() {
        context.close();
        arena.close();
        for (Kind kind : Kind.values()) {
            assertEquals(0, fake.live(kind), kind::name);
        }
    }

    /** A thread on which nothing was ever current. */
    private static <T> T onAFreshThread(Supplier<T> work) {
        final CompletableFuture<T> result = new CompletableFuture<>();
        final Thread thread =
                Thread.ofPlatform()
                        .start(
                                () -> {
                                    try {
                                        result.complete(work.get());
                                    } catch (Throwable t) {
                                        result.completeExceptionally(t);
                                    }
                                });
        try {
            thread.join();
            return result.join();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        } catch (CompletionException e) {
            throw e.getCause() instanceof RuntimeException r ? r : e;
        }
    }

    private MemorySegment pattern(int length) {
        final MemorySegment bytes = arena.allocate(length);
        for (int i = 0; i < length; i++) {
            bytes.set(JAVA_BYTE, i, (byte) (i * 31 + 7));
        }
        return bytes;
    }

    private static void assertFails(CudaFunction function, CudaResult result, Executable call) {
        final CudaException error = assertThrows(CudaException.class, call);
        assertEquals(function.symbol(), error.function());
        assertEquals(Optional.of(result), error.result());
        assertEquals(result.cName(), error.errorName());
    }

    @Test
    void bytesGoToTheDeviceAcrossItAndBack() {
        final MemorySegment source = pattern(LENGTH);
        final MemorySegment back = arena.allocate(LENGTH);
        try (CudaMemory a = context.allocate(LENGTH);
                CudaMemory b = context.allocate(LENGTH);
                CudaStream stream = context.createStream()) {
            stream.copyToDevice(source, 0, a, 0, LENGTH);
            stream.copyOnDevice(a, 0, b, 0, LENGTH);
            stream.copyToHost(b, 0, back, 0, LENGTH);
            stream.await();
            assertEquals(-1, source.mismatch(back));
            stream.fill(b, 0, 1, (byte) 1);
            b.fill(LENGTH - 1, 1, (byte) 2);
            stream.copyToDevice(source, 100, b, 200, 300);
            stream.copyOnDevice(b, 200, a, 1, 300);
            stream.copyToHost(a, 1, back, 5, 300);
            stream.copyToHost(b, 0, back, 0, 1);
            stream.copyToHost(b, LENGTH - 1, back, LENGTH - 1, 1);
            stream.await();
        }
        assertEquals(1, back.get(JAVA_BYTE, 0));
        assertEquals(2, back.get(JAVA_BYTE, LENGTH - 1));
        assertEquals(source.get(JAVA_BYTE, 1), back.get(JAVA_BYTE, 1));
        assertEquals(-1, source.asSlice(100, 300).mismatch(back.asSlice(5, 300)));
    }

    @ParameterizedTest
    @CsvSource({"-1, 1", "0, 4097", "4096, 1", "4097, 0", "0, -1", "9223372036854775807, 2"})
    void aPartThatIsNotInsideIsRefusedOnEitherSideBeforeTheDriverIsAsked(long offset, long length) {
        final MemorySegment host = arena.allocate(LENGTH);
        final MemorySegment big = arena.allocate(2 * LENGTH);
        try (CudaMemory device = context.allocate(LENGTH);
                CudaMemory bigDevice = context.allocate(2 * LENGTH);
                CudaStream stream = context.createStream()) {
            for (Executable call :
                    new Executable[] {
                        () -> stream.copyToDevice(host, offset, bigDevice, 0, length),
                        () -> stream.copyToDevice(big, 0, device, offset, length),
                        () -> stream.copyToHost(device, offset, big, 0, length),
                        () -> stream.copyToHost(bigDevice, 0, host, offset, length),
                        () -> stream.copyOnDevice(device, offset, bigDevice, 0, length),
                        () -> stream.copyOnDevice(bigDevice, 0, device, offset, length),
                        () -> stream.fill(device, offset, length, (byte) 0),
                        () -> device.fill(offset, length, (byte) 0)
                    }) {
                assertThrows(IndexOutOfBoundsException.class, call);
            }
        }
    }

    @Test
    void hostMemoryThatTheDriverCannotUseIsRefused() throws Exception {
        final MemorySegment heap = MemorySegment.ofArray(new byte[LENGTH]);
        final MemorySegment freed;
        try (Arena gone = Arena.ofConfined()) {
            freed = gone.allocate(LENGTH);
        }
        final MemorySegment foreign =
                onAFreshThread(() -> Arena.ofConfined().allocate(LENGTH)); // never freed: 4 KiB
        final MemorySegment readOnly = arena.allocate(LENGTH).asReadOnly();
        try (CudaMemory device = context.allocate(LENGTH);
                CudaStream stream = context.createStream()) {
            assertThrows(
                    IllegalArgumentException.class,
                    () -> stream.copyToDevice(heap, 0, device, 0, LENGTH));
            assertThrows(IllegalArgumentException.class, () -> context.register(heap));
            assertThrows(
                    IllegalStateException.class,
                    () -> stream.copyToHost(device, 0, freed, 0, LENGTH));
            assertThrows(IllegalStateException.class, () -> context.register(freed));
            assertThrows(
                    WrongThreadException.class,
                    () -> stream.copyToHost(device, 0, foreign, 0, LENGTH));
            assertThrows(
                    IllegalArgumentException.class,
                    () -> stream.copyToHost(device, 0, readOnly, 0, LENGTH));
            stream.copyToDevice(readOnly, 0, device, 0, LENGTH);
            stream.copyToDevice(
                    MemorySegment.ofBuffer(ByteBuffer.allocateDirect(LENGTH)),
                    0,
                    device,
                    0,
                    LENGTH);
            stream.await();
        }
    }

    @Test
    void closingTwiceFreesOnceAndWhatIsClosedIsRefused() {
        final CudaMemory memory = context.allocate(LENGTH);
        final CudaStream stream = context.createStream();
        final CudaEvent event = context.createEvent(true);
        final MemorySegment host = arena.allocate(LENGTH);
        final CudaHostMemory registered = context.register(host);
        for (CudaResource resource : new CudaResource[] {memory, stream, event, registered}) {
            resource.close();
            resource.close();
        }
        assertThrows(IllegalStateException.class, memory::address);
        assertThrows(IllegalStateException.class, memory::exportHandle);
        assertThrows(IllegalStateException.class, memory::syncMemoryOperations);
        assertThrows(IllegalStateException.class, () -> memory.fill(0, 1, (byte) 0));
        assertThrows(IllegalStateException.class, stream::isDone);
        assertThrows(IllegalStateException.class, stream::await);
        assertThrows(IllegalStateException.class, event::isDone);
        assertThrows(IllegalStateException.class, registered::memory);
        final CudaStream other = context.createStream();
        assertThrows(IllegalStateException.class, () -> event.record(other));
        final IllegalStateException error =
                assertThrows(
                        IllegalStateException.class,
                        () -> other.copyToDevice(host, 0, memory, 0, LENGTH));
        assertTrue(error.getMessage().endsWith("length=4096] is closed"), error.getMessage());
    }

    @Test
    void theContextClosesWhatWasLeftAndItselfOnce() {
        context.allocate(LENGTH);
        context.createStream();
        context.createEvent(false);
        final CudaMemory kept = context.allocate(LENGTH);
        context.register(arena.allocate(LENGTH));
        assertEquals(1, fake.live(Kind.CONTEXT_REFERENCE));
        context.close();
        context.close();
        assertEquals(0, fake.live(Kind.CONTEXT_REFERENCE));
        assertEquals(0, fake.live(Kind.MEMORY));
        assertThrows(IllegalStateException.class, kept::address);
        assertThrows(IllegalStateException.class, context::setCurrent);
        assertThrows(IllegalStateException.class, () -> context.allocate(1));
        assertFalse(context.isCurrent());
        kept.close();
    }

    @Test
    void theContextForgetsWhatIsClosed() {
        final WeakReference<CudaEvent> closed = new WeakReference<>(closedEvent());
        final long deadlineNs = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
        while (!closed.refersTo(null)) {
            assertTrue(System.nanoTime() - deadlineNs < 0, "still held after a minute");
            System.gc();
        }
    }

    private CudaEvent closedEvent() {
        final CudaEvent event = context.createEvent(false);
        event.close();
        return event;
    }

    @Test
    void twoReferencesToOneContextEndOneByOne() {
        final CudaContext second = fake.device(0).retainPrimaryContext();
        assertEquals(2, fake.live(Kind.CONTEXT_REFERENCE));
        assertTrue(second.isCurrent());
        second.close();
        context.allocate(LENGTH).close();
    }

    @Test
    void aThreadWithoutTheContextIsToldAndAfterMakingItCurrentMayGoOn() {
        final CudaMemory memory = context.allocate(LENGTH);
        final CudaStream stream = context.createStream();
        final MemorySegment host = pattern(LENGTH);
        final String made =
                onAFreshThread(
                        () ->
                                assertThrows(
                                                IllegalStateException.class,
                                                () -> context.allocate(LENGTH))
                                        .getMessage());
        assertTrue(made.contains("CudaContext[device=0] is not current on thread"), made);
        final String copied =
                onAFreshThread(
                        () ->
                                assertThrows(
                                                CudaException.class,
                                                () ->
                                                        stream.copyToDevice(
                                                                host, 0, memory, 0, LENGTH))
                                        .getMessage());
        assertTrue(copied.startsWith("cuMemcpyHtoDAsync_v2 failed: "), copied);
        assertTrue(copied.contains("CUDA_ERROR_INVALID_CONTEXT (201), to=0x"), copied);
        assertTrue(copied.endsWith("first: CudaContext.setCurrent()"), copied);
        assertTrue(
                onAFreshThread(
                        () -> {
                            context.setCurrent();
                            stream.copyToDevice(host, 0, memory, 0, LENGTH);
                            stream.await();
                            return context.isCurrent();
                        }));
    }

    @Test
    void whatIsMadeDemandsThatItsContextIsCurrent() {
        final MemorySegment host = arena.allocate(LENGTH);
        final byte[] name = context.allocate(LENGTH).exportHandle();
        try (CudaContext other = fake.device(1).retainPrimaryContext()) {
            for (Executable make :
                    new Executable[] {
                        () -> other.allocate(LENGTH),
                        () -> other.openHandle(name, LENGTH),
                        () -> other.register(host),
                        other::createStream,
                        () -> other.createEvent(true),
                        () -> other.enablePeerAccess(context),
                        other::synchronizeAll,
                        other::freeMemoryBytes
                    }) {
                final IllegalStateException error = assertThrows(IllegalStateException.class, make);
                assertTrue(error.getMessage().contains("is not current"), error.getMessage());
            }
        }
    }

    @Test
    void aVirtualThreadIsRefused() throws InterruptedException {
        final CompletableFuture<String> message = new CompletableFuture<>();
        Thread.ofVirtual()
                .start(
                        () ->
                                message.complete(
                                        assertThrows(
                                                        IllegalStateException.class,
                                                        context::setCurrent)
                                                .getMessage()))
                .join();
        assertTrue(message.getNow("").startsWith("a virtual thread keeps no context"));
    }

    @Test
    void copiesRecordsAndQuestionsAllocateNothing() {
        final MemorySegment host = arena.allocate(LENGTH);
        final CudaMemory a = context.allocate(LENGTH);
        final CudaMemory b = context.allocate(LENGTH);
        final CudaStream stream = context.createStream();
        final CudaEvent event = context.createEvent(false);
        final boolean[] done = new boolean[1];
        final long bytes =
                Allocations.bytesPerRound(
                        20_000,
                        () -> {
                            stream.copyToDevice(host, 0, a, 64, 64);
                            stream.copyOnDevice(a, 64, b, 0, 64);
                            stream.copyToHost(b, 0, host, 128, 64);
                            event.record(stream);
                            done[0] = stream.isDone() && event.isDone();
                        });
        assertEquals(0, bytes);
        assertTrue(done[0]);
    }

    @Test
    void closingOnAnyThreadLeavesItsCurrentContextAlone() {
        final CudaMemory memory = context.allocate(LENGTH);
        assertFalse(
                onAFreshThread(
                        () -> {
                            memory.close();
                            return context.isCurrent();
                        }));
        assertEquals(0, fake.live(Kind.MEMORY));
        try (CudaContext other = fake.device(1).retainPrimaryContext()) {
            final CudaMemory mine = context.allocate(LENGTH);
            other.setCurrent();
            mine.close();
            assertTrue(other.isCurrent());
            assertThrows(IllegalStateException.class, () -> context.allocate(LENGTH));
            context.setCurrent();
        }
    }

    @Test
    void notReadyIsAnAnswerAndNotAnError() {
        final CudaStream stream = context.createStream();
        final CudaEvent event = context.createEvent(true);
        event.record(stream);
        fake.fail(CudaFunction.STREAM_QUERY, 600);
        assertFalse(stream.isDone());
        assertTrue(stream.isDone());
        fake.fail(CudaFunction.EVENT_QUERY, 600);
        assertFalse(event.isDone());
        assertTrue(event.isDone());
        fake.fail(CudaFunction.STREAM_QUERY, 700);
        assertFails(CudaFunction.STREAM_QUERY, CudaResult.ILLEGAL_ADDRESS, () -> stream.isDone());
        fake.fail(CudaFunction.EVENT_QUERY, 719);
        assertFails(CudaFunction.EVENT_QUERY, CudaResult.LAUNCH_FAILED, () -> event.isDone());
    }

    @Test
    void eventsTellTheTimeBetweenThemInTheirOrder() {
        final CudaStream stream = context.createStream();
        final CudaEvent start = context.createEvent(true);
        final CudaEvent end = context.createEvent(true);
        final CudaEvent untimed = context.createEvent(false);
        start.record(stream);
        end.record(stream);
        untimed.record(stream);
        stream.waitFor(end);
        end.await();
        assertEquals(4f, end.elapsedMillisSince(start));
        assertEquals(-4f, start.elapsedMillisSince(end));
        assertFails(
                CudaFunction.EVENT_ELAPSED_TIME,
                CudaResult.INVALID_HANDLE,
                () -> untimed.elapsedMillisSince(start));
    }

    @Test
    void memoryIsExportedByNameAndOpenedByValueOfAllItsBytes() {
        final CudaMemory memory = context.allocate(LENGTH);
        memory.fill(0, LENGTH, (byte) 0x77);
        final byte[] name = memory.exportHandle();
        assertEquals(64, name.length);
        final CudaMemory opened = context.openHandle(name, LENGTH);
        final MemorySegment back = arena.allocate(LENGTH);
        final CudaStream stream = context.createStream();
        stream.copyToHost(opened, 0, back, 0, LENGTH);
        stream.await();
        final byte[] expected = new byte[LENGTH];
        Arrays.fill(expected, (byte) 0x77);
        assertArrayEquals(expected, back.toArray(JAVA_BYTE));
        assertEquals(LENGTH, opened.allocatedLength());
        opened.close();
        opened.close();
        assertEquals(0, fake.live(Kind.OPENED));
        assertEquals(1, fake.live(Kind.MEMORY));

        name[63]++; // the last byte of the struct arrives too
        assertFails(
                CudaFunction.IPC_OPEN_MEM_HANDLE,
                CudaResult.INVALID_HANDLE,
                () -> context.openHandle(name, LENGTH));
        assertThrows(
                IllegalArgumentException.class, () -> context.openHandle(new byte[63], LENGTH));
    }

    @Test
    void attributesReachTheDriver() {
        final CudaMemory memory = context.allocate(LENGTH);
        assertFalse(fake.isSynced(memory));
        memory.syncMemoryOperations();
        assertTrue(fake.isSynced(memory));
        assertEquals(0, memory.deviceOrdinal());
        assertEquals(LENGTH, memory.allocatedLength());
        assertEquals(LENGTH, memory.length());
        assertNotEquals(0, memory.address());
        assertEquals(5L << 30, context.freeMemoryBytes());
        context.synchronizeAll();
    }

    @Test
    void hostMemoryIsRegisteredOnceAndGivenBack() {
        final MemorySegment host = arena.allocate(LENGTH);
        try (CudaHostMemory registered = context.register(host)) {
            assertEquals(host, registered.memory());
            assertEquals(1, fake.live(Kind.HOST));
            assertFails(
                    CudaFunction.MEM_HOST_REGISTER,
                    CudaResult.HOST_MEMORY_ALREADY_REGISTERED,
                    () -> context.register(host));
        }
        context.register(host).close();
        assertThrows(IllegalArgumentException.class, () -> context.register(host.asSlice(0, 0)));
    }

    @Test
    void peersAreEnabledOnceAndCopiesBetweenDevicesNameBothContexts() {
        final MemorySegment source = pattern(LENGTH);
        final MemorySegment back = arena.allocate(LENGTH);
        try (CudaContext peer = fake.device(1).retainPrimaryContext()) {
            assertTrue(context.canAccessPeer(peer));
            assertFalse(context.canAccessPeer(context));
            context.enablePeerAccess(peer);
            context.enablePeerAccess(peer);
            assertThrows(IllegalStateException.class, () -> peer.enablePeerAccess(context));
            final CudaMemory here = context.allocate(LENGTH);
            final CudaStream stream = context.createStream();
            peer.setCurrent();
            final CudaMemory there = peer.allocate(LENGTH);
            assertEquals(1, there.deviceOrdinal());
            final CudaEvent theirs = peer.createEvent(false);
            context.setCurrent();
            stream.copyToDevice(source, 0, here, 0, LENGTH);
            stream.copyOnDevice(here, 0, there, 0, LENGTH);
            stream.copyToHost(there, 0, back, 0, LENGTH);
            stream.await();
            assertEquals(-1, source.mismatch(back));
            assertFails(
                    CudaFunction.EVENT_RECORD,
                    CudaResult.INVALID_HANDLE,
                    () -> theirs.record(stream));
            fake.fail(CudaFunction.CTX_ENABLE_PEER_ACCESS, 217);
            assertFails(
                    CudaFunction.CTX_ENABLE_PEER_ACCESS,
                    CudaResult.PEER_ACCESS_UNSUPPORTED,
                    () -> context.enablePeerAccess(peer));
        }
    }

    @Test
    void aRefusalNamesFunctionNumberNameAndWhatItWasAbout() {
        assertEquals(
                "cuMemAlloc_v2 failed: CUDA_ERROR_OUT_OF_MEMORY (2), device=0, length=1073741824",
                assertThrows(CudaException.class, () -> context.allocate(1 << 30)).getMessage());
        assertThrows(IllegalArgumentException.class, () -> context.allocate(0));
        final CudaStream stream = context.createStream();
        fake.fail(CudaFunction.STREAM_SYNCHRONIZE, 214);
        final CudaException known = assertThrows(CudaException.class, stream::await);
        assertEquals("CUDA_ERROR_ECC_UNCORRECTABLE", known.errorName());
        assertEquals(Optional.empty(), known.result());
        fake.fail(CudaFunction.STREAM_SYNCHRONIZE, 12345);
        final CudaException unknown = assertThrows(CudaException.class, stream::await);
        assertEquals("unknown result", unknown.errorName());
        assertEquals(12345, unknown.code());
    }

    @ParameterizedTest
    @CsvSource({
        "MEMCPY_H_TO_D_ASYNC",
        "MEMCPY_D_TO_H_ASYNC",
        "MEMCPY_D_TO_D_ASYNC",
        "MEMSET_D8_ASYNC"
    })
    void aCopyThatTheDriverRefusesSaysWhichOne(CudaFunction function) {
        final MemorySegment host = arena.allocate(LENGTH);
        final CudaMemory memory = context.allocate(LENGTH);
        final CudaStream stream = context.createStream();
        fake.fail(function, 700);
        assertFails(
                function,
                CudaResult.ILLEGAL_ADDRESS,
                () -> {
                    stream.copyToDevice(host, 0, memory, 0, 8);
                    stream.copyToHost(memory, 0, host, 0, 8);
                    stream.copyOnDevice(memory, 0, memory, 8, 8);
                    stream.fill(memory, 0, 8, (byte) 0);
                });
    }

    @Test
    void whatCannotBeMadeLeavesNothingBehind() {
        final MemorySegment host = arena.allocate(LENGTH);
        fake.fail(CudaFunction.STREAM_CREATE, 2);
        assertFails(CudaFunction.STREAM_CREATE, CudaResult.OUT_OF_MEMORY, context::createStream);
        fake.fail(CudaFunction.EVENT_CREATE, 2);
        assertFails(
                CudaFunction.EVENT_CREATE,
                CudaResult.OUT_OF_MEMORY,
                () -> context.createEvent(false));
        fake.fail(CudaFunction.MEM_HOST_REGISTER, 801);
        assertFails(
                CudaFunction.MEM_HOST_REGISTER,
                CudaResult.NOT_SUPPORTED,
                () -> context.register(host));
        fake.fail(CudaFunction.DEVICE_PRIMARY_CTX_RETAIN, 2);
        assertFails(
                CudaFunction.DEVICE_PRIMARY_CTX_RETAIN,
                CudaResult.OUT_OF_MEMORY,
                () -> context.device().retainPrimaryContext());
    }

    @Test
    void aCloseThatFailsIsToldOnceAndTheContextStillGoesBack() {
        final CudaMemory memory = context.allocate(LENGTH);
        final CudaStream stream = context.createStream();
        fake.fail(CudaFunction.STREAM_DESTROY, 700);
        assertFails(CudaFunction.STREAM_DESTROY, CudaResult.ILLEGAL_ADDRESS, stream::close);
        stream.close();
        assertTrue(context.isCurrent());
        fake.fail(CudaFunction.MEM_FREE, 700);
        assertFails(CudaFunction.MEM_FREE, CudaResult.ILLEGAL_ADDRESS, context::close);
        assertEquals(0, fake.live(Kind.CONTEXT_REFERENCE));
        assertThrows(IllegalStateException.class, memory::address);
        assertEquals(1, fake.live(Kind.MEMORY));
        assertEquals(1, fake.live(Kind.STREAM));
        fake.reset();
    }

    @Test
    void theContextTellsTheFirstOfManyFailuresNewestResourceFirst() {
        context.allocate(LENGTH);
        context.createStream();
        fake.fail(CudaFunction.CTX_PUSH_CURRENT, 709);
        fake.fail(CudaFunction.DEVICE_PRIMARY_CTX_RELEASE, 999);
        final CudaException error = assertThrows(CudaException.class, context::close);
        assertEquals(CudaFunction.CTX_PUSH_CURRENT.symbol(), error.function());
        assertEquals(1, fake.live(Kind.STREAM));
        assertEquals(0, fake.live(Kind.MEMORY));
        assertEquals(1, error.getSuppressed().length);
        assertEquals(
                "cuDevicePrimaryCtxRelease_v2 failed: CUDA_ERROR_UNKNOWN (999), device=0",
                error.getSuppressed()[0].getMessage());
        fake.reset();
    }
}

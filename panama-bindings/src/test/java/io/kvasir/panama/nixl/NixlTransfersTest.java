package io.kvasir.panama.nixl;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;

/** Requests over the loopback library, which copies as NIXL does; the rest is tested through it. */
class NixlTransfersTest {
    private static final int DESCRIPTORS = 32;
    private static final int DESCRIPTOR_BYTES = 8;

    private final Arena arena = Arena.ofConfined();
    private final MemorySegment mine =
            arena.allocate(DESCRIPTORS * DESCRIPTOR_BYTES, DESCRIPTOR_BYTES);
    private final MemorySegment theirs =
            arena.allocate(DESCRIPTORS * DESCRIPTOR_BYTES, DESCRIPTOR_BYTES);
    private NixlLibrary library;
    private NixlAgent decode;
    private NixlAgent prefill;
    private NixlTransfers transfers;
    private long own;
    private long remote;

    @BeforeEach
    void connect(@TempDir Path folder) {
        library = Loopback.load(folder);
        prefill = agent("prefill", theirs);
        decode = agent("decode", mine);
        transfers = decode.transfers();
        final String peer = transfers.load(prefill.transfers().metadata());
        own = prepare("", mine);
        remote = prepare(peer, theirs);
        for (int descriptor = 0; descriptor < DESCRIPTORS; descriptor++) {
            theirs.setAtIndex(ValueLayout.JAVA_LONG, descriptor, 100 + descriptor);
        }
    }

    private NixlAgent agent(String name, MemorySegment memory) {
        final NixlAgent agent = library.createAgent(name, NixlAgentConfig.DEFAULT);
        agent.createBackend("LOOPBACK", Map.of());
        agent.transfers()
                .register(
                        NixlMemory.DRAM,
                        new long[] {memory.address()},
                        new long[] {memory.byteSize()},
                        new int[1]);
        return agent;
    }

    private long prepare(String peer, MemorySegment memory) {
        final long[] addresses = new long[DESCRIPTORS];
        final long[] lengths = new long[DESCRIPTORS];
        Arrays.setAll(
                addresses, descriptor -> memory.address() + (long) descriptor * DESCRIPTOR_BYTES);
        Arrays.fill(lengths, DESCRIPTOR_BYTES);
        return transfers.prepare(peer, NixlMemory.DRAM, addresses, lengths, new int[DESCRIPTORS]);
    }

    @AfterEach
    void close() {
        if (decode != null) {
            transfers.releaseList(own);
            transfers.releaseList(remote);
            decode.close();
            prefill.close();
            assertEquals(0, Loopback.liveHandles(library));
        }
        arena.close();
    }

    private void move(long request) {
        int status = transfers.post(request);
        while (status == NixlStatus.IN_PROGRESS.code()) {
            status = transfers.status(request);
        }
        assertEquals(0, status);
        assertEquals(0, transfers.release(request));
    }

    private MemorySegment inNativeMemory(int... indices) {
        return arena.allocateFrom(ValueLayout.JAVA_INT, indices);
    }

    @Test
    void indicesComeFromAnArrayOrFromNativeMemory() {
        final int[] local = {0, 9, 3};
        final int[] other = {30, 2, 31};
        final long[] expected = new long[DESCRIPTORS];
        for (int i = 0; i < local.length; i++) {
            expected[local[i]] = 100L + other[i];
        }
        move(transfers.make(false, own, local, remote, other, 0, local.length, null));
        assertArrayEquals(expected, mine.toArray(ValueLayout.JAVA_LONG));

        mine.fill((byte) 0);
        move(transfers.make(false, own, local, remote, other, 0, 1, null));
        move(transfers.make(false, own, local, remote, other, 1, local.length - 1, null));
        assertArrayEquals(expected, mine.toArray(ValueLayout.JAVA_LONG));

        mine.fill((byte) 0);
        final MemorySegment localIndices = inNativeMemory(local);
        final long request =
                transfers.make(
                        false,
                        own,
                        localIndices.address(),
                        remote,
                        inNativeMemory(other).address(),
                        local.length,
                        null);
        localIndices.fill((byte) 0); // they were read
        move(request);
        assertArrayEquals(expected, mine.toArray(ValueLayout.JAVA_LONG));
    }

    @Test
    void aWriteOfManyIndicesInNativeMemorySendsItsNotification() {
        final int[] all = new int[DESCRIPTORS];
        Arrays.setAll(all, i -> DESCRIPTORS - 1 - i);
        for (int descriptor = 0; descriptor < DESCRIPTORS; descriptor++) {
            mine.setAtIndex(ValueLayout.JAVA_LONG, descriptor, descriptor);
        }
        final long indices = inNativeMemory(all).address();
        move(transfers.make(true, own, indices, remote, indices, DESCRIPTORS, new byte[] {7, 8}));
        assertArrayEquals(
                mine.toArray(ValueLayout.JAVA_LONG), theirs.toArray(ValueLayout.JAVA_LONG));
        assertEquals(
                1,
                prefill.transfers()
                        .notifications(
                                (sender, message) ->
                                        assertArrayEquals(
                                                new byte[] {7, 8},
                                                message.toArray(ValueLayout.JAVA_BYTE))));
    }

    @Test
    void anIndexBeyondTheListIsAnError() {
        final long indices = inNativeMemory(DESCRIPTORS).address();
        final NixlException e =
                assertThrows(
                        NixlException.class,
                        () -> transfers.make(false, own, indices, remote, indices, 1, null));
        assertEquals(NixlStatus.INVALID_PARAM.code(), e.code());
    }

    @Test
    void aClosedAgentMakesNoRequests() {
        final NixlAgent other = library.createAgent("other", NixlAgentConfig.DEFAULT);
        final NixlTransfers closed = other.transfers();
        other.close();
        final int[] index = {0};
        final long indices = inNativeMemory(index).address();
        assertThrows(
                IllegalStateException.class,
                () -> closed.make(false, own, indices, remote, indices, 1, null));
        assertThrows(
                IllegalStateException.class,
                () -> closed.make(false, own, index, remote, index, 0, 1, null));
    }
}

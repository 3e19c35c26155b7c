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
    private static final int PIECES = 32;
    private static final int PIECE_BYTES = 8;

    private final Arena arena = Arena.ofConfined();
    private final MemorySegment mine = arena.allocate(PIECES * PIECE_BYTES, PIECE_BYTES);
    private final MemorySegment theirs = arena.allocate(PIECES * PIECE_BYTES, PIECE_BYTES);
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
        for (int piece = 0; piece < PIECES; piece++) {
            theirs.setAtIndex(ValueLayout.JAVA_LONG, piece, 100 + piece);
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
        final long[] addresses = new long[PIECES];
        final long[] lengths = new long[PIECES];
        Arrays.setAll(addresses, piece -> memory.address() + (long) piece * PIECE_BYTES);
        Arrays.fill(lengths, PIECE_BYTES);
        return transfers.prepare(peer, NixlMemory.DRAM, addresses, lengths, new int[PIECES]);
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

    private MemorySegment inNativeMemory(int... places) {
        return arena.allocateFrom(ValueLayout.JAVA_INT, places);
    }

    @Test
    void placesComeFromAnArrayOrFromNativeMemory() {
        final int[] local = {0, 9, 3};
        final int[] other = {30, 2, 31};
        final long[] expected = new long[PIECES];
        for (int i = 0; i < local.length; i++) {
            expected[local[i]] = 100L + other[i];
        }
        move(transfers.make(false, own, local, remote, other, local.length, null));
        assertArrayEquals(expected, mine.toArray(ValueLayout.JAVA_LONG));

        mine.fill((byte) 0);
        final MemorySegment localPlaces = inNativeMemory(local);
        final long request =
                transfers.make(
                        false,
                        own,
                        localPlaces.address(),
                        remote,
                        inNativeMemory(other).address(),
                        local.length,
                        null);
        localPlaces.fill((byte) 0); // they were read
        move(request);
        assertArrayEquals(expected, mine.toArray(ValueLayout.JAVA_LONG));
    }

    @Test
    void aWriteOfManyPlacesInNativeMemorySendsItsNotification() {
        final int[] all = new int[PIECES];
        Arrays.setAll(all, i -> PIECES - 1 - i);
        for (int piece = 0; piece < PIECES; piece++) {
            mine.setAtIndex(ValueLayout.JAVA_LONG, piece, piece);
        }
        final long places = inNativeMemory(all).address();
        move(transfers.make(true, own, places, remote, places, PIECES, new byte[] {7, 8}));
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
    void aPlaceThatIsNotThereIsAnError() {
        final long places = inNativeMemory(PIECES).address();
        final NixlException e =
                assertThrows(
                        NixlException.class,
                        () -> transfers.make(false, own, places, remote, places, 1, null));
        assertEquals(NixlStatus.INVALID_PARAM.code(), e.code());
    }

    @Test
    void aClosedAgentMakesNoRequests() {
        final NixlAgent other = library.createAgent("other", NixlAgentConfig.DEFAULT);
        final NixlTransfers closed = other.transfers();
        other.close();
        final int[] place = {0};
        final long places = inNativeMemory(place).address();
        assertThrows(
                IllegalStateException.class,
                () -> closed.make(false, own, places, remote, places, 1, null));
        assertThrows(
                IllegalStateException.class,
                () -> closed.make(false, own, place, remote, place, 1, null));
    }
}

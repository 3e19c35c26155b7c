package io.kvasir.nixl.transport;

import static io.kvasir.nixl.loopback.Loopbacks.end;
import static io.kvasir.nixl.loopback.Loopbacks.fill;
import static io.kvasir.nixl.loopback.Loopbacks.isFilled;
import static io.kvasir.nixl.loopback.Loopbacks.refused;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.nixl.engine.KvLink;
import io.kvasir.nixl.engine.LocalBlocks;
import io.kvasir.nixl.engine.Transfer;
import io.kvasir.nixl.engine.TransferConfig;
import io.kvasir.nixl.engine.TransferEngine;
import io.kvasir.nixl.loopback.Loopbacks;
import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.memory.KvLayout;
import io.kvasir.nixl.memory.KvLayout.Order;
import io.kvasir.nixl.memory.KvPool;
import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.nixl.transport.KvTransport.NotificationHandler;
import io.kvasir.nixl.transport.KvTransport.Operation;
import io.kvasir.nixl.transport.KvTransport.Progress;
import io.kvasir.nixl.transport.KvTransportException.Kind;
import io.kvasir.panama.nixl.NixlMemory;
import io.kvasir.testsupport.Allocations;
import io.kvasir.testsupport.Seeds;

import org.agrona.LangUtil;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * What {@link KvTransport} promises, asked of two ends in one process: a prefill, whose blocks are
 * read and written, and a decode that does it.
 */
public abstract class KvTransportContract {
    private static final int BLOCKS = 32;
    private static final int LAYERS = 4;
    private static final KvLayout LAYOUT = KvLayout.of(Order.LAYER_MAJOR, BLOCKS, LAYERS, 4096);
    private static final long QUIET_NS = 5_000_000;

    private KvTransport prefill;
    private KvTransport decode;
    private KvPool prefillPool;
    private KvPool decodePool;
    private long own;
    private long remote;
    private int received;

    /** Makes an end. */
    protected abstract KvTransport open(String name);

    /** Makes memory that the ends of this process can register. */
    protected KvPool pool(KvLayout layout, KvTransport owner) {
        return KvPool.allocate(layout);
    }

    /** Makes requests of all blocks run on after their post; false if that cannot be arranged. */
    protected abstract boolean slowDown();

    /** Everything was closed. */
    protected void closed() throws Exception {}

    @BeforeEach
    final void open() {
        prefill = open("prefill");
        decode = open("decode");
        pools(LAYOUT);
        prefill.register(prefillPool.regions());
        decode.register(decodePool.regions());
        assertEquals("prefill", decode.connect(prefill.metadata()));
        own = decode.prepare(null, decodePool.descriptors());
        remote = decode.prepare("prefill", prefillPool.descriptors());
    }

    private void pools(KvLayout layout) {
        prefillPool = pool(layout, prefill);
        decodePool = pool(layout, decode);
    }

    @AfterEach
    final void close() throws Exception {
        decode.close();
        prefill.close();
        decodePool.close();
        prefillPool.close();
        closed();
    }

    private static int[] blocks(int... blocks) {
        return LAYOUT.indices(0, blocks, 0, LAYERS);
    }

    private static int[] all() {
        final int[] all = new int[BLOCKS * LAYERS];
        Arrays.setAll(all, index -> index);
        return all;
    }

    private long read(int[] to, int[] from, byte[] notification) {
        return decode.request(Operation.READ, own, to, remote, from, to.length, notification);
    }

    private long write(int[] from, int[] to, byte[] notification) {
        return decode.request(Operation.WRITE, own, from, remote, to, from.length, notification);
    }

    /** Starts a request of all blocks that is still running, or ends the test as skipped. */
    private long running(byte[] notification) {
        assumeTrue(slowDown(), "skipped: this transport copies inside the post");
        final long start = System.nanoTime();
        while (true) {
            final long request = write(all(), all(), notification);
            final Progress progress = decode.post(request);
            if (progress == Progress.RUNNING) {
                return request;
            }
            assertEquals(Progress.DONE, progress); // TCP may be done before a post returns
            assertTrue(System.nanoTime() - start < Loopbacks.DEADLINE_NS, "it never runs on");
            assertTrue(decode.release(request));
            messages(prefill, notification == null ? 0 : 1);
        }
    }

    private void isDone(long request) {
        assertEquals(Progress.DONE, end(decode, request));
        assertTrue(decode.release(request));
    }

    private static void fillAll(KvPool pool, long seed) {
        long number = seed;
        for (KvRegion region : pool.regions()) {
            for (int block = 0; block < region.blocks(); block++) {
                fill(pool.block(region, block), number++);
            }
        }
    }

    private static boolean holds(KvPool pool, int index, long seed) {
        int block = index;
        for (KvRegion region : pool.regions()) {
            if (block < region.blocks()) {
                return isFilled(pool.block(region, block), seed);
            }
            block -= region.blocks();
        }
        throw new IndexOutOfBoundsException(index);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** Waits for so many messages, and then a little longer for one too many. */
    private static List<String> messages(KvTransport transport, int count) {
        final List<String> messages = new ArrayList<>();
        final NotificationHandler handler =
                (peer, bytes) ->
                        messages.add(
                                peer
                                        + ":"
                                        + new String(
                                                bytes.toArray(ValueLayout.JAVA_BYTE),
                                                StandardCharsets.UTF_8));
        final long start = System.nanoTime();
        while (messages.size() < count) {
            assertTrue(System.nanoTime() - start < Loopbacks.DEADLINE_NS, messages.toString());
            transport.notifications(handler);
        }
        final long all = System.nanoTime();
        while (System.nanoTime() - all < QUIET_NS) {
            transport.notifications(handler);
        }
        return messages;
    }

    // -- memory and peers

    @Test
    void memoryIsRegisteredOnce() {
        final KvRegion first = decodePool.regions().getFirst();
        final KvRegion within =
                new KvRegion("within", 0, NixlMemory.DRAM, 0, first.base() + 1, 1, 1, 1);
        refused(Kind.INVALID, "overlap", () -> decode.register(decodePool.regions()));
        refused(Kind.INVALID, "overlap", () -> decode.register(List.of(within)));
        refused(Kind.INVALID, "no region", () -> decode.register(List.of()));
        final KvLayout layout = KvLayout.of(Order.BLOCK_MAJOR, 2, 1, 4096);
        try (KvPool more = pool(layout, decode)) {
            final KvRegion region = more.regions().getFirst();
            refused(Kind.INVALID, "overlap", () -> decode.register(List.of(region, region)));
            refused(
                    Kind.INVALID,
                    "descriptor",
                    () -> decode.prepare(null, Descriptors.ofBlocks(List.of(region))));
            decode.register(List.of(region));
            decode.releaseList(decode.prepare(null, Descriptors.ofBlocks(List.of(region))));
            decode.deregister(List.of(region));
        }
        isDone(read(blocks(1), blocks(2), null));
    }

    @Test
    void onlyWhatWasRegisteredTogetherIsDeregistered() {
        final List<KvRegion> regions = decodePool.regions();
        refused(
                Kind.INVALID,
                "not registered together",
                () -> decode.deregister(regions.subList(0, 2)));
        isDone(read(blocks(1), blocks(2), null));
        decode.releaseList(own);
        decode.deregister(regions);
        refused(Kind.INVALID, "not registered together", () -> decode.deregister(regions));
        refused(Kind.INVALID, "descriptor", () -> decode.prepare(null, decodePool.descriptors()));
        decode.register(regions);
        own = decode.prepare(null, decodePool.descriptors());
        isDone(read(blocks(1), blocks(2), null));
    }

    @Test
    void laterMetadataAddsRegions() {
        final KvLayout layout = KvLayout.of(Order.BLOCK_MAJOR, 4, 4, 1024);
        try (KvPool more = pool(layout, prefill)) {
            prefill.register(more.regions());
            refused(
                    Kind.INVALID,
                    "descriptor",
                    () -> decode.prepare("prefill", more.descriptors()));
            assertEquals("prefill", decode.connect(prefill.metadata()));
            final long list = decode.prepare("prefill", more.descriptors());
            fill(more.block(more.regions().getFirst(), 3), 77);
            isDone(
                    decode.request(
                            Operation.READ, own, new int[] {6}, list, new int[] {3}, 1, null));
            assertTrue(holds(decodePool, 6, 77));
            isDone(read(blocks(1), blocks(2), null)); // lists of before are good still
            decode.close();
            prefill.close();
        }
    }

    @Test
    void garbageIsNoMetadata() {
        final byte[] random = new byte[200];
        new Random(1).nextBytes(random);
        for (byte[] garbage : List.of(new byte[0], random, bytes("hello"))) {
            refused(Kind.BAD_METADATA, "", () -> decode.connect(garbage));
        }
        isDone(read(blocks(1), blocks(2), null));
    }

    /** NIXL may lose the peer that it is of. */
    @Test
    void aPartOfMetadataIsRefusedAndCostsNoOtherPeer() {
        final byte[] metadata = prefill.metadata();
        refused(
                Kind.BAD_METADATA,
                "",
                () -> decode.connect(Arrays.copyOf(metadata, metadata.length / 2)));
        try (KvTransport other = open("other");
                KvPool otherPool = pool(LAYOUT, other)) {
            other.register(otherPool.regions());
            decode.connect(other.metadata());
            final long list = decode.prepare("other", otherPool.descriptors());
            isDone(decode.request(Operation.READ, own, blocks(1), list, blocks(2), LAYERS, null));
            decode.releaseList(list);
            decode.disconnect("other");
        }
    }

    @Test
    void descriptorsLieInsideOneRegisteredRegion() {
        final KvRegion last = decodePool.regions().getLast();
        final KvRegion beyond =
                new KvRegion("beyond", 0, NixlMemory.DRAM, 0, last.base() + 1, 4096, 4096, BLOCKS);
        final KvRegion across =
                new KvRegion(
                        "across", 0, NixlMemory.DRAM, 0, decodePool.base() + 2048, 4096, 4096, 64);
        for (KvRegion wrong : List.of(beyond, across)) {
            refused(
                    Kind.INVALID,
                    "descriptor",
                    () -> decode.prepare(null, Descriptors.ofBlocks(List.of(wrong))));
            refused(
                    Kind.INVALID,
                    "descriptor",
                    () -> decode.prepare("prefill", Descriptors.ofBlocks(List.of(wrong))));
        }
    }

    @Test
    void unknownPeersAreNamed() {
        refused(
                Kind.UNKNOWN_PEER,
                "nobody",
                () -> decode.prepare("nobody", prefillPool.descriptors()));
        refused(Kind.UNKNOWN_PEER, "nobody", () -> decode.send("nobody", bytes("x")));
        decode.disconnect("nobody");
    }

    // -- requests

    @Test
    void requestsThatDoNotFitAreRefused() {
        final int[] one = {0};
        refused(
                Kind.INVALID,
                "localIndices[0]=" + BLOCKS * LAYERS,
                () -> read(new int[] {BLOCKS * LAYERS}, one, null));
        refused(Kind.INVALID, "remoteIndices[0]=-1", () -> read(one, new int[] {-1}, null));
        for (int count : new int[] {-1, 0, 2}) {
            refused(
                    Kind.INVALID,
                    "count=" + count,
                    () -> decode.request(Operation.READ, own, one, remote, one, count, null));
        }
        final String ends = "own memory and one of a peer's";
        refused(
                Kind.INVALID,
                ends,
                () -> decode.request(Operation.READ, remote, one, own, one, 1, null));
        refused(
                Kind.INVALID,
                ends,
                () -> decode.request(Operation.READ, own, one, own, one, 1, null));
        for (long list : new long[] {0, -1, 7L << 32 | 1}) {
            refused(
                    Kind.INVALID,
                    "list 0x" + Long.toHexString(list),
                    () -> decode.request(Operation.READ, own, one, list, one, 1, null));
        }
        refused(Kind.INVALID, "8193 bytes", () -> read(one, one, new byte[8193]));
        final KvRegion half =
                new KvRegion("half", 0, NixlMemory.DRAM, 0, prefillPool.base(), 2048, 2048, 4);
        final long halves = decode.prepare("prefill", Descriptors.ofBlocks(List.of(half)));
        refused(
                Kind.INVALID,
                "descriptors 0 differ",
                () -> decode.request(Operation.READ, own, one, halves, one, 1, null));
        decode.releaseList(halves);
        decode.releaseList(own); // none of them holds it
    }

    static List<KvLayout> layouts() {
        return List.of(
                KvLayout.of(Order.BLOCK_MAJOR, 24, 3, 1008),
                KvLayout.of(Order.LAYER_MAJOR, 24, 3, 1008),
                KvLayout.of(Order.KEYS_AND_VALUES_APART, 24, 3, 1008),
                KvLayout.of(
                        List.of(
                                new KvLayout.Group(Order.LAYER_MAJOR, 16, 2, 4096),
                                new KvLayout.Group(Order.BLOCK_MAJOR, 8, 4, 512))));
    }

    @ParameterizedTest
    @MethodSource("layouts")
    void blocksOfEveryLayoutAreReadAndWrittenAndNoOthers(KvLayout layout) {
        final Random random = new Random(Seeds.next("layouts"));
        decode.deregister(decodePool.regions());
        prefill.deregister(prefillPool.regions());
        decodePool.close();
        prefillPool.close();
        pools(layout);
        decode.register(decodePool.regions());
        prefill.register(prefillPool.regions());
        decode.connect(prefill.metadata());
        final long here = decode.prepare(null, decodePool.descriptors());
        final long there = decode.prepare("prefill", prefillPool.descriptors());
        final int indices = decodePool.descriptors().count();
        final long[] local = new long[indices]; // what each index holds, by its seed
        final long[] other = new long[indices];
        Arrays.setAll(local, index -> index);
        Arrays.setAll(other, index -> 1_000 + index);
        fillAll(decodePool, 0);
        fillAll(prefillPool, 1_000);
        for (int round = 0; round < 30; round++) {
            final int group = random.nextInt(layout.groups().size());
            final KvLayout.Group shape = layout.groups().get(group);
            final int count = 1 + random.nextInt(shape.blocks());
            final int[] from = layout.indices(group, some(random, shape, count), 0, shape.layers());
            final int[] to = layout.indices(group, some(random, shape, count), 0, shape.layers());
            final boolean reads = random.nextBoolean();
            final int cut = random.nextInt(from.length); // the arrays are used in two parts
            for (int first = 0; first < from.length; first = first < cut ? cut : from.length) {
                isDone(
                        decode.request(
                                reads ? Operation.READ : Operation.WRITE,
                                here,
                                reads ? to : from,
                                there,
                                reads ? from : to,
                                first,
                                (first < cut ? cut : from.length) - first,
                                null));
            }
            for (int i = 0; i < from.length; i++) {
                (reads ? local : other)[to[i]] = (reads ? other : local)[from[i]];
            }
        }
        for (int index = 0; index < indices; index++) {
            assertTrue(holds(decodePool, index, local[index]), "own index " + index);
            assertTrue(holds(prefillPool, index, other[index]), "the peer's index " + index);
        }
    }

    private static int[] some(Random random, KvLayout.Group group, int count) {
        return random.ints(0, group.blocks()).distinct().limit(count).toArray();
    }

    @Test
    void aNotificationComesOnceAndAfterTheBytes() {
        for (int round = 0; round < 50; round++) {
            fillAll(decodePool, 10_000L * round);
            final long request = write(all(), all(), bytes("round " + round));
            Progress progress = decode.post(request);
            final List<String> messages = new ArrayList<>();
            final long seed = 10_000L * round;
            final NotificationHandler handler =
                    (peer, bytes) -> {
                        messages.add(peer);
                        assertTrue(holds(prefillPool, 0, seed));
                        assertTrue(
                                holds(
                                        prefillPool,
                                        BLOCKS * LAYERS - 1,
                                        seed + BLOCKS * LAYERS - 1));
                    };
            final long start = System.nanoTime();
            while (progress == Progress.RUNNING || messages.isEmpty()) {
                assertTrue(System.nanoTime() - start < Loopbacks.DEADLINE_NS, "no message");
                prefill.notifications(handler);
                progress = decode.status(request);
            }
            assertEquals(Progress.DONE, progress);
            assertEquals(List.of("decode"), messages);
            assertTrue(decode.release(request));
        }
        assertEquals(List.of(), messages(prefill, 0));
        isDone(read(blocks(1), blocks(2), null));
        assertEquals(List.of(), messages(prefill, 0), "none was asked for");
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 7, 8, 9, 1000, KvTransport.MAX_MESSAGE})
    void messagesOfEverySizeArriveWhole(int length) {
        final byte[] text = bytes("n".repeat(length));
        isDone(read(blocks(1), blocks(2), text));
        assertEquals(List.of("decode:" + "n".repeat(length)), messages(prefill, 1));
        decode.send("prefill", text);
        assertEquals(List.of("decode:" + "n".repeat(length)), messages(prefill, 1));
    }

    @Test
    void messagesKeepTheirOrderAndLongerOnesAreRefused() {
        prefill.connect(decode.metadata());
        for (int i = 0; i < 100; i++) {
            decode.send("prefill", bytes("m" + i));
        }
        final List<String> messages = messages(prefill, 100);
        for (int i = 0; i < 100; i++) {
            assertEquals("decode:m" + i, messages.get(i));
        }
        prefill.send("decode", bytes("back"));
        assertEquals(List.of("prefill:back"), messages(decode, 1));
        refused(Kind.INVALID, "8193", () -> decode.send("prefill", new byte[8193]));
        assertEquals(List.of(), messages(prefill, 0));
    }

    @Test
    void aHandlerThatThrowsLosesNoOtherMessage() {
        handlerThrows(new IllegalStateException("handler"));
    }

    @Test
    void aHandlerThatFailsWithAnErrorLosesNoOtherMessage() {
        handlerThrows(new AssertionError("handler"));
    }

    private void handlerThrows(Throwable fault) {
        decode.send("prefill", bytes("1"));
        decode.send("prefill", bytes("2"));
        decode.send("prefill", bytes("3"));
        final List<Integer> seen = new ArrayList<>();
        int thrown = 0;
        final long start = System.nanoTime();
        while (seen.size() < 3) {
            assertTrue(System.nanoTime() - start < Loopbacks.DEADLINE_NS, seen.toString());
            try {
                prefill.notifications(
                        (peer, message) -> {
                            seen.add(message.get(ValueLayout.JAVA_BYTE, 0) - '0');
                            if (seen.size() == 1) {
                                LangUtil.rethrowUnchecked(fault);
                            }
                        });
            } catch (IllegalStateException | AssertionError e) {
                assertSame(fault, e);
                thrown++;
            }
        }
        assertEquals(List.of(1, 2, 3), seen);
        assertEquals(1, thrown);
        assertEquals(List.of(), messages(prefill, 0));
    }

    @Test
    void aRequestCanBePostedAgainWhenItIsDone() {
        final long request = read(blocks(1), blocks(2), bytes("again"));
        for (int round = 0; round < 3; round++) {
            fillAll(prefillPool, 1_000L * round);
            assertEquals(Progress.DONE, end(decode, request));
            assertTrue(holds(decodePool, 1, 1_000L * round + 2));
            assertEquals(Progress.DONE, decode.status(request));
            assertEquals(List.of("decode:again"), messages(prefill, 1));
        }
        assertTrue(decode.release(request));
    }

    @Test
    void aRunningRequestIsNotPostedAgainNorItsListsReleased() {
        final long request = running(null);
        refused(Kind.INVALID, "is running", () -> decode.post(request));
        refused(Kind.INVALID, "1 requests", () -> decode.releaseList(own));
        refused(Kind.INVALID, "1 requests", () -> decode.releaseList(remote));
        refused(Kind.INVALID, "not done", () -> decode.telemetry(request, new TransferTelemetry()));
        refused(Kind.INVALID, "not failed", () -> decode.failure(request));
        assertTrue(decode.release(request));
        decode.releaseList(own);
        decode.releaseList(remote);
    }

    @Test
    void aRunningRequestThatIsReleasedTellsNobody() {
        final long request = running(bytes("done"));
        assertTrue(decode.release(request));
        assertEquals(List.of(), messages(prefill, 0));
        refused(Kind.INVALID, Long.toHexString(request), () -> decode.status(request));
        refused(Kind.INVALID, "unknown or released", () -> decode.release(request));
    }

    @Test
    void whatWasNotPostedHasNoProgress() {
        final long request = read(blocks(1), blocks(2), bytes("never"));
        refused(Kind.INVALID, "not posted", () -> decode.status(request));
        refused(Kind.INVALID, "not done", () -> decode.telemetry(request, new TransferTelemetry()));
        refused(Kind.INVALID, "not failed", () -> decode.failure(request));
        assertTrue(decode.release(request));
        assertEquals(List.of(), messages(prefill, 0));
    }

    @Test
    void telemetryIsRightOrAbsent() {
        final long request = read(blocks(1, 2, 3, 5), blocks(11, 12, 13, 14), null);
        assertEquals(Progress.DONE, end(decode, request));
        final TransferTelemetry telemetry = new TransferTelemetry();
        if (decode.telemetry(request, telemetry)) {
            assertEquals(4 * LAYERS * 4096, telemetry.bytes);
            assertEquals(2 * LAYERS, telemetry.descriptors, "1-3 and 5, in each layer");
            assertTrue(telemetry.postNs >= 0 && telemetry.transferNs >= 0);
        }
        assertTrue(decode.release(request));
    }

    @Test
    void releasedHandlesAreNeverTakenForOthers() {
        final long request = read(blocks(1), blocks(2), null);
        decode.release(request);
        final List<Long> later = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            later.add(read(blocks(1), blocks(2), null));
            assertNotEquals(request, later.getLast());
        }
        for (Executable use :
                List.<Executable>of(
                        () -> decode.post(request),
                        () -> decode.status(request),
                        () -> decode.failure(request),
                        () -> decode.telemetry(request, new TransferTelemetry()),
                        () -> decode.release(request))) {
            refused(Kind.INVALID, "0x" + Long.toHexString(request), use);
        }
        refused(Kind.INVALID, "request 0x7", () -> decode.post(7));
        refused(Kind.INVALID, "20 requests", () -> decode.releaseList(own));
        later.forEach(decode::release);
        final long stale = own;
        decode.releaseList(own);
        own = decode.prepare(null, decodePool.descriptors());
        assertNotEquals(stale, own);
        refused(Kind.INVALID, "0x" + Long.toHexString(stale), () -> decode.releaseList(stale));
        refused(
                Kind.INVALID,
                "0x" + Long.toHexString(stale),
                () ->
                        decode.request(
                                Operation.READ, stale, blocks(1), remote, blocks(2), LAYERS, null));
        isDone(read(blocks(1), blocks(2), null));
    }

    // -- ends of ends

    @Test
    void whatWasMadeBeforeADisconnectIsWorthNothingAfterIt() {
        final long request = read(blocks(1), blocks(2), bytes("x"));
        decode.disconnect("prefill");
        refused(Kind.UNKNOWN_PEER, "prefill", () -> decode.send("prefill", bytes("x")));
        refused(
                Kind.UNKNOWN_PEER,
                "prefill",
                () -> decode.prepare("prefill", prefillPool.descriptors()));
        refused(Kind.PEER_LOST, "prefill", () -> read(blocks(1), blocks(2), null));

        assertEquals("prefill", decode.connect(prefill.metadata()));
        assertEquals(Progress.FAILED, decode.post(request));
        assertEquals(Progress.FAILED, decode.status(request));
        assertTrue(decode.failure(request).contains("prefill"), decode.failure(request));
        refused(Kind.INVALID, "has failed", () -> decode.post(request));
        refused(Kind.PEER_LOST, "prefill", () -> read(blocks(1), blocks(2), null));
        assertTrue(decode.release(request));
        decode.releaseList(remote);

        remote = decode.prepare("prefill", prefillPool.descriptors());
        fillAll(prefillPool, 500);
        isDone(read(blocks(1), blocks(2), bytes("again")));
        assertTrue(holds(decodePool, 1, 502));
        assertEquals(List.of("decode:again"), messages(prefill, 1));
    }

    @Test
    void aRunningRequestOfADisconnectedPeerFails() {
        final long request = running(null);
        decode.disconnect("prefill");
        assertEquals(Progress.FAILED, decode.status(request));
        assertTrue(decode.failure(request).contains("prefill"), decode.failure(request));
        assertTrue(decode.release(request));
    }

    @Test
    void aClosedPeerIsLostAndItsSuccessorIsAnother() {
        isDone(read(blocks(1), blocks(2), null));
        final long request = read(blocks(1), blocks(2), null);
        prefill.close();
        final long start = System.nanoTime();
        while (end(decode, request) != Progress.FAILED) { // NIXL sees it some milliseconds later
            assertTrue(System.nanoTime() - start < Loopbacks.DEADLINE_NS, "never lost");
        }
        assertTrue(decode.failure(request).contains("prefill"), decode.failure(request));
        refused(Kind.PEER_LOST, "prefill", () -> decode.send("prefill", bytes("x")));
        assertTrue(decode.release(request));
        decode.releaseList(remote);
        decode.disconnect("prefill");

        prefill = open("prefill");
        prefill.register(prefillPool.regions());
        decode.connect(prefill.metadata());
        remote = decode.prepare("prefill", prefillPool.descriptors());
        fillAll(prefillPool, 900);
        isDone(read(blocks(3), blocks(4), bytes("new")));
        assertTrue(holds(decodePool, 3, 904));
        assertEquals(List.of("decode:new"), messages(prefill, 1));
    }

    @Test
    void aClosedTransportRefusesEverything() {
        final long request = read(blocks(1), blocks(2), null);
        decode.close();
        decode.close();
        for (Executable use :
                List.<Executable>of(
                        decode::metadata,
                        () -> decode.register(decodePool.regions()),
                        () -> decode.deregister(decodePool.regions()),
                        () -> decode.connect(new byte[1]),
                        () -> decode.disconnect("prefill"),
                        () -> decode.prepare(null, decodePool.descriptors()),
                        () -> decode.releaseList(own),
                        () -> read(blocks(1), blocks(2), null),
                        () -> decode.post(request),
                        () -> decode.status(request),
                        () -> decode.failure(request),
                        () -> decode.release(request),
                        () -> decode.telemetry(request, new TransferTelemetry()),
                        () -> decode.send("prefill", new byte[1]),
                        () -> decode.notifications((peer, message) -> {}))) {
            refused(Kind.INVALID, "is closed", use);
        }
        assertEquals("decode", decode.name());
        decodePool.block(decodePool.regions().getFirst(), 0).fill((byte) 1); // still mapped
    }

    // -- allocation

    @Test
    void aWarmRequestAllocatesNothing() {
        final int[] local = blocks(1, 2, 3, 7, 8, 20);
        final int[] other = blocks(4, 5, 6, 9, 1, 2);
        final TransferTelemetry telemetry = new TransferTelemetry();
        assertEquals(
                0,
                Allocations.bytesPerRound(
                        2_000,
                        () -> {
                            final long request =
                                    decode.request(
                                            Operation.READ,
                                            own,
                                            local,
                                            remote,
                                            other,
                                            local.length,
                                            null);
                            Progress progress = decode.post(request);
                            while (progress == Progress.RUNNING) {
                                progress = decode.status(request);
                            }
                            decode.telemetry(request, telemetry);
                            decode.release(request);
                        }));
    }

    @Test
    void aNotificationAllocatesNothingWhereItIsSent() {
        final byte[] notification = new byte[40];
        final int[] indices = blocks(1);
        final AtomicInteger sent = new AtomicInteger();
        // 50 calls, six rounds at most, 48 bytes each: fits into the loopback's inbox unread
        assertEquals(
                0,
                Allocations.bytesPerRound(
                        50,
                        () -> {
                            final long request =
                                    decode.request(
                                            Operation.WRITE,
                                            own,
                                            indices,
                                            remote,
                                            indices,
                                            indices.length,
                                            notification);
                            Progress progress = decode.post(request);
                            while (progress == Progress.RUNNING) {
                                progress = decode.status(request);
                            }
                            decode.release(request);
                            sent.incrementAndGet();
                        }));
        assertEquals(sent.get(), messages(prefill, sent.get()).size());
    }

    @Test
    void pollingForMessagesAllocatesNothing() {
        final NotificationHandler handler = (peer, message) -> received++;
        decode.send("prefill", new byte[40]);
        final long start = System.nanoTime();
        while (received == 0) {
            assertTrue(System.nanoTime() - start < Loopbacks.DEADLINE_NS, "no message");
            prefill.notifications(handler);
        }
        assertEquals(0, Allocations.bytesPerRound(2_000, () -> prefill.notifications(handler)));
        assertEquals(1, received);
    }

    @Test
    void aTransferFromItsFillingToItsEndAllocatesNothing() {
        try (TransferEngine engine =
                new TransferEngine(
                        decode,
                        new TransferConfig(16, 8, 1 << 20, 64 << 10, 64),
                        System::nanoTime,
                        (peer, message) -> {})) {
            final var local = engine.local(decodePool.descriptors());
            final var link = engine.link(prefill.metadata(), prefillPool.descriptors());
            engine.doWork();
            final Transfer transfer = new Transfer();
            assertEquals(
                    0,
                    Allocations.bytesPerRound(
                            300, () -> pull(engine, transfer, local.join(), link.join())));
            assertEquals(LAYERS, transfer.completedStages());
            assertEquals(
                    0,
                    Allocations.bytesPerRound(
                            300, () -> push(engine, transfer, local.join(), link.join())));
            assertEquals(Transfer.State.DONE, transfer.state());
        }
    }

    /** All blocks of one layer after the other. */
    private static void pull(
            TransferEngine engine, Transfer transfer, LocalBlocks own, KvLink link) {
        submit(engine, fillLayers(transfer.pull(own, link)));
        while (!transfer.state().isEnd()) {
            engine.doWork();
        }
    }

    /** The same the other way, each layer when the one before is there. */
    private static void push(
            TransferEngine engine, Transfer transfer, LocalBlocks own, KvLink link) {
        submit(engine, fillLayers(transfer.push(own, link)).gated());
        while (!transfer.state().isEnd()) {
            engine.doWork();
            transfer.openStages(transfer.completedStages() + 1);
        }
    }

    private static Transfer fillLayers(Transfer transfer) {
        for (int layer = 0; layer < LAYERS; layer++) {
            for (int block = 0; block < BLOCKS; block++) {
                transfer.add(layer * BLOCKS + block, layer * BLOCKS + BLOCKS - 1 - block);
            }
            transfer.endStage(null);
        }
        return transfer;
    }

    private static void submit(TransferEngine engine, Transfer transfer) {
        if (!engine.submit(transfer)) {
            throw new IllegalStateException("no room for one transfer");
        }
    }

    @Test
    void aRefusalLeavesNothingBehind() {
        for (int i = 0; i < 200; i++) {
            assertThrows(
                    KvTransportException.class, () -> read(new int[] {-1}, new int[] {0}, null));
            assertThrows(KvTransportException.class, () -> decode.connect(new byte[5]));
        }
        final long request = read(blocks(1), blocks(2), null);
        assertTrue(decode.release(request));
        decode.releaseList(own);
        decode.releaseList(remote);
        decode.disconnect("prefill");
        decode.deregister(decodePool.regions());
        assertFalse(decode.metadata().length == 0);
    }
}

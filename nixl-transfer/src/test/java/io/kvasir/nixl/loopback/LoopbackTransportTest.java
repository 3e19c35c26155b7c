package io.kvasir.nixl.loopback;

import static io.kvasir.nixl.loopback.Loopbacks.end;
import static io.kvasir.nixl.loopback.Loopbacks.fill;
import static io.kvasir.nixl.loopback.Loopbacks.isFilled;
import static io.kvasir.nixl.loopback.Loopbacks.refused;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.memory.KvLayout;
import io.kvasir.nixl.memory.KvLayout.Order;
import io.kvasir.nixl.memory.KvPool;
import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.nixl.transport.KvTransport.Operation;
import io.kvasir.nixl.transport.KvTransport.Progress;
import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.nixl.transport.KvTransportException.Kind;
import io.kvasir.nixl.transport.TransferTelemetry;
import io.kvasir.panama.nixl.NixlMemory;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** What the loopback promises beyond the contract of all transports. */
class LoopbackTransportTest {
    private static final KvLayout LAYOUT = KvLayout.of(Order.LAYER_MAJOR, 32, 4, 4096);

    private Path folder;
    private LoopbackTransport prefill;
    private LoopbackTransport decode;
    private KvPool prefillPool;
    private KvPool decodePool;
    private long own;
    private long remote;

    @BeforeEach
    void open() throws IOException {
        folder = Loopbacks.folder();
        prefill = new LoopbackTransport("prefill", Loopbacks.config(folder));
        decode = new LoopbackTransport("decode", Loopbacks.config(folder));
    }

    @AfterEach
    void close() throws IOException {
        prefill.close();
        decode.close();
        if (prefillPool != null) {
            prefillPool.close();
            decodePool.close();
        }
        Loopbacks.deleteEmpty(folder);
    }

    private void connect() {
        prefillPool = prefill.pool(LAYOUT);
        decodePool = decode.pool(LAYOUT);
        prefill.register(prefillPool.regions());
        decode.register(decodePool.regions());
        assertEquals("prefill", decode.connect(prefill.metadata()));
        own = decode.prepare(null, decodePool.descriptors());
        remote = decode.prepare("prefill", prefillPool.descriptors());
    }

    private static int[] blocks(int... blocks) {
        return LAYOUT.indices(0, blocks, 0, 4);
    }

    private long read(int[] local, int[] from, byte[] notification) {
        return decode.request(Operation.READ, own, local, remote, from, local.length, notification);
    }

    private static void fillAll(KvPool pool, long seed) {
        for (KvRegion region : pool.regions()) {
            for (int block = 0; block < region.blocks(); block++) {
                fill(pool.block(region, block), seed + block);
            }
        }
    }

    private static List<String> messages(LoopbackTransport transport) {
        final List<String> messages = new ArrayList<>();
        transport.notifications(
                (peer, bytes) ->
                        messages.add(
                                peer
                                        + ":"
                                        + new String(
                                                bytes.toArray(ValueLayout.JAVA_BYTE),
                                                StandardCharsets.UTF_8)));
        return messages;
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    @Test
    void aLargeCopyIsMadeInChunksAndItsNotificationComesLast() {
        connect();
        fillAll(prefillPool, 300);
        final int[] all = new int[32];
        Arrays.setAll(all, block -> block);
        final long request = read(blocks(all), blocks(all), bytes("done"));

        int polls = 1;
        Progress progress = decode.post(request);
        while (progress == Progress.RUNNING) {
            assertEquals(List.of(), messages(prefill));
            progress = decode.status(request);
            polls++;
        }

        assertEquals(Progress.DONE, progress);
        assertEquals(8, polls, "512 KiB in chunks of 64 KiB");
        assertEquals(List.of("decode:done"), messages(prefill));
        assertTrue(isFilled(decodePool.block(decodePool.regions().getLast(), 31), 331));
    }

    @Test
    void neighboursAreMergedAndTheTelemetrySaysSo() {
        connect();
        final long request = read(blocks(1, 2, 3, 5), blocks(11, 12, 13, 14), null);
        end(decode, request);
        final TransferTelemetry telemetry = new TransferTelemetry();

        assertTrue(decode.telemetry(request, telemetry));

        assertEquals(16 * 4096, telemetry.bytes);
        assertEquals(8, telemetry.descriptors, "1-3 and 5, in four layers");
        assertTrue(telemetry.postNs > 0);
        assertEquals(telemetry.postNs, telemetry.transferNs, "one chunk is copied in the post");
    }

    @Test
    void limitsAreNamed() {
        connect();
        final List<Long> requests = new ArrayList<>();
        for (int i = 0; i < 64; i++) {
            requests.add(read(blocks(1), blocks(1), null));
        }
        refused(Kind.CAPACITY, "maxRequests", () -> read(blocks(1), blocks(1), null));
        requests.forEach(decode::release);
        for (int i = 2; i < 64; i++) {
            decode.prepare(null, decodePool.descriptors());
        }
        refused(Kind.CAPACITY, "maxLists", () -> decode.prepare(null, decodePool.descriptors()));
        final List<KvRegion> many = new ArrayList<>();
        for (int i = 0; i < 256; i++) {
            many.add(new KvRegion("r" + i, 0, NixlMemory.DRAM, 0, 4096L * (i + 1), 1, 1, 1));
        }
        refused(Kind.CAPACITY, "maxRegions", () -> decode.register(many));
        refused(Kind.CAPACITY, "bytes left", () -> decode.share(1L << 60));
    }

    @Test
    void morePeersThanTheLimitAreRefusedOnBothSides() {
        final List<LoopbackTransport> others = new ArrayList<>();
        try {
            for (int i = 0; i < 5; i++) {
                others.add(new LoopbackTransport("other" + i, Loopbacks.config(folder)));
            }
            for (int i = 0; i < 4; i++) {
                decode.connect(others.get(i).metadata());
                others.get(i).connect(prefill.metadata());
            }
            refused(
                    Kind.CAPACITY,
                    "LoopbackConfig.maxPeers",
                    () -> decode.connect(others.get(4).metadata()));
            refused(Kind.CAPACITY, "all taken", () -> others.get(4).connect(prefill.metadata()));
            others.get(0).close(); // leaves its lane free, once the inbox is read
            messages(prefill);
            others.get(4).connect(prefill.metadata());
        } finally {
            others.forEach(LoopbackTransport::close);
        }
    }

    @Test
    void messagesKeepTheirOrderOverReconnectsAndManyTurnsOfTheInbox() {
        connect();
        for (int round = 0; round < 300; round++) {
            for (int i = 0; i < round % 7; i++) {
                decode.send("prefill", bytes("x".repeat(round * 10 + i)));
            }
            if (round % 50 == 49) {
                decode.disconnect("prefill"); // its messages wait still
                decode.connect(prefill.metadata());
            }
            final List<String> messages = messages(prefill);
            assertEquals(round % 7, messages.size());
            for (int i = 0; i < messages.size(); i++) {
                assertEquals("decode:".length() + round * 10 + i, messages.get(i).length());
            }
        }
    }

    @Test
    void aFullInboxIsNamedAndGoesOnWhenItIsRead() {
        connect();
        final byte[] message = new byte[8 << 10];
        int sent = 0;
        final KvTransportException full;
        while (true) {
            try {
                decode.send("prefill", message);
                sent++;
                assertTrue(sent < 100, "never full");
            } catch (KvTransportException e) {
                full = e;
                break;
            }
        }
        assertEquals(Kind.CAPACITY, full.kind());
        assertTrue(full.getMessage().contains("inboxBytes"), full.getMessage());
        final long request = read(blocks(1), blocks(2), message);
        assertEquals(Progress.FAILED, end(decode, request));
        assertTrue(decode.failure(request).contains("is full"), decode.failure(request));
        refused(Kind.INVALID, "has failed", () -> decode.post(request));

        assertEquals(sent, messages(prefill).size());
        decode.send("prefill", message);
        assertEquals(1, messages(prefill).size());
        refused(Kind.INVALID, "8193", () -> decode.send("prefill", new byte[8193]));
    }

    @Test
    void aClosedPeerIsLostAndItsSuccessorNeedsNewMetadata() {
        connect();
        final long request = read(blocks(1), blocks(2), bytes("x"));
        final byte[] old = prefill.metadata();
        prefill.close();
        prefill = new LoopbackTransport("prefill", Loopbacks.config(folder));

        assertEquals(Progress.FAILED, decode.post(request));
        assertTrue(decode.failure(request).contains("is gone"), decode.failure(request));
        assertEquals(Progress.FAILED, decode.status(request));
        refused(Kind.PEER_LOST, "is gone", () -> decode.send("prefill", bytes("x")));
        refused(Kind.PEER_LOST, "is gone", () -> read(blocks(1), blocks(2), null));
        refused(Kind.PEER_LOST, "is gone", () -> decode.connect(old));

        decode.connect(prefill.metadata());
        assertEquals(Progress.FAILED, decode.status(request));
        refused(Kind.PEER_LOST, "is gone", () -> read(blocks(1), blocks(2), null));
        decode.send("prefill", bytes("new"));
        assertEquals(List.of("decode:new"), messages(prefill));
        decode.release(request);
        decode.releaseList(remote);
    }

    @Test
    void ownMemoryThatWasClosedFailsTheRequest() {
        connect();
        final long request = read(blocks(1), blocks(2), null);

        decodePool.close();

        assertEquals(Progress.FAILED, decode.post(request));
        assertTrue(decode.failure(request).contains("closed"), decode.failure(request));
    }

    @Test
    void memoryThatLostItsFileSystemFailsTheRequest() throws IOException {
        connect();
        final long request = read(blocks(1), blocks(2), null);
        for (String file : Loopbacks.files(folder)) {
            if (file.endsWith("-0.memory")) {
                try (RandomAccessFile cut =
                        new RandomAccessFile(folder.resolve(file).toFile(), "rw")) {
                    cut.setLength(SharedFolder.PAGE); // as a page that cannot be had
                }
            }
        }

        assertEquals(Progress.FAILED, decode.post(request));
        assertTrue(decode.failure(request).contains("cannot be touched"), decode.failure(request));
    }

    @Test
    void twoLivingEndsCannotHaveOneName() {
        connect();
        try (LoopbackTransport twin = new LoopbackTransport("prefill", Loopbacks.config(folder));
                LoopbackTransport self =
                        new LoopbackTransport("decode", Loopbacks.config(folder))) {
            refused(Kind.INVALID, "must be unique", () -> decode.connect(twin.metadata()));
            refused(Kind.INVALID, "must be unique", () -> decode.connect(self.metadata()));
        }
    }

    @Test
    void anEndThatLeavesAndComesBackKeepsTheOrderOfItsMessages() {
        final List<String> received = new ArrayList<>();
        try (LoopbackTransport first = new LoopbackTransport("first", Loopbacks.config(folder))) {
            first.connect(prefill.metadata());
            decode.connect(prefill.metadata());
            first.disconnect("prefill"); // the lane before decode's is free from the next poll on
            prefill.notifications((peer, message) -> received.add(peer));
            decode.send("prefill", bytes("a"));
            decode.disconnect("prefill");
            decode.connect(prefill.metadata());
            decode.send("prefill", bytes("b"));
        }
        prefill.notifications(
                (peer, message) ->
                        received.add(
                                new String(
                                        message.toArray(ValueLayout.JAVA_BYTE),
                                        StandardCharsets.UTF_8)));
        assertEquals(List.of("a", "b"), received);
    }

    @Test
    void anEndIsAPeerOfItself() {
        connect();
        fillAll(decodePool, 10);
        decode.connect(decode.metadata());
        final long self = decode.prepare("decode", decodePool.descriptors());
        final long request =
                decode.request(
                        Operation.READ, own, blocks(3), self, blocks(8), 4, bytes("to myself"));

        assertEquals(Progress.DONE, end(decode, request));
        assertTrue(isFilled(decodePool.block(decodePool.regions().getFirst(), 3), 18));
        assertEquals(List.of("decode:to myself"), messages(decode));
    }

    @Test
    void anotherFolderIsNamed() throws IOException {
        final Path other = Loopbacks.folder();
        try (LoopbackTransport far = new LoopbackTransport("far", Loopbacks.config(other))) {
            refused(Kind.INVALID, "LoopbackConfig.folder", () -> decode.connect(far.metadata()));
        }
        Loopbacks.deleteEmpty(other);
    }

    @Test
    void whatAKilledProcessLeftIsDeletedAtTheNextStart() throws IOException {
        final String dead = "kvasir-999999999-1700000000000-beef";
        Files.createFile(folder.resolve(dead + ".inbox"));
        Files.createFile(folder.resolve(dead + "-0.memory"));
        final Path another = Files.createFile(folder.resolve("kvasir-notes.txt"));

        new LoopbackTransport("third", Loopbacks.config(folder)).close();

        assertEquals(
                List.of(),
                Loopbacks.files(folder).stream().filter(file -> file.startsWith(dead)).toList());
        assertTrue(Files.exists(another));
        Files.delete(another);
    }

    @Test
    void memoryOfAGpuIsRefused() {
        refused(
                Kind.INVALID,
                "VRAM",
                () ->
                        decode.register(
                                List.of(
                                        new KvRegion(
                                                "gpu", 0, NixlMemory.VRAM, 0, 4096, 1, 1, 1))));
    }

    @Test
    void aClosedTransportSharesNothing() {
        decode.close();
        refused(Kind.INVALID, "is closed", () -> decode.share(1));
    }
}

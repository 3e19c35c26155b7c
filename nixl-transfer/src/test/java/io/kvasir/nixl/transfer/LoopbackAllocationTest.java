package io.kvasir.nixl.transfer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.transfer.KvLayout.Order;
import io.kvasir.nixl.transfer.KvTransport.NotificationHandler;
import io.kvasir.nixl.transfer.KvTransport.Operation;
import io.kvasir.nixl.transfer.KvTransport.Progress;
import io.kvasir.testsupport.Allocations;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.file.Path;

class LoopbackAllocationTest {
    private static final int BLOCKS = 64;
    private static final KvLayout LAYOUT =
            KvLayout.of(Order.KEYS_AND_VALUES_APART, BLOCKS, 4, 1024);

    private final int[] blocks = new int[32];
    private final int[] local = new int[blocks.length * 8];
    private final int[] remote = new int[blocks.length * 8];
    private final byte[] notification = new byte[40];
    private final TransferTelemetry telemetry = new TransferTelemetry();
    private final NotificationHandler nobody =
            (peer, message) -> {
                throw new IllegalStateException("no message was sent");
            };

    private Path folder;
    private LoopbackTransport decode;
    private LoopbackTransport prefill;
    private KvPool decodePool;
    private KvPool prefillPool;
    private long localList;
    private long remoteList;
    private int turn;
    private int received;

    @BeforeEach
    void open() throws IOException {
        folder = Loopbacks.folder();
        decode = new LoopbackTransport("decode", Loopbacks.config(folder));
        prefill = new LoopbackTransport("prefill", Loopbacks.config(folder));
        decodePool = KvPool.share(LAYOUT, decode);
        prefillPool = KvPool.share(LAYOUT, prefill);
        decode.register(decodePool.regions());
        prefill.register(prefillPool.regions());
        decode.connect(prefill.metadata());
        localList = decode.prepare(null, decodePool.descriptors());
        remoteList = decode.prepare("prefill", prefillPool.descriptors());
    }

    @AfterEach
    void close() throws IOException {
        decode.close();
        prefill.close();
        decodePool.close();
        prefillPool.close();
        Loopbacks.deleteEmpty(folder);
    }

    @Test
    void aWarmRequestAllocatesNothing() {
        assertEquals(0, Allocations.bytesPerRound(2_000, () -> copy(null)));
        assertTrue(telemetry.bytes > 64 << 10, "it takes more than one call");
    }

    @Test
    void aNotificationAllocatesNothingWhereItIsSent() {
        // 50 calls, six rounds, 48 bytes each: fits into the inbox without being read
        assertEquals(0, Allocations.bytesPerRound(50, () -> copy(notification)));
        assertEquals(300, prefill.notifications((peer, message) -> received++));
    }

    @Test
    void pollingForMessagesAllocatesNothing() {
        decode.send("prefill", notification);
        prefill.notifications((peer, message) -> received++);
        assertEquals(1, received);
        assertEquals(0, Allocations.bytesPerRound(2_000, () -> prefill.notifications(nobody)));
    }

    private void copy(byte[] message) {
        turn++;
        for (int i = 0; i < blocks.length; i++) {
            blocks[i] = (turn * 7 + i * (1 + turn % 3)) % BLOCKS;
        }
        final int count = LAYOUT.places(0, blocks, blocks.length, 0, 4, remote);
        for (int i = 0; i < blocks.length; i++) {
            blocks[i] = (turn * 3 + i) % BLOCKS;
        }
        LAYOUT.places(0, blocks, blocks.length, 0, 4, local);
        final long request =
                decode.request(
                        Operation.READ, localList, local, remoteList, remote, count, message);
        Progress progress = decode.post(request);
        while (progress == Progress.RUNNING) {
            progress = decode.status(request);
        }
        decode.telemetry(request, telemetry);
        decode.release(request);
    }
}

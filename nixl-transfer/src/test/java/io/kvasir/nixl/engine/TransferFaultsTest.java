package io.kvasir.nixl.engine;

import static io.kvasir.nixl.loopback.Loopbacks.isFilled;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.engine.Transfer.State;
import io.kvasir.nixl.loopback.Loopbacks;
import io.kvasir.nixl.memory.KvLayout;
import io.kvasir.nixl.memory.KvLayout.Order;
import io.kvasir.nixl.memory.KvPool;
import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.nixl.transport.FakeNixl;
import io.kvasir.nixl.transport.NixlTransport;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.BooleanSupplier;

/** The engine over NIXL's transport and the loopback library, which fails as it is told to. */
class TransferFaultsTest {
    private static final KvLayout LAYOUT = KvLayout.of(Order.BLOCK_MAJOR, 32, 1, 1024);
    private static final long HOUR_NS = 3_600_000_000_000L;
    private static final byte[] DONE = "request:1".getBytes(StandardCharsets.US_ASCII);

    private final FakeNixl fake = FakeNixl.get();
    private NixlTransport prefill;
    private KvPool prefillPool;
    private KvPool decodePool;
    private TransferEngine engine;
    private LocalBlocks own;
    private KvLink link;
    private long skippedNs;
    private int ends;

    @BeforeEach
    void open() {
        prefill = fake.transport("prefill");
        prefillPool = KvPool.allocate(LAYOUT);
        decodePool = KvPool.allocate(LAYOUT);
        prefill.register(prefillPool.regions());
        final NixlTransport decode = fake.transport("decode");
        decode.register(decodePool.regions());
        engine =
                new TransferEngine(
                        decode,
                        new TransferConfig(64, 8, 16 << 10, 4 << 10, 4),
                        this::nowNs,
                        (peer, message) -> {});
        own = now(engine.local(decodePool.descriptors()));
        link = link();
        fill(1);
    }

    private long nowNs() {
        return System.nanoTime() + skippedNs;
    }

    private KvLink link() {
        return now(engine.link(prefill.metadata(), prefillPool.descriptors()));
    }

    private <T> T now(CompletableFuture<T> future) {
        engine.doWork();
        return future.join();
    }

    private void fill(long seed) {
        final KvRegion region = prefillPool.regions().getFirst();
        for (int block = 0; block < region.blocks(); block++) {
            Loopbacks.fill(prefillPool.block(region, block), seed + block);
        }
    }

    private boolean holds(int block, long seed) {
        return isFilled(decodePool.block(decodePool.regions().getFirst(), block), seed);
    }

    @AfterEach
    void close() {
        fake.heal();
        engine.close();
        prefill.close();
        decodePool.close();
        prefillPool.close();
        assertEquals(0, fake.liveHandles());
    }

    /** Pulls so many blocks to the same indices. */
    private Transfer pull(int blocks) {
        final Transfer transfer = new Transfer().pull(own, link).listener(ended -> ends++);
        for (int block = 0; block < blocks; block++) {
            transfer.add(block, block);
        }
        transfer.endStage(DONE);
        assertTrue(engine.submit(transfer));
        return transfer;
    }

    private void workUntil(BooleanSupplier holds) {
        final long start = System.nanoTime();
        while (!holds.getAsBoolean()) {
            assertTrue(System.nanoTime() - start < Loopbacks.DEADLINE_NS, "it never comes");
            engine.doWork();
        }
    }

    private void work(int times) {
        for (int i = 0; i < times; i++) {
            engine.doWork();
        }
    }

    private void ends(Transfer transfer, State how) {
        workUntil(() -> transfer.state().isEnd());
        assertEquals(how, transfer.state());
        assertEquals(how == State.DONE, transfer.failure() == null);
        work(10);
        assertEquals(1, ends);
        assertEquals(0, engine.stuckRequests());
    }

    private int messages() {
        return prefill.notifications(
                (peer, message) -> {
                    assertEquals("decode", peer);
                    assertEquals(DONE.length, message.byteSize());
                });
    }

    @Test
    void aSlowPeerIsWaitedFor() {
        fake.delay("prefill", 400_000); // twice, as the last request waits for the others
        final Transfer transfer = pull(12);
        work(8);
        assertEquals(State.RUNNING, transfer.state());
        ends(transfer, State.DONE);
        for (int block = 0; block < 12; block++) {
            assertTrue(holds(block, 1 + block));
        }
        assertFalse(holds(12, 13));
        assertEquals(1, messages());
        assertTrue(link.expectedNs(4, 4096) > 1_000_000, "its slowness is learned");
    }

    @Test
    void aStuckPeerExpiresAndItsBlocksAreKeptUntilTheyAreReleased() {
        fake.stick("prefill", true);
        fake.failReleases("decode", Long.MAX_VALUE);
        final Transfer transfer = pull(12);
        transfer.deadlineNs(nowNs() + HOUR_NS);
        work(10);
        assertEquals(State.RUNNING, transfer.state());
        assertEquals(0, engine.stuckRequests());
        skippedNs += 2 * HOUR_NS;
        work(20);
        assertEquals(State.RUNNING, transfer.state(), "bytes may still come");
        assertTrue(engine.stuckRequests() > 0);
        assertEquals(0, ends);
        final KvRegion region = decodePool.regions().getFirst();
        fake.failReleases("decode", 0);
        ends(transfer, State.EXPIRED);
        decodePool.block(region, 0).fill((byte) 7);
        fake.stick("prefill", false);
        work(20);
        assertEquals(7, decodePool.block(region, 0).get(ValueLayout.JAVA_BYTE, 0));
        assertEquals(0, messages());
        assertTrue(link.isUp(), "late is not lost");
    }

    @Test
    void bytesThatComeWhileAReleaseFailsStillBelongToTheTransfer() {
        fake.stick("prefill", true);
        fake.failReleases("decode", 2);
        final Transfer transfer = pull(4);
        work(3);
        transfer.cancel();
        work(1);
        assertEquals(1, engine.stuckRequests());
        assertFalse(holds(0, 1));
        fake.stick("prefill", false); // the release that succeeds finds it done
        ends(transfer, State.CANCELLED);
        assertTrue(holds(0, 1), "copied while the transfer had the block");
    }

    @Test
    void aPeerThatIsCutOffLosesTheLinkByName() {
        fake.delay("prefill", 60_000_000);
        final Transfer transfer = pull(12);
        work(5);
        fake.disconnect("prefill");
        ends(transfer, State.FAILED);
        assertTrue(transfer.failure().contains("prefill"), transfer.failure());
        assertFalse(link.isUp());
        assertTrue(link.lostBecause().contains("prefill"), link.lostBecause());
        assertEquals(0, messages());

        fake.heal();
        now(engine.unlink(link));
        link = link();
        fill(100);
        ends = 0;
        ends(pull(4), State.DONE);
        assertTrue(holds(3, 103));
        assertEquals(1, messages());
    }

    @Test
    void releasesThatFailAreTriedAgain() {
        fake.failReleases("decode", 5);
        final Transfer transfer = pull(4);
        workUntil(() -> engine.stuckRequests() > 0);
        assertEquals(State.RUNNING, transfer.state());
        assertTrue(holds(0, 1), "all bytes are there");
        ends(transfer, State.DONE);
    }

    @Test
    void aLostNotificationLetsTheLeaseExpireAndALateOneIsKnown() {
        final List<String> freed = new ArrayList<>();
        final BlockLeases leases =
                new BlockLeases(100, 50, 4, (id, blocks, expired) -> freed.add(id + " " + expired));
        final String id = new String(DONE, StandardCharsets.US_ASCII);
        assertTrue(leases.grant(id, new int[] {0, 1}, 1, 0));
        fake.loseNotifications("prefill", 1);
        ends(pull(2), State.DONE);
        assertEquals(0, messages());
        assertEquals(0, leases.expire(99));
        assertEquals(1, leases.expire(100));
        assertEquals(List.of(id + " true"), freed);

        ends = 0;
        ends(pull(2), State.DONE);
        assertEquals(1, messages());
        assertEquals(BlockLeases.Outcome.LATE, leases.done(id, 120));
        assertEquals(1, leases.late());
    }

    @Test
    void closingWaitsForReleasesThatFail() {
        fake.stick("prefill", true);
        fake.failReleases("decode", 20);
        final Transfer transfer = pull(12);
        work(5);
        engine.close();
        assertEquals(State.CANCELLED, transfer.state());
        assertNotNull(transfer.failure());
        assertEquals(1, ends);
    }

    @Test
    void aDoneTransferHasNoFailure() {
        final Transfer transfer = pull(1);
        ends(transfer, State.DONE);
        assertNull(transfer.failure());
    }
}

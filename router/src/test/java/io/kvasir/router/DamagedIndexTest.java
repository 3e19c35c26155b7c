package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.IndexCause;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;

/** A mapped index in whose file something else has written. */
class DamagedIndexTest {
    private static final int BLOCK = 16;
    private static final int BLOCKS = 8;
    private static final int[] PROMPT = new int[BLOCKS * BLOCK];
    private static final long HIGH_BIT = 1L << 61; // of a line number: beyond all memory

    static {
        Arrays.setAll(PROMPT, i -> 1_000 + i);
    }

    @TempDir Path folder;

    @BeforeEach
    void onlyWhereAccessIsChecked() {
        assumeTrue(
                Boolean.getBoolean("kvasir.memory.checked"),
                "skipped: unchecked access to any address ends the process");
    }

    private KvRouter router() {
        return KvRouter.builder()
                .blockSize(BLOCK)
                .maxWorkers(2)
                .maxBlocks(1_024, 1_024)
                .set(RouterSettings.STATE_MAPPED_DIR, folder)
                .tickedBy(() -> 0)
                .build();
    }

    private FileChannel file() throws IOException {
        return FileChannel.open(
                folder.resolve("prefixes.index"),
                StandardOpenOption.READ,
                StandardOpenOption.WRITE);
    }

    private static Worker worker(KvRouter router) {
        return router.addWorker(
                new WorkerSpec(
                        0,
                        "a",
                        "http://w",
                        0,
                        SourceConfig.of("a", 0, BLOCK, "tcp://127.0.0.1:1")));
    }

    private static EngineStream stored(KvRouter router, Worker worker) {
        final EngineStream stream = router.openDirect(worker, EngineMessages.source("a", BLOCK));
        stream.onMessage(0, EngineMessages.stored(PROMPT, BLOCKS, BLOCK, 0));
        Eventually.holds("the event", worker::ready);
        return stream;
    }

    private static int overlap(KvRouter router) throws RouteException {
        final Decision decision = new Decision();
        router.select(router.newRequest().tokens(PROMPT, PROMPT.length), decision);
        return decision.overlapBlocks();
    }

    private interface Match {
        void run() throws RouteException;
    }

    /** Flips a bit of one word after the other, until a match fails by one; its offset. */
    private static long damage(KvRouter router, FileChannel file, Match match) throws Exception {
        final ByteBuffer all =
                ByteBuffer.allocate((int) file.size()).order(ByteOrder.nativeOrder());
        file.read(all, 0);
        for (int at = 0; at < all.capacity(); at += Long.BYTES) {
            final long word = all.getLong(at);
            if (word != 0) {
                write(file, at, word ^ HIGH_BIT);
                match.run();
                if (router.status().failures() > 0) {
                    return at;
                }
                write(file, at, word);
            }
        }
        throw new AssertionError("no word of the file matters");
    }

    private static void write(FileChannel file, long at, long word) throws IOException {
        file.write(
                ByteBuffer.allocate(Long.BYTES).order(ByteOrder.nativeOrder()).putLong(word).flip(),
                at);
    }

    @Test
    void aMatchThatFailsCostsItsRequestNoMoreThanItsCredit() throws Exception {
        try (KvRouter router = router();
                FileChannel file = file()) {
            final Worker worker = worker(router);
            final EngineStream stream = stored(router, worker);
            assertEquals(BLOCKS, overlap(router));
            assertSame(IndexCause.NONE, worker.cause());

            final long at = damage(router, file, () -> overlap(router));
            assertEquals(0, overlap(router));
            assertEquals(2, router.status().failures());
            Eventually.holds("the state", () -> worker.state() == IndexState.DEGRADED);
            assertSame(IndexCause.INDEX_ERROR, worker.cause());

            final ByteBuffer damaged =
                    ByteBuffer.allocate(Long.BYTES).order(ByteOrder.nativeOrder());
            file.read(damaged, at);
            write(file, at, damaged.getLong(0) ^ HIGH_BIT);
            assertEquals(BLOCKS, overlap(router), "all others are found");
            stream.onMessage(1, EngineMessages.cleared());
            stream.onMessage(2, EngineMessages.stored(PROMPT, BLOCKS, BLOCK, 0));
            Eventually.holds("a clear ends it", () -> worker.state() == IndexState.EXACT);
            assertEquals(BLOCKS, overlap(router));
        }
        try (KvRouter router = router()) {
            assertTrue(router.index().isKept());
            assertEquals(0, router.index().heldBlocks(), "it was not trusted");
        }
    }

    @Test
    void aWatchedPromptWhoseMatchFailsIsNotStoredAndIsWatchedStill() throws Exception {
        try (KvRouter router = router();
                FileChannel file = file()) {
            final Worker worker = worker(router);
            stored(router, worker);
            final int[] longer = Arrays.copyOf(PROMPT, PROMPT.length + BLOCK);
            final Lease lease =
                    router.reserve(
                            router.newRequest()
                                    .tokens(longer, longer.length)
                                    .firstTokenUnseen(true),
                            new Decision());
            Eventually.holds("the booking", () -> router.bookingPipeline().backlog() == 0);
            final long at = damage(router, file, () -> router.tick(0));
            Eventually.holds("the state", () -> worker.state() == IndexState.DEGRADED);
            assertSame(IndexCause.INDEX_ERROR, worker.cause());
            write(file, at, 0);
            router.tick(0);
            assertEquals(1, router.status().failures(), "of this worker nothing is matched");
            assertEquals(PromptEnd.NOT_YET, lease.promptEnd());
            lease.close();
        }
    }
}

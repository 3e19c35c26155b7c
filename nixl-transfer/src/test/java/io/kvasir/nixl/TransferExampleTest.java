package io.kvasir.nixl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.engine.LocalBlocks;
import io.kvasir.nixl.engine.Transfer;
import io.kvasir.nixl.engine.TransferConfig;
import io.kvasir.nixl.engine.TransferEngine;
import io.kvasir.nixl.exchange.MetadataExchange;
import io.kvasir.nixl.exchange.PeerMemory;
import io.kvasir.nixl.exchange.PeerRecord;
import io.kvasir.nixl.exchange.zmq.SideChannelConfig;
import io.kvasir.nixl.exchange.zmq.SideChannelExchange;
import io.kvasir.nixl.link.LinkConfig;
import io.kvasir.nixl.link.LinkManager;
import io.kvasir.nixl.link.ManagedLink;
import io.kvasir.nixl.loopback.LoopbackConfig;
import io.kvasir.nixl.loopback.LoopbackTransport;
import io.kvasir.nixl.loopback.Loopbacks;
import io.kvasir.nixl.memory.KvLayout;
import io.kvasir.nixl.memory.KvPool;
import io.kvasir.nixl.transport.KvTransport.NotificationHandler;

import org.agrona.concurrent.BackoffIdleStrategy;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** The examples that docs/transfers.md shows: the lines between the marks stand there. */
class TransferExampleTest {
    private static final int BLOCKS = 64;
    private static final int LAYERS = 4;
    private static final long BLOCK_BYTES = 16 << 10;
    private static final KvLayout LAYOUT =
            KvLayout.of(KvLayout.Order.LAYER_MAJOR, BLOCKS, LAYERS, BLOCK_BYTES);
    private static final String DIGEST = "tiny-llama, bf16, 16 tokens a block";

    /** A slow machine must not look like a silent peer. */
    private static final SideChannelConfig PATIENT =
            new SideChannelConfig(Duration.ofMillis(20), Duration.ofMinutes(1), 4);

    /** A worker that takes part. */
    private record End(LoopbackTransport transport, KvPool pool, TransferEngine engine)
            implements AutoCloseable {
        @Override
        public void close() {
            engine.close();
            pool.close();
        }
    }

    private Path folder;
    private SideChannelExchange decodes;
    private SideChannelExchange prefills;
    private final CompletableFuture<String> arrived = new CompletableFuture<>();
    private int attended; // blocks

    @BeforeEach
    void open() throws IOException {
        folder = Loopbacks.folder();
        decodes = new SideChannelExchange("127.0.0.1", 0, PATIENT);
        prefills = new SideChannelExchange("127.0.0.1", 0, PATIENT);
        prefills.know("127.0.0.1", decodes.port());
    }

    @AfterEach
    void close() throws IOException {
        prefills.close();
        decodes.close();
        Loopbacks.deleteEmpty(folder);
    }

    private End start(String name, MetadataExchange exchange, NotificationHandler handler) {
        final LoopbackConfig config = LoopbackConfig.defaults().withFolder(folder);
        // example: an end
        LoopbackTransport transport = new LoopbackTransport(name, config);
        KvPool pool = transport.pool(LAYOUT);
        transport.register(pool.regions());
        exchange.publish(
                new PeerRecord(
                        name,
                        PeerRecord.incarnation(Instant.now()),
                        1,
                        transport.metadata(),
                        new PeerMemory.Pool(LAYOUT, pool.site()),
                        DIGEST));
        TransferEngine engine =
                TransferEngine.start(
                        transport,
                        TransferConfig.DEFAULT,
                        new BackoffIdleStrategy(),
                        handler,
                        Throwable::printStackTrace);
        // example ends
        return new End(transport, pool, engine);
    }

    private static void compute(KvPool pool, int layer, int[] blocks) {
        for (int block : blocks) {
            Loopbacks.fill(pool.block(pool.regions(0, layer, layer + 1).getFirst(), block), layer);
        }
    }

    private static void awaitUp(ManagedLink link) {
        final long deadline = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
        while (link.state() != ManagedLink.State.UP) {
            assertTrue(System.nanoTime() < deadline, link.toString());
            LockSupport.parkNanos(1_000_000);
        }
    }

    @Test
    void aPrefillPushesEachLayerWhenItIsComputed() {
        final int[] blocks = {3, 1, 7};
        final int[] decodeBlocks = {40, 41, 42};
        final byte[] requestId = "request-1".getBytes(StandardCharsets.US_ASCII);
        try (End decode =
                        start(
                                "decode-0",
                                decodes,
                                (peer, message) -> arrived.complete(peer + ": " + text(message)));
                End prefill = start("prefill-0", prefills, (peer, message) -> {});
                LinkManager links =
                        LinkManager.start(prefills, prefill.engine(), LinkConfig.DEFAULT)) {
            final TransferEngine engine = prefill.engine();
            final KvPool pool = prefill.pool();
            // example: a push
            LocalBlocks own = engine.local(pool.descriptors()).join(); // once
            ManagedLink link = links.keep("decode-0", DIGEST, (kept, state, why) -> {}); // once
            awaitUp(link);

            Transfer transfer = new Transfer().push(own, link.link());
            for (int layer = 0; layer < LAYERS; layer++) {
                int[] from = LAYOUT.indices(0, blocks, layer, layer + 1);
                int[] to = LAYOUT.indices(0, decodeBlocks, layer, layer + 1);
                for (int i = 0; i < from.length; i++) {
                    transfer.add(from[i], to[i]);
                }
                transfer.endStage(layer == LAYERS - 1 ? requestId : null);
            }
            transfer.gated().deadlineNs(System.nanoTime() + TimeUnit.SECONDS.toNanos(60));
            CompletableFuture<Transfer> moved = engine.move(transfer);
            for (int layer = 0; layer < LAYERS; layer++) {
                compute(pool, layer, blocks);
                transfer.openStages(layer + 1);
            }
            moved.join();
            // example ends
            assertEquals("prefill-0: request-1", arrived.join());
            for (int layer = 0; layer < LAYERS; layer++) {
                attend(decode.pool(), layer, decodeBlocks);
            }
        }
    }

    @Test
    void aDecodePullsAndBeginsWithTheFirstLayers() {
        final int[] blocks = {3, 1, 7};
        final int[] decodeBlocks = {40, 41, 42};
        final byte[] requestId = "request-1".getBytes(StandardCharsets.US_ASCII);
        try (End prefill =
                        start(
                                "prefill-0",
                                decodes,
                                (peer, message) -> arrived.complete(peer + ": " + text(message)));
                End decode = start("decode-0", prefills, (peer, message) -> {});
                LinkManager links =
                        LinkManager.start(prefills, decode.engine(), LinkConfig.DEFAULT)) {
            for (int layer = 0; layer < LAYERS; layer++) {
                compute(prefill.pool(), layer, blocks);
            }
            final TransferEngine engine = decode.engine();
            final KvPool pool = decode.pool();
            final LocalBlocks own = engine.local(pool.descriptors()).join();
            final ManagedLink link = links.keep("prefill-0", DIGEST, (kept, state, why) -> {});
            awaitUp(link);
            // example: a pull
            Transfer transfer = new Transfer().pull(own, link.link());
            for (int layer = 0; layer < LAYERS; layer++) {
                int[] to = LAYOUT.indices(0, decodeBlocks, layer, layer + 1);
                int[] from = LAYOUT.indices(0, blocks, layer, layer + 1);
                for (int i = 0; i < to.length; i++) {
                    transfer.add(to[i], from[i]);
                }
                transfer.endStage(layer == LAYERS - 1 ? requestId : null); // the prefill may free
            }
            CompletableFuture<Transfer> moved = engine.move(transfer);
            for (int layer = 0; layer < LAYERS; layer++) {
                while (transfer.completedStages() <= layer && !moved.isDone()) {
                    Thread.onSpinWait();
                }
                attend(pool, layer, decodeBlocks);
            }
            moved.join();
            // example ends
            assertEquals(LAYERS * decodeBlocks.length, attended);
            assertEquals("decode-0: request-1", arrived.join());
        }
    }

    /** Needs the layer's blocks to be there. */
    private void attend(KvPool pool, int layer, int[] blocks) {
        for (int block : blocks) {
            assertTrue(
                    Loopbacks.isFilled(
                            pool.block(pool.regions(0, layer, layer + 1).getFirst(), block),
                            layer));
            attended++;
        }
    }

    private static String text(MemorySegment message) {
        return new String(message.toArray(ValueLayout.JAVA_BYTE), StandardCharsets.US_ASCII);
    }
}

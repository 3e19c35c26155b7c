package io.kvasir.nixl.link;

import io.kvasir.nixl.engine.TransferConfig;
import io.kvasir.nixl.engine.TransferEngine;
import io.kvasir.nixl.exchange.PeerMemory;
import io.kvasir.nixl.exchange.PeerRecord;
import io.kvasir.nixl.exchange.RecordOwner;
import io.kvasir.nixl.exchange.zmq.SideChannelConfig;
import io.kvasir.nixl.exchange.zmq.SideChannelExchange;
import io.kvasir.nixl.loopback.LoopbackConfig;
import io.kvasir.nixl.loopback.LoopbackTransport;
import io.kvasir.nixl.loopback.Loopbacks;
import io.kvasir.nixl.memory.KvLayout;
import io.kvasir.nixl.memory.KvLayout.Order;
import io.kvasir.nixl.memory.KvPool;
import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.Transports;

import org.agrona.concurrent.BackoffIdleStrategy;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;

/**
 * A process whose blocks can be pulled and whose record can be found: arguments are kind of
 * transport, incarnation, port of the side channel and folder. Block {@code b} holds what {@link
 * Loopbacks#fill} makes of {@link #seed}. Ends with its input.
 */
final class PublishedPeer {
    static final String NAME = "mortal";
    static final String HOST = "127.0.0.1";
    static final int BLOCKS = 64;
    static final KvLayout LAYOUT = KvLayout.of(Order.BLOCK_MAJOR, BLOCKS, 1, 16 << 10);

    /** A slow machine must not look like a silent peer. */
    static final SideChannelConfig CONFIG =
            new SideChannelConfig(Duration.ofMillis(20), Duration.ofMillis(1_000), 4);

    private PublishedPeer() {}

    static long seed(long incarnation, int block) {
        return incarnation * BLOCKS + block;
    }

    static KvTransport transport(String kind, String name, Path folder) {
        return kind.equals("loopback")
                ? new LoopbackTransport(name, LoopbackConfig.defaults().withFolder(folder))
                : Transports.create(kind, name);
    }

    static KvPool pool(KvTransport transport) {
        return transport instanceof LoopbackTransport loopback
                ? loopback.pool(LAYOUT)
                : KvPool.allocate(LAYOUT);
    }

    static TransferEngine engine(KvTransport transport, KvPool pool) {
        transport.register(pool.regions());
        return TransferEngine.start(
                transport,
                TransferConfig.DEFAULT,
                new BackoffIdleStrategy(),
                (peer, message) -> {},
                Throwable::printStackTrace);
    }

    public static void main(String[] args) throws IOException {
        final long incarnation = Long.parseLong(args[1]);
        final KvTransport transport = transport(args[0], NAME, Path.of(args[3]));
        try (KvPool pool = pool(transport);
                TransferEngine engine = engine(transport, pool)) {
            for (int block = 0; block < BLOCKS; block++) {
                Loopbacks.fill(
                        pool.block(pool.regions().getFirst(), block), seed(incarnation, block));
            }
            final byte[] metadata = engine.call(KvTransport::metadata).join();
            final SideChannelExchange exchange =
                    new SideChannelExchange(HOST, Integer.parseInt(args[2]), CONFIG);
            RecordOwner.serve(
                    exchange,
                    Integer.toString(exchange.port()),
                    new PeerRecord(
                            NAME,
                            incarnation,
                            1,
                            metadata,
                            new PeerMemory.Pool(LAYOUT, pool.site()),
                            "test"));
        }
    }
}

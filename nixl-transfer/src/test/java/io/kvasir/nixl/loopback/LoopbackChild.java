package io.kvasir.nixl.loopback;

import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.memory.KvLayout;
import io.kvasir.nixl.memory.KvLayout.Order;
import io.kvasir.nixl.memory.KvPool;
import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.nixl.transport.KvTransport.Operation;
import io.kvasir.nixl.transport.KvTransport.Progress;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * The other end of {@link LoopbackProcessTest}, in a JVM of its own. Reads the metadata and base of
 * the parent's pool from its input, writes its own and the base of a pool that it does not share to
 * its output, and ends with its input.
 */
final class LoopbackChild {
    static final KvLayout LAYOUT = KvLayout.of(Order.KEYS_AND_VALUES_APART, 64, 4, 512);
    static final int LAYERS = 4;

    /** The parent has written blocks; check them. */
    static final byte CHECK = 1;

    /** The parent has read blocks; fill them anew. */
    static final byte FILL = 2;

    private static volatile boolean ended;

    private LoopbackChild() {}

    public static void main(String[] args) throws IOException {
        final LoopbackConfig config = Loopbacks.config(Path.of(args[0]));
        final BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (LoopbackTransport transport = new LoopbackTransport("child", config);
                KvPool pool = transport.pool(LAYOUT);
                KvPool unshared = KvPool.allocate(LAYOUT)) {
            transport.register(pool.regions());
            transport.register(unshared.regions());
            final HexFormat hex = HexFormat.of();
            final String parentMetadata = in.readLine();
            final long parentBase = Long.parseLong(in.readLine());
            transport.connect(hex.parseHex(parentMetadata));
            System.out.println(hex.formatHex(transport.metadata()));
            System.out.println(pool.base());
            System.out.println(unshared.base());
            System.out.flush();
            Thread.ofPlatform().daemon().start(() -> awaitEnd(in));
            if (args[1].equals("answer")) {
                answer(transport, pool);
            } else {
                flood(transport, pool, parentBase);
            }
        }
    }

    private static void awaitEnd(BufferedReader in) {
        try {
            while (in.read() >= 0) {
                Thread.onSpinWait();
            }
        } catch (IOException e) {
            // the parent is gone: ended as well
        }
        ended = true;
    }

    private static void answer(LoopbackTransport transport, KvPool pool) {
        while (!ended) {
            final int messages =
                    transport.notifications(
                            (peer, message) -> transport.send(peer, answer(pool, message)));
            if (messages == 0) {
                LockSupport.parkNanos(1_000);
            }
        }
    }

    private static byte[] answer(KvPool pool, MemorySegment message) {
        final ByteBuffer in = ByteBuffer.wrap(message.toArray(ValueLayout.JAVA_BYTE));
        final long round = in.getLong();
        final byte what = in.get();
        boolean good = true;
        while (in.hasRemaining()) {
            final int block = in.getInt();
            final long seed = in.getLong();
            if (what == CHECK) {
                good &= isFilled(pool, block, seed);
            } else {
                fill(pool, block, seed);
            }
        }
        return ByteBuffer.allocate(9).putLong(round).put((byte) (good ? 1 : 0)).array();
    }

    static void fill(KvPool pool, int block, long seed) {
        long number = seed;
        for (KvRegion region : pool.regions()) {
            Loopbacks.fill(pool.block(region, block), number++);
        }
    }

    static boolean isFilled(KvPool pool, int block, long seed) {
        long number = seed;
        for (KvRegion region : pool.regions()) {
            if (!Loopbacks.isFilled(pool.block(region, block), number++)) {
                return false;
            }
        }
        return true;
    }

    /** Writes into the parent's memory and tells it so until it is killed. */
    private static void flood(LoopbackTransport transport, KvPool pool, long parentBase) {
        final long own = transport.prepare(null, pool.descriptors());
        final List<KvRegion> regions = LAYOUT.regions(parentBase);
        final long parent = transport.prepare("parent", Descriptors.ofBlocks(regions));
        final int[] blocks = new int[32];
        Arrays.setAll(blocks, block -> 32 + block);
        final int[] indices = LAYOUT.indices(0, blocks, 0, LAYERS);
        final byte[] message = new byte[1000];
        Arrays.fill(message, (byte) 42);
        while (!ended) {
            final long request =
                    transport.request(
                            Operation.WRITE,
                            own,
                            indices,
                            parent,
                            indices,
                            indices.length,
                            message);
            Progress progress = transport.post(request);
            while (progress == Progress.RUNNING && !ended) {
                progress = transport.status(request);
            }
            transport.release(request);
            transport.notifications((peer, bytes) -> {});
        }
    }
}

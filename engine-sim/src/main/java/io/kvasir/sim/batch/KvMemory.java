package io.kvasir.sim.batch;

import io.kvasir.nixl.engine.KvLink;
import io.kvasir.nixl.engine.LocalBlocks;
import io.kvasir.nixl.engine.Transfer;
import io.kvasir.nixl.engine.TransferConfig;
import io.kvasir.nixl.engine.TransferEngine;
import io.kvasir.nixl.exchange.PeerMemory;
import io.kvasir.nixl.exchange.PeerRecord;
import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.memory.KvLayout;
import io.kvasir.nixl.memory.KvPool;
import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.nixl.probe.TransferEnd;
import io.kvasir.sim.config.KvBytes;
import io.kvasir.sim.config.SimConfig;

import org.agrona.concurrent.BackoffIdleStrategy;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The bytes of all blocks of an engine, rank by rank, and what moves them. A row is one token in
 * one layer; it depends on the token and on all before it, so equal prompts have equal bytes on
 * every engine. Rows after the last token of a block keep what they had.
 *
 * <p>The step loop writes; pulls write blocks that the loop has taken for them and reads no row
 * that is being written. Links are made by the threads of pulls.
 */
final class KvMemory implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(KvMemory.class);
    private static final long LONGEST_PAUSE_NS = 1_000_000;

    private final int blockSize;
    private final int blocksPerRank;
    private final KvBytes sizes;
    private final String digest;
    private final KvLayout layout;
    private final TransferEnd end;
    private final KvPool pool;
    private final KvRegion[] layers;
    private final TransferEngine engine;
    private final LocalBlocks own;
    private final byte[] record;
    private final Map<String, KvLink> links = new HashMap<>(); // by peer; guarded by itself

    /**
     * Takes the memory and starts what moves it.
     *
     * @throws IllegalArgumentException if NIXL is wanted and not there
     */
    KvMemory(SimConfig config) {
        this.blockSize = config.blockSize();
        this.blocksPerRank = config.blocks();
        this.sizes = config.handoff().bytes();
        this.digest =
                config.model()
                        + ", "
                        + sizes.layers()
                        + " x "
                        + sizes.rowBytes()
                        + " bytes, "
                        + blockSize
                        + " tokens a block";
        this.layout =
                KvLayout.of(
                        KvLayout.Order.LAYER_MAJOR,
                        blocksPerRank * config.dataParallelSize(),
                        sizes.layers(),
                        (long) sizes.rowBytes() * blockSize);
        this.end =
                TransferEnd.open(
                        sizes.nixl() ? TransferEnd.Kind.NIXL : TransferEnd.Kind.LOOPBACK,
                        layout.bytes() + KvLayout.PAGE);
        this.pool = KvPool.in(layout, end.pool().block(end.pool().regions().getFirst(), 0));
        this.layers = new KvRegion[sizes.layers()];
        for (int layer = 0; layer < layers.length; layer++) {
            layers[layer] = pool.regions(0, layer, layer + 1).getFirst();
        }
        this.record =
                new PeerRecord(
                                end.transport().name(),
                                PeerRecord.incarnation(Instant.now()),
                                1,
                                end.transport().metadata(),
                                new PeerMemory.Pool(layout, pool.site()),
                                digest)
                        .encode();
        this.engine =
                TransferEngine.start(
                        end.transport(),
                        TransferConfig.DEFAULT,
                        new BackoffIdleStrategy(10, 10, 1000, LONGEST_PAUSE_NS),
                        (peer, message) -> {},
                        e -> LOG.warn("transfers of a simulated engine", e));
        this.own = engine.local(pool.descriptors()).join();
    }

    /** What other engines need in order to pull from this one; not to be changed. */
    byte[] record() {
        return record;
    }

    /** Number of a rank's first block. */
    int firstBlock(int rank) {
        return rank * blocksPerRank;
    }

    /** Writes the rows of tokens that a request has computed. */
    void write(SimRequest request, int fromToken, int toToken) {
        final long[] states = request.states();
        for (int layer = 0; layer < layers.length; layer++) {
            for (int token = fromToken; token < toToken; token++) {
                row(request, layer, token).fill(states[token], layer);
            }
        }
    }

    /** Breaks the row of a token in the last layer. */
    void spoil(SimRequest request, int token) {
        row(request, layers.length - 1, token).fill(~request.states()[token], layers.length - 1);
    }

    /** Whether a layer has the rows of some tokens of a request. */
    boolean matches(SimRequest request, int layer, int fromToken, int toToken) {
        for (int token = fromToken; token < toToken; token++) {
            if (!row(request, layer, token).is(request.states()[token], layer)) {
                return false;
            }
        }
        return true;
    }

    private Row row(SimRequest request, int layer, int token) {
        final int block = firstBlock(request.rank) + request.blocks[token / blockSize];
        return new Row(
                pool.block(layers[layer], block)
                        .asSlice((long) (token % blockSize) * sizes.rowBytes(), sizes.rowBytes()));
    }

    /** One token in one layer. */
    private record Row(MemorySegment bytes) {
        void fill(long state, int layer) {
            for (long at = 0; at < bytes.byteSize(); at += Long.BYTES) {
                bytes.set(ValueLayout.JAVA_LONG, at, value(state, layer, at));
            }
        }

        boolean is(long state, int layer) {
            for (long at = 0; at < bytes.byteSize(); at += Long.BYTES) {
                if (bytes.get(ValueLayout.JAVA_LONG, at) != value(state, layer, at)) {
                    return false;
                }
            }
            return true;
        }

        private static long value(long state, int layer, long at) {
            return Completion.mix(state ^ (layer << 20 | at));
        }
    }

    /**
     * Begins to pull blocks, a stage per layer; the first half of the layers goes at once, the rest
     * when it is let go.
     *
     * @param peer the other engine's {@link #record}
     * @param from blocks there
     * @param to as many blocks here, of any rank
     * @throws RuntimeException if the engines differ or the other cannot be reached
     */
    KvMovement pull(byte[] peer, List<Integer> from, List<Integer> to) {
        final PeerRecord other = PeerRecord.decode(peer);
        other.requireCompatible(digest);
        if (!(other.memory() instanceof PeerMemory.Pool(KvLayout theirs, KvLayout.Site site))) {
            throw new IllegalArgumentException("the other engine's blocks have no layout");
        }
        final Transfer transfer = new Transfer().pull(own, link(other, theirs, site));
        final int[] there = from.stream().mapToInt(Integer::intValue).toArray();
        final int[] here = to.stream().mapToInt(Integer::intValue).toArray();
        for (int layer = 0; layer < layers.length; layer++) {
            final int[] local = layout.indices(0, here, layer, layer + 1);
            final int[] remote = theirs.indices(0, there, layer, layer + 1);
            for (int i = 0; i < local.length; i++) {
                transfer.add(local[i], remote[i]);
            }
            transfer.endStage(null);
        }
        transfer.gated();
        transfer.openStages(layers.length / 2);
        return new KvMovement(transfer, engine.move(transfer), layers.length);
    }

    private KvLink link(PeerRecord other, KvLayout theirs, KvLayout.Site site) {
        synchronized (links) {
            final KvLink known = links.get(other.name());
            if (known != null && known.isUp()) {
                return known;
            }
            if (known != null) {
                engine.unlink(known).join();
            }
            final KvLink link =
                    engine.link(other.metadata(), Descriptors.ofBlocks(theirs.regions(site)))
                            .join();
            links.put(other.name(), link);
            return link;
        }
    }

    @Override
    public void close() {
        engine.close();
        end.pool().close();
    }
}

package io.kvasir.nixl.probe;

import io.kvasir.nixl.loopback.LoopbackConfig;
import io.kvasir.nixl.loopback.LoopbackTransport;
import io.kvasir.nixl.memory.KvLayout;
import io.kvasir.nixl.memory.KvPool;
import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.NixlTransport;
import io.kvasir.panama.nixl.NixlAgentConfig;
import io.kvasir.panama.nixl.NixlAvailability.Available;
import io.kvasir.panama.nixl.NixlMemory;
import io.kvasir.panama.nixl.NixlProbe;

import java.util.List;
import java.util.Map;
import java.util.UUID;

/**
 * One end of a measurement: a transport and registered memory. One thread.
 *
 * @param transport owned
 * @param pool owned, after the transport
 */
public record TransferEnd(KvTransport transport, KvPool pool) implements AutoCloseable {
    /** What moves the blocks. */
    public enum Kind {
        /** NIXL, over what its UCX backend chooses. */
        NIXL,
        /** Shared memory of this machine. */
        LOOPBACK
    }

    /** How much an end does by itself. */
    public enum Manner {
        /** A thread of NIXL's own, and a peer that polls for messages every 10 µs and a little. */
        ATTENTIVE(10_000),
        /**
         * No thread but its owner's, and a peer that polls once a millisecond: where cores are few,
         * they are left to what is measured.
         */
        QUIET(1_000_000);

        private final long peerPauseNs;

        Manner(long peerPauseNs) {
            this.peerPauseNs = peerPauseNs;
        }

        private NixlAgentConfig agent() {
            return switch (this) {
                case ATTENTIVE -> NixlAgentConfig.DEFAULT;
                case QUIET -> new NixlAgentConfig(false, NixlAgentConfig.ThreadSync.NONE, 0, false);
            };
        }

        long peerPauseNs() {
            return peerPauseNs;
        }
    }

    /**
     * Opens an attentive end and registers its memory.
     *
     * @param kind what moves the blocks
     * @param bytes of memory, zeros
     * @return owned by the calling thread
     * @throws IllegalArgumentException if NIXL is wanted and not there
     */
    public static TransferEnd open(Kind kind, long bytes) {
        return open(kind, bytes, Manner.ATTENTIVE);
    }

    /**
     * Opens an end and registers its memory.
     *
     * @param kind what moves the blocks
     * @param bytes of memory, zeros
     * @param manner how much it does by itself
     * @return owned by the calling thread
     * @throws IllegalArgumentException if NIXL is wanted and not there
     */
    public static TransferEnd open(Kind kind, long bytes, Manner manner) {
        final String name = "kvasir-" + UUID.randomUUID();
        final KvLayout layout = KvLayout.of(KvLayout.Order.BLOCK_MAJOR, 1, 1, bytes);
        final TransferEnd end =
                switch (kind) {
                    case NIXL -> new TransferEnd(nixl(name, manner), KvPool.allocate(layout));
                    case LOOPBACK -> {
                        final LoopbackTransport transport =
                                new LoopbackTransport(name, LoopbackConfig.defaults());
                        yield new TransferEnd(transport, transport.pool(layout));
                    }
                };
        end.transport.register(end.pool.regions());
        return end;
    }

    private static KvTransport nixl(String name, Manner manner) {
        if (NixlProbe.probe() instanceof Available available) {
            return NixlTransport.create(
                    available.library(), name, manner.agent(), backend(available), Map.of());
        }
        throw new IllegalArgumentException(NixlProbe.probe().describe());
    }

    /**
     * The backend to move blocks with.
     *
     * @param nixl the real library, or the one of tests
     * @return the name of a plugin
     */
    public static String backend(Available nixl) {
        return nixl.loopback() ? "LOOPBACK" : "UCX";
    }

    /**
     * What is usable here.
     *
     * @return NIXL where it is, else shared memory
     */
    public static Kind best() {
        return NixlProbe.probe() instanceof Available available && !available.loopback()
                ? Kind.NIXL
                : Kind.LOOPBACK;
    }

    /**
     * The memory at an address as blocks of one length.
     *
     * @param base address of the first one
     * @param blockBytes bytes of each
     * @param blocks how many
     * @return one region
     */
    public static List<KvRegion> blocks(long base, long blockBytes, int blocks) {
        return List.of(
                new KvRegion(
                        "blocks", 0, NixlMemory.DRAM, 0, base, blockBytes, blockBytes, blocks));
    }

    @Override
    public void close() {
        transport.close();
        pool.close();
    }
}

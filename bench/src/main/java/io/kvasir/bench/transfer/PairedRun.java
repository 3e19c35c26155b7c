package io.kvasir.bench.transfer;

import com.sun.management.ThreadMXBean;

import io.kvasir.nixl.probe.TransferEnd;
import io.kvasir.panama.nixl.NixlAvailability.Available;
import io.kvasir.panama.nixl.NixlProbe;

import java.lang.foreign.Arena;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * C and one of Java's layers in this process, each with an agent of its own: the same memory here,
 * the same peer, the same heap of malloc. Their rounds take turns, so what else the machine does
 * falls on both.
 */
final class PairedRun {
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    /** Of Java. */
    enum Layer {
        /** {@link io.kvasir.panama.nixl.NixlTransfers}, indices in native memory as C has them. */
        TRANSFERS,
        /** The same, indices in an array, which it copies. */
        COPYING,
        /** {@link io.kvasir.nixl.transport.NixlTransport}. */
        TRANSPORT
    }

    private final Available nixl;
    private final Rounds c;
    private final Rounds java;
    private double[] cNs = new double[0];
    private double[] javaNs = new double[0];
    private long allocated;

    private PairedRun(Available nixl, Rounds c, Rounds java) {
        this.nixl = nixl;
        this.c = c;
        this.java = java;
    }

    /**
     * Opens both, for as long as the process lives.
     *
     * @param layer the Java side
     * @param baseline the compiled {@code nixl_baseline.c}
     * @param bytes of the memory here
     * @param peer whose as much memory is read
     * @throws IllegalArgumentException without NIXL
     */
    static PairedRun open(Layer layer, Path baseline, long bytes, PeerMemory peer) {
        if (!(NixlProbe.probe() instanceof Available nixl)) {
            throw new IllegalArgumentException(NixlProbe.probe().describe());
        }
        final long own;
        final RequestCalls calls;
        if (layer == Layer.TRANSPORT) {
            final TransferEnd end = TransferEnd.open(TransferEnd.Kind.NIXL, bytes);
            own = end.pool().base();
            calls = new RequestCalls.OfTransport(end, peer);
        } else {
            own = Arena.global().allocate(bytes, Rounds.PAGE).address();
            calls = new RequestCalls.OfTransfers(nixl, own, peer, bytes, layer == Layer.COPYING);
        }
        return new PairedRun(
                nixl,
                new CRounds(baseline, nixl.path(), TransferEnd.backend(nixl), own, peer, bytes),
                new JavaRounds(calls));
    }

    Available nixl() {
        return nixl;
    }

    void lists(int descriptors, long descriptorBytes, int[] indices) {
        c.lists(descriptors, descriptorBytes, indices);
        java.lists(descriptors, descriptorBytes, indices);
    }

    void hold(boolean hangs) {
        c.hold(hangs);
        java.hold(hangs);
    }

    void drop() {
        c.drop();
        java.drop();
    }

    /** Makes rounds of both in turn for so long, or as many. */
    void warmUp(Rounds.Kind kind, int argument, long ns, int rounds) {
        final long startNs = System.nanoTime();
        for (int i = 0; i < rounds || System.nanoTime() - startNs < ns; i++) {
            c.run(kind, argument);
            java.run(kind, argument);
        }
    }

    /** Measures so many rounds of each, in turn; the first one changes every time. */
    void measure(Rounds.Kind kind, int argument, int rounds) {
        cNs = new double[rounds];
        javaNs = new double[rounds];
        allocated = 0;
        for (int i = 0; i < rounds; i++) {
            if (i % 2 == 0) {
                cNs[i] = c.run(kind, argument);
            }
            final long before = THREADS.getCurrentThreadAllocatedBytes();
            javaNs[i] = java.run(kind, argument);
            allocated += THREADS.getCurrentThreadAllocatedBytes() - before;
            if (i % 2 != 0) {
                cNs[i] = c.run(kind, argument);
            }
        }
    }

    /** Median of C's rounds that were measured last, in ns. */
    double c() {
        return Samples.median(cNs.clone());
    }

    /** Median of Java's. */
    double java() {
        return Samples.median(javaNs.clone());
    }

    /** Median of what Java's round took more than C's beside it. */
    double more() {
        final double[] more = new double[cNs.length];
        Arrays.setAll(more, i -> javaNs[i] - cNs[i]);
        return Samples.median(more);
    }

    /** Median of C's time over that of Java beside it: Java's share of the throughput. */
    double share() {
        final double[] shares = new double[cNs.length];
        Arrays.setAll(shares, i -> cNs[i] / javaNs[i]);
        return Samples.median(shares);
    }

    /** Bytes that a round of Java's allocated on its thread. */
    double allocated() {
        return (double) allocated / javaNs.length;
    }
}

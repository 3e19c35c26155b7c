package io.kvasir.nixl.probe;

import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.KvTransport.Operation;
import io.kvasir.nixl.transport.KvTransport.Progress;

import org.HdrHistogram.Histogram;

import java.io.IOException;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

/** Measures requests of one size after the other against one peer. One thread. */
public final class TransferSweep {
    private static final int WARM_UP = 20;
    private static final int DIGITS = 3;
    private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(30);

    private final TransferEnd own;
    private final TransferPeer peer;
    private final String name;
    private final Operation operation;
    private final long durationNs;

    /**
     * What was measured of one size.
     *
     * @param blockBytes bytes of a block
     * @param blocks blocks of a request
     * @param requests how many were made
     * @param postP50Ns time inside the post, median
     * @param p50Ns from making the request to its end, median
     * @param p99Ns 99 % took at most this
     * @param bytesPerSecond over all requests
     */
    public record Result(
            long blockBytes,
            int blocks,
            long requests,
            long postP50Ns,
            long p50Ns,
            long p99Ns,
            double bytesPerSecond) {}

    /**
     * Connects to the peer.
     *
     * @param own of the calling thread, closed by the caller
     * @param peer closed by the caller
     * @param operation what each request does
     * @param durationNs for each size
     */
    public TransferSweep(TransferEnd own, TransferPeer peer, Operation operation, long durationNs) {
        this.own = own;
        this.peer = peer;
        this.name = own.transport().connect(peer.metadata());
        this.operation = operation;
        this.durationNs = durationNs;
    }

    /**
     * Makes requests of one size, one after the other, for the duration and at least three.
     *
     * @param blockBytes bytes of a block
     * @param blocks blocks of a request; all of them fit into both ends' memory
     * @return what they took
     * @throws IOException if a request fails or does not end
     */
    public Result measure(long blockBytes, int blocks) throws IOException {
        final KvTransport transport = own.transport();
        final long local =
                transport.prepare(
                        null,
                        Descriptors.ofBlocks(
                                TransferEnd.blocks(own.pool().base(), blockBytes, blocks)));
        final long remote =
                transport.prepare(
                        name,
                        Descriptors.ofBlocks(TransferEnd.blocks(peer.base(), blockBytes, blocks)));
        // every second block, then the others: nothing to merge, as in a real pool
        final int[] order =
                IntStream.range(0, blocks)
                        .map(i -> i < (blocks + 1) / 2 ? 2 * i : 2 * (i - (blocks + 1) / 2) + 1)
                        .toArray();
        final Histogram posts = new Histogram(DIGITS);
        final Histogram times = new Histogram(DIGITS);
        for (int i = 0; i < WARM_UP; i++) {
            once(local, remote, order, posts, times);
        }
        posts.reset();
        times.reset();
        final long startNs = System.nanoTime();
        long nowNs = startNs;
        while (nowNs - startNs < durationNs || times.getTotalCount() < 3) {
            once(local, remote, order, posts, times);
            nowNs = System.nanoTime();
        }
        transport.releaseList(local);
        transport.releaseList(remote);
        final double seconds = (nowNs - startNs) / (double) TimeUnit.SECONDS.toNanos(1);
        return new Result(
                blockBytes,
                blocks,
                times.getTotalCount(),
                posts.getValueAtPercentile(50),
                times.getValueAtPercentile(50),
                times.getValueAtPercentile(99),
                blockBytes * blocks * times.getTotalCount() / seconds);
    }

    private void once(long local, long remote, int[] order, Histogram posts, Histogram times)
            throws IOException {
        final KvTransport transport = own.transport();
        final long startNs = System.nanoTime();
        final long request =
                transport.request(operation, local, order, remote, order, order.length, null);
        final long madeNs = System.nanoTime();
        Progress progress = transport.post(request);
        final long postedNs = System.nanoTime();
        while (progress == Progress.RUNNING) {
            progress = transport.status(request);
            if (System.nanoTime() - postedNs > PATIENCE_NS) {
                throw new IOException("the peer does not answer: no end after 30 s");
            }
        }
        times.recordValue(System.nanoTime() - startNs);
        posts.recordValue(postedNs - madeNs);
        if (progress == Progress.FAILED) {
            throw new IOException(transport.failure(request));
        }
        if (!transport.release(request)) {
            throw new IOException("a finished request could not be released");
        }
    }
}

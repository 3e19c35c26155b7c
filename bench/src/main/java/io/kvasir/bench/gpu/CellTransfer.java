package io.kvasir.bench.gpu;

import io.kvasir.panama.nixl.NixlMemory;
import io.kvasir.panama.nixl.NixlStatus;
import io.kvasir.panama.nixl.NixlTransfers;

import java.time.Duration;
import java.util.stream.IntStream;

/**
 * One request, posted as often as wanted: the descriptors of a cell from the start of the near pool
 * against those of the far pool in reverse, so that NIXL cannot merge neighbours.
 */
final class CellTransfer implements AutoCloseable {
    /** Far beyond what 4 GiB take over the slowest transport. */
    private static final Duration LONGEST = Duration.ofSeconds(20);

    private final NixlTransfers transfers;
    private final String description;
    private final long nearList;
    private final long farList;
    private final long request;
    private long postNanos;
    private long totalNanos;

    private CellTransfer(
            NixlTransfers transfers,
            String description,
            long nearList,
            long farList,
            long request) {
        this.transfers = transfers;
        this.description = description;
        this.nearList = nearList;
        this.farList = farList;
        this.request = request;
    }

    /**
     * Prepares both lists and makes the request.
     *
     * @throws io.kvasir.panama.nixl.NixlException if NIXL knows no such memory or peer
     */
    static CellTransfer make(
            NixlTransfers transfers,
            PoolRange near,
            RemoteSide far,
            TransferKind kind,
            boolean write,
            Cell cell) {
        final long nearList = prepare(transfers, "", kind.local(), near, cell);
        final long farList =
                prepare(transfers, far.name(), kind.remote(), far.range(kind.remote()), cell);
        final int[] upwards = IntStream.range(0, cell.count()).toArray();
        final int[] downwards =
                IntStream.range(0, cell.count()).map(i -> cell.count() - 1 - i).toArray();
        final long request =
                transfers.make(write, nearList, upwards, farList, downwards, 0, cell.count(), null);
        return new CellTransfer(
                transfers,
                "%s of %d x %d bytes, %s"
                        .formatted(
                                write ? "WRITE" : "READ",
                                cell.count(),
                                cell.length(),
                                kind.label()),
                nearList,
                farList,
                request);
    }

    private static long prepare(
            NixlTransfers transfers, String peer, NixlMemory memory, PoolRange range, Cell cell) {
        final long[] addresses = new long[cell.count()];
        final long[] lengths = new long[cell.count()];
        final int[] devices = new int[cell.count()];
        for (int i = 0; i < cell.count(); i++) {
            addresses[i] = range.address() + i * cell.length();
            lengths[i] = cell.length();
            devices[i] = range.device();
        }
        return transfers.prepare(peer, memory, addresses, lengths, devices);
    }

    /**
     * Posts the request and polls until it is done.
     *
     * @throws BenchFailure if it fails, which a lost peer does too, or does not end
     */
    void run() {
        final long start = System.nanoTime();
        int status = transfers.post(request);
        postNanos = System.nanoTime() - start;
        while (status == NixlStatus.IN_PROGRESS.code()) {
            if (System.nanoTime() - start > LONGEST.toNanos()) {
                throw new BenchFailure(
                        "%s: no end after %d s".formatted(description, LONGEST.toSeconds()));
            }
            Thread.onSpinWait();
            status = transfers.status(request);
        }
        totalNanos = System.nanoTime() - start;
        if (status != NixlStatus.SUCCESS.code()) {
            throw new BenchFailure(
                    "%s: NIXL says %s (%d), as it does when the peer is gone"
                            .formatted(
                                    description,
                                    NixlStatus.of(status).map(Enum::name).orElse("unknown status"),
                                    status));
        }
    }

    /** Time inside the last post. */
    long postNanos() {
        return postNanos;
    }

    /** Time from the last post to the poll that saw its end. */
    long totalNanos() {
        return totalNanos;
    }

    @Override
    public void close() {
        // a request that cannot be released ends with its agent
        if (transfers.release(request) == NixlStatus.SUCCESS.code()) {
            transfers.releaseList(nearList);
            transfers.releaseList(farList);
        }
    }
}

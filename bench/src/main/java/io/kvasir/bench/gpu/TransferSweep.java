package io.kvasir.bench.gpu;

import java.io.PrintStream;
import java.util.List;
import java.util.Locale;

/**
 * Measures READ and WRITE of all cells of the sweep. Each transfer's bytes are checked once before
 * its times are taken; a wrong one ends the sweep before its line is printed.
 */
final class TransferSweep {
    private final NixlEnd end;
    private final Pools near;
    private final RemoteSide far;
    private final Gpu gpu;
    private final List<Cell> cells;
    private final TimeBudget budget;
    private final Watchdog watchdog;
    private final long poolBytes;
    private long seed = 1;
    private int left;

    /** {@code gpu} is null where no kind needs one. */
    TransferSweep(
            NixlEnd end,
            Pools near,
            RemoteSide far,
            Gpu gpu,
            long poolBytes,
            TimeBudget budget,
            Watchdog watchdog) {
        this.end = end;
        this.near = near;
        this.far = far;
        this.gpu = gpu;
        this.poolBytes = poolBytes;
        this.cells = Cell.sweep(poolBytes);
        this.budget = budget;
        this.watchdog = watchdog;
    }

    void run(List<TransferKind> kinds, PrintStream out) {
        final ResultTable table =
                new ResultTable(
                        out,
                        "kind",
                        "op",
                        "length_bytes",
                        "descriptors",
                        "repeats",
                        "post_us",
                        "post_ns_per_descriptor",
                        "transfer_us",
                        "gb_per_s",
                        "copy_us",
                        "of_copy");
        left = 2 * kinds.size() * cells.size();
        for (TransferKind kind : kinds) {
            try (CopyTimes copies = new CopyTimes(kind.needsGpu() ? gpu : null, poolBytes)) {
                sweep(kind, false, copies, table);
                sweep(kind, true, copies, table);
            }
        }
        if (left > 0) {
            out.printf("left out %d cells: the time was up%n", left);
        }
    }

    private void sweep(TransferKind kind, boolean write, CopyTimes copies, ResultTable table) {
        warmUp(kind, write);
        for (Cell cell : cells) {
            if (budget.isOver()) {
                return;
            }
            watchdog.step(
                    "%s %s of %d x %d bytes"
                            .formatted(
                                    kind.label(),
                                    write ? "WRITE" : "READ",
                                    cell.count(),
                                    cell.length()));
            measure(kind, write, cell, copies, table);
            left--;
        }
    }

    private void warmUp(TransferKind kind, boolean write) {
        watchdog.step(kind.label() + ", first transfer");
        final PoolRange range = near.of(kind.local()).range();
        try (CellTransfer transfer =
                CellTransfer.make(end.transfers(), range, far, kind, write, cells.getFirst())) {
            WarmUp.run(transfer::run);
        }
    }

    private void measure(
            TransferKind kind, boolean write, Cell cell, CopyTimes copies, ResultTable table) {
        final Pool pool = near.of(kind.local());
        try (CellTransfer transfer =
                CellTransfer.make(end.transfers(), pool.range(), far, kind, write, cell)) {
            check(kind, write, cell, pool, transfer);
            transfer.run();
            final int repeats = budget.repeats(left, transfer.totalNanos());
            final Samples posts = new Samples(repeats);
            final Samples totals = new Samples(repeats);
            for (int i = 0; i < repeats; i++) {
                transfer.run();
                posts.add(transfer.postNanos());
                totals.add(transfer.totalNanos());
            }
            final double postMicros = posts.medianMicros();
            final double totalMicros = totals.medianMicros();
            final double copyMicros = copies.micros(cell.bytes());
            table.row(
                    kind.label(),
                    write ? "WRITE" : "READ",
                    Long.toString(cell.length()),
                    Integer.toString(cell.count()),
                    Integer.toString(repeats),
                    number(postMicros),
                    number(postMicros * 1e3 / cell.count()),
                    number(totalMicros),
                    number(cell.bytes() / totalMicros / 1e3),
                    number(copyMicros),
                    number(copyMicros / totalMicros));
        }
    }

    private void check(
            TransferKind kind, boolean write, Cell cell, Pool pool, CellTransfer transfer) {
        final long bytesOf = seed++;
        if (write) {
            pool.fill(cell, bytesOf);
            transfer.run();
            far.verify(kind.remote(), cell, bytesOf);
        } else {
            far.fill(kind.remote(), cell, bytesOf);
            transfer.run();
            pool.verify(cell, bytesOf);
        }
    }

    static String number(double value) {
        return String.format(Locale.ROOT, "%.3f", value);
    }
}

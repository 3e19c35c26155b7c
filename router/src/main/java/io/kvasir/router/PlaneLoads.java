package io.kvasir.router;

import io.kvasir.pipeline.source.LoadPlane;
import io.kvasir.pipeline.wire.PlaneLoad;
import io.kvasir.router.load.LoadCounts;
import io.kvasir.router.load.LoadOutcome;
import io.kvasir.router.load.LoadReading;
import io.kvasir.router.load.LoadSource;

import java.util.function.ObjDoubleConsumer;

/** Passes the load reports of an event plane to the workers that they are of. */
final class PlaneLoads implements LoadPlane.Listener {
    private final WorkerRegistry registry;
    private final LoadCounts counts;
    private final LoadReading reading = new LoadReading(); // of the plane, which calls one by one

    PlaneLoads(WorkerRegistry registry, LoadCounts counts) {
        this.registry = registry;
        this.counts = counts;
    }

    @Override
    public void reported(long order, PlaneLoad load) {
        final Worker worker = registry.onPlaneOrNull(load.workerId(), load.dpRank());
        if (worker == null) {
            counts.add(LoadSource.EVENT_PLANE, LoadOutcome.UNKNOWN_WORKER);
            return;
        }
        reading.reset();
        put(load.running(), LoadReading::running);
        put(load.waiting(), LoadReading::waiting);
        put(load.waitingTokens(), LoadReading::waitingTokens);
        put(load.usedBlocks(), LoadReading::usedBlocks);
        put(load.blocks(), LoadReading::blocks);
        worker.reportLoad(LoadSource.EVENT_PLANE, order, reading);
    }

    private void put(long value, ObjDoubleConsumer<LoadReading> to) {
        if (value != PlaneLoad.MISSING) {
            to.accept(reading, (double) value);
        }
    }

    @Override
    public void unreadable() {
        counts.add(LoadSource.EVENT_PLANE, LoadOutcome.UNREADABLE);
    }
}

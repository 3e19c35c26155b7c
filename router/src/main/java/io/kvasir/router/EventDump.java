package io.kvasir.router;

import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.events.SlotRuns;
import io.kvasir.pipeline.events.SlotRuns.Run;
import io.kvasir.pipeline.source.EventSource;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.RouterEventWriter;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.function.Supplier;

/** Writes what an index holds as the router events, in JSON, that would build it. */
final class EventDump {
    private final IndexPipeline pipeline;
    private final Supplier<WorkerSet> workers;

    EventDump(IndexPipeline pipeline, Supplier<WorkerSet> workers) {
        this.pipeline = pipeline;
        this.workers = workers;
    }

    /** See {@link KvRouter#dumpEvents}. */
    void write(Appendable out) throws IOException, InterruptedException {
        long eventId = 0;
        out.append('[');
        for (Worker worker : workers.get().workers()) {
            final EventSource source = worker.source();
            final boolean eagle = source != null && source.status().learnedEagle();
            final List<Run> runs =
                    SlotRuns.collect(
                            (from, most, keep) ->
                                    pipeline.visitRuns(worker.slot(), from, most, keep));
            if (workers.get().at(worker.slot()) == worker) { // else some may be its successor's
                for (Run run : runs) {
                    out.append(eventId == 0 ? "\n" : ",\n");
                    out.append(json(worker, eventId++, run, eagle));
                }
            }
        }
        out.append("\n]\n");
    }

    private static String json(Worker worker, long eventId, Run run, boolean eagle) {
        final KvBatch batch = new KvBatch();
        if (eagle) {
            batch.markEagle();
        }
        batch.addStored(
                run.depth() == 0,
                run.parent(),
                run.engineHashes(),
                run.localHashes(),
                run.engineHashes().length);
        return new String(
                RouterEventWriter.json(worker.id(), worker.dpRank(), eventId, batch, batch.first()),
                StandardCharsets.US_ASCII);
    }
}

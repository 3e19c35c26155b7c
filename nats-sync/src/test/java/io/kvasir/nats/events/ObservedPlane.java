package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.fail;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.EventPlane;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.pipeline.wire.KvBatch;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** An event plane with one worker, and the index that its events reach; applies when it may. */
final class ObservedPlane implements AutoCloseable {
    static final long WORKER = 7;
    private static final int SLOT = 1;

    /** Several times the 30 s of silence after which the last event is asked for. */
    private static final long PATIENCE_NS = TimeUnit.MINUTES.toNanos(3);

    private static final long PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(5);

    final EventPlane plane = new EventPlane(EventPlane.KNOWN_ONLY);
    final EngineStream stream =
            new EngineStream(SourceConfig.ofRouterEvents("w", SLOT, 4), this::offer);
    final EngineStream other =
            new EngineStream(SourceConfig.ofRouterEvents("o", SLOT + 1, 4), this::offer);
    private final PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(4, 1 << 16, 1 << 16));
    private final IndexApplier applier = new IndexApplier(index);
    private final List<KvBatch> waiting = new ArrayList<>();
    private boolean holding;

    ObservedPlane() {
        plane.register(WORKER, 0, stream);
    }

    /** Has {@link Events#OTHER_WORKER} followed, too. */
    void registerOther() {
        plane.register(Events.OTHER_WORKER, 0, other);
    }

    private synchronized boolean offer(KvBatch batch) {
        if (holding) {
            final KvBatch copy = new KvBatch();
            copy.copyFrom(batch);
            return waiting.add(copy);
        }
        return applier.offer(batch);
    }

    /** Lets events wait before the index. */
    synchronized void hold() {
        holding = true;
    }

    /** Applies what waits. */
    synchronized void release() {
        holding = false;
        waiting.forEach(applier::offer);
        waiting.clear();
    }

    synchronized int waiting() {
        return waiting.size();
    }

    /** Engine hashes that the workers hold. */
    synchronized List<Long> held() {
        final List<Long> names = new ArrayList<>();
        index.forEach((slot, engine, sequence, copies) -> names.add(engine));
        names.sort(null);
        return names;
    }

    void await(IndexState state) {
        await(() -> stream.state() == state, "state " + state);
    }

    void await(BooleanSupplier condition, String what) {
        final long since = System.nanoTime();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - since > PATIENCE_NS) {
                fail(what + " did not come: " + plane.status() + " " + stream.status());
            }
            LockSupport.parkNanos(PAUSE_NS);
        }
    }

    @Override
    public synchronized void close() {
        stream.close();
        other.close();
        index.close();
    }
}

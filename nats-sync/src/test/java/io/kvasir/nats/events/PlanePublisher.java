package io.kvasir.nats.events;

import io.kvasir.core.index.CopyRule;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.RouterEventWriter;
import io.nats.client.JetStream;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** Publishes what made-up workers store and remove, and knows what each holds. */
final class PlanePublisher {
    private static final int MOST_BLOCKS = 4;
    private static final int REMOVE_ONE_IN = 4;

    private final Target target;
    private final Random random;
    private final Map<Long, Set<Long>> held = new TreeMap<>();
    private final Map<Long, List<Long>> tails = new HashMap<>(); // that may be removed or continued
    private final Map<Long, Long> lastEvents = new HashMap<>();
    private long lastName;

    /** What takes the messages. */
    interface Target {
        void publish(byte[] message) throws Exception;
    }

    PlanePublisher(JetStream stream, EventSubjects names, long seed) {
        this(message -> stream.publish(names.streamSubject(), message), seed);
    }

    PlanePublisher(Target target, long seed) {
        this.target = target;
        this.random = new Random(seed);
    }

    /** What each worker holds. */
    Map<Long, Set<Long>> held() {
        return held;
    }

    /** What some workers hold. */
    Map<Long, Set<Long>> held(long... workers) {
        final Map<Long, Set<Long>> some = new TreeMap<>();
        for (long worker : workers) {
            some.put(worker, held.getOrDefault(worker, Set.of()));
        }
        return some;
    }

    /** Publishes some events of each worker. */
    void publish(int each, long... workers) throws Exception {
        for (int i = 0; i < each; i++) {
            for (long worker : workers) {
                publish(worker);
            }
        }
    }

    private void publish(long worker) throws Exception {
        final Set<Long> all = held.computeIfAbsent(worker, _ -> new TreeSet<>());
        final List<Long> last = tails.computeIfAbsent(worker, _ -> new ArrayList<>());
        final KvBatch batch = new KvBatch();
        batch.reset(0, 0, CopyRule.LAST_COPY, false, ApplyListener.NONE);
        if (!last.isEmpty() && random.nextInt(REMOVE_ONE_IN) == 0) {
            final long name = last.remove(random.nextInt(last.size()));
            batch.addRemoved(new long[] {name}, 1);
            all.remove(name);
        } else {
            store(batch, all, last);
        }
        publish(worker, batch);
    }

    /** Publishes that a worker holds nothing any more. */
    void clear(long worker) throws Exception {
        final KvBatch batch = new KvBatch();
        batch.reset(0, 0, CopyRule.LAST_COPY, false, ApplyListener.NONE);
        batch.addCleared();
        held.get(worker).clear();
        tails.get(worker).clear();
        publish(worker, batch);
    }

    private void publish(long worker, KvBatch batch) throws Exception {
        final long event = lastEvents.merge(worker, 1L, Long::sum);
        target.publish(RouterEventWriter.json(worker, 0, event, batch, batch.first()));
    }

    private void store(KvBatch batch, Set<Long> all, List<Long> last) {
        final int count = 1 + random.nextInt(MOST_BLOCKS);
        final boolean root = last.isEmpty() || random.nextBoolean();
        final long parent = root ? 0 : last.remove(random.nextInt(last.size()));
        final long[] engine = new long[count];
        final long[] local = new long[count];
        for (int i = 0; i < count; i++) {
            engine[i] = ++lastName;
            local[i] = 1 + (random.nextLong() >>> 1);
            all.add(engine[i]);
        }
        last.add(engine[count - 1]);
        batch.addStored(root, parent, engine, local, count);
    }
}

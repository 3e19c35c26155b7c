package io.kvasir.bench.events;

import io.kvasir.core.index.CopyRule;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.events.EventSubjects;
import io.kvasir.nats.events.JetStreamEventSource;
import io.kvasir.nats.events.JetStreamEventTransport;
import io.kvasir.nats.events.StreamForm;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.RouterEventWriter;
import io.kvasir.router.EventPlaneWorker;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Worker;
import io.kvasir.router.WorkerSpec;
import io.nats.client.Connection;
import io.nats.client.JetStreamManagement;
import io.nats.client.Nats;

import org.HdrHistogram.Histogram;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Events of eight workers through a JetStream into the index of a router. Questions answered: how
 * many events a second does one router take that has an hour to catch up with, and whose CPU time
 * is that; and how long is it, at some rates, from the moment at which an event was due until it is
 * visible in the index?
 *
 * <p>Each event stores four blocks of a prompt of its own. In the second part each worker publishes
 * as a relay does, one event after the other, each acknowledged by the stream, at fixed moments
 * (open loop): an event that had to wait for the one before it counts from when it was due. Where
 * several are published together, they are in one message and due at the same moment.
 */
public final class EventPlaneCost {
    private static final int WORKERS = 8;
    private static final int BLOCKS = 4;
    private static final int BLOCK_SIZE = 16;
    private static final int AT_ONCE = 2_000;
    private static final int[] RATES = {200, 1_000, 4_000};
    private static final int WARM_UP_S = 3;
    private static final int MEASURED_S = 15;
    private static final long LOOK_NS = 20_000;
    private static final double NS_PER_MS = 1e6;
    private static final double NS_PER_US = 1e3;
    private static final EventSubjects NAMES = EventSubjects.kvEvents("bench", "backend", null);

    private final NatsAccess access;
    private final int replicas;
    private final int together;
    private final List<ProcessHandle> servers;
    private final long[] lastIds = new long[WORKERS];
    private final KvBatch batch = new KvBatch();
    private final long[] engineHashes = new long[BLOCKS];
    private final long[] localHashes = new long[BLOCKS];

    private EventPlaneCost(
            NatsAccess access, int replicas, List<ProcessHandle> servers, int together) {
        this.access = access;
        this.together = together;
        this.replicas = replicas;
        this.servers = servers;
    }

    /**
     * Addresses of NATS, servers that keep the stream, their process ids, events to drain, events
     * that are published together.
     */
    public static void main(String[] args) throws Exception {
        final List<ProcessHandle> servers =
                Arrays.stream(args[2].split(",", -1))
                        .map(id -> ProcessHandle.of(Long.parseLong(id)).orElseThrow())
                        .toList();
        final EventPlaneCost cost =
                new EventPlaneCost(
                        NatsAccess.of(args[0]),
                        Integer.parseInt(args[1]),
                        servers,
                        Integer.parseInt(args[4]));
        System.out.println("servers that keep the stream: " + args[1]);
        cost.fill(Integer.parseInt(args[3]));
        try (KvRouter router = cost.router()) {
            final List<Worker> workers = cost.drain(router);
            System.out.println(
                    "| events/s due | published | p50 ms | p99 ms | p99.9 ms | longest ms |");
            for (int rate : RATES) {
                cost.latency(workers, rate);
            }
        }
    }

    private static KvBatch event(
            KvBatch batch, long[] engineHashes, long[] localHashes, int worker, long id) {
        batch.reset(0, 0, CopyRule.LAST_COPY, false, ApplyListener.NONE);
        add(batch, engineHashes, localHashes, worker, id);
        return batch;
    }

    private static void add(
            KvBatch batch, long[] engineHashes, long[] localHashes, int worker, long id) {
        for (int i = 0; i < BLOCKS; i++) {
            engineHashes[i] = mixed(((id * WORKERS + worker) * BLOCKS + i) * 2);
            localHashes[i] = mixed(((id * WORKERS + worker) * BLOCKS + i) * 2 + 1);
        }
        batch.addStored(true, 0, engineHashes, localHashes, BLOCKS);
    }

    /** As engines' hashes are: all bits differ from one to the next. */
    private static long mixed(long number) {
        long z = number * 0x9E3779B97F4A7C15L;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }

    /** Fills the stream faster than workers would, and waits until it has all. */
    private void fill(int events) throws Exception {
        // makes the stream
        try (JetStreamEventTransport first =
                new JetStreamEventTransport(access, NAMES, StreamForm.EVENTS, replicas)) {
            publishPatiently(first);
        }
        final Connection connection = Nats.connect(access.options("bench").build());
        try {
            final JetStreamManagement management = connection.jetStreamManagement();
            long bytes = 0;
            for (int sent = 1; sent < events; ) {
                for (int i = 0; i < AT_ONCE && sent < events; i++, sent++) {
                    final int worker = sent % WORKERS;
                    final long id = ++lastIds[worker];
                    final byte[] json =
                            RouterEventWriter.json(
                                    worker,
                                    0,
                                    id,
                                    event(batch, engineHashes, localHashes, worker, id),
                                    batch.first());
                    bytes += json.length;
                    connection.publish(NAMES.streamSubject(), json);
                }
                connection.flush(Duration.ofSeconds(30));
                while (management.getStreamInfo(NAMES.stream()).getStreamState().getMsgCount()
                        < sent) {
                    Thread.sleep(1);
                }
            }
            System.out.printf(
                    Locale.ROOT,
                    "filled: %,d events of %d blocks, %d bytes each, %d in the stream%n",
                    events,
                    BLOCKS,
                    bytes / (events - 1),
                    management.getStreamInfo(NAMES.stream()).getStreamState().getByteCount()
                            / events);
        } finally {
            connection.close();
        }
    }

    private void publishPatiently(JetStreamEventTransport transport) throws InterruptedException {
        lastIds[0] = 1;
        while (true) {
            try {
                transport.publish(0, 0, 1, event(batch, engineHashes, localHashes, 0, 1));
                return;
            } catch (IOException e) {
                Thread.sleep(200); // the cluster has no leader yet
            }
        }
    }

    private KvRouter router() {
        return KvRouter.builder()
                .blockSize(BLOCK_SIZE)
                .maxWorkers(WORKERS)
                .maxBlocks(1L << 22, 1L << 22)
                .eventPlane(plane -> new JetStreamEventSource(access, NAMES, replicas, null, plane))
                .build();
    }

    private List<Worker> drain(KvRouter router) throws InterruptedException {
        final Times before = new Times();
        final long start = System.nanoTime();
        final List<Worker> workers = new ArrayList<>();
        for (int i = 0; i < WORKERS; i++) {
            workers.add(
                    router.addWorker(
                            WorkerSpec.of(i, "w" + i, "http://w")
                                    .onEventPlane(new EventPlaneWorker(i, 0))));
        }
        for (int i = 0; i < WORKERS; i++) {
            while (workers.get(i).eventSequence() < lastIds[i]) {
                Thread.sleep(1);
            }
        }
        final double seconds = (System.nanoTime() - start) / 1e9;
        final long events = Arrays.stream(lastIds).sum();
        final Times spent = new Times().minus(before);
        System.out.printf(
                Locale.ROOT,
                "drained: %,.0f events/s; CPU an event: stream thread %.1f µs, index writer %.1f"
                        + " µs, jnats and all else %.1f µs, servers %.1f µs%n",
                events / seconds,
                spent.stream / NS_PER_US / events,
                spent.writer / NS_PER_US / events,
                spent.others() / NS_PER_US / events,
                spent.servers / NS_PER_US / events);
        System.out.println(router.status().planeOrNull());
        return workers;
    }

    /** CPU times so far, ns. */
    private final class Times {
        private long process;
        private long stream;
        private long writer;
        private long servers;

        Times() {
            final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
            for (long id : threads.getAllThreadIds()) {
                final var info = threads.getThreadInfo(id);
                if (info != null && info.getThreadName().equals("kvasir-nats-stream")) {
                    stream += threads.getThreadCpuTime(id);
                } else if (info != null && info.getThreadName().equals("kvasir-index-writer")) {
                    writer += threads.getThreadCpuTime(id);
                }
            }
            if (ManagementFactory.getOperatingSystemMXBean()
                    instanceof com.sun.management.OperatingSystemMXBean system) {
                process = system.getProcessCpuTime();
            }
            for (ProcessHandle server : EventPlaneCost.this.servers) {
                servers += server.info().totalCpuDuration().orElse(Duration.ZERO).toNanos();
            }
        }

        Times minus(Times before) {
            process -= before.process;
            stream -= before.stream;
            writer -= before.writer;
            servers -= before.servers;
            return this;
        }

        long others() {
            return process - stream - writer;
        }
    }

    private void latency(List<Worker> workers, int rate) throws Exception {
        final long[] firstIds = lastIds.clone();
        final int each = rate * (WARM_UP_S + MEASURED_S) / WORKERS / together * together;
        final long start = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(500);
        final Histogram histogram = new Histogram(3);
        final List<Thread> publishers = new ArrayList<>();
        for (int i = 0; i < WORKERS; i++) {
            final int worker = i;
            publishers.add(
                    Thread.ofPlatform()
                            .start(() -> publish(worker, firstIds[worker], each, start, rate)));
        }
        final long[] seen = firstIds.clone();
        int left = WORKERS;
        while (left > 0) {
            left = 0;
            for (int i = 0; i < WORKERS; i++) {
                final long visible = workers.get(i).eventSequence();
                final long now = System.nanoTime();
                for (; seen[i] < visible; seen[i]++) {
                    final long number = seen[i] - firstIds[i];
                    final long due = due(start, i, number / together * together, rate);
                    if (due - start >= TimeUnit.SECONDS.toNanos(WARM_UP_S)) {
                        histogram.recordValue(Math.max(0, now - due));
                    }
                }
                left += seen[i] < firstIds[i] + each ? 1 : 0;
            }
            LockSupport.parkNanos(LOOK_NS);
        }
        final double seconds = (System.nanoTime() - start) / 1e9;
        for (Thread publisher : publishers) {
            publisher.join();
        }
        System.out.printf(
                Locale.ROOT,
                "| %,d | %,.0f/s | %.2f | %.2f | %.2f | %.1f |%n",
                rate,
                (double) each * WORKERS / seconds,
                histogram.getValueAtPercentile(50) / NS_PER_MS,
                histogram.getValueAtPercentile(99) / NS_PER_MS,
                histogram.getValueAtPercentile(99.9) / NS_PER_MS,
                histogram.getMaxValue() / NS_PER_MS);
    }

    private static long due(long start, int worker, long number, int rate) {
        return start + (number * WORKERS + worker) * TimeUnit.SECONDS.toNanos(1) / rate;
    }

    private void publish(int worker, long firstId, int count, long start, int rate) {
        final StreamForm form = together > 1 ? StreamForm.ENVELOPES : StreamForm.EVENTS;
        final KvBatch own = new KvBatch();
        final long[] engine = new long[BLOCKS];
        final long[] local = new long[BLOCKS];
        try (JetStreamEventTransport transport =
                new JetStreamEventTransport(access, NAMES, form, replicas)) {
            for (int i = 0; i < count; i += together) {
                final long id = firstId + 1 + i;
                event(own, engine, local, worker, id);
                for (int more = 1; more < together; more++) {
                    add(own, engine, local, worker, id + more);
                }
                for (long left = due(start, worker, i, rate) - System.nanoTime();
                        left > 0;
                        left = due(start, worker, i, rate) - System.nanoTime()) {
                    LockSupport.parkNanos(left);
                }
                transport.publish(worker, 0, id, own);
                lastIds[worker] = id + together - 1;
            }
        } catch (IOException e) {
            throw new IllegalStateException("an event was not published", e);
        }
    }
}

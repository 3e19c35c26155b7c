package io.kvasir.nats.events;

import io.kvasir.nats.Patient;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.registry.LeasedStore;
import io.kvasir.router.Worker;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.RunningNats;
import io.kvasir.testsupport.Seeds;
import io.nats.client.Connection;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;

/**
 * Routers over one plane that start, end, fail and save in any order, each with workers that come
 * and go. Whatever was before, what one of them, or one that starts alone, calls EXACT is; and a
 * worker that no router has removed is EXACT.
 */
@Tag("integration") // starts a server
class SnapshotOrdersTest {
    private static final long[] WORKERS = {7, 8, 9};
    private static final long STAYING = 7;
    private static final int STEPS = 400;
    private static final int THRESHOLD = 10;
    private static final int MOST_REPLICAS = 3;
    private static final int MOST_EVENTS = 8;
    private static final Duration RETRY = Duration.ofMillis(20);

    @RegisterExtension static final RunningNats NATS = new RunningNats();

    private final EventSubjects names =
            EventSubjects.kvEvents("ns" + System.nanoTime(), "backend", "generate");
    private final Random random = new Random(Seeds.next("SnapshotOrdersTest"));
    private final List<PlaneReplica> replicas = new ArrayList<>();
    private final Set<Long> removed = new HashSet<>(); // by a router that went on
    private final List<String> trace = new ArrayList<>();
    private Connection connection;
    private PlanePublisher publisher;

    @BeforeEach
    void connect() throws Exception {
        connection = Patient.connect(NATS.url());
        EventStreams.open(connection.jetStreamManagement(), names, 1);
        publisher = new PlanePublisher(connection.jetStream(), names, random.nextLong());
    }

    @AfterEach
    void disconnect() throws InterruptedException {
        replicas.forEach(PlaneReplica::close);
        connection.close();
    }

    @RepeatedTest(2)
    void whatOneThatStartsAloneCallsExactIs() throws Exception {
        publisher.publish(1, WORKERS);
        for (int step = 0; step < STEPS; step++) {
            switch (random.nextInt(8)) {
                case 0 -> start();
                case 1 -> end();
                case 2, 3 -> publish();
                case 4, 5 -> changeWorker();
                default -> save();
            }
        }
        publisher.publish(1, WORKERS);
        for (PlaneReplica each : replicas) {
            for (Worker worker : each.router.workers()) {
                awaitKnown(each, worker);
            }
        }
        replicas.forEach(PlaneReplica::close);
        replicas.clear();
        publisher.publish(1, WORKERS); // whose number says whether any is missing
        final PlaneReplica alone = replica();
        for (long worker : WORKERS) {
            alone.add(worker);
        }
        for (Worker worker : alone.router.workers()) {
            awaitKnown(alone, worker);
        }
    }

    private void awaitKnown(PlaneReplica replica, Worker worker) throws Exception {
        Eventually.until(
                "all of " + worker + ", which is " + worker.state() + ", after " + trace,
                () -> isKnown(replica, worker) || isKnownAfterLook(replica, worker));
    }

    /** What was lost of it may be restored, and is stale then until its next event. */
    private boolean isKnownAfterLook(PlaneReplica replica, Worker worker) throws Exception {
        if (worker.state() == IndexState.DEGRADED || worker.state() == IndexState.STALE) {
            var _ = replica.look();
            publisher.publish(1, WORKERS);
        }
        return isKnown(replica, worker);
    }

    /**
     * Whether it is EXACT and all is there. Of one that no router has removed all is; of the others
     * it may be said that something is missing.
     */
    private boolean isKnown(PlaneReplica replica, Worker worker) {
        return (removed.contains(worker.id()) && worker.state() == IndexState.DEGRADED)
                || (worker.state() == IndexState.EXACT
                        && replica.held()
                                .get(worker.id())
                                .equals(publisher.held().get(worker.id())));
    }

    private PlaneReplica replica() throws Exception {
        final LeasedStore locks = PlaneReplica.locks(NATS.url(), Duration.ofMinutes(1));
        final PlaneReplica replica =
                new PlaneReplica(
                        NATS.url(),
                        PlaneReplica.access(NATS.url()),
                        names,
                        locks,
                        PlaneReplica.past(THRESHOLD),
                        this::step,
                        RETRY);
        replicas.add(replica);
        return replica;
    }

    /** A step of a snapshot, after which it may fail. */
    private void step(String name) {
        if (random.nextInt(12) == 0) {
            trace.add("fails after " + name);
            throw new IllegalArgumentException("as the test wants it");
        }
    }

    private void start() throws Exception {
        if (replicas.size() < MOST_REPLICAS) {
            replica();
            trace.add("start of " + (replicas.size() - 1));
        }
    }

    private PlaneReplica any() {
        return replicas.isEmpty() ? null : replicas.get(random.nextInt(replicas.size()));
    }

    private void end() {
        final PlaneReplica one = any();
        if (one != null) {
            trace.add("end of " + replicas.indexOf(one));
            replicas.remove(one);
            one.close();
        }
    }

    private void publish() throws Exception {
        final long worker = WORKERS[random.nextInt(WORKERS.length)];
        final int events = 1 + random.nextInt(MOST_EVENTS);
        publisher.publish(events, worker);
        trace.add(events + " of " + worker);
    }

    private void changeWorker() {
        final PlaneReplica one = any();
        if (one == null) {
            return;
        }
        final long id = WORKERS[random.nextInt(WORKERS.length)];
        for (Worker worker : one.router.workers()) {
            if (worker.id() == id) {
                if (id == STAYING) {
                    return;
                }
                one.router.removeWorker(worker);
                removed.add(id);
                trace.add(id + " leaves " + replicas.indexOf(one));
                return;
            }
        }
        one.add(id);
        trace.add(id + " joins " + replicas.indexOf(one));
    }

    private void save() throws Exception {
        final PlaneReplica one = any();
        if (one != null && one.look()) {
            trace.add("snapshot of " + replicas.indexOf(one));
        }
    }
}

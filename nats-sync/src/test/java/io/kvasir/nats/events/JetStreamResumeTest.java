package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nats.Patient;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.PlanePosition;
import io.kvasir.router.EventPlaneWorker;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Worker;
import io.kvasir.router.WorkerSpec;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.RunningNats;
import io.kvasir.testsupport.Seeds;
import io.nats.client.Connection;
import io.nats.client.JetStreamManagement;
import io.nats.client.PurgeOptions;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.BufferedReader;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/** A router whose index outlives it, over a real stream: it reads what is new, and all of that. */
@Tag("integration") // starts a server
class JetStreamResumeTest {
    @RegisterExtension static final RunningNats NATS = new RunningNats();

    private static final String NAMESPACE = "resume";
    private static final int KILLS = 6;
    private static final long[] WORKERS = {7, 8, 9};
    private static final int BLOCK_SIZE = 4;
    private static final int LIVES = 12;
    private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(60);

    @TempDir Path folder;

    private final long seed = Seeds.next("JetStreamResumeTest");
    private final Random random = new Random(seed);
    private String component;
    private EventSubjects names;
    private Connection connection;
    private JetStreamManagement management;
    private PlanePublisher publisher;
    private KvRouter router;

    @BeforeEach
    void connect(TestInfo test) throws Exception {
        component = "c" + Integer.toHexString(test.getDisplayName().hashCode());
        names = EventSubjects.kvEvents(NAMESPACE, component, null);
        connection = Patient.connect(NATS.url());
        management = connection.jetStreamManagement();
        EventStreams.open(management, names, 1);
        publisher = new PlanePublisher(connection.jetStream(), names, seed);
    }

    @AfterEach
    void close() throws Exception {
        stop();
        connection.close();
    }

    private static KvRouter router(String kept, Path folder, String url, EventSubjects names) {
        return KvRouter.builder()
                .blockSize(BLOCK_SIZE)
                .maxWorkers(8)
                .maxBlocks(20_000, 40_000)
                .set(kept, folder.toString())
                .eventPlane(
                        plane -> new JetStreamEventSource(Patient.access(url), names, null, plane))
                .build();
    }

    private void start(String kept, long... workers) {
        router = router(kept, folder, NATS.url(), names);
        for (long worker : workers) {
            add(worker);
        }
    }

    /**
     * The same where the stream can be read only once all workers are registered: a message of one
     * that is not has it read again from where it began.
     */
    private void startBeforeTheServer(String kept, long... workers) throws Exception {
        NATS.server().stop();
        start(kept, workers);
        NATS.server().start();
        await("own connection", () -> connection.getStatus() == Connection.Status.CONNECTED);
    }

    private Worker add(long worker) {
        return add(router, worker);
    }

    private static Worker add(KvRouter to, long worker) {
        return to.addWorker(
                WorkerSpec.of(worker, "w" + worker, "http://w")
                        .onEventPlane(new EventPlaneWorker(worker, 0)));
    }

    /** A process that follows {@link #WORKERS} until it is killed. */
    static final class Follower {
        private Follower() {}

        /**
         * Runs until it is killed.
         *
         * @param args where NATS is, the component, the folder
         */
        public static void main(String[] args) throws InterruptedException {
            final EventSubjects names = EventSubjects.kvEvents(NAMESPACE, args[1], null);
            final KvRouter followed = router("state-mapped-dir", Path.of(args[2]), args[0], names);
            for (long worker : WORKERS) {
                add(followed, worker);
            }
            System.out.println("ready");
            Thread.sleep(Duration.ofHours(1));
        }
    }

    private void stop() {
        if (router != null) {
            router.close();
            router = null;
        }
    }

    private long last() throws Exception {
        return management.getStreamInfo(names.stream()).getStreamState().getLastSequence();
    }

    private void await(String what, BooleanSupplier condition) {
        Eventually.holds(
                () -> what + ": " + router.status().planeOrNull() + " " + states(), condition);
    }

    private String states() {
        final StringBuilder states = new StringBuilder();
        for (Worker worker : router.workers()) {
            states.append(worker.sourceStatus()).append(' ');
        }
        return states.toString();
    }

    /** Everything is in the index, and the position says so. */
    private void awaitPosition() throws Exception {
        final long last = last();
        await(
                "the position " + last,
                () -> {
                    final PlanePosition position = router.eventPlane().positionOrNull();
                    return position != null && position.upTo() == last;
                });
    }

    private void awaitTruth(long... workers) throws Exception {
        awaitPosition();
        assertEquals(publisher.held(workers), PlaneReplica.held(router));
        for (Worker worker : router.workers()) {
            await("exact: " + worker, () -> worker.state() == IndexState.EXACT);
            assertEquals(0, worker.sourceStatus().restarts());
            assertEquals(0, worker.sourceStatus().gaps());
        }
    }

    private long received() {
        return router.status().planeOrNull().messages();
    }

    @ParameterizedTest
    @ValueSource(strings = {"state-mapped-dir", "state-dir"})
    void aRestartedRouterIsSentWhatIsNewAlone(String kept) throws Exception {
        start(kept, WORKERS);
        publisher.publish(50, WORKERS);
        awaitTruth(WORKERS);
        assertEquals(150, received());
        stop();
        publisher.publish(7, WORKERS);
        startBeforeTheServer(kept, WORKERS);
        awaitTruth(WORKERS);
        assertEquals(21, received());
        assertEquals(0, router.status().planeOrNull().redelivered());
        stop();
        startBeforeTheServer(kept, WORKERS);
        awaitTruth(WORKERS);
        assertEquals(0, received());
    }

    @Test
    void howeverOftenItEndsItMissesNothing() throws Exception {
        start("state-mapped-dir", WORKERS);
        publisher.publish(20, WORKERS);
        awaitTruth(WORKERS); // so that there is a position at all
        stop();
        for (int life = 0; life < LIVES; life++) {
            start("state-mapped-dir", WORKERS);
            publisher.publish(random.nextInt(60), WORKERS);
            Thread.sleep(random.nextInt(40)); // any moment will do
            stop(); // what is in the ring is not applied
            publisher.publish(random.nextInt(10), WORKERS);
        }
        start("state-mapped-dir", WORKERS);
        awaitTruth(WORKERS);
        assertTrue(received() < last(), () -> received() + " messages, which is all");
    }

    @Test
    void aProcessThatIsKilledAtAnyMomentGoesOnWhereItsIndexIs() throws Exception {
        publisher.publish(100, WORKERS); // so that all of it is known from a part
        for (int kill = 0; kill < KILLS; kill++) {
            final Process process =
                    new ProcessBuilder(
                                    Path.of(System.getProperty("java.home"), "bin", "java")
                                            .toString(),
                                    "-XX:TieredStopAtLevel=1",
                                    "-Xmx256m",
                                    "--enable-native-access=ALL-UNNAMED",
                                    "-cp",
                                    System.getProperty("java.class.path"),
                                    Follower.class.getName(),
                                    NATS.url(),
                                    component,
                                    folder.toString())
                            .redirectErrorStream(true)
                            .start();
            try (BufferedReader out = process.inputReader()) {
                assertTrue(out.lines().anyMatch("ready"::equals), "it has not started");
                publisher.publish(20, WORKERS);
                Thread.sleep(random.nextInt(600)); // any moment will do
            } finally {
                process.destroyForcibly(); // SIGKILL
            }
            assertTrue(process.waitFor(PATIENCE_NS, TimeUnit.NANOSECONDS));
            publisher.publish(2, WORKERS);
            start("state-mapped-dir", WORKERS);
            final long of = last();
            awaitTruth(WORKERS);
            final long sent = received();
            if (kill > 0) { // before the first one it may have had no time for anything
                assertTrue(sent <= 66 && of > 300, () -> "sent: " + sent + " of " + of);
            }
            stop();
        }
    }

    /**
     * The check is checked: with the position of what is in the stream, what was not read is lost.
     */
    @Test
    void withAPositionAheadOfTheIndexEventsAreLost() throws Exception {
        start("state-mapped-dir", WORKERS);
        publisher.publish(20, WORKERS);
        awaitTruth(WORKERS);
        final long store = router.eventPlane().positionOrNull().store();
        router.indexPipeline().keepPosition(new PlanePosition(store, last() + 60));
        await("the position", () -> router.indexPipeline().backlog() == 0);
        stop();
        publisher.publish(20, WORKERS);
        start("state-mapped-dir", WORKERS);
        publisher.publish(20, WORKERS);
        awaitPosition();
        assertNotEquals(
                publisher.held(WORKERS),
                PlaneReplica.held(router),
                "the check is none: nothing was lost");
    }

    @Test
    void aWorkerThatComesLateOrWasNotThereBeforeMissesNothing() throws Exception {
        start("state-mapped-dir", 7, 8);
        publisher.publish(30, WORKERS);
        awaitTruth(7, 8);
        stop();
        publisher.publish(5, WORKERS);
        start("state-mapped-dir", 7);
        await("read", () -> received() == 15);
        add(8); // was expected: read again from where it was
        awaitTruth(7, 8);
        assertTrue(received() < 90, () -> "all was read: " + received());
        add(9); // is new here: all is read again
        awaitTruth(WORKERS);
        assertTrue(received() >= 105, () -> "not all was read: " + received());
        stop();
        start("state-mapped-dir", WORKERS);
        awaitTruth(WORKERS);
        assertEquals(0, received());
    }

    @Test
    void whereTheStreamNoLongerReachesBackTheNumbersSaySo() throws Exception {
        start("state-mapped-dir", 7, 8);
        publisher.publish(30, 7, 8);
        awaitTruth(7, 8);
        stop();
        publisher.publish(5, 7);
        management.purgeStream(names.stream(), PurgeOptions.builder().sequence(last() + 1).build());
        start("state-mapped-dir", 7, 8);
        await(
                "stale",
                () ->
                        router.status().planeOrNull().isConnected()
                                && router.workers().stream()
                                        .allMatch(w -> w.state() == IndexState.STALE));
        publisher.publish(1, 7, 8);
        await("known by its numbers", () -> router.workers().get(1).state() == IndexState.EXACT);
        await("a gap", () -> router.workers().get(0).state() == IndexState.DEGRADED);
        assertEquals(publisher.held(8).get(8L), PlaneReplica.held(router).get(8L));
    }

    @Test
    void whatAStreamThatWasMadeAnewDoesNotHaveIsMissedUntilTheNumbersSay() throws Exception {
        start("state-mapped-dir", 7, 8);
        publisher.publish(30, 7, 8);
        awaitTruth(7, 8);
        stop();
        publisher.publish(5, 7); // into the former stream, which no gateway reads
        management.deleteStream(names.stream());
        EventStreams.open(management, names, 1);
        start("state-mapped-dir", 7, 8);
        await("all is read", () -> router.status().planeOrNull().isConnected());
        assertStale("was made anew");
        NATS.server().stop();
        await("cut off again", () -> !router.status().planeOrNull().isConnected());
        NATS.server().start();
        await("connected again", () -> router.status().planeOrNull().isConnected());
        assertStale("was made anew");
        await("own connection", () -> connection.getStatus() == Connection.Status.CONNECTED);
        publisher.publish(1, 7, 8);
        await("known by its numbers", () -> router.workers().get(1).state() == IndexState.EXACT);
        await("a gap", () -> router.workers().get(0).state() == IndexState.DEGRADED);
        assertEquals(publisher.held(8).get(8L), PlaneReplica.held(router).get(8L));
    }

    private void assertStale(String why) {
        for (Worker worker : router.workers()) {
            assertEquals(IndexState.STALE, worker.state(), worker.sourceStatus()::toString);
            final String problem = worker.sourceStatus().problem();
            assertTrue(problem.contains(why), problem);
        }
    }

    @Test
    void aStreamThatIsMadeAnewIsReadFromItsBeginning() throws Exception {
        start("state-mapped-dir", 7);
        publisher.publish(30, 7);
        awaitTruth(7);
        stop();
        management.deleteStream(names.stream());
        EventStreams.open(management, names, 1);
        publisher.publish(5, 7);
        start("state-mapped-dir", 7);
        awaitTruth(7);
        assertEquals(5, received());
        stop();
        publisher.publish(2, 7);
        start("state-mapped-dir", 7);
        awaitTruth(7);
        assertEquals(2, received());
    }

    @Test
    void aConsumerThatIsDeletedIsMadeAgainBehindWhatWasRead() throws Exception {
        start("state-mapped-dir", WORKERS);
        publisher.publish(20, WORKERS);
        awaitTruth(WORKERS);
        for (String consumer : management.getConsumerNames(names.stream())) {
            management.deleteConsumer(names.stream(), consumer);
        }
        publisher.publish(20, WORKERS);
        awaitTruth(WORKERS);
        assertEquals(120, received());
    }
}

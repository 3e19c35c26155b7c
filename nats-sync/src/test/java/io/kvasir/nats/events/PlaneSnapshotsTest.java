package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.CopyRule;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.Patient;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.RouterEventWriter;
import io.kvasir.registry.LeasedStore;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.RunningNats;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.TcpProxy;
import io.nats.client.Connection;
import io.nats.client.JetStreamManagement;
import io.nats.client.PurgeOptions;
import io.nats.client.api.ConsumerConfiguration;
import io.nats.client.api.DeliverPolicy;
import io.nats.client.api.ObjectInfo;
import io.nats.client.api.ObjectStoreConfiguration;
import io.nats.client.api.StreamConfiguration;
import io.nats.client.api.StreamInfo;
import io.nats.client.api.StreamState;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/** Routers over one event plane, of which one or the other ends in the middle of a snapshot. */
@Tag("integration") // starts a server
class PlaneSnapshotsTest {
    private static final long[] WORKERS = {7, 8, 9};
    private static final int THRESHOLD = 60;
    private static final Duration SHORT = Duration.ofSeconds(6);
    private static final Duration UNREAD = Duration.ofSeconds(3);
    private static final Duration LONG = Duration.ofSeconds(32);

    @RegisterExtension static final RunningNats NATS = new RunningNats();

    private final EventSubjects names =
            EventSubjects.kvEvents("ns" + System.nanoTime(), "backend", "generate");
    private final List<PlaneReplica> replicas = new ArrayList<>();
    private final List<PlaneReplica> stoppedReplicas = new ArrayList<>();
    private final CountDownLatch end = new CountDownLatch(1);
    private Duration lockTtl = Duration.ofMinutes(1);
    private Connection connection;
    private JetStreamManagement management;
    private PlanePublisher publisher;

    @BeforeEach
    void connect() throws Exception {
        connection = Patient.connect(NATS.url());
        management = connection.jetStreamManagement();
        EventStreams.open(management, names, 1);
        publisher = new PlanePublisher(connection.jetStream(), names, Seeds.next("PlaneSnapshots"));
    }

    @AfterEach
    void disconnect() throws InterruptedException {
        end.countDown();
        stoppedReplicas.forEach(PlaneReplica::close);
        replicas.forEach(PlaneReplica::close);
        connection.close();
    }

    /** Where the lock is, and how long one that is silent keeps it. */
    LeasedStore locks(Duration ttl) {
        return PlaneReplica.locks(NATS.url(), ttl);
    }

    private static void nothing(String step) {}

    private PlaneReplica replica(Consumer<String> steps, long... workers) throws IOException {
        return replica(PlaneReplica.past(THRESHOLD), steps, workers);
    }

    private PlaneReplica replica(
            PlaneSnapshotConfig config, Consumer<String> steps, long... workers)
            throws IOException {
        final PlaneReplica replica =
                new PlaneReplica(NATS.url(), names, locks(lockTtl), config, steps, workers);
        replicas.add(replica);
        return replica;
    }

    /** A replica that is stopped until the end of the test. */
    private void stopped(PlaneReplica replica) {
        replicas.remove(replica);
        stoppedReplicas.add(replica);
    }

    private void closeAll() {
        replicas.forEach(PlaneReplica::close);
        replicas.clear();
    }

    /**
     * Takes a snapshot, which may need another try where the machine is slow, or is saved though
     * the lock was lost before all was tidied up.
     */
    private static void take(PlaneReplica replica) throws Exception {
        final long before = replica.snapshots.status().taken();
        Eventually.until(
                "a snapshot: " + replica.snapshots.status(),
                () -> replica.look() || replica.snapshots.status().taken() > before);
    }

    private StreamState stream() throws Exception {
        return management.getStreamInfo(names.stream()).getStreamState();
    }

    /** Names of the snapshots, the oldest first. */
    private List<String> saved() throws Exception {
        return connection.objectStore(names.bucket()).getList().stream()
                .map(ObjectInfo::getObjectName)
                .sorted()
                .toList();
    }

    private static long sequence(String snapshot) {
        return SnapshotName.orNull(snapshot).sequence();
    }

    /** Waits until a replica knows all, and may say so. */
    private void settle(PlaneReplica replica) throws Exception {
        final long[] workers = replica.router.workers().stream().mapToLong(w -> w.id()).toArray();
        final Map<Long, Set<Long>> expected = publisher.held(workers);
        Eventually.until("all is known", () -> replica.held().equals(expected));
        final long last = stream().getLastSequence();
        Eventually.until("all is settled", () -> vouched(replica) == last || !knowsAll(replica));
        Eventually.until(
                "all is acknowledged", this::isAcknowledged); // a purge goes as far as that
    }

    private boolean isAcknowledged() throws Exception {
        return management.getConsumers(names.stream()).stream()
                .allMatch(consumer -> consumer.getNumAckPending() == 0);
    }

    private boolean knowsAll(PlaneReplica replica) {
        return replica.router.workers().size() == publisher.held().size();
    }

    private long vouched(PlaneReplica replica) throws Exception {
        final StreamInfo info = management.getStreamInfo(names.stream());
        return replica.router
                .eventPlane()
                .vouchesUpTo(
                        StreamPosition.store(info.getCreateTime()),
                        info.getStreamState().getFirstSequence());
    }

    private void publishPastTheThreshold() throws Exception {
        publisher.publish(THRESHOLD / WORKERS.length + 1, WORKERS);
    }

    /** What a router knows that starts when all others are gone. */
    private PlaneReplica startAlone() throws Exception {
        closeAll();
        return replica(PlaneSnapshotsTest::nothing, WORKERS);
    }

    private void assertRecovers(PlaneReplica alone) throws Exception {
        awaitRecovered(alone);
        assertEquals(0, alone.router.status().planeOrNull().refused());
    }

    private void awaitRecovered(PlaneReplica alone) throws Exception {
        final Map<Long, Set<Long>> expected = publisher.held(WORKERS);
        Eventually.until(
                "the whole state: " + alone.snapshots.status(),
                () -> alone.held().equals(expected));
        Eventually.until(
                "exact",
                () -> alone.router.workers().stream().allMatch(w -> w.state() == IndexState.EXACT));
    }

    @Test
    void belowTheThresholdNothingIsSaved() throws Exception {
        final PlaneReplica replica = replica(PlaneSnapshotsTest::nothing, WORKERS);
        publisher.publish(THRESHOLD / WORKERS.length, WORKERS);
        settle(replica);
        assertFalse(replica.look());
        assertEquals(0, replica.snapshots.status().taken());
    }

    private void keepMessages(Duration age) throws Exception {
        management.updateStream(
                StreamConfiguration.builder(
                                management.getStreamInfo(names.stream()).getConfiguration())
                        .maxAge(age)
                        .duplicateWindow(Duration.ofSeconds(1))
                        .build());
    }

    private void awaitAllDropped() throws Exception {
        Eventually.until("all are dropped", () -> stream().getMsgCount() == 0);
        keepMessages(Duration.ofHours(1));
    }

    @Test
    void belowTheThresholdWhatTheStreamIsAboutToDropIsSaved() throws Exception {
        final PlaneReplica first = replica(PlaneSnapshotsTest::nothing, WORKERS);
        final PlaneReplica second = replica(PlaneSnapshotsTest::nothing, WORKERS);
        for (int i = 0; i < 2; i++) {
            publisher.publish(5, WORKERS);
            settle(first);
            settle(second);
            assertFalse(first.look(), "nothing is old");
            keepMessages(SHORT);
            take(first);
            assertEquals(stream().getLastSequence(), sequence(saved().getLast()));
            awaitAllDropped();
            assertFalse(second.look(), "it is saved already");
            assertFalse(first.look(), "nothing is new");
        }
        publisher.publish(2, WORKERS);
        assertRecovers(startAlone());
    }

    private void keepSnapshots(Duration age) throws Exception {
        final String bucket = "OBJ_" + names.bucket();
        management.updateStream(
                StreamConfiguration.builder(management.getStreamInfo(bucket).getConfiguration())
                        .maxAge(age)
                        .build());
    }

    @Test
    void whereSnapshotsAgeNoEventThatTheyHaveIsPurged() throws Exception {
        final PlaneReplica replica = replica(PlaneSnapshotsTest::nothing, WORKERS);
        for (int i = 0; i < 3; i++) {
            publishPastTheThreshold();
            settle(replica);
            take(replica);
            keepSnapshots(Duration.ofHours(2)); // as others may have made the bucket
        }
        assertEquals(1, stream().getFirstSequence());
        keepSnapshots(Duration.ZERO);
        publishPastTheThreshold();
        settle(replica);
        take(replica);
        assertTrue(stream().getFirstSequence() > 1, "the bucket keeps them now");
        assertRecovers(startAlone());
    }

    @Test
    void whatASnapshotThatWasDeletedMeanwhileHadIsNotPurged() throws Exception {
        final boolean[] deleting = {false};
        final PlaneReplica replica =
                replica(
                        step -> {
                            if (deleting[0] && step.equals("saved")) {
                                deleteOldest();
                            }
                        },
                        WORKERS);
        for (int i = 0; i < 2; i++) {
            publishPastTheThreshold();
            settle(replica);
            take(replica);
            deleting[0] = true;
        }
        assertEquals(1, stream().getFirstSequence());
        assertRecovers(startAlone());
    }

    private void deleteOldest() {
        try {
            connection.objectStore(names.bucket()).delete(saved().getFirst());
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void whatIsDroppedBeforeItIsLookedAtIsSavedAllTheSame() throws Exception {
        final PlaneReplica replica = replica(PlaneSnapshotsTest::nothing, WORKERS);
        publisher.publish(5, WORKERS);
        settle(replica);
        keepMessages(SHORT);
        awaitAllDropped();
        take(replica);
        assertRecovers(startAlone());
    }

    @Test
    void anInterruptedThreadRestoresAWorker() throws Exception {
        final PlaneReplica first = replica(PlaneSnapshotsTest::nothing, WORKERS);
        publishPastTheThreshold();
        settle(first);
        take(first);
        closeAll();
        final PlaneReplica alone = replica(PlaneSnapshotsTest::nothing);
        try {
            for (long worker : WORKERS) {
                Thread.currentThread().interrupt();
                alone.add(worker);
                assertTrue(Thread.interrupted(), "as before");
            }
        } finally {
            var _ = Thread.interrupted();
        }
        assertEquals(0, alone.snapshots.status().restoreFailures());
        assertEquals(WORKERS.length, alone.snapshots.status().restoredWorkers());
        assertRecovers(alone);
    }

    /** Takes the next snapshot; when its look began. */
    private static long takeNext(PlaneReplica replica) throws Exception {
        final long[] beganNs = new long[1];
        Eventually.until(
                "a snapshot",
                () -> {
                    beganNs[0] = System.nanoTime();
                    return replica.look();
                });
        return beganNs[0];
    }

    @Test
    void whereAnUnknownWorkerHoldsItBackOneFollowsTheOtherAfterAWhile() throws Exception {
        final PlaneReplica replica = replica(PlaneSnapshotsTest::nothing, 7, 8);
        publisher.publish(5, 7, 8);
        settle(replica);
        publisher.publish(5, WORKERS); // 9 is not registered
        Eventually.until("all is known", () -> replica.held().equals(publisher.held(7, 8)));
        keepMessages(LONG);
        final long firstNs = takeNext(replica);
        assertEquals(12, sequence(saved().getLast()), "before the first message of 9");
        // as when the stream drops them: what is behind it is as old
        management.purgeStream(names.stream(), PurgeOptions.builder().sequence(16).build());
        takeNext(replica);
        assertTrue(System.nanoTime() - firstNs >= LONG.dividedBy(8).toNanos());
        assertEquals(2, replica.snapshots.status().taken());
    }

    @Test
    void aStreamThatIsMadeAnewIsSavedByItsOwnMessages() throws Exception {
        final PlaneReplica replica = replica(PlaneSnapshotsTest::nothing, WORKERS);
        publishPastTheThreshold();
        publishPastTheThreshold();
        settle(replica);
        take(replica);
        final long former = sequence(saved().getLast());
        management.deleteStream(names.stream());
        EventStreams.open(management, names, 1);
        publishPastTheThreshold();
        Eventually.until("all is known", () -> replica.held().equals(publisher.held(WORKERS)));
        take(replica);
        assertTrue(sequence(saved().getLast()) < former, saved()::toString);
        assertRecovers(startAlone());
    }

    @Test
    void withoutASnapshotARouterThatStartsDoesNotKnowWhatIsDropped() throws Exception {
        publisher.publish(5, WORKERS);
        settle(replica(PlaneSnapshotsTest::nothing, WORKERS));
        keepMessages(SHORT);
        awaitAllDropped();
        publisher.publish(2, WORKERS);
        final PlaneReplica alone = startAlone();
        Eventually.until(
                "degraded",
                () ->
                        alone.router.workers().stream()
                                .allMatch(w -> w.state() == IndexState.DEGRADED));
        assertNotEquals(publisher.held(WORKERS), alone.held());
    }

    @Test
    void aThirdRouterKnowsAllWhenTheFirstTwoAreGone() throws Exception {
        final PlaneReplica first = replica(PlaneSnapshotsTest::nothing, WORKERS);
        final PlaneReplica second = replica(PlaneSnapshotsTest::nothing, WORKERS);
        publishPastTheThreshold();
        settle(first);
        take(first);
        final long firstSaved = stream().getLastSequence();
        assertEquals(1, stream().getFirstSequence(), "purged only by the one after it");
        settle(second);
        assertFalse(second.look(), "it is saved already");
        publishPastTheThreshold();
        settle(second);
        settle(first);
        take(second);
        assertEquals(firstSaved + 1, stream().getFirstSequence());
        assertEquals(2, saved().size());
        assertEquals(firstSaved, sequence(saved().getFirst()));
        publisher.publish(5, WORKERS);
        final PlaneReplica alone = startAlone();
        assertRecovers(alone);
        assertEquals(WORKERS.length, alone.snapshots.status().restoredWorkers());
        assertTrue(alone.snapshots.status().restoredBlocks() > 0);
    }

    /** A snapshot with 9 whole, then one after 9 has spoken and was removed. */
    private PlaneReplica takeAroundARemoval() throws Exception {
        final PlaneReplica replica = replica(PlaneSnapshotsTest::nothing, WORKERS);
        publishPastTheThreshold();
        settle(replica);
        take(replica);
        publisher.publish(5, 9);
        settle(replica);
        replica.router.removeWorker(
                replica.router.workers().stream().filter(w -> w.id() == 9).findAny().orElseThrow());
        publisher.publish(THRESHOLD, 7, 8);
        settle(replica);
        take(replica);
        return replica;
    }

    @Test
    void whatAWorkerSaidBeforeItWasRemovedIsReadAgain() throws Exception {
        takeAroundARemoval();
        assertRecovers(startAlone());
    }

    @Test
    void aWorkerOfWhichNothingHasAllIsNotInASnapshot() throws Exception {
        final PlaneReplica replica = takeAroundARemoval();
        publisher.publish(THRESHOLD, 7, 8);
        settle(replica);
        take(replica); // purges what 9 has said
        final PlaneReplica alone = startAlone();
        assertEquals(2, alone.snapshots.status().restoredWorkers());
        assertEquals(Set.of(), alone.held().get(9L));
        publisher.publish(1, 9);
        Eventually.until(
                "degraded",
                () ->
                        alone.router.workers().stream()
                                .anyMatch(w -> w.state() == IndexState.DEGRADED));
    }

    @Test
    void manySnapshotsLeaveTwoAndAStreamThatGoesBackToTheOlderOne() throws Exception {
        final PlaneReplica replica = replica(PlaneSnapshotsTest::nothing, WORKERS);
        for (int i = 0; i < 5; i++) {
            publishPastTheThreshold();
            settle(replica);
            take(replica);
            assertTrue(stream().getMsgCount() <= 2L * (THRESHOLD + WORKERS.length), "" + i);
        }
        assertEquals(2, saved().size());
        assertEquals(sequence(saved().getFirst()) + 1, stream().getFirstSequence());
        assertEquals(5, replica.snapshots.status().taken());
        assertEquals(0, replica.snapshots.status().failed());
        assertRecovers(startAlone());
    }

    @Test
    void aRouterThatRestoredGoesOnTakingSnapshots() throws Exception {
        final PlaneReplica first = replica(PlaneSnapshotsTest::nothing, WORKERS);
        publishPastTheThreshold();
        settle(first);
        take(first);
        final PlaneReplica next = startAlone();
        assertRecovers(next);
        publisher.publish(
                THRESHOLD + 1, 7); // the others have said nothing since they were restored
        settle(next);
        take(next);
        assertRecovers(startAlone());
    }

    @Test
    void ofTwoAtOnceOneTakesIt() throws Exception {
        final CountDownLatch locked = new CountDownLatch(1);
        final CountDownLatch goOn = new CountDownLatch(1);
        final PlaneReplica first =
                replica(
                        step -> {
                            if (step.equals("locked")) {
                                locked.countDown();
                                await(goOn);
                            }
                        },
                        WORKERS);
        final PlaneReplica second = replica(PlaneSnapshotsTest::nothing, WORKERS);
        publishPastTheThreshold();
        settle(first);
        settle(second);
        final Thread taking = look(first, locked);
        await(locked);
        assertFalse(second.look());
        assertEquals(1, second.snapshots.status().abandoned().get("locked"));
        goOn.countDown();
        taking.join();
        assertEquals(1, first.snapshots.status().taken());
        assertEquals(1, saved().size());
        assertRecovers(startAlone());
    }

    /** Takes a snapshot on a thread of its own, up to the step at which it is stopped. */
    private static Thread look(PlaneReplica replica, CountDownLatch stopped) {
        return Thread.ofPlatform()
                .daemon()
                .start(
                        () -> {
                            try {
                                while (!replica.look() && stopped.getCount() > 0) {
                                    Thread.sleep(100); // a slow machine has lost the lock
                                }
                            } catch (InterruptedException e) {
                                Thread.currentThread().interrupt();
                            }
                        });
    }

    private static void await(CountDownLatch latch) {
        try {
            assertTrue(latch.await(2, TimeUnit.MINUTES), "it does not end");
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** Stops a replica at a step, as a process that is stopped: its lock is not renewed. */
    private PlaneReplica stopping(String at, CountDownLatch stopped, CountDownLatch goOn)
            throws IOException {
        final PlaneReplica[] self = new PlaneReplica[1];
        final AtomicBoolean once = new AtomicBoolean();
        self[0] =
                replica(
                        step -> {
                            if (step.equals(at) && once.compareAndSet(false, true)) {
                                self[0].locks.cutOff(true);
                                stopped.countDown();
                                await(goOn);
                                self[0].locks.cutOff(false);
                            }
                        },
                        WORKERS);
        return self[0];
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"locked", "written", "uploaded", "verified", "published", "saved", "purged"})
    void aHolderThatDiesLosesNothing(String at) throws Exception {
        lockTtl = SHORT;
        final PlaneReplica before = replica(PlaneSnapshotsTest::nothing, WORKERS);
        publishPastTheThreshold();
        settle(before);
        take(before); // so that there is something to be purged
        final CountDownLatch stopped = new CountDownLatch(1);
        final PlaneReplica dying = stopping(at, stopped, end); // it never goes on
        publishPastTheThreshold();
        settle(before);
        settle(dying);
        look(dying, stopped);
        await(stopped);
        stopped(dying);
        publisher.publish(3, WORKERS);
        final PlaneReplica third =
                replica(PlaneSnapshotsTest::nothing, WORKERS); // with the lock still held
        assertRecovers(third);
        replicas.remove(third);
        third.close();
        publishPastTheThreshold();
        settle(before);
        take(before);
        assertRecovers(startAlone());
    }

    @ParameterizedTest
    @ValueSource(strings = {"locked", "written", "uploaded", "verified", "published", "saved"})
    void aLateHolderPurgesNothing(String at) throws Exception {
        lockTtl = SHORT;
        final PlaneReplica other = replica(PlaneSnapshotsTest::nothing, WORKERS);
        publishPastTheThreshold();
        settle(other);
        take(other);
        final CountDownLatch stopped = new CountDownLatch(1);
        final CountDownLatch goOn = new CountDownLatch(1);
        final PlaneReplica late = stopping(at, stopped, goOn);
        publishPastTheThreshold();
        settle(other);
        settle(late);
        final Thread taking = look(late, stopped);
        await(stopped);
        publishPastTheThreshold();
        settle(other);
        take(other);
        final long first = stream().getFirstSequence();
        final List<String> saved = saved();
        goOn.countDown();
        taking.join();
        assertEquals(first, stream().getFirstSequence());
        assertEquals(saved, saved());
        assertTrue(
                at.equals("locked") // it finds that all is saved
                        || late.snapshots.status().abandoned().get("lock-lost")
                                        + late.snapshots.status().failed()
                                > 0);
        assertRecovers(startAlone());
    }

    @Test
    void anUploadThatIsCutShortChangesNothing() throws Exception {
        final AtomicBoolean cut = new AtomicBoolean();
        final PlaneReplica replica =
                replica(
                        step -> {
                            if (step.equals("uploaded") && cut.get()) {
                                loseTheLast("OBJ_" + names.bucket());
                            }
                        },
                        WORKERS);
        publishPastTheThreshold();
        settle(replica);
        take(replica);
        final List<String> saved = saved();
        publishPastTheThreshold();
        settle(replica);
        cut.set(true);
        assertFalse(replica.look());
        assertEquals(1, replica.snapshots.status().failed());
        assertEquals(saved, saved());
        assertEquals(1, stream().getFirstSequence());
        assertRecovers(startAlone());
    }

    private void loseTheLast(String stream) {
        try {
            management.deleteMessage(
                    stream, management.getStreamInfo(stream).getStreamState().getLastSequence());
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void whereTheNewestIsDamagedTheOneBeforeCounts() throws Exception {
        final PlaneReplica replica = replica(PlaneSnapshotsTest::nothing, WORKERS);
        for (int i = 0; i < 3; i++) {
            publishPastTheThreshold();
            settle(replica);
            take(replica);
        }
        publisher.publish(3, WORKERS);
        final ObjectInfo newest =
                connection.objectStore(names.bucket()).getList().stream()
                        .max(Comparator.comparing(ObjectInfo::getObjectName))
                        .orElseThrow();
        management.deleteMessage(
                "OBJ_" + names.bucket(),
                management
                        .getFirstMessage(
                                "OBJ_" + names.bucket(),
                                "$O." + names.bucket() + ".C." + newest.getNuid())
                        .getSeq());
        final PlaneReplica alone = startAlone();
        assertRecovers(alone);
        assertEquals(WORKERS.length, alone.snapshots.status().restoredWorkers());
        publishPastTheThreshold();
        settle(alone);
        take(alone);
        assertRecovers(startAlone());
    }

    /** Is there from two snapshots on: the stream has no longer all that they have. */
    private void saveAndPurge() throws Exception {
        final PlaneReplica replica = replica(PlaneSnapshotsTest::nothing, WORKERS);
        for (int i = 0; i < 2; i++) {
            publishPastTheThreshold();
            settle(replica);
            take(replica);
        }
        assertTrue(stream().getFirstSequence() > 1);
        closeAll();
    }

    private static void takesNone(PlaneReplica replica) throws InterruptedException {
        assertFalse(replica.look());
        assertEquals(1, replica.snapshots.status().abandoned().get("unrestored"));
        assertEquals(0, replica.snapshots.status().restoredWorkers());
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whatCannotBeReadAtTheStartIsRestoredLater(boolean readAtFirst) throws Exception {
        saveAndPurge();
        try (TcpProxy way = new TcpProxy(URI.create(NATS.url()).getPort())) {
            final NatsAccess saved =
                    new NatsAccess("nats://127.0.0.1:" + way.port(), null, null, UNREAD);
            if (!readAtFirst) {
                way.cut();
            }
            final PlaneReplica late =
                    new PlaneReplica(
                            NATS.url(),
                            saved,
                            names,
                            locks(lockTtl),
                            PlaneReplica.past(THRESHOLD),
                            PlaneSnapshotsTest::nothing,
                            PlaneReplica.RETRY);
            replicas.add(late);
            way.cut();
            for (long worker : WORKERS) {
                late.add(worker);
            }
            takesNone(late);
            publishPastTheThreshold(); // while it knows a part
            way.heal();
            take(late);
            awaitRecovered(late);
            assertEquals(WORKERS.length, late.snapshots.status().restoredWorkers());
        }
        assertRecovers(startAlone());
    }

    @Test
    void aWorkerThatBeganAnewIsNotRestoredLater() throws Exception {
        saveAndPurge();
        try (TcpProxy way = new TcpProxy(URI.create(NATS.url()).getPort())) {
            way.cut();
            final PlaneReplica late =
                    new PlaneReplica(
                            NATS.url(),
                            new NatsAccess("nats://127.0.0.1:" + way.port(), null, null, UNREAD),
                            names,
                            locks(lockTtl),
                            PlaneReplica.past(THRESHOLD),
                            PlaneSnapshotsTest::nothing,
                            PlaneReplica.RETRY,
                            WORKERS);
            replicas.add(late);
            takesNone(late);
            publisher.clear(WORKERS[0]);
            publishPastTheThreshold();
            Eventually.until(
                    "it is exact",
                    () -> late.router.workers().getFirst().state() == IndexState.EXACT);
            way.heal();
            take(late);
            awaitRecovered(late);
            assertEquals(WORKERS.length - 1, late.snapshots.status().restoredWorkers());
        }
    }

    /** The check of these checks: in this order, which is that of others, a death loses state. */
    @Test
    void aPurgeBeforeTheUploadWouldLoseWhatWasPurged() throws Exception {
        final CountDownLatch stopped = new CountDownLatch(1);
        final PlaneReplica dying =
                replica(
                        step -> {
                            if (step.equals("locked")) {
                                purge();
                                stopped.countDown();
                                await(end);
                            }
                        },
                        WORKERS);
        publishPastTheThreshold();
        settle(dying);
        look(dying, stopped);
        await(stopped);
        stopped(dying);
        publisher.publish(3, WORKERS);
        final PlaneReplica alone = startAlone();
        Eventually.until(
                "all that is left is read",
                () -> alone.router.status().planeOrNull().messages() >= 3L * WORKERS.length);
        Eventually.until("and applied", () -> vouched(alone) == stream().getLastSequence());
        assertNotEquals(publisher.held(WORKERS), alone.held());
    }

    private void purge() {
        try {
            management.purgeStream(names.stream());
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void whatAWorkerSaysThatARouterDoesNotKnowStaysInTheStream() throws Exception {
        final PlaneReplica all = replica(PlaneSnapshotsTest::nothing, WORKERS);
        publishPastTheThreshold();
        settle(all);
        take(all);
        final long saved = stream().getLastSequence();
        closeAll();
        final PlaneReplica two =
                replica(PlaneSnapshotsTest::nothing, 7, 8); // 9 is not discovered yet
        publisher.publish(THRESHOLD, 7, 8);
        publisher.publish(1, 9);
        final long unknown = stream().getLastSequence();
        publisher.publish(THRESHOLD, 7, 8);
        settle(two);
        Eventually.until("what was before it is saved", () -> vouched(two) == unknown - 1);
        take(two);
        assertEquals(saved + 1, stream().getFirstSequence());
        assertRecovers(startAlone());
    }

    @Test
    void aWorkerThatIsRegisteredLateIsRestoredAndReadsWhatWasLeftOut() throws Exception {
        final PlaneReplica all = replica(PlaneSnapshotsTest::nothing, WORKERS);
        publishPastTheThreshold();
        settle(all);
        take(all);
        closeAll();
        final PlaneReplica late = replica(PlaneSnapshotsTest::nothing, 7, 8);
        publisher.publish(5, WORKERS);
        settle(late);
        late.add(9);
        assertRecovers(late);
    }

    @Test
    void aRouterThatIsBehindIsNotOvertakenByThePurge() throws Exception {
        final PlaneReplica ahead = replica(PlaneSnapshotsTest::nothing, WORKERS);
        publishPastTheThreshold();
        settle(ahead);
        take(ahead);
        final long waiting = stream().getLastSequence() - THRESHOLD;
        management.addOrUpdateConsumer(
                names.stream(),
                ConsumerConfiguration.builder()
                        .durable("slow")
                        .deliverPolicy(DeliverPolicy.ByStartSequence)
                        .startSequence(waiting)
                        .build());
        publishPastTheThreshold();
        settle(ahead);
        take(ahead);
        assertEquals(waiting, stream().getFirstSequence());
    }

    @Test
    void aRouterOfAnotherBlockSizeSavesNothingOverWhatIsThere() throws Exception {
        final PlaneReplica first = replica(PlaneSnapshotsTest::nothing, WORKERS);
        publishPastTheThreshold();
        settle(first);
        take(first);
        final List<String> saved = saved();
        final PlaneReplica other =
                replica(
                        new PlaneSnapshotConfig(THRESHOLD, 2 * PlaneReplica.BLOCK_SIZE, 1, false),
                        PlaneSnapshotsTest::nothing,
                        WORKERS);
        publishPastTheThreshold();
        Eventually.until(
                "events", () -> other.router.status().planeOrNull().messages() > THRESHOLD);
        assertFalse(other.look());
        assertEquals(1, other.snapshots.status().abandoned().get("unrestored"));
        assertEquals(saved, saved());
    }

    @Test
    void aResetDeletesTheSnapshotsAndTheMessages() throws Exception {
        final PlaneReplica first = replica(PlaneSnapshotsTest::nothing, WORKERS);
        publishPastTheThreshold();
        settle(first);
        take(first);
        closeAll();
        final PlaneReplica reset =
                replica(
                        new PlaneSnapshotConfig(THRESHOLD, PlaneReplica.BLOCK_SIZE, 1, true),
                        PlaneSnapshotsTest::nothing,
                        WORKERS);
        assertEquals(List.of(), saved());
        assertEquals(0, stream().getMsgCount());
        assertEquals(0, reset.snapshots.status().restoredWorkers());
        publisher.publish(1, WORKERS);
        Eventually.until("it goes on", () -> vouched(reset) == stream().getLastSequence());
    }

    @Test
    void whatAnotherRouterHasSavedIsTakenWhereNothingElseIsThere() throws Exception {
        final ByteBuffer legacy = ByteBuffer.allocate(73).order(ByteOrder.LITTLE_ENDIAN);
        legacy.putLong(1).putLong(7).putLong(0).putInt(0).put((byte) 0).putLong(2);
        legacy.putLong(1_001).putLong(11).putLong(1_002).putLong(12).putInt(0);
        connection
                .objectStoreManagement()
                .create(ObjectStoreConfiguration.builder(names.bucket()).build());
        connection.objectStore(names.bucket()).put("radix-state", legacy.array());
        final PlaneReplica replica = replica(PlaneSnapshotsTest::nothing, 7);
        Eventually.until("its blocks", () -> replica.held().get(7L).equals(Set.of(1_001L, 1_002L)));
        assertEquals(2, replica.snapshots.status().restoredBlocks());
        final KvBatch child = new KvBatch();
        child.reset(0, 0, CopyRule.LAST_COPY, false, ApplyListener.NONE);
        child.addStored(false, 1_002, new long[] {1_003}, new long[] {13}, 1);
        connection
                .jetStream()
                .publish(
                        names.streamSubject(),
                        RouterEventWriter.json(7, 0, 90, child, child.first()));
        Eventually.until(
                "what goes on from them",
                () -> replica.held().get(7L).equals(Set.of(1_001L, 1_002L, 1_003L)));
        Eventually.until( // it is stale until all that the stream has is read
                "degraded, as nothing says up to which event it was",
                () -> replica.router.workers().getFirst().state() == IndexState.DEGRADED);
    }
}

package io.kvasir.nats.state;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.NatsStore;
import io.kvasir.nats.Patient;
import io.kvasir.registry.FaultyStore;
import io.kvasir.registry.LeaseLock;
import io.kvasir.router.spi.StateStore;
import io.kvasir.router.spi.StateStoreContract;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.RunningNats;
import io.nats.client.Connection;
import io.nats.client.JetStreamManagement;
import io.nats.client.ObjectStore;
import io.nats.client.api.StreamInfoOptions;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;

@Tag("integration") // starts a server
class NatsStateStoreTest extends StateStoreContract {
    private static final AtomicInteger TESTS = new AtomicInteger();
    private static final Duration TIMEOUT = Duration.ofSeconds(20);
    private static final Duration TTL = Duration.ofMinutes(1); // no test loses its lock by itself
    private static final Duration SHORT_TTL = Duration.ofSeconds(6);

    @RegisterExtension static final RunningNats NATS = new RunningNats();

    private final String bucket = "state-" + TESTS.incrementAndGet();
    private final List<NatsStateStore> stores = new ArrayList<>();
    private Duration lockTtl = TTL;
    private FaultyStore lastLocks;
    private Connection connection;
    private JetStreamManagement management;

    @BeforeEach
    void connect() throws Exception {
        connection = Patient.connect(NATS.url());
        management = connection.jetStreamManagement();
    }

    @AfterEach
    void disconnect() throws InterruptedException {
        stores.forEach(StateStore::close);
        connection.close();
    }

    private static void nothing(NatsStateStore.Step step) {}

    private NatsStateStore open(Consumer<NatsStateStore.Step> steps) {
        return open(steps, TIMEOUT);
    }

    private NatsStateStore open(Consumer<NatsStateStore.Step> steps, Duration timeout) {
        final NatsAccess access = new NatsAccess(NATS.url(), null, null, timeout);
        lastLocks = new FaultyStore(new NatsStore(access, "locks-" + bucket, lockTtl));
        final NatsStateStore store =
                new NatsStateStore(access, bucket, new LeaseLock(lastLocks, "lock"), steps);
        stores.add(store);
        return store;
    }

    @Override
    protected StateStore openAgain() {
        return open(NatsStateStoreTest::nothing);
    }

    private static byte[] content(int length) {
        final byte[] content = new byte[length];
        new Random(length).nextBytes(content);
        return content;
    }

    private static byte[] read(StateStore store, String name) throws IOException {
        try (InputStream in = store.get(name, 0)) {
            return in == null ? null : in.readAllBytes();
        }
    }

    /** Messages in the bucket's stream that are chunks. */
    private long chunks() throws Exception {
        return management
                .getStreamInfo(
                        "OBJ_" + bucket, StreamInfoOptions.filterSubjects("$O." + bucket + ".C.>"))
                .getStreamState()
                .getSubjectMap()
                .values()
                .stream()
                .mapToLong(Long::longValue)
                .sum();
    }

    @Test
    void otherClientsOfObjectStoresReadWhatIsPutAndAreRead() throws Exception {
        final NatsStateStore store = open(NatsStateStoreTest::nothing);
        assertTrue(store.lock());
        final byte[] own = content(300_000);
        store.put("own", out -> out.write(own));
        final ObjectStore standard = connection.objectStore(bucket);
        final ByteArrayOutputStream read = new ByteArrayOutputStream();
        standard.get("own", read); // compares the checksum too
        assertArrayEquals(own, read.toByteArray());
        final byte[] others = content(400_001);
        standard.put("radix-state", new ByteArrayInputStream(others));
        standard.put("A name that is none here", new ByteArrayInputStream(new byte[1]));
        assertEquals(List.of("own", "radix-state"), store.list());
        assertArrayEquals(others, read(store, "radix-state"));
        try (InputStream in = store.get("radix-state", 262_145)) {
            assertArrayEquals(Arrays.copyOfRange(others, 262_145, 400_001), in.readAllBytes());
        }
        store.delete("radix-state");
        assertTrue(standard.getList().stream().noneMatch(o -> o.getObjectName().startsWith("r")));
        standard.delete("own");
        assertNull(store.get("own", 0));
        assertEquals(List.of(), store.list());
    }

    @Test
    void anObjectIsAsOldAsItIsByTheClockOfTheServer() throws Exception {
        final NatsStateStore store = open(NatsStateStoreTest::nothing);
        assertNull(store.age("a"));
        assertTrue(store.lock());
        store.put("a", out -> out.write(content(10)));
        final Duration first = store.age("a");
        assertFalse(first.isNegative(), first::toString);
        Eventually.until("it grows older", () -> store.age("a").compareTo(first) > 0);
        connection.objectStore(bucket).delete("a"); // leaves a message that says so
        assertNull(store.age("a"));
    }

    @Test
    void anUploadOfWhichAChunkIsLostIsNoObject() throws Exception {
        final boolean[] losing = {false};
        final NatsStateStore store =
                open(
                        step -> {
                            if (step == NatsStateStore.Step.UPLOADED && losing[0]) {
                                loseAChunk();
                            }
                        });
        assertTrue(store.lock());
        store.put("a", out -> out.write(content(10)));
        losing[0] = true;
        assertThrows(IOException.class, () -> store.put("a", out -> out.write(content(500_000))));
        assertThrows(IOException.class, () -> store.put("b", out -> out.write(content(500_000))));
        assertArrayEquals(content(10), read(store, "a"));
        assertEquals(List.of("a"), store.list());
        assertEquals(1, chunks(), "those of no object are deleted");
    }

    private void loseAChunk() {
        try {
            final long last =
                    management.getStreamInfo("OBJ_" + bucket).getStreamState().getLastSequence();
            management.deleteMessage("OBJ_" + bucket, last);
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void anObjectThatLosesAChunkLaterCannotBeReadToItsEnd() throws Exception {
        final NatsStateStore store = open(NatsStateStoreTest::nothing);
        assertTrue(store.lock());
        store.put("a", out -> out.write(content(500_000)));
        final long meta =
                management.getStreamInfo("OBJ_" + bucket).getStreamState().getLastSequence();
        management.deleteMessage("OBJ_" + bucket, meta - 1);
        assertThrows(IOException.class, () -> read(store, "a"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"WRITTEN", "UPLOADED", "VERIFIED"})
    void aHolderThatWasStoppedAndGoesOnPutsNothing(String stoppedAt) throws Exception {
        lockTtl = SHORT_TTL;
        final FaultyStore[] locks = new FaultyStore[1];
        final NatsStateStore next = open(NatsStateStoreTest::nothing);
        final NatsStateStore late =
                open(
                        step -> {
                            if (step.name().equals(stoppedAt)) {
                                stopUntilAnotherHasTheLock(locks[0], next);
                            }
                        });
        locks[0] = lastLocks;
        assertTrue(late.lock());
        assertFalse(next.lock());
        // what the next holder deletes as unfinished is missing when the late one reads it back
        final Exception refused =
                assertThrows(
                        Exception.class, () -> late.put("a", out -> out.write(content(200_000))));
        assertEquals(stoppedAt.equals("VERIFIED"), refused instanceof IllegalStateException);
        assertFalse(late.isLocked() && late.lock());
        assertEquals(List.of(), next.list());
        assertEquals(0, chunks());
        next.put("a", out -> out.write(content(20)));
        assertArrayEquals(content(20), read(late, "a"));
    }

    private static void stopUntilAnotherHasTheLock(FaultyStore locks, NatsStateStore other) {
        locks.cutOff(true);
        try {
            Eventually.until("the lock ends", other::lock);
        } catch (Exception e) {
            throw new AssertionError(e);
        }
        locks.cutOff(false);
    }

    @Test
    void whatAHolderLeavesUnfinishedTheNextOneDeletes() throws Exception {
        final NatsStateStore dying =
                open(
                        step -> {
                            if (step == NatsStateStore.Step.UPLOADED) {
                                throw new IllegalStateException("dies here");
                            }
                        });
        assertTrue(dying.lock());
        // as a process that is killed: what it would tidy up stays
        connection.publish("$O." + bucket + ".C.kvasir-left", "x".getBytes(StandardCharsets.UTF_8));
        connection.publish("$O." + bucket + ".C.of-others", "x".getBytes(StandardCharsets.UTF_8));
        connection.flush(TIMEOUT);
        assertThrows(
                IllegalStateException.class, () -> dying.put("a", out -> out.write(content(10))));
        assertEquals(2, chunks());
        dying.unlock();
        final NatsStateStore next = open(NatsStateStoreTest::nothing);
        assertTrue(next.lock());
        assertEquals(1, chunks(), "another client may be writing this one");
    }

    @Test
    void aServerThatIsAwayIsSaidAndComesBack() throws Exception {
        final NatsStateStore store = open(NatsStateStoreTest::nothing, Duration.ofSeconds(5));
        Eventually.until("the lock", () -> isPut(store, "a"));
        NATS.server().stop();
        assertThrows(IOException.class, () -> store.put("b", out -> out.write(content(10))));
        assertThrows(IOException.class, () -> store.get("a", 0));
        assertThrows(IOException.class, store::list);
        NATS.server().start();
        Eventually.until("the server is back", () -> isPut(store, "b"));
        assertEquals(List.of("a", "b"), store.list());
        assertArrayEquals(content(10), read(store, "a"));
    }

    /** Puts an object, unless the server does not answer in time. */
    private static boolean isPut(NatsStateStore store, String name) {
        try {
            if (!store.lock()) {
                return false;
            }
            store.put(name, out -> out.write(content(10)));
            return true;
        } catch (IOException e) {
            return false;
        }
    }
}

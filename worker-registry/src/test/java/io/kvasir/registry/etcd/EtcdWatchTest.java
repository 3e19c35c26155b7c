package io.kvasir.registry.etcd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.Stored;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CopyOnWriteArrayList;

/** What a watch makes of answers that etcd should not give. */
@Execution(ExecutionMode.CONCURRENT) // each waits for a watch to be begun anew
class EtcdWatchTest {
    private final Set<String> keys = new ConcurrentSkipListSet<>();
    private final List<String> losses = new CopyOnWriteArrayList<>();
    private ScriptedEtcd etcd;
    private EtcdStore store;

    @BeforeEach
    void watchOne() throws Exception {
        etcd = new ScriptedEtcd();
        etcd.put("/p/ns/a", "1");
        store =
                new EtcdStore(
                        EtcdOptions.of(
                                List.of(etcd.uri()),
                                Duration.ofSeconds(3600),
                                Duration.ofSeconds(20)),
                        "/p/");
        store.watch("ns/", new Seen());
        Eventually.holds("watched", () -> etcd.isWatched() && keys.equals(Set.of("ns/a")));
    }

    @AfterEach
    void close() {
        store.close();
        etcd.close();
    }

    private final class Seen implements LeasedStore.Watcher {
        @Override
        public void view(List<Stored> all) {
            keys.clear();
            all.forEach(stored -> keys.add(stored.key()));
        }

        @Override
        public void put(Stored stored) {
            if (stored.key().equals("ns/unfit")) {
                throw new IllegalStateException("unfit");
            }
            if (stored.key().equals("ns/heavy")) {
                throw new OutOfMemoryError("Java heap space");
            }
            keys.add(stored.key());
        }

        @Override
        public void deleted(String key) {
            keys.remove(key);
        }

        @Override
        public void lost(String cause) {
            losses.add(cause);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "\n", "{}", "null", "{\"kvs\":[]}"})
    void anAnswerWithoutARevisionIsALossAndTheLastViewHolds(String body) throws Exception {
        etcd.answerReads(body);
        final int reads = etcd.reads();
        etcd.cancelWatch();
        Eventually.holds("said, or believed", () -> !losses.isEmpty() || keys.isEmpty());
        assertEquals(Set.of("ns/a"), keys);
        Eventually.holds("read often", () -> etcd.reads() > reads + 2);
        assertEquals(Set.of("ns/a"), keys);
        assertTrue(losses.getLast().contains("no revision"), losses::toString);
        etcd.put("/p/ns/b", "1");
        etcd.answerReads(null);
        Eventually.holds("read anew", () -> keys.equals(Set.of("ns/a", "ns/b")));
    }

    @ParameterizedTest
    @CsvSource({"%%%, eA==", "L3AvbnMvYg==, %%%", "eA==, eA==", "L3AvbnMvdW5maXQ=, eA=="})
    void anEventThatCannotBeUsedIsALossAndLaterOnesAreApplied(String key, String value)
            throws Exception {
        final int reads = etcd.reads();
        etcd.tell(key, value);
        Eventually.holds("read anew", () -> etcd.reads() > reads);
        assertEquals(1, losses.size(), losses::toString);
        etcd.put("/p/ns/c", "1");
        Eventually.holds("applied", () -> keys.equals(Set.of("ns/a", "ns/c")));
    }

    @Test
    void anErrorIsALossAndLaterChangesAreApplied() throws Exception {
        etcd.tell("L3AvbnMvaGVhdnk=", "eA=="); // /p/ns/heavy
        Eventually.holds("said", () -> !losses.isEmpty());
        assertTrue(losses.getFirst().contains("Java heap space"), losses::toString);
        etcd.put("/p/ns/c", "1");
        Eventually.holds("applied", () -> keys.equals(Set.of("ns/a", "ns/c")));
    }
}

package io.kvasir.registry.etcd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.registry.SeenKeys;
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

/** What a watch makes of answers that etcd should not give. */
@Execution(ExecutionMode.CONCURRENT) // each waits for a watch to be begun anew
class EtcdWatchTest {
    private final Seen seen = new Seen();
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
        store.watch("ns/", seen);
        Eventually.holds("watched", () -> etcd.isWatched() && seen.keys.equals(Set.of("ns/a")));
    }

    @AfterEach
    void close() {
        store.close();
        etcd.close();
    }

    /** Fails at two of the keys. */
    private static final class Seen extends SeenKeys {
        @Override
        public void put(Stored stored) {
            if (stored.key().equals("ns/unfit")) {
                throw new IllegalStateException("unfit");
            }
            if (stored.key().equals("ns/heavy")) {
                throw new OutOfMemoryError("Java heap space");
            }
            super.put(stored);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "\n", "{}", "null", "{\"kvs\":[]}"})
    void anAnswerWithoutARevisionIsALossAndTheLastViewHolds(String body) throws Exception {
        etcd.answerReads(body);
        final int reads = etcd.reads();
        etcd.cancelWatch();
        Eventually.holds("said, or believed", () -> !seen.losses.isEmpty() || seen.keys.isEmpty());
        assertEquals(Set.of("ns/a"), seen.keys);
        Eventually.holds("read often", () -> etcd.reads() > reads + 2);
        assertEquals(Set.of("ns/a"), seen.keys);
        assertTrue(seen.losses.getLast().contains("no revision"), seen.losses::toString);
        etcd.put("/p/ns/b", "1");
        etcd.answerReads(null);
        Eventually.holds("read anew", () -> seen.keys.equals(Set.of("ns/a", "ns/b")));
    }

    @ParameterizedTest
    @CsvSource({"%%%, eA==", "L3AvbnMvYg==, %%%", "eA==, eA==", "L3AvbnMvdW5maXQ=, eA=="})
    void anEventThatCannotBeUsedIsALossAndLaterOnesAreApplied(String key, String value)
            throws Exception {
        final int reads = etcd.reads();
        etcd.tell(key, value);
        Eventually.holds("read anew", () -> etcd.reads() > reads);
        assertEquals(1, seen.losses.size(), seen.losses::toString);
        etcd.put("/p/ns/c", "1");
        Eventually.holds("applied", () -> seen.keys.equals(Set.of("ns/a", "ns/c")));
    }

    @Test
    void anErrorIsALossAndLaterChangesAreApplied() throws Exception {
        etcd.tell("L3AvbnMvaGVhdnk=", "eA=="); // /p/ns/heavy
        Eventually.holds("said", () -> !seen.losses.isEmpty());
        assertTrue(seen.losses.getFirst().contains("Java heap space"), seen.losses::toString);
        etcd.put("/p/ns/c", "1");
        Eventually.holds("applied", () -> seen.keys.equals(Set.of("ns/a", "ns/c")));
    }
}

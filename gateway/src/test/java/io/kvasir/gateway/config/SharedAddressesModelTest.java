package io.kvasir.gateway.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/** Which workers are named because they follow the same events, against all pairs compared. */
class SharedAddressesModelTest {
    private static final List<String> TOPICS =
            List.of("", "k", "kv", "kv@", "kv@a", "kv@a@m", "kv@b", "kvz", "l", "kv\u00e9");

    private static WorkerConfig worker(int number, int address, String topic) {
        return WorkerConfig.parse(
                "http://h:"
                        + (1 + number)
                        + ",name=w"
                        + number
                        + ",events=tcp://e:"
                        + (1 + address)
                        + (topic.isEmpty() ? "" : ",topic=" + topic));
    }

    private static boolean follow(WorkerConfig one, WorkerConfig other) {
        return one.events(0).equals(other.events(0))
                && (one.topic().startsWith(other.topic()) || other.topic().startsWith(one.topic()));
    }

    @Test
    void eachThatFollowsWhatAnotherDoesIsNamedWithOneOfThose() {
        final long seed = Seeds.next("SharedAddressesModelTest");
        final SplittableRandom random = new SplittableRandom(seed);
        for (int trial = 0; trial < Trials.of(250, 5_000); trial++) {
            final List<WorkerConfig> workers = new ArrayList<>();
            for (int i = random.nextInt(1, 9); i > 0; i--) {
                final String topic = TOPICS.get(random.nextInt(TOPICS.size()));
                workers.add(worker(workers.size(), random.nextInt(2), topic));
            }
            final List<String> warnings = new ArrayList<>(SharedAddresses.warnings(workers));
            for (int i = 0; i < workers.size(); i++) {
                final WorkerConfig worker = workers.get(i);
                final List<String> allowed =
                        workers.subList(0, i).stream()
                                .filter(other -> follow(worker, other))
                                .map(
                                        other ->
                                                "the workers "
                                                        + other.name()
                                                        + " and "
                                                        + worker.name()
                                                        + " follow the same events, of "
                                                        + worker.events(0)
                                                        + ": the blocks of one engine count for"
                                                        + " each of them")
                                .toList();
                if (!allowed.isEmpty()) {
                    assertTrue(
                            allowed.contains(warnings.removeFirst()),
                            "seed " + seed + ", trial " + trial + ": " + workers);
                }
            }
            assertEquals(List.of(), warnings, "seed " + seed + ", trial " + trial);
        }
    }

    @Test
    void manyTopicsOfOneAddressAreNoWarning() {
        final List<WorkerConfig> workers =
                IntStream.range(0, 10_000)
                        .mapToObj(i -> worker(i, 0, "kv@%05d@m".formatted(i)))
                        .toList();
        assertEquals(List.of(), SharedAddresses.warnings(workers));
    }
}

package io.kvasir.gateway.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.WorkerConfig;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.ArrayList;
import java.util.List;

class EjectionLimitTest {
    private final List<Upstream> all = new ArrayList<>();
    private final UsableServers usable = new UsableServers(new EjectionLimit(() -> 50));

    private void register(int count) {
        for (int i = 0; i < count; i++) {
            register(true);
        }
    }

    private void register(boolean admitted) {
        final int number = all.size();
        all.add(
                new Upstream(
                        WorkerConfig.parse("http://127.0.0.1:1,name=w" + number),
                        "test",
                        number,
                        null,
                        admitted,
                        () -> new BreakerRules(1, 1, 1_000_000_000, 0, 1, 1, 1),
                        usable::changed));
        usable.added(all.getLast());
    }

    private long inUse() {
        return all.stream().filter(Upstream::inUse).count();
    }

    @ParameterizedTest
    @CsvSource({"1, 1, 1", "2, 1, 1", "2, 2, 2", "3, 1, 2", "3, 2, 3", "10, 5, 5", "10, 6, 10"})
    void whereFewerThanTheQuorumAreLeftAllAreUsed(int living, int ejected, int used) {
        register(living);
        for (int i = 0; i < ejected; i++) {
            all.get(i).faulted(i, "status 500");
        }
        assertEquals(used, inUse());
    }

    @Test
    void aDrainedWorkerIsNoneOfThoseThatAreLeft() {
        register(2);
        all.get(0).faulted(1, "status 500");
        assertEquals(1, inUse());
        all.get(1).drain(true);
        assertEquals(1, inUse(), "the ejected one, as there is no other");
        all.get(1).drain(false);
        assertEquals(1, inUse());
    }

    @Test
    void aWorkerThatHasNeverAnsweredIsNoneOfThoseThatAreLeft() {
        register(1);
        all.get(0).faulted(1, "status 500");
        register(false);
        assertEquals(1, inUse(), "the ejected one, as there is no other");
        all.get(1).probed();
        assertEquals(1, inUse(), "the one that answers");
        assertTrue(all.get(1).inUse());
    }
}

package io.kvasir.gateway.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.testsupport.Allocations;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/** What is counted as servers change, against all servers counted at once. */
class UsableServersTest {
    private static final int PERCENT = 50;

    private final UsableServers usable = new UsableServers(new EjectionLimit(() -> PERCENT));
    private final List<Upstream> all = new ArrayList<>();
    private int made;

    private Upstream server(String keys) {
        return new Upstream(
                WorkerConfig.parse("http://127.0.0.1:1,name=w" + made + "," + keys),
                "test",
                made++,
                null,
                true,
                () -> new BreakerRules(1, 1, 1_000_000_000, 0, 1, 1, 1),
                usable::changed);
    }

    private void add(String keys) {
        all.add(server(keys));
        usable.added(all.getLast());
    }

    private boolean usesEjected(WorkerPool pool) {
        int living = 0;
        int ejected = 0;
        for (Upstream upstream : all) {
            final UpstreamHealth.State state = upstream.health().state();
            if (upstream.pool() == pool
                    && !upstream.draining()
                    && state != UpstreamHealth.State.DOWN) {
                living++;
                ejected += state == UpstreamHealth.State.EJECTED ? 1 : 0;
            }
        }
        return (living - ejected) * 100L < PERCENT * (long) living;
    }

    private void check() {
        assertEquals(Capabilities.of(all, Upstream::inUse), usable.capabilities());
        for (Upstream upstream : all) {
            if (upstream.health().state() == UpstreamHealth.State.EJECTED && !upstream.draining()) {
                assertEquals(usesEjected(upstream.pool()), upstream.inUse());
            }
            if (upstream.health().state() == UpstreamHealth.State.DOWN) {
                assertFalse(upstream.inUse());
            }
        }
    }

    @Test
    void whatIsCountedIsWhatIsThere() {
        final SplittableRandom random = new SplittableRandom(Seeds.next("UsableServersTest"));
        final List<String> roles =
                List.of(
                        "role=both",
                        "role=prefill",
                        "role=decode",
                        "role=decode,handoff=trtllm",
                        "role=prefill,handoff=trtllm");
        for (int step = 0; step < 20_000; step++) {
            final int what = random.nextInt(all.size() > 12 ? 9 : 8);
            if (what == 0 || all.isEmpty()) {
                add(roles.get(random.nextInt(roles.size())));
                continue;
            }
            final Upstream upstream = all.get(random.nextInt(all.size()));
            switch (what) {
                case 1 -> upstream.faulted(step, "status 500");
                case 2 -> upstream.refused("refused");
                case 3 -> upstream.probeFailed(UpstreamFault.TIMEOUT, false, "silent");
                case 4 -> upstream.drain(random.nextBoolean());
                case 5 -> upstream.answered();
                case 8 -> {
                    all.remove(upstream);
                    usable.removed(upstream);
                    upstream.drain(random.nextBoolean()); // late: it counts no more
                }
                default -> {
                    if (upstream.probed()) {
                        upstream.answered();
                    }
                }
            }
            check();
        }
    }

    @Test
    void whatOneOfTenThousandDoesCostsAsMuchAsOne() {
        for (int i = 0; i < 10_000; i++) {
            add(i % 4 < 2 ? "role=prefill" : "role=decode");
        }
        final long bytes =
                Allocations.bytesOf(
                        () -> {
                            all.getFirst().drain(true);
                            all.getFirst().drain(false);
                        });
        assertTrue(bytes < 100_000, "bytes=" + bytes); // to count all anew takes 480,000
        assertTrue(usable.capabilities().canSplit());
    }
}

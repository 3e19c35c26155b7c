package io.kvasir.nixl.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.engine.BlockLeases.Outcome;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.util.HashMap;
import java.util.Map;
import java.util.Random;

/** Leases whose owner, told that blocks are free, grants, ends and prolongs others at once. */
class BlockLeasesModelTest {
    private static final int TRIALS = 2_000;
    private static final int STEPS = 60;
    private static final int NAMES = 5;
    private static final int CAPACITY = 3;

    @Test
    void everyLeaseEndsOnceAndNotBeforeItsTime() {
        final long seed = Seeds.next("BlockLeasesModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            new Model(new Random(seed + trial)).run();
        }
    }

    private static final class Model {
        private final Random random;
        private final BlockLeases leases = new BlockLeases(30, 20, CAPACITY, this::freed);
        private final Map<String, Held> held = new HashMap<>();
        private long nowNs;
        private long expired;
        private int depth; // of calls within calls

        /** What keeps blocks. */
        private static final class Held {
            private final int[] blocks = new int[1];
            private int consumers;
            private long untilNs;
        }

        Model(Random random) {
            this.random = random;
        }

        void run() {
            for (int step = 0; step < STEPS; step++) {
                nowNs += random.nextInt(8);
                act();
                assertEquals(held.size(), leases.held());
                assertEquals(expired, leases.expired());
            }
            depth = CAPACITY; // nothing new comes
            nowNs += 30;
            leases.expire(nowNs);
            assertEquals(Map.of(), held);
        }

        private void act() {
            final String id = "lease" + random.nextInt(NAMES);
            switch (random.nextInt(6)) {
                case 0, 1 -> grant(id);
                case 2 -> heartbeat(id);
                case 3 -> leases.expire(nowNs);
                default -> done(id);
            }
        }

        private void grant(String id) {
            if (held.containsKey(id)) {
                assertThrows(
                        IllegalArgumentException.class,
                        () -> leases.grant(id, new int[0], 1, nowNs));
                return;
            }
            final Held one = new Held();
            one.consumers = 1 + random.nextInt(2);
            one.untilNs = nowNs + 30;
            final boolean room = held.size() < CAPACITY;
            assertEquals(room, leases.grant(id, one.blocks, one.consumers, nowNs));
            if (room) {
                held.put(id, one);
            }
        }

        private void heartbeat(String id) {
            final Held one = held.get(id);
            final boolean isHeld = one != null && nowNs < one.untilNs;
            if (isHeld) {
                one.untilNs = Math.max(one.untilNs, nowNs + 20);
            }
            assertEquals(isHeld, leases.heartbeat(id, nowNs) == Outcome.HELD);
        }

        private void done(String id) {
            final Held one = held.get(id);
            if (one == null) {
                final Outcome outcome = leases.done(id, nowNs);
                assertTrue(outcome == Outcome.LATE || outcome == Outcome.UNKNOWN, id);
            } else if (nowNs >= one.untilNs) {
                assertEquals(Outcome.LATE, leases.done(id, nowNs));
            } else {
                final boolean isLast = --one.consumers == 0;
                assertEquals(isLast ? Outcome.RELEASED : Outcome.HELD, leases.done(id, nowNs));
            }
        }

        private void freed(String id, int[] blocks, boolean isExpired) {
            final Held one = held.remove(id);
            assertNotNull(one, id + " ended twice");
            assertSame(one.blocks, blocks, id);
            assertEquals(isExpired, one.consumers > 0, id);
            assertTrue(!isExpired || nowNs >= one.untilNs, id + " ended before its time");
            expired += isExpired ? 1 : 0;
            if (depth < CAPACITY) {
                depth++;
                act();
                depth--;
            }
        }
    }
}

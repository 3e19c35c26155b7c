package io.kvasir.nixl.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.engine.BlockLeases.Outcome;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;

class BlockLeasesTest {
    private static final long START = shortlyBeforeItWraps();

    private static long shortlyBeforeItWraps() {
        return Long.MAX_VALUE - 20;
    }

    private final List<String> freed = new ArrayList<>();
    private final BlockLeases leases =
            new BlockLeases(
                    30,
                    20,
                    2,
                    (id, blocks, expired) ->
                            freed.add(id + " " + blocks.length + (expired ? " expired" : "")));

    @Test
    void blocksAreFreeWhenTheLastConsumerIsDone() {
        assertTrue(leases.grant("a", new int[3], 2, START));
        assertEquals(Outcome.HELD, leases.done("a", START + 1));
        assertEquals(List.of(), freed);
        assertEquals(Outcome.RELEASED, leases.done("a", START + 2));
        assertEquals(List.of("a 3"), freed);
        assertEquals(0, leases.held());
        assertEquals(Outcome.LATE, leases.done("a", START + 3));
        assertEquals(1, leases.late());
    }

    @Test
    void nobodyComesAndTheLeaseEnds() {
        leases.grant("a", new int[1], 1, START);
        assertEquals(0, leases.expire(START + 29));
        assertEquals(1, leases.expire(START + 30));
        assertEquals(List.of("a 1 expired"), freed);
        assertEquals(Outcome.LATE, leases.heartbeat("a", START + 31));
        assertEquals(Outcome.LATE, leases.done("a", START + 59));
        assertEquals(Outcome.UNKNOWN, leases.done("a", START + 60), "forgotten");
        assertEquals(1, leases.expired());
    }

    @Test
    void heartbeatsExtendButNeverShorten() {
        leases.grant("a", new int[1], 1, START);
        leases.heartbeat("a", START + 1); // to 21, the lease itself goes to 30
        assertEquals(0, leases.expire(START + 29));
        assertEquals(Outcome.HELD, leases.heartbeat("a", START + 29));
        assertEquals(0, leases.expire(START + 48));
        assertEquals(1, leases.expire(START + 49));
    }

    @Test
    void aMessageThatComesAfterTheTimeIsLateEvenIfNobodyLookedBefore() {
        leases.grant("a", new int[1], 1, START);
        assertEquals(Outcome.LATE, leases.done("a", START + 30));
        assertEquals(List.of("a 1 expired"), freed);
    }

    @Test
    void aMessageLooksAtNoOtherLease() {
        leases.grant("a", new int[1], 1, START);
        leases.grant("b", new int[1], 1, START);
        assertEquals(Outcome.LATE, leases.done("a", START + 30));
        assertEquals(Outcome.UNKNOWN, leases.heartbeat("other", START + 30));
        assertEquals(List.of("a 1 expired"), freed);
        assertEquals(1, leases.held());
        assertEquals(Outcome.LATE, leases.heartbeat("b", START + 31));
        assertEquals(List.of("a 1 expired", "b 1 expired"), freed);
        assertEquals(2, leases.expired());
        assertEquals(Outcome.UNKNOWN, leases.heartbeat("b", START + 61), "forgotten");
    }

    @Test
    void moreThanTheCapacityIsRefusedAndNamesAreHeldOnce() {
        leases.grant("a", new int[1], 1, START);
        leases.grant("b", new int[1], 1, START);
        assertFalse(leases.grant("c", new int[1], 1, START));
        assertThrows(IllegalArgumentException.class, () -> leases.grant("a", new int[1], 1, START));
        leases.done("a", START);
        assertTrue(leases.grant("a", new int[2], 1, START), "an ended name may be used again");
        assertEquals(Outcome.UNKNOWN, leases.done("other", START));
        assertThrows(IllegalArgumentException.class, () -> leases.grant("d", new int[1], 0, START));
    }
}

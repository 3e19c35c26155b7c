package io.kvasir.core.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.Random;

/** What of an engine's load is not booked here. */
class OthersLoadTest {
    private static final int BLOCK_SIZE = 16;

    @ParameterizedTest
    @CsvSource({
        // engine: running, waiting, waiting tokens, used | booked: tokens, blocks, requests |
        // others
        "0, 0, -1, 0,      0, 0, 0,        0, 0, 0", // idle
        "4, 0, -1, 40,     0, 0, 0,        0, 40, 4", // all of others
        "4, 0, -1, 40,     0, 40, 4,       0, 0, 0", // all of ours
        "4, 0, -1, 44,     0, 40, 4,       0, 0, 0", // ours and their output
        "6, 0, -1, 60,     0, 40, 4,       0, 20, 2",
        "2, 3, -1, 20,     0, 0, 0,        480, 20, 5", // ten blocks a running request
        "2, 3, -1, 20,     480, 50, 5,     0, 0, 0", // ours wait, with their tokens booked
        "2, 3, -1, 20,     160, 30, 3,     320, 0, 2", // two of the three that wait
        "2, 3, 90, 20,     0, 0, 0,        90, 20, 5", // the engine says how many tokens
        "2, 3, 90, 20,     80, 10, 1,      10, 10, 4", // those booked are not counted again
        "0, 3, -1, 0,      0, 0, 0,        48, 0, 3", // a block each where nothing runs
        "-1, -1, 500, 70,  100, 30, 2,     400, 40, 0", // no counts
        "-1, -1, -1, 70,   0, 90, 2,       0, 0, 0",
        "0, 0, -1, 28,     0, 0, 0,        0, 28, 0", // being prefilled
        "-1, -1, -1, -1,   0, 0, 0,        0, 0, 0", // says nothing
        "4, 0, -1, 40,     -3, -2, -1,     0, 40, 4", // bookings in flight between threads
    })
    void isWhatIsBeyondTheBookings(
            long running,
            long waiting,
            long waitingTokens,
            long used,
            long bookedTokens,
            long bookedBlocks,
            long bookedRequests,
            long tokens,
            long blocks,
            long requests) {
        final EngineLoad load = new EngineLoad(running, waiting, waitingTokens, used, -1, -1);
        assertEquals(
                new OthersLoad(tokens, blocks, requests),
                OthersLoad.of(load, bookedTokens, bookedBlocks, bookedRequests, BLOCK_SIZE));
    }

    @Test
    void withTheBookingsItNeverIsMoreThanTheEngineHas() {
        final Random random = new Random(Seeds.next("withTheBookingsItNeverIsMore"));
        for (int i = 0; i < 100_000; i++) {
            final EngineLoad load =
                    new EngineLoad(
                            random.nextInt(20) - 1,
                            random.nextInt(20) - 1,
                            random.nextInt(400) - 1,
                            random.nextInt(100) - 1,
                            100,
                            -1);
            final long tokens = random.nextInt(500);
            final long blocks = random.nextInt(120);
            final long requests = random.nextInt(30);
            final OthersLoad others = OthersLoad.of(load, tokens, blocks, requests, BLOCK_SIZE);
            final long all = Math.max(0, load.running()) + Math.max(0, load.waiting());
            assertTrue(others.requests() == 0 || others.requests() + requests <= all);
            assertTrue(others.blocks() == 0 || others.blocks() + blocks <= load.usedBlocks());
            if (load.waitingTokens() >= 0) {
                assertTrue(
                        others.prefillTokens() == 0
                                || others.prefillTokens() + tokens <= load.waitingTokens());
            }
        }
    }

    @Test
    void theLargestNumbersGiveALoadThatCanBeAdded() {
        final long most = Long.MAX_VALUE / 4;
        final OthersLoad others =
                OthersLoad.of(new EngineLoad(1, most, -1, most, most, most), 0, 0, 0, BLOCK_SIZE);
        assertEquals(1L << 40, others.prefillTokens());
        assertThrows(IllegalArgumentException.class, () -> new OthersLoad(0, -1, 0));
    }
}

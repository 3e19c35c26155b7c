package io.kvasir.core.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.radix.OverlapScores;
import io.kvasir.testsupport.NaiveActiveRequests;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.Arrays;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * Random operations on the table of active requests and on the naive one; both must always say the
 * same.
 */
class ActiveRequestsModelTest {
    private static final int OPERATIONS = Trials.of(500, 8_000);

    @Tag("trials")
    @ParameterizedTest(name = "{0} slots, {1} requests, {2} blocks, {3} followed")
    @CsvSource({"3, 40, 1000, 1000", "3, 40, 50, 1000", "70, 100, 800, 6", "1, 1, 1, 1"})
    void saysWhatTheNaiveTableSays(
            int slots, int maxRequests, long maxActiveBlocks, int maxBlocksPerRequest) {
        compare(
                new ActiveRequestsConfig(slots, maxRequests, maxActiveBlocks, maxBlocksPerRequest),
                8,
                OPERATIONS);
    }

    @Tag("trials")
    @ParameterizedTest(name = "{0} slots, prompts to {1} blocks, {2} bytes")
    @CsvSource({"3, 1300, 1000000", "200, 1300, 1000000", "20, 700, 65536", "9, 60, 65536"})
    void saysWhatTheNaiveTableSaysOfLongPrompts(int slots, int maxPrompt, long budgetBytes) {
        compare(
                new ActiveRequestsConfig(slots, 60, 1 << 20, 1_200, budgetBytes),
                maxPrompt,
                OPERATIONS / 5);
    }

    private static void compare(ActiveRequestsConfig config, int maxPrompt, int operations) {
        final Random random = new Random(Seeds.next("ActiveRequestsModelTest " + config));
        try (LoadBoard board = new LoadBoard(config.maxWorkerSlots());
                ActiveRequests table = new ActiveRequests(config, board)) {
            final Story story = new Story(random, table, board, maxPrompt);
            for (int i = 0; i < operations; i++) {
                story.step();
                if (i % 5 == 0) {
                    story.compare();
                }
            }
            story.end();
        }
    }

    /** The two tables and what is done to them. */
    private static final class Story {
        private final Random random;
        private final ActiveRequests table;
        private final LoadBoard board;
        private final NaiveActiveRequests naive;
        private final int slots;
        private final long[] numbers; // the latest of each index
        private final int maxPrompt;
        private final long bytes;
        private final Set<Long> expired = new TreeSet<>();
        private long nowNs = Long.MIN_VALUE / 2;
        private final OverlapScores scores;
        private final PotentialLoads loads;

        Story(Random random, ActiveRequests table, LoadBoard board, int maxPrompt) {
            final ActiveRequestsConfig config = table.config();
            this.random = random;
            this.table = table;
            this.board = board;
            this.naive =
                    new NaiveActiveRequests(config.maxActiveBlocks(), config.maxBlocksPerRequest());
            this.slots = config.maxWorkerSlots();
            this.numbers = new long[config.maxRequests()];
            Arrays.setAll(numbers, index -> 1L << Integer.SIZE | index);
            this.maxPrompt = maxPrompt;
            this.bytes = table.bytes();
            this.scores = new OverlapScores(slots);
            this.loads = new PotentialLoads(slots + 1);
        }

        void step() {
            final int index = random.nextInt(numbers.length);
            // one of the generation before stands for no request
            final long number = numbers[index] - (random.nextInt(4) == 0 ? 1L << Integer.SIZE : 0);
            switch (random.nextInt(12)) {
                case 0, 1, 2, 3, 4 -> add(index);
                case 5, 6 ->
                        assertEquals(naive.prefillComplete(number), table.prefillComplete(number));
                case 7, 8 -> {
                    final int blocks = random.nextInt(3);
                    assertEquals(
                            naive.outputBlocks(number, blocks), table.outputBlocks(number, blocks));
                }
                case 9, 10 -> {
                    assertEquals(naive.free(number), table.free(number));
                    assertEquals(naive.free(number), table.free(number));
                }
                default -> {
                    if (random.nextInt(6) == 0) {
                        final int slot = random.nextInt(slots);
                        assertEquals(naive.workerGone(slot), table.workerGone(slot));
                    } else {
                        expire();
                    }
                }
            }
        }

        private void expire() {
            // now and then by years, once over zero: wheels of all sizes turn
            nowNs += random.nextLong(1L << random.nextInt(10, random.nextInt(9) == 0 ? 59 : 34));
            expired.clear();
            final int count = table.expire(nowNs, expired::add);
            assertEquals(naive.expire(nowNs), expired);
            assertEquals(expired.size(), count);
        }

        private void add(int index) {
            final long number = numbers[index] + (1L << Integer.SIZE);
            final int slot = random.nextInt(slots);
            final long[] prompt = prompt();
            final long prefillTokens = random.nextInt(500);
            final int provisional = random.nextInt(2) * (prompt.length + random.nextInt(3));
            final long deadlineNs =
                    random.nextBoolean()
                            ? ActiveRequests.NO_DEADLINE
                            : nowNs + random.nextLong(-1_000_000_000, 1L << random.nextInt(31, 60));
            board.addProvisional(slot, prefillTokens, provisional);
            final int expected = naive.add(number, slot, prompt, prefillTokens, deadlineNs);
            final long runs = table.runs();
            final long pathless = table.pathlessBookings();
            final int added =
                    table.book(
                            number,
                            slot,
                            prompt,
                            prompt.length,
                            0,
                            prefillTokens,
                            provisional,
                            deadlineNs);
            assertEquals(Math.min(0, expected), Math.min(0, added));
            if (added >= 0) {
                numbers[index] = number;
            }
            if (table.pathlessBookings() > pathless) {
                assertTrue(table.runs() <= runs, "a path that did not fit has split a run");
                assertTrue(
                        !naive.takePath(number)
                                || table.usedBytes() > table.config().budgetBytes() / 2,
                        "no path with memory left: " + table.usedBytes());
            }
        }

        // few local hashes: prompts share prefixes often, also with themselves further back
        private long[] prompt() {
            final long[] prompt = new long[random.nextInt(maxPrompt + 1)];
            if (maxPrompt <= 8) {
                Arrays.setAll(prompt, i -> random.nextInt(5) == 0 ? 1 : 0);
                return prompt;
            }
            final int parts = 1 + random.nextInt(3); // turns of one of a few conversations
            for (int part = 0; part < parts; part++) {
                final int from = part == 0 ? 0 : random.nextInt(prompt.length + 1);
                Arrays.fill(prompt, from, prompt.length, random.nextInt(3));
            }
            return prompt;
        }

        void compare() {
            final long[] prompt = prompt();
            final int extra = random.nextInt(3);
            final Map<Integer, Integer> expected = naive.match(prompt);
            table.potentialLoads(prompt, prompt.length, extra, scores, loads);
            final Map<Integer, Integer> found = new TreeMap<>();
            for (int i = 0; i < scores.matchedSlots(); i++) {
                found.put(scores.slotAt(i), scores.depth(scores.slotAt(i)));
            }
            assertEquals(expected, found);
            assertEquals(slots, loads.slots());
            for (int slot = 0; slot < slots; slot++) {
                assertEquals(naive.prefillTokens(slot), board.prefillTokens(slot));
                final long blocks = naive.activeBlocks(slot);
                final int shared = expected.getOrDefault(slot, 0);
                assertEquals(blocks, board.activeBlocks(slot));
                assertEquals(naive.activeRequests(slot), board.activeRequests(slot));
                assertEquals(blocks + prompt.length - shared + extra, loads.decodeBlocks(slot));
            }
            assertEquals(naive.activeRequests(), table.activeRequests());
            assertEquals(naive.followedBlocks(), table.activeBlocks());
            assertEquals(bytes, table.bytes());
        }

        void end() {
            for (int slot = 0; slot < slots; slot++) {
                assertEquals(naive.workerGone(slot), table.workerGone(slot));
                assertEquals(0, board.prefillTokens(slot));
                assertEquals(0, board.activeBlocks(slot));
                assertEquals(0, board.activeRequests(slot));
            }
            assertEquals(0, table.activeRequests());
            assertEquals(0, table.activeBlocks());
            assertEquals(0, table.runs());
            assertTrue(table.reconcile(0, slots) > 0);
            assertEquals(0, table.corrections());
        }
    }
}

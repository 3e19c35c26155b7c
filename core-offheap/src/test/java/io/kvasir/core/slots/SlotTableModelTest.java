package io.kvasir.core.slots;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.core.index.OverlapScores;
import io.kvasir.testsupport.NaiveSlotTable;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.Arrays;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;

/** Random operations on the slot table and on the naive one; both must always say the same. */
class SlotTableModelTest {
    private static final int OPERATIONS = 5_000;

    @ParameterizedTest(name = "{0} slots, {1} requests, {2} blocks, {3} followed")
    @CsvSource({"3, 40, 1000, 1000", "3, 40, 50, 1000", "70, 100, 800, 6", "1, 1, 1, 1"})
    void saysWhatTheNaiveTableSays(
            int slots, int maxRequests, long maxActiveBlocks, int maxBlocksPerRequest) {
        final Random random =
                new Random(Seeds.next("SlotTableModelTest " + slots + "/" + maxActiveBlocks));
        final SlotTableConfig config =
                new SlotTableConfig(slots, maxRequests, maxActiveBlocks, maxBlocksPerRequest);
        try (LoadBoard board = new LoadBoard(slots);
                SlotTable table = new SlotTable(config, board)) {
            final Story story = new Story(random, table, board);
            for (int i = 0; i < OPERATIONS; i++) {
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
        private final SlotTable table;
        private final LoadBoard board;
        private final NaiveSlotTable naive;
        private final int slots;
        private final int requestIds;
        private final long bytes;
        private final OverlapScores scores;
        private final PotentialLoads loads;

        Story(Random random, SlotTable table, LoadBoard board) {
            final SlotTableConfig config = table.config();
            this.random = random;
            this.table = table;
            this.board = board;
            this.naive =
                    new NaiveSlotTable(
                            config.maxRequests(),
                            config.maxActiveBlocks(),
                            config.maxBlocksPerRequest());
            this.slots = config.maxWorkerSlots();
            this.requestIds = config.maxRequests() + 20;
            this.bytes = table.bytes();
            this.scores = new OverlapScores(slots);
            this.loads = new PotentialLoads(slots + 1);
        }

        void step() {
            final long id = random.nextInt(requestIds);
            switch (random.nextInt(12)) {
                case 0, 1, 2, 3, 4 -> add(id);
                case 5, 6 -> assertEquals(naive.prefillComplete(id), table.prefillComplete(id));
                case 7, 8 -> assertEquals(naive.outputBlock(id), table.outputBlock(id));
                case 9, 10 -> {
                    assertEquals(naive.free(id), table.free(id));
                    assertEquals(naive.free(id), table.free(id));
                }
                default -> {
                    if (random.nextInt(6) == 0) {
                        final int slot = random.nextInt(slots);
                        assertEquals(naive.workerGone(slot), table.workerGone(slot));
                    }
                }
            }
        }

        private void add(long id) {
            final int slot = random.nextInt(slots);
            final long[] prompt = prompt();
            final long prefillTokens = random.nextInt(500);
            final int provisional = random.nextInt(2) * (prompt.length + random.nextInt(3));
            board.addPrefillTokens(slot, prefillTokens);
            board.addActiveBlocks(slot, provisional);
            board.addActiveRequests(slot, 1);
            assertEquals(
                    naive.add(id, slot, prompt, prefillTokens),
                    table.add(id, slot, prompt, prompt.length, prefillTokens, provisional));
        }

        // two local hashes: prompts share prefixes often, also with themselves further back
        private long[] prompt() {
            final long[] prompt = new long[random.nextInt(9)];
            Arrays.setAll(prompt, i -> random.nextInt(5) == 0 ? 1 : 0);
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
                assertEquals(naive.activeBlocks(slot), board.activeBlocks(slot));
                assertEquals(naive.activeRequests(slot), board.activeRequests(slot));
                assertEquals(naive.potentialBlocks(slot, prompt, extra), loads.decodeBlocks(slot));
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
        }
    }
}

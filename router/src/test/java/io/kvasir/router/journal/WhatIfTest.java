package io.kvasir.router.journal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.source.IndexState;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.List;

class WhatIfTest {
    private static final int BLOCK_SIZE = 16;

    private final DecisionJournal journal = DecisionJournal.inMemory(1, 3, BLOCK_SIZE);

    /** Candidates as (prefill blocks, decode blocks, overlap, requests). */
    @AfterEach
    void close() {
        journal.close();
    }

    private JournalRecord record(int tokens, long firstTokenNs, double[]... candidates) {
        final JournalRecord record = journal.newRecord();
        record.begin(1, 2, JournalRecord.shortText("kv"), 1, 0);
        record.prompt(tokens, tokens / BLOCK_SIZE, true, 0);
        for (int i = 0; i < candidates.length; i++) {
            final double[] c = candidates[i];
            record.add(
                    JournalRecord.name("w" + i),
                    0,
                    IndexState.EXACT,
                    c[0] + c[1],
                    c[0],
                    (long) c[1],
                    (int) c[2],
                    0,
                    (long) c[3],
                    0,
                    -1);
        }
        record.fleet(candidates.length, candidates.length, 0);
        final long number = journal.append(record);
        journal.firstToken(number, firstTokenNs);
        journal.read(number, record);
        return record;
    }

    private WhatIf judge(WhatIf.Policy policy) {
        final WhatIf judged = new WhatIf(policy, BLOCK_SIZE);
        // the holder is cheapest at weight 1, not at weight 0.1
        judged.add(
                record(
                        64,
                        1_000_000_000,
                        new double[] {1, 20, 3, 5},
                        new double[] {4, 19, 0, 0},
                        new double[] {4, 30, 0, 9}));
        // the same at any weight
        judged.add(
                record(
                        32,
                        3_000_000_000L,
                        new double[] {2, 1, 0, 1},
                        new double[] {2, 2, 0, 2},
                        new double[] {2, 3, 0, 3}));
        judged.add(record(32, 5)); // no worker
        return judged;
    }

    @Test
    void theRecordedChoicesAreWhatTheyWere() {
        for (WhatIf.Policy policy : List.of(WhatIf.recorded(), WhatIf.linear(1))) {
            final WhatIf judged = judge(policy);
            assertEquals(2, judged.decisions());
            assertEquals(0, judged.changed());
            assertEquals(0, judged.incomplete());
            assertEquals(48 / 96.0, judged.hitRate());
            assertEquals(1.5, judged.meanPrefillBlocks());
            assertEquals(10.5, judged.meanDecodeBlocks());
            assertEquals(3, judged.spread(), "one of three got all");
            assertEquals(2, judged.meanFirstTokenSeconds());
        }
    }

    @Test
    void anotherWeightAndFewestRequestsChooseOthers() {
        for (WhatIf.Policy policy :
                List.of(WhatIf.linear(0.1), WhatIf.linear(0), WhatIf.leastConnections())) {
            final WhatIf judged = judge(policy);
            assertEquals(1, judged.changed());
            assertEquals(0, judged.hitRate());
            assertEquals(3, judged.meanPrefillBlocks());
            assertEquals(10, judged.meanDecodeBlocks());
            // a second for one block, three for two: each block takes two
            assertEquals((1 + 3 * 2 + 3) / 2.0, judged.meanFirstTokenSeconds());
        }
    }

    @Test
    void aSessionStaysWithItsWorkerWhateverThePolicy() {
        final JournalRecord bound = record(16, 7, new double[] {9, 9, 0, 9}, new double[4]);
        bound.bySession();
        for (WhatIf.Policy policy : List.of(WhatIf.linear(1), WhatIf.leastConnections())) {
            final WhatIf judged = new WhatIf(policy, BLOCK_SIZE);
            judged.add(record(16, 7, new double[] {9, 9, 0, 9}, new double[4]));
            judged.add(bound);
            assertEquals(2, judged.decisions());
            assertEquals(1, judged.changed());
            assertEquals(1, judged.spread(), "each has one");
        }
    }

    @Test
    void whatNothingIsKnownOfIsNoNumber() {
        final WhatIf judged = new WhatIf(WhatIf.recorded(), BLOCK_SIZE);
        assertTrue(Double.isNaN(judged.hitRate()));
        assertTrue(Double.isNaN(judged.meanPrefillBlocks()));
        assertTrue(Double.isNaN(judged.meanFirstTokenSeconds()));
        judged.add(record(16, 7, new double[] {1, 1, 0, 0}));
        judged.add(record(16, 9, new double[] {1, 1, 0, 0}));
        assertTrue(Double.isNaN(judged.meanFirstTokenSeconds()), "all prefilled the same");
    }

    @Test
    void candidatesThatAreNotListedAreSaid() {
        final WhatIf judged = new WhatIf(WhatIf.recorded(), BLOCK_SIZE);
        final JournalRecord record = record(16, 7, new double[] {1, 1, 0, 0});
        record.fleet(5, 5, 2);
        judged.add(record);
        assertEquals(1, judged.incomplete());
    }

    @ParameterizedTest
    @ValueSource(ints = {0, -16})
    void aBlockHasTokens(int blockSize) {
        assertEquals(
                "blockSize=" + blockSize + " must be 1 or more",
                assertThrows(
                                IllegalArgumentException.class,
                                () -> new WhatIf(WhatIf.recorded(), blockSize))
                        .getMessage());
        assertEquals(
                "policy",
                assertThrows(NullPointerException.class, () -> new WhatIf(null, BLOCK_SIZE))
                        .getMessage());
    }

    @ParameterizedTest
    @ValueSource(doubles = {Double.NaN, -1})
    void aWeightIsANumber(double weight) {
        assertEquals(
                "weight=" + weight + " must be 0 or more",
                assertThrows(IllegalArgumentException.class, () -> WhatIf.linear(weight))
                        .getMessage());
    }
}

package io.kvasir.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.sim.config.SimConfig;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** An engine whose time is data. */
class SteppedEngineTest {
    private static final long MS = 1_000_000;

    private final List<String> told = new ArrayList<>();
    private final List<Long> sequences = new ArrayList<>();
    private final SteppedEngine engine =
            new SteppedEngine(
                    SimConfig.builder().blocks(32).blockSize(16).seed(1).build(),
                    (sequence, _) -> sequences.add(sequence));

    private static int[] prompt(int tokens, int first) {
        final int[] prompt = new int[tokens];
        Arrays.setAll(prompt, i -> first + i);
        return prompt;
    }

    private void submit(String name, int[] prompt, int output, long timeNs) {
        engine.submit(
                prompt,
                output,
                timeNs,
                (cached, generated, finished) ->
                        told.add(name + " " + cached + " " + generated + " " + finished));
    }

    /** Steps to the end; the time of the last step's end. */
    private long runFrom(long timeNs) {
        long nowNs = timeNs;
        for (long next = engine.advance(timeNs);
                next != SteppedEngine.IDLE;
                next = engine.advance(nowNs)) {
            nowNs = next;
        }
        return nowNs;
    }

    @Test
    void aRequestIsPrefilledAndThenStepsOnceAToken() {
        submit("a", prompt(200, 0), 3, 0);
        assertEquals(200, engine.tokensToPrefill());
        assertEquals(20 * MS, engine.advance(0)); // 200 tokens at 10,000 a second
        assertEquals(30 * MS, engine.advance(20 * MS));
        assertEquals(0, engine.tokensToPrefill());
        assertEquals(40 * MS, engine.advance(30 * MS));
        assertEquals(SteppedEngine.IDLE, engine.advance(40 * MS));
        assertEquals(List.of("a 0 0 false", "a 0 1 false", "a 0 2 false", "a 0 3 true"), told);
        assertEquals(32, engine.state().freeBlocks());
    }

    @Test
    void whatIsCachedIsKnownByNameAndNotComputedAgain() {
        final int[] prompt = prompt(160, 0);
        final long[] names = engine.names(prompt);
        assertEquals(9, names.length); // never the last token's block
        assertEquals(0, engine.cachedBlocks(names));
        submit("a", prompt, 1, 0);
        final long endNs = runFrom(0);
        assertEquals(9, engine.cachedBlocks(names));
        submit("b", prompt, 1, endNs);
        assertEquals(16, engine.tokensToPrefill());
        runFrom(endNs);
        assertEquals("b 144 1 true", told.getLast());
    }

    @Test
    void theNextToBeEvictedAreTheDeepestOfTheOldest() {
        final int[] old = prompt(160, 0);
        final int[] young = prompt(160, 5_000);
        submit("old", old, 1, 0);
        submit("young", young, 1, runFrom(0));
        runFrom(100 * MS);
        final List<Long> next = new ArrayList<>();
        engine.forEachNextEvicted(14, next::add); // twelve blocks carry nothing yet
        final long[] names = engine.names(old);
        assertEquals(2, next.size());
        assertEquals(names[8], next.get(1));
    }

    @Test
    void messagesAreNumberedFromZeroWithoutAGap() {
        submit("a", prompt(160, 0), 40, 0);
        runFrom(0);
        assertTrue(sequences.size() > 1);
        for (int i = 0; i < sequences.size(); i++) {
            assertEquals(i, sequences.get(i));
        }
    }

    @Test
    void twoEnginesDoTheSameWithTheSameCalls() {
        final List<byte[]> one = new ArrayList<>();
        final List<byte[]> other = new ArrayList<>();
        for (List<byte[]> messages : List.of(one, other)) {
            final SteppedEngine same =
                    new SteppedEngine(
                            SimConfig.builder().blocks(24).seed(9).build(),
                            (_, payload) -> messages.add(payload));
            long nowNs = 0;
            for (int i = 0; i < 20; i++) {
                same.submit(prompt(100 + i, i), 1 + i, nowNs, (_, _, _) -> {});
                nowNs = Math.max(nowNs, Math.min(same.advance(nowNs), nowNs + 3 * MS));
            }
            for (long next = same.advance(nowNs);
                    next != SteppedEngine.IDLE;
                    next = same.advance(nowNs)) {
                nowNs = next;
            }
            assertEquals(24, same.state().freeBlocks());
            assertEquals(20, same.state().finished());
        }
        assertEquals(one.size(), other.size());
        for (int i = 0; i < one.size(); i++) {
            assertTrue(Arrays.equals(one.get(i), other.get(i)));
        }
    }

    @Test
    void aRequestThatCanNeverRunIsRefused() {
        final SteppedEngine.Progress nobody = (_, _, _) -> {};
        assertThrows(IllegalArgumentException.class, () -> engine.submit(new int[0], 1, 0, nobody));
        assertThrows(
                IllegalArgumentException.class, () -> engine.submit(prompt(16, 0), 0, 0, nobody));
        final var tooLong =
                assertThrows(
                        IllegalArgumentException.class,
                        () -> engine.submit(prompt(512, 0), 1, 0, nobody));
        assertTrue(tooLong.getMessage().contains("512"), tooLong.getMessage());
        assertEquals(SteppedEngine.IDLE, engine.advance(0));
    }
}

package io.kvasir.core.load;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/** What the table says of a running request. */
class RunningRequestTest {
    private static final long GENERATION = 1L << Integer.SIZE;
    private static final int REQUESTS = 64;

    private final LoadBoard board = new LoadBoard(3);
    private final ActiveRequests table =
            new ActiveRequests(new ActiveRequestsConfig(3, REQUESTS, 1 << 14, 600), board);
    private final RunningRequest request = new RunningRequest();

    @AfterEach
    void close() {
        table.close();
        board.close();
    }

    private void book(int index, int slot, long[] prompt, int unknown) {
        board.addProvisional(slot, 7, 0);
        table.book(
                GENERATION | index,
                slot,
                prompt,
                prompt.length,
                unknown,
                7,
                0,
                ActiveRequests.NO_DEADLINE);
    }

    private long[] path() {
        return Arrays.copyOf(request.path(), request.pathBlocks());
    }

    @Test
    void aRequestThatDoesNotRunIsNotRead() {
        book(1, 0, new long[] {5}, 0);
        assertFalse(table.read(GENERATION | 2, true, request));
        assertFalse(table.read(2 * GENERATION | 1, true, request), "another generation");
        assertFalse(table.read(ActiveRequests.NO_REQUEST, true, request));
    }

    @Test
    void saysWhatIsLeftOfARequest() {
        book(1, 2, new long[] {5, 6}, 3);
        assertTrue(table.read(GENERATION | 1, false, request));
        assertEquals(2, request.slot());
        assertEquals(7, request.prefillTokens());
        assertEquals(3, request.ownBlocks());
        assertEquals(0, request.pathBlocks(), "it was not asked for");
        table.prefillComplete(GENERATION | 1);
        table.outputBlocks(GENERATION | 1, 4);
        assertTrue(table.read(GENERATION | 1, true, request));
        assertEquals(0, request.prefillTokens());
        assertEquals(7, request.ownBlocks());
        assertArrayEquals(new long[] {5, 6}, path());
    }

    @Test
    void aPromptOfNoBlocksHasAnEmptyPath() {
        book(0, 0, new long[0], 0);
        assertTrue(table.read(GENERATION, true, request));
        assertEquals(0, request.pathBlocks());
    }

    @Test
    void pathsAreThePromptsHoweverTheyAreSplitAndJoined() {
        final Random random = new Random(Seeds.next("RunningRequestTest"));
        final long[][] prompts = new long[REQUESTS][];
        for (int step = 0; step < 3_000; step++) {
            final int index = random.nextInt(REQUESTS);
            if (prompts[index] != null) {
                table.free(GENERATION | index);
                prompts[index] = null;
            } else {
                // hashes by depth and by few branches, so that prompts share beginnings
                final long[] prompt = new long[random.nextInt(700)];
                final int branch = random.nextInt(prompt.length + 1);
                for (int i = 0; i < prompt.length; i++) {
                    prompt[i] = i < branch ? i + 1 : 1_000L * random.nextInt(1, 4) + i;
                }
                prompts[index] = prompt;
                book(index, random.nextInt(3), prompt, 0);
            }
            final int read = random.nextInt(REQUESTS);
            assertEquals(prompts[read] != null, table.read(GENERATION | read, true, request));
            if (prompts[read] != null) {
                final int own = request.ownBlocks();
                assertEquals(prompts[read].length, own + request.pathBlocks());
                assertArrayEquals(Arrays.copyOf(prompts[read], request.pathBlocks()), path());
            }
        }
        final List<Long> named = new ArrayList<>();
        for (int slot = 0; slot < 3; slot++) {
            table.forEachRunning(slot, named::add);
        }
        assertEquals(Arrays.stream(prompts).filter(prompt -> prompt != null).count(), named.size());
    }
}

package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.Random;

/**
 * Memory under churn: blocks that were never seen before come and others go, in cycles that each
 * end with the same content.
 *
 * <p>{@code -Dkvasir.churn.blocks=N} is how many blocks are stored in all, 300,000 by default and
 * 1,200,000 with all trials.
 */
class PrefixIndexChurnTest {
    private static final long BLOCKS =
            Long.getLong("kvasir.churn.blocks", Trials.of(300_000, 1_200_000));
    private static final int CYCLES = 8;
    private static final int SLOTS = 16;
    private static final int LIVE_PROMPTS = 150;
    private static final int LONGEST = 1_200;
    private static final long MAX_GROWTH_KIB = 48 << 10;
    private static final Path STATUS = Path.of("/proc/self/status");

    private static final class Prompt {
        final int slot;
        final long[] locals;
        final long[] names;

        Prompt(int slot, long[] locals, long[] names) {
            this.slot = slot;
            this.locals = locals;
            this.names = names;
        }
    }

    private final Deque<Prompt> live = new ArrayDeque<>();
    private long blocks;
    private long fresh;

    @Tag("trials")
    @Test
    void theSameContentTakesTheSameMemoryHoweverMuchWasThereBefore() throws Exception {
        assumeTrue(Files.exists(STATUS), "resident memory is read from /proc");
        final long[] used = new long[CYCLES];
        final long[] resident = new long[CYCLES];
        try (PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(SLOTS, 200_000, 300_000))) {
            for (int cycle = 0; cycle < CYCLES; cycle++) {
                churn(index, new Random(1), BLOCKS * (cycle + 1) / CYCLES);
                removeAll(index);
                assertEquals(0, index.blocks());
                for (int prompt = 0; prompt < LIVE_PROMPTS; prompt++) {
                    store(index, newPrompt(new Random(prompt), new long[0]));
                }
                used[cycle] = index.usedBytes();
                resident[cycle] = residentKib();
                final boolean isLast = cycle == CYCLES - 1;
                for (int i = 0; isLast && i < 60 && hasGrown(resident); i++) {
                    Thread.sleep(1_000); // what the compiler has taken it gives back
                    resident[cycle] = residentKib();
                }
                removeAll(index);
            }
            IndexInvariants.check(index);
            System.out.printf(
                    "%d blocks stored; bytes in use at the end of each cycle %s, resident KiB %s%n",
                    blocks, Arrays.toString(used), Arrays.toString(resident));
            assertEquals(0, index.capacityRefusals());
        }
        for (int cycle = 2; cycle < CYCLES; cycle++) {
            // the same but for the overflow lines, which depend on the engine hashes
            assertTrue(
                    Math.abs(used[cycle] - used[1]) <= used[1] / 50,
                    () -> "bytes in use " + Arrays.toString(used));
        }
        assertFalse(hasGrown(resident), () -> "resident KiB " + Arrays.toString(resident));
    }

    private static boolean hasGrown(long[] resident) {
        return resident[CYCLES - 1] - resident[1] >= MAX_GROWTH_KIB;
    }

    private void churn(PrefixIndex index, Random random, long until) {
        while (blocks < until) {
            // one prompt in three goes on where another one branches off
            final Prompt other = live.peekLast();
            final long[] shared =
                    other == null || random.nextInt(3) > 0
                            ? new long[0]
                            : Arrays.copyOf(other.locals, random.nextInt(other.locals.length));
            store(index, newPrompt(random, shared));
            while (live.size() > LIVE_PROMPTS) {
                remove(index, live.removeFirst());
            }
        }
    }

    private Prompt newPrompt(Random random, long[] shared) {
        final long[] locals =
                Arrays.copyOf(shared, shared.length + 1 + random.nextInt(LONGEST / 4));
        for (int i = shared.length; i < locals.length; i++) {
            locals[i] = ++fresh * 0x9E37_79B9_7F4A_7C15L;
        }
        final long[] names = new long[locals.length];
        Arrays.setAll(names, i -> ++fresh * 0xC2B2_AE3D_27D4_EB4FL);
        return new Prompt(random.nextInt(SLOTS), locals, names);
    }

    private void store(PrefixIndex index, Prompt prompt) {
        live.addLast(prompt);
        blocks += prompt.locals.length;
        assertEquals(
                StoreResult.STORED,
                index.store(
                        prompt.slot,
                        true,
                        0,
                        prompt.names,
                        prompt.locals,
                        prompt.locals.length,
                        true));
    }

    /** As engines do: the last block first, in two events. */
    private static void remove(PrefixIndex index, Prompt prompt) {
        final int count = prompt.names.length;
        final long[] names = new long[count];
        Arrays.setAll(names, i -> prompt.names[count - 1 - i]);
        index.remove(prompt.slot, names, count / 2, CopyRule.LAST_COPY);
        index.remove(
                prompt.slot,
                Arrays.copyOfRange(names, count / 2, count),
                count - count / 2,
                CopyRule.LAST_COPY);
    }

    private void removeAll(PrefixIndex index) {
        while (!live.isEmpty()) {
            remove(index, live.removeFirst());
        }
    }

    private static long residentKib() throws IOException {
        System.gc();
        return Files.readAllLines(STATUS).stream()
                .filter(line -> line.startsWith("VmRSS:"))
                .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")))
                .findFirst()
                .orElseThrow();
    }
}

package io.kvasir.core.load;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.core.radix.OverlapScores;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Random;

/**
 * Predicted prefixes against a list of visits: prompts short and of many runs, ages up to the TTL
 * and just above, too many visits and blocks, limits that change, slots that are cleared. In the
 * end, once all is too old, nothing is held, and there is room for as much as at the beginning.
 */
class PredictedPrefixesModelTest {
    private static final int TRIALS = Trials.of(30, 400);
    private static final int SLOTS = 70;
    private static final int NO_SLOT = -1;
    private static final int STEPS = 60;

    @Tag("trials")
    @Test
    void holdsWhatTheVisitsSayThatAreLeft() {
        final long seed = Seeds.next("PredictedPrefixesModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            final Model model = new Model(new Random(seed + trial));
            try {
                model.run();
            } catch (RuntimeException | AssertionError e) {
                throw new AssertionError(
                        "trial " + trial + " of " + seed + ", step " + model.step, e);
            } finally {
                model.prefixes.close();
            }
        }
    }

    /** A prompt that went to a slot; of a cleared slot it counts as a visit, and holds nothing. */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Visit(int slot, long[] prompt, long time) {
        Visit cleared() {
            return new Visit(NO_SLOT, prompt, time);
        }
    }

    /** One run. */
    private static final class Model {
        private final Random random;
        private final int slots;
        private final int longest;
        private final int names;
        private final int maxVisits;
        private final int roomBlocks;
        private final PredictedPrefixes prefixes;
        private final OverlapScores scores = new OverlapScores(SLOTS);
        private Deque<Visit> visits = new ArrayDeque<>();
        private int maxBlocks;
        private double ratio = 0.5;
        private long ttl = 100;
        private long now;
        private long expired;
        private long pruned;
        private long refused;
        private int step;

        Model(Random random) {
            this.random = random;
            slots = random.nextBoolean() ? 3 : SLOTS;
            longest = random.nextInt(3) == 0 ? 1_500 : 20;
            names = 1 + random.nextInt(3);
            maxVisits = 1 + random.nextInt(random.nextBoolean() ? 4 : 40);
            roomBlocks = longest * (1 + random.nextInt(8));
            maxBlocks = roomBlocks;
            prefixes =
                    new PredictedPrefixes(
                            new PredictedPrefixesConfig(SLOTS, maxBlocks, ratio, maxVisits, ttl));
        }

        /** Alike at the beginning, of equal blocks at many positions, or of no other prompt. */
        private long[] prompt() {
            final long[] prompt = new long[random.nextInt(longest + 1)];
            Arrays.fill(prompt, 1);
            for (int i = random.nextInt(4); i > 0 && prompt.length > 0; i--) {
                prompt[random.nextInt(prompt.length)] = random.nextInt(names) + 1L;
            }
            if (random.nextInt(4) == 0 && prompt.length > 0) {
                prompt[0] = random.nextLong();
            }
            return prompt;
        }

        /** Blocks of all slots: of visits in the order of their prompts, what each adds. */
        private long blocks() {
            final List<Visit> sorted = new ArrayList<>(visits);
            sorted.removeIf(visit -> visit.slot == NO_SLOT);
            sorted.sort(
                    (a, b) ->
                            a.slot == b.slot
                                    ? Arrays.compare(a.prompt, b.prompt)
                                    : Integer.compare(a.slot, b.slot));
            long blocks = 0;
            Visit before = null;
            for (Visit visit : sorted) {
                blocks += visit.prompt.length;
                if (before != null && before.slot == visit.slot) {
                    blocks -= common(before.prompt, visit.prompt);
                }
                before = visit;
            }
            return blocks;
        }

        private static int common(long[] one, long[] other) {
            final int at = Arrays.mismatch(one, other);
            return at < 0 ? one.length : at;
        }

        private void prune(int newest) {
            if (blocks() > maxBlocks) {
                while (blocks() > (long) (ratio * maxBlocks) && visits.size() > newest) {
                    visits.removeFirst();
                    pruned++;
                }
            }
        }

        private void expire() {
            while (!visits.isEmpty() && now - visits.peekFirst().time > ttl) {
                visits.removeFirst();
                expired++;
            }
            prune(0);
        }

        private void visit(int slot, long[] prompt) {
            expire();
            final boolean fits = prompt.length <= maxBlocks;
            assertEquals(fits, prefixes.visit(slot, prompt, prompt.length, now));
            if (!fits) {
                refused++;
            } else if (prompt.length > 0) {
                if (visits.size() == maxVisits) {
                    visits.removeFirst();
                    pruned++;
                }
                visits.add(new Visit(slot, prompt, now));
                prune(1);
            }
        }

        private void clear(int slot) {
            long cleared = 0;
            final Deque<Visit> after = new ArrayDeque<>();
            for (Visit visit : visits) {
                cleared += visit.slot == slot ? 1 : 0;
                after.add(visit.slot == slot ? visit.cleared() : visit);
            }
            visits = after;
            assertEquals(cleared, prefixes.clear(slot));
        }

        private void limit() {
            maxBlocks = 1 + random.nextInt(roomBlocks);
            ratio = random.nextInt(5) == 0 ? 1 : 0.001 + 0.999 * random.nextDouble();
            ttl = 1L + random.nextInt(200);
            prefixes.limits(maxBlocks, ratio, ttl);
        }

        private void run() {
            for (step = 0; step < STEPS; step++) {
                switch (random.nextInt(12)) {
                    case 0 -> clear(random.nextInt(slots));
                    case 1 -> {
                        final long before = expired;
                        expire();
                        assertEquals(expired - before, prefixes.expire(now));
                    }
                    case 2 -> {
                        if (random.nextInt(4) == 0) {
                            limit();
                        }
                    }
                    case 3 -> now += visits.isEmpty() ? 0 : edge();
                    case 4 -> {
                        if (random.nextInt(8) == 0) {
                            for (int slot = 0; slot < slots; slot++) {
                                clear(slot);
                            }
                        }
                    }
                    case 5 -> now += random.nextInt(40);
                    default -> visit(random.nextInt(slots), prompt());
                }
                check();
            }
            now += 1_000;
            expire();
            prefixes.expire(now);
            check();
            assertEquals(0, prefixes.blocks());
            prefixes.limits(roomBlocks, 1, ttl);
            maxBlocks = roomBlocks;
            ratio = 1;
            final long[] most = random.longs(roomBlocks).toArray();
            visit(0, most);
            visit(1, most);
            check();
        }

        /** Until the oldest is as old as it may be, or one nanosecond more. */
        private long edge() {
            return Math.max(0, visits.peekFirst().time + ttl - now + random.nextInt(2));
        }

        private void check() {
            assertEquals(visits.size(), prefixes.visits(), "visits");
            assertEquals(blocks(), prefixes.blocks(), "blocks");
            assertEquals(expired, prefixes.expired(), "expired");
            assertEquals(pruned, prefixes.pruned(), "pruned");
            assertEquals(refused, prefixes.refused(), "refused");
            final long[] prompt = prompt();
            final int[] depths = new int[SLOTS];
            int deepest = 0;
            for (Visit visit : visits) {
                if (visit.slot != NO_SLOT) {
                    depths[visit.slot] =
                            Math.max(
                                    depths[visit.slot],
                                    Math.min(prompt.length, common(prompt, visit.prompt)));
                    deepest = Math.max(deepest, depths[visit.slot]);
                }
            }
            assertEquals(deepest, prefixes.match(prompt, prompt.length, scores));
            for (int slot = 0; slot < SLOTS; slot++) {
                assertEquals(depths[slot], scores.depth(slot), "slot " + slot);
            }
        }
    }
}

package io.kvasir.jcstress;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;

/**
 * A prompt is matched while the holders of its run are a map, become one, or cease to be one. A
 * slot is never seen with less than what it held all the time; only a split may hide that for a
 * moment.
 */
public class HolderMapRaces {
    /** Slots in a map at the beginning. */
    private static final int MANY = Race.LIST + 2;

    /** Matches of the reader beside the writer; the worst counts. */
    private static final int READS = 8;

    private HolderMapRaces() {}

    /** A slot that holds all of a run drops its last block and stores it again. */
    @JCStressTest
    @Outcome(
            id = "(3|4), 17, 0",
            expect = Expect.ACCEPTABLE,
            desc = "what it held all the time, or more")
    @State
    public static class FullHolderCutAndFullAgain extends Race {
        /** Stores what is there before the race. */
        public FullHolderCutAndFullAgain() {
            store(0, MANY, "abcd");
        }

        /** Writes. */
        @Actor
        public void write() {
            drop(7, "abcd", 3);
            store(7, "abcd");
        }

        /** Reads. */
        @Actor
        public void read(III_Result r) {
            r.r1 = 4;
            r.r2 = 17;
            r.r3 = 0;
            for (int i = 0; i < READS; i++) {
                match("abcd");
                r.r1 = Math.min(r.r1, depth(7));
                r.r2 = Math.min(r.r2, found(0, 7, 4) + found(8, MANY, 4));
                r.r3 = Math.max(r.r3, found(MANY, SLOTS));
            }
        }

        /** Gives the index back. */
        @Arbiter
        public void over(III_Result r) {
            end();
        }
    }

    /** The same, where few slots hold the blocks before: each is looked up in the map. */
    @JCStressTest
    @Outcome(
            id = "(7|8), 7, 0",
            expect = Expect.ACCEPTABLE,
            desc = "what it held all the time, or more")
    @State
    public static class ListedHolderCutAndFullAgain extends Race {
        /** Stores what is there before the race. */
        public ListedHolderCutAndFullAgain() {
            store(0, MANY, "abcdefgh");
            store(0, "abcd-");
            for (int slot = LIST_AGAIN; slot < MANY; slot++) {
                drop(slot, "abcdefgh", 0, 4);
            }
        }

        /** Writes. */
        @Actor
        public void write() {
            drop(7, "abcdefgh", 7);
            store(7, "abcdefgh");
        }

        /** Reads. */
        @Actor
        public void read(III_Result r) {
            r.r1 = 8;
            r.r2 = 7;
            r.r3 = 0;
            for (int i = 0; i < READS; i++) {
                match("abcdefgh");
                r.r1 = Math.min(r.r1, depth(7));
                r.r2 = Math.min(r.r2, found(0, 7, 8));
                r.r3 = Math.max(r.r3, found(LIST_AGAIN, SLOTS));
            }
        }

        /** Gives the index back. */
        @Arbiter
        public void over(III_Result r) {
            end();
        }
    }

    /** A slot that holds some of a run gets the rest. */
    @JCStressTest
    @Outcome(id = "(2|4), 17, 0", expect = Expect.ACCEPTABLE, desc = "before or after")
    @State
    public static class PartialHolderGetsTheRest extends Race {
        /** Stores what is there before the race. */
        public PartialHolderGetsTheRest() {
            store(0, MANY, "abcd");
            drop(7, "abcd", 2);
        }

        /** Writes. */
        @Actor
        public void write() {
            store(7, "abcd");
        }

        /** Reads. */
        @Actor
        public void read(III_Result r) {
            r.r1 = 4;
            r.r2 = 17;
            r.r3 = 0;
            for (int i = 0; i < READS; i++) {
                match("abcd");
                r.r1 = Math.min(r.r1, depth(7));
                r.r2 = Math.min(r.r2, found(0, 7, 4) + found(8, MANY, 4));
                r.r3 = Math.max(r.r3, found(MANY, SLOTS));
            }
        }

        /** Gives the index back. */
        @Arbiter
        public void over(III_Result r) {
            end();
        }
    }

    /** A list grows into a map, its page becomes something else. */
    @JCStressTest
    @Outcome(id = "16, (0|3|4), 0", expect = Expect.ACCEPTABLE, desc = "all that stay are seen")
    @State
    public static class ListBecomesMap extends Race {
        /** Stores what is there before the race. */
        public ListBecomesMap() {
            store(0, LIST, "abcd");
            drop(5, "abcd", 3);
            store(40, 45, "ABCD");
        }

        /** Writes. */
        @Actor
        public void write() {
            store(LIST, "abcd");
            store(45, 47, "ABCD");
            drop(LIST, "abcd", 3);
        }

        /** Reads. */
        @Actor
        public void read(III_Result r) {
            r.r1 = 16;
            r.r2 = 4;
            r.r3 = 0;
            for (int i = 0; i < READS; i++) {
                match("abcd");
                r.r1 = Math.min(r.r1, found(0, LIST, 3));
                r.r2 = Math.min(r.r2, depth(LIST));
                r.r3 = Math.max(r.r3, found(40, SLOTS));
            }
        }

        /** Gives the index back. */
        @Arbiter
        public void over(III_Result r) {
            end();
        }
    }

    /** A map shrinks to a list, its memory becomes the map of another run. */
    @JCStressTest
    @Outcome(id = "8, \\d+, 0", expect = Expect.ACCEPTABLE, desc = "all that stay are seen")
    @State
    public static class MapBecomesList extends Race {
        /** Stores what is there before the race. */
        public MapBecomesList() {
            store(0, MANY, "abcd");
            drop(5, "abcd", 3);
            store(40, 40 + LIST, "ABCD");
            for (int slot = LIST_AGAIN + 1; slot < MANY; slot++) {
                drop(slot, "abcd", 0);
            }
        }

        /** Writes. */
        @Actor
        public void write() {
            drop(LIST_AGAIN, "abcd", 0);
            store(40 + LIST, "ABCD");
        }

        /** Reads. */
        @Actor
        public void read(III_Result r) {
            r.r1 = 8;
            r.r2 = 1;
            r.r3 = 0;
            for (int i = 0; i < READS; i++) {
                match("abcd");
                r.r1 = Math.min(r.r1, found(0, LIST_AGAIN, 3));
                r.r2 = Math.min(r.r2, found(LIST_AGAIN, MANY));
                r.r3 = Math.max(r.r3, found(40, SLOTS));
            }
        }

        /** Gives the index back. */
        @Arbiter
        public void over(III_Result r) {
            end();
        }
    }

    /** Blocks are stored after a run that many hold: they are of one slot only. */
    @JCStressTest
    @Outcome(id = "(4|8), 0, 18", expect = Expect.ACCEPTABLE, desc = "before or after")
    @State
    public static class StoredBehindAMap extends Race {
        /** Stores what is there before the race. */
        public StoredBehindAMap() {
            store(0, MANY, "abcd");
        }

        /** Writes. */
        @Actor
        public void write() {
            store(3, "abcdefgh");
        }

        /** Reads. */
        @Actor
        public void read(III_Result r) {
            r.r1 = 8;
            r.r2 = 0;
            r.r3 = 18;
            for (int i = 0; i < READS; i++) {
                match("abcdefgh");
                r.r1 = Math.min(r.r1, depth(3));
                r.r2 = Math.max(r.r2, found(0, SLOTS, 5) - found(3, 4, 5));
                r.r3 = Math.min(r.r3, found(0, SLOTS, 4));
            }
        }

        /** Gives the index back. */
        @Arbiter
        public void over(III_Result r) {
            end();
        }
    }

    /** A run that many hold is split, its rest gets a map of its own. */
    @JCStressTest
    @Outcome(id = "17, 6, (0|4)", expect = Expect.ACCEPTABLE, desc = "before or after")
    @Outcome(
            id = "\\d+, (0|4|6), (0|4)",
            expect = Expect.ACCEPTABLE_INTERESTING,
            desc = "hidden while the writer is there")
    @State
    public static class SplitUnderAMap extends Race {
        /** Stores what is there before the race. */
        public SplitUnderAMap() {
            store(0, MANY - 1, "abcdefgh");
            store(MANY - 1, "abcdef");
        }

        /** Writes. */
        @Actor
        public void write() {
            store(MANY, "abcdXYZ");
        }

        /** Reads. */
        @Actor
        public void read(III_Result r) {
            r.r1 = 17;
            r.r2 = 6;
            r.r3 = 4;
            for (int i = 0; i < READS; i++) {
                match("abcdefgh");
                r.r1 = Math.min(r.r1, found(0, MANY - 1, 8));
                r.r2 = Math.min(r.r2, depth(MANY - 1));
                r.r3 = Math.min(r.r3, depth(MANY));
            }
        }

        /** Gives the index back. */
        @Arbiter
        public void over(III_Result r) {
            end();
        }
    }

    /** A run is split where a slot of its map ends; another holds all of it. */
    @JCStressTest
    @Outcome(
            id = "4, (4|8), 0",
            expect = Expect.ACCEPTABLE,
            desc = "never more than it held; the split may hide the rest for a moment")
    @State
    public static class SplitWhereAHolderEnds extends Race {
        /** Stores what is there before the race. */
        public SplitWhereAHolderEnds() {
            store(0, MANY, "abcdefgh");
            drop(7, "abcdefgh", 4);
        }

        /** Writes. */
        @Actor
        public void write() {
            store(MANY, "abcd-");
        }

        /** Reads. */
        @Actor
        public void read(III_Result r) {
            r.r1 = 0;
            r.r2 = 8;
            r.r3 = 0;
            for (int i = 0; i < READS; i++) {
                match("abcdefgh");
                r.r1 = Math.max(r.r1, depth(7));
                r.r2 = Math.min(r.r2, depth(8));
                r.r3 += depth(MANY) > 4 ? 1 : 0;
            }
        }

        /** Gives the index back. */
        @Arbiter
        public void over(III_Result r) {
            end();
        }
    }

    /** The split is undone, where slots hold all, the upper part, or the lower part of the run. */
    @JCStressTest
    @Outcome(
            id = "(4|6), (4|8), 0",
            expect = Expect.ACCEPTABLE,
            desc = "never more than it held; the join may hide the rest for a moment")
    @State
    public static class SplitUndoneUnderAMap extends Race {
        /** Stores what is there before the race. */
        public SplitUndoneUnderAMap() {
            store(0, MANY, "abcdefgh");
            store(MANY, "abcd-");
            drop(7, "abcdefgh", 6);
            drop(6, "abcdefgh", 0, 4);
        }

        /** Writes. */
        @Actor
        public void write() {
            drop(MANY, "abcd-", 4);
        }

        /** Reads. */
        @Actor
        public void read(III_Result r) {
            r.r1 = 0;
            r.r2 = 8;
            r.r3 = 0;
            for (int i = 0; i < READS; i++) {
                match("abcdefgh");
                r.r1 = Math.max(r.r1, depth(7));
                r.r2 = Math.min(r.r2, depth(8));
                r.r3 += depth(6) > 0 || depth(MANY) > 4 ? 1 : 0;
            }
        }

        /** Gives the index back. */
        @Arbiter
        public void over(III_Result r) {
            end();
        }
    }
}

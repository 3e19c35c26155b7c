package io.kvasir.jcstress;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;

/**
 * A prompt is matched while slots join and leave its run, whose holders are a list, and while its
 * table of children changes; memory given back is used again for something else. For holders that
 * are a map see {@link HolderMapRaces}.
 */
public class HolderRaces {
    private HolderRaces() {}

    /** One slot leaves a run, another one joins it. */
    @JCStressTest
    @Outcome(id = "3, [01], [01]", expect = Expect.ACCEPTABLE, desc = "all that stay are seen")
    @Outcome(
            id = "2, [01], [01]",
            expect = Expect.ACCEPTABLE_INTERESTING,
            desc = "a holder is moved and missed")
    @State
    public static class JoinAndLeave extends Race {
        /** Stores what is there before the race. */
        public JoinAndLeave() {
            store(0, 4, "abcd");
        }

        /** Writes. */
        @Actor
        public void write() {
            drop(0, "abcd", 0);
            store(4, "abcd");
        }

        /** Reads. */
        @Actor
        public void read(III_Result r) {
            match("abcd");
            r.r1 = found(1, 4);
            r.r2 = found(0, 1);
            r.r3 = found(4, SLOTS);
        }

        /** Gives the index back. */
        @Arbiter
        public void over(III_Result r) {
            end();
        }
    }

    /** The page of holders is cut, the rest becomes hashes that read as holders. */
    @JCStressTest
    @Outcome(id = "4, \\d+, 0", expect = Expect.ACCEPTABLE, desc = "all that stay are seen")
    @Outcome(
            id = "[0-3], \\d+, 0",
            expect = Expect.ACCEPTABLE_INTERESTING,
            desc = "hidden while the writer is there")
    @State
    public static class PageIsCut extends Race {
        /** Stores what is there before the race. */
        public PageIsCut() {
            store(0, 12, "abcd");
        }

        /** Writes. */
        @Actor
        public void write() {
            for (int slot = 4; slot < 12; slot++) {
                drop(slot, "abcd", 0);
            }
            for (char first = 'A'; first < 'E'; first++) {
                store(0, first + LIKE_HOLDERS);
            }
        }

        /** Reads. */
        @Actor
        public void read(III_Result r) {
            match("abcd");
            r.r1 = found(0, 4);
            r.r2 = found(4, 12);
            r.r3 = found(LIKE_SLOT, SLOTS);
        }

        /** Gives the index back. */
        @Arbiter
        public void over(III_Result r) {
            end();
        }
    }

    /** The page of holders is given back and becomes that of another run. */
    @JCStressTest
    @Outcome(id = "3, \\d+, 0", expect = Expect.ACCEPTABLE, desc = "all that stay are seen")
    @Outcome(
            id = "[0-2], \\d+, 0",
            expect = Expect.ACCEPTABLE_INTERESTING,
            desc = "hidden while the writer is there")
    @State
    public static class PageIsGivenBack extends Race {
        /** Stores what is there before the race. */
        public PageIsGivenBack() {
            store(0, 8, "abcd");
            store(40, 45, "ABCD");
        }

        /** Writes. */
        @Actor
        public void write() {
            for (int slot = 3; slot < 8; slot++) {
                drop(slot, "abcd", 0);
            }
            store(45, 56, "ABCD");
        }

        /** Reads. */
        @Actor
        public void read(III_Result r) {
            match("abcd");
            r.r1 = found(0, 3);
            r.r2 = found(3, 8);
            r.r3 = found(40, SLOTS);
        }

        /** Gives the index back. */
        @Arbiter
        public void over(III_Result r) {
            end();
        }
    }

    /** The table of children grows twice, the old ones become something else. */
    @JCStressTest
    @Outcome(id = "8, 0, 0", expect = Expect.ACCEPTABLE, desc = "found")
    @Outcome(
            id = "[04], 0, 0",
            expect = Expect.ACCEPTABLE_INTERESTING,
            desc = "hidden while the writer is there")
    @State
    public static class TableGrows extends Race {
        /** Stores what is there before the race. */
        public TableGrows() {
            store(0, "abcdp123");
            store(0, "abcdq123");
            store(0, "abcdr123");
        }

        /** Writes. */
        @Actor
        public void write() {
            store(0, "abcds123");
            store(1, "pqrspqrs");
            store(0, "abcdt123");
            store(0, "abcdu123");
            store(1, "qqrspqrs");
        }

        /** Reads. */
        @Actor
        public void read(III_Result r) {
            match("abcdp123");
            r.r1 = depth(0);
            r.r2 = depth(1);
            r.r3 = found(1, SLOTS);
        }

        /** Gives the index back. */
        @Arbiter
        public void over(III_Result r) {
            end();
        }
    }

    /** All children but one go, the table becomes something else. */
    @JCStressTest
    @Outcome(id = "8, 0, 0", expect = Expect.ACCEPTABLE, desc = "found")
    @Outcome(
            id = "[04], 0, 0",
            expect = Expect.ACCEPTABLE_INTERESTING,
            desc = "hidden while the writer is there")
    @State
    public static class TableIsGivenBack extends Race {
        /** Stores what is there before the race. */
        public TableIsGivenBack() {
            store(0, "abcdp123");
            store(0, "abcdq123");
            store(0, "abcdr123");
        }

        /** Writes. */
        @Actor
        public void write() {
            drop(0, "abcdr123", 4);
            drop(0, "abcdq123", 4);
            store(1, "pqrspqrs");
            store(1, "qqrspqrs");
        }

        /** Reads. */
        @Actor
        public void read(III_Result r) {
            match("abcdp123");
            r.r1 = depth(0);
            r.r2 = depth(1);
            r.r3 = found(1, SLOTS);
        }

        /** Gives the index back. */
        @Arbiter
        public void over(III_Result r) {
            end();
        }
    }
}

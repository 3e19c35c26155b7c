package io.kvasir.jcstress;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/**
 * A prompt is matched while its runs change. Each result is checked against the contract: a block
 * that is found was held by that slot at some moment; what is hidden for a moment is allowed and
 * shown as interesting; any other result is forbidden.
 */
public class RunRaces {
    private RunRaces() {}

    /** Blocks are appended beside another holder. */
    @JCStressTest
    @Outcome(id = "4, (4|8)", expect = Expect.ACCEPTABLE, desc = "before or after")
    @Outcome(
            id = "0, 0|4, 0|0, 4|0, 8",
            expect = Expect.ACCEPTABLE_INTERESTING,
            desc = "hidden while the writer is there")
    @State
    public static class Append extends Race {
        /** Stores what is there before the race. */
        public Append() {
            store(0, "abcd");
            store(1, "abcd");
        }

        /** Writes. */
        @Actor
        public void write() {
            store(1, "abcdefgh");
        }

        /** Reads. */
        @Actor
        public void read(II_Result r) {
            match("abcdefgh");
            r.r1 = depth(0);
            r.r2 = depth(1);
        }

        /** Gives the index back. */
        @Arbiter
        public void over(II_Result r) {
            end();
        }
    }

    /** Blocks are counted when they can be matched. */
    @JCStressTest
    @Outcome(id = "4, (0|4|8)", expect = Expect.ACCEPTABLE, desc = "not counted yet")
    @Outcome(id = "8, 8", expect = Expect.ACCEPTABLE, desc = "counted and found")
    @State
    public static class Counted extends Race {
        /** Stores what is there before the race. */
        public Counted() {
            store(1, "abcd");
        }

        /** Writes. */
        @Actor
        public void write() {
            store(1, "abcdefgh");
        }

        /** Reads. */
        @Actor
        public void read(II_Result r) {
            r.r1 = blocks();
            match("abcdefgh");
            r.r2 = depth(1);
        }

        /** Gives the index back. */
        @Arbiter
        public void over(II_Result r) {
            end();
        }
    }

    /** Other blocks are appended than those asked for. */
    @JCStressTest
    @Outcome(id = "4, 4", expect = Expect.ACCEPTABLE, desc = "the common ones")
    @Outcome(
            id = "0, 0",
            expect = Expect.ACCEPTABLE_INTERESTING,
            desc = "hidden while the writer is there")
    @State
    public static class AppendOther extends Race {
        /** Stores what is there before the race. */
        public AppendOther() {
            store(0, "abcd");
            store(1, "abcd");
        }

        /** Writes. */
        @Actor
        public void write() {
            store(1, "abcdefgh");
        }

        /** Reads. */
        @Actor
        public void read(II_Result r) {
            match("abcdwxyz");
            r.r1 = depth(0);
            r.r2 = depth(1);
        }

        /** Gives the index back. */
        @Arbiter
        public void over(II_Result r) {
            end();
        }
    }

    /** A run is split after its first half. */
    @JCStressTest
    @Outcome(id = "16, (0|8)", expect = Expect.ACCEPTABLE, desc = "before or after")
    @Outcome(
            id = "(0|8), (0|8)",
            expect = Expect.ACCEPTABLE_INTERESTING,
            desc = "hidden while the writer is there")
    @State
    public static class Split extends Race {
        /** Stores what is there before the race. */
        public Split() {
            store(0, "abcdefghijklmnop");
        }

        /** Writes. */
        @Actor
        public void write() {
            store(1, "abcdefghXYZ");
        }

        /** Reads. */
        @Actor
        public void read(II_Result r) {
            match("abcdefghijklmnop");
            r.r1 = depth(0);
            r.r2 = depth(1);
        }

        /** Gives the index back. */
        @Arbiter
        public void over(II_Result r) {
            end();
        }
    }

    /** A run is split, its rest given up, and other blocks are appended there. */
    @JCStressTest
    @Outcome(id = "20, 10", expect = Expect.ACCEPTABLE, desc = "before")
    @Outcome(id = "10, 10", expect = Expect.ACCEPTABLE, desc = "after")
    @Outcome(
            id = "(0|10|20), (0|10)",
            expect = Expect.ACCEPTABLE_INTERESTING,
            desc = "hidden while the writer is there")
    @State
    public static class SplitAndRegrown extends Race {
        /** Stores what is there before the race. */
        public SplitAndRegrown() {
            store(0, "abcdefghijklmnopqrst");
            store(1, "abcdefghij");
        }

        /** Writes. */
        @Actor
        public void write() {
            store(1, "abcdefghij-");
            drop(1, "abcdefghij-", 10);
            drop(0, "abcdefghijklmnopqrst", 10);
            store(1, "abcdefghijKLMNOP");
        }

        /** Reads. */
        @Actor
        public void read(II_Result r) {
            match("abcdefghijklmnopqrst");
            r.r1 = depth(0);
            r.r2 = depth(1);
        }

        /** Gives the index back. */
        @Arbiter
        public void over(II_Result r) {
            end();
        }
    }

    /** A run is cut and grows with other blocks. */
    @JCStressTest
    @Outcome(id = "8, 4", expect = Expect.ACCEPTABLE, desc = "before")
    @Outcome(id = "4, 4", expect = Expect.ACCEPTABLE, desc = "after")
    @Outcome(
            id = "0, 0|0, 4|8, 0|4, 0",
            expect = Expect.ACCEPTABLE_INTERESTING,
            desc = "hidden while the writer is there")
    @State
    public static class CutAndRegrown extends Race {
        /** Stores what is there before the race. */
        public CutAndRegrown() {
            store(0, "abcdefgh");
            store(1, "abcd");
        }

        /** Writes. */
        @Actor
        public void write() {
            drop(0, "abcdefgh", 4);
            store(1, "abcdwxyz");
        }

        /** Reads. */
        @Actor
        public void read(II_Result r) {
            match("abcdefgh");
            r.r1 = depth(0);
            r.r2 = depth(1);
        }

        /** Gives the index back. */
        @Arbiter
        public void over(II_Result r) {
            end();
        }
    }

    /** A run is cut, grows otherwise, and its child is used again at the same depth. */
    @JCStressTest
    @Outcome(id = "10, 8", expect = Expect.ACCEPTABLE, desc = "before")
    @Outcome(id = "(8|4), (8|4)", expect = Expect.ACCEPTABLE, desc = "between and after")
    @Outcome(
            id = "(0|4|8|10), (0|4|8)",
            expect = Expect.ACCEPTABLE_INTERESTING,
            desc = "hidden while the writer is there")
    @State
    public static class CutRegrownAndChild extends Race {
        /** Stores what is there before the race. */
        public CutRegrownAndChild() {
            store(1, "abcdefgh");
            store(0, "abcdefghij");
        }

        /** Writes. */
        @Actor
        public void write() {
            drop(0, "abcdefghij", 4);
            drop(1, "abcdefgh", 4);
            store(1, "abcdwxyzij");
        }

        /** Reads. */
        @Actor
        public void read(II_Result r) {
            match("abcdefghij");
            r.r1 = depth(0);
            r.r2 = depth(1);
        }

        /** Gives the index back. */
        @Arbiter
        public void over(II_Result r) {
            end();
        }
    }

    /** A run grows and gets a child that begins with the block asked for next. */
    @JCStressTest
    @Outcome(id = "4, 0", expect = Expect.ACCEPTABLE, desc = "the common ones")
    @Outcome(
            id = "0, 0",
            expect = Expect.ACCEPTABLE_INTERESTING,
            desc = "hidden while the writer is there")
    @State
    public static class GrownAndChild extends Race {
        /** Stores what is there before the race. */
        public GrownAndChild() {
            store(0, "abcd");
        }

        /** Writes. */
        @Actor
        public void write() {
            store(0, "abcdefghij");
        }

        /** Reads. */
        @Actor
        public void read(II_Result r) {
            match("abcdij");
            r.r1 = depth(0);
            r.r2 = depth(1);
        }

        /** Gives the index back. */
        @Arbiter
        public void over(II_Result r) {
            end();
        }
    }

    /** A run is freed and used again under another parent. */
    @JCStressTest
    @Outcome(id = "8, 3", expect = Expect.ACCEPTABLE, desc = "before")
    @Outcome(id = "3, 3", expect = Expect.ACCEPTABLE, desc = "after")
    @Outcome(
            id = "0, 0|0, 3|8, 0|3, 0",
            expect = Expect.ACCEPTABLE_INTERESTING,
            desc = "hidden while the writer is there")
    @State
    public static class UsedAgainElsewhere extends Race {
        /** Stores what is there before the race. */
        public UsedAgainElsewhere() {
            store(0, "abcdefgh");
            store(0, "abcpqrst");
            store(1, "abc");
            store(1, "ABCdefgh");
            store(1, "ABCxyz");
        }

        /** Writes. */
        @Actor
        public void write() {
            drop(0, "abcpqrst", 3);
            store(1, "ABCpqrst");
        }

        /** Reads. */
        @Actor
        public void read(II_Result r) {
            match("abcpqrst");
            r.r1 = depth(0);
            r.r2 = depth(1);
        }

        /** Gives the index back. */
        @Arbiter
        public void over(II_Result r) {
            end();
        }
    }

    /** A run is freed and used again under the same parent. */
    @JCStressTest
    @Outcome(id = "8, 3", expect = Expect.ACCEPTABLE, desc = "before")
    @Outcome(id = "3, (3|4)", expect = Expect.ACCEPTABLE, desc = "after")
    @Outcome(
            id = "0, 0|0, 3|0, 4|8, 0|3, 0",
            expect = Expect.ACCEPTABLE_INTERESTING,
            desc = "hidden while the writer is there")
    @State
    public static class UsedAgainHere extends Race {
        /** Stores what is there before the race. */
        public UsedAgainHere() {
            store(0, "abcdefgh");
            store(0, "abcpqrst");
            store(1, "abc");
        }

        /** Writes. */
        @Actor
        public void write() {
            drop(0, "abcpqrst", 3);
            store(1, "abcpxyzw");
        }

        /** Reads. */
        @Actor
        public void read(II_Result r) {
            match("abcpqrst");
            r.r1 = depth(0);
            r.r2 = depth(1);
        }

        /** Gives the index back. */
        @Arbiter
        public void over(II_Result r) {
            end();
        }
    }

    /** A slot is cleared and its next tenant holds the end of the prompt only. */
    @JCStressTest
    @Outcome(
            id = "12, (0|8|12)",
            expect = Expect.ACCEPTABLE,
            desc = "blocks of either tenant, each at its moment")
    @Outcome(
            id = "(0|8), (0|8|12)",
            expect = Expect.ACCEPTABLE_INTERESTING,
            desc = "hidden while the writer is there")
    @State
    public static class NewTenant extends Race {
        /** Stores what is there before the race. */
        public NewTenant() {
            store(1, "abcdefgh");
            store(0, "abcdefghijkl");
        }

        /** Writes. */
        @Actor
        public void write() {
            clear(1);
            eventApplied(1, -1);
            store(1, "abcdefghijkl");
        }

        /** Reads. */
        @Actor
        public void read(II_Result r) {
            match("abcdefghijkl");
            r.r1 = depth(0);
            r.r2 = depth(1);
        }

        /** Gives the index back. */
        @Arbiter
        public void over(II_Result r) {
            end();
        }
    }

    /** A thread that reads the number of an event sees what the event has changed. */
    @JCStressTest
    @Outcome(id = "-1, (0|4)", expect = Expect.ACCEPTABLE, desc = "number not seen")
    @Outcome(id = "7, 4", expect = Expect.ACCEPTABLE, desc = "number and blocks seen")
    @Outcome(id = "7, 0", expect = Expect.FORBIDDEN, desc = "number without its blocks")
    @State
    public static class SequencePublishes extends Race {
        /** Stores what is there before the race. */
        public SequencePublishes() {}

        /** Writes. */
        @Actor
        public void write() {
            store(0, "abcd");
            eventApplied(0, 7);
        }

        /** Reads. */
        @Actor
        public void read(II_Result r) {
            r.r1 = (int) appliedSequence(0);
            match("abcd");
            r.r2 = depth(0);
        }

        /** Gives the index back. */
        @Arbiter
        public void over(II_Result r) {
            end();
        }
    }
}

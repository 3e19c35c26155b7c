package io.kvasir.bench;

import io.kvasir.core.index.OverlapScores;
import io.kvasir.core.slots.LoadBoard;
import io.kvasir.core.slots.PotentialLoads;
import io.kvasir.core.slots.SlotTable;
import io.kvasir.core.slots.SlotTableConfig;

import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;

/**
 * Cost of the slot table with requests of 750 blocks, of which four on a worker share the first
 * 250, and four requests running per worker. Question answered: what does it cost to book a
 * request, to end it, and to ask for the loads of all workers?
 *
 * <p>{@code add} and {@code free} are prepared before each batch: only their wall time is theirs,
 * {@code cpu} has the preparation too. {@code addThenFree} is both, with CPU time.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(
        value = 2,
        jvmArgsAppend = {"-Xms1g", "-Xmx1g"})
@Warmup(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
public class SlotBenchmark {
    private static final int BLOCKS = 750;
    private static final int SHARED_BLOCKS = 250;
    private static final int GROUP = 4;
    private static final int REQUESTS = 1024;
    private static final int BATCH = 64;

    /** The table with four running requests per worker, and those to come. */
    @State(Scope.Thread)
    public static class Bookings {
        /** Worker slots. */
        @Param({"64"})
        public int workers;

        private final long[][] prompts = new long[REQUESTS][BLOCKS];
        private LoadBoard board;
        private SlotTable table;
        private OverlapScores scores;
        private PotentialLoads loads;
        private int running; // requests that run beside those measured
        private long next;
        private boolean batchBooked; // requests next..next+BATCH-1

        /** Draws the prompts and books four requests per worker. */
        @Setup
        public void fill() {
            final SplittableRandom random = new SplittableRandom(1337);
            for (int r = 0; r < REQUESTS; r++) {
                for (int i = 0; i < BLOCKS; i++) {
                    final boolean shared = i < SHARED_BLOCKS && r % GROUP != 0;
                    prompts[r][i] = shared ? prompts[r - 1][i] : random.nextLong();
                }
            }
            running = GROUP * workers;
            final int most = running + BATCH;
            board = new LoadBoard(workers);
            table =
                    new SlotTable(
                            new SlotTableConfig(workers, most, (long) most * BLOCKS, BLOCKS),
                            board);
            scores = new OverlapScores(workers);
            loads = new PotentialLoads(workers);
            for (next = 0; next < running; next++) {
                book(next);
            }
        }

        /** Frees the table. */
        @TearDown
        public void close() {
            table.close();
            board.close();
        }

        int book(long request) {
            final int slot = (int) (request / GROUP % workers);
            board.addActiveRequests(slot, 1);
            final long[] prompt = prompts[(int) (request % REQUESTS)];
            final int added = table.add(request, slot, prompt, BLOCKS, 0, 0);
            if (added < 0) {
                throw new IllegalStateException("request " + request + " was refused: " + added);
            }
            return added;
        }

        void end(long request) {
            if (!table.free(request)) {
                throw new IllegalStateException("request " + request + " was not running");
            }
        }

        boolean isBatchBooked() {
            return batchBooked;
        }

        int bookBatch() {
            int added = 0;
            for (int i = 0; i < BATCH; i++) {
                added += book(next + i);
            }
            batchBooked = true;
            return added;
        }

        void endBatch() {
            for (int i = 0; i < BATCH; i++) {
                end(next + i);
            }
            batchBooked = false;
        }
    }

    /** One request booked, the oldest ended. */
    @Benchmark
    public int addThenFree(Bookings state) {
        final int added = state.book(state.next);
        state.end(state.next++ - state.running);
        return added;
    }

    /** Loads of all workers with one more request, whose first blocks one of them uses. */
    @Benchmark
    public long potentialLoads(Bookings state) {
        final long[] prompt = state.prompts[(int) (state.next++ % state.running)]; // not booked
        state.table.potentialLoads(prompt, BLOCKS, 0, state.scores, state.loads);
        return state.loads.decodeBlocks(0);
    }

    /** Has the batch ended before it is booked. */
    @State(Scope.Thread)
    public static class Unbooked extends Bookings {
        /** Ends what the last batch booked. */
        @Setup(Level.Invocation)
        public void unbook() {
            if (isBatchBooked()) {
                endBatch();
            }
        }
    }

    /** Bookings only. */
    @Benchmark
    @OperationsPerInvocation(BATCH)
    public int add(Unbooked state) {
        return state.bookBatch();
    }

    /** Has the batch booked before it is ended. */
    @State(Scope.Thread)
    public static class Booked extends Bookings {
        /** Books what the next batch ends. */
        @Setup(Level.Invocation)
        public void book() {
            if (!isBatchBooked()) {
                bookBatch();
            }
        }
    }

    /** Endings only. */
    @Benchmark
    @OperationsPerInvocation(BATCH)
    public void free(Booked state) {
        state.endBatch();
    }
}

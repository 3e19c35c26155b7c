package io.kvasir.bench;

import com.sun.management.ThreadMXBean;

import io.kvasir.core.load.ActiveRequests;
import io.kvasir.core.load.ActiveRequestsConfig;
import io.kvasir.core.load.LoadBoard;
import io.kvasir.core.load.PotentialLoads;
import io.kvasir.core.radix.OverlapScores;

import org.openjdk.jmh.annotations.AuxCounters;
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

import java.lang.management.ManagementFactory;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;

/**
 * Cost of the table of active requests with requests of 750 blocks and four requests running per
 * worker. Question answered: what does it cost to book a request, to end it, and to ask for the
 * loads of all workers?
 *
 * <p>Prompts are of two kinds. {@code turns}: one of four system prompts of 32 blocks, then a
 * conversation whose requests run on one worker, each with the prompt of the one before but for its
 * last 100 blocks. {@code groups}: four on a worker share their first 250 blocks.
 *
 * <p>{@code threadCpuNs} over {@code operations} is the CPU time of the measuring thread for one
 * operation, without what prepares a batch.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(
        value = 2,
        jvmArgsAppend = {"-Xms1g", "-Xmx1g", "--enable-native-access=ALL-UNNAMED"})
@Warmup(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
public class SlotBenchmark {
    private static final int BLOCKS = 750;
    private static final int SHARED_BLOCKS = 250;
    private static final int SYSTEM_BLOCKS = 32;
    private static final int SYSTEM_PROMPTS = 4;
    private static final int TURN_BLOCKS = 100;
    private static final int GROUP = 4;
    private static final int REQUESTS = 1024;
    private static final int BATCH = 64;

    /** The table with four running requests per worker, and those to come. */
    @State(Scope.Thread)
    public static class Bookings {
        /** Worker slots. */
        @Param({"64"})
        public int workers;

        /** What prompts share. */
        @Param({"turns", "groups"})
        public String prompts;

        private final long[][] hashes = new long[REQUESTS][BLOCKS];
        private LoadBoard board;
        private ActiveRequests table;
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
                draw(hashes[r], r, random);
            }
            running = GROUP * workers;
            final int most = running + BATCH;
            board = new LoadBoard(workers);
            table =
                    new ActiveRequests(
                            new ActiveRequestsConfig(workers, most, (long) most * BLOCKS, BLOCKS),
                            board);
            scores = new OverlapScores(workers);
            loads = new PotentialLoads(workers);
            for (next = 0; next < running; next++) {
                book(next);
            }
        }

        private void draw(long[] prompt, int number, SplittableRandom random) {
            final boolean turns = prompts.equals("turns");
            final int turn = number % GROUP;
            int shared = 0;
            if (turn > 0) {
                shared = turns ? BLOCKS - TURN_BLOCKS : SHARED_BLOCKS;
                System.arraycopy(hashes[number - 1], 0, prompt, 0, shared);
            } else if (turns) {
                final int system = number / GROUP % SYSTEM_PROMPTS;
                for (; shared < SYSTEM_BLOCKS; shared++) {
                    prompt[shared] = (long) system * SYSTEM_BLOCKS + shared;
                }
            }
            for (int i = shared; i < BLOCKS; i++) {
                prompt[i] = random.nextLong();
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
            board.addProvisional(slot, 0, 0);
            final long[] prompt = hashes[(int) (request % REQUESTS)];
            final int added =
                    table.book(
                            number(request),
                            slot,
                            prompt,
                            BLOCKS,
                            0,
                            0,
                            0,
                            ActiveRequests.NO_DEADLINE);
            if (added < 0) {
                throw new IllegalStateException("request " + request + " was refused: " + added);
            }
            return added;
        }

        /** Entries are used in turn, so each ends before its next request. */
        private long number(long request) {
            final int entries = table.config().maxRequests();
            return (request / entries + 1) << Integer.SIZE | request % entries;
        }

        void end(long request) {
            if (!table.free(number(request))) {
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

    /** CPU time of the measuring thread. */
    @AuxCounters(AuxCounters.Type.EVENTS)
    @State(Scope.Thread)
    public static class Cpu {
        private static final ThreadMXBean THREADS =
                (ThreadMXBean) ManagementFactory.getThreadMXBean();

        /** Nanoseconds of all operations. */
        public long threadCpuNs;

        /** Operations that were counted. */
        public long operations;

        long start() {
            return THREADS.getCurrentThreadCpuTime();
        }

        void stop(long started, int count) {
            threadCpuNs += THREADS.getCurrentThreadCpuTime() - started;
            operations += count;
        }
    }

    /** One request booked, the oldest ended; a batch of these. */
    @Benchmark
    @OperationsPerInvocation(BATCH)
    public int addThenFree(Bookings state, Cpu cpu) {
        final long started = cpu.start();
        int added = 0;
        for (int i = 0; i < BATCH; i++) {
            added += state.book(state.next);
            state.end(state.next++ - state.running);
        }
        cpu.stop(started, BATCH);
        return added;
    }

    /** Loads of all workers with one more request like those that run. */
    @Benchmark
    @OperationsPerInvocation(BATCH)
    public long potentialLoads(Bookings state, Cpu cpu) {
        final long started = cpu.start();
        long blocks = 0;
        for (int i = 0; i < BATCH; i++) {
            // not booked
            final long[] prompt = state.hashes[(int) (state.next++ % state.running % REQUESTS)];
            state.table.potentialLoads(prompt, BLOCKS, 0, state.scores, state.loads);
            blocks += state.loads.decodeBlocks(0);
        }
        cpu.stop(started, BATCH);
        return blocks;
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
    public int add(Unbooked state, Cpu cpu) {
        final long started = cpu.start();
        final int added = state.bookBatch();
        cpu.stop(started, BATCH);
        return added;
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
    public void free(Booked state, Cpu cpu) {
        final long started = cpu.start();
        state.endBatch();
        cpu.stop(started, BATCH);
    }
}

package io.kvasir.pipeline.events;

import static io.kvasir.pipeline.source.Messages.cleared;
import static io.kvasir.pipeline.source.Messages.pack;
import static io.kvasir.pipeline.source.Messages.range;
import static io.kvasir.pipeline.source.Messages.removed;
import static io.kvasir.pipeline.source.Messages.stored;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.ring.WriterThread;
import io.kvasir.pipeline.snapshot.SlotMark;
import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.RemovalRule;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.testsupport.Latches;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.zip.CRC32C;

/**
 * One slot with its stream, a small ring and the writer behind it, all on one thread: snapshots are
 * asked for at any moment, the ring is full, messages are lost, the engine restarts, the slot is
 * cleared, retired, found damaged. A snapshot that is called complete is what its engine held after
 * its message; all end.
 */
class SlotSnapshotModelTest {
    private static final int TRIALS = Trials.of(12, 200);
    private static final int STEPS = 150;
    private static final int SLOT = 1;
    private static final int BLOCK = 4;
    private static final int PROMPTS = 12;
    private static final int MOST_BLOCKS = 300;

    @Tag("trials")
    @Test
    void aSnapshotThatIsCalledCompleteIsWhatTheEngineHeld() throws Exception {
        final long seed = Seeds.next("SlotSnapshotModelTest");
        final PrefixIndexConfig config = new PrefixIndexConfig(2, 1 << 13, 1 << 13);
        try (PrefixIndex restored = new PrefixIndex(config);
                IndexPipeline into = new IndexPipeline(IndexPipelineConfig.defaults(), restored)) {
            for (int trial = 0; trial < TRIALS; trial++) {
                try (Model model = new Model(new Random(seed + trial), into, restored)) {
                    model.run(10 + trial % STEPS);
                } catch (RuntimeException | AssertionError e) {
                    throw new AssertionError("trial " + trial + " of " + seed, e);
                }
            }
        }
    }

    /** One run. */
    private static final class Model implements AutoCloseable {
        private final Random random;
        private final IndexPipeline into;
        private final PrefixIndex restored;
        private final PrefixIndex index =
                new PrefixIndex(new PrefixIndexConfig(2, 1 << 13, 1 << 13));
        private final WriterThread thread = new WriterThread("model", index.writer());
        private final SpareBatches spares = new SpareBatches(64, 1 << 14);
        private final IndexWriter writer;
        private final Deque<IndexCommand> ring = new ArrayDeque<>();
        private final List<SlotSnapshot> snapshots = new ArrayList<>();
        private final boolean replayable;
        private int generation;
        private EngineStream stream;
        private boolean connected;
        private boolean clearDue;
        private final List<byte[]> said = new ArrayList<>(); // of this life of the engine
        private final int[] cache = new int[PROMPTS]; // blocks of each prompt
        private final Map<Long, Set<Long>> truths = new HashMap<>(); // after each message

        Model(Random random, IndexPipeline into, PrefixIndex restored) {
            this.random = random;
            this.into = into;
            this.restored = restored;
            this.replayable = random.nextBoolean();
            this.writer =
                    new IndexWriter(
                            index,
                            null,
                            spares,
                            thread,
                            new WriterMailbox(),
                            1 + random.nextInt(6),
                            _ -> {});
            open();
        }

        @Override
        public void close() {
            thread.abandon();
            index.close();
        }

        private void open() {
            final int tenant = generation;
            final SourceConfig config = SourceConfig.of("w", SLOT, BLOCK, "tcp://h:1");
            stream =
                    new EngineStream(
                            replayable ? config.withReplayEndpoint("direct") : config,
                            batch -> offer(batch, tenant));
            connected = false;
            connect();
        }

        private boolean offer(KvBatch batch, int tenant) {
            if (ring.size() == 4) {
                return false;
            }
            final IndexCommand command = new IndexCommand();
            command.batch = spares.take();
            command.batch.copyFrom(batch);
            command.generation = tenant;
            return ring.add(command);
        }

        void run(int steps) throws Exception {
            for (int step = 0; step < steps; step++) {
                switch (random.nextInt(32)) {
                    case 0 -> retire();
                    case 1 -> restartEngine();
                    case 2 -> disconnect();
                    case 3 -> clear();
                    case 4 -> fail();
                    case 5, 6 -> connect();
                    case 7, 8, 9 -> replay(random.nextInt(3) > 0);
                    case 10, 11, 12 -> ask();
                    case 13 -> snapshots.forEach(SlotSnapshot::close);
                    case 14 -> stream.tick();
                    case 15, 16, 17, 18 -> writer.work();
                    case 19, 20, 21, 22, 23 -> poll();
                    default -> say(random.nextInt(10) > 0);
                }
                look();
            }
            settle();
        }

        private void settle() throws Exception {
            disconnect(); // else what was not answered is asked for again only in a while
            connect();
            drain();
            clearDue = true;
            for (int i = 0; i < 6; i++) {
                say(true);
                drain();
                replay(true);
                drain();
                stream.tick();
            }
            assertEquals(IndexState.EXACT, stream.state(), () -> "" + stream.status());
            assertEquals(names(), held(index, SLOT));
            assertTrue(snapshots.isEmpty(), "one has not ended");
        }

        private void drain() throws Exception {
            while (!ring.isEmpty()) {
                poll();
            }
            while (writer.work()) {
                look();
            }
            look();
        }

        private void poll() {
            if (!ring.isEmpty()) {
                writer.onEvent(ring.poll(), 0, true);
            }
        }

        private void ask() {
            final SlotSnapshot snapshot = new SlotSnapshot(SLOT, generation, () -> true, () -> {});
            snapshots.add(snapshot);
            writer.ask(snapshot);
        }

        private void look() throws Exception {
            final List<SlotSnapshot> over =
                    snapshots.stream().filter(snapshot -> snapshot.outcome() != null).toList();
            snapshots.removeAll(over);
            for (SlotSnapshot snapshot : over) {
                final SlotMark mark = snapshot.mark();
                if (snapshot.outcome() == SlotSnapshot.Outcome.WHOLE) {
                    assertNotNull(mark);
                    check(snapshot, mark);
                }
            }
        }

        private void check(SlotSnapshot snapshot, SlotMark mark) throws Exception {
            try (SlotLoad load = into.load(SLOT)) {
                for (byte[] chunk = snapshot.take(); chunk != null; chunk = snapshot.take()) {
                    assertTrue(load.records(chunk));
                }
                assertTrue(load.finish(mark, RemovalRule.PHYSICAL), "it contradicts itself");
            }
            if (mark.complete() && truths.containsKey(mark.content())) {
                assertEquals(truths.get(mark.content()), held(restored, SLOT));
            }
            final CountDownLatch swept = new CountDownLatch(1);
            into.retire(SLOT, swept::countDown);
            Latches.await(swept);
        }

        private void retire() {
            stream.close();
            writer.retire(SLOT, () -> {});
            generation++;
            open();
        }

        private void fail() {
            if (random.nextInt(4) == 0) {
                writer.damaged();
            } else if (random.nextInt(8) == 0 && !ring.isEmpty()) {
                final RuntimeException error = new IllegalStateException("a test");
                error.setStackTrace(new StackTraceElement[0]); // the log has it each time
                writer.handleEventException(error, 0, ring.poll());
            }
        }

        /** The engine is made to drop its cache, and says so later. */
        private void clear() {
            Arrays.fill(cache, 0);
            clearDue = true;
            stream.clear();
            truths.clear(); // until it says so, the slot has less
        }

        private void restartEngine() {
            disconnect();
            said.clear();
            Arrays.fill(cache, 0);
            clearDue = false;
            while (random.nextInt(3) > 0) {
                say(true);
            }
        }

        private void connect() {
            if (!connected) {
                connected = true;
                stream.onConnected();
            }
        }

        private void disconnect() {
            if (connected) {
                connected = false;
                stream.onDisconnected("cut");
            }
        }

        private void say(boolean arrives) {
            final byte[] message = pack(List.of(random.nextDouble(), List.of(change()), 0));
            truths.put(content(message), names());
            said.add(message);
            if (connected && arrives) {
                stream.onMessage(said.size() - 1, message);
            }
        }

        private Object change() {
            if (clearDue || random.nextInt(40) == 0) {
                clearDue = false;
                Arrays.fill(cache, 0);
                return cleared();
            }
            final int prompt = random.nextInt(PROMPTS);
            final int before = cache[prompt];
            if (before > MOST_BLOCKS / 2) {
                cache[prompt] = random.nextInt(before);
                return removed(range(name(prompt, cache[prompt]), name(prompt, before - 1)));
            }
            cache[prompt] += 1 + random.nextInt(MOST_BLOCKS / 2);
            final int first = name(prompt, before);
            final int last = name(prompt, cache[prompt] - 1);
            return stored(
                    range(first, last),
                    before == 0 ? null : first - 1,
                    range(first * BLOCK, last * BLOCK + BLOCK - 1),
                    BLOCK);
        }

        private static int name(int prompt, int block) {
            return (prompt + 1) * 1_000 + block;
        }

        private Set<Long> names() {
            final Set<Long> names = new TreeSet<>();
            for (int prompt = 0; prompt < PROMPTS; prompt++) {
                for (int block = 0; block < cache[prompt]; block++) {
                    names.add((long) name(prompt, block));
                }
            }
            return names;
        }

        private static long content(byte[] message) {
            final CRC32C crc = new CRC32C();
            crc.update(message);
            return crc.getValue() << Integer.SIZE | message.length;
        }

        private void replay(boolean whole) {
            for (int tries = 0; tries < 10 && connected; tries++) {
                final long from = stream.replayFrom();
                if (from == EngineStream.NO_REPLAY) {
                    return;
                }
                EngineStream.ReplayStep step = EngineStream.ReplayStep.CONTINUE;
                for (int i = (int) from; i < said.size(); i++) {
                    if (!whole && random.nextInt(4) == 0) {
                        stream.replayFailed();
                        return;
                    }
                    step = stream.onReplayed(i, said.get(i));
                    if (step == EngineStream.ReplayStep.RETRY && whole) {
                        poll();
                        i--;
                    } else if (step != EngineStream.ReplayStep.CONTINUE) {
                        break;
                    }
                }
                if (step == EngineStream.ReplayStep.RETRY) {
                    stream.replayFailed();
                } else if (step == EngineStream.ReplayStep.CONTINUE) {
                    stream.replayEnded();
                }
            }
        }

        private static Set<Long> held(PrefixIndex of, int slot) {
            final Set<Long> names = new TreeSet<>();
            of.forEach(
                    (at, name, sequence, copies) -> {
                        if (at == slot) {
                            names.add(name);
                        }
                    });
            return names;
        }
    }
}

package io.kvasir.pipeline.source;

import static io.kvasir.pipeline.source.Messages.cleared;
import static io.kvasir.pipeline.source.Messages.pack;
import static io.kvasir.pipeline.source.Messages.range;
import static io.kvasir.pipeline.source.Messages.removed;
import static io.kvasir.pipeline.source.Messages.stored;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;

/** A router and an engine that each begin anew at any moment, over a line that loses messages. */
class RestoredStreamModelTest {
    private static final int TRIALS = Trials.of(250, 5_000);
    private static final int STEPS = 60;
    private static final int BLOCK = 4;
    private static final int NAMES = 30;

    @Tag("trials")
    @Test
    void whatIsExactIsTrueAndInTheEndAllIs() {
        final long seed = Seeds.next("RestoredStreamModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            final Model model = new Model(new Random(seed + trial));
            try {
                model.run();
            } finally {
                model.index.close();
            }
        }
    }

    /** How far the slot is, as a snapshot or the mapped index has it. */
    private record Mark(long number, long content, boolean complete) {}

    private static final class Model {
        private final Random random;
        final boolean replayable;
        private final int buffer; // messages that the engine sends again
        private final List<byte[]> said = new ArrayList<>(); // of this life, from number 0 on
        private final Set<Long> cache = new TreeSet<>();
        final PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(1, 4_096, 4_096));
        private IndexApplier applier;
        private EngineStream stream;
        private boolean connected;
        private boolean full;
        private Mark mark;
        private long nowNs = 1;

        Model(Random random) {
            this.random = random;
            replayable = random.nextBoolean();
            buffer = random.nextBoolean() ? Integer.MAX_VALUE : 4 + random.nextInt(8);
            restore();
        }

        private void restore() {
            final Mark from = mark;
            final StreamMemory known = stream == null ? null : stream.memory();
            if (stream != null) {
                stream.close();
            }
            applier = new IndexApplier(index);
            if (from == null) {
                final KvBatch empty = new KvBatch();
                empty.reset(0, -1, CopyRule.LAST_COPY, false, ApplyListener.NONE);
                empty.addCleared();
                applier.offer(empty);
            }
            final SourceConfig config = SourceConfig.of("w", 0, BLOCK, "tcp://h:1");
            stream =
                    new EngineStream(
                            replayable ? config.withReplayEndpoint("direct") : config,
                            this::offer,
                            () -> nowNs);
            if (from != null) {
                stream.startAfter(
                        new StreamStart(
                                from.number,
                                from.content,
                                from.complete,
                                index.missingBlocks(0),
                                known));
            }
            connected = false;
        }

        private boolean offer(KvBatch batch) {
            if (full) {
                return false;
            }
            if (batch.isOfMessage()) {
                mark = new Mark(batch.sequence(), batch.content(), batch.isComplete());
            } else if (mark != null && mark.number != batch.sequence()) {
                mark = null;
            }
            return applier.offer(batch);
        }

        void run() {
            for (int step = 0; step < STEPS; step++) {
                nowNs += TimeUnit.MILLISECONDS.toNanos(random.nextInt(200));
                switch (random.nextInt(16)) {
                    case 0 -> restore();
                    case 1 -> restartEngine();
                    case 2, 3 -> connect();
                    case 4 -> disconnect();
                    case 5, 6 -> replay(random.nextInt(3) > 0);
                    case 7 -> stream.tick();
                    case 8 -> full = random.nextInt(3) == 0;
                    default -> say(random.nextInt(8) > 0);
                }
            }
            full = false;
            if (!connected) {
                connect();
            }
            for (int i = 0; i < 30; i++) {
                nowNs += TimeUnit.SECONDS.toNanos(20);
                stream.tick();
                replay(true);
                say(true);
            }
            if (replayable && buffer == Integer.MAX_VALUE) {
                assertEquals(IndexState.EXACT, stream.state(), () -> "" + stream.status());
                assertEquals(cache, held());
            }
        }

        private void restartEngine() {
            final int before = said.size();
            said.clear();
            cache.clear();
            disconnect();
            final boolean asFar = random.nextBoolean(); // with the numbers that it would have had
            while (asFar ? said.size() < before : random.nextInt(3) > 0) {
                say(true);
            }
            if (random.nextBoolean()) {
                connect();
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
            final int name = 1 + random.nextInt(NAMES);
            final byte[] message;
            if (random.nextInt(20) == 0) {
                cache.clear();
                message = message(cleared());
            } else if (cache.remove((long) name)) {
                message = message(removed(List.of(name)));
            } else {
                cache.add((long) name);
                message =
                        message(
                                stored(
                                        List.of(name),
                                        null,
                                        range(name * 10, name * 10 + 3),
                                        BLOCK));
            }
            said.add(message);
            final int number = said.size() - 1;
            if (connected && arrives) {
                stream.onMessage(number, message);
            }
            if (connected && arrives && stream.state() == IndexState.EXACT) {
                assertEquals(cache, held(), "EXACT");
            }
        }

        /** No two are equal. */
        private byte[] message(Object event) {
            return pack(List.of(random.nextDouble(), List.of(event), 0));
        }

        /** Never 1: that would be the first of an engine that counts from there. */
        private int oldest() {
            final int oldest = Math.max(0, said.size() - buffer);
            return oldest == 1 ? 0 : oldest;
        }

        private void replay(boolean whole) {
            for (int tries = 0; tries < 10 && connected; tries++) {
                final long from = stream.replayFrom();
                if (from == EngineStream.NO_REPLAY) {
                    return;
                }
                EngineStream.ReplayStep step = EngineStream.ReplayStep.CONTINUE;
                for (int i = Math.max((int) from, oldest()); i < said.size(); i++) {
                    if (!whole && random.nextInt(4) == 0) {
                        stream.replayFailed();
                        return;
                    }
                    step = stream.onReplayed(i, said.get(i));
                    if (step == EngineStream.ReplayStep.RETRY) {
                        stream.replayFailed();
                        return;
                    }
                    if (step == EngineStream.ReplayStep.STOP) {
                        break;
                    }
                }
                if (step == EngineStream.ReplayStep.CONTINUE) {
                    stream.replayEnded();
                }
            }
        }

        private Set<Long> held() {
            final Set<Long> names = new TreeSet<>();
            index.forEach((slot, name, sequence, copies) -> names.add(name));
            return names;
        }
    }
}

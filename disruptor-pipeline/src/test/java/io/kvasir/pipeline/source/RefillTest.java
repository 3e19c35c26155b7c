package io.kvasir.pipeline.source;

import static io.kvasir.pipeline.source.Messages.batch;
import static io.kvasir.pipeline.source.Messages.cleared;
import static io.kvasir.pipeline.source.Messages.range;
import static io.kvasir.pipeline.source.Messages.removed;
import static io.kvasir.pipeline.source.Messages.stored;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.CapacityRule;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.events.IndexPipelineConfig;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.KvEventSink;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;

/** A worker whose blocks did not fit gets them back by itself when there is room. */
class RefillTest {
    private static final int SLOT = 1;
    private static final int OTHER = 2;
    private static final int BLOCK = 4;
    private static final int LIMIT = 100;

    private final PrefixIndex index =
            new PrefixIndex(new PrefixIndexConfig(4, LIMIT, LIMIT).with(CapacityRule.EVICT));
    private final AtomicLong nowNs = new AtomicLong(1);

    @AfterEach
    void close() {
        index.close();
    }

    private static byte[] store(int name) {
        return batch(stored(List.of(name), null, range(name * 10, name * 10 + 3), BLOCK));
    }

    private static byte[] storeBehind(int parent, int name) {
        return batch(stored(List.of(name), parent, range(name * 10, name * 10 + 3), BLOCK));
    }

    private Set<Long> held(int slot) {
        final Set<Long> names = new HashSet<>();
        index.forEach(
                (s, name, sequence, copies) -> {
                    if (s == slot) {
                        names.add(name);
                    }
                });
        return names;
    }

    private EngineStream stream(int slot, String replay) {
        return stream(slot, replay, applier);
    }

    private EngineStream stream(int slot, String replay, KvEventSink sink) {
        final SourceConfig config = SourceConfig.of("w" + slot, slot, BLOCK, "");
        return new EngineStream(
                replay == null ? config : config.withReplayEndpoint(replay), sink, nowNs::get);
    }

    private final IndexApplier applier = new IndexApplier(index);
    private final NarrowSink sink = new NarrowSink(applier);

    /** A worker whose older blocks are evicted by another one, which then goes. */
    private List<byte[]> crowdOut(EngineStream stream, EngineStream other) {
        final List<byte[]> sent = new ArrayList<>();
        for (int i = 0; i < 80; i++) {
            sent.add(i % 4 == 0 ? store(1 + i) : storeBehind(i, 1 + i));
            stream.onMessage(i, sent.getLast());
        }
        for (int i = 0; i < 60; i++) {
            other.onMessage(i, store(1_001 + i));
        }
        assertEquals(IndexState.DEGRADED, stream.state());
        assertTrue(index.missingBlocks(SLOT) > 0);
        assertEquals(1, stream.credit(0.5));
        for (int i = 0; i < 60; i++) {
            other.onMessage(60 + i, batch(removed(List.of(1_001 + i))));
        }
        assertEquals(0, index.heldBlocks(OTHER));
        return sent;
    }

    @Test
    void whatIsEvictedBeforeTheFirstMessageOfARestoredSlotComesBack() {
        final EngineStream before = stream(SLOT, "direct");
        final List<byte[]> sent = new ArrayList<>();
        for (int i = 0; i < 80; i++) {
            sent.add(store(1 + i));
            before.onMessage(i, sent.getLast());
        }
        final IndexApplier next = new IndexApplier(index); // as after a restart
        final EngineStream other = stream(OTHER, null, next);
        for (int i = 0; i < 40; i++) {
            other.onMessage(i, store(1_001 + i)); // some after the restore, before the stream
        }
        final EngineStream stream = stream(SLOT, "direct", next);
        stream.startAfter(new StreamStart(79, 0, true, 0, before.memory()));
        stream.onCaughtUp();
        assertEquals(IndexState.DEGRADED, stream.state());
        final long missing = index.missingBlocks(SLOT);
        for (int i = 40; i < 50; i++) {
            other.onMessage(i, store(1_001 + i));
        }
        assertTrue(index.missingBlocks(SLOT) > missing);
        assertEquals(index.missingBlocks(SLOT), stream.status().missingBlocks());
        assertEquals(IndexCause.INDEX_FULL, stream.status().cause());

        for (int i = 0; i < 50; i++) {
            other.onMessage(50 + i, batch(removed(List.of(1_001 + i))));
        }
        awaitRefill(stream);
        for (int i = 0; i < 80; i++) {
            stream.onReplayed(i, sent.get(i));
        }
        stream.replayEnded();
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(80, index.heldBlocks(SLOT));
    }

    @Test
    void whatWasEvictedComesBackBesideLiveMessages() {
        final EngineStream stream = stream(SLOT, "direct");
        final List<byte[]> sent = crowdOut(stream, stream(OTHER, null));
        final Set<Long> before = held(SLOT);
        stream.tick();
        assertEquals(EngineStream.NO_REPLAY, stream.replayFrom());
        nowNs.addAndGet(TimeUnit.SECONDS.toNanos(6));
        stream.tick();

        assertEquals(0, stream.replayFrom());
        assertEquals(IndexState.DEGRADED, stream.state());
        for (int i = 0; i < 40; i++) {
            stream.onReplayed(i, sent.get(i));
            assertTrue(held(SLOT).containsAll(before));
        }
        sent.add(store(81)); // live, and seen at once
        stream.onMessage(80, sent.get(80));
        assertTrue(held(SLOT).contains(81L));
        for (int i = 40; i < 70; i++) {
            stream.onReplayed(i, sent.get(i));
        }
        stream.replayEnded(); // as an engine does that had no more when it was asked
        assertEquals(70, stream.replayFrom());
        for (int i = 70; i < 81; i++) {
            stream.onReplayed(i, sent.get(i));
        }
        sent.add(batch(removed(List.of(81))));
        stream.onMessage(81, sent.get(81));
        stream.replayEnded();

        assertEquals(EngineStream.NO_REPLAY, stream.replayFrom());
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(80, index.heldBlocks(SLOT));
        assertEquals(0, index.missingBlocks(SLOT));
        assertEquals(0, stream.status().unknownParents());
    }

    /** A sink that has no room for a while. */
    private static final class NarrowSink implements KvEventSink {
        private final IndexApplier applier;
        private int refusals;

        NarrowSink(IndexApplier applier) {
            this.applier = applier;
        }

        @Override
        public boolean offer(KvBatch batch) {
            if (refusals > 0) {
                refusals--;
                return false;
            }
            return applier.offer(batch);
        }

        @Override
        public boolean hasRoom(int slot) {
            return applier.hasRoom(slot);
        }

        @Override
        public long mostBlocks() {
            return applier.mostBlocks();
        }
    }

    /** Lets the time pass after which the engine is asked for all. */
    private void awaitRefill(EngineStream stream) {
        stream.tick();
        nowNs.addAndGet(TimeUnit.SECONDS.toNanos(6));
        stream.tick();
        assertEquals(0, stream.replayFrom());
    }

    /** Replays all to a stream whose refill is due; the last try to report it finds no room. */
    private void replayAll(EngineStream stream, List<byte[]> sent) {
        awaitRefill(stream);
        for (int i = 0; i < sent.size(); i++) {
            stream.onReplayed(i, sent.get(i));
        }
        sink.refusals = 2; // this one, and the next message's first
        stream.replayEnded();
    }

    @Test
    void aPartThatFoundNoRoomIsReportedAsItIsThen() {
        final EngineStream stream = stream(SLOT, "direct", sink);
        final List<byte[]> sent = crowdOut(stream, stream(OTHER, null));
        replayAll(stream, sent);
        stream.onMessage(80, batch(removed(List.of(1, 80)))); // a root, and the last of a chain
        assertFalse(held(SLOT).contains(80L));
        stream.tick();
        assertFalse(held(SLOT).contains(1L));
        assertFalse(held(SLOT).contains(80L));
        assertEquals(78, index.heldBlocks(SLOT));
        assertEquals(0, index.missingBlocks(SLOT));
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void soItIsWithTheCopiesOfABlock() {
        final EngineStream stream = stream(SLOT, "direct", sink);
        final List<byte[]> sent = crowdOut(stream, stream(OTHER, null));
        for (int i = 0; i < 2; i++) {
            sent.add(store(77)); // a root: two copies more
            stream.onMessage(80 + i, sent.getLast());
        }
        replayAll(stream, sent);
        stream.onMessage(82, batch(removed(List.of(77))));
        stream.onMessage(83, batch(removed(List.of(77))));
        stream.tick();
        stream.onMessage(84, batch(removed(List.of(77))));
        assertFalse(held(SLOT).contains(77L));
        assertEquals(79, index.heldBlocks(SLOT));
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aClearBeforeItLeavesWhatWasStoredSince() {
        final EngineStream stream = stream(SLOT, "direct", sink);
        replayAll(stream, crowdOut(stream, stream(OTHER, null)));
        stream.onMessage(80, batch(cleared()));
        stream.onMessage(81, store(500));
        stream.tick();
        assertEquals(Set.of(500L), held(SLOT));
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aClearByTheCallerEndsIt() {
        final EngineStream stream = stream(SLOT, "direct", sink);
        replayAll(stream, crowdOut(stream, stream(OTHER, null)));
        sink.refusals = 0;
        stream.clear();
        stream.tick();
        assertEquals(Set.of(), held(SLOT));
    }

    @Test
    void blocksBehindAHoleComeBackWithoutTheHole() {
        final EngineStream stream = stream(SLOT, "direct");
        final List<byte[]> sent = crowdOut(stream, stream(OTHER, null)); // 1-2-3-4 are evicted
        assertFalse(held(SLOT).contains(1L));
        sent.add(batch(removed(List.of(2, 3))));
        stream.onMessage(80, sent.get(80));
        awaitRefill(stream);
        for (int i = 0; i < sent.size(); i++) {
            stream.onReplayed(i, sent.get(i));
        }
        stream.replayEnded();
        assertEquals(78, index.heldBlocks(SLOT));
        assertTrue(held(SLOT).containsAll(Set.of(1L, 4L)));
        assertFalse(held(SLOT).contains(2L) || held(SLOT).contains(3L));
        assertEquals(IndexState.EXACT, stream.state());
        stream.onMessage(81, storeBehind(4, 500));
        assertEquals(79, index.heldBlocks(SLOT));
        assertEquals(0, stream.status().unknownParents());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aReplayWithoutTheBeginningIsOfNoUse() {
        final EngineStream stream = stream(SLOT, "direct");
        final List<byte[]> sent = crowdOut(stream, stream(OTHER, null));
        final Set<Long> before = held(SLOT);
        awaitRefill(stream);

        assertEquals(EngineStream.ReplayStep.STOP, stream.onReplayed(5, sent.get(5)));
        assertEquals(EngineStream.NO_REPLAY, stream.replayFrom());
        assertEquals(before, held(SLOT));
        assertEquals(IndexState.DEGRADED, stream.state());
        nowNs.addAndGet(TimeUnit.MINUTES.toNanos(1));
        stream.tick();
        assertEquals(0, stream.replayFrom());
    }

    /** What an engine's socket drops on its way is asked for again. */
    @Test
    void aHoleInAReplayIsAskedForAgain() {
        final EngineStream stream = stream(SLOT, "direct");
        final List<byte[]> sent = crowdOut(stream, stream(OTHER, null));
        awaitRefill(stream);
        for (int i = 0; i < 10; i++) {
            stream.onReplayed(i, sent.get(i));
        }
        assertEquals(EngineStream.ReplayStep.STOP, stream.onReplayed(15, sent.get(15)));
        assertEquals(10, stream.replayFrom());
        stream.onReplayed(10, sent.get(10));
        assertTrue(stream.hasReplayed()); // it breaks off
        assertEquals(11, stream.replayFrom());
        assertFalse(stream.hasReplayed());
        for (int i = 11; i < sent.size(); i++) {
            stream.onReplayed(i, sent.get(i));
        }
        stream.replayEnded();
        assertEquals(80, index.heldBlocks(SLOT));
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aLostMessageEndsARefill() {
        final EngineStream stream = stream(SLOT, "direct");
        final List<byte[]> sent = crowdOut(stream, stream(OTHER, null));
        awaitRefill(stream);
        stream.onReplayed(0, sent.getFirst());
        stream.onMessage(85, store(86));

        assertEquals(IndexState.DEGRADED, stream.state()); // it still lacks blocks
        assertEquals(EngineStream.ReplayStep.STOP, stream.onReplayed(1, sent.get(1)));
        assertEquals(79, stream.replayFrom());
    }

    @Test
    void withoutReplayTheEndOfTheMissingBlocksIsTheEndOfIt() {
        final EngineStream stream = stream(SLOT, null);
        crowdOut(stream, stream(OTHER, null));
        for (int i = 0; i < 80; i++) {
            stream.onMessage(80 + i, batch(removed(List.of(80 - i))));
        }
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(0, stream.status().unknownRemovals());
    }

    @Tag("integration") // waits five seconds, as a refill does
    @Test
    void aRealReplaySocketGivesBackWhatAnotherWorkerHasTakenAway() {
        try (Publisher engine = new Publisher();
                IndexPipeline pipeline =
                        new IndexPipeline(
                                IndexPipelineConfig.defaults()
                                        .withZmq(
                                                ZmqConfig.defaults().withReplays(4, 2_000, 3, 100)),
                                index)) {
            final EventSource source =
                    pipeline.openZmq(
                            SourceConfig.of("w", SLOT, BLOCK, engine.endpoint())
                                    .withReplayEndpoint(engine.replayEndpoint()));
            engine.awaitSubscriber();
            for (int i = 0; i < 80; i++) {
                engine.publish(i % 4 == 0 ? store(1 + i) : storeBehind(i, 1 + i));
            }
            await("80 blocks", () -> index.heldBlocks(SLOT) == 80, source);
            final EngineStream other = pipeline.openDirect(SourceConfig.of("o", OTHER, BLOCK, ""));
            for (int i = 0; i < 60; i++) {
                other.onMessage(i, store(1_001 + i));
            }
            await("crowded", () -> index.missingBlocks(SLOT) > 0, source);
            await("crowd applied", other::ready, source);
            final long least = index.heldBlocks(SLOT);
            final AtomicBoolean undercounted = new AtomicBoolean();
            for (int i = 0; i < 60; i++) {
                other.onMessage(60 + i, batch(removed(List.of(1_001 + i))));
            }
            await(
                    "all blocks again",
                    () -> {
                        undercounted.compareAndSet(false, index.heldBlocks(SLOT) < least);
                        return index.missingBlocks(SLOT) == 0 && source.state() == IndexState.EXACT;
                    },
                    source);
            assertEquals(80, index.heldBlocks(SLOT));
            assertTrue(!undercounted.get(), "undercounted meanwhile");
            engine.publish(store(81));
            await("live again", () -> index.heldBlocks(SLOT) == 81, source);
        }
    }

    private static void await(String what, BooleanSupplier condition, EventSource shown) {
        Eventually.holds(() -> what + " " + shown.status(), condition);
    }
}

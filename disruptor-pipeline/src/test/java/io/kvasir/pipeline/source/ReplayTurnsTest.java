package io.kvasir.pipeline.source;

import static io.kvasir.pipeline.source.Messages.batch;
import static io.kvasir.pipeline.source.Messages.range;
import static io.kvasir.pipeline.source.Messages.stored;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.events.IndexPipelineConfig;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.FreePorts;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Replays beside other sources: their number, what waits meanwhile, and what does not. */
@Order(1) // takes long: begins first, beside the others
class ReplayTurnsTest {
    private static final int SLOT = 1;
    private static final int OTHER = 2;
    private static final int BLOCK = 4;

    private final PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(32, 4_096, 4_096));
    private IndexPipeline pipeline;

    @AfterEach
    void close() {
        pipeline.close();
        index.close();
    }

    private void pipeline(int ringSize, ZmqConfig zmq) {
        pipeline =
                new IndexPipeline(
                        IndexPipelineConfig.defaults()
                                .withRingSize(ringSize)
                                .withZmq(zmq.withPollers(1)),
                        index);
    }

    private static byte[] store(int hash) {
        return batch(stored(List.of(hash), null, range(hash * 10, hash * 10 + 3), BLOCK));
    }

    private static void await(String what, BooleanSupplier condition, EventSource... shown) {
        Eventually.holds(
                () -> what + Arrays.stream(shown).map(EventSource::status).toList(), condition);
    }

    @Test
    void onlySoManyReplaysAreUnderWayAtATime() {
        final int sources = 12;
        final int atATime = 3;
        pipeline(1_024, ZmqConfig.defaults().withReplays(atATime, 600_000, 3, 0));
        final List<EventSource> opened = new ArrayList<>();
        try (RawPublisher events = new RawPublisher();
                RawPublisher replays =
                        new RawPublisher(
                                0, c -> RawPublisher.write(c, RawPublisher.hello("ROUTER")))) {
            for (int i = 0; i < sources; i++) {
                opened.add(
                        pipeline.openZmq(
                                SourceConfig.of("w" + i, i, BLOCK, events.endpoint(i))
                                        .withReplayEndpoint(replays.endpoint(i))));
            }
            for (int done = 0; done < sources; done += atATime) {
                await("replays", () -> replays.connections() == atATime);
                LockSupport.parkNanos(50_000_000); // time for one too many
                assertEquals(done + atATime, replays.accepted());
                final byte[] end = RawPublisher.message("", -1, new byte[0]);
                replays.sendAndForget(end);
            }
            await(
                    "all loaded",
                    () -> opened.stream().allMatch(s -> s.status().replays() == 1),
                    opened.getFirst());
        }
    }

    @Test
    void liveMessagesWaitForAReplayAndOthersGoOn() {
        pipeline(
                1_024,
                ZmqConfig.defaults()
                        .withReplays(4, 300, 1_000, 100)
                        .withLimits(1 << 20, 10, 1 << 20, 1 << 24));
        try (Publisher slow = new Publisher();
                Publisher fast = new Publisher()) {
            slow.mute(true);
            final EventSource replayed =
                    pipeline.openZmq(
                            SourceConfig.of("slow", SLOT, BLOCK, slow.endpoint())
                                    .withReplayEndpoint(slow.replayEndpoint()));
            final EventSource other =
                    pipeline.openZmq(SourceConfig.of("fast", OTHER, BLOCK, fast.endpoint()));
            slow.awaitSubscriber();
            fast.awaitSubscriber();
            for (int i = 1; i <= 60; i++) {
                slow.publish(store(i)); // more than may wait
                fast.publish(store(i));
            }
            await("others", () -> index.heldBlocks(OTHER) == 60, other);
            assertEquals(0, index.heldBlocks(SLOT));
            await("two tries", () -> slow.asked().size() >= 2, replayed);

            slow.mute(false);
            await(
                    "all",
                    () -> index.heldBlocks(SLOT) == 60 && replayed.state() == IndexState.EXACT,
                    replayed);
            assertEquals(0, replayed.status().lostMessages());
            assertEquals(0, replayed.status().restarts());
            index.forEach((slot, engine, sequence, copies) -> assertEquals(1, copies));
        }
    }

    @Test
    void whatWaitedForTheReplayOfADeadEngineIsDropped() {
        pipeline(1_024, ZmqConfig.defaults().withReplays(4, 300, 1_000, 0));
        final Publisher dead = new Publisher();
        dead.mute(true);
        final EventSource source =
                pipeline.openZmq(
                        SourceConfig.of("w", SLOT, BLOCK, dead.endpoint())
                                .withReplayEndpoint(dead.replayEndpoint()));
        dead.awaitSubscriber();
        for (int i = 1; i <= 3; i++) {
            dead.publish(store(i));
        }
        await("waiting", () -> source.status().waiting() == 3, source);
        dead.close();
        try (Publisher next = Publisher.at(dead.endpoint(), dead.replayEndpoint())) {
            next.lose(store(11));
            await(
                    "loaded",
                    () -> index.heldBlocks(SLOT) == 1 && source.state() == IndexState.EXACT,
                    source);
            final List<Long> held = new ArrayList<>();
            index.forEach((slot, engine, sequence, copies) -> held.add(engine));
            assertEquals(List.of(11L), held);
        }
    }

    /** Where a port is closed, and where something accepts and says nothing. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aReplayEndpointThatDoesNotAnswerDoesNotHoldUpLiveMessages(boolean accepts) {
        pipeline(1_024, ZmqConfig.defaults().withReplays(4, 300, 3, 0));
        final int messages = 300;
        try (Publisher publisher = new Publisher();
                RawPublisher silent = new RawPublisher(0, _ -> {})) {
            final String replays =
                    accepts ? silent.endpoint(0) : "tcp://127.0.0.1:" + FreePorts.run(1);
            final EventSource source =
                    pipeline.openZmq(
                            SourceConfig.of("w", SLOT, BLOCK, publisher.endpoint())
                                    .withReplayEndpoint(replays));
            publisher.awaitSubscriber();
            for (int i = 1; i <= messages; i++) {
                if (i % 10 == 5) {
                    publisher.lose(store(i));
                } else {
                    publisher.publish(store(i));
                }
            }
            await("all but lost", () -> index.heldBlocks(SLOT) == messages * 9 / 10, source);
            final SourceStatus status = source.status();
            assertEquals(messages / 10, status.gaps(), status.toString());
            assertEquals(messages / 10, status.lostMessages(), status.toString());
            // each time that it is asked again comes after twice the time, however slow this is
            assertTrue(status.replayFailures() <= 5, status.toString());
            assertEquals(IndexState.DEGRADED, source.state());
        }
    }

    @Test
    void liveMessagesThatWaitForAReplayAreSeen() {
        pipeline(1_024, ZmqConfig.defaults().withReplays(4, 300, 1_000, 0));
        try (Publisher publisher = new Publisher()) {
            publisher.mute(true);
            final EventSource source =
                    pipeline.openZmq(
                            SourceConfig.of("w", SLOT, BLOCK, publisher.endpoint())
                                    .withReplayEndpoint(publisher.replayEndpoint()));
            publisher.awaitSubscriber();
            final long before = source.activityMark();
            for (int i = 1; i <= 20; i++) {
                publisher.publish(store(i));
            }
            await("waiting", () -> source.status().waiting() == 20, source);
            assertTrue(source.status().lastEventAgeNs() >= 0, source.status().toString());
            assertTrue(source.activityMark() != before, "a prompt's blocks may be among them");
            assertEquals(0, index.heldBlocks(SLOT));

            publisher.mute(false);
            await("all", () -> index.heldBlocks(SLOT) == 20, source);
            await("none waits", () -> source.status().waiting() == 0, source);
        }
    }

    @Test
    void aReplayThatMeetsAFullRingDoesNotStopThePoller() throws InterruptedException {
        pipeline(4, ZmqConfig.defaults().withReplays(4, 5_000, 3, 100));
        final CountDownLatch blocked = new CountDownLatch(1);
        final CountDownLatch release = new CountDownLatch(1);
        pipeline.retire(
                3,
                () -> {
                    blocked.countDown();
                    try {
                        release.await();
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                });
        assertTrue(blocked.await(1, TimeUnit.MINUTES));
        try (Publisher publisher = new Publisher();
                RawPublisher wrong =
                        new RawPublisher(0, c -> RawPublisher.write(c, new byte[] {1, 2, 3}))) {
            for (int i = 1; i <= 40; i++) {
                publisher.lose(store(i));
            }
            final EventSource source =
                    pipeline.openZmq(
                            SourceConfig.of("w", SLOT, BLOCK, publisher.endpoint())
                                    .withReplayEndpoint(publisher.replayEndpoint()));
            await("a full ring", () -> pipeline.refused() > 2, source);
            final EventSource other =
                    pipeline.openZmq(SourceConfig.of("o", OTHER, BLOCK, wrong.endpoint(0)));
            await("poller", () -> other.status().problem().contains("speaks no ZMTP"), other);
            release.countDown();
            await("all", () -> index.heldBlocks(SLOT) == 40, source);
            assertEquals(0, source.status().lostMessages());
        } finally {
            release.countDown();
        }
    }

    @Test
    void aWrongReplayPortIsNamed() {
        pipeline(1_024, ZmqConfig.defaults().withReplays(4, 200, 2, 0));
        try (Publisher publisher = new Publisher()) {
            final EventSource source =
                    pipeline.openZmq(
                            SourceConfig.of("w", SLOT, BLOCK, publisher.endpoint())
                                    .withReplayEndpoint(publisher.endpoint()));
            await(
                    "a name for it",
                    () ->
                            source.status()
                                    .problem()
                                    .contains("is a ZMQ socket of type 'XPUB', not ROUTER"),
                    source);
        }
    }

    @Test
    void aSourceClosedInItsReplayGivesItsTurnToTheNext() {
        pipeline(1_024, ZmqConfig.defaults().withReplays(1, 60_000, 3, 0));
        try (RawPublisher events = new RawPublisher();
                RawPublisher mute =
                        new RawPublisher(
                                0, c -> RawPublisher.write(c, RawPublisher.hello("ROUTER")));
                Publisher publisher = new Publisher()) {
            final EventSource stuck =
                    pipeline.openZmq(
                            SourceConfig.of("stuck", SLOT, BLOCK, events.endpoint(0))
                                    .withReplayEndpoint(mute.endpoint(0)));
            await("its replay", () -> mute.accepted() == 1, stuck);
            publisher.lose(store(1));
            final EventSource next =
                    pipeline.openZmq(
                            SourceConfig.of("next", OTHER, BLOCK, publisher.endpoint())
                                    .withReplayEndpoint(publisher.replayEndpoint()));
            publisher.awaitSubscriber();
            LockSupport.parkNanos(100_000_000);
            assertTrue(publisher.asked().isEmpty());
            stuck.close();
            await("the next", () -> index.heldBlocks(OTHER) == 1, next);
        }
    }
}

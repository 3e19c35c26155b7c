package io.kvasir.pipeline.source;

import static io.kvasir.pipeline.source.Messages.batch;
import static io.kvasir.pipeline.source.Messages.pack;
import static io.kvasir.pipeline.source.Messages.range;
import static io.kvasir.pipeline.source.Messages.removed;
import static io.kvasir.pipeline.source.Messages.stored;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.events.IndexPipelineConfig;
import io.kvasir.testsupport.ConnectingContext;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.TcpProxy;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.zeromq.SocketType;
import org.zeromq.ZMQ;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/** Sources over real sockets. */
@Order(1) // takes long: begins first, beside the others
class ZmqSourceTest {
    private static final int SLOT = 1;
    private static final int BLOCK = 4;

    private final PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(4, 4_096, 4_096));
    private IndexPipeline pipeline = pipeline(1_024, 1_500, 3);
    private Publisher publisher = new Publisher();

    @AfterEach
    void close() {
        pipeline.close();
        index.close();
        publisher.close();
    }

    private IndexPipeline pipeline(int ringSize, int replayTimeoutMs, int replayAttempts) {
        return new IndexPipeline(
                IndexPipelineConfig.defaults()
                        .withRingSize(ringSize)
                        .withReplay(replayTimeoutMs, replayAttempts, 200),
                index);
    }

    private SourceConfig config() {
        return SourceConfig.of("w", SLOT, BLOCK, publisher.endpoint());
    }

    private SourceConfig replayable() {
        return config().withReplayEndpoint(publisher.replayEndpoint());
    }

    private static byte[] store(int hash) {
        return batch(stored(List.of(hash), null, range(hash * 10, hash * 10 + 3), BLOCK));
    }

    /** Publishes the first message as soon as the source is subscribed. */
    private void publishFirst(EventSource source) {
        publisher.awaitSubscriber();
        publisher.publish(store(1));
        await(() -> source.status().lastSequence() >= 0, source);
    }

    private static void await(BooleanSupplier condition, EventSource source) {
        Eventually.holds(() -> source.status().toString(), condition);
    }

    private void awaitBlocks(int blocks, EventSource source) {
        await(
                () ->
                        index.heldBlocks(SLOT) == blocks
                                && source.state() != IndexState.RESYNC
                                && source.state() != IndexState.LOADING,
                source);
        assertEquals(blocks, index.heldBlocks(SLOT));
    }

    @Test
    void whatWasPublishedBeforeIsLoadedWithoutALiveMessage() {
        for (int i = 1; i <= 20; i++) {
            publisher.lose(store(i));
        }
        final EventSource source = pipeline.openZmq(replayable());

        awaitBlocks(20, source);
        assertEquals(IndexState.EXACT, source.state());
        assertEquals(19, source.status().lastSequence());
        publisher.publish(store(21));
        awaitBlocks(21, source);
        assertEquals(0, source.status().lostMessages());
    }

    @Test
    void theOlderReplayFormIsUnderstood() {
        publisher.oldReplayForm();
        for (int i = 1; i <= 5; i++) {
            publisher.lose(store(i));
        }
        awaitBlocks(5, pipeline.openZmq(replayable()));
    }

    @Test
    void aGapIsReplayed() {
        final EventSource source = pipeline.openZmq(replayable());
        publishFirst(source);
        publisher.lose(store(2));
        publisher.lose(store(3));
        publisher.publish(store(4));

        awaitBlocks(4, source);
        assertEquals(IndexState.EXACT, source.state());
        assertTrue(source.status().replays() >= 1);
        assertEquals(0, source.status().lostMessages());
        assertEquals(0, source.status().restarts());
    }

    @Test
    void withoutReplaySocketAGapIsDegraded() {
        final EventSource source = pipeline.openZmq(config());
        publishFirst(source);
        publisher.lose(store(2));
        publisher.publish(store(3));

        awaitBlocks(2, source);
        assertEquals(IndexState.DEGRADED, source.state());
        assertEquals(1, source.status().gaps());
        assertEquals(1, source.status().lostMessages());
    }

    @Test
    void aReplaySocketThatIsSilentIsGivenUp() {
        pipeline.close();
        pipeline = pipeline(1_024, 1_500, 2); // longer than a slow machine takes to answer
        final EventSource source = pipeline.openZmq(replayable());
        publishFirst(source);
        await(() -> publisher.asked().size() >= 2, source); // start and tail check are over
        publisher.mute(true);
        publisher.lose(store(2));
        publisher.publish(store(3));

        awaitBlocks(2, source);
        assertEquals(IndexState.DEGRADED, source.state());
        assertEquals(1, source.status().replayFailures());
        assertTrue(source.status().problem().contains("does not answer"));
        publisher.publish(store(4));
        awaitBlocks(3, source);
    }

    /** Has the index apply nothing until it is released. */
    private void holdWriter(CountDownLatch release) throws InterruptedException {
        final CountDownLatch blocked = new CountDownLatch(1);
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
    }

    @Test
    void aReconnectDuringALoadAsksAnewFromTheLastMessage() throws Exception {
        pipeline.close();
        pipeline = pipeline(4, 1_500, 3);
        for (int i = 1; i <= 20; i++) {
            publisher.lose(store(i));
        }
        final CountDownLatch release = new CountDownLatch(1);
        holdWriter(release);
        final String endpoint = publisher.endpoint();
        final int port = Integer.parseInt(endpoint.substring(endpoint.lastIndexOf(':') + 1));
        try (TcpProxy events = new TcpProxy(port)) {
            final EventSource source =
                    pipeline.openZmq(
                            SourceConfig.of("w", SLOT, BLOCK, "tcp://127.0.0.1:" + events.port())
                                    .withReplayEndpoint(publisher.replayEndpoint()));
            await(() -> pipeline.refused() > 0, source); // the load waits for room
            final long last = source.status().lastSequence();
            events.sever();
            await(() -> source.state() == IndexState.STALE, source);
            events.heal();
            await(() -> source.state() != IndexState.STALE, source);
            release.countDown();

            awaitBlocks(20, source);
            assertEquals(IndexState.EXACT, source.state());
            assertEquals(0, source.status().restarts());
            assertEquals(List.of(0L, last), publisher.asked().subList(0, 2));
        } finally {
            release.countDown();
        }
    }

    @Test
    void messagesThatFoundTheRingFullAreReplayed() throws InterruptedException {
        pipeline.close();
        pipeline = pipeline(4, 1_500, 3);
        final EventSource source = pipeline.openZmq(replayable());
        publishFirst(source);
        await(() -> source.state() == IndexState.EXACT, source); // the load's tail check is over
        final CountDownLatch release = new CountDownLatch(1);
        holdWriter(release);
        for (int i = 2; i <= 30; i++) {
            publisher.publish(store(i));
        }
        await(() -> pipeline.refused() > 0, source);
        assertEquals(IndexState.RESYNC, source.state());
        release.countDown();

        awaitBlocks(30, source);
        assertEquals(IndexState.EXACT, source.state());
        assertEquals(0, source.status().lostMessages());
        index.forEach((slot, engine, sequence, copies) -> assertEquals(1, copies));
    }

    @Test
    void aRestartedEngineIsClearedAndLoaded() {
        final EventSource source = pipeline.openZmq(replayable());
        publishFirst(source);
        for (int i = 2; i <= 6; i++) {
            publisher.publish(store(i));
        }
        awaitBlocks(6, source);
        restartPublisher();
        publisher.lose(store(31));
        publisher.lose(store(32));

        await(() -> source.status().restarts() == 1, source);
        awaitBlocks(2, source);
        publisher.publish(store(33));
        awaitBlocks(3, source);
        assertEquals(IndexState.EXACT, source.state());
        assertEquals(1, source.status().reconnects());
        assertEquals(2, index.appliedSequence(SLOT));
    }

    @Test
    void anEngineThatRestartedWhileAwayAndCountsHigherIsNoticed() {
        final EventSource source = pipeline.openZmq(replayable());
        publishFirst(source);
        publisher.publish(store(2));
        awaitBlocks(2, source);
        final String endpoint = publisher.endpoint();
        final String replayEndpoint = publisher.replayEndpoint();
        publisher.close();
        publisher = Publisher.at(endpoint, replayEndpoint);
        for (int i = 41; i <= 50; i++) {
            publisher.lose(store(i));
        }
        publisher.publish(store(51));

        awaitBlocks(11, source);
        assertEquals(1, source.status().restarts());
        assertEquals(10, source.status().lastSequence());
        assertEquals(IndexState.EXACT, source.state());
    }

    @Test
    void anEngineThatIsOnlyDisconnectedKeepsItsBlocks() {
        final EventSource source = pipeline.openZmq(replayable());
        publishFirst(source);
        publisher.publish(store(2));
        awaitBlocks(2, source);
        restartPublisher();
        publisher.lose(store(1));
        publisher.lose(store(2));
        publisher.lose(store(3));

        await(() -> source.status().lastSequence() == 2 && publisher.asked().contains(1L), source);
        awaitBlocks(3, source);
        assertEquals(0, source.status().restarts());
    }

    private void restartPublisher() {
        final String endpoint = publisher.endpoint();
        final String replayEndpoint = publisher.replayEndpoint();
        publisher.close();
        publisher = Publisher.at(endpoint, replayEndpoint);
    }

    @Test
    void withoutReplaySocketANumberThatFallsBackIsARestart() {
        final EventSource source = pipeline.openZmq(config());
        publishFirst(source);
        publisher.publish(store(2));
        awaitBlocks(2, source);
        publisher.send(Publisher.number(0), store(31));

        await(() -> source.status().restarts() == 1, source);
        awaitBlocks(1, source);
        assertEquals(IndexState.EXACT, source.state());
    }

    @Test
    void garbageOnTheSocketIsCountedAndSurvived() {
        final EventSource source = pipeline.openZmq(config());
        publishFirst(source);
        publisher.sendRaw(List.of(new byte[] {1}));
        publisher.sendRaw(List.of(new byte[0], Publisher.number(9)));
        publisher.send(Publisher.number(9), store(9), new byte[3], new byte[4]);
        publisher.send(new byte[] {0, 0, 1}, store(9));
        publisher.send(Publisher.number(77), new byte[] {(byte) 0xc1, 0, 1});
        publisher.send(Publisher.number(-5), store(9));
        publisher.publish(store(2));

        awaitBlocks(2, source);
        assertEquals(
                Map.of(
                        "bad_frame_count", 3L,
                        "bad_sequence_frame", 2L,
                        "undecodable_message", 1L),
                source.status().drops());
        assertEquals(IndexState.EXACT, source.state());
        assertEquals(0, source.status().gaps());
    }

    @Test
    void topicsOutsideTheFilterAreNotReceived() {
        final EventSource source = pipeline.openZmq(config().withTopic("kv-"));
        publishFirst(source);
        final byte[] other = "load".getBytes(StandardCharsets.US_ASCII);
        publisher.sendRaw(List.of(other, Publisher.number(1), store(7)));
        publisher.publish(store(2));

        awaitBlocks(2, source);
        assertEquals(0, source.status().gaps());
    }

    @Test
    void aPublisherMayConnectToUs() {
        final EventSource source =
                pipeline.openZmq(
                        SourceConfig.of("w", SLOT, BLOCK, "tcp://127.0.0.1:*").withBind(true));
        final String bound = source.status().endpoint();
        assertTrue(bound.startsWith("tcp://127.0.0.1:") && !bound.endsWith("*"), bound);
        try (ConnectingContext context = new ConnectingContext()) {
            final ZMQ.Socket socket = context.socket(SocketType.PUB);
            socket.setLinger(0);
            socket.connect(bound);
            await(
                    () -> {
                        socket.send("kv@10.0.0.1@m", ZMQ.SNDMORE);
                        socket.send(Publisher.number(1), ZMQ.SNDMORE);
                        socket.send(store(1), 0);
                        return source.status().lastSequence() == 1;
                    },
                    source);
            awaitBlocks(1, source);
            assertEquals(IndexState.EXACT, source.state());
        }
    }

    @Test
    void addressesThatCannotBeUsedAreRefusedWithTheirName() {
        final IllegalArgumentException error =
                assertThrows(
                        IllegalArgumentException.class,
                        () -> pipeline.openZmq(SourceConfig.of("w7", SLOT, BLOCK, "udp?what")));
        assertTrue(error.getMessage().contains("udp?what"), error.getMessage());
        assertThrows(
                IllegalArgumentException.class,
                () -> pipeline.openZmq(config().withBind(true)),
                "the publisher has bound it");
    }

    private static byte[] storeOfRank1(int hash) {
        return pack(
                List.of(
                        1.5,
                        List.of(stored(List.of(hash), null, range(hash, hash + 3), BLOCK)),
                        1));
    }

    @Test
    void eachRankHasASourceOfItsOwn() {
        try (Publisher second = new Publisher()) {
            final EventSource rank0 = pipeline.openZmq(replayable());
            final EventSource rank1 =
                    pipeline.openZmq(
                            SourceConfig.of("w", 2, BLOCK, second.endpoint())
                                    .withDpRank(1)
                                    .withReplayEndpoint(second.replayEndpoint()));
            publisher.lose(store(1));
            second.lose(storeOfRank1(2));
            second.lose(storeOfRank1(3));
            publisher.publish(batch(removed(List.of(99))));
            await(() -> index.heldBlocks(1) == 1 && index.heldBlocks(2) == 2, rank1);
            assertEquals(1, rank1.status().dpRank());
            assertEquals(0, rank0.status().dpRank());
        }
    }

    @Test
    void aClosedSourceLetsGoOfItsSockets() {
        final EventSource source = pipeline.openZmq(replayable());
        publishFirst(source);
        source.close();
        source.close();
        assertEquals(IndexState.GONE, source.state());
        final EventSource again = pipeline.openZmq(replayable());
        await(() -> again.state() == IndexState.EXACT, again);
    }
}

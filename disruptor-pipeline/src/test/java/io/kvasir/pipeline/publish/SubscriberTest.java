package io.kvasir.pipeline.publish;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.pipeline.wire.QueryTopic;
import io.kvasir.pipeline.wire.RecoveryQuery;
import io.kvasir.pipeline.zmtp.SocketPoller;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;

class SubscriberTest {
    private static final long WORKER = 5;

    private final SocketPoller poller = new SocketPoller("SubscriberTest");
    private final LocalIndexer indexer = new LocalIndexer(WORKER, 0, 99);
    private final SlowPeer peer = new SlowPeer();
    private final Subscriber subscriber = new Subscriber(poller, peer, query -> indexer);

    @AfterEach
    void close() {
        poller.close();
    }

    private void onPoller(Runnable task) {
        CompletableFuture.runAsync(task, poller::execute).join();
    }

    private void say(boolean begins, QueryTopic query) {
        final byte[] topic = query.toBytes();
        subscriber.received(
                ByteBuffer.allocate(1 + topic.length)
                        .put((byte) (begins ? 1 : 0))
                        .put(topic)
                        .array());
    }

    private static QueryTopic query(int number) {
        return new QueryTopic(1, number, new RecoveryQuery(WORKER, 0, 1, RecoveryQuery.NO_END));
    }

    @Test
    void queriesThatAreTakenBackAreNotReadWhileTheirPeerDoesNotRead() {
        onPoller(
                () -> {
                    for (int i = 0; i < 10_000; i++) {
                        say(true, query(i));
                        say(false, query(i));
                    }
                });
        assertEquals(Subscriber.MOST_UNREAD, peer.most());
        while (peer.unsent() > 0) {
            peer.read();
        }
        onPoller(() -> say(true, query(10_000)));
        assertEquals(3, peer.unsent(), "read, answered and ended");
    }
}

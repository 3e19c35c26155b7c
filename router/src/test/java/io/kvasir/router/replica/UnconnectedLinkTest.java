package io.kvasir.router.replica;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.KvRouter;
import io.kvasir.testsupport.Cores;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/** What a router counts of messages that its link does not take. */
class UnconnectedLinkTest {
    private final Link link = new Link();
    private final AtomicLong clock = new AtomicLong();
    private final KvRouter router =
            KvRouter.builder()
                    .maxWorkers(4)
                    .maxBlocks(1 << 10, 1 << 10)
                    .tickedBy(clock::get)
                    .replicaLink(link)
                    .build();

    /** It takes nothing while it has no connection. */
    private static final class Link implements ReplicaLink {
        private boolean connected;
        private boolean wasConnected;
        private long refused;
        private final List<ReplicaMessage> taken = new ArrayList<>();

        void connected(boolean now) {
            connected = now;
            wasConnected |= now;
        }

        @Override
        public void start(Consumer<ReplicaMessage> receiver) {}

        @Override
        public boolean send(ReplicaMessage message) {
            if (!connected) {
                refused++;
            } else {
                taken.add(message);
            }
            return connected;
        }

        @Override
        public boolean wasConnected() {
            return wasConnected;
        }

        @Override
        public long dropped() {
            return 0;
        }

        @Override
        public void close() {}
    }

    @AfterEach
    void close() {
        router.close();
    }

    private ReplicaStatus passSeconds(int seconds) {
        for (int i = 0; i < seconds; i++) {
            router.tick(clock.addAndGet(TimeUnit.SECONDS.toNanos(1)));
            while (router.bookingPipeline().backlog() > 0) {
                Cores.giveWay();
            }
        }
        return router.status().replicaOrNull();
    }

    @Test
    void whatIsSentBeforeTheFirstConnectionIsNotDropped() {
        assertEquals(0, passSeconds(3).queueDropped());
        final long before = link.refused;
        assertTrue(before > 1, "questions to the others, and digests");
        link.connected(true);
        final ReplicaStatus sent = passSeconds(3);
        assertTrue(sent.published() > 1, "digests");
        assertEquals(0, sent.queueDropped());
        link.connected(false);
        final ReplicaStatus lost = passSeconds(3);
        assertEquals(link.refused - before, lost.queueDropped());
        assertTrue(lost.queueDropped() > 1, "digests");
    }

    @Test
    void theOthersAreAskedOnceThereIsAConnection() {
        passSeconds(3);
        link.connected(true);
        passSeconds(1);
        assertTrue(
                link.taken.getFirst() instanceof ReplicaMessage.Ask ask
                        && ask.routerId() == ReplicaMessage.Ask.ALL,
                link.taken.toString());
        link.connected(false);
        passSeconds(1);
        link.connected(true);
        passSeconds(3);
        assertEquals(1, link.taken.stream().filter(m -> m instanceof ReplicaMessage.Ask).count());
    }
}

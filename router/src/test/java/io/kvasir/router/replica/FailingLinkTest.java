package io.kvasir.router.replica;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.KvRouter;
import io.kvasir.testsupport.Undeclared;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import java.io.IOException;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/** A router whose link to its replicas throws. */
class FailingLinkTest {
    private final AtomicLong clock = new AtomicLong();
    private final Link link = new Link();

    private static List<Throwable> failures() {
        return List.of(
                new IllegalStateException("no route"),
                new AssertionError("no route"),
                new IOException("no route"));
    }

    /** One that fails by all of its methods from a moment on. */
    private static final class Link implements ReplicaLink {
        private Throwable thrown; // null while it does not fail
        private String problem = "";
        private boolean closed;

        private void fail() {
            if (thrown != null) {
                throw Undeclared.thrown(thrown);
            }
        }

        @Override
        public void start(Consumer<ReplicaMessage> receiver) {}

        @Override
        public boolean send(ReplicaMessage message) {
            fail();
            return true;
        }

        @Override
        public long dropped() {
            fail();
            return 7;
        }

        @Override
        public long unreadable() {
            fail();
            return 3;
        }

        @Override
        public String problem() {
            fail();
            return problem;
        }

        @Override
        public void close() {
            closed = true;
        }
    }

    private KvRouter router() {
        return KvRouter.builder()
                .maxWorkers(4)
                .maxBlocks(1 << 10, 1 << 10)
                .tickedBy(clock::get)
                .replicaLink(link)
                .build();
    }

    @ParameterizedTest
    @MethodSource("failures")
    void aLinkThatCannotSayItsStateHasTheLastOneAndSaysWhy(Throwable thrown) {
        try (KvRouter router = router()) {
            assertTrue(router.status().replicaOrNull().isConnected());
            link.thrown = thrown;
            final ReplicaStatus status = router.status().replicaOrNull();
            assertEquals(
                    "the replica link failed when it was asked for its state: no route",
                    status.problem());
            assertEquals(7, status.queueDropped());
            assertEquals(3, status.unreadable());
            link.thrown = null;
            assertTrue(router.status().replicaOrNull().isConnected());
            link.problem = null;
            assertTrue(router.status().replicaOrNull().isConnected());
        }
    }

    @ParameterizedTest
    @MethodSource("failures")
    void aLinkThatFailsToSendIsClosedWithTheRouter(Throwable thrown) {
        final KvRouter router = router();
        link.thrown = thrown;
        assertFalse(link.closed);
        router.close();
        assertTrue(link.closed);
    }
}

package io.kvasir.router.replica;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** What every link between replicas does, while nothing disturbs it. */
public abstract class ReplicaLinkContract {
    private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(60);
    private static final ReplicaOrigin A = new ReplicaOrigin(1, 1_000);
    private static final ReplicaOrigin B = new ReplicaOrigin(1L << 52, 1L << 51);

    private final List<ReplicaLink> opened = new ArrayList<>();

    /** A further router's link over the same medium. */
    protected abstract ReplicaLink open();

    /** Waits until a started link sends and receives. */
    protected void awaitReady(ReplicaLink link) {}

    /** Lets what was sent arrive, where that does not happen of itself. */
    protected void deliver() {}

    @AfterEach
    void closeLinks() {
        opened.forEach(ReplicaLink::close);
    }

    private ReplicaLink link(Queue<ReplicaMessage> received) {
        final ReplicaLink link = open();
        opened.add(link);
        link.start(received::add);
        awaitReady(link);
        return link;
    }

    /** Waits for a condition. */
    protected final void await(BooleanSupplier condition, String what) {
        final long start = System.nanoTime();
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() - start < PATIENCE_NS, "waited for: " + what);
            deliver();
            LockSupport.parkNanos(1_000_000);
        }
    }

    private static long from(Queue<ReplicaMessage> received, ReplicaOrigin origin) {
        return received.stream().filter(m -> m.origin().equals(origin)).count();
    }

    @Test
    void whatIsSentArrivesAtTheOthersAsItWas() {
        final Queue<ReplicaMessage> atA = new ConcurrentLinkedQueue<>();
        final Queue<ReplicaMessage> atB = new ConcurrentLinkedQueue<>();
        final ReplicaLink a = link(atA);
        final ReplicaLink b = link(atB);
        final List<ReplicaMessage> messages = ReplicaMessages.all(A);
        for (ReplicaMessage message : messages) {
            assertTrue(a.send(message), message::toString);
        }
        await(() -> from(atB, A) >= messages.size(), "all messages of a at b");
        assertEquals(
                messages.stream().map(ReplicaMessages::text).toList(),
                atB.stream().map(ReplicaMessages::text).toList());
        assertTrue(b.send(new ReplicaMessage.Leaving(B)));
        await(() -> from(atA, B) == 1, "the message of b at a");
        assertEquals(0, a.dropped());
        assertEquals(0, b.dropped());
    }

    @Test
    void aClosedLinkTakesNothingAndHearsNothing() {
        final Queue<ReplicaMessage> atA = new ConcurrentLinkedQueue<>();
        final Queue<ReplicaMessage> atB = new ConcurrentLinkedQueue<>();
        final ReplicaLink a = link(atA);
        final ReplicaLink b = link(atB);
        a.send(new ReplicaMessage.Leaving(A));
        await(() -> from(atB, A) == 1, "the message of a at b");
        a.close();
        a.close();
        assertFalse(a.send(new ReplicaMessage.Leaving(A)));
        final int before = atA.size();
        final Queue<ReplicaMessage> atC = new ConcurrentLinkedQueue<>();
        link(atC);
        b.send(new ReplicaMessage.Leaving(B));
        await(() -> from(atC, B) == 1, "the message of b at c");
        assertEquals(before, atA.size());
    }

    @Test
    void manyMessagesOfOneRouterComeInTheirOrder() {
        final Queue<ReplicaMessage> atB = new ConcurrentLinkedQueue<>();
        final ReplicaLink a = link(new ConcurrentLinkedQueue<>());
        link(atB);
        final int count = 10_000;
        for (int i = 1; i <= count; i++) {
            a.send(new ReplicaMessage.Freed(A, i, i, new ReplicaWorker(0, "w", 0)));
        }
        await(() -> from(atB, A) == count, "all of them");
        long last = 0;
        for (ReplicaMessage message : atB) {
            assertEquals(last + 1, message.sequence());
            last = message.sequence();
        }
    }
}

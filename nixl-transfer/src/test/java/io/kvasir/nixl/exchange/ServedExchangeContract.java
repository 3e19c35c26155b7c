package io.kvasir.nixl.exchange;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.exchange.Records.Received;
import io.kvasir.testsupport.ServerProcess;

import org.junit.jupiter.api.Test;

import java.time.Duration;

/** What exchanges promise that have a server between. */
public abstract class ServedExchangeContract extends ExchangeContract {
    /** How long records outlive their owners. */
    protected static final Duration TTL = Duration.ofSeconds(6);

    private static final Duration IMPATIENCE = Duration.ofMillis(500);

    /** How often the server was missed. */
    protected abstract long unreachable(MetadataExchange exchange);

    /** What is between. */
    protected abstract ServerProcess server();

    /** One that waits for an answer of the server no longer than that. */
    protected abstract MetadataExchange open(Duration timeout) throws Exception;

    @Test
    void aRestartOfTheServerCostsNoRecord() throws Exception {
        restart(false);
    }

    @Test
    void aServerThatHasLostEverythingGetsTheRecordsAgain() throws Exception {
        restart(true);
    }

    private void restart(boolean empty) throws Exception {
        final MetadataExchange a = open();
        final MetadataExchange b = open();
        a.publish(Records.record("a", 1, 1));
        b.find("a", PATIENCE);
        final Received received = new Received();
        b.watch("later", received);
        final long before = unreachable(b);
        server().stop();
        final long deadlineNs = System.nanoTime() + PATIENCE.toNanos();
        awaitMissed(b, before, deadlineNs);
        assertEquals("a", b.find("a", Duration.ZERO).name());
        if (empty) {
            server().forget();
        }
        server().start();
        publishWhenItIsBack(a, Records.record("later", 1, 1), deadlineNs);
        assertEquals("UP later 1.1", received.next());
        assertEquals(Records.record("a", 1, 1), open().find("a", PATIENCE));
    }

    @Test
    void aServerThatHangsIsMissedAndCostsNoRecord() throws Exception {
        final MetadataExchange a = open(IMPATIENCE);
        final MetadataExchange b = open(IMPATIENCE);
        final PeerRecord later = Records.record("later", 1, 1);
        final long deadlineNs = System.nanoTime() + PATIENCE.toNanos();
        publishWhenItIsBack(a, Records.record("a", 1, 1), deadlineNs); // half a second is short
        b.find("a", PATIENCE);
        final Received received = new Received();
        b.watch("later", received);
        server().hang();
        final long before = unreachable(b);
        try {
            awaitMissed(b, before, deadlineNs);
            final ExchangeException refusal =
                    assertThrows(ExchangeException.class, () -> a.publish(later));
            assertEquals(ExchangeException.Kind.UNAVAILABLE, refusal.kind());
            Thread.sleep(TTL.plusSeconds(1)); // none can be reached: that is no owner's silence
            assertEquals("a", b.find("a", Duration.ZERO).name());
        } finally {
            server().goOn();
        }
        publishWhenItIsBack(a, later, deadlineNs);
        assertEquals("UP later 1.1", received.next());
        assertEquals(Records.record("a", 1, 1), open().find("a", PATIENCE));
    }

    private void awaitMissed(MetadataExchange exchange, long before, long deadlineNs)
            throws InterruptedException {
        while (unreachable(exchange) == before) {
            assertTrue(System.nanoTime() - deadlineNs < 0, "nobody misses the server");
            Thread.sleep(5);
        }
    }

    /** Publishes as soon as it can be done. */
    protected static void publishWhenItIsBack(
            MetadataExchange exchange, PeerRecord record, long deadlineNs) throws Exception {
        while (true) {
            try {
                exchange.publish(record);
                return;
            } catch (ExchangeException e) {
                assertEquals(ExchangeException.Kind.UNAVAILABLE, e.kind());
                assertTrue(System.nanoTime() - deadlineNs < 0, e.getMessage());
                Thread.sleep(20);
            }
        }
    }
}

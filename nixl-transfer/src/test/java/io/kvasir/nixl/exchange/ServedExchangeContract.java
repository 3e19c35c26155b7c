package io.kvasir.nixl.exchange;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.exchange.Cards.Heard;

import org.junit.jupiter.api.Test;

import java.time.Duration;

/** What exchanges promise that have a server between. */
public abstract class ServedExchangeContract extends ExchangeContract {
    /** How often the server was missed. */
    protected abstract long unreachable(MetadataExchange exchange);

    /** Kills the server. */
    protected abstract void stop() throws Exception;

    /** Starts it again where it was. */
    protected abstract void start(boolean empty) throws Exception;

    @Test
    void aRestartOfTheServerCostsNoCard() throws Exception {
        restart(false);
    }

    @Test
    void aServerThatHasLostEverythingGetsTheCardsAgain() throws Exception {
        restart(true);
    }

    private void restart(boolean empty) throws Exception {
        final MetadataExchange a = open();
        final MetadataExchange b = open();
        a.publish(Cards.card("a", 1, 1));
        b.find("a", PATIENCE);
        final Heard heard = new Heard();
        b.watch("later", heard);
        final long before = unreachable(b);
        stop();
        final long deadlineNs = System.nanoTime() + PATIENCE.toNanos();
        while (unreachable(b) == before) {
            assertTrue(System.nanoTime() - deadlineNs < 0, "nobody misses the server");
            Thread.sleep(5);
        }
        assertEquals("a", b.find("a", Duration.ZERO).name());
        start(empty);
        publishWhenItIsBack(a, Cards.card("later", 1, 1), deadlineNs);
        assertEquals("UP later 1.1", heard.next());
        assertEquals(Cards.card("a", 1, 1), open().find("a", PATIENCE));
    }

    /** Publishes as soon as it can be done. */
    protected static void publishWhenItIsBack(
            MetadataExchange exchange, AgentCard card, long deadlineNs) throws Exception {
        while (true) {
            try {
                exchange.publish(card);
                return;
            } catch (ExchangeException e) {
                assertEquals(ExchangeException.Kind.UNAVAILABLE, e.kind());
                assertTrue(System.nanoTime() - deadlineNs < 0, e.getMessage());
                Thread.sleep(20);
            }
        }
    }
}

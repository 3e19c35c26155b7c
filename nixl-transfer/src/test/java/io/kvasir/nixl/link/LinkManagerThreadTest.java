package io.kvasir.nixl.link;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.engine.TransferConfig;
import io.kvasir.nixl.engine.TransferEngine;
import io.kvasir.nixl.exchange.Records;
import io.kvasir.nixl.link.ManagedLink.State;
import io.kvasir.nixl.transport.ScriptedTransport;
import io.kvasir.testsupport.Eventually;

import org.agrona.concurrent.BackoffIdleStrategy;
import org.junit.jupiter.api.Test;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;

/** How a {@link LinkManager} with a thread of its own ends. */
class LinkManagerThreadTest {
    @Test
    void aListenerMayCloseTheManagerThatNotifiesIt() {
        final ScriptedTransport transport = new ScriptedTransport();
        final ViewExchange exchange = new ViewExchange();
        final CompletableFuture<State> atClose = new CompletableFuture<>();
        final AtomicReference<Thread> thread = new AtomicReference<>();
        try (TransferEngine engine =
                TransferEngine.start(
                        transport,
                        TransferConfig.DEFAULT,
                        new BackoffIdleStrategy(),
                        (peer, message) -> {},
                        error -> {})) {
            final LinkManager manager = LinkManager.start(exchange, engine, LinkConfig.DEFAULT);
            final ManagedLink link =
                    manager.keep(
                            "peer",
                            "",
                            (kept, state, why) -> {
                                if (state == State.UP) {
                                    thread.set(Thread.currentThread());
                                    manager.close();
                                    atClose.complete(kept.state());
                                }
                            });
            exchange.publish(Records.record("peer", 1, 1));
            Eventually.holds("the close in the listener", atClose::isDone);
            assertEquals(State.UP, atClose.join(), "it is given up when the listener is through");
            Eventually.holds("the end of the thread", () -> !thread.get().isAlive());
            assertEquals(State.CLOSED, link.state());
            manager.close();
        }
        assertTrue(transport.peers.isEmpty());
    }
}

package io.kvasir.nixl.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.ScriptedTransport;
import io.kvasir.panama.nixl.NixlMemory;
import io.kvasir.testsupport.Eventually;

import org.agrona.ErrorHandler;
import org.agrona.LangUtil;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import java.util.List;
import java.util.Queue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.Stream;

/** What a {@link TransferEngine} with a thread of its own survives, and how it ends. */
class TransferThreadTest {
    private final ScriptedTransport transport = new ScriptedTransport();
    private final Queue<Throwable> errors = new ConcurrentLinkedQueue<>();
    private final Queue<Throwable> fromHandler = new ConcurrentLinkedQueue<>();
    private TransferEngine engine;
    private Thread thread;
    private LocalBlocks own;
    private KvLink link;

    private void start(ErrorHandler receiver) {
        transport.doneAtOnce = true;
        engine =
                TransferEngine.start(
                        transport,
                        TransferConfig.DEFAULT,
                        new BackoffIdleStrategy(),
                        (peer, message) -> fromHandler.forEach(LangUtil::rethrowUnchecked),
                        receiver);
        thread = ended(engine.call(t -> Thread.currentThread()));
        own = ended(engine.local(descriptors()));
        link = ended(engine.link(new byte[] {'p'}, descriptors()));
    }

    private static Descriptors descriptors() {
        return Descriptors.ofBlocks(
                List.of(new KvRegion("r", 0, NixlMemory.DRAM, 0, 4096, 100, 100, 64)));
    }

    private static <T> T ended(CompletableFuture<T> future) {
        Eventually.holds("the end of a future", future::isDone);
        return future.join();
    }

    private Transfer transfer() {
        return new Transfer().pull(own, link).add(0, 1);
    }

    private static Stream<Throwable> faults() {
        return Stream.of(
                new AssertionError("scripted"),
                new NoClassDefFoundError("scripted"),
                new Exception("scripted"),
                new IllegalStateException("scripted"));
    }

    @ParameterizedTest
    @MethodSource("faults")
    void whateverListenersAndHandlersThrowTheThreadGoesOn(Throwable fault) {
        start(errors::add);
        final CompletableFuture<Transfer> gated = engine.move(transfer().gated());
        final CompletableFuture<Transfer> listened =
                engine.move(transfer().listener(ended -> LangUtil.rethrowUnchecked(fault)));
        Eventually.holds("the listener's fault", () -> errors.contains(fault));
        assertTrue(ended(listened).state().isEnd());

        fromHandler.add(fault);
        errors.clear();
        transport.received.add("message");
        Eventually.holds("the handler's fault", () -> errors.contains(fault));

        assertEquals("scripted", ended(engine.call(KvTransport::name)));
        assertEquals(Transfer.State.DONE, ended(engine.move(transfer())).state());
        engine.close();
        assertFalse(thread.isAlive());
        assertTrue(transport.closed);
        assertThrows(CancellationException.class, gated::join);
    }

    @Test
    void anErrorHandlerThatThrowsEndsNothing() {
        start(
                fault -> {
                    errors.add(fault);
                    throw new AssertionError("a handler's fault");
                });
        ended(
                engine.move(
                        transfer()
                                .listener(
                                        ended -> {
                                            throw new IllegalStateException("a listener's");
                                        })));
        Eventually.holds("the listener's fault", () -> !errors.isEmpty());
        assertEquals("scripted", ended(engine.call(KvTransport::name)));
        engine.close();
        assertTrue(transport.closed);
    }

    @Test
    void whatListenersThrowAtTheCloseKeepsNothingOpen() {
        start(errors::add);
        final CompletableFuture<Transfer> gated =
                engine.move(
                        transfer()
                                .gated()
                                .listener(
                                        ended -> {
                                            throw new AssertionError("a listener's");
                                        }));
        engine.close();
        assertTrue(transport.closed);
        assertThrows(CancellationException.class, gated::join);
        assertEquals("a listener's", errors.remove().getMessage());
    }

    @Test
    void closingOnTheEnginesOwnThreadEndsItWhenItsRoundIsOver() {
        start(errors::add);
        final CompletableFuture<Transfer> gated = engine.move(transfer().gated());
        final CompletableFuture<Void> closed = new CompletableFuture<>();
        final Transfer last =
                transfer()
                        .listener(
                                ended -> {
                                    engine.close();
                                    engine.close();
                                    closed.complete(null);
                                });
        final CompletableFuture<Transfer> moved = engine.move(last);
        ended(closed);
        assertTrue(ended(moved).state().isEnd());
        Eventually.holds("the end of the thread", () -> !thread.isAlive());
        assertTrue(transport.closed);
        assertThrows(CancellationException.class, gated::join);
        assertThrows(CompletionException.class, engine.call(KvTransport::name)::join);
        engine.close();
        assertEquals(List.of(), List.copyOf(errors));
    }

    @Test
    void aListenerOfTheCloseMayCloseToo() {
        start(errors::add);
        final CompletableFuture<Void> gated =
                engine.move(transfer().gated()).handle((ended, why) -> close(engine));
        engine.close();
        ended(gated);
        assertFalse(thread.isAlive());
        assertTrue(transport.closed);
    }

    private static Void close(TransferEngine closing) {
        closing.close();
        return null;
    }
}

package io.kvasir.router.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.ClosedException;
import io.kvasir.router.KvRouter;
import io.kvasir.router.RouteException;
import io.kvasir.router.RouteRequest;
import io.kvasir.router.Worker;
import io.kvasir.router.WorkerSpec;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Undeclared;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Flow;

class RoutedClientTest {
    private static final int BLOCK_SIZE = 16;

    private final KvRouter router =
            KvRouter.builder()
                    .tickedBy(() -> 0)
                    .blockSize(BLOCK_SIZE)
                    .maxWorkers(8)
                    .trackOutputBlocks(true)
                    .build();
    private final Worker one = router.addWorker(WorkerSpec.of(1, "w1", "http://w1"));
    private final int[] prompt = new int[2 * BLOCK_SIZE];
    private final Engine engine = new Engine();
    private final RoutedClient<String, String> client =
            new RoutedClient<>(router, engine, String::length);
    private final Answer answer = new Answer();

    /** An engine that is told what to send. */
    private static final class Engine implements EngineClient<String, String> {
        final List<String> calls = new ArrayList<>();
        Flow.Subscriber<? super String> answer;
        long asked;
        boolean cancelled;
        Throwable failure;
        Throwable thrownByCancel;

        @Override
        public Flow.Publisher<String> generate(Worker worker, String request) {
            calls.add(worker.name() + " " + request);
            if (failure != null) {
                throw Undeclared.thrown(failure);
            }
            return subscriber -> {
                answer = subscriber;
                subscriber.onSubscribe(
                        new Flow.Subscription() {
                            @Override
                            public void request(long parts) {
                                asked += parts;
                            }

                            @Override
                            public void cancel() {
                                cancelled = true;
                                if (thrownByCancel != null) {
                                    throw Undeclared.thrown(thrownByCancel);
                                }
                            }
                        });
            };
        }
    }

    /** What the caller sees. */
    private static final class Answer implements Flow.Subscriber<String> {
        final List<String> parts = new ArrayList<>();
        Flow.Subscription subscription;
        Throwable failure;
        int ends;
        Throwable thrown;
        Throwable thrownAtOnce;

        @Override
        public void onSubscribe(Flow.Subscription given) {
            subscription = given;
            if (thrownAtOnce != null) {
                throw Undeclared.thrown(thrownAtOnce);
            }
            given.request(5);
        }

        @Override
        public void onNext(String part) {
            parts.add(part);
            if (thrown != null) {
                throw Undeclared.thrown(thrown);
            }
        }

        @Override
        public void onError(Throwable why) {
            failure = why;
            ends++;
        }

        @Override
        public void onComplete() {
            ends++;
        }
    }

    @AfterEach
    void close() {
        router.close();
    }

    private RouteRequest route() {
        return router.newRequest().tokens(prompt, prompt.length);
    }

    private void awaitLoad(long requests, long tokens, long blocks) {
        Eventually.holds(
                () -> one.activeRequests() + " " + one.prefillTokens() + " " + one.activeBlocks(),
                () ->
                        one.activeRequests() == requests
                                && one.prefillTokens() == tokens
                                && one.activeBlocks() == blocks);
    }

    @Test
    void theLoadFollowsTheAnswer() {
        client.generate(route(), "hello", answer);
        assertEquals(List.of("w1 hello"), engine.calls);
        assertEquals(5, engine.asked);
        awaitLoad(1, prompt.length, 2);
        engine.answer.onNext(""); // no token yet
        assertEquals(1, router.activeLeases());
        assertEquals(prompt.length, one.prefillTokens());
        engine.answer.onNext("a");
        awaitLoad(1, 0, 2);
        engine.answer.onNext("b".repeat(15));
        awaitLoad(1, 0, 3);
        answer.subscription.request(7);
        assertEquals(12, engine.asked);
        engine.answer.onComplete();
        awaitLoad(0, 0, 0);
        assertEquals(List.of("", "a", "b".repeat(15)), answer.parts);
        assertEquals(1, answer.ends);
        engine.answer.onComplete();
        engine.answer.onError(new IllegalStateException());
        engine.answer.onNext("late");
        assertEquals(1, answer.ends);
        assertEquals(3, answer.parts.size());
    }

    @Test
    void anAnswerThatFailsOrIsCancelledEndsTheBooking() {
        client.generate(route(), "fails", answer);
        final IllegalStateException failure = new IllegalStateException("engine");
        engine.answer.onError(failure);
        assertSame(failure, answer.failure);
        assertEquals(0, router.activeLeases());

        final Answer left = new Answer();
        client.generate(route(), "cancelled", left);
        engine.answer.onNext("x");
        left.subscription.cancel();
        left.subscription.cancel();
        assertTrue(engine.cancelled);
        assertEquals(0, router.activeLeases());
        engine.answer.onNext("late");
        engine.answer.onComplete();
        assertEquals(List.of("x"), left.parts);
        assertEquals(0, left.ends);
        awaitLoad(0, 0, 0);
    }

    @Test
    void aCallerThatThrowsEndsTheAnswer() {
        answer.thrown = new IllegalArgumentException("caller");
        client.generate(route(), "x", answer);
        engine.answer.onNext("a");
        assertTrue(engine.cancelled);
        assertSame(answer.thrown, answer.failure);
        assertEquals(0, router.activeLeases());
    }

    @Test
    void aRequestThatCannotBeRoutedOrSentIsAnError() {
        one.available(false);
        client.generate(route(), "x", answer);
        assertEquals(
                RouteException.Kind.NO_WORKERS,
                assertInstanceOf(RouteException.class, answer.failure).kind());
        answer.subscription.cancel();
        one.available(true);
        engine.failure = new IllegalStateException("no connection");
        final Answer second = new Answer();
        client.generate(route(), "x", second);
        assertSame(engine.failure, second.failure);
        assertEquals(1, second.ends);
        assertEquals(0, router.activeLeases());
    }

    private void send(EngineClient<String, String> engines) {
        new RoutedClient<>(router, engines, String::length).generate(route(), "x", answer);
    }

    @Test
    void anEngineClientWithoutAPublisherIsAnError() {
        send((_, _) -> null);
        assertInstanceOf(NullPointerException.class, answer.failure);
        assertEquals(1, answer.ends);
        assertEquals(0, router.activeLeases());
    }

    @Test
    void aPublisherThatThrowsIsAnError() {
        final RuntimeException failure = new IllegalStateException("no connection");
        send(
                (_, _) ->
                        _ -> {
                            throw failure;
                        });
        assertSame(failure, answer.failure);
        assertEquals(1, answer.ends);
        answer.subscription.cancel();
        assertEquals(0, router.activeLeases());
    }

    @Test
    void aPublisherThatThrowsLaterIsCancelledToo() {
        final RuntimeException failure = new IllegalStateException("no connection");
        send(
                (worker, body) ->
                        subscriber -> {
                            engine.generate(worker, body).subscribe(subscriber);
                            throw failure;
                        });
        assertSame(failure, answer.failure);
        assertEquals(1, answer.ends);
        assertTrue(engine.cancelled);
        assertEquals(0, router.activeLeases());
    }

    @Test
    void anErrorEndsTheBookingAndIsThrown() {
        final Error error = new AssertionError("a defect");
        assertSame(
                error,
                assertThrows(
                        AssertionError.class,
                        () ->
                                send(
                                        (_, _) -> {
                                            throw error;
                                        })));
        assertEquals(0, router.activeLeases());
    }

    @Test
    void aCallerThatThrowsAtOnceEndsTheAnswer() {
        answer.thrownAtOnce = new IllegalArgumentException("caller");
        client.generate(route(), "x", answer);
        assertTrue(engine.cancelled);
        assertSame(answer.thrownAtOnce, answer.failure);
        assertEquals(1, answer.ends);
        assertEquals(0, router.activeLeases());
    }

    /** As code in Kotlin, Scala and Groovy throws them. */
    @ParameterizedTest
    @ValueSource(strings = {"engine client", "onSubscribe", "onNext", "token counter"})
    void anExceptionThatIsNotDeclaredIsAnError(String by) {
        final IOException thrown = new IOException(by);
        switch (by) {
            case "engine client" -> engine.failure = thrown;
            case "onSubscribe" -> answer.thrownAtOnce = thrown;
            case "onNext" -> answer.thrown = thrown;
            default -> {}
        }
        final RoutedClient<String, String> counting =
                new RoutedClient<>(
                        router,
                        engine,
                        part -> {
                            if (by.equals("token counter")) {
                                throw Undeclared.thrown(thrown);
                            }
                            return part.length();
                        });
        counting.generate(route(), "x", answer);
        if (engine.answer != null) {
            engine.answer.onNext("a");
            assertTrue(engine.cancelled);
        }
        assertSame(thrown, answer.failure);
        assertEquals(1, answer.ends);
        assertEquals(0, router.activeLeases());
    }

    @Test
    void anEngineThatFailsToCancelKeepsNoCallerWithoutAnEnd() {
        engine.thrownByCancel = new IOException("cancel");
        answer.thrown = new IllegalArgumentException("caller");
        client.generate(route(), "x", answer);
        engine.answer.onNext("a");
        assertSame(answer.thrown, answer.failure);
        assertEquals(List.of(engine.thrownByCancel), List.of(answer.failure.getSuppressed()));
        assertEquals(1, answer.ends);
        assertEquals(0, router.activeLeases());

        final Answer same = new Answer();
        same.thrown = engine.thrownByCancel;
        client.generate(route(), "x", same);
        engine.answer.onNext("a");
        assertSame(same.thrown, same.failure);

        final Answer defect = new Answer();
        defect.thrown = new AssertionError("a defect");
        client.generate(route(), "x", defect);
        assertSame(
                defect.thrown, assertThrows(AssertionError.class, () -> engine.answer.onNext("a")));
        assertEquals(0, router.activeLeases());
    }

    @Test
    void modesAreThoseOfTheCalls() {
        final Worker two = router.addWorker(WorkerSpec.of(2, "w2", "http://w2"));
        client.direct(route(), two, "d", new Answer());
        assertEquals(List.of("w2 d"), engine.calls);
        engine.calls.clear();
        for (int i = 0; i < 4; i++) {
            client.roundRobin(route(), "rr", new Answer());
        }
        assertEquals(2, Set.copyOf(engine.calls).size());
        engine.calls.clear();
        final Set<String> seen = new HashSet<>();
        for (int i = 0; i < 200; i++) {
            client.random(route(), "r", new Answer());
            seen.addAll(engine.calls);
        }
        assertEquals(Set.of("w1 r", "w2 r"), seen);
        engine.calls.clear();
        client.kv(route(), "k", new Answer());
        assertEquals(1, engine.calls.size());
    }

    @Test
    void aClosedRouterRoutesNothing() {
        final RouteRequest route = route();
        router.close();
        assertThrows(ClosedException.class, () -> client.generate(route, "x", answer));
        assertEquals(List.of(), engine.calls);
    }
}

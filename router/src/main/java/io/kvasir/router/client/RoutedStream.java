package io.kvasir.router.client;

import io.kvasir.router.Lease;

import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.ToIntFunction;

/**
 * Passes an answer on and keeps its booking up to date: the first token ends the prefill, the end
 * of the answer the booking. Methods of {@link Flow.Subscriber}: the engine's thread, one at a
 * time; of {@link Flow.Subscription}: any thread.
 */
final class RoutedStream<R> implements Flow.Subscriber<R>, Flow.Subscription {
    private final Lease lease;
    private final ToIntFunction<? super R> tokens;
    private final Flow.Subscriber<? super R> answer;
    private final AtomicBoolean over = new AtomicBoolean();
    private Flow.Subscription engine; // null before the first subscription
    private int generated;

    RoutedStream(Lease lease, ToIntFunction<? super R> tokens, Flow.Subscriber<? super R> answer) {
        this.lease = lease;
        this.tokens = tokens;
        this.answer = answer;
    }

    @Override
    public void onSubscribe(Flow.Subscription subscription) {
        if (engine != null || over.get()) {
            subscription.cancel(); // the rules of Flow: one at a time, and none after the end
            return;
        }
        engine = subscription;
        try {
            answer.onSubscribe(this);
        } catch (Error e) {
            abandon(e);
            throw e;
        } catch (Throwable e) { // also a checked one that is not declared
            failed(e);
        }
    }

    @Override
    public void onNext(R part) {
        if (over.get()) {
            return;
        }
        try {
            count(tokens.applyAsInt(part));
            answer.onNext(part);
        } catch (Error e) {
            abandon(e);
            throw e;
        } catch (Throwable e) { // also a checked one that is not declared
            failed(e);
        }
    }

    private void count(int added) {
        if (added > 0) {
            lease.prefillComplete();
            generated = Math.addExact(generated, added);
            lease.outputTokens(generated);
        }
    }

    /** Ends the answer for what was thrown on this side of the engine, or before it had begun. */
    void failed(Throwable why) {
        if (!end()) {
            return;
        }
        if (engine == null) {
            RoutedClient.refuse(answer, why);
        } else {
            cancelFor(why);
            answer.onError(why);
        }
    }

    /** Ends the answer for an error that is thrown on. */
    void abandon(Error why) {
        if (end() && engine != null) {
            cancelFor(why);
        }
    }

    /** Cancels; what that throws is kept beside the reason, and takes nothing from it. */
    @SuppressWarnings("ReferenceEquality") // nothing may suppress itself
    private void cancelFor(Throwable why) {
        try {
            engine.cancel();
        } catch (Throwable e) {
            if (e != why) {
                why.addSuppressed(e);
            }
        }
    }

    @Override
    public void onError(Throwable why) {
        lease.workerFailed();
        if (end()) {
            answer.onError(why);
        }
    }

    @Override
    public void onComplete() {
        if (end()) {
            answer.onComplete();
        }
    }

    @Override
    public void request(long parts) {
        engine.request(parts);
    }

    @Override
    public void cancel() {
        if (end() && engine != null) {
            engine.cancel();
        }
    }

    /** Releases the booking; false if that was done before. */
    private boolean end() {
        if (!over.compareAndSet(false, true)) {
            return false;
        }
        lease.close();
        return true;
    }
}

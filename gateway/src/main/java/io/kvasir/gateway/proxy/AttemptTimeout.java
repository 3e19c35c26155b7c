package io.kvasir.gateway.proxy;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.router.settings.Setting;

import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.io.CyclicTimeout;
import org.eclipse.jetty.util.thread.Invocable;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;

/**
 * The time limits of one attempt: of a stream, until its first byte, between its chunks and from
 * its end mark to its end; of any other answer, until its last byte. Time in which the client does
 * not take what has come is none of the worker's.
 */
final class AttemptTimeout extends CyclicTimeout {
    private static final Duration END_LIMIT = Duration.ofSeconds(1);

    private final ProxyContext context;
    private final boolean stream;
    private final Consumer<Throwable> abort;
    private volatile boolean begun;
    private volatile boolean ending;

    /**
     * @param abort ends the attempt
     */
    AttemptTimeout(ProxyContext context, boolean stream, Consumer<Throwable> abort) {
        super(context.client().getScheduler());
        this.context = context;
        this.stream = stream;
        this.abort = abort;
    }

    /** The request is being sent. */
    void begin() {
        start(stream ? GatewaySettings.FIRST_BYTE_TIMEOUT : GatewaySettings.ANSWER_TIMEOUT);
    }

    /** The end mark has come: whatever still comes, the end follows soon or not at all. */
    void endFollows() {
        ending = true;
        schedule(END_LIMIT.toMillis(), TimeUnit.MILLISECONDS);
    }

    private void start(Setting<Duration> limit) {
        schedule(context.config().get(limit).toMillis(), TimeUnit.MILLISECONDS);
    }

    @Override
    public void onTimeoutExpired() {
        final TimeoutException expired = new TimeoutException(describe());
        context.client().getExecutor().execute(() -> abort.accept(expired));
    }

    private String describe() {
        return ending ? "no end of a complete stream within " + END_LIMIT : describeSilence();
    }

    private String describeSilence() {
        return !stream
                ? "no complete answer within " + limit(GatewaySettings.ANSWER_TIMEOUT)
                : begun
                        ? "the stream was silent for " + limit(GatewaySettings.STREAM_IDLE_TIMEOUT)
                        : "no byte of a stream within " + limit(GatewaySettings.FIRST_BYTE_TIMEOUT);
    }

    private String limit(Setting<Duration> setting) {
        return setting.name() + "=" + setting.print(context.config().get(setting));
    }

    /**
     * The same content, with the limits running while the worker is waited for.
     *
     * @param whenReceived called for each chunk
     */
    Content.Source watch(Content.Source content, Runnable whenReceived) {
        return new Watched(content, whenReceived);
    }

    private final class Watched implements Content.Source {
        private final Content.Source content;
        private final Runnable whenReceived;

        Watched(Content.Source content, Runnable whenReceived) {
            this.content = content;
            this.whenReceived = whenReceived;
        }

        @Override
        public Content.Chunk read() {
            final Content.Chunk chunk = content.read();
            if (chunk != null && !Content.Chunk.isFailure(chunk)) {
                whenReceived.run();
                if (stream && !ending && chunk.hasRemaining()) {
                    begun = true;
                    cancel();
                }
            }
            return chunk;
        }

        @Override
        public void demand(Runnable demandCallback) {
            if (!begun || ending) {
                content.demand(demandCallback);
                return;
            }
            start(GatewaySettings.STREAM_IDLE_TIMEOUT);
            content.demand(
                    Invocable.from(
                            Invocable.getInvocationType(demandCallback),
                            () -> {
                                cancel(); // what has come may not be read before a write has ended
                                demandCallback.run();
                            }));
        }

        @Override
        public void fail(Throwable failure) {
            content.fail(failure);
        }

        @Override
        public long getLength() {
            return content.getLength();
        }
    }
}

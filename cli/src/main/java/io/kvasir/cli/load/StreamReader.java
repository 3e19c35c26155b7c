package io.kvasir.cli.load;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.console.Json;
import io.kvasir.protocol.sse.SseEvents;
import io.kvasir.registry.FailureText;
import io.kvasir.sim.config.SimClock;

import java.io.IOException;
import java.net.http.HttpHeaders;
import java.net.http.HttpResponse.BodySubscriber;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.function.LongConsumer;

/**
 * Reads one streamed OpenAI answer into an {@link Outcome}. Parses JSON only until the first token
 * is seen and in the event with the usage, unless the text or the time between tokens is wanted: an
 * answer of hundreds of tokens costs the client little more than its bytes. Called by one thread at
 * a time.
 */
final class StreamReader implements BodySubscriber<Outcome> {
    private static final byte[] DONE = "[DONE]".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] USAGE = "\"usage\"".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] ERROR = "\"error\"".getBytes(StandardCharsets.US_ASCII);

    private final CompletableFuture<Outcome> result = new CompletableFuture<>();
    private final SseEvents events = new SseEvents(this::onData);
    private final StringBuilder text = new StringBuilder();
    private final HttpHeaders headers;
    private final SimClock clock;
    private final long scheduledNs;
    private final long sentNs;
    private final boolean keepText;
    private final LongConsumer gaps; // or null
    private boolean firstTokenSeen;
    private long firstTokenNs;
    private long lastTokenNs;
    private boolean done;
    private JsonNode usage;
    private String error;

    /**
     * @param gaps takes the ns between two events with text, or null
     */
    StreamReader(
            HttpHeaders headers,
            SimClock clock,
            long scheduledNs,
            long sentNs,
            boolean keepText,
            LongConsumer gaps) {
        this.headers = headers;
        this.clock = clock;
        this.scheduledNs = scheduledNs;
        this.sentNs = sentNs;
        this.keepText = keepText;
        this.gaps = gaps;
    }

    @Override
    public CompletionStage<Outcome> getBody() {
        return result;
    }

    @Override
    public void onSubscribe(Flow.Subscription subscription) {
        subscription.request(Long.MAX_VALUE);
    }

    @Override
    public void onNext(List<ByteBuffer> buffers) {
        for (ByteBuffer buffer : buffers) {
            events.accept(buffer);
            events.takeReady(); // read already
        }
    }

    @Override
    public void onError(Throwable thrown) {
        error = "answer broke off: " + FailureText.of(thrown);
        result.complete(outcome());
    }

    @Override
    public void onComplete() {
        if (error == null && !done) {
            error = "stream ended without [DONE]";
        } else if (error == null && usage == null) {
            error = "no usage in the stream; stream_options.include_usage was ignored";
        } else if (error == null && !firstTokenSeen && outputTokens() > 0) {
            error = "no generated text in the stream, usage says " + outputTokens() + " tokens";
        }
        result.complete(outcome());
    }

    private boolean onData(byte[] bytes, int from, int to) {
        if (to - from == DONE.length && indexOf(bytes, from, to, DONE) == from) {
            done = true;
            return true;
        }
        final boolean special =
                indexOf(bytes, from, to, USAGE) >= 0 || indexOf(bytes, from, to, ERROR) >= 0;
        if (special || keepText || gaps != null || !firstTokenSeen) {
            onEvent(bytes, from, to);
        }
        return true;
    }

    private void onEvent(byte[] bytes, int from, int to) {
        final JsonNode event;
        try {
            event = Json.MAPPER.readTree(bytes, from, to - from);
        } catch (IOException e) {
            fail("event is not JSON: " + FailureText.of(e));
            return;
        }
        if (event.hasNonNull("error")) {
            fail("engine or gateway said: " + event.get("error").path("message").asText());
        }
        if (event.hasNonNull("usage")) {
            usage = event.get("usage");
        }
        final JsonNode choice = event.path("choices").path(0);
        final String piece =
                choice.has("delta")
                        ? choice.path("delta").path("content").asText("")
                        : choice.path("text").asText("");
        if (!piece.isEmpty()) {
            final long nowNs = clock.nanoTime();
            if (!firstTokenSeen) {
                firstTokenSeen = true;
                firstTokenNs = nowNs;
            } else if (gaps != null) {
                gaps.accept(nowNs - lastTokenNs);
            }
            lastTokenNs = nowNs;
            if (keepText) {
                text.append(piece);
            }
        }
    }

    private void fail(String what) {
        if (error == null) {
            error = what;
        }
    }

    private Outcome outcome() {
        final long nowNs = clock.nanoTime();
        final String worker = workerName(headers);
        return new Outcome(
                error,
                worker,
                headers.firstValue("x-kvasir-prefill-worker").orElse(worker),
                scheduledNs,
                sentNs,
                firstTokenSeen ? firstTokenNs : nowNs,
                nowNs,
                usage == null ? 0 : usage.path("prompt_tokens").asLong(),
                usage == null
                        ? 0
                        : usage.path("prompt_tokens_details").path("cached_tokens").asLong(0),
                outputTokens(),
                headers.firstValueAsLong("x-kvasir-predicted-cached-tokens").orElse(-1),
                headers.firstValueAsLong("x-kvasir-event-sequence").orElse(Outcome.UNSTATED),
                headers.firstValueAsLong("x-sim-event-sequence").orElse(Outcome.UNSTATED),
                text.toString());
    }

    private long outputTokens() {
        return usage == null ? 0 : usage.path("completion_tokens").asLong();
    }

    private static String workerName(HttpHeaders headers) {
        final String name = headers.firstValue("x-kvasir-worker").orElse("");
        final String rank = headers.firstValue("x-kvasir-dp-rank").orElse("0");
        return rank.equals("0") ? name : name + "/" + rank;
    }

    private static int indexOf(byte[] bytes, int from, int to, byte[] word) {
        for (int i = from; i <= to - word.length; i++) {
            int same = 0;
            while (same < word.length && bytes[i + same] == word[same]) {
                same++;
            }
            if (same == word.length) {
                return i;
            }
        }
        return -1;
    }
}

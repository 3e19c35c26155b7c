package io.kvasir.gateway.trace;

import io.kvasir.registry.FailureText;
import io.opentelemetry.common.ComponentLoader;
import io.opentelemetry.sdk.common.CompletableResultCode;
import io.opentelemetry.sdk.common.export.HttpResponse;
import io.opentelemetry.sdk.common.export.HttpSender;
import io.opentelemetry.sdk.common.export.HttpSenderProvider;
import io.opentelemetry.sdk.common.export.MessageWriter;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/**
 * Gives an exporter its HTTP client and keeps what the collector has answered last, which the
 * exporter itself drops. What is sent is sent one after the other; an answer is here before the
 * exporter gets it. Thread-safe.
 */
final class CollectorAnswers implements ComponentLoader {
    private static final int HUNDRED = 100;
    private static final int SUCCESS = 2; // hundreds of a status

    private final ComponentLoader found;
    private volatile Answer last = new Answer("", PartialSuccess.WHOLE);

    /**
     * What the collector has answered.
     *
     * @param fault in words, why nothing was taken; empty for none
     * @param part what was taken, where something was
     */
    record Answer(String fault, PartialSuccess part) {}

    /**
     * @param found has the HTTP client
     */
    CollectorAnswers(ComponentLoader found) {
        this.found = found;
    }

    /** What was said of the spans that were sent last. */
    Answer last() {
        return last;
    }

    @Override
    public <T> Iterable<T> load(Class<T> type) {
        if (!type.equals(HttpSenderProvider.class)) {
            return found.load(type);
        }
        final List<T> providers = new ArrayList<>();
        for (HttpSenderProvider provider : found.load(HttpSenderProvider.class)) {
            final HttpSenderProvider listening =
                    config -> new ListeningSender(provider.createSender(config));
            providers.add(type.cast(listening));
        }
        return providers;
    }

    /** Sends, and sees the answer first. */
    private final class ListeningSender implements HttpSender {
        private final HttpSender sender;

        private ListeningSender(HttpSender sender) {
            this.sender = sender;
        }

        @Override
        public void send(
                MessageWriter message,
                Consumer<HttpResponse> onResponse,
                Consumer<Throwable> onError) {
            last = new Answer("it does not answer", PartialSuccess.WHOLE);
            sender.send(
                    message,
                    response -> {
                        last = answer(response);
                        onResponse.accept(response);
                    },
                    failure -> {
                        last = new Answer(FailureText.of(failure), PartialSuccess.WHOLE);
                        onError.accept(failure);
                    });
        }

        private static Answer answer(HttpResponse response) {
            final int status = response.getStatusCode();
            if (status / HUNDRED != SUCCESS) {
                return new Answer("it answered " + status, PartialSuccess.WHOLE);
            }
            final byte[] body = response.getResponseBody();
            return new Answer("", body == null ? PartialSuccess.WHOLE : PartialSuccess.read(body));
        }

        @Override
        public CompletableResultCode shutdown() {
            return sender.shutdown();
        }
    }
}

package io.kvasir.gateway.trace;

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
 * exporter hears of it. Thread-safe.
 */
final class CollectorAnswers implements ComponentLoader {
    private final ComponentLoader found;
    private volatile PartialSuccess last = PartialSuccess.WHOLE;

    /**
     * @param found has the HTTP client
     */
    CollectorAnswers(ComponentLoader found) {
        this.found = found;
    }

    /** What was said of the spans that were sent last. */
    PartialSuccess last() {
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

    /** Sends, and hears the answer first. */
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
            last = PartialSuccess.WHOLE;
            sender.send(
                    message,
                    response -> {
                        answered(response);
                        onResponse.accept(response);
                    },
                    onError);
        }

        private void answered(HttpResponse response) {
            final byte[] body = response.getResponseBody();
            last = body == null ? PartialSuccess.WHOLE : PartialSuccess.read(body);
        }

        @Override
        public CompletableResultCode shutdown() {
            return sender.shutdown();
        }
    }
}

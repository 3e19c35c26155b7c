package io.kvasir.gateway.proxy;

import io.kvasir.gateway.upstream.Upstream;
import io.kvasir.router.Worker;

import java.util.function.LongSupplier;

/**
 * When the tokens of one attempt's stream came, for the metrics of its worker and model. Of the
 * pump's thread. Tokens of several answers come interleaved, which says nothing of one: of these
 * only the first token's time is taken.
 */
final class TokenTimes {
    private final ProxyContext context;
    private final ProxyRequest proxied;
    private final Upstream upstream;
    private final Worker worker;
    private final LongSupplier clock;
    private long firstNs = -1;
    private long lastNs;
    private int events;

    /**
     * @param clock nanoseconds since the request's headers
     */
    TokenTimes(
            ProxyContext context,
            ProxyRequest proxied,
            Upstream upstream,
            Worker worker,
            LongSupplier clock) {
        this.context = context;
        this.proxied = proxied;
        this.upstream = upstream;
        this.worker = worker;
        this.clock = clock;
    }

    /**
     * The first token has come.
     *
     * @return nanoseconds since the request's headers
     */
    long first() {
        firstNs = clock.getAsLong();
        lastNs = firstNs;
        context.metrics().firstToken(upstream, proxied.inference().route, firstNs);
        context.metrics()
                .byModel()
                .firstToken(upstream.model(), worker, proxied.prompt().tokens().length, firstNs);
        return firstNs;
    }

    /** The clock is read once for what came together; the first token has a time of its own. */
    void events(int total) {
        if (total <= events) {
            return;
        }
        if (events > 0 && proxied.inference().sequences() == 1) {
            final long now = clock.getAsLong();
            context.metrics()
                    .byModel()
                    .nextTokens(upstream.model(), worker, total - events, now - lastNs);
            lastNs = now;
        }
        events = total;
    }

    /** The answer is complete with these tokens. */
    void complete(int tokens) {
        if (firstNs >= 0 && tokens > 1 && proxied.inference().sequences() == 1) {
            context.metrics()
                    .timePerToken(
                            upstream,
                            proxied.inference().route,
                            (clock.getAsLong() - firstNs) / (tokens - 1));
        }
    }
}

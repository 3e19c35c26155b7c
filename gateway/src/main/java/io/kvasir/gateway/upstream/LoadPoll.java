package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.log.LogText;
import io.kvasir.registry.FailureText;
import io.kvasir.router.Worker;
import io.kvasir.router.load.LoadOutcome;
import io.kvasir.router.load.LoadReading;
import io.kvasir.router.load.LoadSource;
import io.kvasir.router.settings.RouterSettings;

import org.eclipse.jetty.client.CompletableResponseListener;
import org.eclipse.jetty.client.ContentResponse;
import org.eclipse.jetty.client.HttpClient;
import org.eclipse.jetty.client.Request;
import org.eclipse.jetty.http.HttpHeader;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/**
 * Reads each server's page of metrics now and then and reports the load on it to the router, beside
 * the {@link HealthProbe}, which alone says whether the server is there. One virtual thread per
 * server. A page that does not come in time, is too long or cannot be read changes nothing, and is
 * counted; what was reported before ends by its own time to live.
 */
public final class LoadPoll {
    private static final Logger LOG = LoggerFactory.getLogger(LoadPoll.class);

    /** Longest page that is read, in bytes; SGLang's has 73 KB. */
    static final int MOST_BYTES = 4 << 20;

    private final HttpClient client;
    private final WorkerKey key;
    private final GatewayConfig config;

    /** Reads the pages of a model's servers, where its settings say so. */
    public LoadPoll(HttpClient client, WorkerKey key, GatewayConfig config) {
        this.client = client;
        this.key = key;
        this.config = config;
    }

    private boolean isOn() {
        return config.get(RouterSettings.ENGINE_LOAD)
                && !config.get(GatewaySettings.ENGINE_LOAD_INTERVAL).isZero();
    }

    /**
     * Begins to read a server's pages.
     *
     * @return what ends it; does not wait for an answer that is under way
     */
    public Runnable watch(Upstream upstream) {
        if (!isOn()) {
            return () -> {};
        }
        final Thread thread =
                Thread.ofVirtual()
                        .name("kvasir-load-" + upstream.name())
                        .unstarted(() -> keepAsking(upstream));
        thread.start();
        return thread::interrupt;
    }

    private void keepAsking(Upstream upstream) {
        boolean wasGood = true;
        try {
            while (!Thread.currentThread().isInterrupted()) {
                if (upstream.health().state() != UpstreamHealth.State.DOWN
                        && !upstream.ranks().isEmpty()) { // else it is not registered
                    wasGood = ask(upstream, wasGood);
                }
                Thread.sleep(config.get(GatewaySettings.ENGINE_LOAD_INTERVAL));
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // it is removed, or the gateway closes
        }
    }

    /**
     * Asks once; says so when answers begin or end to be good.
     *
     * @return whether the answer was
     */
    private boolean ask(Upstream upstream, boolean wasGood) throws InterruptedException {
        String problem;
        try {
            problem = report(upstream, System.nanoTime());
        } catch (ExecutionException e) {
            final Throwable cause = e.getCause();
            // how Jetty refuses an answer that is too long
            final boolean tooLong = cause instanceof IllegalArgumentException;
            upstream.countLoad(tooLong ? LoadOutcome.UNREADABLE : LoadOutcome.NO_ANSWER);
            problem = UpstreamFault.describe(cause);
        } catch (RuntimeException | Error e) { // an Error too is of this answer
            upstream.countLoad(LoadOutcome.UNREADABLE);
            problem = FailureText.of(e);
        }
        if (problem != null && wasGood) {
            LOG.warn(
                    "worker {}: no load from GET /metrics, bookings alone count: {}",
                    upstream.name(),
                    LogText.of(problem));
        } else if (problem == null && !wasGood) {
            LOG.info("worker {}: its load is in /metrics again", upstream.name());
        }
        return problem == null;
    }

    /** Null where all went well; else what is wrong, which is counted. */
    private String report(Upstream upstream, long askedNs)
            throws InterruptedException, ExecutionException {
        final ContentResponse answer =
                new CompletableResponseListener(request(upstream), MOST_BYTES).send().get();
        if (answer.getStatus() != 200) {
            upstream.countLoad(LoadOutcome.UNREADABLE);
            return "status " + answer.getStatus();
        }
        final Map<Integer, LoadReading> readings =
                EngineLoadPage.readOrNull(
                        new String(answer.getContent(), StandardCharsets.UTF_8),
                        config.get(RouterSettings.BLOCK_SIZE));
        if (readings == null) {
            upstream.countLoad(LoadOutcome.UNREADABLE);
            return "a line of the load is not in Prometheus' format";
        }
        if (readings.isEmpty()) {
            upstream.countLoad(LoadOutcome.EMPTY);
            return "the page says nothing of the load";
        }
        String problem = null;
        for (var entry : readings.entrySet()) {
            final Worker rank = rankOrNull(upstream, entry.getKey(), readings.size());
            final LoadOutcome outcome =
                    rank == null
                            ? upstream.countLoad(LoadOutcome.UNKNOWN_WORKER)
                            : rank.reportLoad(LoadSource.METRICS, askedNs, entry.getValue());
            if (outcome != LoadOutcome.TAKEN && outcome != LoadOutcome.OLDER) {
                problem = "rank " + entry.getKey() + ": " + what(outcome, entry.getValue());
            }
        }
        return problem;
    }

    private static String what(LoadOutcome outcome, LoadReading reading) {
        return reading.problemOrNull() == null ? outcome.spelling() : reading.problemOrNull();
    }

    /** A server of one rank has all of its page, whatever number the rank has there. */
    private static Worker rankOrNull(Upstream upstream, int rank, int onPage) {
        final List<Worker> ranks = upstream.ranks();
        if (ranks.size() == 1 && onPage == 1) {
            return ranks.getFirst();
        }
        final int own = rank - upstream.firstRank();
        return own >= 0 && own < ranks.size() ? ranks.get(own) : null;
    }

    private Request request(Upstream upstream) {
        final Request request =
                UpstreamTransport.applyTo(
                                client.newRequest(upstream.url()),
                                config.get(GatewaySettings.UPSTREAM_HTTP2))
                        .path(upstream.path("/metrics"))
                        .timeout(
                                config.get(GatewaySettings.HEALTH_TIMEOUT).toMillis(),
                                TimeUnit.MILLISECONDS);
        final String authorization = key.of(upstream);
        return authorization == null
                ? request
                : request.headers(all -> all.put(HttpHeader.AUTHORIZATION, authorization));
    }
}

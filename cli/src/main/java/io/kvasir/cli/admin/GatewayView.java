package io.kvasir.cli.admin;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.Json;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.time.Clock;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What a gateway says of itself at one moment.
 *
 * @param url of its admin port
 * @param ready whether new requests should be sent to it
 * @param readiness the same in words
 * @param page of the workers, without these
 * @param workers in order of registration
 * @param metrics those that are used here
 * @param takenNs when, by {@link System#nanoTime()}
 * @param upSeconds how long its process runs; NaN where it does not say
 */
public record GatewayView(
        String url,
        boolean ready,
        String readiness,
        JsonNode page,
        List<WorkerRow> workers,
        MetricsPage metrics,
        long takenNs,
        double upSeconds) {
    static final String REQUESTS = "kvasir_requests_total";
    static final String ATTEMPTS = "kvasir_upstream_attempts_total";
    static final String DECISIONS = "kvasir_routing_duration_seconds_count";
    static final String CACHED = "kvasir_engine_cached_tokens_total";
    static final String STATED = "kvasir_stated_prompt_tokens_total";
    static final String PREDICTIONS = "kvasir_cache_prediction_total";
    static final String TTFT = "kvasir_time_to_first_token_seconds";
    static final String OUTPUT = "kvasir_output_tokens_total";
    static final String IN_FLIGHT = "kvasir_requests_in_flight";
    static final String BUILD = "kvasir_build_info";
    static final String FAILURES = "kvasir_failures_total";
    static final String USED = "kvasir_resource_used";
    static final String LIMIT = "kvasir_resource_limit";
    static final String PREFILL_USED = "kvasir_prefill_pool_resource_used";
    static final String PREFILL_LIMIT = "kvasir_prefill_pool_resource_limit";
    static final String PREFILL_FAILURES = "kvasir_prefill_pool_failures_total";
    static final String SNAPSHOTS = "kvasir_snapshots_total";
    static final String SNAPSHOT_FAILURES = "kvasir_snapshot_last_failures";
    static final String PREFILL_SNAPSHOT_FAILURES = "kvasir_prefill_pool_snapshot_last_failures";
    static final String REFUSED = "kvasir_routing_refused_total";
    static final String SNAPSHOT_AGE = "kvasir_snapshot_age_seconds";

    private static final String START = "process_start_time_seconds";
    private static final Set<String> WANTED =
            Set.of(
                    REQUESTS,
                    ATTEMPTS,
                    DECISIONS,
                    CACHED,
                    STATED,
                    PREDICTIONS,
                    TTFT + "_bucket",
                    TTFT + "_sum",
                    TTFT + "_count",
                    OUTPUT,
                    IN_FLIGHT,
                    BUILD,
                    FAILURES,
                    USED,
                    LIMIT,
                    PREFILL_USED,
                    PREFILL_LIMIT,
                    PREFILL_FAILURES,
                    SNAPSHOTS,
                    SNAPSHOT_FAILURES,
                    PREFILL_SNAPSHOT_FAILURES,
                    SNAPSHOT_AGE,
                    REFUSED,
                    START);
    private static final String READY = "/ready";
    private static final String WORKERS = "/debug/workers";
    private static final String LIST = "workers";
    private static final List<String> POOLS = List.of("main", "prefill");
    private static final int NOT_READY = 503;
    private static final double MS_PER_SECOND = 1_000;

    /** Asks a gateway. */
    public static GatewayView of(AdminPort port) throws InterruptedException {
        final HttpResponse<byte[]> ready = port.page(READY, NOT_READY);
        final String readiness = port.text(READY, port.json(READY, ready), "status");
        final byte[] body = port.page(WORKERS).body();
        final ObjectNode page = Json.object();
        final List<WorkerRow> workers = new ArrayList<>();
        try {
            if (!read(body, page, workers)) {
                throw port.noGateway(WORKERS, page, LIST, "list");
            }
        } catch (IOException e) {
            throw port.noJson(WORKERS, e);
        }
        port.text(WORKERS, page, "mode");
        final MetricsPage metrics = MetricsPage.read(port.page("/metrics").body(), WANTED);
        return new GatewayView(
                port.url().toString(),
                ready.statusCode() != NOT_READY,
                readiness,
                page,
                List.copyOf(workers),
                metrics,
                System.nanoTime(),
                Clock.systemUTC().millis() / MS_PER_SECOND - metrics.sum(START));
    }

    /**
     * Worker by worker: a tree of ten thousand of them takes ten times as much.
     *
     * @return whether there is a list of them
     */
    private static boolean read(byte[] body, ObjectNode page, List<WorkerRow> workers)
            throws IOException {
        boolean listed = false;
        try (JsonParser parser = Json.MAPPER.createParser(body)) {
            if (parser.nextToken() != JsonToken.START_OBJECT) {
                throw new IOException("no object");
            }
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                final String name = parser.currentName();
                if (parser.nextToken() == JsonToken.START_ARRAY && name.equals(LIST)) {
                    listed = true;
                    while (parser.nextToken() != JsonToken.END_ARRAY) {
                        workers.add(WorkerRow.of(parser.readValueAsTree()));
                    }
                } else {
                    page.set(name, parser.readValueAsTree());
                }
            }
        }
        return listed;
    }

    /** What its routers say, one for each model. */
    List<JsonNode> models() {
        final List<JsonNode> models = new ArrayList<>();
        page.path("models").forEach(models::add);
        if (models.isEmpty()) {
            models.add(page);
        }
        return models;
    }

    /** What lines about a model begin with; empty where the gateway has one, which is not named. */
    static String prefix(JsonNode model) {
        return model.path("model").isTextual()
                ? "model " + model.path("model").asText() + ": "
                : "";
    }

    /** What waits for workers; none where no request can wait. */
    public List<QueueRow> queues() {
        return QueueRow.of(this);
    }

    /** What of it is not as it should be beside queues and workers, one line each. */
    public List<String> problems() {
        return Findings.besideQueues(this);
    }

    /**
     * Requests that were refused as all workers were busy, and that no queue would have kept.
     *
     * @param name of the queue that would
     * @param requests since the gateway's start
     */
    public record NotQueued(String name, long requests) {}

    /**
     * One of each pool that has no queue for want of room; of a pool that refused none only the
     * main one.
     */
    public List<NotQueued> notQueued() {
        final List<NotQueued> all = new ArrayList<>();
        for (JsonNode model : models()) {
            for (String pool : POOLS) {
                final JsonNode queue = model.path("queues").path(pool);
                final long busy = refusedAsBusy(model, pool);
                if (!queue.path("threshold").asBoolean(queue.isObject())
                        && (busy > 0 || pool.equals(POOLS.getFirst()))) {
                    all.add(new NotQueued(QueueRow.name(model, pool), busy));
                }
            }
        }
        return all;
    }

    private long refusedAsBusy(JsonNode model, String pool) {
        final JsonNode name = model.path("model");
        return (long)
                metrics.sum(
                        REFUSED,
                        series ->
                                series.label("cause").equals("all_workers_busy")
                                        && series.label("pool").equals(pool)
                                        && (!name.isTextual()
                                                || series.label("model").equals(name.asText())));
    }

    /** Tokens of a block by model. */
    Map<String, Integer> blockSizes() {
        final Map<String, Integer> sizes = new HashMap<>();
        sizes.put("", page.path("block_size").asInt());
        for (JsonNode model : models()) {
            sizes.put(model.path("model").asText(), model.path("block_size").asInt());
        }
        return sizes;
    }

    /** Version of its program. */
    public String version() {
        return metrics.series(BUILD).stream()
                .map(series -> series.label("version"))
                .findFirst()
                .orElse("?");
    }
}

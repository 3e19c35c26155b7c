package io.kvasir.gateway;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.core.index.StorageTier;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.openai.UsageReader;
import io.kvasir.gateway.routing.DecisionRecord;
import io.kvasir.gateway.upstream.Fleet;
import io.kvasir.gateway.upstream.Upstream;
import io.kvasir.gateway.upstream.WorkerPool;
import io.kvasir.pipeline.source.EventPlane;
import io.kvasir.pipeline.source.EventPlaneStatus;
import io.kvasir.pipeline.source.SourceStatus;
import io.kvasir.pipeline.source.UnknownWorker;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Worker;
import io.kvasir.router.queue.QueueStatus;
import io.kvasir.router.queue.RouterQueue;
import io.kvasir.router.replica.ReplicaStatus;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Settings;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Instant;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

/** What the gateway tells about itself, as JSON. */
final class StatusEndpoints {
    private static final double NANOS_PER_MILLI = 1e6;

    private final ServedModels models;
    private final Fleet fleet;
    private final Instant started;

    /** Pages name the model of what they list where there are several. */
    StatusEndpoints(ServedModels models, Fleet fleet, Instant started) {
        this.models = models;
        this.fleet = fleet;
        this.started = started;
    }

    ObjectNode models() {
        final ObjectNode page = Json.MAPPER.createObjectNode();
        page.put("object", "list");
        final ArrayNode data = page.putArray("data");
        for (ServedModel served : models.all()) {
            model(data.addObject(), served, served.name(), null);
            final Set<String> adapters =
                    new LinkedHashSet<>(served.config().get(GatewaySettings.LORA));
            adapters.addAll(served.registry().adapters());
            for (String adapter : adapters) {
                model(data.addObject(), served, adapter, served.name());
            }
        }
        return page;
    }

    /**
     * One of them, or of their adapters.
     *
     * @throws ApiException 404 if there is none of this name
     */
    JsonNode model(String id) throws ApiException {
        for (JsonNode model : models().get("data")) {
            if (model.get("id").textValue().equals(id)) {
                return model;
            }
        }
        throw ApiException.modelNotFound(id);
    }

    private void model(ObjectNode model, ServedModel served, String id, String parent) {
        model.put("id", id);
        model.put("object", "model");
        model.put("created", started.getEpochSecond());
        model.put("owned_by", "kvasir");
        if (parent != null) {
            model.put("parent", parent);
        }
        known(model, "max_model_len", maxModelLength(served));
    }

    private static int maxModelLength(ServedModel served) {
        for (Upstream upstream : served.registry().upstreams(WorkerPool.MAIN)) {
            if (upstream.maxModelLength() != UsageReader.UNKNOWN) {
                return upstream.maxModelLength();
            }
        }
        return UsageReader.UNKNOWN;
    }

    /** As bytes: there may be many, and a tree of them takes ten times as much. */
    static byte[] tokens(int[] tokens, String[] namesOrNull, ServedModel served) {
        final ByteArrayOutputStream page = new ByteArrayOutputStream(8 * tokens.length + 128);
        try (JsonGenerator json = Json.FACTORY.createGenerator(page)) {
            json.writeStartObject();
            json.writeNumberField("count", tokens.length);
            final int length = maxModelLength(served);
            if (length == UsageReader.UNKNOWN) {
                json.writeNullField("max_model_len");
            } else {
                json.writeNumberField("max_model_len", length);
            }
            json.writeFieldName("tokens");
            json.writeArray(tokens, 0, tokens.length);
            json.writeFieldName("token_strs");
            if (namesOrNull == null) {
                json.writeNull();
            } else {
                json.writeArray(namesOrNull, 0, namesOrNull.length);
            }
            json.writeEndObject();
        } catch (IOException e) {
            throw new UncheckedIOException("writing to memory", e);
        }
        return page.toByteArray();
    }

    ObjectNode health(Readiness readiness, Readiness.State state) {
        final ObjectNode page = Json.MAPPER.createObjectNode();
        page.put("status", state.text());
        if (models.several()) {
            final ArrayNode each = page.putArray("models");
            for (ServedModel model : models.all()) {
                each.addObject()
                        .put("model", model.name())
                        .put("status", readiness.health(model.registry()).text());
            }
        }
        final ArrayNode list = page.putArray("workers");
        for (Upstream upstream : fleet.upstreams()) {
            for (Worker worker : upstream.ranks()) {
                final ObjectNode item = list.addObject();
                item.put("worker", worker.name());
                item.put("dp_rank", worker.dpRank());
                item.put("url", worker.url());
                item.put("available", worker.available());
                item.put("health", upstream.health().state().spelling());
                item.put("last_error", upstream.health().lastError());
                item.put("index_state", lower(worker.state()));
                item.put("tokenizer", upstream.tokenizer().spelling());
                putPart(item, upstream);
            }
        }
        return page;
    }

    /** What it is there for. */
    private void putPart(ObjectNode item, Upstream upstream) {
        if (models.several()) {
            item.put("model", upstream.model());
        }
        item.put("role", upstream.role().spelling());
        item.put("pool", upstream.pool().spelling());
        item.put("handoff", upstream.handoff().spelling());
        item.put("input", upstream.input().spelling());
    }

    /** One entry a server, its ranks together. */
    ObjectNode registered() {
        final ObjectNode page = Json.MAPPER.createObjectNode();
        final ArrayNode list = page.putArray("workers");
        fleet.upstreams().forEach(upstream -> registered(list.addObject(), upstream));
        return page;
    }

    void registered(ObjectNode item, Upstream upstream) {
        item.put("name", upstream.name());
        item.put("url", upstream.url().toString());
        item.put("source", upstream.source());
        item.put("generation", upstream.id());
        item.put("dp", upstream.ranks().size());
        putPart(item, upstream);
        item.put("bootstrap", Objects.toString(upstream.bootstrap(), null));
        final ObjectNode labels = item.putObject("labels");
        upstream.labels().forEach(labels::put);
        final ArrayNode taints = item.putArray("taints");
        upstream.taints().forEach(taints::add);
        final ArrayNode adapters = item.putArray("adapters");
        upstream.ranks().stream()
                .limit(1)
                .flatMap(rank -> rank.adapters().stream())
                .sorted()
                .forEach(adapters::add);
        item.put("lists_adapters", upstream.listsAdapters());
        final ObjectNode numbers = item.putObject("lora_ids");
        new TreeMap<>(upstream.loraNumbers()).forEach((number, name) -> numbers.put(name, number));
        item.put("health", upstream.health().state().spelling());
        item.put("in_use", upstream.inUse());
        item.put("draining", upstream.draining());
        item.put(
                "active_requests",
                upstream.ranks().stream().mapToLong(Worker::activeRequests).sum());
    }

    ObjectNode workers() {
        final ObjectNode page = Json.MAPPER.createObjectNode();
        routers(page, models.first());
        if (models.several()) {
            final ArrayNode each = page.putArray("models");
            for (ServedModel model : models.all()) {
                routers(each.addObject().put("model", model.name()), model);
            }
        }
        final ArrayNode list = page.putArray("workers");
        for (Upstream upstream : fleet.upstreams()) {
            for (Worker worker : upstream.ranks()) {
                worker(list.addObject(), worker, upstream);
            }
        }
        return page;
    }

    /** What the routers of a model say. */
    private static void routers(ObjectNode page, ServedModel model) {
        final KvRouter router = model.routers().main();
        page.put("mode", router.mode().spelling());
        page.put("block_size", model.config().get(RouterSettings.BLOCK_SIZE));
        page.put("active_leases", router.activeLeases());
        final KvRouter prefill = model.routers().of(WorkerPool.PREFILL);
        page.put("prefill_mode", prefill == null ? null : prefill.mode().spelling());
        page.put("prefill_active_leases", prefill == null ? 0 : prefill.activeLeases());
        page.put("split", model.registry().canSplit());
        queues(page, model);
        replicas(page, router.status().replicaOrNull());
        plane(page, router.eventPlane());
    }

    /** What waits for workers of each pool; absent where no request can wait. */
    private static void queues(ObjectNode page, ServedModel model) {
        for (WorkerPool pool : WorkerPool.values()) {
            final RouterQueue queue = model.routers().queueOrNull(pool);
            final KvRouter router = model.routers().of(pool);
            if (queue != null && router != null) {
                final QueueStatus status = queue.status();
                final Settings settings = router.settings();
                final ObjectNode item =
                        page.withObjectProperty("queues").putObject(pool.spelling());
                item.put("threshold", RouterQueue.hasThreshold(settings));
                item.put("requests", status.requests());
                item.put("tokens", status.tokens());
                item.put("following", status.following());
                item.put("oldest_ms", TimeUnit.NANOSECONDS.toMillis(status.oldestNs()));
                item.put("admitted", status.admitted());
                item.put("waited", status.waited());
                final ObjectNode limits = item.putObject("limits");
                limits.put(
                        RouterSettings.QUEUE_MAX_REQUESTS.name(),
                        settings.get(RouterSettings.QUEUE_MAX_REQUESTS));
                limits.put(
                        RouterSettings.QUEUE_MAX_TOKENS.name(),
                        settings.get(RouterSettings.QUEUE_MAX_TOKENS));
                limits.put(
                        RouterSettings.QUEUE_MAX_WAIT.name(),
                        settings.get(RouterSettings.QUEUE_MAX_WAIT).toMillis());
                final ObjectNode refused = item.putObject("refused");
                status.refused().entrySet().stream()
                        .sorted(Map.Entry.comparingByKey())
                        .forEach(entry -> refused.put(entry.getKey().spelling(), entry.getValue()));
                refused.put("cancelled", status.cancelled());
            }
        }
    }

    private static void replicas(ObjectNode page, ReplicaStatus statusOrNull) {
        if (statusOrNull != null) {
            final ObjectNode item = page.putObject("replicas");
            item.put("problem", statusOrNull.isConnected() ? null : statusOrNull.problem());
            item.put("heard_of", statusOrNull.peers());
            item.put("bookings", statusOrNull.peerBookings());
            statusOrNull.byEvent().forEach((event, n) -> item.put(event.replace('-', '_'), n));
        }
    }

    private static void plane(ObjectNode page, EventPlane planeOrNull) {
        if (planeOrNull != null) {
            final EventPlaneStatus status = planeOrNull.status();
            final ObjectNode item = page.putObject("event_plane");
            item.put("problem", status.problem().isEmpty() ? null : status.problem());
            item.put("streams", status.streams());
            item.put("waiting", status.waiting());
            item.put("behind", status.behind());
            item.put("recovering", status.recovering());
            status.byEvent().forEach((event, n) -> item.put(event.replace('-', '_'), n));
            final ArrayNode list = item.putArray("unknown_workers");
            for (UnknownWorker unknown : planeOrNull.unknownWorkers()) {
                final ObjectNode worker = list.addObject();
                worker.put("worker_id", Long.toUnsignedString(unknown.workerId()));
                worker.put("dp_rank", unknown.dpRank());
                worker.put("events", unknown.events());
            }
        }
    }

    private void worker(ObjectNode item, Worker worker, Upstream upstream) {
        item.put("worker", worker.name());
        item.put("dp_rank", worker.dpRank());
        item.put("url", worker.url());
        item.put("source", upstream.source());
        item.put("available", worker.available());
        item.put("draining", upstream.draining());
        item.put("generation", upstream.id());
        putPart(item, upstream);
        item.put("health", upstream.health().state().spelling());
        item.put("last_error", upstream.health().lastError());
        item.put("tokenizer", upstream.tokenizer().spelling());
        item.put("tokenizer_detail", upstream.tokenizerDetail());
        item.put("other_models", upstream.otherModels());
        known(item, "engine_block_size", upstream.engineBlockSize());
        known(item, "engine_blocks", upstream.engineBlocks());
        item.put("active_requests", worker.activeRequests());
        item.put("prefill_tokens", worker.prefillTokens());
        item.put("active_blocks", worker.activeBlocks());
        LoadView.put(item, worker);
        item.put("index_blocks", worker.indexedBlocks());
        item.put("host_blocks", worker.indexedBlocks(StorageTier.HOST));
        item.put("disk_blocks", worker.indexedBlocks(StorageTier.DISK));
        final SourceStatus status = worker.sourceStatus();
        item.put("index_state", lower(status == null ? worker.state() : status.state()));
        final String problem = status == null ? worker.indexProblem() : status.problem();
        item.put("index_cause", (status == null ? worker.cause() : status.cause()).spelling());
        item.put("index_credit", worker.indexCredit());
        item.put("index_problem", problem.isEmpty() ? null : problem);
        item.put("lacks_last_block", worker.lacksLastBlock());
        item.put("event_sequence", worker.eventSequence());
        if (status == null) {
            item.putNull("events");
            return;
        }
        final ObjectNode events = item.putObject("events");
        events.put("endpoint", status.endpoint());
        events.put("problem", status.problem().isEmpty() ? null : status.problem());
        if (status.lastEventAgeNs() < 0) {
            events.putNull("age_ms");
        } else {
            events.put("age_ms", status.lastEventAgeNs() / NANOS_PER_MILLI);
        }
        events.put("last_sequence", status.lastSequence());
        events.put("messages", status.messages());
        events.put("events", status.events());
        events.put("applied", status.applied());
        events.put("waiting", status.waiting());
        events.put("behind", status.behind());
        events.put("gaps", status.gaps());
        events.put("lost_messages", status.lostMessages());
        events.put("replays", status.replays());
        events.put("restarts", status.restarts());
        events.put("removals", lower(status.removals()));
        known(
                events,
                "block_size",
                status.learnedBlockSize() == 0 ? -1 : status.learnedBlockSize());
        final ObjectNode drops = events.putObject("drops");
        status.drops().forEach(drops::put);
    }

    private static void known(ObjectNode node, String name, int value) {
        if (value == UsageReader.UNKNOWN) {
            node.putNull(name);
        } else {
            node.put(name, value);
        }
    }

    private static String lower(Enum<?> value) {
        return value.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /**
     * @param kept how many are kept at most
     */
    ObjectNode decisions(List<DecisionRecord> decisions, int kept) {
        final ObjectNode page = Json.MAPPER.createObjectNode();
        page.put("kept", kept);
        final ArrayNode list = page.putArray("decisions");
        for (DecisionRecord decision : decisions) {
            final ObjectNode item = decision.json();
            item.put(
                    "block_size",
                    models.of(decision.model()).config().get(RouterSettings.BLOCK_SIZE));
            list.add(models.several() ? item.put("model", decision.model()) : item);
        }
        return page;
    }
}

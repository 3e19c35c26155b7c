package io.kvasir.services.slots;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.router.replica.ReplicaStatus;
import io.kvasir.services.http.Call;
import io.kvasir.services.http.Endpoint;
import io.kvasir.services.http.GroupKey;
import io.kvasir.services.http.JsonBody;
import io.kvasir.services.http.Reply;
import io.kvasir.services.http.ServiceException;
import io.kvasir.services.http.ServiceJson;

import java.util.Map;
import java.util.function.Supplier;

/** The endpoints of a slot tracker. */
final class SlotsApi {
    private final SlotTracker tracker;
    private final boolean isShared;
    private final Supplier<ReplicaStatus> replica;

    /**
     * @param isShared whether requests are shared with other trackers
     * @param replica what has been done for that
     */
    SlotsApi(SlotTracker tracker, boolean isShared, Supplier<ReplicaStatus> replica) {
        this.tracker = tracker;
        this.isShared = isShared;
        this.replica = replica;
    }

    Map<String, Map<String, Endpoint>> endpoints() {
        return Map.ofEntries(
                Map.entry("/health", Map.of("GET", call -> Reply.empty())),
                Map.entry("/register", Map.of("POST", this::register)),
                Map.entry("/unregister", Map.of("POST", this::unregister)),
                Map.entry("/workers", Map.of("GET", this::workers)),
                Map.entry("/add", Map.of("POST", this::add)),
                Map.entry("/prefill_complete", Map.of("POST", this::prefillComplete)),
                Map.entry("/free", Map.of("POST", this::free)),
                Map.entry("/loads", Map.of("GET", this::loads)),
                Map.entry("/potential_loads", Map.of("POST", this::potentialLoads)),
                Map.entry(
                        "/replica_sync/peers",
                        Map.of("GET", call -> Reply.json(200, ServiceJson.array()))),
                Map.entry("/replica_sync/register_peer", Map.of("POST", this::noPeer)),
                Map.entry("/replica_sync/deregister_peer", Map.of("POST", this::noPeer)),
                Map.entry("/replica_sync/status", Map.of("GET", this::replicaStatus)));
    }

    private Reply register(Call call) throws ServiceException {
        final JsonBody body = call.body();
        tracker.register(
                GroupKey.of(body),
                body.unsigned("worker_id"),
                body.count("block_size"),
                body.unsigned32("dp_start"),
                body.unsigned32("dp_size"));
        return Reply.ok(201);
    }

    private Reply unregister(Call call) throws ServiceException {
        final JsonBody body = call.body();
        tracker.unregister(GroupKey.of(body), body.unsigned("worker_id"));
        return Reply.ok(200);
    }

    private Reply workers(Call call) {
        final ArrayNode list = ServiceJson.array();
        tracker.forEachWorker(
                (key, id, blockSize, firstRank, ranks) -> {
                    if (key.isMeantBy(call)) {
                        final ObjectNode worker = list.addObject();
                        ServiceJson.putUnsigned(worker, "worker_id", id);
                        worker.put("model_name", key.model());
                        worker.put("routing_group", key.routingGroup());
                        worker.put("block_size", blockSize);
                        worker.put("dp_start", firstRank).put("dp_size", ranks);
                    }
                });
        return Reply.json(200, list);
    }

    private Reply add(Call call) throws ServiceException {
        final JsonBody body = call.body();
        tracker.add(
                GroupKey.of(body),
                body.text("request_id"),
                body.unsigned("worker_id"),
                body.unsigned32("dp_rank"),
                body.signedArray("sequence_hashes"),
                body.count("new_isl_tokens", 0));
        return Reply.ok(201);
    }

    private Reply prefillComplete(Call call) throws ServiceException {
        final JsonBody body = call.body();
        tracker.prefillComplete(GroupKey.of(body), body.text("request_id"));
        return Reply.ok(200);
    }

    private Reply free(Call call) throws ServiceException {
        final JsonBody body = call.body();
        tracker.free(GroupKey.of(body), body.text("request_id"));
        return Reply.ok(200);
    }

    private Reply loads(Call call) {
        final ArrayNode list = ServiceJson.array();
        for (RankLoad load : tracker.loads()) {
            if (load.key().isMeantBy(call)) {
                final ObjectNode shown = list.addObject();
                shown.put("model_name", load.key().model());
                shown.put("routing_group", load.key().routingGroup());
                ServiceJson.putUnsigned(shown, "worker_id", load.worker());
                shown.put("dp_rank", load.dpRank());
                shown.put("active_prefill_tokens", load.prefillTokens());
                shown.put("active_decode_blocks", load.decodeBlocks());
            }
        }
        return Reply.json(200, list);
    }

    private Reply potentialLoads(Call call) throws ServiceException {
        final JsonBody body = call.body();
        final ArrayNode list = ServiceJson.array();
        for (RankLoad load :
                tracker.potentialLoads(
                        GroupKey.of(body),
                        body.signedArray("sequence_hashes"),
                        body.count("new_isl_tokens", 0))) {
            final ObjectNode shown = list.addObject();
            ServiceJson.putUnsigned(shown, "worker_id", load.worker());
            shown.put("dp_rank", load.dpRank());
            shown.put("potential_prefill_tokens", load.prefillTokens());
            shown.put("potential_decode_blocks", load.decodeBlocks());
            shown.put("active_requests", load.requests());
        }
        return Reply.json(200, list);
    }

    /** Peers are not registered: where requests are shared, trackers find each other over NATS. */
    private Reply noPeer(Call call) throws ServiceException {
        call.body().text("endpoint");
        throw new ServiceException(
                409,
                isShared
                        ? "replica sync goes over NATS, where trackers find each other"
                        : "replica sync is disabled");
    }

    private Reply replicaStatus(Call call) {
        final ReplicaStatus status = replica.get();
        final ObjectNode shown = ServiceJson.object();
        shown.put("enabled", isShared);
        shown.put("problem", status.isConnected() ? null : status.problem());
        shown.put("peers", status.peers());
        shown.put("peer_requests", status.peerBookings());
        final ObjectNode events = shown.putObject("events");
        status.byEvent().forEach((event, count) -> events.put(event, count));
        return Reply.json(200, shown);
    }
}

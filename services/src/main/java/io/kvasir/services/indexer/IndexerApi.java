package io.kvasir.services.indexer;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.core.memory.ClosedException;
import io.kvasir.services.http.Call;
import io.kvasir.services.http.Endpoint;
import io.kvasir.services.http.GroupKey;
import io.kvasir.services.http.JsonBody;
import io.kvasir.services.http.Reply;
import io.kvasir.services.http.ServiceException;
import io.kvasir.services.http.ServiceJson;

import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.Function;

/** The endpoints of an indexer. */
final class IndexerApi {
    private static final int MAX_PEERS = 1_024;

    private final IndexRegistry registry;
    private final IndexerMetrics metrics;
    private final TreeSet<String> peers = new TreeSet<>(); // guarded by itself

    IndexerApi(IndexRegistry registry, IndexerMetrics metrics, List<String> peers) {
        this.registry = registry;
        this.metrics = metrics;
        this.peers.addAll(peers);
    }

    Map<String, Map<String, Endpoint>> endpoints() {
        return Map.ofEntries(
                Map.entry("/health", Map.of("GET", call -> Reply.empty())),
                Map.entry("/metrics", Map.of("GET", call -> metrics.page(call.header("Accept")))),
                Map.entry("/register", Map.of("POST", this::register)),
                Map.entry("/unregister", Map.of("POST", this::unregister)),
                Map.entry("/workers", Map.of("GET", this::workers)),
                Map.entry("/query", Map.of("POST", this::query)),
                Map.entry("/query_by_hash", Map.of("POST", this::queryByHash)),
                Map.entry("/dump", Map.of("GET", new DumpEndpoint(registry))),
                Map.entry("/register_peer", Map.of("POST", this::registerPeer)),
                Map.entry("/deregister_peer", Map.of("POST", this::deregisterPeer)),
                Map.entry("/peers", Map.of("GET", call -> peers())),
                Map.entry("/reopen_logs", Map.of("POST", call -> Reply.ok(200))));
    }

    private Reply register(Call call) throws ServiceException {
        final JsonBody body = call.body();
        registry.register(
                new Registration(
                        body.unsigned("instance_id"),
                        GroupKey.of(body),
                        body.count("block_size"),
                        body.count("dp_rank", 0),
                        body.text("endpoint"),
                        body.textOrNull("replay_endpoint")));
        return Reply.ok(201);
    }

    private Reply unregister(Call call) throws ServiceException {
        final JsonBody body = call.body();
        registry.unregister(
                body.unsigned("instance_id"),
                body.text("model_name"),
                body.text("routing_group", null));
        return Reply.ok(200);
    }

    private Reply workers(Call call) {
        final ArrayNode workers = ServiceJson.array();
        for (IndexRegistry.View view : registry.views()) {
            if (view.key().isMeantBy(call)) {
                workers.add(worker(view));
            }
        }
        return Reply.json(200, workers);
    }

    private static ObjectNode worker(IndexRegistry.View view) {
        final ObjectNode worker = ServiceJson.object();
        ServiceJson.putUnsigned(worker, "instance_id", view.id());
        worker.put("source", "zmq").put("status", status(view));
        worker.put("model_name", view.key().model());
        worker.put("routing_group", view.key().routingGroup());
        worker.put("block_size", view.blockSize());
        final ObjectNode endpoints = worker.putObject("endpoints");
        final ObjectNode listeners = worker.putObject("listeners");
        for (Listener listener : view.listeners()) {
            final String rank = Integer.toString(listener.tenant.dpRank);
            endpoints.put(rank, listener.endpoint);
            final ObjectNode shown =
                    listeners
                            .putObject(rank)
                            .put("endpoint", listener.endpoint)
                            .put("status", listener.status())
                            .put("index_state", listener.state());
            final String problem = listener.source.status().problem();
            if (!problem.isEmpty()) {
                shown.put("problem", problem);
            }
        }
        return worker;
    }

    /** The worst of its listeners'. */
    private static String status(IndexRegistry.View view) {
        String worst = "active";
        for (Listener listener : view.listeners()) {
            final String status = listener.status();
            worst = status.equals("failed") || worst.equals("active") ? status : worst;
        }
        return worst;
    }

    private Reply query(Call call) throws ServiceException {
        final JsonBody body = call.body();
        final int[] tokens = body.unsigned32Array("token_ids");
        final String lora = body.textOrNull("lora_name");
        final String salt = body.textOrNull("cache_salt");
        return answer(GroupKey.of(body), group -> group.match(tokens, lora, salt));
    }

    private Reply queryByHash(Call call) throws ServiceException {
        final JsonBody body = call.body();
        final long[] hashes = body.signedArray("block_hashes");
        final GroupKey key = GroupKey.of(body);
        if (body.textOrNull("cache_salt") != null) {
            throw new ServiceException(
                    400,
                    "cache_salt is not accepted by /query_by_hash; block_hashes must already"
                            + " include the intended cache salt");
        }
        return answer(key, group -> group.match(hashes, hashes.length));
    }

    private Reply answer(GroupKey key, Function<IndexGroup, List<Match>> question)
            throws ServiceException {
        final IndexGroup group = registry.group(key);
        try {
            return Reply.json(200, scores(question.apply(group)));
        } catch (ClosedException e) {
            final IndexGroup now = registry.group(key); // it has ended meanwhile: 404
            if (now == group) {
                throw e;
            }
            return Reply.json(200, scores(question.apply(now)));
        }
    }

    /**
     * Tokens by instance and rank, and for each instance the most of its ranks. Numbers of lower
     * tiers include those above them.
     */
    private static ObjectNode scores(List<Match> matches) {
        final ObjectNode answer = ServiceJson.object();
        final ObjectNode scores = answer.putObject("scores");
        answer.putArray("frequencies");
        final ObjectNode instances = answer.putObject("instances");
        for (Match match : matches) {
            final String id = Long.toUnsignedString(match.instance());
            final String rank = Integer.toString(match.dpRank());
            scores.withObjectProperty(id).put(rank, match.tokens());
            final ObjectNode instance = instances.withObjectProperty(id);
            putMost(instance, "longest_matched", match.withShared());
            putMost(instance, "gpu", match.tokens());
            instance.withObjectProperty("dp").put(rank, match.tokens());
            putMost(instance, "cpu", match.withHost());
            putMost(instance, "disk", match.withDisk());
        }
        return answer;
    }

    private static void putMost(ObjectNode instance, String name, int tokens) {
        instance.put(name, Math.max(tokens, instance.path(name).asInt(0)));
    }

    private Reply registerPeer(Call call) throws ServiceException {
        final String url = call.body().text("url");
        synchronized (peers) {
            if (peers.size() >= MAX_PEERS && !peers.contains(url)) {
                throw ServiceException.noRoom("there are " + MAX_PEERS + " peers already");
            }
            peers.add(url);
        }
        return Reply.ok(201);
    }

    private Reply deregisterPeer(Call call) throws ServiceException {
        final String url = call.body().text("url");
        synchronized (peers) {
            if (!peers.remove(url)) {
                throw new ServiceException(404, "peer not found");
            }
        }
        return Reply.ok(200);
    }

    private Reply peers() {
        final ArrayNode list = ServiceJson.array();
        synchronized (peers) {
            peers.forEach(list::add);
        }
        return Reply.json(200, list);
    }
}

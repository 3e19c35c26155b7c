package io.kvasir.services.select;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.services.http.Call;
import io.kvasir.services.http.Endpoint;
import io.kvasir.services.http.GroupKey;
import io.kvasir.services.http.JsonBody;
import io.kvasir.services.http.Reply;
import io.kvasir.services.http.ServiceException;
import io.kvasir.services.http.ServiceJson;
import io.kvasir.services.indexer.IndexGroup;
import io.kvasir.services.indexer.Match;
import io.kvasir.services.slots.RankLoad;
import io.kvasir.services.slots.SlotTracker;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.function.LongPredicate;
import java.util.function.LongSupplier;
import java.util.function.ToIntFunction;
import java.util.stream.Collectors;
import java.util.stream.LongStream;

/** The endpoints of a selection service. */
final class SelectApi {
    private static final String ID = "selection_id";

    private final WorkerCatalogue workers;
    private final SlotTracker tracker;
    private final Chooser chooser;
    private final PendingSelections pending;
    private final Endpoint dump;
    private final LongSupplier nanoClock;

    SelectApi(
            WorkerCatalogue workers,
            SlotTracker tracker,
            Chooser chooser,
            PendingSelections pending,
            Endpoint dump,
            LongSupplier nanoClock) {
        this.workers = workers;
        this.tracker = tracker;
        this.chooser = chooser;
        this.pending = pending;
        this.dump = dump;
        this.nanoClock = nanoClock;
    }

    Map<String, Map<String, Endpoint>> endpoints() {
        return Map.ofEntries(
                Map.entry("/health", Map.of("GET", _ -> Reply.ok(200))),
                Map.entry("/ready", Map.of("GET", _ -> ready())),
                Map.entry("/workers", Map.of("GET", this::workers, "POST", this::putWorker)),
                Map.entry(
                        "/workers/{}",
                        Map.of("PATCH", this::changeWorker, "DELETE", this::removeWorker)),
                Map.entry("/select", Map.of("POST", this::select)),
                Map.entry("/select_and_reserve", Map.of("POST", this::selectAndReserve)),
                Map.entry("/reservations", Map.of("POST", this::reserve)),
                Map.entry("/reservations/{}", Map.of("DELETE", this::free)),
                Map.entry(
                        "/reservations/{}/prefill_complete", Map.of("POST", this::prefillComplete)),
                Map.entry("/reservations/{}/output_block", Map.of("POST", this::outputBlock)),
                Map.entry("/loads", Map.of("GET", this::loads)),
                Map.entry("/potential_loads", Map.of("POST", this::potentialLoads)),
                Map.entry("/overlap_scores", Map.of("POST", this::overlapScores)),
                Map.entry("/dump", Map.of("GET", dump)),
                Map.entry(
                        "/replica_sync/peers",
                        Map.of("GET", _ -> Reply.json(200, ServiceJson.array()))),
                Map.entry("/replica_sync/register_peer", Map.of("POST", SelectApi::noPeer)),
                Map.entry("/replica_sync/deregister_peer", Map.of("POST", SelectApi::noPeer)));
    }

    private static Reply noPeer(Call call) throws ServiceException {
        call.body().text("endpoint");
        throw new ServiceException(409, "replica sync is disabled");
    }

    private Reply ready() {
        final List<WorkerCatalogue.Entry> all = workers.all();
        final long schedulable = all.stream().filter(WorkerCatalogue.Entry::isSchedulable).count();
        final ObjectNode shown = ServiceJson.object();
        shown.put("ready", schedulable > 0).put("schedulable_workers", schedulable);
        final ArrayNode list = shown.putArray("workers");
        all.forEach(entry -> list.add(shown(entry, lifecycle(entry))));
        return Reply.json(schedulable > 0 ? 200 : 503, shown);
    }

    private Reply workers(Call call) {
        final ArrayNode list = ServiceJson.array();
        for (WorkerCatalogue.Entry entry : workers.all()) {
            if (entry.sheet().key().isMeantBy(call)) {
                list.add(shown(entry, lifecycle(entry)));
            }
        }
        return Reply.json(200, list);
    }

    private static String lifecycle(WorkerCatalogue.Entry entry) {
        return entry.isSchedulable() ? "schedulable" : "incomplete";
    }

    /** With all members that there are elsewhere; what is not known here is null. */
    private static ObjectNode shown(WorkerCatalogue.Entry entry, String lifecycle) {
        final WorkerSheet sheet = entry.sheet();
        final ObjectNode shown = ServiceJson.object();
        ServiceJson.putUnsigned(shown, "worker_id", sheet.id());
        shown.put("model_name", sheet.key().model());
        shown.put("routing_group", sheet.key().routingGroup());
        shown.put("lifecycle", lifecycle);
        shown.put("endpoint", sheet.endpoint());
        shown.put("kv_events_endpoint", sheet.events());
        if (!sheet.eventsByRank().isEmpty()) {
            final ObjectNode byRank = shown.putObject("kv_events_endpoints");
            sheet.eventsByRank().forEach((rank, at) -> byRank.put(Integer.toString(rank), at));
        }
        shown.put("replay_endpoint", sheet.replay());
        shown.put("block_size", sheet.blockSize());
        shown.put("data_parallel_start_rank", sheet.firstRank());
        shown.put("data_parallel_size", sheet.ranks());
        shown.put("max_num_batched_tokens", sheet.batchTokens());
        shown.put("total_kv_blocks", sheet.kvBlocks());
        shown.putNull("stable_routing_id").putNull("is_eagle");
        final ArrayNode taints = shown.putArray("taints");
        sheet.taints().forEach(taints::add);
        final ObjectNode topology = shown.putObject("topology_domains");
        sheet.topology().forEach(topology::put);
        shown.putNull("kv_transfer_domain").putNull("kv_transfer_enforcement");
        shown.putNull("kv_transfer_preferred_weight");
        if (!entry.reasons().isEmpty()) {
            final ArrayNode reasons = shown.putArray("not_schedulable_reasons");
            entry.reasons().forEach(reasons::add);
        }
        return shown;
    }

    private Reply putWorker(Call call) throws ServiceException {
        final WorkerCatalogue.Entry entry = workers.put(WorkerSheet.of(call.body()));
        return Reply.json(201, shown(entry, lifecycle(entry)));
    }

    private Reply changeWorker(Call call) throws ServiceException {
        final JsonBody body = call.body();
        final WorkerCatalogue.Entry entry =
                workers.change(workerId(call), before -> before.with(body));
        return Reply.json(200, shown(entry, lifecycle(entry)));
    }

    private Reply removeWorker(Call call) throws ServiceException {
        return Reply.json(200, shown(workers.remove(workerId(call)), "unschedulable"));
    }

    private static long workerId(Call call) throws ServiceException {
        try {
            return Long.parseUnsignedLong(call.parameter());
        } catch (NumberFormatException e) {
            throw new ServiceException(
                    400, "Invalid URL: Cannot parse `" + call.parameter() + "` to a `u64`");
        }
    }

    private Reply select(Call call) throws ServiceException {
        final JsonBody body = call.body();
        final GroupKey key = Prompt.key(body);
        final Selection chosen =
                chooser.choose(
                        key,
                        Prompt.of(body, workers.index(key)),
                        allowed(body),
                        Wanted.of(body),
                        session(body));
        final ObjectNode shown = ServiceJson.object();
        final String id = idOrNull(body);
        if (id != null) {
            pending.add(id, chosen, nanoClock.getAsLong());
            shown.put(ID, id);
        }
        return Reply.json(200, put(shown, chosen));
    }

    private Reply selectAndReserve(Call call) throws ServiceException {
        final JsonBody body = call.body();
        final GroupKey key = Prompt.key(body);
        final Prompt prompt = Prompt.of(body, workers.index(key));
        final String given = idOrNull(body);
        final String id = given == null ? UUID.randomUUID().toString() : given;
        final Selection chosen =
                chooser.reserve(id, key, prompt, allowed(body), Wanted.of(body), session(body));
        final ObjectNode shown = ServiceJson.object().put(ID, id);
        final ArrayNode hashes = shown.putArray("sequence_hashes");
        LongStream.of(prompt.sequenceHashes).forEach(hashes::add);
        shown.put("isl_tokens", prompt.tokens).put("track_prefill_tokens", true);
        return Reply.json(200, put(shown, chosen));
    }

    private static String idOrNull(JsonBody body) throws ServiceException {
        final String id = body.textOrNull(ID);
        return id == null ? null : checked(id);
    }

    /** An id that the path which ends its reservation can have. */
    private static String checked(String id) throws ServiceException {
        if (id.isEmpty()
                || id.indexOf('\0') >= 0
                || !StandardCharsets.UTF_8.newEncoder().canEncode(id)) {
            throw ServiceException.unusable(
                    ID
                            + ": a text that is not empty, of Unicode characters without NUL, is"
                            + " needed");
        }
        return id;
    }

    /** Name of the session; null for none. */
    private static String session(JsonBody body) throws ServiceException {
        final String session = body.textOrNull("session_id");
        if (session != null
                && (session.isBlank() || session.length() > Sessions.MOST_NAME_LENGTH)) {
            throw ServiceException.unusable(
                    "session_id: a text of 1 to "
                            + Sessions.MOST_NAME_LENGTH
                            + " characters, not blank, is needed");
        }
        return session;
    }

    private static LongPredicate allowed(JsonBody body) throws ServiceException {
        if (body.isAbsent("allowed_worker_ids")) {
            return _ -> true;
        }
        final Set<Long> ids =
                LongStream.of(body.unsignedArray("allowed_worker_ids"))
                        .boxed()
                        .collect(Collectors.toSet());
        return ids::contains;
    }

    private static int most(Selection chosen, ToIntFunction<Match> tokens) {
        return chosen.heldByRank().values().stream().mapToInt(tokens).max().orElse(0);
    }

    private static ObjectNode put(ObjectNode shown, Selection chosen) {
        putWorker(shown, chosen.key(), chosen.worker(), chosen.dpRank());
        shown.put("block_size", chosen.worker().blockSize());
        final ObjectNode overlap = shown.putObject("overlap");
        overlap.put("longest_matched", most(chosen, Match::withShared));
        overlap.put("gpu", most(chosen, Match::tokens));
        final ObjectNode byRank = overlap.putObject("dp");
        chosen.heldByRank().forEach((rank, held) -> byRank.put(Long.toString(rank), held.tokens()));
        overlap.put("cpu", most(chosen, Match::withHost));
        overlap.put("disk", most(chosen, Match::withDisk));
        shown.put("effective_prefill_tokens", chosen.prefillTokens());
        return shown.put("potential_decode_blocks", chosen.decodeBlocks());
    }

    private static ObjectNode putWorker(
            ObjectNode shown, GroupKey key, WorkerSheet worker, long dpRank) {
        shown.put("model_name", key.model()).put("routing_group", key.routingGroup());
        ServiceJson.putUnsigned(shown, "worker_id", worker.id());
        return shown.put("dp_rank", dpRank).put("endpoint", worker.endpoint());
    }

    private Reply reserve(Call call) throws ServiceException {
        final JsonBody body = call.body();
        final String id = checked(body.text(ID));
        final GroupKey key = Prompt.key(body);
        if (body.isAbsent("worker_id")) {
            return claim(id, key);
        }
        final Prompt prompt = Prompt.ofReservation(body, workers.index(key));
        final int toPrefill =
                body.isAbsent("effective_prefill_tokens")
                        ? 0
                        : body.count("effective_prefill_tokens");
        if (toPrefill > prompt.tokens) {
            throw new ServiceException(
                    400,
                    "effective_prefill_tokens ("
                            + toPrefill
                            + ") must not exceed isl_tokens ("
                            + prompt.tokens
                            + ")");
        }
        final WorkerSheet worker = workers.schedulable(key, body.unsigned("worker_id"));
        final long rank = body.isAbsent("dp_rank") ? worker.start() : body.unsigned32("dp_rank");
        chooser.reserve(id, key, worker.id(), rank, prompt.sequenceHashes, toPrefill);
        return reserved(id, key, worker, rank);
    }

    /** Reserves what was selected under that id before. */
    private Reply claim(String id, GroupKey key) throws ServiceException {
        final Selection chosen =
                pending.claimOrNull(
                        id,
                        key,
                        nanoClock.getAsLong(),
                        selection -> chooser.reserve(id, selection));
        if (chosen == null) {
            throw new ServiceException(
                    404,
                    "no pending selection "
                            + id
                            + " for "
                            + key.words()
                            + " (expired, already used, or never selected)");
        }
        return reserved(id, key, chosen.worker(), chosen.dpRank());
    }

    private static Reply reserved(String id, GroupKey key, WorkerSheet worker, long dpRank) {
        return Reply.json(201, putWorker(ServiceJson.object().put(ID, id), key, worker, dpRank));
    }

    private GroupKey groupOf(String id) throws ServiceException {
        final GroupKey key = tracker.groupOrNull(id);
        if (key == null) {
            throw new ServiceException(404, "reservation " + id + " not found");
        }
        return key;
    }

    private Reply free(Call call) throws ServiceException {
        tracker.free(groupOf(call.parameter()), call.parameter());
        return Reply.ok(200);
    }

    private Reply prefillComplete(Call call) throws ServiceException {
        tracker.prefillComplete(groupOf(call.parameter()), call.parameter());
        return Reply.ok(200);
    }

    private Reply outputBlock(Call call) throws ServiceException {
        double fraction = Double.NaN;
        if (call.hasBody() && !call.body().isAbsent("decay_fraction")) {
            fraction = call.body().number("decay_fraction", Double.NaN);
            if (!(fraction >= 0 && fraction <= 1)) {
                throw new ServiceException(400, "decay_fraction must be between 0.0 and 1.0");
            }
        }
        tracker.outputBlock(groupOf(call.parameter()), call.parameter(), fraction);
        return Reply.ok(200);
    }

    private Reply loads(Call call) {
        final Map<GroupKey, ArrayNode> byGroup = new TreeMap<>();
        for (RankLoad load : tracker.loads()) {
            if (load.key().isMeantBy(call)) {
                add(byGroup.computeIfAbsent(load.key(), _ -> ServiceJson.array()), load);
            }
        }
        final ArrayNode list = ServiceJson.array();
        byGroup.forEach(
                (key, loads) -> {
                    final ObjectNode group = list.addObject();
                    group.put("model_name", key.model()).put("routing_group", key.routingGroup());
                    group.set("loads", loads);
                    group.put("pending_count", 0).put("pending_isl_tokens", 0);
                });
        return Reply.json(200, list);
    }

    private static void add(ArrayNode list, RankLoad load) {
        final ObjectNode shown = list.addObject();
        ServiceJson.putUnsigned(shown, "worker_id", load.worker());
        shown.put("dp_rank", load.dpRank());
        shown.put("potential_prefill_tokens", load.prefillTokens());
        shown.put("potential_decode_blocks", load.decodeBlocks());
        shown.put("active_requests", load.requests());
    }

    private Reply potentialLoads(Call call) throws ServiceException {
        final JsonBody body = call.body();
        final GroupKey key = Prompt.key(body);
        final Prompt prompt = Prompt.of(body, workers.index(key));
        final ArrayNode list = ServiceJson.array();
        chooser.potentialLoads(key, prompt, chooser.overlaps(key, prompt))
                .forEach(load -> add(list, load));
        return Reply.json(200, list);
    }

    private Reply overlapScores(Call call) throws ServiceException {
        final JsonBody body = call.body();
        final GroupKey key = Prompt.key(body);
        final IndexGroup index = workers.index(key);
        final int blockSize = index.blockSize();
        final Prompt prompt = Prompt.of(body, index);
        final Map<Match.Rank, Match> overlaps = chooser.overlaps(key, prompt);
        final ObjectNode shown = ServiceJson.object().put("block_size", blockSize);
        shown.put("num_blocks", prompt.sequenceHashes.length);
        final ArrayNode list = shown.putArray("workers");
        int mostShared = 0;
        for (RankLoad load : chooser.loads(key, new long[0], 0)) {
            final Match.Rank rank = new Match.Rank(load.worker(), (int) load.dpRank());
            final ObjectNode worker = list.addObject();
            ServiceJson.putUnsigned(worker, "worker_id", load.worker());
            worker.put("dp_rank", load.dpRank());
            final Match match = Chooser.of(overlaps, rank);
            final int host = (match.withHost() - match.tokens()) / blockSize;
            final int disk = (match.withDisk() - match.withHost()) / blockSize;
            worker.put("device_blocks", match.tokens() / blockSize);
            worker.put("host_pinned_blocks", host).put("disk_blocks", disk);
            worker.put("host_pinned_extension_blocks", host).put("disk_extension_blocks", disk);
            final int beyond = (match.withShared() - match.withDisk()) / blockSize;
            if (beyond > 0) {
                worker.put("shared_beyond_device_blocks", beyond);
            } else {
                worker.putNull("shared_beyond_device_blocks");
            }
            mostShared = Math.max(mostShared, beyond);
        }
        final ObjectNode shared = shown.putObject("shared_cache");
        shared.put("enabled", mostShared > 0).put("total_hit_blocks", mostShared);
        shared.putArray("ranges");
        shared.putNull("error");
        return Reply.json(200, shown);
    }
}

package io.kvasir.nixl.transfer;

import io.kvasir.nixl.transfer.KvTransportException.Kind;
import io.kvasir.panama.NixlAgent;
import io.kvasir.panama.NixlAgentConfig;
import io.kvasir.panama.NixlException;
import io.kvasir.panama.NixlLibrary;
import io.kvasir.panama.NixlNotificationHandler;
import io.kvasir.panama.NixlStatus;
import io.kvasir.panama.NixlTelemetry;
import io.kvasir.panama.NixlTransfers;

import org.agrona.collections.Long2ObjectHashMap;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Copies through NIXL: one agent with one backend. NIXL takes handles and addresses as they are, so
 * what it would crash on, or accept without a word, is checked here: unknown handles, places beyond
 * a list, memory that is registered twice or overlaps.
 *
 * <p>A request that fails does not tell why: NIXL's C interface has one code for a lost peer and
 * for everything else. Take the peer for lost: release its requests, {@link #disconnect}, exchange
 * metadata again.
 */
public final class NixlTransport implements KvTransport {
    private static final String OWN_MEMORY = "";
    private static final long NS_PER_MICRO = 1_000;

    private final NixlAgent agent;
    private final NixlTransfers transfers;
    private final List<List<KvRegion>> registered = new ArrayList<>();
    private final Set<String> peers = new HashSet<>();
    private final Long2ObjectHashMap<Prepared> lists = new Long2ObjectHashMap<>();
    private final Long2ObjectHashMap<Request> requests = new Long2ObjectHashMap<>();
    private final ArrayDeque<Request> spare = new ArrayDeque<>();
    private final NixlTelemetry telemetry = new NixlTelemetry();
    private final NixlNotificationHandler relay = this::onNotification;
    private NotificationHandler handler;
    private boolean closed;

    /** A prepared list: whose memory, and how many pieces. */
    private record Prepared(String peer, Descriptors pieces) {}

    /** What is known of a request; used again. */
    private static final class Request {
        private String peer;
        private int status;
        private boolean posted;
    }

    private NixlTransport(NixlAgent agent) {
        this.agent = agent;
        this.transfers = agent.transfers();
    }

    /**
     * Makes an agent and its backend. Takes up to a second the first time; never on a request.
     *
     * @param library what {@link io.kvasir.panama.NixlProbe} found
     * @param name unique among all agents that will ever know each other, so best a UUID
     * @param config how the agent runs; a progress thread unless the owner polls without pause
     * @param backend plugin, such as {@code UCX}
     * @param parameters of the backend; empty for its defaults
     * @return owned by the thread that will call it
     * @throws NixlException if the backend cannot be started
     */
    public static NixlTransport create(
            NixlLibrary library,
            String name,
            NixlAgentConfig config,
            String backend,
            Map<String, String> parameters) {
        final NixlAgent agent = library.createAgent(name, config);
        try {
            agent.createBackend(backend, parameters);
            return new NixlTransport(agent);
        } catch (RuntimeException e) {
            agent.close();
            throw e;
        }
    }

    @Override
    public String name() {
        return agent.name();
    }

    @Override
    public void register(List<KvRegion> regions) {
        checkOpen();
        for (int i = 0; i < regions.size(); i++) {
            final KvRegion region = regions.get(i);
            registered.forEach(before -> checkApart(region, before));
            checkApart(region, regions.subList(0, i));
        }
        final RegionSpans spans = new RegionSpans(regions);
        refusing(
                Kind.FAILED,
                () ->
                        transfers.register(
                                spans.memory, spans.addresses, spans.lengths, spans.devices));
        registered.add(List.copyOf(regions));
    }

    private static void checkApart(KvRegion region, List<KvRegion> others) {
        for (KvRegion other : others) {
            if (region.memory() == other.memory()
                    && region.device() == other.device()
                    && region.base() < other.base() + other.length()
                    && other.base() < region.base() + region.length()) {
                throw new KvTransportException(
                        Kind.INVALID,
                        "region "
                                + region.name()
                                + " overlaps region "
                                + other.name()
                                + ", which is registered");
            }
        }
    }

    @Override
    public void deregister(List<KvRegion> regions) {
        checkOpen();
        if (!registered.remove(regions)) {
            throw new KvTransportException(
                    Kind.INVALID,
                    "these "
                            + regions.size()
                            + " regions were not registered together; deregister exactly what was"
                            + " registered");
        }
        final RegionSpans spans = new RegionSpans(regions);
        refusing(
                Kind.FAILED,
                () ->
                        transfers.deregister(
                                spans.memory, spans.addresses, spans.lengths, spans.devices));
    }

    @Override
    public byte[] metadata() {
        checkOpen();
        return transfers.metadata();
    }

    @Override
    public String connect(byte[] metadata) {
        checkOpen();
        try {
            final String peer = transfers.load(metadata);
            peers.add(peer);
            return peer;
        } catch (NixlException e) {
            throw new KvTransportException(Kind.BAD_METADATA, e.getMessage(), e);
        }
    }

    @Override
    public void disconnect(String peer) {
        checkOpen();
        if (peers.remove(peer)) {
            transfers.invalidate(peer);
        }
    }

    @Override
    public long prepare(String peer, Descriptors pieces) {
        checkOpen();
        if (peer != null && !peers.contains(peer)) {
            throw new KvTransportException(
                    Kind.UNKNOWN_PEER, "peer " + peer + " is not connected: connect its metadata");
        }
        final int count = pieces.count();
        final long[] addresses = new long[count];
        final long[] lengths = new long[count];
        final int[] devices = new int[count];
        for (int i = 0; i < count; i++) {
            addresses[i] = pieces.address(i);
            lengths[i] = pieces.length(i);
            devices[i] = pieces.device(i);
        }
        try {
            final long list =
                    transfers.prepare(
                            peer == null ? OWN_MEMORY : peer,
                            pieces.memory(),
                            addresses,
                            lengths,
                            devices);
            lists.put(list, new Prepared(peer, pieces));
            return list;
        } catch (NixlException e) {
            throw new KvTransportException(
                    Kind.INVALID,
                    "each piece lies inside one registered region of "
                            + (peer == null ? "this end" : peer)
                            + ": "
                            + e.getMessage(),
                    e);
        }
    }

    @Override
    public void releaseList(long list) {
        checkOpen();
        list(list);
        lists.remove(list);
        transfers.releaseList(list);
    }

    private Prepared list(long list) {
        final Prepared prepared = lists.get(list);
        if (prepared == null) {
            throw new KvTransportException(Kind.INVALID, "no list has the handle " + list);
        }
        return prepared;
    }

    @Override
    public long request(
            Operation operation,
            long localList,
            int[] localPlaces,
            long remoteList,
            int[] remotePlaces,
            int count,
            byte[] notification) {
        checkOpen();
        final Prepared local = list(localList);
        final Prepared remote = list(remoteList);
        RequestCheck.ends(name(), local.peer == null, remote.peer == null);
        RequestCheck.places(name(), local.pieces, localPlaces, remote.pieces, remotePlaces, count);
        RequestCheck.message(name(), notification);
        final long handle;
        try {
            handle =
                    transfers.make(
                            operation == Operation.WRITE,
                            localList,
                            localPlaces,
                            remoteList,
                            remotePlaces,
                            count,
                            notification);
        } catch (NixlException e) {
            throw new KvTransportException(
                    Kind.FAILED, "peer " + remote.peer + ": " + e.getMessage(), e);
        }
        final Request request = spare.isEmpty() ? new Request() : spare.pop();
        request.peer = remote.peer;
        request.status = 0;
        request.posted = false;
        requests.put(handle, request);
        return handle;
    }

    @Override
    public Progress post(long request) {
        checkOpen();
        final Request known = known(request);
        if (known.posted && known.status == NixlStatus.IN_PROGRESS.code()) {
            throw new KvTransportException(Kind.INVALID, "request " + request + " is running");
        }
        known.posted = true;
        known.status = transfers.post(request);
        return progress(known.status);
    }

    @Override
    public Progress status(long request) {
        checkOpen();
        final Request known = known(request);
        if (!known.posted) {
            throw new KvTransportException(Kind.INVALID, "request " + request + " is not posted");
        }
        if (known.status == NixlStatus.IN_PROGRESS.code()) {
            known.status = transfers.status(request);
        }
        return progress(known.status);
    }

    private static Progress progress(int status) {
        if (status == NixlStatus.SUCCESS.code()) {
            return Progress.DONE;
        }
        return status == NixlStatus.IN_PROGRESS.code() ? Progress.RUNNING : Progress.FAILED;
    }

    private Request known(long request) {
        final Request known = requests.get(request);
        if (known == null) {
            throw new KvTransportException(Kind.INVALID, "no request has the handle " + request);
        }
        return known;
    }

    @Override
    public String failure(long request) {
        final Request known = known(request);
        return "peer "
                + known.peer
                + ": "
                + NixlStatus.of(known.status).map(Enum::name).orElse("unknown status")
                + " ("
                + known.status
                + "); take it for lost: disconnect and exchange metadata again";
    }

    @Override
    public boolean release(long request) {
        checkOpen();
        final Request known = known(request);
        if (transfers.release(request) != NixlStatus.SUCCESS.code()) {
            return false;
        }
        requests.remove(request);
        spare.push(known);
        return true;
    }

    @Override
    public boolean telemetry(long request, TransferTelemetry out) {
        checkOpen();
        known(request);
        if (!transfers.telemetry(request, telemetry)) {
            return false;
        }
        out.postNs = telemetry.postMicros * NS_PER_MICRO;
        out.transferNs = telemetry.transferMicros * NS_PER_MICRO;
        out.bytes = telemetry.bytes;
        out.descriptors = telemetry.descriptors;
        return true;
    }

    @Override
    public void send(String peer, byte[] message) {
        checkOpen();
        if (!peers.contains(peer)) {
            throw new KvTransportException(
                    Kind.UNKNOWN_PEER, "peer " + peer + " is not connected: connect its metadata");
        }
        RequestCheck.message(name(), message);
        final int status = transfers.send(peer, message);
        if (status < 0) {
            throw new KvTransportException(
                    Kind.PEER_LOST,
                    "a message of " + message.length + " bytes to peer " + peer + ": " + status);
        }
    }

    @Override
    public int notifications(NotificationHandler receiver) {
        checkOpen();
        handler = receiver;
        return transfers.notifications(relay);
    }

    private void onNotification(String peer, MemorySegment message) {
        handler.onNotification(peer, message);
    }

    private static void refusing(Kind kind, Runnable call) {
        try {
            call.run();
        } catch (NixlException e) {
            throw new KvTransportException(kind, e.getMessage(), e);
        }
    }

    private void checkOpen() {
        if (closed) {
            throw new IllegalStateException("transport " + name() + " is closed");
        }
    }

    @Override
    public void close() {
        if (closed) {
            return;
        }
        requests.keySet().forEach(transfers::release);
        lists.keySet().forEach(transfers::releaseList);
        requests.clear();
        lists.clear();
        closed = true;
        agent.close();
    }
}

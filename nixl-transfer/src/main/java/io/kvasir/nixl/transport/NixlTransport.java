package io.kvasir.nixl.transport;

import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.nixl.transport.KvTransportException.Kind;
import io.kvasir.panama.nixl.NixlAgent;
import io.kvasir.panama.nixl.NixlAgentConfig;
import io.kvasir.panama.nixl.NixlException;
import io.kvasir.panama.nixl.NixlLibrary;
import io.kvasir.panama.nixl.NixlNotificationHandler;
import io.kvasir.panama.nixl.NixlStatus;
import io.kvasir.panama.nixl.NixlTelemetry;
import io.kvasir.panama.nixl.NixlTransfers;

import org.agrona.LangUtil;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Copies through NIXL: one agent with one backend. NIXL takes handles and addresses as they are, so
 * what it would crash on, or accept without a word, is checked here: unknown and released handles
 * (NIXL's are addresses, which it gives again; those given here are not), indices beyond a list,
 * memory that is registered twice or overlaps.
 *
 * <p>A request that fails does not tell why: NIXL's C interface has one code for a lost peer and
 * for everything else. Treat the peer as lost: release its requests, {@link #disconnect}, exchange
 * metadata again.
 */
public final class NixlTransport implements KvTransport {
    private static final String OWN_MEMORY = "";
    private static final long NS_PER_MICRO = 1_000;
    private static final int FIRST_SLOTS = 16;

    private final NixlAgent agent;
    private final NixlTransfers transfers;
    private final List<List<KvRegion>> registered = new ArrayList<>();
    private final Set<String> peers = new HashSet<>();
    private final Handles listHandles = new Handles(FIRST_SLOTS);
    private Prepared[] lists = new Prepared[FIRST_SLOTS];
    private final Handles requestHandles = new Handles(FIRST_SLOTS);
    private Request[] requests = new Request[FIRST_SLOTS]; // used again
    private final NixlTelemetry telemetry = new NixlTelemetry();
    private final NixlNotificationHandler relay = this::onNotification;
    private NotificationHandler handler;
    private Throwable thrown; // by the handler, during a call of notifications
    private boolean closed;

    /** A prepared list: NIXL's handle, whose memory, and requests of it that are not released. */
    private static final class Prepared {
        private final long handle;
        private final String peer;
        private final Descriptors descriptors;
        private int requests;

        private Prepared(long handle, String peer, Descriptors descriptors) {
            this.handle = handle;
            this.peer = peer;
            this.descriptors = descriptors;
        }
    }

    /** NIXL's handle of a request, and what is known of it. */
    private static final class Request {
        private long handle;
        private Prepared local; // null when it is released
        private Prepared remote;
        private int status;
        private boolean posted;

        private Progress progress() {
            if (status == NixlStatus.SUCCESS.code()) {
                return Progress.DONE;
            }
            return status == NixlStatus.IN_PROGRESS.code() ? Progress.RUNNING : Progress.FAILED;
        }

        private boolean is(Progress progress) {
            return posted && progress() == progress;
        }
    }

    private NixlTransport(NixlAgent agent) {
        this.agent = agent;
        this.transfers = agent.transfers();
    }

    /**
     * Makes an agent and its backend. Takes up to a second the first time; never on a request.
     *
     * @param library what {@link io.kvasir.panama.nixl.NixlProbe} found
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
        if (!registered.contains(regions)) {
            throw invalid(
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
        registered.remove(regions);
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
    public long prepare(String peer, Descriptors descriptors) {
        checkOpen();
        if (peer != null && !peers.contains(peer)) {
            throw new KvTransportException(
                    Kind.UNKNOWN_PEER, "peer " + peer + " is not connected: connect its metadata");
        }
        final int count = descriptors.count();
        final long[] addresses = new long[count];
        final long[] lengths = new long[count];
        final int[] devices = new int[count];
        for (int i = 0; i < count; i++) {
            addresses[i] = descriptors.address(i);
            lengths[i] = descriptors.length(i);
            devices[i] = descriptors.device(i);
        }
        try {
            final long list =
                    transfers.prepare(
                            peer == null ? OWN_MEMORY : peer,
                            descriptors.memory(),
                            addresses,
                            lengths,
                            devices);
            return hold(new Prepared(list, peer, descriptors));
        } catch (NixlException e) {
            throw new KvTransportException(
                    Kind.INVALID,
                    "each descriptor lies inside one registered region of "
                            + (peer == null ? "this end" : peer)
                            + ": "
                            + e.getMessage(),
                    e);
        }
    }

    private long hold(Prepared list) {
        long handle = listHandles.take();
        if (handle == 0) {
            lists = Arrays.copyOf(lists, 2 * lists.length);
            listHandles.grow(lists.length);
            handle = listHandles.take();
        }
        lists[listHandles.slot(handle)] = list;
        return handle;
    }

    @Override
    public void releaseList(long list) {
        checkOpen();
        final Prepared prepared = list(list);
        if (prepared.requests > 0) {
            throw invalid(
                    named("list", list)
                            + " has "
                            + prepared.requests
                            + " requests that are not released");
        }
        final int slot = listHandles.slot(list);
        lists[slot] = null;
        listHandles.release(slot);
        transfers.releaseList(prepared.handle);
    }

    private Prepared list(long list) {
        final int slot = listHandles.slot(list);
        if (slot < 0) {
            throw invalid(named("list", list) + " is unknown or released");
        }
        return lists[slot];
    }

    @Override
    public long request(
            Operation operation,
            long localList,
            int[] localIndices,
            long remoteList,
            int[] remoteIndices,
            int first,
            int count,
            byte[] notification) {
        checkOpen();
        final Prepared local = list(localList);
        final Prepared remote = list(remoteList);
        RequestCheck.ends(name(), local.peer == null, remote.peer == null);
        RequestCheck.indices(
                name(),
                local.descriptors,
                localIndices,
                remote.descriptors,
                remoteIndices,
                first,
                count);
        RequestCheck.message(name(), notification);
        final long made;
        try {
            made =
                    transfers.make(
                            operation == Operation.WRITE,
                            local.handle,
                            localIndices,
                            remote.handle,
                            remoteIndices,
                            first,
                            count,
                            notification);
        } catch (NixlException e) {
            final boolean gone = e.code() == NixlStatus.NOT_FOUND.code();
            throw new KvTransportException(
                    gone ? Kind.PEER_LOST : Kind.FAILED,
                    "peer " + remote.peer + ": " + e.getMessage(),
                    e);
        }
        return hold(made, local, remote);
    }

    private long hold(long made, Prepared local, Prepared remote) {
        long handle = requestHandles.take();
        if (handle == 0) {
            requests = Arrays.copyOf(requests, 2 * requests.length);
            requestHandles.grow(requests.length);
            handle = requestHandles.take();
        }
        final int slot = requestHandles.slot(handle);
        if (requests[slot] == null) {
            requests[slot] = new Request();
        }
        final Request request = requests[slot];
        request.handle = made;
        request.local = local;
        request.remote = remote;
        request.status = 0;
        request.posted = false;
        local.requests++;
        remote.requests++;
        return handle;
    }

    @Override
    public Progress post(long request) {
        checkOpen();
        final Request known = known(request);
        if (known.is(Progress.RUNNING)) {
            throw invalid(named("request", request) + " is running already");
        }
        if (known.is(Progress.FAILED)) {
            throw invalid(named("request", request) + " has failed: " + failure(request));
        }
        known.posted = true;
        known.status = transfers.post(known.handle);
        return known.progress();
    }

    @Override
    public Progress status(long request) {
        checkOpen();
        final Request known = known(request);
        if (!known.posted) {
            throw invalid(named("request", request) + " was not posted");
        }
        if (known.status == NixlStatus.IN_PROGRESS.code()) {
            known.status = transfers.status(known.handle);
        }
        return known.progress();
    }

    private Request known(long request) {
        final int slot = requestHandles.slot(request);
        if (slot < 0) {
            throw invalid(named("request", request) + " is unknown or released");
        }
        return requests[slot];
    }

    @Override
    public String failure(long request) {
        checkOpen();
        final Request known = known(request);
        if (!known.is(Progress.FAILED)) {
            throw invalid(named("request", request) + " has not failed");
        }
        return "peer "
                + known.remote.peer
                + ": "
                + NixlStatus.of(known.status).map(Enum::name).orElse("unknown status")
                + " ("
                + known.status
                + "); treat it as lost: disconnect and exchange metadata again";
    }

    @Override
    public boolean release(long request) {
        checkOpen();
        final Request known = known(request);
        if (transfers.release(known.handle) != NixlStatus.SUCCESS.code()) {
            return false;
        }
        known.local.requests--;
        known.remote.requests--;
        known.local = null;
        known.remote = null;
        requestHandles.release(requestHandles.slot(request));
        return true;
    }

    @Override
    public boolean telemetry(long request, TransferTelemetry out) {
        checkOpen();
        final Request known = known(request);
        if (!known.is(Progress.DONE)) {
            throw invalid(named("request", request) + " is not done");
        }
        if (!transfers.telemetry(known.handle, telemetry)) {
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
        thrown = null;
        final int count = transfers.notifications(relay);
        if (thrown != null) {
            LangUtil.rethrowUnchecked(thrown);
        }
        return count;
    }

    /** NIXL has given all messages away already: the others follow one whose handler throws. */
    @SuppressWarnings("ReferenceEquality") // nothing suppresses itself
    private void onNotification(String peer, MemorySegment message) {
        try {
            handler.onNotification(peer, message);
        } catch (Throwable e) {
            if (thrown == null) {
                thrown = e;
            } else if (thrown != e) {
                thrown.addSuppressed(e);
            }
        }
    }

    private static void refusing(Kind kind, Runnable call) {
        try {
            call.run();
        } catch (NixlException e) {
            throw new KvTransportException(kind, e.getMessage(), e);
        }
    }

    private KvTransportException invalid(String what) {
        return new KvTransportException(Kind.INVALID, name() + ": " + what);
    }

    private static String named(String what, long handle) {
        return what + " 0x" + Long.toHexString(handle);
    }

    private void checkOpen() {
        if (closed) {
            throw invalid("the transport is closed");
        }
    }

    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        for (Request request : requests) {
            if (request != null && request.local != null) {
                transfers.release(request.handle);
            }
        }
        for (Prepared list : lists) {
            if (list != null) {
                giveUp(list);
            }
        }
        agent.close();
    }

    private void giveUp(Prepared list) {
        try {
            transfers.releaseList(list.handle);
        } catch (NixlException e) {
            // what is left of it ends with the agent
        }
    }
}

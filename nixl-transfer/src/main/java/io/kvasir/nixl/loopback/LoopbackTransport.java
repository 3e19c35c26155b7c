package io.kvasir.nixl.loopback;

import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.memory.KvLayout;
import io.kvasir.nixl.memory.KvPool;
import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.nixl.transport.Handles;
import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.nixl.transport.KvTransportException.Kind;
import io.kvasir.nixl.transport.RequestCheck;
import io.kvasir.nixl.transport.TransferTelemetry;
import io.kvasir.panama.nixl.NixlMemory;

import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;

/**
 * Block copies between processes of one machine through shared memory, and inside one process: the
 * transport where NIXL is absent. The initiator copies; the other side need not do anything, except
 * for {@link #notifications}.
 *
 * <p>Peers in other processes reach regions that lie in a {@linkplain #pool shared pool}; other
 * host memory can be registered too, but is reached inside this process only, by its address, which
 * needs {@code --enable-native-access}. Processes see each other if they have the same user, folder
 * and process numbers (one pid namespace).
 *
 * <p>{@link #post} and each {@link #status} copy at most {@link LoopbackConfig#chunkBytes}, so that
 * a large copy does not hold its owner up. The notification is sent by the call that has copied the
 * last byte; one that finds the inbox full for longer than {@link LoopbackConfig#sendTimeout} fails
 * the request. A peer whose process ends, or which closes its transport, is lost: requests fail at
 * their next poll, and it must be connected anew, with new metadata.
 *
 * <p>All methods are called by one thread at a time, the owner.
 */
public final class LoopbackTransport implements KvTransport {
    private static final long FULL_PAUSE_NS = 20_000;
    private static final SecureRandom RANDOM = new SecureRandom();

    private final LoopbackConfig config;
    private final LoopbackId id;
    private final SharedFolder folder;
    private final Inbox inbox;
    private final Map<String, LoopbackPeer> peers = new HashMap<>();
    private final List<SharedMemory> memories = new ArrayList<>();
    private final List<List<KvRegion>> registrations = new ArrayList<>();
    private final Handles listHandles;
    private final DescriptorList[] lists;
    private final Handles requestHandles;
    private final CopyRequest[] requests;
    private final long sendTimeoutNs;
    private RegionTable own = RegionTable.EMPTY;
    private int nextMemory;
    private boolean closed;

    /**
     * Opens an end: makes the folder if it does not exist, deletes what processes that are gone
     * have left there, and makes the inbox.
     *
     * @param name what peers know this end by: not blank, at most 96 bytes of UTF-8
     * @param config its limits
     * @throws IllegalArgumentException if the name cannot be
     * @throws KvTransportException if the folder cannot be used
     */
    public LoopbackTransport(String name, LoopbackConfig config) {
        if (name.isBlank() || name.getBytes(StandardCharsets.UTF_8).length > LoopbackId.MAX_NAME) {
            throw new IllegalArgumentException(
                    "name of a transport must have 1.."
                            + LoopbackId.MAX_NAME
                            + " bytes of UTF-8: '"
                            + name
                            + "'");
        }
        this.config = config;
        this.id =
                new LoopbackId(name, HostProcess.OWN_PID, HostProcess.OWN_START, RANDOM.nextLong());
        this.folder = SharedFolder.open(config.folder());
        this.inbox = Inbox.create(folder, id, config);
        this.listHandles = new Handles(config.maxLists());
        this.lists = new DescriptorList[config.maxLists()];
        this.requestHandles = new Handles(config.maxRequests());
        this.requests = new CopyRequest[config.maxRequests()];
        this.sendTimeoutNs = config.sendTimeoutNs();
    }

    @Override
    public String name() {
        return id.name();
    }

    /**
     * Makes memory that peers in other processes can reach, once regions in it are registered.
     *
     * @param bytes at least 1; taken from the folder's file system as it is written
     * @return zeros; the caller closes it. {@link #close} deletes its file, but leaves it mapped
     * @throws KvTransportException {@code CAPACITY} if the file system or {@link
     *     LoopbackConfig#maxRegions} does not allow for it
     */
    SharedMemory share(long bytes) {
        checkOpen();
        if (bytes < 1) {
            throw invalid("shared memory of " + bytes + " bytes");
        }
        memories.removeIf(memory -> !memory.isOpen());
        if (memories.size() == config.maxRegions()) {
            throw capacity("shared memories", "maxRegions", config.maxRegions());
        }
        final SharedMemory memory = SharedMemory.create(folder, id, nextMemory++, bytes);
        memories.add(memory);
        return memory;
    }

    /**
     * Makes a pool of blocks that peers in all processes of the machine can reach, once its regions
     * are registered.
     *
     * @param layout how its blocks lie
     * @return zeros; its memory lives until it is closed
     * @throws KvTransportException {@code CAPACITY} if the file system or {@link
     *     LoopbackConfig#maxRegions} does not allow for it
     */
    public KvPool pool(KvLayout layout) {
        final SharedMemory shared = share(layout.bytes());
        return KvPool.owning(layout, shared.segment(), shared);
    }

    @Override
    public void register(List<KvRegion> regions) {
        checkOpen();
        if (regions.isEmpty()) {
            throw invalid("no region to register");
        }
        if (own.entries().size() + regions.size() > config.maxRegions()) {
            throw capacity("registered regions", "maxRegions", config.maxRegions());
        }
        final List<RegionTable.Entry> entries = new ArrayList<>(own.entries());
        for (KvRegion region : regions) {
            entries.add(entry(region));
        }
        try {
            publish(RegionTable.of(entries));
        } catch (IllegalArgumentException e) {
            throw new KvTransportException(Kind.INVALID, e.getMessage() + ", or twice the same", e);
        }
        registrations.add(List.copyOf(regions));
    }

    private RegionTable.Entry entry(KvRegion region) {
        final String name = region.name();
        final long base = region.base();
        final long length = region.length();
        if (region.memory() != NixlMemory.DRAM || region.device() != 0) {
            throw invalid(
                    "region "
                            + name
                            + " is "
                            + region.memory()
                            + " of device "
                            + region.device()
                            + "; the loopback copies host memory (DRAM, device 0), NIXL the"
                            + " others");
        }
        if (base < 0 || length > Long.MAX_VALUE - base) {
            throw invalid("region " + name + " has no address of host memory: " + region);
        }
        for (SharedMemory memory : memories) {
            if (memory.isOpen() && memory.touches(base, length)) {
                if (!memory.contains(base, length)) {
                    throw invalid(
                            "region " + name + " goes beyond its shared memory " + memory.file());
                }
                return new RegionTable.Entry(
                        name,
                        base,
                        length,
                        memory.number(),
                        memory.segment(),
                        base - memory.segment().address());
            }
        }
        return new RegionTable.Entry(
                name, base, length, RegionTable.Entry.IN_PROCESS, hostMemory(base, length), 0);
    }

    @SuppressWarnings(
            "restricted") // memory of the caller: its address is given and it stays mapped
    private static MemorySegment hostMemory(long base, long length) {
        return MemorySegment.ofAddress(base).reinterpret(length);
    }

    @Override
    public void deregister(List<KvRegion> regions) {
        checkOpen();
        if (!registrations.remove(regions)) {
            throw invalid(
                    "these "
                            + regions.size()
                            + " regions were not registered together: "
                            + regions.stream().map(KvRegion::name).limit(8).toList());
        }
        final Set<Long> bases = regions.stream().map(KvRegion::base).collect(Collectors.toSet());
        final List<RegionTable.Entry> entries = new ArrayList<>(own.entries());
        entries.removeIf(entry -> bases.contains(entry.base()));
        publish(RegionTable.of(entries));
    }

    private void publish(RegionTable table) {
        own = table;
        InProcessPeers.publish(id.instance(), table);
    }

    @Override
    public byte[] metadata() {
        checkOpen();
        final List<LoopbackMetadata.Region> regions = new ArrayList<>();
        for (RegionTable.Entry entry : own.entries()) {
            regions.add(
                    new LoopbackMetadata.Region(
                            entry.name(),
                            entry.base(),
                            entry.length(),
                            entry.file(),
                            entry.offset()));
        }
        return new LoopbackMetadata(id, folder.path().toString(), regions).encode();
    }

    /**
     * {@inheritDoc}
     *
     * @throws KvTransportException {@code BAD_METADATA} if the bytes, or the files that they lead
     *     to, are not what they should be; {@code PEER_LOST} if the peer is gone; {@code INVALID}
     *     if its folder is another, or its name is this end's or a living peer's; {@code CAPACITY}
     *     if a limit is reached
     */
    @Override
    public String connect(byte[] metadata) {
        checkOpen();
        final LoopbackMetadata peer = LoopbackMetadata.decode(metadata, config.maxRegions());
        final String name = peer.id().name();
        if (!peer.folder().equals(folder.path().toString())) {
            throw invalid(
                    "files of peer "
                            + peer.id()
                            + " lie in "
                            + peer.folder()
                            + ", own ones in "
                            + folder.path()
                            + "; set the same LoopbackConfig.folder");
        }
        final LoopbackPeer known = peers.get(name);
        if (known != null && known.id().sameInstance(peer.id())) {
            refuseLost(known.lostNow());
            known.learn(peer);
            return name;
        }
        final boolean taken =
                known != null
                        ? known.lostNow() == null
                        : name.equals(id.name()) && !id.sameInstance(peer.id());
        if (taken) {
            throw invalid(
                    "the name of peer "
                            + peer.id()
                            + " is taken by "
                            + (known != null ? known.id() : id)
                            + "; names must be unique");
        }
        if (known == null && peers.size() == config.maxPeers()) {
            throw capacity("peers", "maxPeers", config.maxPeers());
        }
        final LoopbackPeer opened = LoopbackPeer.open(folder, config, id, peer);
        peers.put(name, opened);
        if (known != null) {
            known.close();
        }
        return name;
    }

    @Override
    public void disconnect(String peer) {
        checkOpen();
        final LoopbackPeer known = peers.remove(peer);
        if (known != null) {
            known.close();
        }
    }

    /**
     * {@inheritDoc}
     *
     * @throws KvTransportException {@code UNKNOWN_PEER}, {@code INVALID} if a descriptor is not
     *     inside one registered region or cannot be reached from this process, {@code CAPACITY}
     */
    @Override
    public long prepare(String peer, Descriptors descriptors) {
        checkOpen();
        final LoopbackPeer whose = peer == null ? null : peer(peer);
        final RegionTable table = whose == null ? own : whose.regions();
        if (descriptors.memory() != NixlMemory.DRAM) {
            throw invalid("descriptors are " + descriptors.memory() + "; the loopback copies DRAM");
        }
        final RegionTable.Entry[] regions = new RegionTable.Entry[descriptors.count()];
        for (int index = 0; index < regions.length; index++) {
            final long address = descriptors.address(index);
            final RegionTable.Entry region = table.find(address, descriptors.length(index));
            if (region == null) {
                throw invalid(
                        "descriptor "
                                + index
                                + ", "
                                + descriptors.length(index)
                                + " bytes at 0x"
                                + Long.toHexString(address)
                                + ", is in no region that "
                                + (whose == null ? id : "peer " + whose.id())
                                + " has registered");
            }
            if (region.memory() == null) {
                throw invalid(
                        "region "
                                + region.name()
                                + " of peer "
                                + whose.id()
                                + " can be reached in its own process only; it must lie in a pool"
                                + " that the peer's LoopbackTransport.pool gave");
            }
            regions[index] = region;
        }
        final long list = listHandles.take();
        if (list == 0) {
            throw capacity("lists", "maxLists", config.maxLists());
        }
        lists[listHandles.slot(list)] = DescriptorList.of(whose, descriptors, regions);
        return list;
    }

    @Override
    public void releaseList(long list) {
        checkOpen();
        final DescriptorList descriptors = list(list);
        if (descriptors.requests() > 0) {
            throw invalid(
                    "list 0x"
                            + Long.toHexString(list)
                            + " has "
                            + descriptors.requests()
                            + " requests that are not released");
        }
        final int slot = listHandles.slot(list);
        lists[slot] = null;
        listHandles.release(slot);
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
        final DescriptorList local = list(localList);
        final DescriptorList remote = list(remoteList);
        RequestCheck.ends(id, local.peer() == null, remote.peer() == null);
        refuseLost(remote.peer().lost(System.nanoTime()));
        RequestCheck.indices(
                id,
                local.descriptors(),
                localIndices,
                remote.descriptors(),
                remoteIndices,
                first,
                count);
        RequestCheck.message(id, notification);
        final long handle = requestHandles.take();
        if (handle == 0) {
            throw capacity("requests", "maxRequests", config.maxRequests());
        }
        final int slot = requestHandles.slot(handle);
        if (requests[slot] == null) {
            requests[slot] = new CopyRequest();
        }
        final CopyRequest request = requests[slot];
        request.start(local, remote, notification);
        for (int i = first; i < first + count; i++) {
            request.add(operation, localIndices[i], remoteIndices[i]);
        }
        return handle;
    }

    @Override
    public Progress post(long request) {
        checkOpen();
        final CopyRequest copies = requestOf(request);
        switch (copies.state()) {
            case RUNNING -> throw invalid(named("request", request) + " is running already");
            case FAILED ->
                    throw invalid(named("request", request) + " has failed: " + copies.failure());
            case READY, DONE -> copies.post(System.nanoTime());
        }
        final Progress progress = advance(copies);
        copies.posted(System.nanoTime());
        return progress;
    }

    @Override
    public Progress status(long request) {
        checkOpen();
        final CopyRequest copies = requestOf(request);
        return switch (copies.state()) {
            case READY -> throw invalid(named("request", request) + " was not posted");
            case RUNNING -> advance(copies);
            case DONE -> Progress.DONE;
            case FAILED -> Progress.FAILED;
        };
    }

    private Progress advance(CopyRequest request) {
        final String lost = request.peer().lost(System.nanoTime());
        if (lost != null) {
            return fail(request, lost);
        }
        if (!request.isCopied()) {
            try {
                if (!request.copy(config.chunkBytes())) {
                    return Progress.RUNNING;
                }
            } catch (IllegalStateException e) {
                return fail(request, "own memory was closed while it was copied: " + e);
            } catch (InternalError e) { // a page of the file cannot be had: its file system is full
                return fail(request, "shared memory cannot be touched: " + e);
            }
            request.copied(System.nanoTime());
        }
        final int length = request.notificationLength();
        if (length >= 0 && !request.peer().offer(request.notification(), length)) {
            return System.nanoTime() - request.copiedNs() < sendTimeoutNs
                    ? Progress.RUNNING
                    : fail(request, request.peer().full());
        }
        request.done(System.nanoTime());
        return Progress.DONE;
    }

    private static Progress fail(CopyRequest request, String why) {
        request.failed(why);
        return Progress.FAILED;
    }

    @Override
    public String failure(long request) {
        checkOpen();
        final CopyRequest copies = requestOf(request);
        if (copies.state() != CopyRequest.State.FAILED) {
            throw invalid(named("request", request) + " has not failed: " + copies.state());
        }
        return copies.failure();
    }

    @Override
    public boolean release(long request) {
        checkOpen();
        requestOf(request).end();
        requestHandles.release(requestHandles.slot(request));
        return true;
    }

    @Override
    public boolean telemetry(long request, TransferTelemetry out) {
        checkOpen();
        final CopyRequest copies = requestOf(request);
        if (copies.state() != CopyRequest.State.DONE) {
            throw invalid(named("request", request) + " is not done: " + copies.state());
        }
        copies.measure(out);
        return true;
    }

    /**
     * {@inheritDoc}
     *
     * <p>Waits for room for at most {@link LoopbackConfig#sendTimeout}.
     *
     * @throws KvTransportException {@code UNKNOWN_PEER}, {@code PEER_LOST}, {@code INVALID} if the
     *     message is too long, {@code CAPACITY} if the peer's inbox stays full
     */
    @Override
    public void send(String peer, byte[] message) {
        checkOpen();
        final LoopbackPeer known = peer(peer);
        RequestCheck.message(id, message);
        final long start = System.nanoTime();
        refuseLost(known.lost(start));
        while (!known.offer(message, message.length)) {
            final long now = System.nanoTime();
            refuseLost(known.lost(now));
            if (now - start >= sendTimeoutNs) {
                throw new KvTransportException(Kind.CAPACITY, known.full());
            }
            LockSupport.parkNanos(FULL_PAUSE_NS);
        }
    }

    /**
     * {@inheritDoc}
     *
     * @throws KvTransportException {@code FAILED} once for a sender that has left what is no
     *     message; the others' messages follow with the next call
     */
    @Override
    public int notifications(NotificationHandler handler) {
        checkOpen();
        return inbox.take(handler);
    }

    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        InProcessPeers.forget(id.instance());
        peers.values().forEach(LoopbackPeer::close);
        inbox.close();
        memories.forEach(SharedMemory::delete);
    }

    private LoopbackPeer peer(String name) {
        final LoopbackPeer known = peers.get(name);
        if (known == null) {
            throw new KvTransportException(
                    Kind.UNKNOWN_PEER, "peer " + name + " is not connected to " + id);
        }
        return known;
    }

    private DescriptorList list(long handle) {
        final int slot = listHandles.slot(handle);
        if (slot < 0) {
            throw invalid(named("list", handle) + " is unknown or released");
        }
        return lists[slot];
    }

    private CopyRequest requestOf(long handle) {
        final int slot = requestHandles.slot(handle);
        if (slot < 0) {
            throw invalid(named("request", handle) + " is unknown or released");
        }
        return requests[slot];
    }

    private void checkOpen() {
        if (closed) {
            throw invalid("the transport is closed");
        }
    }

    private static void refuseLost(String lost) {
        if (lost != null) {
            throw new KvTransportException(Kind.PEER_LOST, lost);
        }
    }

    private static String named(String what, long handle) {
        return what + " 0x" + Long.toHexString(handle);
    }

    private KvTransportException invalid(String what) {
        return new KvTransportException(Kind.INVALID, id + ": " + what);
    }

    private KvTransportException capacity(String what, String limit, int value) {
        return new KvTransportException(
                Kind.CAPACITY,
                id
                        + ": too many "
                        + what
                        + ", the limit is "
                        + value
                        + "; raise LoopbackConfig."
                        + limit);
    }
}

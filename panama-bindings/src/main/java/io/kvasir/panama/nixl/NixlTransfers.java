package io.kvasir.panama.nixl;

import io.kvasir.panama.libc.LibC;
import io.kvasir.panama.libc.NativeText;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * What an agent moves: registrations, peers, prepared lists, requests and notifications. Handles
 * are numbers other than 0 and belong to the agent that gave them; nothing tells a stale one from a
 * live one, so the owner keeps account of them.
 *
 * <p>Calls come from one thread, the agent's owner, unless the agent was made with a lock ({@link
 * NixlAgentConfig.ThreadSync}); even then a request is never for two threads at once, and scratch
 * memory here is for one. {@link #make}, {@link #post}, {@link #status}, {@link #release}, {@link
 * #telemetry} and {@link #notifications} without a notification allocate nothing.
 *
 * <p>{@link #post} can take as long as the whole copy (CMA copies inside it), a registration
 * milliseconds, the first contact with a peer some 30 ms.
 */
public final class NixlTransfers implements AutoCloseable {
    /** Fits every notification that NIXL delivers whole. */
    private static final int SCRATCH_BYTES = 16 << 10;

    static final int READ = 0;
    static final int WRITE = 1;
    private static final long NO_OPTIONS = 0;

    private final NixlCapi capi;
    private final NixlTransferCalls calls;
    private final String name;
    private final NativeScratch indices = new NativeScratch(SCRATCH_BYTES);
    private final NativeScratch bytes = new NativeScratch(SCRATCH_BYTES);
    private final NativeScratch out = new NativeScratch(TelemetryDescriptor.LENGTH);
    private MemorySegment agent; // null once closed
    private long agentAddress;
    private MemorySegment options;
    private MemorySegment notifications;

    NixlTransfers(NixlCapi capi, NixlTransferCalls calls, MemorySegment agent, String name) {
        this.capi = capi;
        this.calls = calls;
        this.name = name;
        this.agent = agent;
        this.agentAddress = agent.address();
        this.options = created(NixlFunction.CREATE_OPT_ARGS);
        this.notifications = created(NixlFunction.CREATE_NOTIF_MAP);
    }

    private MemorySegment created(NixlFunction function) {
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment created = NativeText.allocatePointer(arena);
            check(function, capi.call(function, created), "");
            return NativeText.pointer(created);
        }
    }

    /**
     * Registers memory with every backend that takes its kind. It must stay mapped until it is
     * deregistered and no peer uses it any more: a peer that reads unmapped memory ends this
     * process.
     *
     * @param memory kind of all of it
     * @param addresses first bytes
     * @param lengths bytes of each, above 0
     * @param devices 0 for host memory, a GPU's ordinal for its memory
     * @throws NixlException if no backend takes it
     * @throws IllegalStateException if the agent is closed
     */
    public void register(NixlMemory memory, long[] addresses, long[] lengths, int[] devices) {
        registration(NixlFunction.REGISTER_MEM, memory, addresses, lengths, devices);
    }

    /**
     * Takes back one earlier {@link #register}, with the very same arguments.
     *
     * @param memory as there
     * @param addresses as there
     * @param lengths as there
     * @param devices as there
     * @throws NixlException if this was not registered
     * @throws IllegalStateException if the agent is closed
     */
    public void deregister(NixlMemory memory, long[] addresses, long[] lengths, int[] devices) {
        registration(NixlFunction.DEREGISTER_MEM, memory, addresses, lengths, devices);
    }

    private void registration(
            NixlFunction function,
            NixlMemory memory,
            long[] addresses,
            long[] lengths,
            int[] devices) {
        final MemorySegment owner = handle();
        final MemorySegment list = list(NixlFunction.CREATE_REG_DLIST, memory);
        try {
            for (int i = 0; i < addresses.length; i++) {
                check(
                        NixlFunction.REG_DLIST_ADD_DESC,
                        capi.addRegistration(list, addresses[i], lengths[i], devices[i]),
                        "descriptor=" + i);
            }
            check(
                    function,
                    capi.call(function, owner, list, MemorySegment.NULL),
                    "%s, %d descriptors".formatted(memory, addresses.length));
        } finally {
            capi.call(NixlFunction.DESTROY_REG_DLIST, list);
        }
    }

    private MemorySegment list(NixlFunction function, NixlMemory memory) {
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment created = NativeText.allocatePointer(arena);
            check(function, capi.call(function, memory.code(), created), "memory=" + memory);
            return NativeText.pointer(created);
        }
    }

    /**
     * What a peer needs to reach this agent and all that is registered now; some 500 bytes and 45
     * more for each descriptor.
     *
     * @return opaque bytes for the peer's {@link #load}
     * @throws NixlException if NIXL fails
     * @throws IllegalStateException if the agent is closed
     */
    public byte[] metadata() {
        final MemorySegment owner = handle();
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment data = NativeText.allocatePointer(arena);
            final MemorySegment length = arena.allocate(ValueLayout.JAVA_LONG);
            check(
                    NixlFunction.GET_LOCAL_MD,
                    capi.call(NixlFunction.GET_LOCAL_MD, owner, data, length),
                    "");
            final MemorySegment blob = NativeText.pointer(data);
            try {
                return NativeText.bytes(blob, length.get(ValueLayout.JAVA_LONG, 0));
            } finally {
                LibC.free(blob);
            }
        }
    }

    /**
     * Makes a peer known, or more of its memory.
     *
     * @param metadata what the peer's {@link #metadata} gave
     * @return the peer's name
     * @throws NixlException if NIXL does not understand it
     * @throws IllegalStateException if the agent is closed
     */
    public String load(byte[] metadata) {
        final MemorySegment owner = handle();
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment found = NativeText.allocatePointer(arena);
            check(
                    NixlFunction.LOAD_REMOTE_MD,
                    capi.call(
                            NixlFunction.LOAD_REMOTE_MD,
                            owner,
                            arena.allocateFrom(ValueLayout.JAVA_BYTE, metadata),
                            metadata.length,
                            found),
                    metadata.length + " bytes of metadata");
            try {
                return NativeText.string(found);
            } finally {
                LibC.free(NativeText.pointer(found));
            }
        }
    }

    /**
     * Forgets a peer and disconnects. Requests and lists of it are to be released before.
     *
     * @param peer its name
     * @return false if it was not known
     * @throws IllegalStateException if the agent is closed
     */
    public boolean invalidate(String peer) {
        final MemorySegment owner = handle();
        try (Arena arena = Arena.ofConfined()) {
            return capi.call(
                            NixlFunction.INVALIDATE_REMOTE_MD,
                            owner,
                            arena.allocateFrom(NativeText.checkName(peer, "peer")))
                    == 0;
        }
    }

    /**
     * Connects to a known peer now rather than at the first transfer, which takes some 30 ms more.
     *
     * @param peer its name
     * @throws NixlException if it cannot be reached
     * @throws IllegalStateException if the agent is closed
     */
    public void connect(String peer) {
        final MemorySegment owner = handle();
        try (Arena arena = Arena.ofConfined()) {
            check(
                    NixlFunction.MAKE_CONNECTION,
                    capi.call(
                            NixlFunction.MAKE_CONNECTION,
                            owner,
                            arena.allocateFrom(NativeText.checkName(peer, "peer")),
                            MemorySegment.NULL),
                    "peer=" + peer);
        }
    }

    /**
     * Checks memory descriptors and makes a list for many requests; 30 ns a descriptor.
     *
     * @param peer whose memory it is; empty for own memory, the agent's own name for own memory as
     *     if it were a peer's
     * @param memory kind of all of it
     * @param addresses first bytes, each inside one registered range
     * @param lengths bytes of each
     * @param devices as at the registration
     * @return the list's handle
     * @throws NixlException if the peer or a descriptor is not known
     * @throws IllegalStateException if the agent is closed
     */
    public long prepare(
            String peer, NixlMemory memory, long[] addresses, long[] lengths, int[] devices) {
        final MemorySegment owner = handle();
        final MemorySegment list = list(NixlFunction.CREATE_XFER_DLIST, memory);
        try (Arena arena = Arena.ofConfined()) {
            final long listAddress = list.address();
            for (int i = 0; i < addresses.length; i++) {
                check(
                        NixlFunction.XFER_DLIST_ADD_DESC,
                        calls.addDesc(listAddress, addresses[i], lengths[i], devices[i]),
                        i);
            }
            final MemorySegment prepared = NativeText.allocatePointer(arena);
            check(
                    NixlFunction.PREP_XFER_DLIST,
                    capi.call(
                            NixlFunction.PREP_XFER_DLIST,
                            owner,
                            arena.allocateFrom(NativeText.checkValue(peer, "peer")),
                            list,
                            prepared,
                            MemorySegment.NULL),
                    "peer=%s, %s, %d descriptors".formatted(peer, memory, addresses.length));
            return NativeText.pointer(prepared).address();
        } finally {
            capi.call(NixlFunction.DESTROY_XFER_DLIST, list);
        }
    }

    /**
     * Gives a list back.
     *
     * @param list from {@link #prepare}
     * @throws NixlException if NIXL refuses
     * @throws IllegalStateException if the agent is closed
     */
    public void releaseList(long list) {
        check(
                NixlFunction.RELEASE_XFER_DLIST_HANDLE,
                capi.call(
                        NixlFunction.RELEASE_XFER_DLIST_HANDLE,
                        handle(),
                        MemorySegment.ofAddress(list)),
                "list=" + list);
    }

    /**
     * Makes a request of descriptors of two lists; neighbours on both sides are merged. 0.15 µs and
     * 17 ns a descriptor.
     *
     * @param write true to push, false to pull
     * @param localList list of own memory
     * @param localIndices indices in it, from 0
     * @param remoteList list of the peer's memory
     * @param remoteIndices indices in it; the i-th descriptor is as long as the i-th local one
     * @param first where the used indices begin in both arrays
     * @param count indices used of both arrays
     * @param notification sent to the peer when the last byte has arrived; null for none
     * @return the request's handle
     * @throws NixlException if indices or lengths do not fit
     * @throws IllegalStateException if the agent is closed
     */
    public long make(
            boolean write,
            long localList,
            int[] localIndices,
            long remoteList,
            int[] remoteIndices,
            int first,
            int count,
            byte[] notification) {
        checkOpen();
        final long length = (long) count * Integer.BYTES;
        final long local = indices.reserve(2 * length);
        indices.put(0, localIndices, first, count);
        indices.put(length, remoteIndices, first, count);
        return make(write, localList, local, remoteList, local + length, count, notification);
    }

    /**
     * Makes a request as {@link #make(boolean, long, int[], long, int[], int, int, byte[])} does,
     * of indices that lie in native memory already: they are not copied (copying costs 0.07 ns a
     * index).
     *
     * @param write true to push, false to pull
     * @param localList list of own memory
     * @param localIndices address of indices in it, 4 bytes each in this machine's order, read
     *     before this returns
     * @param remoteList list of the peer's memory
     * @param remoteIndices address of indices in it; the i-th descriptor is as long as the i-th
     *     local one
     * @param count indices at both addresses
     * @param notification sent to the peer when the last byte has arrived; null for none
     * @return the request's handle
     * @throws NixlException if indices or lengths do not fit
     * @throws IllegalStateException if the agent is closed
     */
    public long make(
            boolean write,
            long localList,
            long localIndices,
            long remoteList,
            long remoteIndices,
            int count,
            byte[] notification) {
        checkOpen();
        final long result = out.reserve(Long.BYTES);
        check(
                NixlFunction.MAKE_XFER_REQ,
                calls.makeRequest(
                        agentAddress,
                        write ? WRITE : READ,
                        localList,
                        localIndices,
                        remoteList,
                        remoteIndices,
                        count,
                        result,
                        notification == null ? NO_OPTIONS : options(notification)),
                write,
                count);
        return out.getLong(0);
    }

    private long options(byte[] notification) {
        final long data = bytes.reserve(notification.length);
        bytes.put(notification);
        final long address = options.address();
        int status = calls.setNotification(address, data, notification.length);
        if (status == 0) {
            status = calls.setHasNotification(address, true);
        }
        check(NixlFunction.OPT_ARGS_SET_NOTIF_MSG, status, notification.length);
        return address;
    }

    /**
     * Starts a request. Can take as long as the whole copy.
     *
     * @param request from {@link #make}, not running
     * @return 0 done, 1 running, negative failed; see {@link NixlStatus#of}
     * @throws IllegalStateException if the agent is closed
     */
    public int post(long request) {
        checkOpen();
        return calls.post(agentAddress, request);
    }

    /**
     * Asks how far a posted request is. This is also what sends its notification.
     *
     * @param request a posted one
     * @return 0 done, 1 running, negative failed; see {@link NixlStatus#of}
     * @throws IllegalStateException if the agent is closed
     */
    public int status(long request) {
        checkOpen();
        return calls.status(agentAddress, request);
    }

    /**
     * Gives a request back; a running one is cancelled.
     *
     * @param request from {@link #make}
     * @return 0 if it was released; else it could not be cancelled: keep it and the blocks of both
     *     sides, and try again
     * @throws IllegalStateException if the agent is closed
     */
    public int release(long request) {
        checkOpen();
        final int status = calls.release(agentAddress, request);
        if (status == 0) {
            calls.destroy(request); // whatever that says: there is no request to try again with
        }
        return status;
    }

    /**
     * What a finished request took.
     *
     * @param request a finished one
     * @param telemetry receives it
     * @return false if the agent was made without telemetry, or NIXL knows nothing
     * @throws IllegalStateException if the agent is closed
     */
    public boolean telemetry(long request, NixlTelemetry telemetry) {
        checkOpen();
        final long address = out.reserve(TelemetryDescriptor.LENGTH);
        if (calls.telemetry(agentAddress, request, address) != 0) {
            return false;
        }
        telemetry.startMicros = out.getLong(TelemetryDescriptor.START_OFFSET);
        telemetry.postMicros = out.getLong(TelemetryDescriptor.POST_OFFSET);
        telemetry.transferMicros = out.getLong(TelemetryDescriptor.TRANSFER_OFFSET);
        telemetry.bytes = out.getLong(TelemetryDescriptor.BYTES_OFFSET);
        telemetry.descriptors = out.getLong(TelemetryDescriptor.DESCRIPTORS_OFFSET);
        return true;
    }

    /**
     * Sends a notification by itself, in no order with requests.
     *
     * @param peer a known one
     * @param message its bytes
     * @return 0 when it is on its way, negative when the peer is unknown or lost
     * @throws IllegalStateException if the agent is closed
     */
    public int send(String peer, byte[] message) {
        checkOpen();
        try (Arena arena = Arena.ofConfined()) {
            final long data = bytes.reserve(message.length);
            bytes.put(message);
            return calls.send(
                    agentAddress,
                    arena.allocateFrom(NativeText.checkName(peer, "peer")).address(),
                    data,
                    message.length);
        }
    }

    /**
     * Hands over what peers have sent since the last call, and lets NIXL move on.
     *
     * @param handler called for each
     * @return how many there were
     * @throws NixlException if NIXL fails
     * @throws IllegalStateException if the agent is closed
     */
    public int notifications(NixlNotificationHandler handler) {
        checkOpen();
        final long map = notifications.address();
        check(NixlFunction.GET_NOTIFS, calls.getNotifications(agentAddress, map), 0);
        final long result = out.reserve(2 * Long.BYTES);
        check(NixlFunction.NOTIF_MAP_SIZE, calls.notificationAgents(map, result), 0);
        final long agents = out.getLong(0);
        if (agents == 0) {
            return 0;
        }
        int count = 0;
        try {
            for (long i = 0; i < agents; i++) {
                count += deliver(map, i, result, handler);
            }
        } finally {
            check(NixlFunction.NOTIF_MAP_CLEAR, calls.clearNotifications(map), 0);
        }
        return count;
    }

    private int deliver(long map, long index, long result, NixlNotificationHandler handler) {
        check(
                NixlFunction.NOTIF_MAP_GET_AGENT_AT,
                calls.notificationAgent(map, index, result),
                index);
        final long cName = out.getLong(0);
        final String sender = NativeText.string(cName);
        check(
                NixlFunction.NOTIF_MAP_GET_NOTIFS_SIZE,
                calls.notificationsOfAgent(map, cName, result),
                index);
        final long count = out.getLong(0);
        for (long i = 0; i < count; i++) {
            check(
                    NixlFunction.NOTIF_MAP_GET_NOTIF,
                    calls.notification(map, cName, i, result, result + Long.BYTES),
                    i);
            handler.onNotification(
                    sender, NativeText.segment(out.getLong(0), out.getLong(Long.BYTES)));
        }
        return Math.toIntExact(count);
    }

    private void check(NixlFunction function, int status, String subject) {
        NixlStatus.check(
                status,
                function.symbol(),
                subject.isEmpty() ? "agent=" + name : "agent=" + name + ", " + subject);
    }

    /** Without a text that is built for every call. */
    private void check(NixlFunction function, int status, long number) {
        if (status != 0) {
            check(function, status, Long.toString(number));
        }
    }

    private void check(NixlFunction function, int status, boolean write, int count) {
        if (status != 0) {
            check(function, status, (write ? "WRITE" : "READ") + " of " + count + " descriptors");
        }
    }

    private MemorySegment handle() {
        checkOpen();
        return agent;
    }

    private void checkOpen() {
        if (agent == null) {
            throw new IllegalStateException("agent " + name + " is closed");
        }
    }

    /**
     * Gives back what belongs to the transfers; the agent calls it when it is closed. Requests and
     * lists that were not released end with the agent.
     */
    @Override
    public void close() {
        if (agent == null) {
            return;
        }
        agent = null;
        agentAddress = 0;
        capi.call(NixlFunction.DESTROY_OPT_ARGS, options);
        capi.call(NixlFunction.DESTROY_NOTIF_MAP, notifications);
        indices.close();
        bytes.close();
        out.close();
    }
}

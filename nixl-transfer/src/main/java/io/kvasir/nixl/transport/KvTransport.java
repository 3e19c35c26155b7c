package io.kvasir.nixl.transport;

import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.memory.KvRegion;

import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * One end of block copies: registers memory, knows peers by their metadata, and copies between its
 * own memory and a peer's, asynchronously. NIXL's agent is one, the loopback another.
 *
 * <p>All calls of one transport come from one thread, its owner. Life times: memory outlives its
 * registration, registrations and peers outlive lists, lists outlive requests. Handles of lists and
 * requests are numbers other than 0; an unknown or released one is refused as {@code INVALID}, as
 * is every call of a closed transport.
 *
 * <p>What makes progress: a transport may copy inside {@link #post}, in the background, or only
 * while its owner polls. So a thread that has posted must poll {@link #status} until it is not
 * {@link Progress#RUNNING}, and an owner of memory that peers use must poll {@link #notifications}.
 * {@code request}, {@code post}, {@code status}, {@code release} and {@code notifications} without
 * a message allocate nothing once their scratch memory has grown.
 */
public interface KvTransport extends AutoCloseable {
    /** Longest message of a request or by itself, in bytes. */
    int MAX_MESSAGE = 8 << 10;

    /** Which way blocks go. */
    enum Operation {
        /** From the peer into own memory: pull. */
        READ,
        /** From own memory to the peer: push. */
        WRITE
    }

    /** How far a request is. */
    enum Progress {
        /** All bytes are where they belong. */
        DONE,
        /** Not yet; poll again. */
        RUNNING,
        /** It failed and will not go on; {@link KvTransport#failure} says why. */
        FAILED
    }

    /** Receives messages of peers. */
    @FunctionalInterface
    interface NotificationHandler {
        /**
         * Called once a message, in the order of each peer. What it throws reaches the caller of
         * {@link KvTransport#notifications}; the other messages are handed over by that call or the
         * next.
         *
         * @param peer name of the sender
         * @param message its bytes; valid during the call
         */
        void onNotification(String peer, MemorySegment message);
    }

    /**
     * The name that peers know this end by.
     *
     * @return unique among all ends that will ever know each other
     */
    String name();

    /**
     * Makes memory known to the transport, so that peers can reach it; they need {@link #metadata}
     * anew. The memory must stay mapped until it is deregistered <em>and</em> every peer is known
     * to be done with it: unmapping it earlier can kill this process.
     *
     * @param regions not empty; none registered already
     * @throws KvTransportException {@code INVALID} if there is none, or one overlaps another;
     *     otherwise if it is refused; nothing is registered then
     */
    void register(List<KvRegion> regions);

    /**
     * Forgets memory. This alone does not keep a peer with older metadata from reading it.
     *
     * @param regions exactly those of one earlier {@link #register}
     * @throws KvTransportException {@code INVALID} if they were not registered so; otherwise if it
     *     is refused; they are registered still
     */
    void deregister(List<KvRegion> regions);

    /**
     * What a peer needs in order to reach this end and all that is registered.
     *
     * @return opaque bytes, for this transport's {@link #connect} in another process
     */
    byte[] metadata();

    /**
     * Makes a peer known, or knows more of it: later metadata of the same peer adds to it. A new
     * end with the name of one that is gone is another peer: {@link #disconnect} the old one first.
     *
     * @param metadata what the peer's {@link #metadata} returned
     * @return the peer's name
     * @throws KvTransportException {@code BAD_METADATA} if it cannot be understood. No other peer
     *     is hurt; the one that it names, as a part of its metadata does, may be lost, and NIXL
     *     1.5.1 does not take good metadata of that name any more: hand over whole ones only
     */
    String connect(byte[] metadata);

    /**
     * Forgets a peer. What is left of its lists and requests is worth nothing from then on, also
     * when the peer is connected again: no request can be made ({@code PEER_LOST}), those that are
     * posted or polled fail. They are still to be released.
     *
     * @param peer its name; unknown ones are ignored
     */
    void disconnect(String peer);

    /**
     * Checks memory descriptors once and makes a list of them for many requests.
     *
     * @param peer whose memory it is; null for own memory
     * @param descriptors in the list's order, each inside one registered region
     * @return the list's handle
     * @throws KvTransportException {@code UNKNOWN_PEER}, or {@code INVALID} if a descriptor does
     *     not lie inside one region that is registered and, of a peer, was so when its metadata was
     *     made
     */
    long prepare(String peer, Descriptors descriptors);

    /**
     * Gives a list back.
     *
     * @param list from {@link #prepare}
     * @throws KvTransportException {@code INVALID} if a request that was made of it is not released
     */
    void releaseList(long list);

    /**
     * Makes a request of descriptors of two lists.
     *
     * @param operation which way
     * @param localList list of own memory
     * @param localIndices indices in it; not kept
     * @param remoteList list of a peer's memory
     * @param remoteIndices indices in it; the i-th is as long as the i-th local one; not kept
     * @param first where the used indices begin in both arrays
     * @param count indices used of both arrays, at least 1
     * @param notification sent to the peer after its last byte has arrived, once a post; null for
     *     none; at most {@value #MAX_MESSAGE} bytes, may be empty
     * @return the request's handle; it can be posted again whenever it is done
     * @throws KvTransportException {@code INVALID} if lists, indices, lengths or notification do
     *     not fit, {@code PEER_LOST} if the peer is known to be gone
     */
    long request(
            Operation operation,
            long localList,
            int[] localIndices,
            long remoteList,
            int[] remoteIndices,
            int first,
            int count,
            byte[] notification);

    /**
     * As {@link #request(Operation, long, int[], long, int[], int, int, byte[])}, of the first
     * {@code count} indices of both arrays.
     */
    default long request(
            Operation operation,
            long localList,
            int[] localIndices,
            long remoteList,
            int[] remoteIndices,
            int count,
            byte[] notification) {
        return request(
                operation,
                localList,
                localIndices,
                remoteList,
                remoteIndices,
                0,
                count,
                notification);
    }

    /**
     * Starts a request. May take as long as the whole copy: not for event loops.
     *
     * @param request from {@link #request}; neither running nor failed
     * @return how far it is
     * @throws KvTransportException {@code INVALID} if it is
     */
    Progress post(long request);

    /**
     * Polls a posted request, and moves it on.
     *
     * @param request a posted one; another is {@code INVALID}
     * @return how far it is; {@link Progress#FAILED} stays
     */
    Progress status(long request);

    /**
     * Why a request failed.
     *
     * @param request one whose progress is {@link Progress#FAILED}; another is {@code INVALID}
     * @return for people; allocates
     */
    String failure(long request);

    /**
     * Gives a request back; cancels it where it is running and can be, and then sends no
     * notification.
     *
     * @param request from {@link #request}
     * @return false if it could not be cancelled: the handle and both sides' blocks must be kept,
     *     since bytes may still move; try again later
     */
    boolean release(long request);

    /**
     * What a finished request took.
     *
     * @param request one whose progress is {@link Progress#DONE}; another is {@code INVALID}
     * @param out receives it
     * @return false if this transport does not measure
     */
    boolean telemetry(long request, TransferTelemetry out);

    /**
     * Sends a message to a peer, in no order with requests.
     *
     * @param peer a connected one
     * @param message its bytes, at most {@value #MAX_MESSAGE}
     * @throws KvTransportException {@code UNKNOWN_PEER}, {@code PEER_LOST}, or {@code INVALID} if
     *     it is too long
     */
    void send(String peer, byte[] message);

    /**
     * Hands over all messages that have arrived, and moves on what peers do with this end's memory.
     *
     * @param handler receives them
     * @return how many there were
     */
    int notifications(NotificationHandler handler);

    /** Ends it: requests are cancelled, lists, peers and registrations forgotten. Idempotent. */
    @Override
    void close();
}

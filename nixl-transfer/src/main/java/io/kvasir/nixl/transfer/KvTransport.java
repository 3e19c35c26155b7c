package io.kvasir.nixl.transfer;

import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * One end of block copies: registers memory, knows peers by their metadata, and copies between its
 * own memory and a peer's, asynchronously. NIXL's agent is one, the loopback another.
 *
 * <p>All calls of one transport come from one thread, its owner. Life times: memory outlives its
 * registration, registrations and peers outlive lists, lists outlive requests. Handles of lists and
 * requests are numbers other than 0; a released handle must not be used again.
 *
 * <p>What makes progress: a transport may copy inside {@link #post}, in the background, or only
 * while its owner polls. So whoever has posted must poll {@link #status} until it is not {@link
 * Progress#RUNNING}, and whoever has registered memory that peers use must poll {@link
 * #notifications}. {@code request}, {@code post}, {@code status}, {@code release} and {@code
 * notifications} without a message allocate nothing once their scratch memory has grown.
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
         * Called once a message, in the order of each peer.
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
     * @throws KvTransportException if it is refused
     */
    void register(List<KvRegion> regions);

    /**
     * Forgets memory. This alone does not keep a peer with older metadata from reading it.
     *
     * @param regions exactly those of one earlier {@link #register}
     * @throws KvTransportException if they are not known
     */
    void deregister(List<KvRegion> regions);

    /**
     * What a peer needs in order to reach this end and all that is registered.
     *
     * @return opaque bytes, for this transport's {@link #connect} in another process
     */
    byte[] metadata();

    /**
     * Makes a peer known, or knows more of it: later metadata of the same peer adds to it.
     *
     * @param metadata what the peer's {@link #metadata} returned
     * @return the peer's name
     * @throws KvTransportException if it cannot be understood
     */
    String connect(byte[] metadata);

    /**
     * Forgets a peer. Its lists and requests must be released before, or be thrown away with it.
     *
     * @param peer its name; unknown ones are ignored
     */
    void disconnect(String peer);

    /**
     * Checks pieces of memory once and makes a list of them for many requests.
     *
     * @param peer whose memory it is; null for own memory
     * @param pieces in the list's order, each inside one registered region
     * @return the list's handle
     * @throws KvTransportException if the peer or the memory is not known
     */
    long prepare(String peer, Descriptors pieces);

    /**
     * Gives a list back; no request that was made of it may be alive.
     *
     * @param list from {@link #prepare}
     */
    void releaseList(long list);

    /**
     * Makes a request of pieces of two lists.
     *
     * @param operation which way
     * @param localList list of own memory
     * @param localPlaces places in it
     * @param remoteList list of a peer's memory
     * @param remotePlaces places in it; the i-th is as long as the i-th local one
     * @param count places used of both arrays, at least 1
     * @param notification sent to the peer after its last byte has arrived; null for none. Keep it
     *     below 8 KiB
     * @return the request's handle; it can be posted again whenever it is done
     * @throws KvTransportException if places or lengths do not fit
     */
    long request(
            Operation operation,
            long localList,
            int[] localPlaces,
            long remoteList,
            int[] remotePlaces,
            int count,
            byte[] notification);

    /**
     * Starts a request. May take as long as the whole copy: not for event loops.
     *
     * @param request from {@link #request}; not running
     * @return how far it is
     */
    Progress post(long request);

    /**
     * Looks how far a posted request is, and moves it on.
     *
     * @param request a posted one
     * @return how far it is; {@link Progress#FAILED} stays
     */
    Progress status(long request);

    /**
     * Why a request failed.
     *
     * @param request one whose progress is {@link Progress#FAILED}
     * @return for people; allocates
     */
    String failure(long request);

    /**
     * Gives a request back; cancels it where it is running and can be.
     *
     * @param request from {@link #request}
     * @return false if it could not be cancelled: the handle and both sides' blocks must be kept,
     *     since bytes may still move; try again later
     */
    boolean release(long request);

    /**
     * What a finished request took.
     *
     * @param request one whose progress is {@link Progress#DONE}
     * @param out receives it
     * @return false if this transport does not measure
     */
    boolean telemetry(long request, TransferTelemetry out);

    /**
     * Sends a message to a peer, in no order with requests.
     *
     * @param peer a connected one
     * @param message its bytes, at most 8 KiB
     * @throws KvTransportException if the peer is unknown or lost
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

package io.kvasir.nixl.vllm;

import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.KvTransportException;

import java.util.ArrayList;
import java.util.List;

/**
 * The ranks of an engine that are notified of what becomes of its blocks, as peers of a transport.
 */
final class EngineRanks {
    private final KvTransport transport;
    private final VllmEngine engine;
    private final int count;
    private final int consumers;
    private final List<String> peers = new ArrayList<>();

    /**
     * Makes one without peers.
     *
     * @param transport to connect them to
     * @param engine their engine
     * @param count how many will be connected
     * @param consumers ranks here that notify each of them, at least 1
     */
    EngineRanks(KvTransport transport, VllmEngine engine, int count, int consumers) {
        this.transport = transport;
        this.engine = engine;
        this.count = count;
        this.consumers = consumers;
    }

    /**
     * Connects a rank.
     *
     * @return the transport's name of it
     * @throws KvTransportException if the transport refuses it
     */
    String connect(VllmAgent rank) {
        final String peer = transport.connect(rank.metadata().agent().toArray());
        peers.add(peer);
        return peer;
    }

    VllmEngine engine() {
        return engine;
    }

    int consumers() {
        return consumers;
    }

    /** Ranks to notify, also while they are not connected. */
    int count() {
        return count;
    }

    /**
     * Sends a message to one of {@link #count} ranks.
     *
     * @throws KvTransportException if it is not connected, or the transport cannot send it
     */
    void tell(int rank, VllmNotification message) {
        if (rank >= peers.size()) {
            throw new KvTransportException(
                    KvTransportException.Kind.UNKNOWN_PEER,
                    "rank " + rank + " of engine " + engine.engineId() + " is not connected");
        }
        transport.send(peers.get(rank), message.encode());
    }

    /** Forgets the peers. */
    void close() {
        peers.forEach(transport::disconnect);
        peers.clear();
    }
}

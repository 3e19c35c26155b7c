package io.kvasir.pipeline.publish;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.pipeline.source.EventSource;
import io.kvasir.pipeline.source.EventSources;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.pipeline.source.SourceStatus;
import io.kvasir.pipeline.source.ZmqConfig;

import java.util.function.Function;

/**
 * Relays the events of an engine: reads its batches over ZMQ, asks for what is missing, and
 * publishes router events, the first of which is a clear: what the index has of the worker from a
 * relay before this one ends, also where the engine announces nothing. A batch that is lost for
 * good, between engine and relay, uses up a number of the router events, so that their readers
 * know; a restart of the engine is a clear.
 *
 * <p>Engines announce each physical copy of a block; of router events a removal ends all copies, so
 * the relay counts them and passes the last removal on.
 *
 * <p>What is read waits for the transport, up to a limit; beyond it the engine is asked again, as
 * far as its replay socket goes back. An event that the transport refuses is tried again until it
 * takes it; one that it can never take uses its number up, so that readers know, too.
 */
public final class ZmqKvEventPublisher implements AutoCloseable {
    private final PatientTransport transport;
    private final RelayQueue queue;
    private final EventSources sources;
    private final EventSource source;

    /**
     * Begins to read; does not wait for a connection.
     *
     * @param engine where the engine publishes, and its replay socket
     * @param zmq limits of the connection
     * @param workerId the worker in router events, 64 unsigned bits
     * @param events carries them; closed with this relay
     * @throws IllegalArgumentException if an address is none
     */
    public ZmqKvEventPublisher(
            SourceConfig engine, ZmqConfig zmq, long workerId, RouterEventTransport events) {
        this(
                engine,
                zmq,
                events,
                transport ->
                        new KvEventPublisher(
                                workerId, engine.dpRank(), engine.blockSize(), transport));
    }

    /**
     * The same for a relay whose events are remembered for readers that miss some.
     *
     * @param engine where the engine publishes, and its replay socket
     * @param zmq limits of the connection
     * @param events carries them; closed with this relay
     * @param indexer remembers them, of this relay alone; its worker is the one in router events
     * @throws IllegalArgumentException if an address is none
     */
    public ZmqKvEventPublisher(
            SourceConfig engine, ZmqConfig zmq, RouterEventTransport events, LocalIndexer indexer) {
        this(
                engine,
                zmq,
                events,
                transport -> new KvEventPublisher(engine.blockSize(), transport, indexer));
    }

    private ZmqKvEventPublisher(
            SourceConfig engine,
            ZmqConfig zmq,
            RouterEventTransport events,
            Function<RouterEventTransport, KvEventPublisher> publisher) {
        this.transport = new PatientTransport(events);
        this.queue = new RelayQueue(publisher.apply(transport));
        this.sources = new EventSources(zmq);
        try {
            this.source = sources.openZmq(engine.withHashSeed(BlockHasher.BASE_SEED), queue);
        } catch (IllegalArgumentException e) {
            sources.close();
            queue.close();
            throw e;
        }
    }

    /** The source of the engine's events: how far they are known, and whether all are published. */
    public SourceStatus status() {
        return source.status();
    }

    /** Router events that were published. */
    public long publishedEvents() {
        return queue.publishedEvents() - transport.lost();
    }

    /** Router events that the transport can carry in no message, as NATS by its max_payload. */
    public long lostEvents() {
        return transport.lost();
    }

    /** Tries to publish that failed and were made again. */
    public long failedTries() {
        return transport.failures();
    }

    /** Why the last try failed; empty since one succeeded. */
    public String problem() {
        return transport.problem();
    }

    /** Ends reading, then the transport. What waits is dropped. Idempotent. */
    @Override
    public void close() {
        sources.close();
        queue.close();
    }
}

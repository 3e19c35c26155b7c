package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.KvEventSink;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/**
 * The open sources of one pipeline. Sources over ZMQ share connections and threads, which exist
 * from the first one on. All methods may be called by any thread.
 */
public final class EventSources implements AutoCloseable {
    private static final int MIN_SOURCES_TO_FORGET = 64;

    private final ZmqConfig config;
    private final StreamLog log = new StreamLog();
    private final List<EventSource> sources = new ArrayList<>();
    private ZmqTransport zmq;
    private int forgetAt = MIN_SOURCES_TO_FORGET;

    /** Opens nothing yet. */
    public EventSources(ZmqConfig config) {
        this.config = config;
    }

    /**
     * Opens a source that receives from a ZMQ publisher; does not wait for a connection.
     *
     * @throws IllegalArgumentException if an address is none, or cannot be bound
     */
    public synchronized EventSource openZmq(SourceConfig source, KvEventSink sink) {
        return openZmq(source, sink, null);
    }

    /**
     * The same for a slot that was restored.
     *
     * @param startOrNull where the stream continues; null for one that begins with an empty slot
     */
    public synchronized EventSource openZmq(
            SourceConfig source, KvEventSink sink, StreamStart startOrNull) {
        return open(
                source,
                sink,
                stream -> {
                    if (startOrNull != null) {
                        stream.startAfter(startOrNull);
                    }
                });
    }

    /** The same for a slot with blocks of another index; see {@link EngineStream#startOnLoaded}. */
    public synchronized EventSource openZmqOnLoaded(SourceConfig source, KvEventSink sink) {
        zmq().check(source); // before blocks are cleared
        return open(source, sink, EngineStream::startOnLoaded);
    }

    private EventSource open(SourceConfig source, KvEventSink sink, Consumer<EngineStream> start) {
        forgetClosedSources();
        final EngineStream stream = new EngineStream(source, sink, log);
        start.accept(stream);
        final ZmqSource opened = zmq().open(stream);
        sources.add(opened);
        return opened;
    }

    /**
     * Checks the addresses of a source, which is not opened.
     *
     * @throws IllegalArgumentException as of {@link #openZmq}
     */
    public synchronized void checkZmq(SourceConfig source) {
        zmq().check(source);
    }

    private ZmqTransport zmq() {
        if (zmq == null) {
            zmq = new ZmqTransport(config);
        }
        return zmq;
    }

    /**
     * Opens a stream that the caller feeds.
     *
     * @param startOrNull where the stream continues; null for one that begins with an empty slot
     */
    public synchronized EngineStream openDirect(
            SourceConfig source, KvEventSink sink, StreamStart startOrNull) {
        forgetClosedSources();
        final EngineStream opened = new EngineStream(source, sink, log);
        if (startOrNull != null) {
            opened.startAfter(startOrNull);
        }
        sources.add(opened);
        return opened;
    }

    /** Now and then, so that opening many costs each a constant time. */
    private void forgetClosedSources() {
        if (sources.size() >= forgetAt) {
            sources.removeIf(source -> source.state() == IndexState.GONE);
            forgetAt = Math.max(MIN_SOURCES_TO_FORGET, 2 * sources.size());
        }
    }

    /** Closes all sources, then the connections and their threads. */
    @Override
    public synchronized void close() {
        sources.forEach(EventSource::close);
        sources.clear();
        if (zmq != null) {
            zmq.close();
        }
    }
}

package io.kvasir.services.indexer;

import io.kvasir.core.closing.Closing;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.services.http.GroupKey;
import io.kvasir.services.http.ServiceException;
import io.kvasir.services.http.ServiceServer;

import java.io.IOException;
import java.net.URI;
import java.time.Duration;

/**
 * The prefix index as a program of its own: engines are registered over HTTP, their events come
 * over ZMQ, and callers ask which engine holds how much of a prompt. One object is one service; all
 * methods may be called by any thread.
 */
public final class IndexerService implements AutoCloseable {
    /** Longest body of a request. */
    static final int MOST_BODY_BYTES = 8 << 20;

    private static final Duration PEER_PATIENCE = Duration.ofSeconds(10);

    private final IndexerConfig config;
    private final IndexRegistry registry;
    private final ServiceServer server;

    /** Makes a service that does nothing yet. */
    public IndexerService(IndexerConfig config) {
        this(config, IndexSizes.of(config.maxWorkers(), config.indexBytes()));
    }

    IndexerService(IndexerConfig config, PrefixIndexConfig sizes) {
        this.config = config;
        this.registry = new IndexRegistry(sizes, config.maxModels());
        final IndexerMetrics metrics = new IndexerMetrics(registry);
        this.server =
                new ServiceServer(
                        "indexer",
                        config.host(),
                        config.port(),
                        MOST_BODY_BYTES,
                        new IndexerApi(
                                        registry,
                                        metrics,
                                        config.peers().stream().map(URI::toString).toList())
                                .endpoints(),
                        metrics);
    }

    /**
     * Loads the dump of a peer if there is one, registers the engines of the configuration and
     * opens the port.
     *
     * @throws IOException if the port cannot be listened on
     * @throws IllegalArgumentException if an engine cannot be registered; the message says which
     */
    public void start() throws IOException {
        try {
            if (!config.peers().isEmpty()) {
                new PeerRecovery(registry, PEER_PATIENCE).recover(config.peers());
            }
            for (InitialWorker worker : config.workers()) {
                register(worker);
            }
            server.start();
        } catch (IOException | RuntimeException e) {
            close();
            throw e;
        }
    }

    private void register(InitialWorker worker) {
        try {
            registry.register(
                    new Registration(
                            worker.instance(),
                            new GroupKey(worker.model(), worker.routingGroup()),
                            worker.blockSize(),
                            worker.dpRank(),
                            worker.endpoint(),
                            null));
        } catch (ServiceException e) {
            throw new IllegalArgumentException(
                    "worker " + Long.toUnsignedString(worker.instance()) + ": " + e.getMessage(),
                    e);
        }
    }

    /** Port that is listened on. */
    public int port() {
        return server.port();
    }

    /** Closes the port, ends all sources and gives the memory back. A second call does nothing. */
    @Override
    public void close() {
        Closing.all(server, registry);
    }
}

package io.kvasir.services.indexer;

import java.net.URI;
import java.util.List;
import java.util.Objects;

/**
 * What an indexer is started with.
 *
 * @param host address to listen on
 * @param port to listen on; 0 = any free one
 * @param workers engines that are registered at the start
 * @param peers indexers whose dump is loaded at the start; the first that answers is enough
 * @param maxWorkers ranks of one model and routing group that can be registered at once
 * @param maxModels models and routing groups at once, each with an index of its own
 * @param indexBytes memory that one index may grow to; 0 = a tenth of the machine's
 */
public record IndexerConfig(
        String host,
        int port,
        List<InitialWorker> workers,
        List<URI> peers,
        int maxWorkers,
        int maxModels,
        long indexBytes) {
    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if one is out of range
     */
    public IndexerConfig {
        Objects.requireNonNull(host, "host");
        workers = List.copyOf(workers);
        peers = List.copyOf(peers);
        if (maxModels < 1) {
            throw new IllegalArgumentException("maxModels must be 1 or more: " + maxModels);
        }
    }

    /** An indexer without workers and peers. */
    public static IndexerConfig of(String host, int port) {
        return new IndexerConfig(host, port, List.of(), List.of(), 4_096, 64, 0);
    }

    /** The same with engines that are registered at the start. */
    public IndexerConfig withWorkers(List<InitialWorker> initial) {
        return new IndexerConfig(host, port, initial, peers, maxWorkers, maxModels, indexBytes);
    }

    /** The same with peers. */
    public IndexerConfig withPeers(List<URI> urls) {
        return new IndexerConfig(host, port, workers, urls, maxWorkers, maxModels, indexBytes);
    }

    /** The same with other sizes. */
    public IndexerConfig withSizes(int ranks, int models, long bytes) {
        return new IndexerConfig(host, port, workers, peers, ranks, models, bytes);
    }
}

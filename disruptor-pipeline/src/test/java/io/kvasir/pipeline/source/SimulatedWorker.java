package io.kvasir.pipeline.source;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.pipeline.publish.Envelopes;
import io.kvasir.pipeline.publish.KvEventPublisher;
import io.kvasir.pipeline.publish.LocalIndexer;
import io.kvasir.pipeline.publish.RouterEventTransport;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.testsupport.NaivePrefixIndex;

import java.io.IOException;
import java.time.Instant;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;

/** A worker that publishes what it holds, and remembers it; what is true is kept beside it. */
final class SimulatedWorker {
    private static final int NAMES = 80;

    final long id;
    final int rank;
    final int slot;
    private final int maxEvents;
    private final Consumer<byte[]> network;
    private NaivePrefixIndex truth;
    private KvEventPublisher publisher;
    private LocalIndexer indexer;

    SimulatedWorker(long id, int slot, int maxEvents, Consumer<byte[]> network) {
        this(id, 0, slot, maxEvents, network);
    }

    SimulatedWorker(long id, int rank, int slot, int maxEvents, Consumer<byte[]> network) {
        this.id = id;
        this.rank = rank;
        this.slot = slot;
        this.maxEvents = maxEvents;
        this.network = network;
        begin();
    }

    private void begin() {
        final Envelopes envelopes = new Envelopes("kv-events", () -> Instant.EPOCH);
        truth = new NaivePrefixIndex(1_000_000, 1_000_000);
        indexer = new LocalIndexer(id, rank, envelopes.publisherId(), maxEvents, 1 << 20, 100_000);
        publisher =
                new KvEventPublisher(
                        1,
                        new RouterEventTransport() {
                            @Override
                            public void publish(long worker, int rank, long first, KvBatch events) {
                                network.accept(envelopes.next(worker, rank, first, events));
                            }

                            @Override
                            public void close() {}
                        },
                        indexer);
    }

    LocalIndexer indexer() {
        return indexer;
    }

    long lastEventId() {
        return publisher.lastEventId();
    }

    /** Another life, with nothing in its cache; a relay says so, an engine of its own may not. */
    void restart(boolean clears) throws IOException {
        begin();
        if (clears) {
            publisher.publishAllCleared();
        }
    }

    /** Something happens that the publisher does not know. */
    void skip() {
        publisher.skipEvent();
    }

    void clear() throws IOException {
        publisher.publishAllCleared();
        truth.clear(slot);
    }

    void remove(long... names) throws IOException {
        publisher.publishRemoved(names);
        truth.remove(slot, names, true);
    }

    void store(Long parent, long... names) throws IOException {
        final int[] tokens = new int[names.length];
        final long[] locals = new long[names.length];
        for (int i = 0; i < names.length; i++) {
            tokens[i] = (int) names[i] % 11;
        }
        BlockHasher.localHashes(tokens, 0, tokens.length, 1, BlockHasher.BASE_SEED, locals);
        publisher.publishStored(tokens, names, parent);
        truth.store(slot, parent == null, parent == null ? 0 : parent, names, locals, true);
    }

    /** Does what an engine does: stores after what it holds, removes what it holds. */
    void change(Random random) throws IOException {
        final long[] held = truth.names(slot).stream().mapToLong(Long::longValue).toArray();
        final int what = random.nextInt(100);
        if (what == 0) {
            clear();
        } else if (what < 40 && held.length > 0) {
            remove(held[random.nextInt(held.length)]);
        } else {
            final Long parent =
                    held.length == 0 || random.nextInt(3) == 0
                            ? null
                            : Long.valueOf(held[random.nextInt(held.length)]);
            final long[] names =
                    random.longs(1 + random.nextInt(5), 1, NAMES)
                            .filter(name -> parent == null || name != parent)
                            .distinct()
                            .toArray();
            if (names.length > 0) {
                store(parent, names);
            }
        }
    }

    /** Names and sequence hashes of all blocks. */
    Set<String> held() {
        final Set<String> all = new TreeSet<>();
        for (NaivePrefixIndex.Held held : truth.held()) {
            long hash = held.path().getFirst();
            for (long local : held.path().subList(1, held.path().size())) {
                hash = BlockHasher.nextSequenceHash(hash, local);
            }
            all.add(held.engineHash() + " " + hash);
        }
        return all;
    }
}

package io.kvasir.nixl.vllm;

import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.protocol.handoff.RemoteBlocks;

import org.agrona.CloseHelper;

import java.util.ArrayList;
import java.util.List;

/**
 * An engine that the transport is connected to: the lists that are read, one for each rank that
 * holds heads of the rank here, and the peers that are notified of what became of their blocks.
 */
final class ConnectedEngine implements AutoCloseable {
    /**
     * What is read of a rank.
     *
     * @param blocks indices in the remote list
     * @param localList where its part of each block goes
     * @param remoteList its blocks, or the part of them that is read
     */
    record Source(VllmBlocks blocks, long localList, long remoteList) {}

    private final KvTransport transport;
    private final EngineRanks ranks;
    private final List<Source> sources = new ArrayList<>();

    private ConnectedEngine(KvTransport transport, EngineRanks ranks) {
        this.transport = transport;
        this.ranks = ranks;
    }

    /**
     * Connects the ranks that concern a cache here.
     *
     * @throws VllmPeerException of kind {@code UNSUPPORTED} if blocks cannot be copied as they are
     * @throws KvTransportException if the transport refuses it; nothing of it is left then
     */
    static ConnectedEngine of(
            KvTransport transport, VllmEngine engine, VllmCache cache, LocalLists lists) {
        final TensorSplit split = TensorSplit.of(cache.rank(), engine.tensorSize());
        for (TensorSplit.Source source : split.sources()) {
            cache.requireFit(engine.rank(source.rank()), source);
        }
        final ConnectedEngine connected =
                new ConnectedEngine(
                        transport,
                        new EngineRanks(
                                transport, engine, split.ranks().size(), split.consumers()));
        connected.orClose(
                () -> {
                    for (int rank : split.ranks()) {
                        final String peer = connected.ranks.connect(engine.rank(rank));
                        split.sources().stream()
                                .filter(source -> source.rank() == rank)
                                .forEach(source -> connected.prepare(peer, source, lists));
                    }
                });
        return connected;
    }

    private void orClose(Runnable steps) {
        try {
            steps.run();
        } catch (RuntimeException e) {
            close();
            throw e;
        }
    }

    private void prepare(String peer, TensorSplit.Source source, LocalLists lists) {
        final VllmBlocks blocks = VllmBlocks.of(ranks.engine().rank(source.rank()));
        final long local = lists.list(source.here());
        final long remote = transport.prepare(peer, blocks.descriptors(source.there()));
        sources.add(new Source(blocks, local, remote));
    }

    EngineRanks ranks() {
        return ranks;
    }

    List<Source> sources() {
        return sources;
    }

    /**
     * Whether every notification goes with the only read. Otherwise ranks are notified when all
     * have been read: a notified rank may free its blocks, and a failed read of another could not
     * be made good by reading all again.
     */
    boolean isToldByRead() {
        return ranks.count() == 1;
    }

    /** Refuses blocks that do not exist. */
    void requireBlocks(String requestId, RemoteBlocks blocks) {
        sources.forEach(source -> source.blocks().indices(requestId, blocks));
    }

    /**
     * Forgets lists and ranks, the others too where one cannot be.
     *
     * @throws KvTransportException if a request of a list is not released
     */
    @Override
    public void close() {
        final List<AutoCloseable> all = new ArrayList<>();
        sources.forEach(source -> all.add(() -> transport.releaseList(source.remoteList())));
        all.add(ranks::close);
        CloseHelper.closeAll(all);
    }
}

package io.kvasir.router.replica;

import io.kvasir.core.memory.WriterCounter;

/** Counters of replica sync, written by its one thread and read by any. */
final class ReplicaCounts {
    final WriterCounter peers = new WriterCounter();
    final WriterCounter peerBookings = new WriterCounter();
    final WriterCounter published = new WriterCounter();
    final WriterCounter applied = new WriterCounter();
    final WriterCounter ownIgnored = new WriterCounter();
    final WriterCounter lost = new WriterCounter();
    final WriterCounter repairedAdds = new WriterCounter();
    final WriterCounter repairedFrees = new WriterCounter();
    final WriterCounter unknownWorkers = new WriterCounter();
    final WriterCounter sendsRefused = new WriterCounter();
    final WriterCounter refused = new WriterCounter();
    final WriterCounter otherHashes = new WriterCounter();
    final WriterCounter droppedPeers = new WriterCounter();

    ReplicaStatus status(LinkState.Reading link, long queuesDropped) {
        return new ReplicaStatus(
                link.problem(),
                peers.get(),
                peerBookings.get(),
                published.get(),
                applied.get(),
                ownIgnored.get(),
                lost.get(),
                repairedAdds.get(),
                repairedFrees.get(),
                unknownWorkers.get(),
                sendsRefused.get() + queuesDropped + link.dropped(),
                link.unreadable(),
                refused.get(),
                otherHashes.get(),
                droppedPeers.get());
    }
}

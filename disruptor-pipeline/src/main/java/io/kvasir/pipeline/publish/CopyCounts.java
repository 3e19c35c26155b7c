package io.kvasir.pipeline.publish;

import io.kvasir.core.index.CopyRule;
import io.kvasir.pipeline.wire.KvBatch;

import org.agrona.collections.Long2LongHashMap;

/**
 * Counts the physical copies of an engine's blocks, and passes on the removal of the last one. Not
 * thread-safe.
 */
final class CopyCounts {
    private static final long ABSENT = 0;

    private final Long2LongHashMap copies = new Long2LongHashMap(ABSENT);
    private long[] engineHashes = new long[64];
    private long[] localHashes = new long[64];

    /**
     * Follows a batch.
     *
     * @param batch what the engine says
     * @param out gets what is true of blocks, whatever their copies
     */
    void follow(KvBatch batch, KvBatch out) {
        if (batch.eagle()) {
            out.markEagle();
        }
        for (int at = batch.first(); at >= 0; at = batch.next(at)) {
            final int count = batch.count(at);
            switch (batch.kind(at)) {
                case STORED -> {
                    reserve(count);
                    batch.engineHashes(at, engineHashes);
                    batch.localHashes(at, localHashes);
                    for (int i = 0; i < count; i++) {
                        final long held = copies.get(engineHashes[i]);
                        if (held == ABSENT || !batch.isReport(at)) {
                            copies.put(engineHashes[i], held + 1);
                        }
                    }
                    out.addStored(
                            batch.isRoot(at), batch.parent(at), engineHashes, localHashes, count);
                }
                case REMOVED -> {
                    reserve(count);
                    batch.engineHashes(at, engineHashes);
                    remove(count, batch.copyRule(), out);
                }
                case REMOVED_TO -> removeTo(batch.engineHash(at), count, out);
                case CLEARED -> {
                    copies.clear();
                    out.addCleared();
                }
                case REFILL, NAMED, TIER_CLEARED -> {}
            }
        }
    }

    private void remove(int count, CopyRule rule, KvBatch out) {
        int last = 0;
        for (int i = 0; i < count; i++) {
            final long hash = engineHashes[i];
            final long held = copies.get(hash);
            if (held > 1 && rule == CopyRule.PHYSICAL) {
                copies.put(hash, held - 1);
            } else {
                copies.remove(hash);
                engineHashes[last++] = hash; // also one that is not known: others may know it
            }
        }
        if (last > 0) {
            out.addRemoved(engineHashes, last);
        }
    }

    private void removeTo(long hash, int left, KvBatch out) {
        if (left > 0) {
            copies.put(hash, left);
        } else {
            copies.remove(hash);
            out.addRemoved(new long[] {hash}, 1);
        }
    }

    private void reserve(int count) {
        if (engineHashes.length < count) {
            engineHashes = new long[count];
            localHashes = new long[count];
        }
    }
}

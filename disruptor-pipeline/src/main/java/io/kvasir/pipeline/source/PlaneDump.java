package io.kvasir.pipeline.source;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.StorageTier;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.MessageDecoder;
import io.kvasir.pipeline.wire.RouterEventDecoder;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/**
 * The dump of a local indexer, as far as it has come: a shadow of what the slot is to have, some 16
 * bytes a block. Not thread-safe.
 */
final class PlaneDump {
    private static final int RETAINED_WORDS = 1 << 12;

    private final int slot;
    private static final Set<StorageTier> ALL_TIERS = EnumSet.allOf(StorageTier.class);

    private final long lastNumber;
    private final long lostNumber;
    private final ApplyListener listener;
    private final MessageDecoder decoder = new RouterEventDecoder(ALL_TIERS); // index takes its own
    private final List<KvBatch> batches = new ArrayList<>();
    private KvBatch part;
    private long words;

    /**
     * @param slot that it is for
     * @param lastNumber event after which it is exact
     * @param lostNumber highest number, since the last clear, of an event that its publisher has
     *     missed; 0 for none
     * @param listener notified of what becomes of its parts
     */
    PlaneDump(int slot, long lastNumber, long lostNumber, ApplyListener listener) {
        this.slot = slot;
        this.lastNumber = lastNumber;
        this.lostNumber = lostNumber;
        this.listener = listener;
    }

    long lastNumber() {
        return lastNumber;
    }

    long lostNumber() {
        return lostNumber;
    }

    /** Words of 8 bytes of the parts so far. */
    long words() {
        return words;
    }

    /** A part begins. The first part begins with a clear. */
    void beginPart() {
        part = new KvBatch(RETAINED_WORDS);
        part.reset(slot, lastNumber, CopyRule.LAST_COPY, false, listener);
        if (batches.isEmpty()) {
            part.addCleared();
        }
        batches.add(part);
    }

    /**
     * Adds an event to the part.
     *
     * @return false if it is no store and no removal
     */
    boolean add(byte[] event, int offset, int length) {
        final int before = part.operations();
        decoder.decode(event, offset, length, part);
        return part.operations() == before + 1 && !decoder.lostBlocks();
    }

    /**
     * The part ends.
     *
     * @return false if it clears what came before
     */
    boolean endPart() {
        words += part.capacityWords();
        int clears = batches.size() == 1 ? -1 : 0; // the first part's own
        for (int at = part.first(); at >= 0; at = part.next(at)) {
            clears += part.kind(at) == KvBatch.Kind.CLEARED ? 1 : 0;
        }
        return clears == 0;
    }

    /** All parts; the last one ends at the event after which the dump is exact. */
    List<KvBatch> batches() {
        part.ofMessage(0, lostNumber == 0);
        return batches;
    }
}

package io.kvasir.pipeline.events;

import io.kvasir.pipeline.snapshot.SlotMark;
import io.kvasir.pipeline.source.StreamMemory;

/**
 * What an earlier process has left of a worker slot, in an index that outlives it.
 *
 * @param slot worker slot
 * @param label by which its tenant is known again; empty if it has none
 * @param markOrNull how far the slot is; null if that is not known exactly
 * @param memoryOrNull what the tenant's stream had learned; null if not all of it was kept
 */
@SuppressWarnings("ArrayRecordComponent") // never compared
public record KeptSlot(int slot, byte[] label, SlotMark markOrNull, StreamMemory memoryOrNull) {
    /** Whether the stream of the tenant can go on where the slot is. */
    public boolean isResumable() {
        return label.length > 0 && markOrNull != null && memoryOrNull != null;
    }
}

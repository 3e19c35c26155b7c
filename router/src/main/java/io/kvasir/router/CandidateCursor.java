package io.kvasir.router;

import io.kvasir.core.index.StorageTier;
import io.kvasir.core.load.EngineLoad;
import io.kvasir.core.load.LoadSnapshot;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.policy.Candidate;
import io.kvasir.router.policy.CandidateView;
import io.kvasir.router.policy.RoutingMode;

import java.util.Objects;

/**
 * Shows the candidates of a {@link Selection} to the parts of a policy, one at a time: the same
 * object stands for each. Owned by the selection; reused, one thread at a time.
 */
final class CandidateCursor implements CandidateView, Candidate {
    private final Selection selection;
    private int[] slots = new int[8]; // of the candidates, in order
    private int count;
    private int slot;

    CandidateCursor(Selection selection) {
        this.selection = selection;
    }

    /** Takes the candidates that there are now. */
    void take() {
        final Candidates candidates = selection.candidates();
        if (slots.length < candidates.count()) {
            slots = new int[candidates.workers().slotEnd()];
        }
        count = 0;
        for (int group = 0; group < candidates.groups(); group++) {
            for (long rest = candidates.slots(group); rest != 0; rest &= rest - 1) {
                slots[count++] = group * Long.SIZE + Long.numberOfTrailingZeros(rest);
            }
        }
    }

    /** Slot of the n-th. */
    int slot(int n) {
        return slots[n];
    }

    /** Shows a slot. */
    Candidate at(int candidateSlot) {
        slot = candidateSlot;
        return this;
    }

    @Override
    public int count() {
        return count;
    }

    @Override
    public Candidate candidate(int n) {
        return at(slots[Objects.checkIndex(n, count)]);
    }

    @Override
    public int requestTokens() {
        return selection.requestTokens();
    }

    @Override
    public int requestBlocks() {
        return selection.requestBlocks();
    }

    @Override
    public int blockSize() {
        return selection.blockSize();
    }

    @Override
    public double overlapWeight() {
        return selection.overlapWeight();
    }

    @Override
    public double temperature() {
        return selection.temperature();
    }

    @Override
    public RoutingMode mode() {
        return selection.mode();
    }

    @Override
    public Worker worker() {
        return selection.workers().at(slot);
    }

    @Override
    public int overlapBlocks() {
        return selection.costs().overlap(slot);
    }

    @Override
    public int overlapBlocks(StorageTier tier) {
        return selection.costs().overlap(slot, tier);
    }

    @Override
    public int activePrefixBlocks() {
        return selection.costs().activePrefix(slot);
    }

    @Override
    public IndexState state() {
        return selection.costs().state(slot);
    }

    @Override
    public double credit() {
        return selection.costs().credit(slot);
    }

    @Override
    public double cachedTokens() {
        return selection.cachedTokens(slot);
    }

    @Override
    public double prefillBlocks() {
        return selection.prefillBlocks(slot);
    }

    @Override
    public long decodeBlocks() {
        return selection.decodeBlocks(slot);
    }

    @Override
    public long prefillTokens() {
        return selection.candidates().loads().prefillTokens(slot);
    }

    @Override
    public double remainingPrefillTokens() {
        return selection.remainingPrefillTokens(slot);
    }

    @Override
    public double pace() {
        return selection.pace(slot);
    }

    @Override
    public long activeBlocks() {
        return selection.candidates().loads().activeBlocks(slot);
    }

    @Override
    public long activeRequests() {
        return selection.candidates().loads().activeRequests(slot);
    }

    @Override
    public long engineRunning() {
        return selection.candidates().loads().engineRunning(slot);
    }

    @Override
    public long engineWaiting() {
        return selection.candidates().loads().engineWaiting(slot);
    }

    @Override
    public double engineUsage() {
        final LoadSnapshot loads = selection.candidates().loads();
        return EngineLoad.usage(loads.engineUsedBlocks(slot), loads.engineBlocks(slot));
    }

    @Override
    public long engineBlocks() {
        return selection.candidates().loads().engineBlocks(slot);
    }

    @Override
    public long othersRequests() {
        return selection.candidates().loads().othersRequests(slot);
    }

    @Override
    public long othersBlocks() {
        return selection.candidates().loads().othersBlocks(slot);
    }

    @Override
    public long othersPrefillTokens() {
        return selection.candidates().loads().othersPrefillTokens(slot);
    }
}

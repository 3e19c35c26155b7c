package io.kvasir.router;

import io.kvasir.pipeline.source.EventSource;
import io.kvasir.pipeline.source.ForecastWatch;
import io.kvasir.router.settings.PredictionCheck;

import java.util.function.LongSupplier;
import java.util.function.Supplier;

/**
 * What the cache hits that one worker's engine states say of what is believed of it. Any thread.
 *
 * <p>An engine that had more than was believed is as predicted as far as running requests of the
 * same prefix explain it: their blocks are announced after the decision and are there at admission.
 */
final class EngineHits {
    private final Supplier<RouterRules> rules;
    private final int blockSize;
    private final ForecastWatch ofPredicted;
    private final LastBlockRule lastBlock;

    /**
     * @param rules those that hold now
     * @param blockSize tokens of a block
     * @param clock of the router, in ns
     */
    EngineHits(Supplier<RouterRules> rules, int blockSize, LongSupplier clock) {
        this.rules = rules;
        this.blockSize = blockSize;
        ofPredicted = new ForecastWatch(blockSize, clock);
        lastBlock = new LastBlockRule(blockSize);
    }

    /** Whether the engine computes the last block of each hit anew. */
    boolean lacksLastBlock() {
        return lastBlock.applies();
    }

    /** What is known of a worker without events. */
    ForecastWatch ofPredicted() {
        return ofPredicted;
    }

    /** Ends what was concluded of a worker without events whose engine states nothing any more. */
    void expire() {
        if (ofPredicted.isWrong()) { // else a tick would take the lock of each worker
            ofPredicted.expire();
        }
    }

    double degradedCredit() {
        return rules.get().degradedCredit();
    }

    /**
     * Takes a hit of a worker without events.
     *
     * @return whether {@link #lacksLastBlock} has changed by it
     */
    boolean compare(int believed, int inUse, int stated, boolean alone) {
        final PredictionCheck check = rules.get().predictionCheck();
        if (check == PredictionCheck.OFF) {
            return false;
        }
        expire();
        final int expected = explained(check, believed, believed, inUse, stated);
        final boolean changed = lastBlock.compare(expected, stated);
        if (changed) {
            ofPredicted.forget();
        } else {
            ofPredicted.compare(expected, stated, alone);
        }
        return changed;
    }

    /**
     * Takes a hit of one with events.
     *
     * @return whether {@link #lacksLastBlock} has changed by it
     */
    boolean report(
            EventSource events, int onDevice, int believed, int inUse, int stated, boolean alone) {
        final PredictionCheck check = rules.get().predictionCheck();
        if (check == PredictionCheck.OFF) {
            return false;
        }
        final int expected = explained(check, onDevice, believed, inUse, stated);
        final boolean changed = lastBlock.compare(expected, stated);
        if (changed) {
            events.judgeHitsAnew();
        } else {
            events.reportEngineHit(expected, stated, alone);
        }
        return changed;
    }

    /**
     * What could be believed that explains what the engine had. It need not load what lies below
     * its device.
     */
    private static int explained(
            PredictionCheck check, int onDevice, int believed, int inUse, int stated) {
        if (stated <= believed) {
            return Math.max(onDevice, stated);
        }
        return check == PredictionCheck.OVER ? stated : Math.min(stated, Math.max(believed, inUse));
    }

    /** Whether the engine has computed a whole block that it did not have, and must announce it. */
    boolean hasComputed(int promptTokens, int stated) {
        return (promptTokens - 1) / blockSize - Math.ceilDiv(stated, blockSize) >= 1;
    }
}

package io.kvasir.sim.batch;

import io.kvasir.nixl.engine.Transfer;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntPredicate;

/**
 * Blocks on their way from another engine, layer by layer. Any thread.
 *
 * @param transfer a stage per layer
 * @param end ends with it
 * @param layers how many
 */
record KvMovement(Transfer transfer, CompletableFuture<Transfer> end, int layers) {
    private static final long PAUSE_NS = TimeUnit.MICROSECONDS.toNanos(100);

    /** Lets all layers go. */
    void openAll() {
        transfer.openStages(layers);
    }

    /**
     * Waits for each of some layers and checks it as soon as it is here.
     *
     * @param check whether a layer is as it shall be
     * @return whether all were
     * @throws java.util.concurrent.CompletionException if the transfer failed
     * @throws java.util.concurrent.CancellationException if it was given up
     */
    boolean check(int from, int to, IntPredicate check) {
        boolean good = true;
        for (int layer = from; layer < to; layer++) {
            while (transfer.completedStages() <= layer) {
                if (end.isDone()) {
                    end.join();
                    break;
                }
                LockSupport.parkNanos(PAUSE_NS);
            }
            good &= check.test(layer);
        }
        return good;
    }

    /** Gives it up and waits until nothing of it moves, so that its blocks can be used anew. */
    void stop() {
        transfer.cancel();
        while (!transfer.state().isEnd() && !end.isDone()) {
            LockSupport.parkNanos(PAUSE_NS);
        }
    }
}

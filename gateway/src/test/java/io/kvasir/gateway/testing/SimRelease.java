package io.kvasir.gateway.testing;

import io.kvasir.gateway.disagg.BlockRelease;
import io.kvasir.gateway.disagg.BlockReleaseCounts;
import io.kvasir.protocol.handoff.KvTransferParams;
import io.kvasir.protocol.handoff.MalformedJsonException;
import io.kvasir.router.disagg.PrefillBlocks;
import io.kvasir.sim.SimEngine;

import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;

/** Frees prefills of simulated engines as a notification over NIXL frees those of real ones. */
public final class SimRelease implements BlockRelease {
    private final List<SimEngine> engines;
    private final boolean frees;
    private final LongAdder held = new LongAdder();
    private final LongAdder fetched = new LongAdder();
    private final LongAdder freed = new LongAdder();

    /**
     * Makes one.
     *
     * @param engines whose prefills are freed
     * @param frees false for one that forgets to
     */
    public SimRelease(List<SimEngine> engines, boolean frees) {
        this.engines = engines;
        this.frees = frees;
    }

    @Override
    public PrefillBlocks.Held hold(KvTransferParams params) {
        held.increment();
        final AtomicBoolean ended = new AtomicBoolean();
        return new PrefillBlocks.Held() {
            @Override
            public void fetched() {
                end(ended, fetched);
            }

            @Override
            public void free() {
                if (end(ended, freed) && frees) {
                    Thread.startVirtualThread(() -> notifyEngine(params));
                }
            }
        };
    }

    private static boolean end(AtomicBoolean ended, LongAdder how) {
        if (!ended.compareAndSet(false, true)) {
            return false;
        }
        how.increment();
        return true;
    }

    private void notifyEngine(KvTransferParams params) {
        final String engineId;
        final String requestId;
        try {
            engineId = params.remoteEngineId().orElse("");
            requestId = params.remoteRequestId().orElse("");
        } catch (MalformedJsonException e) {
            return; // its lease ends it
        }
        engines.stream()
                .filter(engine -> engine.engineId(0).equals(engineId))
                .forEach(engine -> engine.notifyFreed(requestId));
    }

    @Override
    public BlockReleaseCounts counts() {
        final long ended = fetched.sum() + freed.sum();
        return new BlockReleaseCounts(held.sum() - ended, fetched.sum(), freed.sum(), Map.of(), 0);
    }

    @Override
    public void close() {}
}

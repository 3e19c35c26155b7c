package io.kvasir.gateway.disagg;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.protocol.handoff.KvTransferParams;
import io.kvasir.router.disagg.PrefillBlocks;

/**
 * Frees KV blocks that a prefill engine holds for a decode that may never come. Thread-safe;
 * nothing here but {@link #close} blocks the caller.
 */
public interface BlockRelease extends AutoCloseable {
    /**
     * Watches a finished prefill: keeps its lease alive until its blocks are fetched or freed.
     *
     * <p>To be freed only when no decode worker reads or will read them: what an engine frees it
     * gives to other prompts at once, and a decode engine that reads it then answers wrongly
     * without a word. Blocks that are fetched twice over or freed after they were fetched cost a
     * line in the engine's log, no more.
     *
     * @param params what the prefill worker answered; any object, also one that cannot be
     *     understood
     * @return to be ended by one of its methods; the first call counts, others do nothing
     */
    PrefillBlocks.Held hold(KvTransferParams params);

    /**
     * What has become of prefills so far.
     *
     * @return of one moment
     */
    BlockReleaseCounts counts();

    /**
     * Notifies engines of what is to be freed, within a bounded time. What then is left, and what
     * is neither fetched nor to be freed, the engines' leases end. Idempotent.
     */
    @Override
    void close();

    /**
     * Makes one that opens with its first prefill what is best here, and says in the log which that
     * is: nothing is loaded before.
     *
     * @param config {@link GatewaySettings#NIXL_LIBRARY} and {@link GatewaySettings#PREFILL_LEASE}
     * @return to be closed
     */
    static BlockRelease open(GatewayConfig config) {
        return new LazyBlockRelease(
                () -> ReleaseChoice.open(config),
                config.get(GatewaySettings.PREFILL_LEASE).toNanos());
    }
}

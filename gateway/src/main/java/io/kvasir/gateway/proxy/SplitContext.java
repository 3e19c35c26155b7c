package io.kvasir.gateway.proxy;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.disagg.BlockRelease;
import io.kvasir.router.disagg.Deadlines;
import io.kvasir.router.disagg.SplitFlow;
import io.kvasir.router.disagg.SplitPolicy;
import io.kvasir.router.disagg.TransferCosts;

import org.eclipse.jetty.client.HttpClient;
import org.eclipse.jetty.util.thread.Scheduler;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.concurrent.TimeUnit;

/**
 * What the split requests of one model share.
 *
 * @param config of the model
 * @param policy when requests are split
 * @param transfers what the way of the blocks counts
 * @param deadlines time; actions run on the client's executor
 * @param release frees blocks of prefills whose decode never comes
 */
public record SplitContext(
        GatewayConfig config,
        SplitPolicy policy,
        TransferCosts transfers,
        Deadlines deadlines,
        BlockRelease release) {
    private static final Logger LOG = LoggerFactory.getLogger(SplitContext.class);

    /** Makes that of a configuration. */
    public static SplitContext of(GatewayConfig config, HttpClient client, BlockRelease release) {
        final TransferCosts transfers =
                new TransferCosts(config.get(GatewaySettings.TRANSFER_COSTS));
        return new SplitContext(
                config,
                new SplitPolicy(limits(config), transfers.distances()),
                transfers,
                (delayNs, action) -> after(client, delayNs, action),
                release);
    }

    private static SplitPolicy.Limits limits(GatewayConfig config) {
        return new SplitPolicy.Limits(
                config.get(GatewaySettings.SPLIT_MODE),
                config.get(GatewaySettings.SPLIT_MIN_TOKENS),
                config.get(GatewaySettings.SPLIT_MIN_RATIO),
                config.get(GatewaySettings.SPLIT_MAX_QUEUE),
                config.get(GatewaySettings.SPLIT_HARM_WEIGHT));
    }

    /** The configuration has other values. */
    public void settingsChanged() {
        policy.limits(limits(config));
    }

    /** What holds for a request that begins now. */
    SplitFlow.Rules rules() {
        return new SplitFlow.Rules(
                config.get(GatewaySettings.SPLIT_FALLBACK),
                config.get(GatewaySettings.PREFILL_ATTEMPTS),
                config.get(GatewaySettings.PREFILL_TIMEOUT).toNanos());
    }

    private static Runnable after(HttpClient client, long delayNs, Runnable action) {
        final Scheduler.Task task =
                client.getScheduler()
                        .schedule(
                                () -> client.getExecutor().execute(() -> logged(action)),
                                delayNs,
                                TimeUnit.NANOSECONDS);
        return task::cancel;
    }

    private static void logged(Runnable action) {
        try {
            action.run();
        } catch (RuntimeException e) {
            LOG.error("a deadline of a split request failed", e);
        }
    }
}

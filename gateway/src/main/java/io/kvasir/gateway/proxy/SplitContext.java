package io.kvasir.gateway.proxy;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.disagg.BlockRelease;
import io.kvasir.router.disagg.Deadlines;
import io.kvasir.router.disagg.SplitFlow;
import io.kvasir.router.disagg.SplitPolicy;
import io.kvasir.router.disagg.TransferCosts;
import io.kvasir.router.settings.Settings;

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
                new SplitPolicy(limits(config.settings()), transfers.distances()),
                transfers,
                (delayNs, action) -> after(client, delayNs, action),
                release);
    }

    private static SplitPolicy.Limits limits(Settings settings) {
        return new SplitPolicy.Limits(
                settings.get(GatewaySettings.SPLIT_MODE),
                settings.get(GatewaySettings.SPLIT_MIN_TOKENS),
                settings.get(GatewaySettings.SPLIT_MIN_RATIO),
                settings.get(GatewaySettings.SPLIT_MAX_QUEUE),
                settings.get(GatewaySettings.SPLIT_HARM_WEIGHT));
    }

    /** The configuration has other values. */
    public void settingsChanged() {
        policy.limits(limits(config.settings()));
    }

    /** What one version of the settings says of a request. */
    static SplitFlow.Rules rules(Settings settings) {
        return new SplitFlow.Rules(
                settings.get(GatewaySettings.SPLIT_FALLBACK),
                settings.get(GatewaySettings.PREFILL_ATTEMPTS),
                settings.get(GatewaySettings.PREFILL_TIMEOUT).toNanos());
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

package io.kvasir.gateway;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.proxy.ProxyContext;
import io.kvasir.gateway.routing.PromptReader;
import io.kvasir.gateway.upstream.HealthProbe;
import io.kvasir.gateway.upstream.LoadPoll;
import io.kvasir.gateway.upstream.PoolRouters;
import io.kvasir.gateway.upstream.Upstream;
import io.kvasir.gateway.upstream.UpstreamRegistry;

/**
 * One of the models that a gateway serves, with all that is its own.
 *
 * @param config what holds for it
 * @param routers of its pools
 * @param registry its workers
 * @param prompts reads what requests for it ask to compute
 * @param probe asks its workers whether they are there
 * @param loads asks its workers how loaded they are
 * @param context what exchanges with its workers share
 */
record ServedModel(
        GatewayConfig config,
        PoolRouters routers,
        UpstreamRegistry registry,
        PromptReader prompts,
        HealthProbe probe,
        LoadPoll loads,
        ProxyContext context) {
    /**
     * Takes changes of settings.
     *
     * @param index of the model in {@link GatewayConfig#models}
     */
    SettingsTaker taker(int index) {
        return new SettingsTaker() {
            @Override
            public void check(GatewayConfig wanted) {
                routers.checkChange(wanted.models().get(index));
            }

            @Override
            public void take(long version) {
                routers.settingsChanged(version);
                registry.settingsChanged();
                context.split().settingsChanged();
            }
        };
    }

    /** Its name, unique among those of the gateway. */
    String name() {
        return config.get(GatewaySettings.MODEL);
    }

    /**
     * Begins to ask one of its workers.
     *
     * @return what ends it
     */
    Runnable watch(Upstream upstream) {
        final Runnable endProbe = probe.watch(upstream);
        final Runnable endLoads = loads.watch(upstream);
        return () -> {
            endProbe.run();
            endLoads.run();
        };
    }
}

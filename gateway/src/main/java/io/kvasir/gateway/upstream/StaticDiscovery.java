package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;

import java.util.List;

/** The workers of flags, environment and configuration file: they never change by themselves. */
public final class StaticDiscovery implements Discovery {
    private final List<DiscoveredWorker> workers;

    /** Takes the workers of a configuration. */
    public StaticDiscovery(GatewayConfig config) {
        workers =
                config.get(GatewaySettings.WORKERS).stream()
                        .map(w -> DiscoveredWorker.of(config.get(GatewaySettings.MODEL), w))
                        .toList();
    }

    @Override
    public String source() {
        return "static";
    }

    @Override
    public void start(Listener listener) {
        listener.view(workers);
    }

    @Override
    public void reload() {
        // nothing to look at
    }

    @Override
    public void close() {
        // nothing runs
    }
}

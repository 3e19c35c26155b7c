package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;

import java.util.List;

class StaticDiscoveryTest extends DiscoveryContract {
    @Override
    protected Discovery started(Discovery.Listener listener, List<DiscoveredWorker> workers) {
        final GatewayConfig.Builder config =
                GatewayConfig.builder().set(GatewaySettings.MODEL, MODEL);
        workers.forEach(w -> config.worker(w.worker()));
        final Discovery discovery = new StaticDiscovery(config.build());
        discovery.start(listener);
        return discovery;
    }
}

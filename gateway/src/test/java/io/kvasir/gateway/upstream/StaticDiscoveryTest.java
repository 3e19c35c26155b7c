package io.kvasir.gateway.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.ModelConfig;
import io.kvasir.gateway.config.WorkerConfig;

import org.junit.jupiter.api.Test;

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

    @Test
    void aWorkerIsOfTheFirstModelUnlessItSaysAnother() {
        final GatewayConfig config =
                GatewayConfig.builder()
                        .set(GatewaySettings.MODEL, MODEL)
                        .set(GatewaySettings.MODELS, List.of(ModelConfig.parse("name=n")))
                        .worker(WorkerConfig.parse("http://h:1,name=a"))
                        .worker(WorkerConfig.parse("http://h:2,name=b,model=n"))
                        .worker(WorkerConfig.parse("http://h:3,name=c,model=" + MODEL))
                        .build();
        new StaticDiscovery(config).start(known);
        assertEquals(
                List.of(MODEL, "n", MODEL),
                known.all().stream().map(DiscoveredWorker::model).toList());
    }
}

package io.kvasir.gateway.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.openai.InferenceRequest;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.upstream.Discovery;
import io.kvasir.gateway.upstream.Fleet;
import io.kvasir.gateway.upstream.PoolRouters;
import io.kvasir.gateway.upstream.Upstream;
import io.kvasir.gateway.upstream.UpstreamRegistry;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Allocations;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.List;
import java.util.stream.IntStream;

/** The series of workers that leave, many at once. */
class LeavingWorkersTest {
    private static final int WORKERS = 2_000;

    private final GatewayConfig config =
            Gateways.config().set(RouterSettings.MAX_WORKERS, WORKERS).build();
    private final PoolRouters routers = new PoolRouters(config);
    private final Fleet fleet = new Fleet(List.of(new UpstreamRegistry(config, routers)));
    private final Discovery.Listener source = fleet.listener("test");
    private final GatewayMetrics metrics = new GatewayMetrics();

    @AfterEach
    void close() {
        routers.close();
    }

    private static List<DiscoveredWorker> workers(int count) {
        return IntStream.range(0, count)
                .mapToObj(
                        i -> DiscoveredWorker.of("m", WorkerConfig.parse("http://h:1,name=w" + i)))
                .toList();
    }

    /** Of all that are there. */
    private void record() {
        for (Upstream upstream : fleet.upstreams()) {
            metrics.attempt(upstream.name(), "ok");
            metrics.firstToken(upstream, InferenceRequest.Route.CHAT, 1);
        }
    }

    private boolean hasSeries(String worker) throws IOException {
        return metrics.page(null).text().contains("worker=\"" + worker + "\"");
    }

    @Test
    void oneThatLeavesLooksThroughNoSeriesOfAllOthers() throws Exception {
        metrics.watch(fleet);
        source.view(workers(WORKERS));
        record();
        assertTrue(hasSeries("w1999"));
        final List<DiscoveredWorker> left = workers(1);
        final long bytes = Allocations.bytesOf(() -> source.view(left));
        assertEquals(1, fleet.upstreams().size());
        // what lists and sets of all workers take, a few times eight bytes each
        final long most = 100L * WORKERS * WORKERS;
        assertTrue(bytes <= most, bytes + " bytes, more than " + most);
        assertTrue(hasSeries("w0"));
        assertFalse(hasSeries("w1999"));
    }
}

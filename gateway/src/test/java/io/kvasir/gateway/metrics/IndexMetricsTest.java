package io.kvasir.gateway.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.upstream.Fleet;
import io.kvasir.gateway.upstream.PoolRouters;
import io.kvasir.gateway.upstream.StaticDiscovery;
import io.kvasir.gateway.upstream.UpstreamRegistry;
import io.kvasir.gateway.upstream.WorkerPool;
import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.SourceConfig;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot.GaugeDataPointSnapshot;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.List;

/** How well the index of a worker is, as one page says it. */
class IndexMetricsTest {
    private final GatewayConfig config =
            Gateways.config(WorkerConfig.parse("http://h:1,name=w")).build();
    private final PoolRouters routers = new PoolRouters(config);
    private final MetricRegistry page = new MetricRegistry();

    @AfterEach
    void close() {
        routers.close();
    }

    private List<GaugeDataPointSnapshot> points(String name) {
        return page.prometheus().scrape().stream()
                .filter(family -> family.getMetadata().getName().equals(name))
                .flatMap(family -> ((GaugeSnapshot) family).getDataPoints().stream())
                .filter(point -> point.getValue() > 0)
                .toList();
    }

    @Test
    void stateCauseAndCreditOfAPageAreOfOneMoment() {
        final UpstreamRegistry registry = new UpstreamRegistry(config, routers);
        final Fleet fleet = new Fleet(List.of(registry));
        new StaticDiscovery(config).start(fleet.listener("static"));
        final EngineStream stream =
                routers.main()
                        .openDirect(
                                registry.workers(WorkerPool.MAIN).getFirst(),
                                SourceConfig.of("w", 0, 16, "tcp://127.0.0.1:1"));
        final ModelPoints models = new ModelPoints(1);
        new WorkerMetrics(page, models);

        models.take(FleetSnapshot.of(fleet));
        stream.close(); // while the page is written
        assertIndex("loading", "not-loaded", 0.5);
        models.take(FleetSnapshot.of(fleet));
        assertEquals(List.of(), points("kvasir_worker_index_credit"));
        assertIndex("gone", "closed");
    }

    private void assertIndex(String state, String cause, double credit) {
        assertIndex(state, cause);
        assertEquals(credit, points("kvasir_worker_index_credit").getFirst().getValue());
    }

    private void assertIndex(String state, String cause) {
        final List<GaugeDataPointSnapshot> states = points("kvasir_worker_index_state");
        assertEquals(1, states.size());
        assertEquals(state, states.getFirst().getLabels().get("state"));
        final List<GaugeDataPointSnapshot> causes = points("kvasir_worker_index_cause");
        assertEquals(1, causes.size());
        assertEquals(cause, causes.getFirst().getLabels().get("cause"));
    }
}

package io.kvasir.gateway.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.KvRouter;
import io.kvasir.router.Worker;
import io.kvasir.router.WorkerSpec;
import io.kvasir.testsupport.Allocations;
import io.prometheus.metrics.core.datapoints.DistributionDataPoint;
import io.prometheus.metrics.core.metrics.Histogram;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.List;

/** What is counted by model: bounded by models, and for nothing where tokens come. */
class ModelMetricsTest {
    private final KvRouter router = KvRouter.builder().build();
    private final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "http://w"));
    private final GatewayMetrics page = new GatewayMetrics();
    private final ModelMetrics metrics = page.byModel();

    @AfterEach
    void close() {
        router.close();
    }

    /** What the library allocates by itself where its calls are not optimised away. */
    private static long bytesOfObservations(int count) {
        final DistributionDataPoint times =
                Histogram.builder()
                        .name("times")
                        .labelNames("model")
                        .classicOnly()
                        .build()
                        .labelValues("m");
        return Allocations.bytesPerRound(
                20_000,
                () -> {
                    for (int i = 0; i < count; i++) {
                        times.observe(0.005);
                    }
                });
    }

    @Test
    void aTokenAllocatesNothing() {
        assertEquals(
                bytesOfObservations(1),
                Allocations.bytesPerRound(
                        20_000, () -> metrics.nextTokens("m", worker, 1, 5_000_000)));
    }

    @Test
    void aRequestsOwnNumbersAllocateNothing() {
        assertEquals(
                bytesOfObservations(4),
                Allocations.bytesPerRound(
                        20_000,
                        () -> {
                            metrics.started("m");
                            metrics.firstToken("m", worker, 100, 5_000_000);
                            metrics.answered("m", 100, 20);
                            metrics.stated("m", 64);
                            metrics.generated("m", 20);
                            metrics.over("m");
                        }));
    }

    @Test
    void tokensThatCameTogetherShareTheTime() throws IOException {
        metrics.nextTokens("m", worker, 4, 400_000_000);
        final String text = page.page(null).text();
        assertTrue(text.contains("kvasir_inter_token_seconds_count{model=\"m\"} 4"), text);
        assertTrue(
                text.contains("kvasir_inter_token_seconds_bucket{model=\"m\",le=\"0.1\"} 4"), text);
        assertTrue(
                text.contains("kvasir_inter_token_seconds_bucket{model=\"m\",le=\"0.075\"} 0"),
                text);
        assertTrue(
                text.contains("dynamo_frontend_inter_token_latency_seconds_count{model=\"m\"} 4"),
                text);
    }

    @Test
    void aChoiceIsSeenBesideTheOneByCachedBlocksAlone() throws IOException {
        metrics.routed("m", new ModelMetrics.Choice(160, 144, 144, false, 16));
        metrics.routed("m", new ModelMetrics.Choice(160, 144, 48, false, 16));
        metrics.routed("m", new ModelMetrics.Choice(160, 32, 0, true, 16));
        metrics.routed("m", new ModelMetrics.Choice(0, 0, 0, false, 16));
        final String text = page.page(null).text();
        for (String line :
                List.of(
                        "dynamo_component_router_kv_best_eligible_cached_prefix_tokens_total{model=\"m\",phase=\"decode\"}"
                            + " 288.0",
                        "dynamo_component_router_kv_selected_cached_prefix_tokens_total{model=\"m\",phase=\"decode\"}"
                            + " 192.0",
                        "dynamo_component_router_non_max_overlap_selections_total{worker_type=\"decode\"}"
                            + " 1.0",
                        "dynamo_component_router_non_max_overlap_selections_total{worker_type=\"prefill\"}"
                            + " 1.0",
                        "dynamo_component_router_overlap_blocks_lost_sum{worker_type=\"decode\"}"
                                + " 6.0",
                        "dynamo_component_router_overlap_blocks_lost_sum{worker_type=\"prefill\"}"
                                + " 2.0")) {
            assertTrue(text.contains("\n" + line), line + " in " + text);
        }
    }

    /** Ten thousand workers have no series of a histogram each. */
    @Test
    void seriesAreAsManyAsModels() throws IOException {
        try (KvRouter many = KvRouter.builder().maxWorkers(10_000).build()) {
            for (int i = 0; i < 10_000; i++) {
                final Worker each = many.addWorker(WorkerSpec.of(i, "w" + i, "http://w" + i));
                metrics.firstToken("m", each, 10, 1_000_000);
                metrics.nextTokens("m", each, 1, 1_000_000);
            }
            final long lines = page.page(null).text().lines().count();
            metrics.firstToken("m", worker, 10, 1_000_000);
            assertEquals(lines, page.page(null).text().lines().count());
            assertTrue(lines < 1_000, lines + " lines");
            metrics.forgetAllBut(List.of());
        }
    }
}

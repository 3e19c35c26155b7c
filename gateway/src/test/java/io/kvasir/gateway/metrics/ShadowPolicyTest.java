package io.kvasir.gateway.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.upstream.Fleet;
import io.kvasir.gateway.upstream.PoolRouters;
import io.kvasir.gateway.upstream.StaticDiscovery;
import io.kvasir.gateway.upstream.UpstreamRegistry;
import io.kvasir.router.Decision;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Lease;
import io.kvasir.router.RouteException;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

class ShadowPolicyTest {
    private static final int KEPT = 8;

    private final List<Lease> leases = new ArrayList<>(); // a forgotten one would be released

    private static GatewayConfig.Builder config() {
        return Gateways.config(
                        WorkerConfig.parse("http://h:1,name=one"),
                        WorkerConfig.parse("http://h:2,name=other"))
                .set(RouterSettings.APPROXIMATE, true)
                .set(RouterSettings.MODE, RoutingMode.ROUND_ROBIN)
                .set(RouterSettings.DECISION_JOURNAL, KEPT)
                .set(GatewaySettings.SHADOW_OVERLAP_WEIGHT, 100.0);
    }

    /** Sends the same prompt to both workers in turn. */
    private void reserve(KvRouter router, int requests) throws RouteException {
        final int[] prompt = new int[65];
        final Decision decision = new Decision();
        for (int i = 0; i < requests; i++) {
            final Lease lease =
                    router.reserve(router.newRequest().tokens(prompt, prompt.length), decision);
            leases.add(lease);
            while (router.bookingPipeline().backlog() > 0) {
                Thread.onSpinWait();
            }
        }
    }

    @Test
    void itIsJudgedByEachDecisionOnceAndCountsThoseThatItMissed()
            throws RouteException, IOException {
        try (PoolRouters routers = new PoolRouters(config().build())) {
            final UpstreamRegistry registry = new UpstreamRegistry(config().build(), routers);
            final Fleet fleet = new Fleet(List.of(registry));
            new StaticDiscovery(config().build()).start(fleet.listener("static"));
            final GatewayMetrics metrics = new GatewayMetrics();
            metrics.watch(fleet);
            assertCounted(metrics, 0, 0);
            reserve(routers.main(), 5);
            assertCounted(metrics, 5, 0);
            assertCounted(metrics, 5, 0);
            reserve(routers.main(), KEPT + 3);
            assertCounted(metrics, 5 + KEPT, 3);
            final String page = metrics.page(null).text();
            assertTrue(page.contains("kvasir_shadow_cached_tokens_total{policy=\"shadow\"}"), page);
            leases.forEach(Lease::close);
        }
    }

    private static void assertCounted(GatewayMetrics metrics, int decisions, int missed)
            throws IOException {
        final String page = metrics.page(null).text();
        assertTrue(page.contains("kvasir_shadow_decisions_total " + decisions + ".0\n"), page);
        assertTrue(page.contains("kvasir_shadow_missed_total " + missed + ".0\n"), page);
    }

    @Test
    void withoutAWeightOrAJournalThereIsNone() throws IOException {
        for (GatewayConfig none :
                List.of(
                        config().set(GatewaySettings.SHADOW_OVERLAP_WEIGHT, -1.0).build(),
                        config().set(RouterSettings.DECISION_JOURNAL, 0).build())) {
            try (PoolRouters routers = new PoolRouters(none)) {
                final GatewayMetrics metrics = new GatewayMetrics();
                metrics.watch(new Fleet(List.of(new UpstreamRegistry(none, routers))));
                assertEquals(-1, metrics.page(null).text().indexOf("kvasir_shadow"));
            }
        }
    }
}

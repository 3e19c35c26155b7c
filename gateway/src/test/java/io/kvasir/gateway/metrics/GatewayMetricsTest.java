package io.kvasir.gateway.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.disagg.BlockRelease;
import io.kvasir.gateway.disagg.LeaseReason;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.trace.Tracing;
import io.kvasir.gateway.upstream.Fleet;
import io.kvasir.gateway.upstream.PoolRouters;
import io.kvasir.gateway.upstream.StaticDiscovery;
import io.kvasir.gateway.upstream.UpstreamRegistry;
import io.kvasir.gateway.upstream.WorkerPool;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.prompt.memo.PromptMemoCounts;
import io.kvasir.protocol.handoff.KvTransferParams;
import io.kvasir.protocol.handoff.VerbatimJson;
import io.kvasir.router.settings.RouterSettings;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.snakeyaml.engine.v2.api.Load;
import org.snakeyaml.engine.v2.api.LoadSettings;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Pattern;

class GatewayMetricsTest {
    private static final Path DOCS = Path.of(System.getProperty("kvasir.root"), "docs/operations");
    private static final Pattern METRIC =
            Pattern.compile("\\b(?:kvasir_|dynamo_|router_kv_)[a-z_]+");

    private final GatewayConfig config =
            Gateways.config(
                            WorkerConfig.parse("http://h:1,name=plain"),
                            WorkerConfig.parse("http://h:2,name=other"))
                    .set(RouterSettings.APPROXIMATE, true)
                    .set(GatewaySettings.SHADOW_OVERLAP_WEIGHT, 2.0)
                    .build();
    private final PoolRouters routers = new PoolRouters(config);
    private final BlockRelease release = BlockRelease.open(config);
    private final GatewayMetrics metrics = new GatewayMetrics();

    GatewayMetricsTest() {
        final UpstreamRegistry registry = new UpstreamRegistry(config, routers);
        final Fleet fleet = new Fleet(List.of(registry));
        new StaticDiscovery(config).start(fleet.listener("static"));
        routers.main()
                .openDirect(
                        registry.workers(WorkerPool.MAIN).getLast(),
                        SourceConfig.of("other", 0, 16, "tcp://127.0.0.1:1"));
        metrics.watch(new SettingsCounts());
        metrics.watch(fleet);
        metrics.watch(() -> new GatewayActivity(0, 0, 0, 0, 0, 0, 0, 0, 0));
        metrics.watch(release);
        metrics.watch(new Tracing(config).counts());
        metrics.watchMemo(() -> new PromptMemoCounts(3, 2, 1, 0));
    }

    @AfterEach
    void close() {
        release.close();
        routers.close();
    }

    private String page() throws IOException {
        return metrics.page(null).text();
    }

    @Test
    void theProcessAndTheBuildAreShownByTheirUsualNames() throws IOException {
        final String page = page();
        for (String name :
                List.of(
                        "kvasir_build_info{version=",
                        "process_cpu_seconds_total",
                        "process_resident_memory_bytes",
                        "process_open_fds",
                        "process_start_time_seconds",
                        "jvm_runtime_info{",
                        "jvm_gc_collection_seconds_count{",
                        "jvm_memory_used_bytes{",
                        "jvm_threads_current ",
                        "jvm_threads_daemon ",
                        "jvm_threads_peak ",
                        "jvm_threads_started_total ",
                        "jvm_threads_state{state=\"RUNNABLE\"} ",
                        "jvm_buffer_pool_used_bytes{")) {
            assertTrue(page.contains("\n" + name), name);
        }
    }

    @Test
    void noThreadIsStoppedToLookForDeadlocks() throws IOException {
        assertFalse(page().contains("jvm_threads_deadlocked"));
    }

    @Test
    void theFormatIsTheOneThatTheReaderAccepts() throws IOException {
        final GatewayMetrics.Page open =
                metrics.page(
                        "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5");
        assertTrue(open.contentType().startsWith("application/openmetrics-text"), "" + open);
        assertTrue(open.text().endsWith("# EOF\n"));
        final String nativeHistograms =
                "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily"
                        + ";encoding=delimited;q=0.7,";
        final String rest = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.5";
        assertEquals(open.contentType(), metrics.page(nativeHistograms + rest).contentType());
        assertTrue(metrics.page(nativeHistograms).contentType().startsWith("text/plain"));
        for (String accept :
                new String[] {null, "", "*/*", "text/plain", "image/png", "\u0000;;"}) {
            assertTrue(metrics.page(accept).contentType().startsWith("text/plain"), accept);
        }
    }

    @Test
    void everyLimitIsShownWithWhatIsUsed() throws IOException {
        final String page = page();
        for (String resource :
                List.of(
                        "index-blocks",
                        "index-held-blocks",
                        "index-bytes",
                        "host-index-blocks",
                        "disk-index-held-blocks",
                        "event-ring",
                        "booking-ring",
                        "active-requests")) {
            assertTrue(page.contains("kvasir_resource_used{resource=\"" + resource), resource);
            assertTrue(page.contains("kvasir_resource_limit{resource=\"" + resource), resource);
        }
        assertTrue(page.contains("kvasir_resource_limit{resource=\"index-blocks\"} 4096"), page);
        assertTrue(page.contains("kvasir_refused_total{cause=\"index-full\"} 0.0"), page);
        assertTrue(
                page.contains(
                        "kvasir_events_refused_total{cause=\"unknown-parent\",dp_rank=\"0\",worker="
                                + "\"other\"}"),
                page);
    }

    @Test
    void eventsThatAreNotInTheIndexYetAreShownByWhereTheyWait() throws IOException {
        final String page = page();
        for (String where : List.of("replay", "ring")) {
            assertTrue(
                    page.contains(
                            "kvasir_worker_event_lag{dp_rank=\"0\",waiting=\""
                                    + where
                                    + "\",worker=\"other\"} 0.0"),
                    page);
        }
    }

    @Test
    void theAgeOfEventsIsAbsentBeforeTheFirst() throws IOException {
        assertFalse(page().contains("kvasir_worker_event_age_seconds{"), page());
        assertFalse(page().contains("NaN"), page());
    }

    @Test
    void prefillsAreShownWithWhatBecameOfThem() throws IOException {
        release.hold(new KvTransferParams(VerbatimJson.parse("{}"))).free();
        final long startNs = System.nanoTime();
        while (release.counts().left().get(LeaseReason.NO_LIBRARY)
                == 0) { // it is opened with the first prefill
            assertTrue(System.nanoTime() - startNs < TimeUnit.MINUTES.toNanos(1));
            LockSupport.parkNanos(1_000_000);
        }
        final String page = page();
        assertTrue(page.contains("kvasir_prefills_held 1.0"), page);
        assertTrue(page.contains("kvasir_prefills_left_total{reason=\"no-library\"} 1.0"), page);
        assertTrue(page.contains("kvasir_prefills_left_total{reason=\"too-many\"} 0.0"), page);
    }

    @Test
    void aClosedRouterStillHasAPage() throws IOException {
        routers.close();
        assertTrue(page().contains("kvasir_resource_used"));
    }

    @Test
    void everyAlertIsOnMetricsThatExistAndSaysWhatItMeans() throws IOException {
        final Object root =
                new Load(LoadSettings.builder().build())
                        .loadFromString(Files.readString(DOCS.resolve("alerts.yaml")));
        int rules = 0;
        for (Map<?, ?> group : maps(((Map<?, ?>) root).get("groups"))) {
            for (Map<?, ?> rule : maps(group.get("rules"))) {
                rules++;
                final String expression = (String) rule.get("expr");
                final Set<String> used = metricsIn(expression);
                assertFalse(used.isEmpty(), expression);
                assertTrue(metrics.names().containsAll(used), expression);
                assertFalse(
                        ((Map<?, ?>) rule.get("annotations")).get("summary").toString().isBlank());
            }
        }
        assertTrue(rules > 10, rules + " rules");
    }

    @Test
    void thePageOfMetricsNamesEveryOne() throws IOException {
        final Set<String> documented = metricsIn(Files.readString(DOCS.resolve("metrics.md")));
        documented.removeIf(name -> name.endsWith("_"));
        assertEquals(new TreeSet<>(metrics.names()), documented);
    }

    @Test
    void eachPanelOfTheDashboardAsksForMetricsThatAreThere() throws IOException {
        final Dashboard dashboard = Dashboard.read();
        assertEquals(
                List.of(
                        "Traffic, time to first token, time between tokens",
                        "Routing decisions and cache hits",
                        "Workers: load and balance",
                        "Index truth",
                        "Queue and refusals",
                        "Split requests",
                        "Events and state"),
                dashboard.rows());
        for (Dashboard.Panel panel : dashboard.panels()) {
            assertFalse(panel.description().isBlank(), panel.title());
            assertFalse(panel.expressions().isEmpty(), panel.title());
            for (String expression : panel.expressions()) {
                final Set<String> asked = metricsIn(expression);
                assertFalse(asked.isEmpty(), expression);
                for (String name : asked) {
                    assertTrue(
                            metrics.names().contains(name)
                                    || metrics.names()
                                            .contains(name.replaceAll("_(bucket|count|sum)$", "")),
                            panel.title() + " asks for " + name);
                }
            }
        }
        for (String query : dashboard.variables()) {
            assertTrue(metrics.names().containsAll(metricsIn(query)), query);
        }
    }

    @Test
    void eachAlertHasATestThatFiresItAndSeesItStop() throws IOException {
        final Map<?, ?> tests;
        try (InputStream page = GatewayMetricsTest.class.getResourceAsStream("/alerts_test.yaml")) {
            tests = (Map<?, ?>) new Load(LoadSettings.builder().build()).loadFromInputStream(page);
        }
        final Set<String> tested = new TreeSet<>();
        for (Map<?, ?> test : maps(tests.get("tests"))) {
            final List<Boolean> fires = new ArrayList<>();
            for (Map<?, ?> at : maps(test.get("alert_rule_test"))) {
                assertEquals(test.get("name"), at.get("alertname"));
                fires.add(!((List<?>) at.get("exp_alerts")).isEmpty());
            }
            assertEquals(List.of(false, true, false), fires, test.get("name").toString());
            assertTrue(tested.add(test.get("name").toString()), "twice: " + test.get("name"));
            for (Map<?, ?> given : maps(test.get("input_series"))) {
                final Set<String> used = metricsIn(given.get("series").toString());
                assertTrue(metrics.names().containsAll(used), used.toString());
            }
        }
        assertEquals(alerts(), tested);
    }

    private static Set<String> alerts() throws IOException {
        return expressions().keySet();
    }

    /** Expressions of the alerts by their names. */
    private static Map<String, String> expressions() throws IOException {
        final Map<?, ?> root =
                (Map<?, ?>)
                        new Load(LoadSettings.builder().build())
                                .loadFromString(Files.readString(DOCS.resolve("alerts.yaml")));
        final Map<String, String> expressions = new TreeMap<>();
        for (Map<?, ?> group : maps(root.get("groups"))) {
            for (Map<?, ?> rule : maps(group.get("rules"))) {
                expressions.put(rule.get("alert").toString(), rule.get("expr").toString());
            }
        }
        return expressions;
    }

    @Test
    void theAlertOfMissingEventsIsOnTheCausesThatTheTableGivesIt() throws IOException {
        final Set<String> causes = new TreeSet<>();
        for (String line : Files.readAllLines(DOCS.resolve("index-truth.md"))) {
            if (line.startsWith("| `") && line.contains("| KvasirIndexDegraded |")) {
                causes.add(line.split("`", -1)[1]);
            }
        }
        assertFalse(causes.isEmpty());
        final String expression = expressions().get("KvasirIndexDegraded");
        assertTrue(
                expression.contains("{cause=~\"" + String.join("|", causes) + "\"}"), expression);
    }

    @Test
    void eachCauseOfAnIndexThatIsNotExactHasAMetricAndMostAnAlert() throws IOException {
        int without = 0;
        for (String line : Files.readAllLines(DOCS.resolve("index-truth.md"))) {
            if (line.startsWith("| `")) {
                final String[] cells = line.split(" *\\| *", -1);
                assertTrue(metrics.names().containsAll(metricsIn(cells[6])), cells[6]);
                assertFalse(metricsIn(cells[6]).isEmpty(), line);
                if (cells[7].equals("–")) {
                    without++;
                } else {
                    assertTrue(alerts().contains(cells[7]), cells[7]);
                }
            }
        }
        assertEquals(3, without); // removed, without events, exact
    }

    @Test
    void eachCauseIsShownWhileItHolds() throws IOException {
        final String page = page();
        assertTrue(
                page.contains(
                        "kvasir_worker_index_cause{cause=\"no-events\",dp_rank=\"0\",worker="
                                + "\"plain\"} 1.0"),
                page);
        assertTrue(
                page.contains(
                        "kvasir_worker_index_cause{cause=\"not-loaded\",dp_rank=\"0\",worker="
                                + "\"other\"} 1.0"),
                page);
        assertTrue(
                page.contains("kvasir_worker_index_credit{dp_rank=\"0\",worker=\"plain\"} 1.0"),
                page);
        assertTrue(
                page.contains("kvasir_worker_index_credit{dp_rank=\"0\",worker=\"other\"} 0.5"),
                page);
    }

    private static Set<String> metricsIn(String text) {
        final Set<String> names = new TreeSet<>();
        METRIC.matcher(text).results().forEach(found -> names.add(found.group()));
        return names;
    }

    @SuppressWarnings("unchecked") // the cast is what the test checks
    private static List<Map<?, ?>> maps(Object list) {
        return (List<Map<?, ?>>) list;
    }
}

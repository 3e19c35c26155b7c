package io.kvasir.gateway.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;

import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.testsupport.Promtool;

import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;

/** The alert rules and the page of metrics, as Prometheus' own tool reads them. */
@Tag("integration") // fetches promtool
class AlertRulesTest {
    private static final Path RULES =
            Path.of(System.getProperty("kvasir.root"), "docs/operations/alerts.yaml");
    private static Promtool promtool;

    @TempDir private Path folder;

    @BeforeAll
    static void find() throws InterruptedException {
        try {
            promtool = Promtool.find();
        } catch (IOException e) {
            abort("skipped: no promtool: " + e.getMessage());
        }
    }

    @BeforeEach
    void copyRules() throws IOException {
        Files.copy(RULES, folder.resolve("alerts.yaml"));
        try (InputStream tests = AlertRulesTest.class.getResourceAsStream("/alerts_test.yaml")) {
            Files.copy(tests, folder.resolve("alerts_test.yaml"));
        }
    }

    @Test
    void theRulesAreRules() throws Exception {
        final Promtool.Verdict verdict =
                promtool.run(folder, null, "check", "rules", "alerts.yaml");
        assertEquals(0, verdict.exit(), verdict.text());
        assertTrue(verdict.text().contains("SUCCESS"), verdict.text());
    }

    @Test
    void eachAlertFiresAndStops() throws Exception {
        final Promtool.Verdict verdict = test();
        assertEquals(0, verdict.exit(), verdict.text());
        assertTrue(verdict.text().contains("SUCCESS"), verdict.text());
    }

    @Test
    void aRuleThatNeverFiresFailsItsTest() throws Exception {
        final Path rules = folder.resolve("alerts.yaml");
        Files.writeString(
                rules,
                Files.readString(rules).replace("kvasir_worker_up == 0", "kvasir_worker_up == 2"));
        final Promtool.Verdict verdict = test();
        assertNotEquals(0, verdict.exit(), verdict.text());
        assertTrue(verdict.text().contains("KvasirWorkerDown"), verdict.text());
    }

    private Promtool.Verdict test() throws Exception {
        return promtool.run(folder, null, "test", "rules", "alerts_test.yaml");
    }

    @Test
    void theExpressionsOfTheDashboardAreExpressions() throws Exception {
        final Path rules = folder.resolve("dashboard.yaml");
        final String all = Dashboard.read().asRules();
        Files.writeString(rules, all);
        final Promtool.Verdict verdict =
                promtool.run(folder, null, "check", "rules", "--lint=none", "dashboard.yaml");
        assertEquals(0, verdict.exit(), verdict.text());
        assertTrue(verdict.text().contains("SUCCESS"), verdict.text());
        Files.writeString(rules, all.replaceFirst("sum by", "sum bye"));
        assertNotEquals(0, promtool.run(folder, null, "check", "rules", "dashboard.yaml").exit());
    }

    /** After a request each way, so that histograms and labels are there. */
    @Test
    void thePageIsInPrometheusFormat() throws Exception {
        final Path page = folder.resolve("page.txt");
        try (FakeEngine engine = new FakeEngine(FakeEngine.chatStream(5, 1));
                GatewayServer gateway = Gateways.started(Gateways.config(engine.worker("w1")))) {
            Gateways.post(
                    gateway,
                    "/v1/chat/completions",
                    "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"stream\":true}");
            Files.writeString(page, Gateways.admin(gateway, "/metrics").body());
        }
        final Promtool.Verdict verdict = promtool.run(folder, page, "check", "metrics");
        assertTrue(
                verdict.text().lines().noneMatch(line -> line.contains("error")), verdict.text());
        assertNotEquals(1, verdict.exit(), verdict.text()); // 1: cannot be read; 3: style alone
    }
}

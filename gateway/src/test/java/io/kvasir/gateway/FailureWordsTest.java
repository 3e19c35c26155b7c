package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import ch.qos.logback.classic.Level;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.testing.CapturedLog;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;

/** Why a worker could not be asked is said in words, not by names of Java's classes. */
@Isolated // captures the log of the process
class FailureWordsTest {
    private final FakeEngine engine = new FakeEngine(call -> call.json(200, "{}"));

    private static void assertInWords(String text) {
        assertFalse(text.matches("(?s).*(Exception|java\\.|org\\.|: null$).*"), text);
    }

    private static String detail(GatewayServer gateway) {
        try {
            return GatewayHttpTest.json(Gateways.get(gateway, "/debug/workers"))
                    .at("/workers/0/tokenizer_detail")
                    .textValue();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    /** Starts with the engine as it is, until it was asked all. */
    private List<String> asked(CapturedLog log, String awaited) throws Exception {
        try (GatewayServer gateway =
                GatewayServer.start(
                        Gateways.config(engine.worker("w"))
                                .set(GatewaySettings.TOKENIZER, Path.of(SimModel.KEYWORD))
                                .set(RouterSettings.ENGINE_LOAD, true)
                                .set(GatewaySettings.ENGINE_LOAD_INTERVAL, Duration.ofMillis(20))
                                .build())) {
            Eventually.holds("it is asked", () -> !detail(gateway).equals("not asked yet"));
            Eventually.holds(
                    awaited,
                    () -> log.textsFrom(Level.INFO).stream().anyMatch(x -> x.contains(awaited)));
            return Stream.concat(
                            Stream.of(detail(gateway)),
                            log.textsFrom(Level.INFO).stream().filter(x -> x.contains("worker w")))
                    .toList();
        } finally {
            engine.close();
        }
    }

    private List<String> ofTokens(FakeEngine.Script script) throws Exception {
        engine.tokenize = script;
        try (CapturedLog log = new CapturedLog(Level.INFO)) {
            final List<String> said = asked(log, "cannot compare tokens");
            said.forEach(FailureWordsTest::assertInWords);
            return said;
        }
    }

    @Test
    void ofAWorkerThatCutsTheComparisonOfTokens() throws Exception {
        assertEquals(
                "the connection was closed before the answer was complete",
                ofTokens(FakeEngine.Call::cut).getFirst());
    }

    @Test
    void ofAWorkerWhoseTokensAreNoJson() throws Exception {
        ofTokens(call -> call.json(200, "<html>"));
    }

    @Test
    void ofAWorkerWithoutTokenize() throws Exception {
        assertEquals(
                "POST /tokenize answered 404", ofTokens(call -> call.json(404, "{}")).getFirst());
    }

    @Test
    void ofAFolderThatIsAFile(@TempDir Path folder) throws Exception {
        final Path file = Files.writeString(folder.resolve("f"), "");
        final GatewayConfig config =
                Gateways.config(engine.worker("w")).set(RouterSettings.STATE_DIR, file).build();
        try {
            final GatewayException refusal =
                    assertThrows(GatewayException.class, () -> GatewayServer.start(config));
            assertEquals(
                    "state-dir="
                            + file
                            + " cannot be used: "
                            + file
                            + ": it is there already, and"
                            + " is no folder",
                    refusal.getMessage());
        } finally {
            engine.close();
        }
    }

    @Test
    void ofAPageOfMetricsThatIsTooLong() throws Exception {
        engine.metricsPage = "#".repeat(5 << 20);
        try (CapturedLog log = new CapturedLog(Level.INFO)) {
            asked(log, "no load from GET /metrics").forEach(FailureWordsTest::assertInWords);
        }
    }
}

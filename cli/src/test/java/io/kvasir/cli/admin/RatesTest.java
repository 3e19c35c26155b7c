package io.kvasir.cli.admin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.cli.console.Json;

import org.junit.jupiter.api.Test;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;

class RatesTest {
    private static GatewayView view(long atSeconds, double upSeconds, String... lines) {
        return new GatewayView(
                "http://g",
                true,
                "ready",
                Json.object(),
                List.of(),
                MetricsPage.read(
                        String.join("\n", lines).getBytes(StandardCharsets.UTF_8),
                        Set.of(
                                GatewayView.OUTPUT,
                                GatewayView.STATED,
                                GatewayView.CACHED,
                                GatewayView.TTFT + "_bucket",
                                GatewayView.TTFT + "_sum",
                                GatewayView.TTFT + "_count")),
                TimeUnit.SECONDS.toNanos(atSeconds),
                upSeconds);
    }

    private static String[] counted(int output, int stated, int cached) {
        return new String[] {
            "kvasir_output_tokens_total{worker=\"a\"} " + output,
            "kvasir_output_tokens_total{worker=\"b\"} 0",
            "kvasir_stated_prompt_tokens_total{worker=\"a\"} " + stated,
            "kvasir_engine_cached_tokens_total{worker=\"a\"} " + cached
        };
    }

    @Test
    void whatWasCountedBetweenTwoViewsIsDividedByTheTimeBetween() {
        final Rates rates =
                Rates.between(view(10, 100, counted(50, 10, 0)), view(15, 105, counted(80, 30, 5)));
        assertFalse(rates.sinceStart());
        assertEquals(5, rates.seconds());
        assertEquals(6, rates.outputTokensPerSecond());
        assertEquals(0.25, rates.hitRate());
        assertEquals(0.25, rates.hitRates().get("a"));
        assertTrue(Double.isNaN(rates.ttftMeanSeconds()));
    }

    @Test
    void aGatewayThatWasStartedAgainBeginsAnew() {
        final Rates rates =
                Rates.between(view(10, 100, counted(50, 10, 0)), view(15, 2, counted(80, 0, 0)));
        assertTrue(rates.sinceStart());
        assertEquals(40, rates.outputTokensPerSecond());
        assertTrue(Double.isNaN(rates.hitRate()));
    }

    @Test
    void thePercentileIsBetweenTheBoundsOfTheBucketsOfAllSeries() {
        final String name = GatewayView.TTFT;
        final Rates rates =
                Rates.between(
                        view(0, 1, name + "_bucket{le=\"1.0\",worker=\"a\"} 100"),
                        view(
                                1,
                                2,
                                name + "_bucket{le=\"1.0\",worker=\"a\"} 150",
                                name + "_bucket{le=\"2.0\",worker=\"a\"} 150",
                                name + "_bucket{le=\"+Inf\",worker=\"a\"} 150",
                                name + "_bucket{le=\"1.0\",worker=\"b\"} 0",
                                name + "_bucket{le=\"2.0\",worker=\"b\"} 0",
                                name + "_bucket{le=\"+Inf\",worker=\"b\"} 0",
                                name + "_sum{worker=\"a\"} 30",
                                name + "_count{worker=\"a\"} 60"));
        assertEquals(0.5, rates.ttftMeanSeconds());
        assertEquals(1.925, rates.ttftP95Seconds(), 1e-9);
    }

    @Test
    void aWorkerThatLeavesTakesNothingFromTheGrowthOfTheOthers() {
        final String output = "kvasir_output_tokens_total{worker=\"%s\"} %d";
        final String below = GatewayView.TTFT + "_bucket{le=\"%s\",worker=\"%s\"} %d";
        final Rates rates =
                Rates.between(
                        view(
                                10,
                                100,
                                output.formatted("a", 1000),
                                output.formatted("b", 1000),
                                below.formatted("1.0", "a", 500),
                                below.formatted("+Inf", "a", 500),
                                below.formatted("1.0", "b", 400),
                                below.formatted("2.0", "b", 400),
                                below.formatted("+Inf", "b", 400)),
                        view(
                                15,
                                105,
                                output.formatted("b", 1010),
                                below.formatted("1.0", "b", 400),
                                below.formatted("2.0", "b", 410),
                                below.formatted("+Inf", "b", 410)));
        assertEquals(2, rates.outputTokensPerSecond());
        assertEquals(1.95, rates.ttftP95Seconds(), 1e-9);
    }

    @Test
    void aSeriesThatFellBeganAnewWhateverTheOthersCounted() {
        final String output = "kvasir_output_tokens_total{worker=\"%s\"} %d";
        final Rates rates =
                Rates.between(
                        view(10, 100, output.formatted("a", 100), output.formatted("b", 1000)),
                        view(15, 105, output.formatted("a", 20), output.formatted("b", 1200)));
        assertEquals(44, rates.outputTokensPerSecond());
    }
}

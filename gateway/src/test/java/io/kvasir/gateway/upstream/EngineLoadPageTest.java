package io.kvasir.gateway.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.load.EngineLoad;
import io.kvasir.router.load.LoadReading;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Random;
import java.util.Set;

/** The load on pages of metrics, as recorded and as they must not be. */
class EngineLoadPageTest {
    private static String recorded(String name) throws IOException {
        try (InputStream in = EngineLoadPageTest.class.getResourceAsStream("/metrics/" + name)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    private static Map<Integer, LoadReading> read(String page) {
        return EngineLoadPage.readOrNull(page, 16);
    }

    /** The same page with another value of a gauge. */
    private static String with(String page, String gauge, String value) {
        final String changed = page.replaceAll("(?m)^(" + gauge + "\\{[^}]*}) .*$", "$1 " + value);
        assertTrue(!changed.equals(page), gauge);
        return changed;
    }

    @Test
    void anIdleVllmSaysSo() throws IOException {
        final var readings = read(recorded("vllm-0.32.0-metrics.prom"));
        assertEquals(Set.of(0), readings.keySet());
        assertEquals(new EngineLoad(0, 0, -1, 0, 512, -1), readings.get(0).load(0));
    }

    @Test
    void aBusyVllmSaysHowMuch() throws IOException {
        String page = recorded("vllm-0.32.0-metrics.prom");
        page = with(page, "vllm:num_requests_running", "7.0");
        page = with(page, "vllm:num_requests_waiting", "3");
        page = with(page, "vllm:kv_cache_usage_perc", "0.25");
        assertEquals(new EngineLoad(7, 3, -1, 128, 512, -1), read(page).get(0).load(0));
    }

    @Test
    void sglangCountsTokens() throws IOException {
        String page = recorded("sglang-0.5.23-metrics.prom");
        page = with(page, "sglang:num_running_reqs", "2.0");
        page = with(page, "sglang:num_queue_reqs", "1.0");
        page = with(page, "sglang:num_used_tokens", "464.0");
        final var readings = read(page);
        assertEquals(Set.of(EngineLoadPage.UNLABELLED), readings.keySet());
        assertEquals(
                new EngineLoad(2, 1, -1, 29, 256, -1),
                readings.get(EngineLoadPage.UNLABELLED).load(0));
    }

    @Test
    void theSimulatorOfLlmdHasNoRanks() throws IOException {
        final var readings = read(recorded("llmdsim-metrics.prom"));
        assertEquals(
                new EngineLoad(0, 0, -1, 0, 4_096, -1),
                readings.get(EngineLoadPage.UNLABELLED).load(0));
    }

    @Test
    void ranksAreKeptApartByTheirLabel() {
        final var readings =
                read(
                        """
                        vllm:num_requests_running{engine="0",model_name="a"} 1
                        vllm:num_requests_running{engine="1",model_name="a"} 2
                        vllm:num_requests_running{engine="1",model_name="b"} 5
                        sglang:num_running_reqs{dp_rank="3",tp_rank="0"} 4
                        sglang:num_running_reqs{dp_rank="3",tp_rank="1"} 4
                        """);
        assertEquals(Set.of(0, 1, 3), readings.keySet());
        assertEquals(1, readings.get(0).load(0).running());
        assertEquals(5, readings.get(1).load(0).running());
        assertEquals(4, readings.get(3).load(0).running());
    }

    @Test
    void labelsMayHaveQuotesBracesAndEscapesInThem() {
        final var readings =
                read("vllm:num_requests_waiting{model_name=\"a}\\\" b=\\\"c\\\\\",engine=\"2\"} 9");
        assertEquals(9, readings.get(2).load(0).waiting());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "vllm:num_requests_running{engine=\"0\"",
                "vllm:num_requests_running{engine=\"0",
                "vllm:num_requests_running{engine=0} 1",
                "vllm:num_requests_running{engine=\"0\"}",
                "vllm:num_requests_running{engine=\"-1\"} 1",
                "vllm:num_requests_running{engine=\"99999999999\"} 1",
                "vllm:num_requests_running{engine=\"one\"} 1",
                "vllm:num_requests_running{engine=\"0\\",
                "vllm:num_requests_running{engine} 1",
                "vllm:num_requests_running",
                "vllm:num_requests_running{,,,} 1"
            })
    void aLineOfTheLoadThatIsNotInTheFormatSpoilsThePage(String line) {
        assertNull(read("vllm:num_requests_waiting{engine=\"0\"} 1\n" + line + "\n"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"NaN", "-1", "+Inf", "-Inf", "Inf", "1e300", "many", "0x", "1.0.0"})
    void aValueThatIsNoneSpoilsTheRankAlone(String value) {
        final var readings =
                read(
                        "vllm:num_requests_running{engine=\"0\"} "
                                + value
                                + "\nvllm:num_requests_running{engine=\"1\"} 1\n");
        assertNotNull(readings.get(0).problemOrNull());
        assertNull(readings.get(1).problemOrNull());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "\n\n\n",
                "# HELP vllm:num_requests_running Number of requests\n",
                "vllm:num_requests_running_total{engine=\"0\"} 7\n",
                "other:num_requests_running 4\n",
                "vllm:cache_config_info{engine=\"0\",num_gpu_blocks=\"512\"} 1\n",
                "<html>no page of metrics</html>"
            })
    void aPageWithoutLoadHasNone(String page) {
        assertEquals(Map.of(), read(page));
    }

    @Test
    void tenThousandRanksAreNoPageOfAnEngine() {
        final StringBuilder page = new StringBuilder();
        for (int i = 0; i < 10_000; i++) {
            page.append("vllm:num_requests_running{engine=\"").append(i).append("\"} 1\n");
        }
        assertNull(read(page.toString()));
    }

    @Test
    void anyPageIsReadWithoutHarm() throws IOException {
        final Random random = new Random(Seeds.next("EngineLoadPageTest"));
        final String page =
                recorded("vllm-0.32.0-metrics.prom")
                        .lines()
                        .filter(line -> line.contains("num_requests") || line.contains("cache"))
                        .reduce("", (all, line) -> all + line + "\n");
        for (int i = 0; i < 3_000; i++) {
            final StringBuilder changed = new StringBuilder(page);
            changed.setLength(random.nextInt(page.length()));
            for (int n = random.nextInt(8); n > 0 && !changed.isEmpty(); n--) {
                changed.setCharAt(
                        random.nextInt(changed.length()),
                        "\"{}=,\\ \n0:x".charAt(random.nextInt(11)));
            }
            read(changed.toString());
        }
    }
}

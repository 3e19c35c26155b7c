package io.kvasir.gateway.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import io.kvasir.core.load.EngineLoad;
import io.kvasir.router.load.LoadReading;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;

/**
 * Random pages of metrics that use all that Prometheus' text format allows: blanks and tabs between
 * tokens, labels in any order, escapes, timestamps, lines of other metrics. Each page is made with
 * the numbers that it says, and these are read of it.
 */
@Tag("trials")
class EngineLoadPageModelTest {
    private static final int BLOCK_SIZE = 16;
    private static final String[] GAUGES = {
        "vllm:num_requests_running",
        "vllm:num_requests_waiting",
        "vllm:kv_cache_usage_perc",
        "sglang:num_running_reqs",
        "sglang:num_queue_reqs",
        "sglang:num_used_tokens",
        "sglang:max_total_num_tokens"
    };
    private static final String[] OTHERS = {
        "vllm:num_requests_running_total",
        "vllm:e2e_request_latency_seconds_bucket",
        "vllm:num_requests",
        "sglang:num_running_reqs_offline_batch",
        "process_resident_memory_bytes",
        "num_requests_running",
        "avllm:num_requests_running"
    };
    private static final String[] VALUES = {
        "a",
        "",
        "}",
        "{",
        "a,b=\"c\"",
        "\\",
        "\n",
        "a b\t",
        "é😀",
        "#",
        "engine=\"7\"",
        "x".repeat(200)
    };

    private Random random;
    private final Map<Integer, Said> truth = new TreeMap<>();

    /** What a page says of a rank; -1 where it says nothing. */
    private static final class Said {
        private final double[] gauges = {-1, -1, -1, -1, -1, -1, -1};
        private long blocks = -1;

        /** The same, reported number by number. */
        EngineLoad load() {
            final LoadReading reading = new LoadReading();
            final double running = Math.max(gauges[0], gauges[3]);
            final double waiting = Math.max(gauges[1], gauges[4]);
            if (running >= 0) {
                reading.running(running);
            }
            if (waiting >= 0) {
                reading.waiting(waiting);
            }
            if (gauges[2] >= 0) {
                reading.usage(gauges[2]);
            }
            if (gauges[5] >= 0) {
                reading.usedBlocks(gauges[5] / BLOCK_SIZE);
            }
            if (gauges[6] >= 0) {
                reading.blocks(gauges[6] / BLOCK_SIZE);
            }
            if (blocks >= 0) {
                reading.blocks((double) blocks);
            }
            return reading.isEmpty() ? null : reading.load(0);
        }
    }

    @Test
    void whatAPageSaysIsReadHoweverItIsWritten() {
        final Random seeds = new Random(Seeds.next("EngineLoadPageModelTest"));
        final int trials = Trials.of(500, 15_000);
        for (int trial = 0; trial < trials; trial++) {
            final long seed = seeds.nextLong();
            random = new Random(seed);
            truth.clear();
            final String page = page();
            final String words = "seed " + seed + ":\n" + page;
            final var readings = EngineLoadPage.readOrNull(page, BLOCK_SIZE);
            assertNotNull(readings, words);
            final Map<Integer, EngineLoad> read = new TreeMap<>();
            readings.forEach((rank, reading) -> read.put(rank, reading.load(0)));
            final Map<Integer, EngineLoad> expected = new TreeMap<>();
            truth.forEach((rank, said) -> expected.put(rank, said.load()));
            expected.values().removeIf(load -> load == null);
            assertEquals(expected, read, words);
        }
    }

    private String page() {
        final StringBuilder page = new StringBuilder();
        final String end = random.nextInt(4) == 0 ? "\r\n" : "\n";
        for (int lines = random.nextInt(12); lines > 0; lines--) {
            page.append(anyBlanks()).append(line()).append(anyBlanks()).append(end);
        }
        return page.toString();
    }

    private String line() {
        return switch (random.nextInt(8)) {
            case 0 -> "";
            case 1 -> "# HELP vllm:num_requests_running Requests in {engine=\"0\"} 7";
            case 2 -> "#vllm:num_requests_running{engine=\"0\"} 7";
            case 3 -> series(OTHERS[random.nextInt(OTHERS.length)], List.of(), "9");
            case 4 -> cacheLine();
            default -> gaugeLine();
        };
    }

    private String gaugeLine() {
        final int gauge = random.nextInt(GAUGES.length);
        final double value = gauge == 2 ? random.nextInt(9) / 8.0 : random.nextInt(1 << 20);
        final List<String> labels = new ArrayList<>();
        final double[] gauges = said(labels).gauges;
        gauges[gauge] = Math.max(gauges[gauge], value);
        return series(GAUGES[gauge], labels, number(value));
    }

    private String cacheLine() {
        final List<String> labels = new ArrayList<>();
        final Said said = said(labels);
        final int blocks = random.nextInt(1 << 16);
        final boolean known = random.nextInt(4) > 0;
        labels.add(label("num_gpu_blocks", known ? Integer.toString(blocks) : "None"));
        if (known) {
            said.blocks = Math.max(said.blocks, blocks);
        }
        return series("vllm:cache_config_info", labels, "1");
    }

    /** Chooses a rank and adds its label. */
    private Said said(List<String> labels) {
        final int rank = random.nextInt(4) - 1;
        if (rank >= 0) {
            labels.add(label(random.nextBoolean() ? "engine" : "dp_rank", Integer.toString(rank)));
        }
        return truth.computeIfAbsent(rank, _ -> new Said());
    }

    private String series(String name, List<String> own, String value) {
        final List<String> labels = new ArrayList<>(own);
        for (int more = random.nextInt(3); more > 0; more--) {
            labels.add(label("name_" + more, VALUES[random.nextInt(VALUES.length)]));
        }
        Collections.shuffle(labels, random);
        final StringBuilder line = new StringBuilder(name);
        if (labels.isEmpty() && random.nextBoolean()) {
            line.append(someBlanks());
        } else {
            final String last = labels.isEmpty() || random.nextInt(4) > 0 ? "" : anyBlanks() + ",";
            line.append(anyBlanks()).append('{').append(anyBlanks());
            line.append(String.join(anyBlanks() + "," + anyBlanks(), labels));
            line.append(last).append(anyBlanks()).append('}').append(anyBlanks());
        }
        line.append(value);
        if (random.nextInt(4) == 0) {
            line.append(someBlanks()).append("1395066363000");
        }
        return line.toString();
    }

    private String label(String name, String value) {
        final String escaped =
                value.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n");
        return name + anyBlanks() + "=" + anyBlanks() + '"' + escaped + '"';
    }

    private String number(double value) {
        return switch (random.nextInt(4)) {
            case 0 -> Double.toString(value);
            case 1 -> "+" + value;
            case 2 -> scientific(new BigDecimal(value));
            default -> value == (long) value ? Long.toString((long) value) : Double.toString(value);
        };
    }

    private static String scientific(BigDecimal value) {
        return value.unscaledValue() + "e-" + value.scale();
    }

    private String anyBlanks() {
        return random.nextInt(4) > 0 ? "" : someBlanks();
    }

    private String someBlanks() {
        return switch (random.nextInt(4)) {
            case 0 -> "\t";
            case 1 -> " \t ";
            default -> " ";
        };
    }
}

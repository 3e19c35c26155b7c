package io.kvasir.gateway.testing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.GatewayServer;

import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reads a page of metrics in Prometheus' text format, strictly. */
public final class MetricsPage {
    private static final Pattern SAMPLE =
            Pattern.compile(
                    "(([a-zA-Z_:][a-zA-Z0-9_:]*?)(?:_bucket|_count|_sum)?)(?:\\{(.*)})? ([^ ]+)");
    private static final Pattern LABEL =
            Pattern.compile(
                    "([a-zA-Z_][a-zA-Z0-9_]*)=\"((?:[^\"\\\\\n]|\\\\[\\\\\"n])*+)\"(?:,|$)");

    /** One sample. */
    record Sample(String name, Map<String, String> labels) {}

    private final Map<Sample, Double> samples = new LinkedHashMap<>();
    private final Map<String, String> types = new HashMap<>();

    /** The page of a running gateway. */
    public static MetricsPage of(GatewayServer gateway) {
        try {
            return new MetricsPage(Gateways.get(gateway, "/metrics").body());
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    MetricsPage(String page) {
        final Set<String> described = new HashSet<>();
        for (String line : page.lines().toList()) {
            if (line.startsWith("# HELP ")) {
                assertTrue(described.add(line.split(" ", -1)[2]), line);
            } else if (line.startsWith("# TYPE ")) {
                assertNull(types.put(line.split(" ", -1)[2], line.split(" ", -1)[3]), line);
            } else {
                sample(line);
            }
        }
        assertEquals(described, types.keySet());
    }

    private void sample(String line) {
        final Matcher parts = SAMPLE.matcher(line);
        assertTrue(parts.matches(), line);
        final String family = parts.group(2);
        assertNotNull(types.getOrDefault(parts.group(1), types.get(family)), line);
        final Map<String, String> labels = new TreeMap<>();
        if (parts.group(3) != null) {
            final Matcher label = LABEL.matcher(parts.group(3));
            int end = 0;
            while (label.find()) {
                assertEquals(end, label.start(), line);
                assertNull(labels.put(label.group(1), label.group(2)), line);
                end = label.end();
            }
            assertEquals(parts.group(3).length(), end, line);
        }
        final double value = Double.parseDouble(parts.group(4).replace("+Inf", "Infinity"));
        assertNull(samples.put(new Sample(parts.group(1), labels), value), "twice: " + line);
    }

    /** All values of a metric whose series have these labels, names and values in turn. */
    public double sum(String name, String... labels) {
        return samples.entrySet().stream()
                .filter(each -> each.getKey().name().equals(name))
                .filter(each -> has(each.getKey(), labels))
                .mapToDouble(Map.Entry::getValue)
                .sum();
    }

    /** Values of one label of a metric. */
    public Set<String> values(String name, String label) {
        final Set<String> values = new HashSet<>();
        for (Sample sample : samples.keySet()) {
            if (sample.name().equals(name)) {
                values.add(sample.labels().get(label));
            }
        }
        return values;
    }

    /** Every series of a metric with its value. */
    public List<String> series(String name) {
        return samples.entrySet().stream()
                .filter(each -> each.getKey().name().equals(name))
                .map(Object::toString)
                .toList();
    }

    private static boolean has(Sample sample, String... labels) {
        for (int i = 0; i < labels.length; i += 2) {
            if (!labels[i + 1].equals(sample.labels().get(labels[i]))) {
                return false;
            }
        }
        return true;
    }
}

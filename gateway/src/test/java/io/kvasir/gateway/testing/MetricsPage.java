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
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reads a page of metrics in Prometheus' text format, strictly. */
public final class MetricsPage {
    private static final Pattern SERIES =
            Pattern.compile("(([a-zA-Z_:][a-zA-Z0-9_:]*?)(?:_bucket|_count|_sum)?)(?:\\{(.*)})?");
    private static final Pattern LABEL =
            Pattern.compile(
                    "([a-zA-Z_][a-zA-Z0-9_]*)=\""
                            + "([^\"\\\\\\n]*+(?:\\\\[\\\\\"n][^\"\\\\\\n]*+)*+)\"(?:,|$)");

    /** Series by their text: pages are read again and again until something is on them. */
    private static final Map<String, Sample> READ = new ConcurrentHashMap<>();

    /** One sample. */
    record Sample(String name, String family, Map<String, String> labels) {}

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
        final int space = line.lastIndexOf(' ');
        assertTrue(space > 0, line);
        final Sample sample = READ.computeIfAbsent(line.substring(0, space), MetricsPage::read);
        assertNotNull(types.getOrDefault(sample.name(), types.get(sample.family())), line);
        final double value =
                Double.parseDouble(line.substring(space + 1).replace("+Inf", "Infinity"));
        assertNull(samples.put(sample, value), "twice: " + line);
    }

    private static Sample read(String text) {
        final Matcher parts = SERIES.matcher(text);
        assertTrue(parts.matches(), text);
        final Map<String, String> labels = new TreeMap<>();
        if (parts.group(3) != null) {
            final Matcher label = LABEL.matcher(parts.group(3));
            int end = 0;
            while (label.find()) {
                assertEquals(end, label.start(), text);
                assertNull(labels.put(label.group(1), label.group(2)), text);
                end = label.end();
            }
            assertEquals(parts.group(3).length(), end, text);
        }
        return new Sample(parts.group(1), parts.group(2), labels);
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

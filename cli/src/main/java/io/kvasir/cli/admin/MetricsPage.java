package io.kvasir.cli.admin;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Predicate;

/** Series of a page in Prometheus' text format; lines that are none are passed over. */
public final class MetricsPage {
    /**
     * One series.
     *
     * @param labels without order
     * @param value as it stands there
     */
    public record Series(Map<String, String> labels, double value) {
        String label(String name) {
            return labels.getOrDefault(name, "");
        }
    }

    private final Map<String, List<Series>> byName = new HashMap<>();

    private MetricsPage() {}

    /**
     * Reads some of a page: it may have a million lines.
     *
     * @param wanted names of series; {@code _bucket}, {@code _sum} and {@code _count} are part of
     *     the name
     */
    public static MetricsPage read(byte[] page, Set<String> wanted) {
        final MetricsPage read = new MetricsPage();
        int begin = 0;
        while (begin < page.length) {
            int end = begin;
            while (end < page.length && page[end] != '\n') {
                end++;
            }
            read.line(page, begin, end, wanted);
            begin = end + 1;
        }
        return read;
    }

    private void line(byte[] page, int begin, int end, Set<String> wanted) {
        int at = begin;
        while (at < end && page[at] != '{' && page[at] != ' ') {
            at++;
        }
        if (at == begin || page[begin] == '#') {
            return;
        }
        final String name = new String(page, begin, at - begin, StandardCharsets.UTF_8);
        if (!wanted.contains(name)) {
            return;
        }
        final String rest = new String(page, at, end - at, StandardCharsets.UTF_8);
        final Map<String, String> labels = new HashMap<>();
        final int after = labels(rest, labels);
        if (after >= 0) {
            final String value = rest.substring(after).strip().split(" ", 2)[0];
            try {
                byName.computeIfAbsent(name, _ -> new ArrayList<>())
                        .add(new Series(labels, number(value)));
            } catch (NumberFormatException e) {
                byName.remove(name); // no page of metrics
            }
        }
    }

    private static double number(String value) {
        return switch (value) {
            case "+Inf" -> Double.POSITIVE_INFINITY;
            case "-Inf" -> Double.NEGATIVE_INFINITY;
            default -> Double.parseDouble(value);
        };
    }

    /** Reads {@code {name="value",…}}; where it ends, or -1 if it does not. */
    private static int labels(String text, Map<String, String> labels) {
        if (!text.startsWith("{")) {
            return 0;
        }
        int at = 1;
        while (at < text.length() && text.charAt(at) != '}') {
            final int equals = text.indexOf("=\"", at);
            if (equals < 0) {
                return -1;
            }
            final String name = text.substring(at, equals).strip();
            final StringBuilder value = new StringBuilder();
            at = equals + 2;
            while (at < text.length() && text.charAt(at) != '"') {
                if (text.charAt(at) == '\\' && at + 1 < text.length()) {
                    at++;
                    value.append(text.charAt(at) == 'n' ? '\n' : text.charAt(at));
                } else {
                    value.append(text.charAt(at));
                }
                at++;
            }
            at++;
            if (at < text.length() && text.charAt(at) == ',') {
                at++;
            }
            labels.put(name, value.toString());
        }
        return at < text.length() ? at + 1 : -1;
    }

    /**
     * A page of how much each series of counters has grown: one that fell, or was not there before,
     * by all it has now; one that is no number by nothing; one that is not there any more is left
     * out.
     */
    MetricsPage since(MetricsPage old) {
        final MetricsPage grown = new MetricsPage();
        byName.forEach(
                (name, all) -> {
                    final Map<Map<String, String>, Double> before = new HashMap<>();
                    old.series(name).forEach(each -> before.put(each.labels, each.value));
                    grown.byName.put(name, all.stream().map(each -> grown(before, each)).toList());
                });
        return grown;
    }

    private static Series grown(Map<Map<String, String>, Double> before, Series now) {
        final double old = before.getOrDefault(now.labels, 0.0);
        final double value = Double.isNaN(now.value) ? 0 : now.value;
        return new Series(now.labels, value >= old ? value - old : value);
    }

    /** All series of a name. */
    public List<Series> series(String name) {
        return byName.getOrDefault(name, List.of());
    }

    /** Sum of all series of a name; NaN where there is none. */
    double sum(String name) {
        return sum(name, _ -> true);
    }

    /** Sum of some series of a name; NaN where the name has none at all. */
    double sum(String name, Predicate<Series> counted) {
        return byName.containsKey(name)
                ? series(name).stream().filter(counted).mapToDouble(Series::value).sum()
                : Double.NaN;
    }

    /** Sums by the values of a label. */
    Map<String, Double> sums(String name, String label) {
        final Map<String, Double> sums = new HashMap<>();
        for (Series series : series(name)) {
            sums.merge(series.label(label), series.value, Double::sum);
        }
        return sums;
    }

    /** Counts below each bound of a histogram, all its series together. */
    NavigableMap<Double, Double> buckets(String histogram) {
        final NavigableMap<Double, Double> buckets = new TreeMap<>();
        for (Series series : series(histogram + "_bucket")) {
            try {
                buckets.merge(number(series.label("le")), series.value, Double::sum);
            } catch (NumberFormatException e) {
                return new TreeMap<>(); // no histogram
            }
        }
        return buckets;
    }
}

package io.kvasir.bench.transfer;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Figures of several processes, by what was measured and by program, in the order they came. */
final class Samples {
    private final Map<String, Map<String, List<Double>>> figures = new LinkedHashMap<>();

    void add(String measured, String by, double value) {
        figures.computeIfAbsent(measured, key -> new LinkedHashMap<>())
                .computeIfAbsent(by, key -> new ArrayList<>())
                .add(value);
    }

    /** What was measured, in the order it came. */
    List<String> names() {
        return List.copyOf(figures.keySet());
    }

    /** Figures of one, empty if there are none. */
    List<Double> of(String measured, String by) {
        return figures.getOrDefault(measured, Map.of()).getOrDefault(by, List.of());
    }

    double median(String measured, String by) {
        return median(of(measured, by));
    }

    /** Not a number without values. */
    static double median(List<Double> values) {
        return values.isEmpty()
                ? Double.NaN
                : values.stream().sorted().toList().get(values.size() / 2);
    }

    /** Sorts them; at least one. */
    static double median(double[] values) {
        Arrays.sort(values);
        return values[values.length / 2];
    }

    /** Median (lowest–highest). */
    static String spread(List<Double> values, int digits) {
        if (values.isEmpty()) {
            return "-";
        }
        final List<Double> sorted = values.stream().sorted().toList();
        final String number = "%." + digits + "f";
        return String.format(
                Locale.ROOT,
                number + " (" + number + "–" + number + ")",
                median(sorted),
                sorted.getFirst(),
                sorted.getLast());
    }
}

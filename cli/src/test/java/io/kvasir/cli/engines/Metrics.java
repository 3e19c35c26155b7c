package io.kvasir.cli.engines;

import java.util.stream.DoubleStream;

/** Reads pages of metrics in Prometheus' text format. */
final class Metrics {
    private Metrics() {}

    /**
     * The values of the series that begin so.
     *
     * @param prefix a metric's name, or that and the first of its labels
     */
    static DoubleStream values(String page, String prefix) {
        return page.lines()
                .filter(line -> line.startsWith(prefix))
                .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1)));
    }
}

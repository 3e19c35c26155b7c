package io.kvasir.opstreams.report;

import org.HdrHistogram.Histogram;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/**
 * Latency curves as inline SVG. Across: the share of queries that took at most so long, on an axis
 * that gives each further nine (90 %, 99 %, 99.9 %) the same room. Up: microseconds, logarithmic.
 */
final class LatencyChart {
    private static final int WIDTH = 760;
    private static final int HEIGHT = 360;
    private static final int LEFT = 64;
    private static final int RIGHT = 170; // the legend
    private static final int TOP = 34;
    private static final int BOTTOM = 44;
    private static final double STEPS_PER_NINE = 24;
    private static final double NS_PER_US = TimeUnit.MICROSECONDS.toNanos(1);
    private static final double LEAST_US = 0.01;
    private static final List<String> COLOURS =
            List.of("#2563eb", "#d97706", "#059669", "#a21caf", "#dc2626", "#0891b2");

    private final String title;
    private final List<Series> series = new ArrayList<>();

    /** One point: nines across (0 = 0 %, 1 = 90 %, 2 = 99 %), microseconds up. */
    private record Point(double nines, double us) {}

    /** A curve, or marks where only some percentiles are known. */
    private record Series(String name, boolean curve, List<Point> points) {}

    LatencyChart(String title) {
        this.title = title;
    }

    /**
     * Adds the curve of a histogram, up to where one query decides.
     *
     * @param ns latencies in nanoseconds; an empty one is left out
     */
    LatencyChart curve(String name, Histogram ns) {
        if (ns.getTotalCount() == 0) {
            return this;
        }
        final List<Point> points = new ArrayList<>();
        final double last = Math.log10((double) ns.getTotalCount());
        for (int step = 0; step / STEPS_PER_NINE <= last; step++) {
            final double nines = step / STEPS_PER_NINE;
            final double percentile = 100 - 100 * Math.pow(10, -nines);
            points.add(point(nines, ns.getValueAtPercentile(percentile) / NS_PER_US));
        }
        series.add(new Series(name, true, points));
        return this;
    }

    /**
     * Adds marks at known percentiles; none leaves them out.
     *
     * @param percentiles in percent, below 100
     * @param us microseconds at each
     */
    LatencyChart marks(String name, List<Double> percentiles, List<Double> us) {
        final List<Point> points = new ArrayList<>();
        for (int i = 0; i < percentiles.size(); i++) {
            points.add(point(-Math.log10(1 - percentiles.get(i) / 100), us.get(i)));
        }
        if (!points.isEmpty()) {
            series.add(new Series(name, false, points));
        }
        return this;
    }

    private static Point point(double nines, double us) {
        return new Point(nines, Math.max(LEAST_US, us));
    }

    /** Whether there is anything to show. */
    boolean isEmpty() {
        return series.isEmpty();
    }

    /** The picture, well-formed XML; not to be called when empty. */
    String svg() {
        final Axes axes = new Axes(series);
        final StringBuilder svg = new StringBuilder();
        svg.append(
                String.format(
                        Locale.ROOT,
                        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\""
                                + " width=\"%d\" height=\"%d\" role=\"img\">%n",
                        WIDTH,
                        HEIGHT,
                        WIDTH,
                        HEIGHT));
        svg.append(String.format(Locale.ROOT, "<title>%s</title>%n", Html.escape(title)));
        svg.append(text(LEFT, TOP - 16, "start", "title", title));
        grid(axes, svg);
        for (int i = 0; i < series.size(); i++) {
            draw(series.get(i), COLOURS.get(i % COLOURS.size()), i, axes, svg);
        }
        return svg.append("</svg>\n").toString();
    }

    /** Where values lie in the picture. */
    private static final class Axes {
        final double mostNines;
        final int leastDecade;
        final int mostDecade;

        Axes(List<Series> all) {
            double nines = 1;
            double least = Double.MAX_VALUE;
            double most = LEAST_US;
            for (Series one : all) {
                for (Point point : one.points) {
                    nines = Math.max(nines, point.nines);
                    least = Math.min(least, point.us);
                    most = Math.max(most, point.us);
                }
            }
            mostNines = nines;
            leastDecade = (int) Math.floor(Math.log10(least));
            mostDecade = Math.max(leastDecade + 1, (int) Math.ceil(Math.log10(most)));
        }

        double x(double nines) {
            return LEFT + nines / mostNines * (WIDTH - LEFT - RIGHT);
        }

        double y(double us) {
            final double share =
                    (Math.log10(us) - leastDecade) / (double) (mostDecade - leastDecade);
            return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
        }
    }

    private static void grid(Axes axes, StringBuilder svg) {
        for (int nine = 0; nine <= axes.mostNines; nine++) {
            final double x = axes.x(nine);
            svg.append(line(x, TOP, x, HEIGHT - BOTTOM));
            svg.append(text(x, HEIGHT - BOTTOM + 16, "middle", "tick", percent(nine)));
        }
        for (int decade = axes.leastDecade; decade <= axes.mostDecade; decade++) {
            final double y = axes.y(Math.pow(10, decade));
            svg.append(line(LEFT, y, WIDTH - RIGHT, y));
            svg.append(text(LEFT - 6, y + 4, "end", "tick", microseconds(decade)));
        }
        svg.append(
                text(
                        (LEFT + WIDTH - RIGHT) / 2.0,
                        HEIGHT - 8,
                        "middle",
                        "tick",
                        "share of queries that took at most"));
    }

    private static String percent(int nines) {
        return switch (nines) {
            case 0 -> "0 %";
            case 1 -> "90 %";
            case 2 -> "99 %";
            default -> "99." + "9".repeat(nines - 2) + " %";
        };
    }

    private static String microseconds(int decade) {
        if (decade >= 6) {
            return String.format(Locale.ROOT, "%.0f s", Math.pow(10, decade - 6));
        }
        return decade >= 3
                ? String.format(Locale.ROOT, "%.0f ms", Math.pow(10, decade - 3))
                : String.format(
                        Locale.ROOT, "%." + Math.max(0, -decade) + "f µs", Math.pow(10, decade));
    }

    private static void draw(
            Series one, String colour, int position, Axes axes, StringBuilder svg) {
        final double legendY = TOP + 12 + position * 20.0;
        final double legendX = WIDTH - RIGHT + 14;
        if (one.curve) {
            final StringBuilder points = new StringBuilder();
            for (Point point : one.points) {
                points.append(points.isEmpty() ? "" : " ");
                points.append(
                        String.format(
                                Locale.ROOT, "%.1f,%.1f", axes.x(point.nines), axes.y(point.us)));
            }
            svg.append(
                    String.format(
                            Locale.ROOT,
                            "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\""
                                    + " points=\"%s\"><title>%s</title></polyline>%n",
                            colour,
                            points,
                            Html.escape(one.name)));
            svg.append(
                    String.format(
                            Locale.ROOT,
                            "<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"3\""
                                    + " fill=\"%s\"/>%n",
                            legendX,
                            legendY - 5,
                            colour));
        } else {
            for (Point point : one.points) {
                svg.append(
                        mark(
                                axes.x(point.nines),
                                axes.y(point.us),
                                colour,
                                String.format(
                                        Locale.ROOT,
                                        "%s: %s µs",
                                        one.name,
                                        Comparison.number(point.us))));
            }
            svg.append(mark(legendX + 7, legendY - 4, colour, one.name));
        }
        svg.append(text(legendX + 20, legendY, "start", "tick", one.name));
    }

    private static String mark(double x, double y, String colour, String words) {
        return String.format(
                Locale.ROOT,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"none\" stroke=\"%s\""
                        + " stroke-width=\"2\"><title>%s</title></circle>%n",
                x,
                y,
                colour,
                Html.escape(words));
    }

    private static String line(double x1, double y1, double x2, double y2) {
        return String.format(
                Locale.ROOT,
                "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>%n",
                x1,
                y1,
                x2,
                y2);
    }

    private static String text(double x, double y, String anchor, String style, String words) {
        return String.format(
                Locale.ROOT,
                "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>%n",
                style,
                x,
                y,
                anchor,
                Html.escape(words));
    }
}

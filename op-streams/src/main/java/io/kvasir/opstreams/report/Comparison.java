package io.kvasir.opstreams.report;

import io.kvasir.opstreams.kvops.Figure;
import io.kvasir.opstreams.kvops.KvopsResult;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.Set;

/**
 * The one table: a row per stream, mode and figure; the first index with its spread, then every
 * other index of the same run and every peer with the ratio first ÷ other. Below 1 the first is
 * faster or smaller.
 */
final class Comparison {
    private static final List<Figure> FIGURES =
            List.of(
                    Figure.APPLY_NS_PER_BLOCK,
                    Figure.EVENT_P50_US,
                    Figure.EVENT_P9999_US,
                    Figure.EVENT_MAX_US,
                    Figure.EVENT_P9999_OVER_BOUND_US,
                    Figure.EVENT_SHARE_OVER_BOUND,
                    Figure.QUERY_MEAN_US,
                    Figure.QUERY_P50_US,
                    Figure.QUERY_P99_US,
                    Figure.QUERY_P999_US,
                    Figure.QUERY_P9999_US,
                    Figure.BYTES_PER_PAIR,
                    Figure.PREEMPTED_SHARE,
                    Figure.CHECKSUM_MISMATCHES);
    private static final Set<Figure> WITHOUT_RATIO =
            EnumSet.of(
                    Figure.EVENT_SHARE_OVER_BOUND,
                    Figure.PREEMPTED_SHARE,
                    Figure.CHECKSUM_MISMATCHES);
    private static final String NONE = "–";

    private final List<List<String>> rows = new ArrayList<>();
    private final List<String> indexes;
    private final Peers peers;

    /**
     * Starts a table.
     *
     * @param indexes names of the indexes measured, the one that is compared first
     */
    Comparison(List<String> indexes, Peers peers) {
        this.indexes = List.copyOf(indexes);
        this.peers = peers;
        final List<String> titles = new ArrayList<>(List.of("stream", "mode", "figure"));
        titles.add(indexes.getFirst());
        titles.add("min–max");
        for (String other : others()) {
            titles.add(other);
            titles.add("ratio");
        }
        rows.add(titles);
    }

    private List<String> others() {
        final List<String> others = new ArrayList<>(indexes.subList(1, indexes.size()));
        others.addAll(peers.names());
        return others;
    }

    /**
     * Adds the figures of one stream in one mode; percentiles of too few queries are left out.
     *
     * @param results by name of the index; the first index's is there
     */
    void add(Map<String, KvopsResult> results) {
        final KvopsResult first = results.get(indexes.getFirst());
        for (Figure figure : FIGURES) {
            if (first.figures().contains(figure) && !first.isOfTooFew(figure)) {
                rows.add(row(results, first, figure));
            }
        }
    }

    private List<String> row(Map<String, KvopsResult> results, KvopsResult first, Figure figure) {
        final String stream = streamName(first);
        final String mode = first.plan().mode().label();
        final double value = first.median(figure);
        final List<String> row = new ArrayList<>(List.of(stream, mode, title(figure)));
        row.add(number(value));
        row.add(number(first.min(figure)) + "–" + number(first.max(figure)));
        for (String index : indexes.subList(1, indexes.size())) {
            final KvopsResult other = results.get(index);
            final boolean known = other != null && other.figures().contains(figure);
            compare(row, figure, value, known ? other.median(figure) : Double.NaN);
        }
        for (String peer : peers.names()) {
            final OptionalDouble known = peers.figure(stream, mode, peer, figure);
            compare(row, figure, value, known.orElse(Double.NaN));
        }
        return row;
    }

    private static String title(Figure figure) {
        final String unit = figure.unit();
        return unit.isEmpty() || figure.field().contains('_' + unit)
                ? figure.field()
                : figure.field() + ", " + unit;
    }

    private static void compare(List<String> row, Figure figure, double value, double other) {
        final boolean comparable =
                !Double.isNaN(other) && other != 0 && !WITHOUT_RATIO.contains(figure);
        row.add(Double.isNaN(other) ? NONE : number(other));
        row.add(comparable ? number(value / other) : NONE);
    }

    /** The stream's name: its file's without the ending. */
    static String streamName(KvopsResult result) {
        return streamName(result.plan().file());
    }

    /** The stream's name: its file's without the ending. */
    static String streamName(Path file) {
        return file.getFileName().toString().replaceFirst("\\.kvops$", "");
    }

    /** Three digits that say something, no more. */
    static String number(double value) {
        if (value == 0) {
            return "0";
        }
        final int digits = (int) Math.floor(Math.log10(Math.abs(value)));
        return String.format(Locale.ROOT, "%." + Math.clamp(2 - digits, 0, 6) + "f", value);
    }

    /** Titles, then rows; all of one length. */
    List<List<String>> rows() {
        return List.copyOf(rows);
    }

    /** The table for a terminal: words to the left, numbers to the right. */
    String text() {
        final int columns = rows.getFirst().size();
        final int[] widths = new int[columns];
        for (List<String> row : rows) {
            for (int c = 0; c < columns; c++) {
                widths[c] = Math.max(widths[c], row.get(c).length());
            }
        }
        final StringBuilder text = new StringBuilder();
        for (List<String> row : rows) {
            final StringBuilder line = new StringBuilder();
            for (int c = 0; c < columns; c++) {
                final String padding = " ".repeat(widths[c] - row.get(c).length());
                line.append(c == 0 ? "" : "  ");
                line.append(c < 3 ? row.get(c) + padding : padding + row.get(c));
            }
            text.append(line.toString().stripTrailing()).append('\n');
        }
        return text.toString();
    }
}

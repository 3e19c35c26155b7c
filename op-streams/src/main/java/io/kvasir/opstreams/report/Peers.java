package io.kvasir.opstreams.report;

import io.kvasir.opstreams.kvops.Figure;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.OptionalDouble;
import java.util.Set;

/**
 * What other projects' indexes took on the same streams, measured elsewhere; {@code peers.csv} says
 * where.
 */
final class Peers {
    private static final String RESOURCE = "peers.csv";
    private static final int COLUMNS = 5;

    private final String origin;
    private final List<Row> rows;

    private Peers(String origin, List<Row> rows) {
        this.origin = origin;
        this.rows = rows;
    }

    private record Row(String stream, String mode, String peer, Figure figure, double value) {}

    /** Reads the committed figures. */
    static Peers read() {
        try (BufferedReader lines =
                new BufferedReader(
                        new InputStreamReader(
                                Peers.class.getResourceAsStream(RESOURCE),
                                StandardCharsets.UTF_8))) {
            return parse(lines.lines().toList());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /**
     * Reads figures: comments, a line of titles, {@code stream,mode,peer,figure,value}.
     *
     * @throws IllegalArgumentException naming a line that is not of that form
     */
    static Peers parse(List<String> lines) {
        final List<String> comments = new ArrayList<>();
        final List<Row> rows = new ArrayList<>();
        boolean titles = true;
        for (String line : lines) {
            if (line.startsWith("#")) {
                comments.add(line.substring(1).strip());
            } else if (titles) {
                titles = false;
            } else {
                rows.add(row(line));
            }
        }
        return new Peers(String.join(" ", comments), rows);
    }

    private static Row row(String line) {
        final String[] cells = line.split(",", -1);
        if (cells.length != COLUMNS) {
            throw new IllegalArgumentException("not " + COLUMNS + " columns: " + line);
        }
        return new Row(
                cells[0],
                cells[1],
                cells[2],
                Figure.valueOf(cells[3].toUpperCase(Locale.ROOT)),
                Double.parseDouble(cells[4]));
    }

    /** The same without the figures of other streams. */
    Peers of(Set<String> streams) {
        return new Peers(
                origin, rows.stream().filter(row -> streams.contains(row.stream)).toList());
    }

    /** Where the figures come from, for people. */
    String origin() {
        return origin;
    }

    /** Names of the peers, in the order of the file. */
    List<String> names() {
        return rows.stream().map(Row::peer).distinct().toList();
    }

    /** A peer's figure on a stream (its file's name without the ending) in a mode. */
    OptionalDouble figure(String stream, String mode, String peer, Figure figure) {
        return rows.stream()
                .filter(row -> row.stream.equals(stream) && row.mode.equals(mode))
                .filter(row -> row.peer.equals(peer) && row.figure == figure)
                .mapToDouble(Row::value)
                .findFirst();
    }
}

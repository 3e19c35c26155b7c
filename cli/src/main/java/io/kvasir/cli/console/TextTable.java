package io.kvasir.cli.console;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;

/**
 * A plain text table: first column left, the others right unless said otherwise, two blanks
 * between, in cells of a terminal. One thread.
 */
public final class TextTable {
    /** How a row stands out where output is coloured. */
    public enum Mark {
        /** Not at all. */
        NONE(""),
        /** As what was chosen. */
        CHOSEN("\u001b[1m"),
        /** As what is not as it should be. */
        WRONG("\u001b[31m");

        private final String begin;

        Mark(String begin) {
            this.begin = begin;
        }

        /** A text that stands out so; the text itself without colour. */
        public String on(String text, boolean colour) {
            return colour && !begin.isEmpty() ? begin + text + "\u001b[0m" : text;
        }
    }

    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Row(Mark mark, String[] cells) {}

    private static final String GAP = "  ";

    private final List<Row> rows = new ArrayList<>();
    private final boolean[] left;

    /** A table without rows; a title for each column. */
    public TextTable(String... titles) {
        rows.add(new Row(Mark.NONE, titles.clone()));
        left = new boolean[titles.length];
        if (titles.length > 0) {
            left[0] = true;
        }
    }

    /** Aligns columns left, by their titles. */
    public TextTable left(String... titles) {
        for (String title : titles) {
            left[List.of(rows.getFirst().cells).indexOf(title)] = true;
        }
        return this;
    }

    /** Adds a row; it has as many cells as the title row. */
    public TextTable row(String... cells) {
        return row(Mark.NONE, cells);
    }

    /** Adds a row that stands out. */
    public TextTable row(Mark mark, String... cells) {
        if (cells.length != left.length) {
            throw new IllegalArgumentException(
                    "cells=" + cells.length + ", columns=" + left.length);
        }
        rows.add(new Row(mark, cells.clone()));
        return this;
    }

    /** Prints titles and rows without colour, each column as wide as its widest cell. */
    public void print(PrintWriter out) {
        print(out, false);
    }

    /** The same with colour, or without. */
    public void print(PrintWriter out, boolean colour) {
        final int[] widths = widths();
        final String titles = line(rows.getFirst().cells, widths);
        out.println(titles);
        out.println("-".repeat(Cells.of(titles)));
        for (Row row : rows.subList(1, rows.size())) {
            out.println(row.mark.on(line(row.cells, widths).stripTrailing(), colour));
        }
    }

    private String line(String[] row, int[] widths) {
        final StringBuilder line = new StringBuilder();
        for (int i = 0; i < row.length; i++) {
            final String padding = " ".repeat(widths[i] - Cells.of(row[i]));
            line.append(i == 0 ? "" : GAP);
            line.append(left[i] ? row[i] + padding : padding + row[i]);
        }
        return line.toString();
    }

    private int[] widths() {
        final int[] widths = new int[left.length];
        for (Row row : rows) {
            for (int i = 0; i < widths.length; i++) {
                widths[i] = Math.max(widths[i], Cells.of(row.cells[i]));
            }
        }
        return widths;
    }
}

package io.kvasir.cli.console;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;

/** A plain text table: first column left, the others right, two blanks between. One thread. */
public final class TextTable {
    private static final String GAP = "  ";

    private final List<String[]> rows = new ArrayList<>();

    /** A table without rows; a title for each column. */
    public TextTable(String... titles) {
        rows.add(titles.clone());
    }

    /** Adds a row; it has as many cells as the title row. */
    public TextTable row(String... cells) {
        if (cells.length != rows.getFirst().length) {
            throw new IllegalArgumentException(
                    "cells=" + cells.length + ", columns=" + rows.getFirst().length);
        }
        rows.add(cells.clone());
        return this;
    }

    /** Prints titles and rows, each column as wide as its widest cell. */
    public void print(PrintWriter out) {
        final int[] widths = widths();
        final String titles = line(rows.getFirst(), widths);
        out.println(titles);
        out.println("-".repeat(titles.length()));
        for (String[] row : rows.subList(1, rows.size())) {
            out.println(line(row, widths));
        }
    }

    private static String line(String[] row, int[] widths) {
        final StringBuilder line = new StringBuilder();
        for (int i = 0; i < row.length; i++) {
            final String padding = " ".repeat(widths[i] - row[i].length());
            line.append(i == 0 ? "" : GAP);
            line.append(i == 0 ? row[i] + padding : padding + row[i]);
        }
        return line.toString();
    }

    private int[] widths() {
        final int[] widths = new int[rows.getFirst().length];
        for (String[] row : rows) {
            for (int i = 0; i < row.length; i++) {
                widths[i] = Math.max(widths[i], row[i].length());
            }
        }
        return widths;
    }
}

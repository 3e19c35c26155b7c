package io.kvasir.cli;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;

/** A plain text table: first column left, the others right, two blanks between. One thread. */
final class TextTable {
    private static final String GAP = "  ";

    private final List<String[]> rows = new ArrayList<>();

    TextTable(String... titles) {
        rows.add(titles.clone());
    }

    /** Adds a row; it has as many cells as the title row. */
    TextTable row(String... cells) {
        if (cells.length != rows.getFirst().length) {
            throw new IllegalArgumentException(
                    "cells=" + cells.length + ", columns=" + rows.getFirst().length);
        }
        rows.add(cells.clone());
        return this;
    }

    void print(PrintWriter out) {
        final int[] widths = widths();
        for (String[] row : rows) {
            final StringBuilder line = new StringBuilder();
            for (int i = 0; i < row.length; i++) {
                final String padding = " ".repeat(widths[i] - row[i].length());
                line.append(i == 0 ? "" : GAP);
                line.append(i == 0 ? row[i] + padding : padding + row[i]);
            }
            out.println(line.toString().stripTrailing());
            if (row == rows.getFirst()) {
                out.println("-".repeat(line.length()));
            }
        }
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

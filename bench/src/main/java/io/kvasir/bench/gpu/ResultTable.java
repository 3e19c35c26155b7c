package io.kvasir.bench.gpu;

import java.io.PrintStream;
import java.util.List;

/**
 * Results as lines: one header, then for each cell an aligned line for people and a {@code cell
 * key=value ...} line for programs. Keys end in their unit.
 */
final class ResultTable {
    private static final int NARROWEST = 9;

    private final PrintStream out;
    private final List<String> keys;

    /** Prints the header. */
    ResultTable(PrintStream out, String... keys) {
        this.out = out;
        this.keys = List.of(keys);
        print(this.keys);
    }

    /** Prints one cell: a value for each key, without spaces. */
    void row(String... values) {
        if (values.length != keys.size()) {
            throw new IllegalArgumentException(values.length + " values for " + keys);
        }
        print(List.of(values));
        final StringBuilder line = new StringBuilder("cell");
        for (int i = 0; i < values.length; i++) {
            line.append(' ').append(keys.get(i)).append('=').append(values[i]);
        }
        out.println(line);
    }

    private void print(List<String> words) {
        final StringBuilder line = new StringBuilder();
        for (int i = 0; i < words.size(); i++) {
            final String word = words.get(i);
            final int width = Math.max(NARROWEST, keys.get(i).length()) + 2;
            line.repeat(' ', Math.max(1, width - word.length())).append(word);
        }
        out.println(line);
    }
}

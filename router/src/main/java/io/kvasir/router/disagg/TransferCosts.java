package io.kvasir.router.disagg;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * What it counts to fetch a block from another worker, by how far apart the two are: the first
 * entry decides whose label both workers have with the same value. Its index is their distance.
 * Immutable.
 */
public final class TransferCosts {
    /** The label of the last entry, which every pair of workers has in common. */
    public static final String ANY = "*";

    private static final String NEVER = "never";
    private static final Pattern SEVERAL = Pattern.compile("[,;\\s]");

    /**
     * What a block counts between workers with a label in common.
     *
     * @param label its key, or {@link #ANY}
     * @param blocks of load; infinite where none may be fetched
     */
    public record Entry(String label, double blocks) {
        /**
         * Parses {@code label:blocks}, such as {@code rack:0.05} or {@code *:never}.
         *
         * @throws IllegalArgumentException if it is neither, or several in one text
         */
        public static Entry parse(String text) {
            final int colon = text.lastIndexOf(':');
            final String value = text.substring(colon + 1);
            final double blocks = value.equals(NEVER) ? Double.POSITIVE_INFINITY : number(value);
            if (colon < 1 || !(blocks >= 0)) {
                throw new IllegalArgumentException(
                        text + " is not LABEL:BLOCKS; BLOCKS is 0 or more, or " + NEVER);
            }
            final String label = text.substring(0, colon);
            if (SEVERAL.matcher(label).find()) { // else one entry with a label that no worker has
                throw new IllegalArgumentException(
                        text
                                + " is not one LABEL:BLOCKS; give each entry as an element of its"
                                + " own: repeat the option, or write a YAML list");
            }
            return new Entry(label, blocks);
        }

        private static double number(String text) {
            try {
                final double value = Double.parseDouble(text);
                return Double.isInfinite(value) ? Double.NaN : value;
            } catch (NumberFormatException e) {
                return Double.NaN;
            }
        }

        @Override
        public String toString() {
            return label + ':' + (Double.isInfinite(blocks) ? NEVER : String.valueOf(blocks));
        }
    }

    private final List<Entry> entries;

    /**
     * Makes those of a list.
     *
     * @param entries the nearest first; empty if distance counts nothing
     * @throws IllegalArgumentException if they are not {@link #areOrdered}
     */
    public TransferCosts(List<Entry> entries) {
        if (!areOrdered(entries)) {
            throw new IllegalArgumentException(
                    "entries=" + entries + ": each label once, and " + ANY + " as the last");
        }
        this.entries = List.copyOf(entries);
    }

    /**
     * Whether entries say one thing of every pair of workers.
     *
     * @return true if each label is there once and {@link #ANY} is the last, or there is none
     */
    public static boolean areOrdered(List<Entry> entries) {
        final Set<String> labels = new HashSet<>();
        for (Entry entry : entries) {
            if (!labels.add(entry.label())) { // one after * is never asked
                return false;
            }
        }
        return entries.isEmpty() || entries.getLast().label().equals(ANY);
    }

    /**
     * Whether distance counts at all.
     *
     * @return false if there are no entries
     */
    public boolean any() {
        return !entries.isEmpty();
    }

    /**
     * How many distances there are.
     *
     * @return at least 1
     */
    public int distances() {
        return Math.max(1, entries.size());
    }

    /**
     * How far apart two workers are.
     *
     * @param from labels of the one
     * @param to labels of the other
     * @return 0 to {@link #distances()} - 1, the nearest first
     */
    public int distance(Map<String, String> from, Map<String, String> to) {
        for (int i = 0; i < entries.size() - 1; i++) {
            final String value = from.get(entries.get(i).label());
            if (value != null && value.equals(to.get(entries.get(i).label()))) {
                return i;
            }
        }
        return distances() - 1;
    }

    /**
     * What it counts to fetch blocks.
     *
     * @param distance as of {@link #distance}
     * @param count blocks, 0 or more
     * @return blocks of load; infinite where none may be fetched, also if there is none
     */
    public double blocks(int distance, int count) {
        if (entries.isEmpty()) {
            return 0;
        }
        final double each = entries.get(distance).blocks();
        return Double.isInfinite(each) ? each : each * count;
    }
}

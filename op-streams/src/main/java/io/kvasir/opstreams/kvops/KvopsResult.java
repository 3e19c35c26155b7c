package io.kvasir.opstreams.kvops;

import org.HdrHistogram.Histogram;

import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/**
 * What the processes of one measurement found, together.
 *
 * @param plan what was replayed and how
 * @param header what the stream says about itself
 * @param live what the index was sized for
 * @param forks one result a process
 */
public record KvopsResult(
        ReplayPlan plan, KvopsHeader header, LiveMaximum live, List<ForkResult> forks) {
    /** Copies the list. */
    public KvopsResult {
        forks = List.copyOf(forks);
    }

    /** Figures that every process found. */
    public Set<Figure> figures() {
        final Set<Figure> all = EnumSet.allOf(Figure.class);
        forks.forEach(fork -> all.retainAll(fork.figures().keySet()));
        return all;
    }

    /** Median over the processes; the mean of the middle two when their number is even. */
    public double median(Figure figure) {
        final double[] values = sorted(figure);
        final int middle = values.length / 2;
        return values.length % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
    }

    /** Smallest of the processes' values. */
    public double min(Figure figure) {
        return sorted(figure)[0];
    }

    /** Largest of the processes' values. */
    public double max(Figure figure) {
        final double[] values = sorted(figure);
        return values[values.length - 1];
    }

    private double[] sorted(Figure figure) {
        final double[] values =
                forks.stream().mapToDouble(fork -> fork.figures().get(figure)).toArray();
        Arrays.sort(values);
        return values;
    }

    /** Whether there were so few queries or events that a percentile says nothing. */
    public boolean isOfTooFew(Figure figure) {
        return figure.leastSamples() > 1
                && figures().contains(figure.samples())
                && min(figure.samples()) < figure.leastSamples();
    }

    /** Whether the answers were compared with the stream's. */
    public boolean isChecked() {
        return figures().contains(Figure.CHECKSUM_MISMATCHES);
    }

    /** Wrong answers of all processes together; 0 where they were not checked. */
    public long mismatches() {
        return forks.stream()
                .mapToLong(
                        fork ->
                                fork.figures()
                                        .getOrDefault(Figure.CHECKSUM_MISMATCHES, 0.0)
                                        .longValue())
                .sum();
    }

    /** Latencies of all processes together, in nanoseconds, without loss of the core. */
    public Histogram latencies() {
        final Histogram all = Latencies.histogram();
        forks.forEach(fork -> all.add(fork.latencies()));
        return all;
    }
}

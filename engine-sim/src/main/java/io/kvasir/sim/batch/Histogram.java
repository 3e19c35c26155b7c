package io.kvasir.sim.batch;

/** Counts of seconds in buckets, as Prometheus wants them. Owned by the thread of the step loop. */
final class Histogram {
    private final double[] bounds;
    private final long[] counts;
    private double sum;
    private long count;

    Histogram(double... bounds) {
        this.bounds = bounds;
        this.counts = new long[bounds.length];
    }

    void record(double seconds) {
        count++;
        sum += seconds;
        for (int i = 0; i < bounds.length; i++) {
            if (seconds <= bounds[i]) {
                counts[i]++;
                return;
            }
        }
    }

    /** Appends bucket, count and sum lines. */
    void write(StringBuilder out, String name, String engine, String model) {
        long below = 0;
        for (int i = 0; i < bounds.length; i++) {
            below += counts[i];
            bucket(out, name, engine, model, Double.toString(bounds[i]), below);
        }
        bucket(out, name, engine, model, "+Inf", count);
        final String labels = "{engine=\"" + engine + "\",model_name=\"" + model + "\"} ";
        out.append(name).append("_count").append(labels).append((double) count).append('\n');
        out.append(name).append("_sum").append(labels).append(sum).append('\n');
    }

    private static void bucket(
            StringBuilder out, String name, String engine, String model, String le, long value) {
        out.append(name)
                .append("_bucket{engine=\"")
                .append(engine)
                .append("\",le=\"")
                .append(le)
                .append("\",model_name=\"")
                .append(model)
                .append("\"} ")
                .append((double) value)
                .append('\n');
    }
}

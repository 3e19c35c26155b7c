package io.kvasir.router;

import java.util.Arrays;
import java.util.List;

/**
 * What labels a request prefers its worker to have, and by how much the cost of one that has some
 * is less: {@code cost · exp(−tanh(Σ weights))}, from a third of it to almost three times as much.
 * Owned by a {@link Selection}; reused, one thread at a time.
 */
final class Preferences {
    private SlotBits[] having = new SlotBits[4]; // by preference; null where no worker has it
    private double[] weights = new double[4];
    private int count;

    /** Takes a request, and what the workers are marked with. */
    void fill(RouteRequest request, WorkerMarks marks) {
        final List<String> preferred = request.constraints().preferred();
        if (having.length < preferred.size()) {
            having = new SlotBits[Constraints.MOST];
            weights = new double[Constraints.MOST];
        }
        final int before = count;
        count = preferred.size();
        for (int i = 0; i < count; i++) {
            having[i] = marks.labelled(preferred.get(i));
            weights[i] = request.constraints().weight(i);
        }
        if (before > count) {
            Arrays.fill(having, count, before, null);
        }
    }

    boolean any() {
        return count > 0;
    }

    /** What a worker's labels change in its cost: less than nothing for what is preferred. */
    double change(int slot, double cost) {
        double sum = 0;
        for (int i = 0; i < count; i++) {
            if (having[i] != null && having[i].contains(slot)) {
                sum += weights[i];
            }
        }
        return sum == 0 ? 0 : Math.abs(cost) * (Math.exp(-Math.tanh(sum)) - 1);
    }
}

package io.kvasir.router;

import io.kvasir.pipeline.log.LineText;
import io.kvasir.router.settings.LoraMode;

import java.util.Arrays;
import java.util.List;

/**
 * The workers that a request is not for, whatever their load: without its adapter, without a label
 * that it requires, or with a named taint that it does not tolerate. Owned by a {@link Candidates};
 * reused, one thread at a time. Costs some operations for each 64 workers and label; nothing where
 * the request has neither adapter nor labels and no worker a named taint.
 */
final class Suitability {
    private static final long[] NO_GROUPS = {};

    private String adapter; // null where the request has none, or it is not looked at
    private LoraMode mode = LoraMode.OFF;
    private Constraints constraints; // null before the first request
    private boolean labels;
    private boolean taints;
    private long[] serving = NO_GROUPS; // by group of 64 slots: with the adapter
    private long[] lacking = NO_GROUPS; // without a required label
    private long[] repelling = NO_GROUPS; // with a taint that is not tolerated

    /** Takes a request, and what the workers are marked with. */
    void fill(RouteRequest request, WorkerMarks marks, WorkerSet workers, LoraMode loraMode) {
        mode = loraMode;
        constraints = request.constraints();
        adapter = loraMode == LoraMode.OFF ? null : request.adapter();
        labels = !constraints.required().isEmpty();
        taints = marks.repelling().count() > 0;
        if (!any()) {
            return;
        }
        final int groups = workers.groups();
        if (serving.length < groups) {
            serving = new long[groups];
            lacking = new long[groups];
            repelling = new long[groups];
        }
        if (adapter != null) {
            copy(marks.serving(adapter), serving, groups);
        }
        if (labels) {
            fillLacking(marks, groups);
        }
        if (taints) {
            fillRepelling(marks.repelling(), workers);
        }
    }

    private static void copy(SlotBits fromOrNull, long[] to, int groups) {
        for (int group = 0; group < groups; group++) {
            to[group] = fromOrNull == null ? 0 : fromOrNull.of(group);
        }
    }

    private void fillLacking(WorkerMarks marks, int groups) {
        Arrays.fill(lacking, 0, groups, 0);
        final List<String> required = constraints.required();
        for (int i = 0; i < required.size(); i++) {
            final SlotBits having = marks.labelled(required.get(i));
            for (int group = 0; group < groups; group++) {
                lacking[group] |= having == null ? -1 : ~having.of(group);
            }
        }
    }

    private void fillRepelling(SlotBits tainted, WorkerSet workers) {
        copy(tainted, repelling, workers.groups());
        for (int group = 0; constraints.toleratesSome() && group < workers.groups(); group++) {
            for (long rest = repelling[group]; rest != 0; rest &= rest - 1) {
                final int slot = group * Long.SIZE + Long.numberOfTrailingZeros(rest);
                final Worker worker = workers.at(slot);
                if (worker != null && worker.isTolerated(constraints)) {
                    repelling[group] &= ~(1L << slot);
                }
            }
        }
    }

    /** Whether any worker may be out. */
    private boolean any() {
        return adapter != null || labels || taints;
    }

    /** The slots of a group that the request is not for. */
    long out(int group) {
        return any() ? unlabelled(group) | repelled(group) | (isStrict() ? without(group) : 0) : 0;
    }

    private boolean isStrict() {
        return mode == LoraMode.REQUIRED;
    }

    private long unlabelled(int group) {
        return labels ? lacking[group] : 0;
    }

    private long repelled(int group) {
        return taints ? repelling[group] : 0;
    }

    private long without(int group) {
        return adapter == null ? 0 : ~serving[group];
    }

    /** Whether a worker without the adapter may be chosen where none has it. */
    boolean prefersAdapter() {
        return adapter != null && mode == LoraMode.PREFERRED;
    }

    /** The slots of a group with the request's adapter. */
    long serving(int group) {
        return serving[group];
    }

    private static boolean has(long bits, int slot) {
        return (bits >>> slot & 1) != 0;
    }

    /** Whether the worker of a slot is out for want of the adapter. */
    boolean lacksAdapter(int slot) {
        return isStrict() && has(without(slot / Long.SIZE), slot);
    }

    /** Whether it is out for want of a label. */
    boolean lacksLabel(int slot) {
        return has(unlabelled(slot / Long.SIZE), slot);
    }

    /** Whether it is out because of a named taint. */
    boolean isRepelled(int slot) {
        return has(repelled(slot / Long.SIZE), slot);
    }

    /** What the workers have lost by this. */
    Losses losses(WorkerSet workers, long[] open) {
        final Losses losses = new Losses(isStrict() ? adapter : null, constraints.required());
        for (int group = 0; group < workers.groups(); group++) {
            final long all = workers.slots(group);
            losses.add(
                    all,
                    open[group],
                    isStrict() ? without(group) : 0,
                    unlabelled(group),
                    repelled(group));
        }
        return losses;
    }

    /** How many workers a refused request has lost, and by what. Allocates: it is for a message. */
    static final class Losses {
        private final String adapterOrNull;
        private final List<String> required;
        private int workers;
        private int usable;
        private int withAdapter;
        private int usableWithAdapter;
        private int unlabelled;
        private int repelled;

        private Losses(String adapterOrNull, List<String> required) {
            this.adapterOrNull = adapterOrNull == null ? null : LineText.of(adapterOrNull);
            this.required = required;
        }

        private void add(long all, long open, long without, long lacking, long repelling) {
            workers += Long.bitCount(all);
            usable += Long.bitCount(open);
            withAdapter += Long.bitCount(all & ~without);
            usableWithAdapter += Long.bitCount(open & ~without);
            unlabelled += Long.bitCount(all & lacking);
            repelled += Long.bitCount(all & repelling);
        }

        /** Whether the adapter alone leaves no worker. */
        boolean isByAdapter() {
            return adapterOrNull != null
                    && workers > 0
                    && (usable > 0 ? usableWithAdapter == 0 : withAdapter == 0);
        }

        /** Whether labels and taints leave none of the workers that could be used. */
        boolean isByMarks() {
            return usable > 0 && unlabelled + repelled > 0;
        }

        /** For a request that its adapter leaves no worker. */
        String adapterText() {
            return "no worker can serve the adapter '"
                    + adapterOrNull
                    + "': of "
                    + workers
                    + " workers looked at "
                    + (withAdapter == 0
                            ? "none has it"
                            : withAdapter + " have it, none of which can be used now");
        }

        /** For a request that labels and taints leave no worker. */
        String marksText() {
            return "none of "
                    + workers
                    + " workers is for this request: "
                    + (required.isEmpty()
                            ? ""
                            : unlabelled + " lack one of the required labels " + labels() + ", ")
                    + repelled
                    + " have a taint that it does not tolerate"
                    + lacking();
        }

        /** What to append to another reason; empty where nothing was lost. */
        String more() {
            return (unlabelled == 0 ? "" : ", " + unlabelled + " lack a label of " + labels())
                    + (repelled == 0 ? "" : ", " + repelled + " have a taint not tolerated")
                    + lacking();
        }

        private String labels() {
            return LineText.of(required.toString());
        }

        private String lacking() {
            return adapterOrNull == null || withAdapter == workers
                    ? ""
                    : ", " + (workers - withAdapter) + " lack the adapter '" + adapterOrNull + "'";
        }
    }
}

package io.kvasir.pipeline.source;

import io.kvasir.core.index.CopyRule;

/**
 * Judges by the engine's own cache hits whether the index believes in blocks that the engine does
 * not have: because removals mean something else than was assumed, or because a whole cache was
 * emptied without an event. Not thread-safe.
 */
final class RemovalRuleDetector {
    /** What follows from a report. */
    enum Finding {
        NOTHING,
        /** The rule has been changed: removals mean the last copy. */
        RULE_CHANGED,
        /** The rule is what it is, and still the index believes too much. */
        PHANTOMS
    }

    static final int OVER_PREDICTIONS = 8;

    private final boolean automatic;
    private final CopyRule first;
    private CopyRule rule;
    private boolean takenBack; // this engine's removals do not mean the last copy
    private final LastComparisons tooHigh = new LastComparisons();
    private int switches;

    RemovalRuleDetector(RemovalRule configured) {
        automatic = configured == RemovalRule.AUTO;
        first = configured.copyRule();
        rule = first;
    }

    CopyRule rule() {
        return rule;
    }

    /** The rule in the words of the configuration. */
    RemovalRule inUse() {
        return rule == CopyRule.PHYSICAL ? RemovalRule.PHYSICAL : RemovalRule.LAST_COPY;
    }

    /** Takes over a rule that was in use before, unless one is configured. */
    void recall(RemovalRule before) {
        if (automatic) {
            rule = before.copyRule();
        }
    }

    int switches() {
        return switches;
    }

    /** Takes one comparison; {@code over}: the engine had at least a block less than predicted. */
    Finding report(boolean over) {
        tooHigh.add(over);
        if (tooHigh.count() < OVER_PREDICTIONS) {
            return Finding.NOTHING;
        }
        tooHigh.clear();
        if (automatic && rule == CopyRule.PHYSICAL && !takenBack) {
            rule = CopyRule.LAST_COPY;
            switches++;
            return Finding.RULE_CHANGED;
        }
        return Finding.PHANTOMS;
    }

    /** What a finding means, in words. */
    static String explain(Finding finding) {
        final String often =
                "the engine had less cached than predicted "
                        + OVER_PREDICTIONS
                        + " times in "
                        + LastComparisons.WINDOW
                        + " requests";
        return finding == Finding.RULE_CHANGED
                ? "removals mean the last copy here: " + often + "; set removals=last-copy"
                : often + ": its blocks are cleared";
    }

    /**
     * Forgets the comparisons: they were with a view that is no more. An engine that is emptied
     * says so with its next step, and has less than was predicted once until then.
     */
    void forget() {
        tooHigh.clear();
    }

    /** Whether the rule in use is one that was found out. */
    boolean isConcluded() {
        return rule != first;
    }

    /**
     * A concluded rule is wrong: the engine stored blocks behind one of which a copy is left. It is
     * not concluded again of this engine.
     */
    void takeBack() {
        rule = first;
        takenBack = true;
        forget();
    }

    /**
     * Finds the rule out again: the engine has begun anew, perhaps as another version, or it was
     * judged by forecasts that were wrong for another reason.
     *
     * @return whether the rule is another one until then
     */
    boolean beginAnew() {
        final boolean changed = isConcluded();
        rule = first;
        takenBack = false;
        forget();
        return changed;
    }
}
